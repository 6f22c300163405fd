"""Online SGD in the limit of many input dimensions: differential equations of the overlaps, noise included.

A step of `rate / dim` moves a unit by as much in the directions of teachers and students as a flow would, and by noise
in all others. The noise adds up to a length, not to a direction: `d(w_i.w_k)/dt` has, beside the flow's terms,
`rate/batch E[c_i c_k]`, where `c_i` is the coefficient of a sample in the update of unit i (Saad and Solla 1995). The
state is what units are along the teachers, and the Gram matrix of what they are outside.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import NDArray

from tutelage._checks import put, real, whole
from tutelage._limits import LONGEST, SHORTEST
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.random import PLACES, keys_of
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import NUMBER, columns_of, of_network
from tutelage.dynamics.staging import begun, unstacked
from tutelage.dynamics.tsit5 import Tsit5, Vector
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.kernels.fourth import fourth, slopes
from tutelage.oracle.population import PopulationOracle, population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.networks import Weights, host_weights
from tutelage.problem.problem import AbstractProblem, Problem, Start, of_kind, one_kind, plain_networks
from tutelage.problem.trees import flatten, unflatten


@dataclass(frozen=True)
class Ode(AbstractDynamics):
    """The limit of online SGD with the step `rate / dim` as `dim` grows: equations of the overlaps, with their noise.

    Time is that of a flow: an update lasts `rate / dim`, so that a run of `tt.Sgd(step=rate / dim, ...)` is beside it
    at equal times, and with a small rate it is `tt.Flow`. The problem's start is taken as it is, at its own dim.

    - `rate`: the step times `dim`, for weights of length one; `until`: the time to which it goes.
    - `batch`: samples of an update, by which the noise is divided. Labels have the problem's `noise`.
    - `rtol`: relative error per step.

    For erf, for ReLU and other piecewise linear units, and for polynomials, in student and teacher alike; how exact
    their noise is `oracle.kernels.fourth` says.

    ```python
    >>> import tutelage as tt
    >>> teacher = tt.TwoLayer("erf", first=[[1.0]])
    >>> student = tt.TwoLayer("erf", first=[[0.5]], trains=("first",))
    >>> problem = tt.Problem(tt.Gaussian(10**6), teacher, student, noise=0.1)
    >>> run = tt.run(problem, tt.Ode(rate=0.5, until=200.0))
    >>> bool(run.last("loss")[0] > 1e-6)  # the noise of the labels keeps it from the teacher
    True

    ```
    """

    name: ClassVar[str] = "ode"
    revision: ClassVar[int] = REVISIONS["ode"]
    still: ClassVar[float] = -1.0  # noise moves it where the gradient vanishes
    most: ClassVar[int] = 1_000_000

    rate: float
    until: float
    batch: int = 1
    rtol: float = 1e-6

    def __post_init__(self) -> None:
        put(
            self, rate=real("Ode: rate", self.rate, above=0),
            until=real("Ode: until", self.until, least=SHORTEST, most=LONGEST),
            batch=whole("Ode: batch", self.batch, least=1, most=PLACES), rtol=real("Ode: rtol", self.rtol, above=0),
        )  # fmt: skip

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Problem, self.name)
        units = problem.student.rows, problem.student.rows + problem.teacher.rows
        averages = 16.0 * NUMBER * seeds * (units[0] * units[1]) ** 2
        return of_network(problem, seeds, columns_of(problem)) | {"use fewer units": averages}

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Problem, self.name)
        student, teacher = plain_networks(problem, self.name)
        fourth(one_kind(student.activation), one_kind(teacher.activation), 1, 1)  # refused here if there is none
        starts = [problem.drawn(seed) for seed in seeds]
        if start is not None:
            starts = [Start(start.teacher, each) for each in unstacked(start.student, len(seeds))]
        begin = begun([_settled(each) for each in starts])
        step = OdeStep(
            jnp.asarray(self.rate / self.batch), jnp.asarray(float(problem.noise)) if problem.noise else None,
            jnp.asarray(self.rtol),
            student.trains, begin.teacher.first.shape[1] - student.width,
        )  # fmt: skip
        return Prepared(step, population_oracle(problem, begin.teacher), False, *begin, keys_of(seeds))

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.times(float(self.until))

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        del problem
        return {"rate": self.rate, "until": self.until, "batch": self.batch, "rtol": self.rtol}


def _settled(start: Start) -> Start:
    """The teachers' directions first, then a column for each student, however few dimensions there were."""
    rows = np.asarray(start.teacher.first), np.asarray(start.student.first)
    room = min(rows[0].shape) + len(rows[1])
    wide = [np.pad(each, ((0, 0), (0, max(room - each.shape[1], 0)))) for each in rows]
    teacher, student = settle(room, *wide)
    return Start(host_weights(teacher, start.teacher.second), host_weights(student, start.student.second))


class State(NamedTuple):
    """What is integrated: weights along the teachers, the Gram matrix of what is outside, and outgoing weights."""

    along: Float[Array, "student axis"]
    outside: Float[Array, "student student"]
    second: Float[Array, "student output"]


class Carry(NamedTuple):
    """What error control remembers, and the next step."""

    control: Any
    width: Float[Array, ""]


class OdeStep(AbstractStep):
    """One adaptive step of Tsit5.

    - `noise_rate`: the rate over the batch; `noise`: standard deviation of the labels' noise, None for none.
    - `axes`: how many columns the teachers have.
    """

    noise_rate: Float[Array, ""]
    noise: Float[Array, ""] | None
    rtol: Float[Array, ""]
    trains: tuple[str, ...] = eqx.field(static=True)
    axes: int = eqx.field(static=True)

    def begin(self, oracle: AbstractOracle, weights: PyTree) -> Moment:
        y, like = self._state(weights)
        controller, term, solver = self._tools(oracle, like)
        first, memory = controller.init(term, 0.0, jnp.inf, y, None, None, solver.func, solver.error_order(term))
        carry = jax.tree.map(jnp.asarray, Carry(memory, first))
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), carry)

    def _tools(self, oracle: AbstractOracle, like: State) -> tuple[Any, Any, Tsit5]:
        # Overlaps are squares: one that is this small against the units' lengths is not followed.
        controller = diffrax.PIDController(rtol=self.rtol, atol=1e-3 * self.rtol)
        return controller, diffrax.ODETerm(lambda t, y, args: self._velocity(oracle, y, like)), Tsit5()

    def _state(self, weights: Weights) -> tuple[Vector, State]:
        along, outside = weights.first[:, : self.axes], weights.first[:, self.axes :]
        state = State(along, outside @ outside.T, weights.second)
        return flatten(state), state

    def _weights(self, y: Vector, like: State) -> Weights:
        """Weights with these inner products."""
        state = unflatten(y, like)
        values, axes = jnp.linalg.eigh((state.outside + state.outside.T) / 2)
        return Weights(jnp.hstack([state.along, axes * jnp.sqrt(jnp.maximum(values, 0.0))[None]]), state.second)

    def _velocity(self, oracle: AbstractOracle, y: Vector, like: State) -> Vector:
        weights = self._weights(y, like)
        slope: Weights = oracle.gradient(weights)
        zero = jax.tree.map(jnp.zeros_like, like)
        along, outside, second = zero
        if "first" in self.trains:
            turned = slope.first[:, self.axes :] @ weights.first[:, self.axes :].T
            along, outside = (
                -slope.first[:, : self.axes],
                self.noise_rate * self._spread(oracle, weights) - turned - turned.T,
            )
        if "second" in self.trains:
            second = -slope.second
        return flatten(State(along, outside, second))

    def _spread(self, oracle: AbstractOracle, weights: Weights) -> Float[Array, "student student"]:
        """`E[c_i c_k]` of the coefficients `c_i = error s'(w_i.x) second_i` of a sample in the updates."""
        assert isinstance(oracle, PopulationOracle)
        target = oracle.target
        rows = jnp.concatenate([weights.first, target.first])
        signed = weights.second @ jnp.concatenate([weights.second, -target.second]).T
        counts = len(weights.first), len(target.first)
        student, teacher = one_kind(oracle.student), one_kind(oracle.teacher)
        averages = fourth(student, teacher, *counts)(rows @ rows.T)
        found = jnp.einsum("ia,kb,ikab->ik", signed, signed, averages)
        if self.noise is None:
            return found
        return found + self.noise**2 * (weights.second @ weights.second.T) * slopes(student, weights.first)

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        carry: Carry = moment.carry
        y, like = self._state(moment.weights)
        controller, term, solver = self._tools(oracle, like)
        start = moment.clock
        end = jnp.minimum(start + carry.width, limit)
        velocity = self._velocity(oracle, y, like)
        new, error, _, _, _ = solver.step(term, start, end, y, None, velocity, jnp.array(False))
        keep, origin, reach, _, control, _ = controller.adapt_step_size(
            start, end, y, new, None, error, solver.error_order(term), carry.control
        )
        proposed = reach - origin
        proposed = jnp.where(jnp.isfinite(proposed), proposed, 0.1 * (end - start))
        # A step cut short by a recording time says nothing against the longer one that was planned.
        proposed = jnp.where(keep & (end < start + carry.width), jnp.maximum(proposed, carry.width), proposed)
        kept = (self._weights(new, like), end, control)
        weights, clock, control = jax.tree.map(
            lambda a, b: jnp.where(keep, a, b), kept, (moment.weights, start, carry.control)
        )
        after = Moment(weights, clock, clock, Carry(control, proposed))
        return Taken(after, keep, ~keep & (start + proposed <= start))

    def within(self, oracle: AbstractOracle, moment: Moment, clock: Float[Array, ""]) -> Moment:
        y, like = self._state(moment.weights)
        _, term, solver = self._tools(oracle, like)
        end = jnp.maximum(clock, moment.clock + 1e-12 * moment.carry.width)
        velocity = self._velocity(oracle, y, like)
        y = solver.step(term, moment.clock, end, y, None, velocity, jnp.array(False))[0]
        return Moment(self._weights(y, like), clock, clock, moment.carry)

    @property
    def factorises(self) -> bool:
        return True
