"""Any loss over standard inputs, as one over inputs with a covariance: the same network in other coordinates."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights


class CorrelatedOracle(AbstractOracle):
    """The loss over `x = root z`, `z` standard: a row `w` sees `w.x = (root w).z`; gradients are `root` times those.

    `root` is the symmetric root of the covariance of the first coordinates; the others are standard. The gradient is
    the one in `w`, so that directions of small variance are learned late, as on samples.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> target = tt.Weights(first=jnp.array([[2.0, 0.0]]), second=jnp.ones((1, 1)))  # root times (1, 0)
    >>> plain = tt.PopulationOracle(student="linear", teacher="linear", target=target)
    >>> oracle = tt.CorrelatedOracle(plain, root=jnp.array([[2.0]]))
    >>> zero = tt.Weights(first=jnp.zeros((1, 2)), second=jnp.ones((1, 1)))
    >>> float(oracle.loss(zero)), oracle.gradient(zero).first.tolist()  # 1/2 (2 w_1 - 2)^2 + 1/2 w_2^2
    (2.0, [[-4.0, 0.0]])

    ```
    """

    plain: AbstractOracle
    root: Float[Array, "kept kept"]
    accuracy: str = eqx.field(static=True)

    def __init__(self, plain: AbstractOracle, root: Float[Array, "kept kept"]):
        instance("CorrelatedOracle: plain", plain, AbstractOracle, "the oracle over standard inputs")
        self.plain, self.root, self.accuracy = plain, root, plain.accuracy

    def loss(self, weights: Weights) -> Float[Array, ""]:
        return self.plain.loss(whitened(weights, self.root))

    def gradient(self, weights: Weights) -> Weights:
        return whitened(self.plain.gradient(whitened(weights, self.root)), self.root)

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        inner = self.plain.hessian(whitened(weights, self.root))
        outgoing, shape = weights.second.size, weights.first.shape

        def turned(lines: Float[Array, "parameters parameters"]) -> Float[Array, "parameters parameters"]:
            rows = _times(lines[:, outgoing:].reshape(-1, *shape), self.root)
            return jnp.concatenate([lines[:, :outgoing], rows.reshape(len(lines), -1)], axis=1)

        return turned(turned(inner).T)

    def forms(self) -> tuple["CorrelatedOracle", ...]:
        return tuple(CorrelatedOracle(form, self.root) for form in self.plain.forms())

    def strained(
        self, weights: Weights, *, loss: Float[Array, ""] | None = None, gradient: Weights | None = None
    ) -> Bool[Array, ""]:
        inside = None if gradient is None else self._inside(gradient)
        return self.plain.strained(whitened(weights, self.root), loss=loss, gradient=inside)

    def held(self, weights: Weights, loss: Float[Array, ""]) -> Bool[Array, ""]:
        return self.plain.held(whitened(weights, self.root), loss)

    def lost(self, weights: Weights, loss: Float[Array, ""], gradient: Weights) -> Bool[Array, ""]:
        return self.plain.lost(whitened(weights, self.root), loss, self._inside(gradient))

    def _inside(self, gradient: Weights) -> Weights:
        """No longer than the gradient of the plain loss, so that lost digits are noticed there at the latest."""
        size = jnp.maximum(1.0, jnp.sqrt(jnp.sum(self.root**2)))
        return Weights(gradient.first / size, gradient.second)

    def instead(self, weights: Weights) -> Int[Array, ""]:
        return self.plain.instead(whitened(weights, self.root))


def whitened(weights: Weights, root: Float[Array, "kept kept"]) -> Weights:
    """The weights that see of standard inputs what these see of `root` times them."""
    return Weights(_times(weights.first, root), weights.second)


def _times(rows: Float[Array, "*batch frame"], root: Float[Array, "kept kept"]) -> Float[Array, "*batch frame"]:
    kept = len(root)
    return jnp.concatenate([rows[..., :kept] @ root, rows[..., kept:]], axis=-1)
