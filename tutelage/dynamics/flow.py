"""Gradient flow `dw/dt = -rate * gradient`, by diffrax's solvers with adaptive steps."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.dynamics.base import AbstractDynamics, Moment
from tutelage.dynamics.descent import trained
from tutelage.dynamics.stabilised import Stabilised
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Rates, Weights, flatten, unflatten

REACH = 1.0
"""The longest explicit step, in units of one over the largest curvature.

Tsit5 is stable up to 3.3, but near an optimum error control alone lets the step wander to that edge, where the loss
stalls at the square of the tolerance. At 1.0 a decay is followed to rounding, its rate right to 1e-4.
"""

STRIDE = 0.1
"""The longest stiff step, as a part of the time elapsed.

Weights that settle by a power law move ever less, until error control, which knows the size of the weights only, sees
no reason left to follow. Steps in proportion to time keep the law's constant right to 1e-5.
"""


@eqx.filter_custom_jvp
def _velocity(
    y: Float[Array, " parameters"],
    oracle: AbstractOracle,
    scale: Float[Array, " parameters"],
    like: Weights,
    trains: tuple[str, ...],
) -> Float[Array, " parameters"]:
    """The scaled gradient; its derivative is the oracle's own Hessian, not autodiff through the kernels."""
    # What does not train is not asked for, so that it is not computed either.
    gradient = oracle.gradient(unflatten(y, like))
    asked = (getattr(gradient if layer in trains else like, layer) for layer in ("first", "second"))
    return scale * flatten(Weights(*asked))


@_velocity.def_jvp
def _(primals, tangents):
    y, oracle, scale, like, _ = primals
    return _velocity(*primals), scale * (oracle.hessian(unflatten(y, like)) @ tangents[0])


class Flow(AbstractDynamics):
    """Adaptive integration in the frame.

    - `solver`: "explicit" (Tsit5), "stabilised" (Tsit5 for short steps, RKC2 for long) or "stiff" (Kvaerno5, given the
      oracle's Hessian as the exact Jacobian).
    - `rtol`: relative error per step; the absolute error is `rtol` times the scale of the initial weights, so that
      a start at 1e-8 is followed as closely as one at 1.
    - `longest`: a cap on explicit steps, kept up to date by the loop from the measured curvature.
    """

    rtol: Float[Array, ""]
    rates: Rates
    trains: tuple[str, ...] = eqx.field(static=True)
    solver: str = eqx.field(static=True, default="explicit")
    longest: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.array(jnp.inf))

    def _scale(self, like: Weights) -> Float[Array, " parameters"]:
        return -flatten(trained(jax.tree.map(jnp.ones_like, like), self.rates, self.trains))

    def _tools(self, oracle: AbstractOracle, atol: Float[Array, ""], like: Weights):
        tolerances: dict[str, Any] = {"rtol": self.rtol, "atol": atol}
        controller = diffrax.PIDController(**tolerances)
        scale = self._scale(like)
        term = diffrax.ODETerm(lambda t, y, args: _velocity(y, oracle, scale, like, self.trains))
        if self.solver == "stiff":
            return controller, term, diffrax.Kvaerno5(root_finder=diffrax.VeryChord(**tolerances))
        return controller, term, Stabilised() if self.solver == "stabilised" else diffrax.Tsit5()

    def _scale_of(self, y: Float[Array, " parameters"]) -> Float[Array, ""]:
        """The scale of weights that must be followed.

        The stabilised solver takes steps that only error control limits, so it must see the small overlaps from which
        a race starts: 1/sqrt(dim) beside norms of 1. It takes the lower quartile of the entries that are not zero.
        """
        if self.solver == "stabilised":
            return jnp.nanquantile(jnp.where(y == 0, jnp.nan, jnp.abs(y)), 0.25)
        return jnp.sqrt(jnp.mean(y**2))

    def _width(self, solver: Any, memory: Any, width: Float[Array, ""]) -> Float[Array, ""]:
        """The planned step, no longer than the solver can make it."""
        if self.solver == "explicit":
            return jnp.minimum(width, self.longest)
        return jnp.minimum(width, solver.longest(memory)) if self.solver == "stabilised" else width

    def begin(self, oracle, weights):
        y = flatten(weights)
        atol = self.rtol * self._scale_of(y)
        controller, term, solver = self._tools(oracle, atol, weights)
        solver_memory = solver.init(term, 0.0, 1.0, y, None)
        # A solver that has measured the curvature knows a safe first step; others have one chosen by trial.
        given = solver.first(solver_memory) if self.solver == "stabilised" else None
        first, memory = controller.init(term, 0.0, jnp.inf, y, given, None, solver.func, solver.error_order(term))
        carry = jax.tree.map(jnp.asarray, (solver_memory, memory, first, atol))
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), carry)

    def resume(self, oracle: AbstractOracle, moment: Moment) -> Moment:
        """The same place, with this solver's own memory: used when the solver changes on the way."""
        fresh = self.begin(oracle, moment.weights)
        return Moment(moment.weights, moment.clock, moment.time, (*fresh.carry[:3], moment.carry[3]))

    def step(self, oracle, moment, limit):
        solver_memory, memory, width, atol = moment.carry
        controller, term, solver = self._tools(oracle, atol, moment.weights)
        width = self._width(solver, solver_memory, width)
        y, start = flatten(moment.weights), moment.clock
        end = jnp.minimum(start + width, limit)
        new, error, _, new_solver_memory, _ = solver.step(term, start, end, y, None, solver_memory, jnp.array(False))
        order = solver.error_order(term)
        if self.solver == "stabilised":
            order = solver.error_order_of(term, end - start, solver_memory)
        keep, origin, reach, _, new_memory, _ = controller.adapt_step_size(
            start, end, y, new, None, error, order, memory
        )
        proposed = reach - origin
        proposed = jnp.where(jnp.isfinite(proposed), proposed, 0.1 * (end - start))
        # A step cut short by a recording time says nothing against the longer one that was planned.
        proposed = jnp.where(keep & (end < start + width), jnp.maximum(proposed, width), proposed)
        if self.solver == "stiff":
            proposed = jnp.minimum(proposed, jnp.maximum(width, STRIDE * end))
        kept = (new, end, new_solver_memory, new_memory)
        back = (y, start, solver_memory, memory)
        y, clock, solver_memory, memory = jax.tree.map(lambda a, b: jnp.where(keep, a, b), kept, back)
        stuck = ~keep & (start + proposed <= start)
        carry = (solver_memory, memory, proposed, atol)
        return Moment(unflatten(y, moment.weights), clock, clock, carry), keep, stuck

    def velocity(self, oracle, moment):
        if self.solver == "stabilised":
            return unflatten(moment.carry[0].velocity, moment.weights)
        y = flatten(moment.weights)
        return unflatten(_velocity(y, oracle, self._scale(moment.weights), moment.weights, self.trains), moment.weights)

    def within(self, oracle, moment, clock):
        solver_memory, memory, width, atol = moment.carry
        _, term, solver = self._tools(oracle, atol, moment.weights)
        end = jnp.maximum(clock, moment.clock + 1e-12 * width)
        y = solver.step(term, moment.clock, end, flatten(moment.weights), None, solver_memory, jnp.array(False))[0]
        return Moment(unflatten(y, moment.weights), clock, clock, moment.carry)


def stiffness(oracle: AbstractOracle, weights: Weights) -> Float[Array, ""]:
    """The largest curvature: explicit steps are kept below `REACH` over it."""
    return jnp.max(jnp.linalg.eigvalsh(oracle.hessian(weights)))
