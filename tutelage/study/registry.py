"""Where studies are found: installed packages announce them by entry points, and a file holds one.

The papers of the laboratory are announced in the same way, and loaded when they are asked for.
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint

from tutelage._checks import refused, text
from tutelage._errors import BadInput, unknown
from tutelage.problem.problem import AbstractProblem
from tutelage.study.announced import installed
from tutelage.study.files import from_file, is_file_name
from tutelage.study.study import Experiment, Study

Studied = Study | Experiment | Callable[..., AbstractProblem] | str
"""What names a study: itself, with settings or without, a function that gives a problem, or a name."""


def names() -> list[str]:
    """The names of all installed studies.

    ```python
    >>> from tutelage.study.registry import names
    >>> "both_layers" in names()
    True

    ```
    """
    return list(installed())


def get(name: str) -> Study:
    """The study of that name, or of that file (`my_study.py`, `my_study.py:committee`).

    ```python
    >>> from tutelage.study.registry import get
    >>> get("both_layers").name
    'both_layers'

    ```
    """
    name = text("The name of a study", name)
    if is_file_name(name):
        return from_file(name)
    if name not in installed():
        raise unknown("study", name, [*installed(), "a file such as my_study.py"])
    return _loaded(name)


@cache
def _loaded(name: str) -> Study:
    found = installed()[name]
    try:
        study = found.load()
    except Exception as error:  # whatever a package of someone else does
        raise BadInput(
            f"The study {name!r} of the installed package {_package(found)} cannot be loaded "
            f"({type(error).__name__}: {error}); update or remove the package."
        ) from None
    if not isinstance(study, Study) or study.name != name:
        raise BadInput(
            f"{found.value} of the installed package {_package(found)} is announced as the study {name!r}, but is "
            f"{study!r}; a tt.Study of that name was expected."
        )
    return study


def _package(found: EntryPoint) -> str:
    return found.dist.name if found.dist else "that announces it"


def is_installed(study: Study) -> bool:
    """Whether another process finds this very study by its name."""
    return study.name in installed() and _loaded(study.name) is study


def experiment_of(studied: Studied) -> Experiment:
    """A study with settings: as given, or with its own.

    ```python
    >>> from tutelage.study.registry import experiment_of
    >>> experiment_of("both_layers")
    both_layers()

    ```
    """
    if isinstance(studied, Experiment):
        return studied
    if isinstance(studied, AbstractProblem):
        raise BadInput(
            "A problem has no settings to go over; write a function that makes it of them, such as "
            "`def committee(dim: int = 1000) -> tt.Problem`, and pass the function."
        )
    return study_of(studied)()


def study_of(studied: Studied) -> Study:
    """The study that is meant: itself, that of a function, or the one of a name."""
    if isinstance(studied, Study):
        return studied
    if isinstance(studied, str):
        return get(studied)
    if callable(studied) and not isinstance(studied, type):
        return Study.of(studied)
    raise refused("The study", studied, "the name of a study, a tt.Study, or a function that gives a problem,")
