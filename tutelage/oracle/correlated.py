"""Any loss over standard inputs, as one over inputs with a covariance or a mean: the same network in other
coordinates."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle, Population
from tutelage.problem.hidden import AbstractHidden
from tutelage.problem.networks import Weights

Root = Float[Array, "kept kept"]
Mean = Float[Array, " kept"]


class CorrelatedOracle(AbstractOracle):
    """The loss over `x = root z + mean`, `z` standard: a row `w` sees `w.x = (root w).z + mean.w`.

    `root` is the symmetric root of the covariance of the first coordinates; the others are standard. The gradient is
    the one in `w`, so that directions of small variance are learned late, as on samples.

    - `plain`: the loss over standard inputs. With a mean, one whose rows have their means in front
      (`PopulationOracle(means=True)`).
    - `target`: the teacher's weights, for who draws samples; those of `plain` are in other coordinates.

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
    root: Root
    mean: Mean | None
    target: Weights | None
    accuracy: str = eqx.field(static=True)

    def __init__(self, plain: AbstractOracle, root: Root, mean: Mean | None = None, target: Weights | None = None):
        instance("CorrelatedOracle: plain", plain, AbstractOracle, "the oracle over standard inputs")
        self.plain, self.root, self.mean, self.target = plain, root, mean, target
        self.accuracy = plain.accuracy

    def inside(self, weights: Weights) -> Weights:
        """The weights that see of standard inputs what these see of the inputs."""
        return whitened(weights, self.root, self.mean)

    def loss(self, weights: Weights) -> Float[Array, ""]:
        return self.plain.loss(self.inside(weights))

    def gradient(self, weights: Weights) -> Weights:
        inner = self.plain.gradient(self.inside(weights))
        return Weights(self._back(inner.first), inner.second)

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        plain = self.inside(weights)
        inner, outgoing = self.plain.hessian(plain), weights.second.size

        def turned(lines: Float[Array, "some parameters"]) -> Float[Array, "some fewer"]:
            rows = self._back(lines[:, outgoing:].reshape(-1, *plain.first.shape))
            return jnp.concatenate([lines[:, :outgoing], rows.reshape(len(lines), -1)], axis=1)

        return turned(turned(inner).T)

    def _back(self, rows: Float[Array, "*batch wide"]) -> Float[Array, "*batch frame"]:
        """From derivatives in what `inside` gives to those in the weights: the transposed map."""
        if self.mean is None:
            return _times(rows, self.root)
        kept = len(self.root)
        turned = _times(rows[..., 1:], self.root)
        shifts = rows[..., :1] * self.mean.reshape((1,) * (rows.ndim - 1) + (kept,))
        return jnp.concatenate([turned[..., :kept] + shifts, turned[..., kept:]], axis=-1)

    def forms(self) -> tuple["CorrelatedOracle", ...]:
        return tuple(CorrelatedOracle(form, self.root, self.mean, self.target) for form in self.plain.forms())

    def strained(
        self, weights: Weights, *, loss: Float[Array, ""] | None = None, gradient: Weights | None = None
    ) -> Bool[Array, ""]:
        inside = None if gradient is None else self._shortened(gradient)
        return self.plain.strained(self.inside(weights), loss=loss, gradient=inside)

    def held(self, weights: Weights, loss: Float[Array, ""]) -> Bool[Array, ""]:
        return self.plain.held(self.inside(weights), loss)

    def lost(self, weights: Weights, loss: Float[Array, ""], gradient: Weights) -> Bool[Array, ""]:
        return self.plain.lost(self.inside(weights), loss, self._shortened(gradient))

    def _shortened(self, gradient: Weights) -> Weights:
        """No longer than the gradient of the plain loss, so that lost digits are noticed there at the latest."""
        size = jnp.maximum(1.0, jnp.sqrt(jnp.sum(self.root**2)))
        return Weights(gradient.first / size, gradient.second)

    def instead(self, weights: Weights) -> Int[Array, ""]:
        return self.plain.instead(self.inside(weights))

    @property
    def sides(self) -> tuple[AbstractHidden, AbstractHidden]:
        """What the student's units and the teacher's compute on samples."""
        assert isinstance(self.plain, Population)
        return self.plain.sides


def whitened(weights: Weights, root: Root, mean: Mean | None = None) -> Weights:
    """The weights that see of standard inputs what these see of `root` times them; with a mean, after a first column of
    what they see of that."""
    first = _times(weights.first, root)
    if mean is not None:
        first = jnp.concatenate([(weights.first[..., : len(root)] @ mean)[..., None], first], axis=-1)
    return Weights(first, weights.second)


def _times(rows: Float[Array, "*batch frame"], root: Root) -> Float[Array, "*batch frame"]:
    kept = len(root)
    return jnp.concatenate([rows[..., :kept] @ root, rows[..., kept:]], axis=-1)
