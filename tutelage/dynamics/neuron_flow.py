"""Gradient flow of single units on the sphere, in their overlaps with the frame alone: exact for any dimension.

`do/dt = S p - o (o.p)` (`ClusterOracle.turning`) is a system of 2C + 1 numbers per unit, and units do not see each
other. They leave their starts at times that differ by many decades, so that each has a step and a clock of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import put, real, refused, table
from tutelage._errors import BadInput
from tutelage._limits import LONGEST, SHORTEST
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, AbstractStep, Moment, Prepared, Taken
from tutelage.dynamics.neurons import begun
from tutelage.dynamics.record import Record
from tutelage.dynamics.room import of_neurons
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import Clustered
from tutelage.problem.problem import AbstractProblem, Start, of_kind
from tutelage.problem.units import Units

Each = Float[Array, "expert unit"]
Table = Float[Array, "expert unit row"]
Flips = Float[Array, "expert unit cluster order"]

STILL = 100.0
"""A unit is at rest when the part of its force along the sphere is below this many `rtol` of the whole.

The ratio is 1 at any start with small overlaps, however slow, and falls exponentially near an end point, until steps
at the edge of stability wander by some `rtol`.
"""

NEVER = float(np.finfo(float).max)
"""The time of what has not happened: weights must be finite."""

_ERROR = np.asarray(diffrax.Tsit5.tableau.b_error)
_STAGES = len(_ERROR)
# The last row of the tableau is the new place itself, so that the last stage is the first one of the next step.
_LOWER = np.array([np.pad(row, (0, _STAGES - len(row))) for row in diffrax.Tsit5.tableau.a_lower])
_SAFETY, _SHRINK, _GROW, _ORDER = 0.9, 0.2, 5.0, 5


class Notes(eqx.Module):
    """Overlaps of each unit at the `times` of its own clock that it has passed, `count` of them."""

    times: Float[Array, "*seed moment"]
    overlaps: Float[Array, "*seed moment expert unit row"]
    count: Int[Array, "*seed expert unit"]

    def filled(self, now: Table) -> Float[Array, "moment expert unit row"]:
        """With the present overlaps for times after its rest, or ahead."""
        late = jnp.arange(len(self.times))[:, None, None] >= self.count[None]
        return jnp.where(late[..., None], now[None], self.overlaps)

    def due(self) -> Each:
        """The next time of each unit, infinite after the last."""
        return jnp.append(self.times, jnp.inf)[self.count]

    def with_more(self, now: Table, reached: Bool[Array, "expert unit"]) -> "Notes":
        place = jnp.where(reached, self.count, len(self.times))  # one beyond the end: dropped
        noted = self.overlaps.at[place, *jnp.indices(place.shape)].set(now, mode="drop")
        return Notes(self.times, noted, self.count + reached.astype(int))


class FlownNeurons(eqx.Module):
    """Neurons as their overlaps with the frame, what else they are, and what has become of them so far.

    - `largest`: the supremum over time of `|o_i|`, over the steps made.
    - `crossed`: when `|o_i|` first crossed the threshold; 0 if it started above.
    - `flipped`: when the sign of `alpha_i(bias + radius nu_c)` first changed.
    - `settled`: when the unit came to rest.
    """

    overlaps: Float[Array, "*seed expert unit row"]
    units: Units
    served: Float[Array, "*seed expert cluster"]
    largest: Float[Array, "*seed expert unit row"]
    crossed: Float[Array, "*seed expert unit row"]
    flipped: Float[Array, "*seed expert unit cluster order"]
    settled: Float[Array, "*seed expert unit"]
    notes: Notes


@dataclass(frozen=True)
class NeuronFlow(AbstractDynamics):
    """Gradient flow of each neuron's correlation with the label, on the sphere, to time `until`, at any dimension.

    - `rtol`: relative error of a step; the absolute one is `rtol` times the unit's largest overlap at the start.
    - `threshold`: what `cross_time` is about.
    - `halt`: which overlaps (expert, unit, row) end their unit with the step in which they cross the threshold. What
      follows is then best run from there with a new clock: after a long wait, times say little about what is quick.
    - `pace`: how much of its own time a unit (expert, unit) spends in a unit of the run's time: records, and the end,
      come for each at its own.
    - `times`: when each unit's overlaps are noted on its way, as `noted`. At a record quick units wait for slow ones,
      nine times as long for 32 records of a race of 800 units; here they do not, and 32 times cost 12 %. So there is a
      record at the end only, unless others are asked for.

    Neurons are those of the problem's student, or of `start=tt.neurons_at(...)`. Time has no rate in it: a network of
    width J with learning rate eta is at time `eta t/J` after t steps.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> problem = tt.Clustered(antipodal(10**9, 3.0), tasks).taught_to(tt.Experts(1, 8, (4, 4)))
    >>> run = tt.run(problem, tt.NeuronFlow(until=1e15))
    >>> bool((abs(run.last("overlap"))[..., :2].max("row") > 0.99).all())  # all units have learned a local task
    True

    ```
    """

    name: ClassVar[str] = "neuron_flow"
    revision: ClassVar[int] = REVISIONS["neuron_flow"]
    most: ClassVar[int] = 20_000
    """A race over twenty decades of time takes some hundreds, and about a hundred more for each record."""

    until: float
    rtol: float = 1e-7
    threshold: float = 0.5
    halt: ArrayLike = False
    pace: ArrayLike = 1.0
    times: ArrayLike = ()

    def __post_init__(self) -> None:
        put(
            self, until=real("neuron_flow: until", self.until, least=SHORTEST, most=LONGEST),
            rtol=real("neuron_flow: rtol", self.rtol, least=1e-13, most=1e-6),
            threshold=real("neuron_flow: threshold", self.threshold, above=0),
        )  # fmt: skip
        if np.asarray(self.halt).dtype != bool:
            raise refused("neuron_flow: halt", self.halt, "True or False, or one for each (expert, unit, row),")
        pace = table("neuron_flow: pace", self.pace, "a number above 0, or one for each unit,", axes=(0, 1, 2))
        if not np.all(pace > 0):
            raise refused("neuron_flow: pace", self.pace, "a number above 0, or one for each unit,")
        times = table("neuron_flow: times", self.times, "a list of times", axes=(1,))
        if np.any(np.diff(times, prepend=0.0, append=self.until) < 0):
            raise BadInput(f"neuron_flow: times must ascend from 0 to until = {self.until:g}.")

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        return of_neurons(of_kind(problem, Clustered, self.name), seeds, 2 + np.size(self.times))

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Clustered, self.name)
        oracle, neurons = ClusterOracle(problem), begun(problem, seeds, start)
        size = jnp.abs(neurons.overlaps)
        flips = jnp.full((*size.shape[:-1], *oracle.local.shape), NEVER)
        crossed = jnp.where(size >= self.threshold, 0.0, NEVER)
        settled, times = jnp.full(size.shape[:-1], NEVER), jnp.asarray(self.times, float)
        notes = Notes(
            jnp.broadcast_to(times, (len(seeds), len(times))),
            jnp.zeros((len(seeds), len(times), *size.shape[1:])),
            jnp.zeros(settled.shape, int),
        )
        weights = FlownNeurons(neurons.overlaps, neurons.units, neurons.served, size, crossed, flips, settled, notes)
        # Numbers go in as arrays, so that others do not compile again.
        threshold, rtol = jnp.asarray(float(self.threshold)), jnp.asarray(float(self.rtol))
        halt = _spread("halt", self.halt, size.shape[1:])
        pace = _spread("pace", self.pace, size.shape[1:-1])
        step = NeuronFlowStep(threshold, rtol, jnp.asarray(halt, bool), jnp.asarray(pace, float))
        keys = np.zeros(len(seeds), np.uint64)
        return Prepared(step, oracle, False, jnp.asarray(problem.frame), weights, keys, scored=False)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return record.times(float(self.until)) if record.at is not None else np.array([0.0, float(self.until)])

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        return {"until": float(self.until), "rtol": self.rtol, "threshold": self.threshold}


def _spread(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise BadInput(
            f"neuron_flow: {name} has shape {np.shape(values)}, but one value or {shape} was expected."
        ) from None


class _Ways(NamedTuple):
    """What each unit's next step needs. `scale` is its absolute error, `signs` those of its coefficients at the start;
    one that is `done` is at rest, or was halted."""

    velocity: Table
    clock: Each
    width: Each
    scale: Float[Array, "expert unit 1"]
    signs: Flips
    done: Bool[Array, "expert unit"]


class NeuronFlowStep(AbstractStep):
    """One step of Tsit5 for every unit that is short of the limit, each of its own width. The moment's clock is that of
    the unit that is furthest behind, so that nothing but whole records is at one time."""

    threshold: Float[Array, ""]
    rtol: Float[Array, ""]
    halt: Bool[Array, "expert unit row"]
    pace: Each

    @property
    def watches(self) -> bool:
        return False

    def begin(self, oracle: AbstractOracle, weights: FlownNeurons) -> Moment:
        oracle, y, units = _served(oracle, weights), weights.overlaps, weights.units
        velocity = oracle.turning(units, y)
        width = 0.01 * jnp.max(jnp.abs(y), axis=-1) / jnp.max(jnp.abs(velocity), axis=-1)
        carry = _Ways(
            velocity,
            jnp.zeros(width.shape),
            jnp.where(jnp.isfinite(width), width, 1.0),
            self.rtol * jnp.max(jnp.abs(y), axis=-1, keepdims=True),
            jnp.sign(oracle.coefficients(units, y, oracle.local.shape[1])),
            jnp.any(self.halt & (weights.crossed == 0), axis=-1),
        )
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), carry)

    def step(self, oracle: AbstractOracle, moment: Moment, limit: Float[Array, ""]) -> Taken:
        old, ways = moment.weights, moment.carry
        oracle, y, units, end = _served(oracle, old), old.overlaps, old.units, limit * self.pace
        due = old.notes.due() * self.pace
        goal = jnp.minimum(end, due)
        # The flow is autonomous. Late in a race a step is below the rounding of the clock, and must not be cut by it.
        left = goal - ways.clock
        h = jnp.minimum(ways.width, left)
        new, v, error = _tsit5(lambda place: oracle.turning(units, place), y, ways.velocity, h)
        bound = ways.scale + self.rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
        worst = jnp.max(jnp.where(error == 0, 0.0, jnp.abs(error) / bound), axis=-1)
        live = ~ways.done & (ways.clock < end)
        keep = live & (worst <= 1)
        reached = left <= ways.width
        clock = jnp.where(reached, goal, ways.clock + h)
        crossed = jnp.minimum(old.crossed, _crossing(self.threshold, ways.clock, h, y, ways.velocity, new, v))
        turned = ways.signs * jnp.sign(oracle.coefficients(units, new, oracle.local.shape[1])) < 0
        at_rest = self._rests(oracle, units, new, v)
        later = FlownNeurons(
            new,
            units,
            old.served,
            jnp.maximum(old.largest, jnp.abs(new)),
            crossed,
            jnp.minimum(old.flipped, jnp.where(turned, clock[..., None, None], NEVER)),
            jnp.where(at_rest, ways.clock, NEVER),
            old.notes,
        )
        done = at_rest | jnp.any(self.halt & (crossed < NEVER), axis=-1)
        width = jnp.where(live, _next_width(ways.width, h, worst, keep & reached), ways.width)
        weights, carry = _chosen(keep, (later, ways._replace(velocity=v, clock=clock, done=done)), (old, ways))
        notes = old.notes.with_more(new, keep & reached & (due <= end))
        weights = eqx.tree_at(lambda each: each.notes, weights, notes)
        there = carry.done | (carry.clock >= end)
        behind = jnp.min(jnp.where(there, limit, carry.clock / self.pace))
        after = Moment(weights, behind, behind, carry._replace(width=width))
        return Taken(after, jnp.array(True), jnp.array(False))

    def _rests(self, oracle: ClusterOracle, units: Units, y: Table, v: Table) -> Bool[Array, "expert unit"]:
        force = oracle.field(units, y).force @ oracle.gram
        return jnp.max(jnp.abs(v), axis=-1) <= STILL * self.rtol * jnp.max(jnp.abs(force), axis=-1)


def _served(oracle: AbstractOracle, weights: FlownNeurons) -> ClusterOracle:
    assert isinstance(oracle, ClusterOracle)
    return oracle.served(weights.served[:, None])


def _next_width(width: Each, h: Each, worst: Each, reached: Bool[Array, "expert unit"]) -> Each:
    growth = jnp.clip(_SAFETY * jnp.maximum(worst, 1e-30) ** (-1 / _ORDER), _SHRINK, _GROW)
    after = h * jnp.where(jnp.isfinite(worst), growth, _SHRINK)
    # A step cut short by a recording time says nothing against the longer one that was planned.
    return jnp.where(reached, jnp.maximum(after, width), after)


def _chosen(flags: Bool[Array, "expert unit"], new: Any, old: Any) -> Any:
    """Unit by unit, one of two trees; what all units of an expert share is in both the same."""
    return jax.tree.map(
        lambda a, b: jnp.where(flags.reshape(*flags.shape, *(1,) * (a.ndim - 2)), a, b) if a is not b else a, new, old
    )


def _tsit5(velocity: Callable[[Table], Table], y: Table, first: Table, h: Each) -> tuple[Table, Table, Table]:
    """One step whose width is each unit's own: the new place, its velocity, and the error.

    A scan over the stages, because it compiles the velocity once and not six times.
    """

    def stage(carry: tuple[Array, Table], row: tuple[Array, Array]) -> tuple[tuple[Array, Table], None]:
        number, weights = row
        place = y + h[..., None] * jnp.tensordot(weights, carry[0], 1)
        return (carry[0].at[number].set(velocity(place)), place), None

    rows = (jnp.arange(1, _STAGES), jnp.asarray(_LOWER))
    stages = jnp.zeros((_STAGES, *y.shape)).at[0].set(first)
    (stages, place), _ = jax.lax.scan(stage, (stages, y), rows)
    return place, stages[-1], h[..., None] * jnp.tensordot(jnp.asarray(_ERROR), stages, 1)


def _crossing(level: Array, clock: Each, h: Each, y: Table, v: Table, new: Table, late: Table) -> Table:
    """When `|o|` crossed `level` in a step, if it did: time as a cubic of the overlap, from both ends."""
    low, high = jnp.abs(y), jnp.abs(new)
    up, late_up = jnp.sign(y) * v, jnp.sign(new) * late
    gap = jnp.where(high > low, high - low, 1.0)
    s = (level - low) / gap
    begin, end = (gap / jnp.where(slope > 0, slope, 1.0) / h[..., None] for slope in (up, late_up))
    cubic = s**2 * (3 - 2 * s) + s * (1 - s) * ((1 - s) * begin - s * end)
    smooth = (up > 0) & (late_up > 0) & (cubic >= 0) & (cubic <= 1)
    when = clock[..., None] + h[..., None] * jnp.where(smooth, cubic, s)
    return jnp.where((low < level) & (high >= level), when, NEVER)
