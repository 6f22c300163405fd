"""Any loss of a two-layer network, as one of a network whose outgoing weights are tied to the incoming norms."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle, Population, assemble
from tutelage.oracle.geometry import over, rows
from tutelage.problem.hidden import AbstractHidden, PlainHidden, TiedHidden
from tutelage.problem.networks import Weights, untied


class TiedOracle(AbstractOracle):
    """The loss of `f(x) = sum_i second_i |first_i| s(first_i.x)`, from that of the plain network with the same output.

    With `(G, H)` the gradient of the plain loss in `first` and in its outgoing weights `second_i |first_i|`, the
    gradient in `first_i` is `G_i + (second_i.H_i) first_i/|first_i|`, and 0 at a zero row, which stays zero.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> target = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> oracle = tt.TiedOracle(tt.PopulationOracle(student="abs", teacher="abs", target=target))
    >>> half = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.array([[0.5]]))
    >>> float(oracle.loss(half)), oracle.gradient(half).first.tolist()  # 1/2 (|w|^2/2 - 1)^2
    (0.125, [[-0.5, 0.0]])

    ```
    """

    plain: AbstractOracle
    accuracy: str = eqx.field(static=True)

    def __init__(self, plain: AbstractOracle):
        instance("TiedOracle: plain", plain, AbstractOracle, "the oracle of a plain network")
        self.plain, self.accuracy = plain, plain.accuracy

    def loss(self, weights: Weights) -> Float[Array, ""]:
        return self.plain.loss(untied(weights))

    def gradient(self, weights: Weights) -> Weights:
        own, inner = rows(weights.first), self.plain.gradient(untied(weights))
        # A zero row is where a kink has no derivative; the tied unit has one, which is zero.
        met = jnp.where(own.norm[:, None] == 0, 0.0, inner.first)
        along = jnp.sum(weights.second * inner.second, axis=1)
        return Weights(met + along[:, None] * own.unit, own.norm[:, None] * inner.second)

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        own, wide = rows(weights.first), untied(weights)
        units, outputs = weights.second.shape
        slope = self.plain.gradient(wide).second
        jacobian = _jacobian(weights)
        turned = jacobian.T @ self.plain.hessian(wide) @ jacobian
        # What is left is the curvature of |w| itself, weighted by the slope in the outgoing weights.
        spread = jnp.eye(weights.first.shape[1])[None] - own.unit[:, :, None] * own.unit[:, None, :]
        pull = jnp.sum(weights.second * slope, axis=1)
        bend = over(pull, own.norm)[:, None, None] * spread
        inner = jnp.einsum("lm,lab->lamb", jnp.eye(units), bend)
        between = jnp.einsum("lm,lr,ln->lrmn", jnp.eye(units), slope, own.unit)
        return turned + assemble(jnp.zeros((units, outputs, units, outputs)), between, inner)

    def forms(self) -> tuple["TiedOracle", ...]:
        return tuple(map(TiedOracle, self.plain.forms()))

    def strained(
        self, weights: Weights, *, loss: Float[Array, ""] | None = None, gradient: Weights | None = None
    ) -> Bool[Array, ""]:
        return self.plain.strained(untied(weights), loss=loss, gradient=gradient)

    def held(self, weights: Weights, loss: Float[Array, ""]) -> Bool[Array, ""]:
        return self.plain.held(untied(weights), loss)

    def lost(self, weights: Weights, loss: Float[Array, ""], gradient: Weights) -> Bool[Array, ""]:
        return self.plain.lost(untied(weights), loss, gradient)

    def instead(self, weights: Weights) -> Int[Array, ""]:
        return self.plain.instead(untied(weights))

    @property
    def target(self) -> Weights:
        """The teacher's weights."""
        return self._sampled.target

    @property
    def sides(self) -> tuple[TiedHidden, AbstractHidden]:
        """What the student's units and the teacher's compute on samples."""
        student, teacher = self._sampled.sides
        assert isinstance(student, PlainHidden)
        return TiedHidden(student.activation), teacher

    @property
    def _sampled(self) -> Population:
        assert isinstance(self.plain, Population)
        return self.plain


def _jacobian(weights: Weights) -> Float[Array, "parameters parameters"]:
    """Of the plain parameters in the tied ones, both in the order of `flatten`."""
    own = rows(weights.first)
    units, outputs = weights.second.shape
    size = weights.first.size
    outer = jnp.repeat(own.norm, outputs)
    between = jnp.einsum("lm,lr,ln->lrmn", jnp.eye(units), weights.second, own.unit)
    return jnp.block([[jnp.diag(outer), between.reshape(units * outputs, size)],
                      [jnp.zeros((size, units * outputs)), jnp.eye(size)]])  # fmt: skip
