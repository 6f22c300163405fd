"""Spherical SGD of experts on a stream of fresh samples, run in exact blocks (`dynamics.blocks`).

Which expert sees a sample is known before the sample is used, because the router stands still. So the stream splits
into one for each expert, in order, and these are run in lockstep (small experts) or on all cores (large ones).

The stream is cut into segments of fixed length, whatever is done between them: how often a run is looked at, or saved
and resumed, does not change a bit of it.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import flag, instance, one_of, put, real, table, whole
from tutelage._errors import BadInput
from tutelage._revisions import REVISIONS
from tutelage.dynamics.base import AbstractDynamics, DrivenStep, Moment, Prepared
from tutelage.dynamics.blocks import BLOCK, Block, Rule, together
from tutelage.dynamics.random import MAX_STEPS
from tutelage.dynamics.record import Record, few
from tutelage.dynamics.room import COPIES, NUMBER, SEED
from tutelage.dynamics.staging import stacked, unstacked
from tutelage.dynamics.streams import Samples, Stream, stream
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import Clustered
from tutelage.problem.frame import stream as weights_of
from tutelage.problem.problem import AbstractProblem, Start, of_kind
from tutelage.problem.routers import Router
from tutelage.problem.units import Units

RECORDS = 48
_WEIGHTS = 10  # the stream of a seed's starting weights
SEGMENT = 8192
"""Samples of a segment."""
CHUNK = 32
LARGE = 20_000
"""Weights of an expert from which on experts are run one by one on all cores."""

First = Float[Array, "expert unit dim"]
Good = Bool[Array, " expert"]


class Learner(eqx.Module):
    """Experts that learn from a stream: one seed of a run.

    - `theta`, `router`: who sees what; without a router every expert sees every sample.
    - `weighted`: updates are scaled by the router's gates, and not only switched on and off by them.
    """

    stream: Stream
    units: Units
    first: First
    theta: Float[Array, "expert dim"] | None = None
    router: Router | None = None
    weighted: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if (self.theta is None) != (self.router is None):
            raise BadInput("Learner: a router needs theta, and theta a router; give both or neither.")


class GatedSamples(NamedTuple):
    """A segment of the stream: samples, and a gate for each expert (0 if it does not see the sample)."""

    samples: Samples
    gates: Float[Array, "expert sample"]


@eqx.filter_jit
def _gated_samples(learner: Learner, start: Array, stop: Array) -> GatedSamples:
    """The segment that begins with sample `start`; samples from `stop` on are seen by nobody."""
    samples = learner.stream.samples(start, SEGMENT)
    experts, dtype = len(learner.first), samples.labels.dtype
    within = (jnp.asarray(start) + jnp.arange(SEGMENT) < stop).astype(dtype)
    if learner.router is None or learner.theta is None:
        return GatedSamples(samples, jnp.broadcast_to(within, (experts, SEGMENT)))
    scores = samples.inputs @ learner.theta.T.astype(dtype)
    drawn = learner.stream.uniforms(start, SEGMENT, experts).astype(dtype)
    judged = learner.router.gates if learner.weighted else learner.router.chosen
    return GatedSamples(samples, judged(scores, drawn).T.astype(dtype) * within[None])


@eqx.filter_jit
def segment(rule: Rule, units: Units, first: First, samples: Samples, gates: Array) -> First:
    """The experts after a segment.

    Where a coefficient of the quick form nearly vanishes, the segment is done again in the safe form, for that expert.
    """
    walk = _jointly if rule.loss == "squared" else _apart
    moved, good = walk(rule, units, first, samples, gates, careful=False)

    def again() -> First:
        return jnp.where(good[:, None, None], moved, walk(rule, units, first, samples, gates, careful=True)[0])

    return _renormalised(jax.lax.cond(jnp.all(good), lambda: moved, again))


def _apart(
    rule: Rule, units: Units, first: First, samples: Samples, gates: Array, *, careful: bool
) -> tuple[First, Good]:
    """Experts that do not know of each other (correlation): each meets its own samples, in order."""
    mine = gates != 0
    counts = jnp.sum(mine, axis=1)
    order = jax.vmap(_gathered)(mine)

    def block(turn: Array, state: tuple[First, Good]) -> tuple[First, Good]:
        places = jax.lax.dynamic_slice_in_dim(order, turn * BLOCK, BLOCK, axis=1)
        there = (turn * BLOCK + jnp.arange(BLOCK))[None] < counts[:, None]
        own = jnp.where(there, jnp.take_along_axis(gates, places, axis=1), 0)[..., None]  # with 0 nothing moves
        inputs, labels = (each.at[places].get(mode="promise_in_bounds") for each in (samples.inputs, samples.labels))
        piece = Block(inputs, labels, own)
        moved, good = together(rule, units, state[0], piece, careful=careful)
        return moved, state[1] & good

    begin = first, jnp.ones(len(first), bool)
    end: tuple[First, Good] = jax.lax.fori_loop(0, -(-jnp.max(counts) // BLOCK), block, begin)
    return end


def _gathered(mine: Bool[Array, " sample"]) -> Int[Array, " sample"]:
    """The places of those that are true, in order; then zeros."""
    place = jnp.where(mine, jnp.cumsum(mine) - 1, len(mine))
    return jnp.zeros(len(mine), int).at[place].set(jnp.arange(len(mine)), mode="drop")


def _jointly(
    rule: Rule, units: Units, first: First, samples: Samples, gates: Array, *, careful: bool
) -> tuple[First, Good]:
    """Experts whose outputs add up to one that is compared with the label (squared): one network with gated units."""
    experts, width, dim = first.shape
    flat = jax.tree.map(lambda leaf: leaf.reshape(1, experts * width, *leaf.shape[2:]), units)
    each = jnp.repeat(gates.T, width, axis=1)

    def block(state: tuple[First, Good], piece: Block) -> tuple[tuple[First, Good], None]:
        lead = jax.tree.map(lambda leaf: leaf[None], piece)
        moved, good = together(rule, flat, state[0], lead, careful=careful)
        return (moved, state[1] & good), None

    pieces = Block(
        samples.inputs.reshape(-1, BLOCK, dim), samples.labels.reshape(-1, BLOCK), each.reshape(-1, BLOCK, len(each[0]))
    )
    (moved, good), _ = jax.lax.scan(block, (first.reshape(1, -1, dim), jnp.ones(1, bool)), pieces)
    return moved.reshape(first.shape), jnp.broadcast_to(good, experts)


def _renormalised(first: First) -> First:
    """Rounding lets norms drift, by 1e-14 in a segment."""
    lengths: Array = jnp.linalg.norm(first, axis=-1, keepdims=True)
    return first / lengths


class ExpertWeights(eqx.Module):
    """The parameters of experts behind a router: incoming rows, what else their units are, and the router's rows."""

    first: Float[Array, "*seed expert unit dim"]
    units: Units
    theta: Float[Array, "*seed expert dim"] | None = None


@dataclass(frozen=True)
class Spherical(AbstractDynamics):
    """Normalised SGD of experts on clustered inputs: each neuron takes a step of the tangent gradient and is
    normalised, sample by sample, in exact blocks of matrix products.

    - `samples`, `step`: how many samples, and what multiplies `y a s'(u) (x - u w)`; with `loss="squared"` the label is
      less the network's output.
    - `theta`, `router`: which expert sees which sample, as `tt.Threshold()` or `tt.Top1()`; without them all see all.
      `weighted`: gates scale the step too. A stage keeps the theta of the stage before it unless one is given.
    - `batch`: samples per update, a divisor of 64. Batches of routed experts end with a segment of 8192 samples.
    - `phase`: the number of the stream of samples.

    ```python
    >>> import tutelage as tt
    >>> tt.Spherical(samples=20_000, step=1e-3).loss
    'correlation'

    ```
    """

    name: ClassVar[str] = "spherical"
    revision: ClassVar[int] = REVISIONS["spherical"]

    samples: int
    step: float
    theta: ArrayLike | None = None
    router: Router | None = None
    weighted: bool = False
    loss: Literal["correlation", "squared"] = "correlation"
    batch: int = 1
    precision: Literal["float64", "float32"] = "float64"
    phase: int = 1

    def __post_init__(self) -> None:
        put(
            self, step=real("spherical: step", self.step, above=0),
            samples=whole("spherical: samples", self.samples, least=1, most=MAX_STEPS),
            batch=whole("spherical: batch", self.batch, least=1, most=BLOCK),
            phase=whole("spherical: phase", self.phase, least=1), weighted=flag("spherical: weighted", self.weighted),
        )  # fmt: skip
        one_of("loss", self.loss, ["correlation", "squared"])
        one_of("precision", self.precision, ["float64", "float32"])
        if self.router is not None:
            instance("spherical: router", self.router, Router, "a router such as tt.Top1()")
        if self.theta is not None:
            put(self, theta=table("spherical: theta", self.theta, "a matrix (experts, dim)", axes=(2, 3)))
        if self.loss == "squared" and self.weighted:
            raise BadInput(
                "weighted gates are for the correlation; with the squared loss gates are part of the output."
            )

    def room(self, problem: AbstractProblem, seeds: int) -> dict[str, float]:
        problem = of_kind(problem, Clustered, self.name)
        student, dim = problem.student, problem.inputs.dim
        units = student.count * student.width if student else 1
        samples = 2 * NUMBER * float(SEGMENT) * (dim + units)  # this segment, and the next
        return {
            "ask for fewer seeds or units": seeds * (SEED + COPIES * NUMBER * float(units) * dim),
            "use fewer dimensions; NeuronSgd needs none": samples,
        }

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Clustered, self.name)
        weights = stacked([self._drawn(problem, seed) for seed in seeds]) if start is None else start.student
        rows = weights.theta if self.theta is None else self._rows(problem, weights.first, len(seeds))
        if (rows is None) != (self.router is None):
            raise BadInput("spherical: a router needs theta, and theta a router; give both or neither.")
        weights = ExpertWeights(weights.first.astype(self.precision), weights.units, rows)
        rule = Rule(jnp.asarray(float(self.step)), jnp.asarray(1 / weights.first.shape[2]), self.loss, self.batch)
        step = SphericalStep(problem, rule, int(self.samples), self.router, self.weighted, self.precision)
        keys = np.stack([stream(problem, seed, self.phase).key for seed in seeds])
        return Prepared(step, ClusterOracle(problem), False, jnp.asarray(problem.frame), weights, keys, scored=False)

    def _drawn(self, problem: Clustered, seed: int) -> ExpertWeights:
        if problem.student is None:
            raise BadInput("spherical: the problem has no student; say which experts learn it, with taught_to(...).")
        units, first = problem.student.draw(weights_of(seed, _WEIGHTS), problem.inputs.dim)
        return ExpertWeights(jax.device_put(first), units)

    def _rows(self, problem: Clustered, first: Array, seeds: int) -> Float[Array, "seed expert dim"]:
        rows = np.asarray(self.theta, float)
        wanted = (first.shape[1], problem.inputs.dim)
        if rows.shape[-2:] != wanted or rows.ndim > 3:
            raise BadInput(f"spherical: theta has shape {rows.shape}, but (experts, dim) = {wanted} was expected.")
        every: Array = jax.device_put(np.broadcast_to(rows, (seeds, *wanted)))
        return every

    def stops(self, record: Record) -> NDArray[np.float64]:
        at = RECORDS if record.at is None else record.at
        if isinstance(at, str):  # all segments: there is nothing between them
            at = np.arange(0.0, self.samples, SEGMENT)
        if isinstance(at, int):
            few(at)
            at = np.geomspace(SEGMENT, max(self.samples, 2 * SEGMENT), at)
        return on_segments(np.asarray(at, float), int(self.samples)).astype(float)

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        names = ("samples", "step", "loss", "batch", "precision", "phase")
        return {name: getattr(self, name) for name in names} | {"router": str(self.router)}


class SphericalStep(DrivenStep):
    """From record to record through the segments of the stream; `end` is the last sample.

    It drives itself. Compiled into one loop, the experts of a seed share one core and the next segment is not drawn
    while this one is learned. Measured in CPU seconds the two are alike (0.83 to 1.05 on runs of 64 segments), but at
    200 dimensions the last bit differs: the compiler joins the drawing of samples to what uses them.
    """

    problem: Clustered
    rule: Rule
    end: int = eqx.field(static=True)
    router: Router | None = None
    weighted: bool = eqx.field(static=True, default=False)
    precision: str = eqx.field(static=True, default="float64")

    def learner(self, moment: Moment) -> "Learner":
        """One seed with its stream."""
        weights, data = moment.weights, Stream(self.problem, moment.carry, self.precision)
        return Learner(data, weights.units, weights.first, weights.theta, self.router, self.weighted)

    def _moved(self, moment: Moment, first: Float[Array, "*seed expert unit dim"], clock: Array) -> Moment:
        weights = eqx.tree_at(lambda each: each.first, moment.weights, first)
        return Moment(weights, clock, clock, moment.carry)

    def drive(self, oracle: AbstractOracle, moments: Moment, stop: float) -> Moment:
        """On to the record, or for a chunk of segments."""
        count = len(moments.clock)
        learners = [self.learner(moment) for moment in unstacked(moments, count)]
        begin = int(moments.clock[0])
        # Fewer segments between two chances to stop if experts are large.
        chunk = max(1, CHUNK * LARGE // max(LARGE, learners[0].first[0].size))
        stop = min(int(stop), begin + chunk * SEGMENT)
        starts = range(begin, stop, SEGMENT)
        large = learners[0].first[0].size >= LARGE
        if large or count == 1:
            moved = [self._on_all_cores(learner, starts, large) for learner in learners]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                moved = list(pool.map(lambda learner: self._in_lockstep(learner, starts), learners))
        return self._moved(moments, stacked(moved), jax.device_put(np.full(count, float(stop))))

    def _in_lockstep(self, learner: "Learner", starts: range) -> First:
        first = learner.first
        for start in starts:
            first = self._segment(learner, first, self._next_samples(learner, start))
        jax.block_until_ready(first)
        return first

    def _on_all_cores(self, learner: "Learner", starts: range, large: bool) -> First:
        """The next segment is drawn while this one is learned; large experts are learned side by side."""
        first = learner.first
        apart = large and self.rule.loss == "correlation"
        if not len(starts):
            return first
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ahead: Future[GatedSamples] = pool.submit(self._next_samples, learner, starts[0])
            for start in starts:
                gated = ahead.result()
                if start + SEGMENT < starts.stop:
                    ahead = pool.submit(self._next_samples, learner, start + SEGMENT)
                if apart:
                    parts = [self._one(learner, first, gated, m) for m in range(len(first))]
                    first = jnp.concatenate(list(pool.map(lambda part: jax.block_until_ready(part()), parts)))
                else:
                    first = jax.block_until_ready(self._segment(learner, first, gated))
        return first

    def _one(self, learner: "Learner", first: First, gated: GatedSamples, m: int) -> Callable[[], First]:
        """One expert's part of a segment, as a task."""
        units = jax.tree.map(lambda leaf: leaf[m : m + 1], learner.units)
        return partial(segment, self.rule, units, first[m : m + 1], gated.samples, gated.gates[m : m + 1])

    def _next_samples(self, learner: "Learner", start: int) -> GatedSamples:
        gated: GatedSamples = jax.block_until_ready(_gated_samples(learner, jnp.asarray(start), jnp.asarray(self.end)))
        return gated

    def _segment(self, learner: "Learner", first: First, gated: GatedSamples) -> First:
        return segment(self.rule, learner.units, first, gated.samples, gated.gates)


def on_segments(stops: ArrayLike, end: int) -> NDArray[np.integer]:
    """Recording times as whole segments, 0 and the end included.

    ```python
    >>> from tutelage.dynamics.spherical import on_segments
    >>> on_segments([1, 9000], 20_000).tolist()
    [0, 8192, 16384, 20000]

    ```
    """
    whole = -(-np.asarray(stops, float) // SEGMENT) * SEGMENT
    return np.unique(np.minimum([0, *whole, end], end)).astype(int)
