"""A loss around a point, as a function of one vector, for solvers that differentiate what they are given.

The derivative rules hand the solvers the oracle's own gradient and Hessian: nothing differentiates through a kernel.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage._errors import unknown
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights
from tutelage.problem.trees import flatten, unflatten

BOTH = ("first", "second")
Free = Float[Array, " free"]


class Chart(eqx.Module):
    """The loss as a function of the vector of trained weights, the others staying as they are in `base`."""

    oracle: AbstractOracle
    base: Weights
    trains: tuple[str, ...] = eqx.field(static=True)

    def span(self) -> slice:
        """Where the trained weights stand among all parameters (a whole layer or both, so in one piece)."""
        cut, size = self.base.second.size, self.base.second.size + self.base.first.size
        return slice(0 if "second" in self.trains else cut, size if "first" in self.trains else cut)

    def vector(self) -> Free:
        return flatten(self.base)[self.span()]

    def place(self, vector: Free) -> Weights:
        return unflatten(flatten(self.base).at[self.span()].set(vector), self.base)

    def hessian(self, vector: Free) -> Float[Array, "free free"]:
        return self.oracle.hessian(self.place(vector))[self.span(), self.span()]

    def scale(self) -> Float[Array, ""]:
        """The norm of the largest unit; 1 at the origin, which is what a length below 1e-4 is taken for."""
        square = jnp.sum(self.base.first**2, axis=1) + jnp.sum(self.base.second**2, axis=1)
        norm = jnp.sqrt(jnp.max(square))
        return jnp.where(norm > 1e-4, norm, 1.0)

    def scales(self) -> Free:
        """For each trained weight the norm of its row, so that steps are relative ones in both layers of a unit.

        A row below 1e-4 of the largest unit counts as zero and is given that unit's norm.
        """

        def norms(layer: Float[Array, "unit width"]) -> Float[Array, "unit width"]:
            row = jnp.linalg.norm(layer, axis=1, keepdims=True)
            return jnp.broadcast_to(jnp.where(row > 1e-4 * self.scale(), row, self.scale()), layer.shape)

        return flatten(Weights(norms(self.base.first), norms(self.base.second)))[self.span()]


def chart(oracle: AbstractOracle, weights: Weights, trains: tuple[str, ...]) -> Chart:
    """A checked `Chart`."""
    wrong = [layer for layer in trains if layer not in BOTH]
    if wrong or not trains:
        raise unknown("layer", wrong[0] if wrong else "", BOTH)
    return Chart(oracle, jax.tree.map(jnp.asarray, weights), tuple(trains))


@eqx.filter_custom_jvp
def loss(vector: Free, chart: Chart) -> Float[Array, ""]:
    return chart.oracle.loss(chart.place(vector))


@loss.def_jvp
def _loss_jvp(primals: tuple[Free, Chart], tangents: tuple[Free, Any]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    vector, chart = primals
    return loss(vector, chart), slope(vector, chart) @ tangents[0]


@eqx.filter_custom_jvp
def slope(vector: Free, chart: Chart) -> Free:
    return flatten(chart.oracle.gradient(chart.place(vector)))[chart.span()]


@slope.def_jvp
def _slope_jvp(primals: tuple[Free, Chart], tangents: tuple[Free, Any]) -> tuple[Free, Free]:
    vector, chart = primals
    return slope(vector, chart), chart.hessian(vector) @ tangents[0]


@eqx.filter_jit
def look(chart: Chart) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, "free free"]]:
    """Loss, gradient norm and Hessian at the chart's point."""
    vector = chart.vector()
    return loss(vector, chart), jnp.linalg.norm(slope(vector, chart)), chart.hessian(vector)


@eqx.filter_jit
def bend(chart: Chart) -> Float[Array, "free free"]:
    """The Hessian alone at the chart's point: a smaller program."""
    return chart.hessian(chart.vector())


@eqx.filter_jit
def heights(chart: Chart, moves: Float[Array, "moves free"]) -> Float[Array, " moves"]:
    """The loss after each move, less the loss at the point."""
    point = chart.vector()
    return jax.vmap(lambda move: loss(point + move, chart))(moves) - loss(point, chart)


@eqx.filter_jit
def slope_changes(chart: Chart, moves: Float[Array, "moves free"]) -> Float[Array, "moves free"]:
    """The gradient after each move, less the gradient at the point."""
    point = chart.vector()
    return jax.vmap(lambda move: slope(point + move, chart))(moves) - slope(point, chart)[None]
