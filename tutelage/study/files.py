"""A study in a Python file: the one object of that kind, or the one function that gives a problem."""

import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tutelage._errors import BadInput, unknown
from tutelage.analysis.claims import Claim
from tutelage.dynamics.base import AbstractDynamics
from tutelage.study.functions import gives_a_problem
from tutelage.study.parts import Diagram, Figure
from tutelage.study.study import Study
from tutelage.trajectory.measures import Measure

PARTS: dict[str, type] = {"claims": Claim, "measures": Measure, "figures": Figure, "diagrams": Diagram}
"""What a file holds of these belongs to the study of its function."""


def is_file_name(name: str) -> bool:
    """Whether a study is meant by its file.

    ```python
    >>> from tutelage.study.files import is_file_name
    >>> is_file_name("both_layers"), is_file_name("my_study.py:committee")
    (False, True)

    ```
    """
    return _parted(name)[0].endswith(".py")


def from_file(name: str) -> Study:
    """The study of `my_study.py`, or the one called `committee` of `my_study.py:committee`.

    A file holds a `Study`, or a function that says it gives a problem (`-> tt.Problem`). To the study of a function
    belongs all that the file holds: dynamics (named as their variables), claims, measures, figures, phase diagrams.
    """
    file, wanted = _parted(name)
    module = module_of(file)
    found = _studies(module)
    if wanted:
        thing = getattr(module, wanted, None)
        if isinstance(thing, Study):
            return thing
        if callable(thing) and not isinstance(thing, type):
            return _of_function(module, thing)
        raise unknown(f"study of {file}", wanted, found)
    if len(found) != 1:
        what = f"has several studies, {', '.join(found)}" if found else "has no study"
        hint = f"write {file}:{next(iter(found))}" if found else "write `def my_study(dim: int = 1000) -> tt.Problem`"
        raise BadInput(f"{file} {what}; {hint}.")
    only = next(iter(found.values()))
    return only if isinstance(only, Study) else _of_function(module, only)


def module_of(file: str | Path) -> ModuleType:
    """A Python file as a module; the files beside it can be imported by it, as when it is run."""
    path = Path(file).resolve()
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # no other module has it
    spec = importlib.util.spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise BadInput(f"{file} is not a Python file that can be read; write for example my_study.py.")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # annotations of its classes are looked up there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BadInput:
        raise
    except Exception as error:  # whatever stands in the file
        if before is None:
            del sys.modules[name]
        raise BadInput(f"{file} cannot be loaded ({type(error).__name__}: {error}); correct it.") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _parted(name: str) -> tuple[str, str]:
    """The file and what is meant in it. A drive's colon is no part of that: it is followed by a path."""
    file, colon, wanted = name.rpartition(":")
    return (file, wanted) if colon and file.endswith(".py") else (name, "")


def _studies(module: ModuleType) -> dict[str, Any]:
    """The studies of a file or, if there are none, its own functions that give a problem."""
    held = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    studies = {name: thing for name, thing in held.items() if isinstance(thing, Study)}
    if studies:
        return studies
    own = {name: thing for name, thing in held.items() if getattr(thing, "__module__", "") == module.__name__}
    return {name: thing for name, thing in own.items() if callable(thing) and gives_a_problem(thing)}


def _of_function(module: ModuleType, function: Callable[..., Any]) -> Study:
    held = vars(module)
    parts: Any = {part: tuple(_once(held, kind)) for part, kind in PARTS.items()}
    moves = {name: thing for name, thing in held.items() if isinstance(thing, AbstractDynamics)}
    title, _, summary = (module.__doc__ or function.__doc__ or "").strip().partition("\n")
    return Study.of(function, dynamics=moves or None, title=title.rstrip("."), summary=summary.strip(), **parts)


def _once(held: dict[str, Any], kind: type) -> list[Any]:
    found = [thing for thing in held.values() if isinstance(thing, kind)]
    return list({id(thing): thing for thing in found}.values())
