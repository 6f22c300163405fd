"""Gradient descent: constant step or schedule; a layer may be frozen or slowed by a factor."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.dynamics.base import AbstractDynamics, Moment
from tutelage.problem.networks import Weights


class Descent(AbstractDynamics):
    """`w <- w - step * rate * gradient`, both layers at once.

    - `step`: the step size; with `schedule`, its multiplier at each update is `schedule(number of the update)`.
    - `rates`: a factor for each layer, `Weights(first=..., second=...)`; a layer not named in `trains` stays fixed.
    """

    step_size: Float[Array, ""]
    rates: Weights
    trains: tuple[str, ...] = eqx.field(static=True)
    schedule: Callable[[Float[Array, ""]], Float[Array, ""]] | None = eqx.field(static=True, default=None)

    def begin(self, oracle, weights):
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), ())

    def step(self, oracle, moment, limit):
        del limit  # one update is one tick: limits are whole numbers of updates
        size = self.step_size if self.schedule is None else self.step_size * self.schedule(moment.clock)
        velocity = trained(oracle.gradient(moment.weights), self.rates, self.trains)
        weights = jax.tree.map(lambda w, g: w - size * g, moment.weights, velocity)
        clock = moment.clock + 1
        time = clock * size if self.schedule is None else moment.time + size
        return Moment(weights, clock, time, ()), jnp.array(True), jnp.array(False)

    def within(self, oracle, moment, clock):
        del clock  # nothing happens between two updates: an event is seen at the update itself
        return self.step(oracle, moment, moment.clock)[0]


def trained(gradient: Weights, rates: Weights, trains: tuple[str, ...]) -> Weights:
    """The gradient scaled by the layers' rates, exactly zero for a layer that is not trained."""

    def scaled(layer: str) -> Float[Array, "..."]:
        value = getattr(gradient, layer)
        return getattr(rates, layer) * value if layer in trains else jnp.zeros_like(value)

    return Weights(scaled("first"), scaled("second"))
