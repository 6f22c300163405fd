"""Gradient flow `dw/dt = -rate * gradient`, by diffrax's solvers with adaptive steps."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

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
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Ahead, Moment, Prepared, Taken
from tutelage.dynamics.batch import each_seed, one_factorisation
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import NUMBER, columns_of, of_data, of_network
from tutelage.dynamics.room import weights_of as weights_of_problem
from tutelage.dynamics.stabilised import Stabilised
from tutelage.dynamics.staging import Data, given_data, samples_of, staged
from tutelage.dynamics.tsit5 import STAGES, Tsit5, Vector, stiffness
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.geometry import over
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import Weights, rates_given
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind
from tutelage.problem.trees import chosen_parts, flatten, moving_vector, scaled, unflatten, with_moving

Solver = Literal["explicit", "stabilised", "stiff"]
SOLVERS = ("auto", "explicit", "stabilised", "stiff")

FLOOR = 1e-15
"""An error, as a part of the size of the weights, below which nothing but rounding is left to control."""

STRIDE = 0.1
"""The longest stiff step, as a part of the time elapsed.

Weights that settle by a power law move ever less, until error control, which knows the size of the weights only, sees
no reason left to follow. Steps in proportion to time keep the law's constant right to 1e-5.
"""

PATIENCE = 30_000
"""The time to the end of the run, in units of one over the largest curvature, from which on a stiff solver is quicker.
Explicit steps are three of these units long. It is asked at pauses only, when many such steps have been made."""

LARGEST_HESSIAN = 800
"""Weights beyond which no Hessian can be afforded."""


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
    most: ClassVar[int] = 1_000_000

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
        columns = columns_of(problem, full=self.data is not None)
        room = of_network(problem, seeds, columns) | of_data(problem, seeds, self.data)
        if self.solver == "stiff":  # the Jacobian, its factors, and what the Hessian is made of
            weights = weights_of_problem(problem, columns)
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

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        rtol, samples = self.tolerance(of_kind(problem, Problem, self.name)), samples_of(self.data)
        return {"until": float(self.until), "rtol": rtol, "solver": self.solver, "samples": samples}


def _first_solver(problem: Problem, data: Data) -> Solver:
    """Where no Hessian can be afforded, long runs need stages in place of factorisations."""
    student = problem.student
    vectors = student.rows + max(problem.teacher.rows, problem.law.kept)
    columns = min(vectors, problem.law.dim) if data is None else problem.law.dim
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


class Passed(NamedTuple):
    """The last explicit step: where and when it began, and its slopes."""

    clock: Float[Array, ""]
    y: Vector
    k: Float[Array, "stage parameters"]


class Carry(NamedTuple):
    """What a flow takes along: what solver and step control remember, the next step, the absolute error, and
    the step just made."""

    solver: Any
    control: Any
    width: Float[Array, ""]
    atol: Float[Array, ""]
    passed: Passed | None


class FlowStep(AbstractStep):
    """One adaptive step in the frame.

    - `solver`: "explicit" (Tsit5), "stabilised" (Tsit5 for short steps, RKC2 for long) or "stiff" (Kvaerno5, given the
      oracle's Hessian as the exact Jacobian). `auto` lets it change from explicit to stiff between chunks.
    - `rtol`: relative error per step; the absolute error is `rtol` times the scale of the initial weights, so that
      a start at 1e-8 is followed as closely as one at 1.

    An explicit step goes past records, which are read from its polynomial (`back`). Its error is kept below `rtol`
    times the size of the weights, and below `rtol` times how far they would go at this speed in the time that has
    passed: near an optimum weights hardly move, and an error of `rtol` times their size would be all that is left of a
    decay.
    """

    rtol: Float[Array, ""]
    rates: PyTree
    trains: tuple[str, ...] = eqx.field(static=True)
    solver: Solver = eqx.field(static=True, default="explicit")
    auto: bool = eqx.field(static=True, default=False)

    def _vector(self, weights: PyTree) -> Vector:
        """What the solver moves: all parameters, or for explicit steps, which need no Hessian, those that train."""
        return moving_vector(weights, self.trains) if self.solver == "explicit" else flatten(weights)

    def _placed(self, y: Vector, like: PyTree) -> PyTree:
        return with_moving(y, like, self.trains) if self.solver == "explicit" else unflatten(y, like)

    def _scale(self, like: PyTree) -> Vector:
        ones = jax.tree.map(jnp.ones_like, like)
        return -self._vector(scaled(ones, self.rates, self.trains))

    def _moved(self, y: Vector, oracle: AbstractOracle, scale: Vector, like: PyTree) -> Vector:
        """The velocity."""
        if self.solver == "explicit":
            return scale * self._vector(oracle.gradient(self._placed(y, like)))
        velocity: Vector = _velocity(y, oracle, scale, like, self.trains)
        return velocity

    def _tools(self, oracle: AbstractOracle, atol: Float[Array, ""], like: PyTree) -> tuple[Any, Any, Any]:
        tolerances: dict[str, Any] = {"rtol": self.rtol, "atol": atol}
        controller = diffrax.PIDController(**tolerances)
        scale = self._scale(like)
        term = diffrax.ODETerm(lambda t, y, args: self._moved(y, oracle, scale, like))
        if self.solver == "stiff":
            return controller, term, diffrax.Kvaerno5(root_finder=diffrax.VeryChord(**tolerances))
        return controller, term, Stabilised() if self.solver == "stabilised" else Tsit5()

    def _scale_of(self, weights: PyTree) -> Float[Array, ""]:
        """The scale of weights that must be followed: of the layer that trains and is smallest, unless it is zero.

        The stabilised solver takes steps that only error control limits, so it must see the small overlaps from which
        a race starts: 1/sqrt(dim) beside norms of 1. It takes the lower quartile of the entries that are not zero.
        """
        if self.solver == "stabilised":
            y = flatten(weights)
            return jnp.nanquantile(jnp.where(y == 0, jnp.nan, jnp.abs(y)), 0.25)
        sizes = jnp.stack([_rms(jax.tree.leaves(getattr(weights, name))) for name in self.trains])
        least = jnp.min(jnp.where(sizes == 0, jnp.inf, sizes))
        return jnp.where(jnp.isfinite(least), least, 1.0)

    def _width(self, solver: Any, carry: Carry) -> Float[Array, ""]:
        """The planned step, no longer than the solver can make it."""
        return (
            jnp.minimum(carry.width, solver.longest(carry.solver.bound)) if self.solver == "stabilised" else carry.width
        )

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        y = self._vector(weights)
        atol = self.rtol * self._scale_of(weights)
        controller, term, solver = self._tools(oracle, atol, weights)
        solver_memory = solver.init(term, 0.0, 1.0, y, None)
        # A solver that has measured the curvature knows a safe first step; others have one chosen by trial.
        given = solver.first(solver_memory) if self.solver == "stabilised" else None
        first, memory = controller.init(term, 0.0, jnp.inf, y, given, None, solver.func, solver.error_order(term))
        passed = None
        if self.solver == "explicit":
            memory, passed = None, Passed(jnp.zeros(()), y, jnp.zeros((STAGES, len(y))))
        carry = jax.tree.map(jnp.asarray, Carry(solver_memory, memory, first, atol, passed))
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), carry)

    def resume(self, oracle: AbstractOracle, moment: Moment) -> Moment:
        """The same place, with this solver's own memory: used when the solver changes on the way."""
        fresh = self.begin(oracle, moment.weights)
        return moment._replace(carry=fresh.carry._replace(atol=moment.carry.atol))

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        carry: Carry = moment.carry
        controller, term, solver = self._tools(oracle, carry.atol, moment.weights)
        width = self._width(solver, carry)
        y, start = self._vector(moment.weights), moment.clock
        end = jnp.minimum(start + width, limit)
        done = solver.step(term, start, end, y, None, carry.solver, jnp.array(False))
        new, error, dense, solver_memory, _ = done
        memory, passed = carry.control, None
        if self.solver == "explicit":
            passed = Passed(start, dense["y0"], dense["k"])
            keep, proposed = self._judged(moment, y, new, error, end)
        else:
            order = solver.error_order(term)
            if self.solver == "stabilised":
                order = solver.error_order_of(term, end - start, carry.solver)
            keep, origin, reach, _, memory, _ = controller.adapt_step_size(
                start, end, y, new, None, error, order, memory
            )
            proposed = reach - origin
        proposed = jnp.where(jnp.isfinite(proposed), proposed, 0.1 * (end - start))
        # A step cut short by a recording time says nothing against the longer one that was planned.
        proposed = jnp.where(keep & (end < start + width), jnp.maximum(proposed, width), proposed)
        if self.solver == "stiff":
            proposed = jnp.minimum(proposed, jnp.maximum(width, STRIDE * end))
        kept = (new, end, carry._replace(solver=solver_memory, control=memory, passed=passed))
        y, clock, carry = jax.tree.map(lambda a, b: jnp.where(keep, a, b), kept, (y, start, carry))
        stuck = ~keep & (start + proposed <= start)
        after = Moment(self._placed(y, moment.weights), clock, clock, carry._replace(width=proposed))
        return Taken(after, keep, stuck, self._strained(oracle, moment))

    def _judged(
        self, moment: Moment, y: Vector, new: Vector, error: Vector, end: Float[Array, ""]
    ) -> tuple[Bool[Array, ""], Float[Array, ""]]:
        """Whether an explicit step is kept, and the width of the next: by what `diffrax.PIDController` does with its
        defaults, in a third of the operations."""
        carry: Carry = moment.carry
        motion = self.rtol * (moment.clock + carry.width) * _rms(self._parts(carry.solver, moment))
        largest = [jnp.max(jnp.abs(part)) for part in self._parts(y, moment)]
        size = functools.reduce(jnp.minimum, [jnp.where(each == 0, jnp.inf, each) for each in largest])
        usual = carry.atol + self.rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
        allowed = jnp.minimum(usual, jnp.maximum(motion, FLOOR * jnp.where(jnp.isfinite(size), size, 1.0)))
        square = _mean_square(self._parts(error / allowed, moment))
        keep = square < 1
        factor = 0.9 * square ** (-0.5 / 5)  # of order five
        factor = jnp.clip(factor, jnp.where(keep, 1.0, 0.2), jnp.where(keep, 10.0, 0.9))
        return keep, factor * (end - moment.clock)

    def _parts(self, y: Vector, moment: Moment) -> list[Array]:
        """A vector in the shapes of the weights: sums over short axes are made in one go."""
        placed = self._placed(y, moment.weights)
        return [leaf for name in self.trains for leaf in jax.tree.leaves(getattr(placed, name))]

    def _strained(self, oracle: AbstractOracle, moment: Moment) -> Bool[Array, ""]:
        """Whether the slope at the beginning of the step strains the form of the oracle."""
        if "first" not in self.trains or not isinstance(moment.weights, Weights):
            return jnp.array(False)
        slope = over(self._vector(self.velocity(oracle, moment)), self._scale(moment.weights))
        return oracle.strained(moment.weights, gradient=self._placed(slope, moment.weights))

    @property
    def tells_strain(self) -> bool:
        return True

    @property
    def passes(self) -> bool:
        return self.solver == "explicit"

    def back(self, moment: Moment, clock: Float[Array, ""]) -> Moment:
        passed: Passed | None = moment.carry.passed
        if passed is None:
            return moment
        late = clock < moment.clock
        ends = jnp.where(late, passed.clock, 0.0), jnp.where(late, moment.clock, 1.0)
        inside = Tsit5.inside((*ends, passed.y, passed.k), clock)
        y, clock = (
            jnp.where(late, then, now) for then, now in ((inside, self._vector(moment.weights)), (clock, moment.clock))
        )
        return Moment(self._placed(y, moment.weights), clock, clock, moment.carry)

    def velocity(self, oracle: AbstractOracle, moment: Moment) -> PyTree:
        like = moment.weights
        if self.solver == "explicit":
            return with_moving(moment.carry.solver, jax.tree.map(jnp.zeros_like, like), self.trains)
        if self.solver == "stabilised":
            return unflatten(moment.carry.solver.velocity, like)
        return unflatten(_velocity(flatten(like), oracle, self._scale(like), like, self.trains), like)

    @property
    def apart(self) -> bool:
        """In a batch every seed would wait for the one that needs most stages; that cost a factor of three."""
        return self.solver == "stabilised"

    @property
    def factorises(self) -> bool:
        return self.solver == "stiff"

    def between(self, ahead: Ahead) -> tuple[AbstractStep, Moment]:
        """Change to the stiff solver if too many explicit steps would be needed (`auto`)."""
        size = sum(leaf[0].size for leaf in jax.tree.leaves(ahead.moments.weights))
        if self.solver != "explicit" or not self.auto or size > LARGEST_HESSIAN:
            return self, ahead.moments
        if not np.any(ahead.paused):
            return self, ahead.moments
        clock, passed = np.asarray(ahead.moments.clock), ahead.moments.carry.passed
        rate = stiffness(clock - passed.clock, passed.k)
        stiff = ahead.paused & ((ahead.end - clock) * rate > PATIENCE)
        return self._stiffened(ahead) if np.any(stiff) else (self, ahead.moments)

    def _stiffened(self, ahead: Ahead) -> tuple["FlowStep", Moment]:
        """It begins no later than at the next record, for which it knows no polynomial."""
        stiff = FlowStep(self.rtol, self.rates, self.trains, "stiff", auto=self.auto)
        with one_factorisation:
            return stiff, _resume(stiff, self, ahead.oracle, ahead.batched, ahead.moments, jnp.asarray(ahead.due))

    def memo(self) -> dict[str, Any]:
        return {"solver": self.solver}

    def recalled(self, memo: dict[str, Any], ahead: Ahead) -> tuple[AbstractStep, Moment]:
        changed = memo["solver"] == "stiff" and self.solver == "explicit"
        return self._stiffened(ahead) if changed else (self, ahead.moments)

    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        carry: Carry = moment.carry
        _, term, solver = self._tools(oracle, carry.atol, moment.weights)
        end = jnp.maximum(clock, moment.clock + 1e-12 * carry.width)
        y = solver.step(term, moment.clock, end, self._vector(moment.weights), None, carry.solver, jnp.array(False))[0]
        return Moment(self._placed(y, moment.weights), clock, clock, carry)


def _rms(parts: list[Array]) -> Float[Array, ""]:
    """Right also where squares would vanish."""
    largest = functools.reduce(jnp.maximum, [jnp.max(jnp.abs(part)) for part in parts])
    return largest * jnp.sqrt(_mean_square([over(part, largest) for part in parts]))


def _mean_square(parts: list[Array]) -> Float[Array, ""]:
    return sum((jnp.sum(part**2) for part in parts), jnp.zeros(())) / sum(part.size for part in parts)


@eqx.filter_jit
def _resume(
    stiff: FlowStep,
    last: FlowStep,
    oracle: AbstractOracle,
    batched: bool,
    moments: Moment,
    due: Float[Array, " seed"],
) -> Moment:
    def one(oracle: AbstractOracle, moment: Moment, due: Float[Array, ""]) -> Moment:
        return stiff.resume(oracle, last.back(moment, due))

    return each_seed(one, oracle, batched, moments, due)
