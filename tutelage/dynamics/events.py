"""Things to watch for during a run: the first time a quantity crosses a threshold."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Array, Float

from tutelage.dynamics.view import View


@dataclass(frozen=True)
class Event:
    """Happens when `when(view)` first becomes zero or more; `stop` ends the run there.

    In gradient flow the time is found inside the step, to the solver's own accuracy; in descent it is the first
    update at which the condition holds.

    ```python
    >>> import tutelage as tt
    >>> half = tt.Event("half", lambda view: 0.25 - view.loss, stop=True)
    >>> half.name
    'half'

    ```
    """

    name: str
    when: Callable[[View], Float[Array, ""]]
    stop: bool = False


def below(level: float, name: str = "", *, stop: bool = False) -> Event:
    """The loss falls to `level`."""
    return Event(name or f"loss_below_{level:g}", _LossBelow(level), stop)


@dataclass(frozen=True)
class _LossBelow:
    """Compares equal for equal levels, so that asking twice for the same event compiles once."""

    level: float

    def __call__(self, view: View) -> Float[Array, ""]:
        return self.level - view.loss
