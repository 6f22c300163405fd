"""Prints the lowest versions that pyproject.toml allows, as constraints for pip: `make test-lowest` installs them."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def lowest(project: dict) -> list[str]:
    """`name==bound` of every dependency with a lower bound, those of extras included.

    ```python
    >>> lowest({"dependencies": ["numpy>=2.1"], "optional-dependencies": {"x": ["dask[array]>=2025.1", "torch==2.0"]}})
    ['numpy==2.1', 'dask==2025.1']

    ```
    """
    extras = project["optional-dependencies"].values()
    needs = [*project["dependencies"], *(need for extra in extras for need in extra)]
    found = [re.match(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", need) for need in needs]
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    print(*lowest(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]), sep="\n")
