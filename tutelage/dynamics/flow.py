"""Gradient flow `dw/dt = -rate * gradient`, by diffrax's solvers with adaptive steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import one_of, put, real
from tutelage._limits import LONGEST, SHORTEST
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Ahead, Moment, Prepared
from tutelage.dynamics.batch import each_seed, one_factorisation
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import NUMBER, of_data, of_network
from tutelage.dynamics.room import weights_of as weights_of_problem
from tutelage.dynamics.stabilised import Stabilised
from tutelage.dynamics.staging import Data, given_data, samples_of, staged
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind
from tutelage.problem.trees import chosen_parts, flatten, scaled, unflatten

Solver = Literal["explicit", "stabilised", "stiff"]
SOLVERS = ("auto", "explicit", "stabilised", "stiff")

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

PATIENCE = 20_000
"""Explicit steps to the end of the next chunk from which on a stiff solver is quicker."""

LARGEST_HESSIAN = 800
"""Weights beyond which no Hessian can be afforded."""

MAX_STEPS = 1_000_000


@dataclass(frozen=True)
class Flow(AbstractDynamics):
    """Gradient flow `dw/dt = -rate * gradient`, to time `until` (up to 1e8 and beyond).

    - `solver`: "explicit" (Tsit5), "stabilised" (RKC2, explicit with long steps), "stiff" (Kvaerno5 with the exact
      Jacobian), or "auto": explicit, changed to stiff when the measured curvature asks for it; a mixture, or a network
      of more than 800 weights, is given to the stabilised solver.
    - `rtol`: relative error per step, 1e-8 if not given (1e-6 for a mixture).
    - `data`, `rates`: as for `Descent`.

    ```python
    >>> import tutelage as tt
    >>> tt.Flow(until=10.0).solver
    'auto'

    ```
    """

    name: ClassVar[str] = "flow"
    revision: ClassVar[int] = REVISIONS["flow"]

    until: float
    rtol: float | None = None
    solver: Literal["auto", "explicit", "stabilised", "stiff"] = "auto"
    data: Data = None
    rates: Mapping[str, float | ArrayLike] | None = None

    def __post_init__(self) -> None:
        put(self, until=real("until", self.until, least=SHORTEST, most=LONGEST), data=given_data(self.data))
        one_of("solver", self.solver, SOLVERS)
        rates_given(self.rates)
        if self.rtol is not None:
            put(self, rtol=real("rtol", self.rtol, above=0))

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        room = of_network(problem, seeds, full=self.data is not None) | of_data(problem, seeds, self.data)
        if self.solver == "stiff":  # the Jacobian, its factors, and what the Hessian is made of
            weights = weights_of_problem(problem, full=self.data is not None)
            room["take solver='stabilised', which needs no Hessian"] = 4 * NUMBER * float(seeds) * weights**2
        return room

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        student = problem.student
        solver = _first_solver(problem, self.data) if self.solver == "auto" else self.solver
        step = FlowStep(
            jnp.asarray(self.tolerance(problem)), student.rates(self.rates), student.layers, solver,
            auto=self.solver == "auto",
        )  # fmt: skip
        return staged(step, problem, seeds, self.data, start)

    def tolerance(self, problem: Problem) -> float:
        """The relative error per step."""
        usual = 1e-6 if isinstance(problem.student, Mixture) else 1e-8
        return float(usual if self.rtol is None else self.rtol)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.times(float(self.until))

    def cap(self, asked: int | None) -> int:
        return MAX_STEPS if asked is None else asked

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        rtol, samples = self.tolerance(of_kind(problem, Problem, self.name)), samples_of(self.data)
        return {"until": float(self.until), "rtol": rtol, "solver": self.solver, "samples": samples}


def _first_solver(problem: Problem, data: Data) -> Solver:
    """Where no Hessian can be afforded, long runs need stages in place of factorisations."""
    student, vectors = problem.student, problem.student.rows + problem.teacher.rows
    columns = min(vectors, problem.inputs.dim) if data is None else problem.inputs.dim
    weights = student.rows * columns + student.width * student.outputs
    return "stabilised" if isinstance(student, Mixture) or weights > LARGEST_HESSIAN else "explicit"


@eqx.filter_custom_jvp
def _velocity(
    y: Float[Array, " parameters"],
    oracle: AbstractOracle,
    scale: Float[Array, " parameters"],
    like: PyTree,
    trains: tuple[str, ...],
) -> Float[Array, " parameters"]:
    """The scaled gradient; its derivative is the oracle's own Hessian, not autodiff through the kernels."""
    # What does not train is not asked for, so that it is not computed either.
    return scale * flatten(chosen_parts(trains, oracle.gradient(unflatten(y, like)), like))


@_velocity.def_jvp
def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    y, oracle, scale, like, _ = primals
    return _velocity(*primals), scale * (oracle.hessian(unflatten(y, like)) @ tangents[0])


class FlowStep(AbstractStep):
    """One adaptive step in the frame.

    - `solver`: "explicit" (Tsit5), "stabilised" (Tsit5 for short steps, RKC2 for long) or "stiff" (Kvaerno5, given the
      oracle's Hessian as the exact Jacobian). `auto` lets it change from explicit to stiff between chunks.
    - `rtol`: relative error per step; the absolute error is `rtol` times the scale of the initial weights, so that
      a start at 1e-8 is followed as closely as one at 1.
    - `longest`: a cap on explicit steps, kept up to date between chunks from the measured curvature.
    """

    rtol: Float[Array, ""]
    rates: PyTree
    trains: tuple[str, ...] = eqx.field(static=True)
    solver: Solver = eqx.field(static=True, default="explicit")
    longest: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.array(jnp.inf))
    auto: bool = eqx.field(static=True, default=False)

    def _scale(self, like: PyTree) -> Float[Array, " parameters"]:
        ones = jax.tree.map(jnp.ones_like, like)
        return -flatten(scaled(ones, self.rates, self.trains))

    def _tools(self, oracle: AbstractOracle, atol: Float[Array, ""], like: PyTree) -> tuple[Any, Any, Any]:
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

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
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

    def step(
        self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]
    ) -> tuple[Moment, Bool[Array, ""], Bool[Array, ""]]:
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

    def velocity(self, oracle: AbstractOracle, moment: Moment) -> PyTree:
        if self.solver == "stabilised":
            return unflatten(moment.carry[0].velocity, moment.weights)
        y = flatten(moment.weights)
        return unflatten(_velocity(y, oracle, self._scale(moment.weights), moment.weights, self.trains), moment.weights)

    @property
    def apart(self) -> bool:
        """In a batch every seed would wait for the one that needs most stages; that cost a factor of three."""
        return self.solver == "stabilised"

    @property
    def factorises(self) -> bool:
        return self.solver == "stiff"

    @property
    def trial(self) -> int:
        return 16

    def between(self, ahead: Ahead) -> tuple[AbstractStep, Moment]:
        """Cap explicit steps by the curvature; if too many would be needed, change to the stiff solver (`auto`)."""
        weights, running = ahead.moments.weights, ahead.running
        size = sum(leaf[0].size for leaf in jax.tree.leaves(weights))
        if self.solver != "explicit" or size > LARGEST_HESSIAN or not running.any():
            return self, ahead.moments
        with one_factorisation:
            curvature = np.asarray(_stiffness(ahead.oracle, ahead.batched, weights))[running]
        left = (ahead.horizon - np.asarray(ahead.moments.clock))[running]
        if self.auto and np.any(curvature * left / REACH > PATIENCE):
            return self._stiffened(ahead)
        if np.all(curvature > 0):
            return self._capped(REACH / curvature.max()), ahead.moments
        return self, ahead.moments

    def _capped(self, longest: float) -> "FlowStep":
        return FlowStep(self.rtol, self.rates, self.trains, self.solver, jnp.asarray(longest), self.auto)

    def _stiffened(self, ahead: Ahead) -> tuple["FlowStep", Moment]:
        stiff = FlowStep(self.rtol, self.rates, self.trains, "stiff", auto=self.auto)
        return stiff, _resume(stiff, ahead.oracle, ahead.batched, ahead.moments)

    def memo(self) -> dict[str, Any]:
        longest = float(self.longest)
        return {"solver": self.solver, "longest": longest if np.isfinite(longest) else None}

    def recalled(self, memo: dict[str, Any], ahead: Ahead) -> tuple[AbstractStep, Moment]:
        if memo["solver"] == "stiff" and self.solver == "explicit":
            return self._stiffened(ahead)
        return self if memo["longest"] is None else self._capped(memo["longest"]), ahead.moments

    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        solver_memory, memory, width, atol = moment.carry
        _, term, solver = self._tools(oracle, atol, moment.weights)
        end = jnp.maximum(clock, moment.clock + 1e-12 * width)
        y = solver.step(term, moment.clock, end, flatten(moment.weights), None, solver_memory, jnp.array(False))[0]
        return Moment(unflatten(y, moment.weights), clock, clock, moment.carry)


@eqx.filter_jit
def _resume(step: FlowStep, oracle: AbstractOracle, batched: bool, moments: Moment) -> Moment:
    return each_seed(step.resume, oracle, batched, moments)


@eqx.filter_jit
def _stiffness(oracle: AbstractOracle, batched: bool, weights: PyTree) -> Float[Array, " seed"]:
    return each_seed(stiffness, oracle, batched, weights)


def stiffness(oracle: AbstractOracle, weights: PyTree) -> Float[Array, ""]:
    """The largest curvature: explicit steps are kept below `REACH` over it."""
    return jnp.max(jnp.linalg.eigvalsh(oracle.hessian(weights)))
