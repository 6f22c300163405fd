"""Ways to move, by name: a dynamics, stages, or a function of the settings that gives either."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tutelage._checks import refused, text
from tutelage._errors import BadInput
from tutelage._values import assignments
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.descent import Descent
from tutelage.dynamics.flow import Flow
from tutelage.dynamics.record import Record
from tutelage.trajectory.asked import Stage

Move = AbstractDynamics | Sequence[Stage]
OneMove = Move | Callable[[Any], Move]
Moves = OneMove | Mapping[str, OneMove]


def moves_of(dynamics: Moves | None) -> dict[str, OneMove]:
    """Ways to move by name; a flow and a descent if there are none.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.study.moves import moves_of
    >>> list(moves_of(tt.Descent(step=0.1, steps=10)))
    ['descent']

    ```
    """
    if dynamics is None:
        return {"flow": Flow(until=100.0), "descent": Descent(step=0.1, steps=1000)}
    if not isinstance(dynamics, Mapping):
        return {_label(dynamics): _one(dynamics)}
    if not dynamics:
        raise BadInput("dynamics is empty, but at least one way to move is needed, such as tt.Flow(until=100.0).")
    return {text("The name of a dynamics", name): _one(move) for name, move in dynamics.items()}


def planned(moves: Mapping[str, OneMove], settings: Any, dynamics: str, record: Record) -> Move:
    """The move of that name at these settings."""
    move = moves[dynamics]
    return _move(move(settings)) if callable(move) else move


def parted(dynamics: str) -> tuple[str, dict[str, Any]]:
    """The name of a dynamics and what of it is changed.

    ```python
    >>> from tutelage.study.moves import parted
    >>> parted("flow:until=1e3,rtol=1e-9")
    ('flow', {'until': 1000, 'rtol': 1e-09})

    ```
    """
    name, colon, fields = dynamics.partition(":")
    return name, assignments(fields.split(",")) if colon else {}


def _label(move: OneMove) -> str:
    if isinstance(move, AbstractDynamics):
        return move.name
    return getattr(move, "__name__", "dynamics") if callable(move) else "stages"


def _one(move: OneMove) -> OneMove:
    return move if callable(move) else _move(move)


def _move(move: Any) -> Move:
    if isinstance(move, AbstractDynamics):
        return move
    if isinstance(move, Sequence) and move and all(isinstance(each, Stage) for each in move):
        return tuple(move)
    raise refused("dynamics", move, "a dynamics such as tt.Flow(until=100.0), stages, or these by name,")
