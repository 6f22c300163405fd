"""Things to watch for during a run: the first time a quantity, or each entry of an array, crosses a threshold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage._checks import flag, function, instance, put, real, several, text
from tutelage.dynamics.snapshot import Snapshot


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
    when: Callable[[Snapshot], Float[Array, ""]]
    stop: bool = False

    def __post_init__(self) -> None:
        text("Event: name", self.name)
        function("Event: when", self.when, "a Snapshot")
        put(self, stop=flag("Event: stop", self.stop))


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
    >>> run = tt.flow(tt.Problem(tt.Gaussian(2), teacher, student), until=3.0, record=tt.Record(crossings=(half,)))
    >>> run.half.values.round(4).tolist()  # log(0.9 / 0.5) and log(1.9 / 1.5)
    [[0.5878, 0.2364]]

    ```
    """

    name: str
    values: Callable[[Snapshot], Float[Array, "..."]]
    dims: tuple[str, ...] = ()
    long_name: str = ""

    def __post_init__(self) -> None:
        text("Crossings: name", self.name)
        function("Crossings: values", self.values, "a Snapshot")
        put(self, dims=several("Crossings: dims", self.dims, str, "a tuple of names"))
        instance("Crossings: long_name", self.long_name, str, "text")


def below(level: float, name: str = "", *, stop: bool = False) -> Event:
    """The loss falls to `level`."""
    level = real("below: level", level)
    return Event(name or f"loss_below_{level:g}", _LossBelow(level), stop)


@dataclass(frozen=True)
class _LossBelow:
    """Compares equal for equal levels, so that asking twice for the same event compiles once."""

    level: float

    def __call__(self, view: Snapshot) -> Float[Array, ""]:
        return self.level - view.loss


class End(NamedTuple):
    """Values at one end of a step, and their rates of change (None if they jump)."""

    clock: Float[Array, ""]
    values: Float[Array, "..."]
    rates: Float[Array, "..."] | None


def cross(times: Float[Array, "..."], before: End, after: End, now: Float[Array, ""]) -> Float[Array, "..."]:
    """`times` with those filled in that were nan and whose value has become zero or more; `now` if values jump."""
    new = jnp.isnan(times) & (after.values >= 0)
    return jnp.where(new, now if after.rates is None else _root(before, after, new), times)


def _root(before: End, after: End, new: Bool[Array, "..."]) -> Float[Array, "..."]:
    """Where the cubic through values and rates at both ends is zero, by bisection."""
    leaving, arriving, width = before.rates, after.rates, after.clock - before.clock
    assert leaving is not None and arriving is not None
    # An entry that starts at zero or more, or that has not crossed, must not disturb the others.
    low_value = jnp.where(new, jnp.minimum(before.values, 0.0), -1.0)
    high_value = jnp.where(new, after.values, 1.0)

    def cubic(u: Float[Array, "..."]) -> Float[Array, "..."]:
        near, far = (1 + 2 * u) * (1 - u) ** 2 * low_value, u**2 * (3 - 2 * u) * high_value
        return near + far + width * u * (1 - u) * ((1 - u) * leaving - u * arriving)

    def halve(_: Array | int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        passed = cubic(middle) >= 0
        return jnp.where(passed, ends[0], middle), jnp.where(passed, middle, ends[1])

    start = jnp.zeros_like(low_value), jnp.ones_like(low_value)
    part: Array = jax.lax.fori_loop(0, 30, halve, start)[1]
    return before.clock + width * part
