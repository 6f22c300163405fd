"""Any loss with a penalty on the size of the weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle, Population
from tutelage.problem.hidden import AbstractHidden
from tutelage.problem.networks import Rates, Weights
from tutelage.problem.penalty import Penalty
from tutelage.problem.trees import flatten, part_names, scaled


class PenalisedOracle(AbstractOracle):
    """`L(w) + 1/2 sum_layer strength |layer|^2`, whatever the loss `L` is: its `loss` is this sum.

    Where a loss is asked for that says how many digits are left (`strained`, `lost`), that is `L` itself: beside a
    penalty of 0.1 nothing would be seen of 1e-20.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> there = tt.Weights(first=jnp.array([[2.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> plain = tt.PopulationOracle(student="relu", teacher="relu", target=there)
    >>> oracle = tt.PenalisedOracle(plain, tt.Penalty(first=0.5))
    >>> float(oracle.loss(there)), oracle.gradient(there).first.tolist()
    (1.0, [[1.0, 0.0]])

    ```
    """

    plain: AbstractOracle
    strengths: PyTree
    accuracy: str = eqx.field(static=True)

    def __init__(self, plain: AbstractOracle, penalty: Penalty | Rates):
        instance("PenalisedOracle: plain", plain, AbstractOracle, "an oracle")
        instance("PenalisedOracle: penalty", penalty, (Penalty, Rates), "a tt.Penalty")
        self.plain, self.accuracy = plain, plain.accuracy
        self.strengths = penalty.strengths if isinstance(penalty, Penalty) else penalty

    @property
    def unpenalised(self) -> AbstractOracle:
        return self.plain

    def pull(self, weights: Weights) -> Weights:
        """The gradient of the penalty alone."""
        pulled: Weights = scaled(weights, self.strengths, part_names(weights))
        return pulled

    def penalty(self, weights: Weights) -> Float[Array, ""]:
        return 0.5 * jnp.vdot(flatten(weights), flatten(self.pull(weights)))

    def loss(self, weights: Weights) -> Float[Array, ""]:
        return self.plain.loss(weights) + self.penalty(weights)

    def gradient(self, weights: Weights) -> Weights:
        both: Weights = jax.tree.map(jnp.add, self.plain.gradient(weights), self.pull(weights))
        return both

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        return self.plain.hessian(weights) + jnp.diag(flatten(self.pull(jax.tree.map(jnp.ones_like, weights))))

    def forms(self) -> tuple["PenalisedOracle", ...]:
        return tuple(PenalisedOracle(form, self.strengths) for form in self.plain.forms())

    def _own(self, weights: Weights, gradient: PyTree) -> PyTree:
        """The gradient of the loss alone, from that of the sum."""
        return jax.tree.map(jnp.subtract, gradient, self.pull(weights))

    def strained(
        self, weights: Weights, *, loss: Float[Array, ""] | None = None, gradient: PyTree | None = None
    ) -> Bool[Array, ""]:
        own = None if gradient is None else self._own(weights, gradient)
        return self.plain.strained(weights, loss=loss, gradient=own)

    def held(self, weights: Weights, loss: Float[Array, ""]) -> Bool[Array, ""]:
        return self.plain.held(weights, loss)

    def lost(self, weights: Weights, loss: Float[Array, ""], gradient: PyTree) -> Bool[Array, ""]:
        return self.plain.lost(weights, loss, self._own(weights, gradient))

    def instead(self, weights: Weights) -> Int[Array, ""]:
        return self.plain.instead(weights)

    @property
    def target(self) -> Weights:
        """The teacher's weights."""
        return self._sampled.target

    @property
    def sides(self) -> tuple[AbstractHidden, AbstractHidden]:
        """What the student's units and the teacher's compute on samples."""
        return self._sampled.sides

    @property
    def _sampled(self) -> Population:
        assert isinstance(self.plain, Population)
        return self.plain


def penalised(oracle: AbstractOracle, penalty: Penalty | None) -> AbstractOracle:
    """The oracle with the penalty that a problem has, if it has one."""
    return oracle if penalty is None else PenalisedOracle(oracle, penalty)
