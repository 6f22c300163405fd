"""What a dynamics may ask of a loss."""

import abc
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from tutelage.problem.hidden import AbstractHidden
from tutelage.problem.networks import Weights


class AbstractOracle(eqx.Module):
    """A loss with its derivatives, as a function of the student's weights, any tree of parameters.

    The factor one half is in the loss: `1/2 E|f - f*|^2`, or `1/(2N) sum |f - y|^2`. Hessians order the parameters
    as `problem.trees.flatten` does.
    """

    accuracy: eqx.AbstractVar[str]

    @abc.abstractmethod
    def loss(self, weights: PyTree) -> Float[Array, ""]: ...

    @abc.abstractmethod
    def gradient(self, weights: PyTree) -> PyTree: ...

    @abc.abstractmethod
    def hessian(self, weights: PyTree) -> Float[Array, "parameters parameters"]: ...

    @property
    def unpenalised(self) -> "AbstractOracle":
        """The loss without a penalty on the weights; this one, unless it is an `oracle.penalised`."""
        return self

    def penalty(self, weights: PyTree) -> Float[Array, ""]:
        """What the penalty on the weights adds to the loss."""
        del weights
        return jnp.zeros(())

    def forms(self) -> tuple["AbstractOracle", ...]:
        """The same loss in forms of different cost: the cheapest first, then the one with most digits. One that is
        `strained` says which to take `instead`. This oracle itself is right everywhere."""
        return (self,)

    def quick(self) -> "AbstractOracle":
        """The cheapest form: right wherever it is not `strained`."""
        return self.forms()[0]

    def strained(
        self, weights: PyTree, *, loss: Float[Array, ""] | None = None, gradient: PyTree | None = None
    ) -> Bool[Array, ""]:
        """Whether another form should take the steps from here on, by its own loss or gradient: it has lost digits, or
        is dearer than it need be."""
        del weights, loss, gradient
        return jnp.array(False)

    def held(self, weights: PyTree, loss: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether this form must be kept, whatever its gradient, where somebody looks at the loss at every step."""
        del weights, loss
        return jnp.array(False)

    def lost(self, weights: PyTree, loss: Float[Array, ""], gradient: PyTree) -> Bool[Array, ""]:
        """Whether a loss or gradient of this form has too few digits to be reported."""
        del weights, loss, gradient
        return jnp.array(False)

    def instead(self, weights: PyTree) -> Int[Array, ""]:
        """The number, among the `forms`, of the one to take when this one is strained."""
        del weights
        return jnp.array(0)


@runtime_checkable
class Population(Protocol):
    """A loss over inputs that can be drawn; what online SGD asks for."""

    @property
    def target(self) -> Weights:
        """The teacher's weights."""

    @property
    def sides(self) -> tuple[AbstractHidden, AbstractHidden]:
        """What the student's units and the teacher's compute on samples."""


def assemble(
    outer: Float[Array, "m r m r"], between: Float[Array, "m r m n"], inner: Float[Array, "m n m n"]
) -> Float[Array, "parameters parameters"]:
    """The Hessian matrix from its blocks: outgoing-outgoing, outgoing-incoming, incoming-incoming."""
    units, outputs, _, columns = between.shape
    corner = between.reshape(units * outputs, units * columns)
    outer = outer.reshape(units * outputs, units * outputs)
    return jnp.block([[outer, corner], [corner.T, inner.reshape(units * columns, units * columns)]])
