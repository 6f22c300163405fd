"""A new study: a folder with settings, a problem, claims, a figure, a test and a page, which runs as it is."""

import keyword
from functools import partial
from importlib.resources import files
from pathlib import Path

from tutelage._checks import path, text
from tutelage._errors import BadInput
from tutelage._files import check_folder, deliver
from tutelage.study.announced import installed

FILES = {
    "study.py.txt": "{name}.py",
    "test_study.py.txt": "test_{name}.py",
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
}
"""Templates, and what they become."""


def new_study(name: str, folder: str | Path | None = None) -> tuple[Path, ...]:
    """Write a folder with a study of that name, and say which files are there.

    - `folder`: where; a new folder of its name if None. Nothing that is there is changed.

    ```python
    >>> import tempfile
    >>> from tutelage.present.new_study import new_study
    >>> [file.name for file in new_study("my_paper", tempfile.mkdtemp())]
    ['my_paper.py', 'test_my_paper.py', 'pyproject.toml', 'README.md']

    ```
    """
    name = text("The name of a study", name)
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise BadInput(f"{name!r} cannot name a Python module; write for example my_paper.")
    if name in installed():
        raise BadInput(f"There is a study {name!r} already, which `tutelage papers` lists; choose another name.")
    place = path("folder", folder if folder is not None else name)
    check_folder(place)
    made = {place / to.format(name=name): _filled(source, name) for source, to in FILES.items()}
    for file in made:
        if file.exists():
            raise BadInput(f"{file} is there already, and nothing was written; choose another name or folder.")
    place.mkdir(parents=True, exist_ok=True)
    for file, filled in made.items():
        deliver(file, partial(_write, filled))
    return tuple(made)


def _write(filled: str, part: Path) -> None:
    part.write_text(filled, encoding="utf-8")


def _filled(source: str, name: str) -> str:
    return (files(__name__) / source).read_text(encoding="utf-8").replace("NAME", name)
