"""The loss of a network that is replaced by its first-order expansion: what the neural tangent kernel learns."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.population import PopulationOracle
from tutelage.problem.networks import Weights
from tutelage.problem.trees import flatten, unflatten


class LinearisedOracle(AbstractOracle):
    """The loss of `f(x; w0) + df(x; w0).(w - w0)`, which is a quadratic function of `w`.

    Its gradient at `w0` is that of the network, and its Hessian is everywhere `E[df^T df]` (`PopulationOracle.metric`),
    whose dual is the neural tangent kernel at `w0`.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> target = tt.Weights(first=jnp.array([[2.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> plain = tt.PopulationOracle(student="relu", teacher="relu", target=target)
    >>> origin = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> oracle = tt.LinearisedOracle(plain, origin)
    >>> float(oracle.loss(origin)) == float(plain.loss(origin))
    True
    >>> float(oracle.loss(target))  # a ReLU is linear as long as its weights keep their direction
    0.0

    ```
    """

    origin: Weights
    height: Float[Array, ""]
    slope: Weights
    metric: Float[Array, "parameters parameters"]
    accuracy: str = eqx.field(static=True)

    def __init__(self, plain: PopulationOracle, origin: Weights):
        instance("LinearisedOracle: plain", plain, PopulationOracle, "the exact oracle of a plain two-layer network")
        self.origin, self.accuracy = origin, plain.accuracy
        self.height, self.slope, self.metric = plain.loss(origin), plain.gradient(origin), plain.metric(origin)

    def loss(self, weights: Weights) -> Float[Array, ""]:
        away = self._away(weights)
        return self.height + jnp.vdot(flatten(self.slope), away) + 0.5 * jnp.vdot(away, self.metric @ away)

    def gradient(self, weights: Weights) -> Weights:
        bent: Weights = unflatten(self.metric @ self._away(weights), self.slope)
        pulled: Weights = jax.tree.map(jnp.add, self.slope, bent)
        return pulled

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        return self.metric

    def _away(self, weights: Weights) -> Float[Array, " parameters"]:
        return flatten(weights) - flatten(self.origin)
