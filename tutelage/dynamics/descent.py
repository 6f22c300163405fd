"""Gradient descent: constant step or schedule; a layer may be frozen or slowed by a factor."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage._errors import BadInput
from tutelage.dynamics.base import AbstractDynamics, Moment
from tutelage.problem.networks import Rates, Weights


@dataclass(frozen=True)
class Truncation:
    """Units with `|w|^2` above a cap stand still: their gradient is dropped, but they go on to contribute.

    - `caps`: one for each stage; infinite for none.
    - `ends`: the number of updates after which a stage is over, for all stages but the last. A unit that stood still
      moves again in a later stage with a higher cap.

    ```python
    >>> import tutelage as tt
    >>> tt.Truncation(caps=(2.0, 50.0), ends=(3000,)).cap(3000)
    Array(50., dtype=float64)

    ```
    """

    caps: tuple[float, ...]
    ends: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.caps) != len(self.ends) + 1 or not all(cap > 0 for cap in self.caps):
            raise BadInput(
                f"Truncation: caps is {self.caps} and ends {self.ends}, but a cap above 0 for each stage and an "
                "end for each but the last were expected."
            )
        if list(self.ends) != sorted(set(self.ends)) or any(end < 1 for end in self.ends):
            raise BadInput(f"Truncation: ends is {self.ends}, but rising numbers of updates from 1 up were expected.")

    def cap(self, clock: Float[Array, ""] | float) -> Float[Array, ""]:
        """The cap of the update that begins at `clock`."""
        return jnp.asarray(self.caps)[jnp.searchsorted(jnp.asarray(self.ends), jnp.asarray(clock), side="right")]

    def moving(self, first: Float[Array, "unit frame"], clock: Float[Array, ""]) -> Bool[Array, "unit 1"]:
        """Which units move."""
        return jnp.sum(first**2, axis=1, keepdims=True) <= self.cap(clock)


class Descent(AbstractDynamics):
    """`w <- w - step * rate * gradient`, both layers at once.

    - `step`: the step size; with `schedule`, its multiplier at each update is `schedule(number of the update)`.
    - `rates`: a factor for each layer, `Rates(first=..., second=...)`; a layer not named in `trains` stays fixed.
    - `truncation`: units that are too large do not move.
    """

    step_size: Float[Array, ""]
    rates: Rates
    trains: tuple[str, ...] = eqx.field(static=True)
    schedule: Callable[[Float[Array, ""]], Float[Array, ""]] | None = eqx.field(static=True, default=None)
    truncation: Truncation | None = eqx.field(static=True, default=None)

    def begin(self, oracle, weights):
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), ())

    def step(self, oracle, moment, limit):
        del limit  # one update is one tick: limits are whole numbers of updates
        size = self.step_size if self.schedule is None else self.step_size * self.schedule(moment.clock)
        velocity = trained(oracle.gradient(moment.weights), self.rates, self.trains)
        if self.truncation is not None:
            moving = self.truncation.moving(moment.weights.first, moment.clock)
            velocity = jax.tree.map(lambda g: jnp.where(moving, g, 0.0), velocity)
        weights = jax.tree.map(lambda w, g: w - size * g, moment.weights, velocity)
        clock = moment.clock + 1
        time = clock * size if self.schedule is None else moment.time + size
        return Moment(weights, clock, time, ()), jnp.array(True), jnp.array(False)

    def within(self, oracle, moment, clock):
        del clock  # nothing happens between two updates: an event is seen at the update itself
        return self.step(oracle, moment, moment.clock)[0]


def trained(gradient: Weights, rates: Rates, trains: tuple[str, ...]) -> Weights:
    """The gradient scaled by the layers' rates, exactly zero for a layer that is not trained."""

    def scaled(layer: str) -> Float[Array, "..."]:
        value = getattr(gradient, layer)
        return getattr(rates, layer) * value if layer in trains else jnp.zeros_like(value)

    return Weights(scaled("first"), scaled("second"))
