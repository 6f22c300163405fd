"""A recipe of a function: its arguments are the settings, what it gives is the problem."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, get_type_hints

import pydantic

from tutelage._checks import function, instance, refused, text
from tutelage._errors import BadInput
from tutelage.dynamics.record import Record
from tutelage.problem.problem import AbstractProblem
from tutelage.study.moves import Moves, moves_of, planned
from tutelage.study.recipe import Recipe, Settings
from tutelage.trajectory.findings import Phase
from tutelage.trajectory.result import Run

Phases = Callable[[Run, Any], Iterable[Phase]]
PLAIN = (bool, int, float, str, tuple)
"""What a setting may be."""


def recipe_of(
    problem: Callable[..., AbstractProblem],
    *,
    name: str | None = None,
    dynamics: Moves | None = None,
    record: Record | Callable[[Any, str], Record] | None = None,
    phases: Phases | None = None,
) -> Recipe:
    """A recipe whose settings are the arguments of a function (see `Study.of`)."""
    called = text("The name of a study", name or getattr(function("problem", problem, "settings"), "__name__", "study"))
    model, build = settings_of(problem, called)
    moves = moves_of(dynamics)
    more: dict[str, Any] = {} if phases is None else {"phases": function("phases", phases, "a run and its settings")}
    if record is not None:
        more["record"] = record if callable(record) else partial(_same, instance("record", record, Record, "a Record"))
    return Recipe(called, model, build, partial(planned, moves), tuple(moves), **more)


def settings_of(problem: Callable[..., Any], owner: str) -> tuple[type[Settings], Callable[[Any], AbstractProblem]]:
    """The settings that a function takes, as a model, and the function of these.

    `Annotated[int, "the input dimension"]` says what a setting is, and pydantic's `Field(gt=0)` there what it may be.

    ```python
    >>> from tutelage.study.functions import settings_of
    >>> def committee(dim: int = 1000, units: int = 3): ...
    >>> settings_of(committee, "committee")[0](dim=10**6)
    committeeSettings(dim=1000000, units=3)

    ```
    """
    parameters = inspect.signature(problem).parameters
    hints = get_type_hints(problem, include_extras=True)
    if len(parameters) == 1:
        alone = hints.get(next(iter(parameters)))
        if isinstance(alone, type) and issubclass(alone, Settings):
            return alone, partial(_checked, owner, problem)
    fields = {name: _field(owner, each, hints.get(name)) for name, each in parameters.items()}
    model = pydantic.create_model(f"{owner}Settings", __base__=Settings, __module__=problem.__module__, **fields)
    return model, partial(_spread, owner, problem)


def _field(owner: str, parameter: inspect.Parameter, hint: Any) -> Any:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.default is parameter.empty:
        raise BadInput(f"{owner}: the argument {name!r} has no default; a study's settings have one each.")
    if hasattr(Settings, name) or name.startswith("_"):
        raise BadInput(f"{owner}: a setting cannot be called {name!r}, which has a meaning of its own; rename it.")
    if hint is None and not isinstance(parameter.default, PLAIN):
        raise refused(f"{owner}: the default of {name}", parameter.default, "a number, a text, or a type with it,")
    kind = type(parameter.default) if hint is None else hint
    words = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)), None)
    return (kind, pydantic.Field(parameter.default, description=words, validate_default=True))


def _spread(owner: str, problem: Callable[..., Any], settings: Settings) -> AbstractProblem:
    """The problem of these settings, each an argument of its own."""
    return _given(owner, problem(**{name: getattr(settings, name) for name in type(settings).model_fields}))


def _checked(owner: str, problem: Callable[..., Any], settings: Settings) -> AbstractProblem:
    return _given(owner, problem(settings))


def _given(owner: str, made: Any) -> AbstractProblem:
    return instance(f"What {owner} gives", made, AbstractProblem, "a problem such as tt.Problem(...)")


def _same(record: Record, settings: Any, dynamics: str) -> Record:
    return record


def gives_a_problem(candidate: Any) -> bool:
    """Whether a function says that it gives a problem: `def committee(dim: int = 1000) -> tt.Problem`."""
    try:
        found = get_type_hints(candidate).get("return")
    except (NameError, TypeError):
        return False
    return isinstance(found, type) and issubclass(found, AbstractProblem)
