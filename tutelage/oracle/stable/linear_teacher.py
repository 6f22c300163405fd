"""Loss and gradient of piecewise-linear students of a linear teacher, without cancellation.

A student unit is `lam z + kap |z|` (ReLU: 1/2, 1/2). The linear parts of all units add to one matrix, and for any
signs `o` that orient the rows, `E|w.x||w'.x| = ow.o'w' + (2/pi)|w||w'| g(psi)`, with `psi` the angle of the oriented
rows and `g(psi) = sin psi - psi cos psi >= 0`. Collecting terms, with outgoing weights `V_i` and the target `A`:

    R+- = sum_i (lam +- kap o_i) V_i w_i^T - A
    L   = 1/4 |R+|^2 + 1/4 |R-|^2 + (kap^2/pi) sum_ij V_i.V_j |w_i||w_j| g(psi_ij)

Every term vanishes separately at an optimum whose units lie on one line, so nothing cancels once `R+-` is summed
exactly. With units on several lines the last sum still cancels between lines, and the loss is good to 1e-16 |A|^2.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.oracle.compensated import outer_sums
from tutelage.oracle.geometry import angles, rows, wedge
from tutelage.problem.atoms import PiecewiseLinear
from tutelage.problem.networks import Weights


def orientation(first: Float[Array, "unit frame"], axis: Float[Array, " frame"]) -> Float[Array, " unit"]:
    """The side of `axis` on which each row lies; any choice is exact, this one removes the cancellation."""
    return jnp.where(first @ axis < 0, -1.0, 1.0)


class Lines:
    """The line form for students `weights` with activation `unit`, and a linear teacher `target` scaled by `slope`."""

    def __init__(self, weights: Weights, unit: PiecewiseLinear, target: Weights, slope: float):
        self.weights, self.kink = weights, unit.kink
        self.sides = orientation(weights.first, jnp.sum(target.first, 0))
        signs = jnp.array([[1.0], [-1.0]])
        self.shares = unit.linear + unit.kink * signs * self.sides[None, :]  # lam +- kap o_i
        left = jnp.concatenate(
            [
                self.shares[:, :, None] * weights.second[None],
                jnp.broadcast_to(-slope * target.second, (2, *target.second.shape)),
            ],
            axis=1,
        )
        self.residuals = outer_sums(left, jnp.concatenate([weights.first, target.first]))
        self.units = rows(weights.first)
        arc = angles(self.units, self.units)
        same = arc.sign * self.sides[:, None] * self.sides[None, :] > 0
        self.sine = arc.sin
        self.psi = jnp.where(same, arc.near, jnp.pi - arc.near)
        self.defect = jnp.where(same, wedge(arc), arc.sin + self.psi * arc.cos)

    def loss(self) -> Float[Array, ""]:
        strength = self.units.norm[:, None] * self.weights.second
        pairs = jnp.sum((strength @ strength.T) * self.defect)
        return 0.25 * jnp.sum(self.residuals**2) + self.kink**2 / jnp.pi * pairs

    def gradient(self) -> Weights:
        """Per unit, `grad_{w_i} = G_i^T V_i` and `grad_{V_i} = G_i w_i`, with

        G_i = 1/2 sum_+- (lam +- kap o_i) R+- + (2 kap^2/pi) sum_j |w_j| V_j (sin psi wbar_i - psi o_i o_j wbar_j)^T
        """
        first, second = self.weights.first, self.weights.second
        bend = 2 / jnp.pi * self.kink**2
        turn = bend * (second @ second.T)
        radial = jnp.sum(turn * self.units.norm[None, :] * self.sine, axis=1)[:, None] * self.units.unit
        swing = (turn * self.psi * self.sides[:, None] * self.sides[None, :]) @ first
        halves = 0.5 * self.shares
        in_first = jnp.einsum("su,ur,srn->un", halves, second, self.residuals) + radial - swing
        # At a zero row |w.x| has no derivative, unless nothing is done with it.
        missing = (self.units.norm == 0) & jnp.any(second != 0, axis=1) & (self.kink != 0)
        in_first = jnp.where(missing[:, None], jnp.nan, in_first)
        even = (bend * self.units.norm[:, None] * self.units.norm[None, :] * self.defect) @ second
        return Weights(in_first, jnp.einsum("su,un,srn->ur", halves, first, self.residuals) + even)
