"""Things to watch for during a run: the first time a quantity, or each entry of an array, crosses a threshold."""

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


@dataclass(frozen=True)
class Crossings:
    """The first times at which the entries of `values(view)` become zero or more; nan for one that never does.

    For hundreds of thresholds at once. In gradient flow each time is found inside its step, by a cubic through values
    and rates of change at both ends; in descent and SGD it is the first update at which the condition holds. The
    times are the variable `name` of the run, with `dims`.

    ```python
    >>> import tutelage as tt
    >>> outputs = [[1.0, 0.0], [0.0, 1.0]]
    >>> teacher = tt.TwoLayer("linear", first=[[1.0, 0.0], [0.0, 2.0]], second=outputs)
    >>> student = tt.TwoLayer("linear", first=[[0.1, 0.0], [0.0, 0.1]], second=outputs, trains=("first",))
    >>> half = tt.Crossings("half", lambda view: view.weights.first.max(1) - 0.5, ("student",))
    >>> run = tt.flow(tt.Problem(tt.Gaussian(2), teacher, student), until=3.0, crossings=(half,))
    >>> run.half.values.round(4).tolist()  # log(0.9 / 0.5) and log(1.9 / 1.5)
    [[0.5878, 0.2364]]

    ```
    """

    name: str
    values: Callable[[View], Float[Array, "..."]]
    dims: tuple[str, ...] = ()
    long_name: str = ""


def below(level: float, name: str = "", *, stop: bool = False) -> Event:
    """The loss falls to `level`."""
    return Event(name or f"loss_below_{level:g}", _LossBelow(level), stop)


@dataclass(frozen=True)
class _LossBelow:
    """Compares equal for equal levels, so that asking twice for the same event compiles once."""

    level: float

    def __call__(self, view: View) -> Float[Array, ""]:
        return self.level - view.loss
