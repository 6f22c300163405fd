"""The cases of the bench, one file each; a file is loaded when its case is asked for."""

from collections.abc import Iterable
from importlib import import_module

from tutelage._errors import unknown
from tutelage.bench.contest import Case

NAMES = (
    "flow", "descent", "sgd", "seeds", "mixture", "samples", "hessian", "minima", "spherical", "normals", "growth",
)  # fmt: skip


def chosen(names: Iterable[str]) -> list[str]:
    """These cases, each once, or all if none is named; one that there is not is refused."""
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in NAMES:
            raise unknown("case", name, NAMES)
    return wanted or list(NAMES)


def get(name: str) -> Case:
    """The case of this name.

    ```python
    >>> from tutelage.bench.cases import get
    >>> get("flows")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: Unknown case 'flows': did you mean 'flow'? Known are descent, flow, growth, ...

    ```
    """
    case: Case = import_module(f"tutelage.bench.cases.{chosen([name])[0]}").CASE
    return case
