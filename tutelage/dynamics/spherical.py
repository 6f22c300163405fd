"""Spherical SGD of experts on a stream of fresh samples, run in exact blocks (`dynamics.blocks`).

Which expert sees a sample is known before the sample is used, because the router stands still. So the stream splits
into one for each expert, in order, and these are run in lockstep (small experts) or on all cores (large ones).

The stream is cut into segments of fixed length, whatever is done between them: how often a run is looked at, or saved
and taken up again, does not change a bit of it.
"""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import NDArray

from tutelage._errors import BadInput
from tutelage._interrupt import Interrupted, stop_asked
from tutelage.dynamics.blocks import BLOCK, Block, Rule, together
from tutelage.dynamics.checkpoint import UNREADABLE, Checkpoint
from tutelage.dynamics.driver import Progress
from tutelage.dynamics.random import MAX_STEPS
from tutelage.dynamics.streams import Samples, Stream
from tutelage.problem.routers import Router
from tutelage.problem.units import Units

SEGMENT = 8192
"""Samples of a segment."""
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


class Dealt(NamedTuple):
    """A segment of the stream: samples, and a gate for each expert (0 if it does not see the sample)."""

    samples: Samples
    gates: Float[Array, "expert sample"]


@eqx.filter_jit
def _deal(learner: Learner, start: Array, stop: Array) -> Dealt:
    """The segment that begins with sample `start`; samples from `stop` on are seen by nobody."""
    samples = learner.stream.samples(start, SEGMENT)
    experts, dtype = len(learner.first), samples.labels.dtype
    within = (jnp.asarray(start) + jnp.arange(SEGMENT) < stop).astype(dtype)
    if learner.router is None or learner.theta is None:
        return Dealt(samples, jnp.broadcast_to(within, (experts, SEGMENT)))
    scores = samples.inputs @ learner.theta.T.astype(dtype)
    drawn = learner.stream.uniforms(start, SEGMENT, experts).astype(dtype)
    judged = learner.router.gates if learner.weighted else learner.router.chosen
    return Dealt(samples, judged(scores, drawn).T.astype(dtype) * within)


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
        there = turn * BLOCK + jnp.arange(BLOCK) < counts[:, None]
        own = jnp.where(there, jnp.take_along_axis(gates, places, axis=1), 0)[..., None]  # with 0 nothing moves
        inputs, labels = (each.at[places].get(mode="promise_in_bounds") for each in (samples.inputs, samples.labels))
        piece = Block(inputs, labels, own)
        moved, good = together(rule, units, state[0], piece, careful=careful)
        return moved, state[1] & good

    state = first, jnp.ones(len(first), bool)
    return jax.lax.fori_loop(0, -(-jnp.max(counts) // BLOCK), block, state)


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
    return first / jnp.linalg.norm(first, axis=-1, keepdims=True)


class Course:
    """A stage of training in progress, of one or more seeds: `advance` until `over`; `save` and `restore` between.

    - `rule`: how units move; `samples`: how many samples the stage has; `stops`: after how many to record (rounded up
      to whole segments; the end is always one).
    - `watch(learner)`: what is recorded, a dictionary of arrays.
    - `identity` is written into what is saved, and only a course with the same one reads it back.
    """

    CHUNK = 32  # segments between two chances to stop; fewer if experts are large

    def __init__(
        self,
        learners: Sequence[Learner],
        rule: Rule,
        samples: int,
        stops: NDArray[np.floating],
        watch: Callable[[Learner], dict[str, Any]],
        identity: str = "",
    ):
        self.learners, self.rule, self.watch, self.identity = list(learners), rule, watch, identity
        self.end = int(samples)
        if not 1 <= self.end <= MAX_STEPS:
            raise BadInput(f"samples is {samples}, but there are random numbers for 1 to {MAX_STEPS}; use fewer.")
        self.stops = on_segments(stops, self.end)
        self.position = 0
        self.rows: list[list[dict[str, NDArray]]] = [[] for _ in self.learners]
        self.chunk = max(1, self.CHUNK * LARGE // max(LARGE, self.learners[0].first[0].size))
        if rule.loss == "squared" and any(learner.weighted for learner in learners):
            raise BadInput(
                "weighted gates are for the correlation; with the squared loss gates are part of the output."
            )
        self._note()

    @property
    def over(self) -> bool:
        return self.position >= self.end

    def finish(self, progress: Progress | None = None, label: str = "", kept: Checkpoint | None = None) -> None:
        """Run to the end, with progress and checkpoints between chunks."""
        while not self.over:
            if progress:
                progress(label, self.position, self.end)
            self.advance()
            if kept:
                kept.between(self)
            if stop_asked() and not self.over:
                raise Interrupted(f"stopped after {self.position} of {self.end} samples")

    def advance(self) -> None:
        """Run to the next record, or for a chunk of segments."""
        ahead = self.stops[np.searchsorted(self.stops, self.position, side="right")]
        stop = min(int(ahead), self.position + self.chunk * SEGMENT)
        starts = range(self.position, stop, SEGMENT)
        large = self.learners[0].first[0].size >= LARGE
        if large or len(self.learners) == 1:
            moved = [self._on_all_cores(learner, starts, large) for learner in self.learners]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                moved = list(pool.map(lambda learner: self._in_lockstep(learner, starts), self.learners))
        self.learners = [
            eqx.tree_at(lambda each: each.first, learner, first)
            for learner, first in zip(self.learners, moved, strict=True)
        ]
        self.position = stop
        if stop == ahead:
            self._note()

    def _in_lockstep(self, learner: Learner, starts: range) -> First:
        first = learner.first
        for start in starts:
            first = self._segment(learner, first, self._dealt(learner, start))
        return jax.block_until_ready(first)

    def _on_all_cores(self, learner: Learner, starts: range, large: bool) -> First:
        """The next segment is drawn while this one is learnt; large experts are learnt side by side."""
        first = learner.first
        apart = large and self.rule.loss == "correlation"
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ahead: Future[Dealt] = pool.submit(self._dealt, learner, starts[0])
            for start in starts:
                dealt = ahead.result()
                if start + SEGMENT < starts.stop:
                    ahead = pool.submit(self._dealt, learner, start + SEGMENT)
                if apart:
                    parts = [self._one(learner, first, dealt, m) for m in range(len(first))]
                    first = jnp.concatenate(list(pool.map(lambda part: jax.block_until_ready(part()), parts)))
                else:
                    first = jax.block_until_ready(self._segment(learner, first, dealt))
        return first

    def _one(self, learner: Learner, first: First, dealt: Dealt, m: int) -> Callable[[], First]:
        """One expert's part of a segment, as a task."""
        units = jax.tree.map(lambda leaf: leaf[m : m + 1], learner.units)
        return partial(segment, self.rule, units, first[m : m + 1], dealt.samples, dealt.gates[m : m + 1])

    def _dealt(self, learner: Learner, start: int) -> Dealt:
        return jax.block_until_ready(_deal(learner, jnp.asarray(start), jnp.asarray(self.end)))

    def _segment(self, learner: Learner, first: First, dealt: Dealt) -> First:
        return segment(self.rule, learner.units, first, dealt.samples, dealt.gates)

    def _note(self) -> None:
        for rows, learner in zip(self.rows, self.learners, strict=True):
            rows.append({name: np.asarray(value) for name, value in self.watch(learner).items()})

    def records(self) -> dict[str, NDArray]:
        """What was recorded, with leading axes (seed, record)."""
        names = self.rows[0][0]
        return {name: np.stack([np.stack([row[name] for row in rows]) for rows in self.rows]) for name in names}

    def state(self) -> dict[str, NDArray]:
        """All that the next chunk needs, as plain arrays."""
        first = {f"first/{n}": np.asarray(learner.first) for n, learner in enumerate(self.learners)}
        rows = {
            f"row/{n}/{i}/{name}": value
            for n, rows in enumerate(self.rows)
            for i, row in enumerate(rows)
            for name, value in row.items()
        }
        return {"position": np.asarray(self.position), **first, **rows}

    def adopt(self, state: dict[str, NDArray]) -> None:
        """Continue from the state of a course that was built in the same way."""
        self.position = int(state["position"])
        self.learners = [
            eqx.tree_at(lambda each: each.first, learner, jnp.asarray(state[f"first/{n}"]))
            for n, learner in enumerate(self.learners)
        ]
        count = 1 + max(int(key.split("/")[2]) for key in state if key.startswith("row/"))
        names = self.rows[0][0]
        self.rows = [
            [{name: state[f"row/{n}/{i}/{name}"] for name in names} for i in range(count)]
            for n in range(len(self.learners))
        ]

    def save(self, path: str | Path) -> None:
        """Write the whole state (plain arrays, nothing pickled)."""
        write_state(path, self.identity, self.state())

    def restore(self, path: str | Path) -> None:
        """Continue from a saved state."""
        self.adopt(read_state(path, self.identity))


def on_segments(stops: NDArray[np.floating], end: int) -> NDArray[np.integer]:
    """Recording times as whole segments, 0 and the end included.

    ```python
    >>> from tutelage.dynamics.spherical import on_segments
    >>> on_segments([1, 9000], 20_000).tolist()
    [0, 8192, 16384, 20000]

    ```
    """
    whole = -(-np.asarray(stops, float) // SEGMENT) * SEGMENT
    return np.unique(np.minimum([0, *whole, end], end)).astype(int)


def write_state(path: str | Path, identity: str, state: dict[str, NDArray]) -> None:
    """Arrays and whose they are, in one file."""
    about = np.array(json.dumps({"identity": identity, "arrays": list(state)}))
    arrays: dict[str, Any] = {"about": about, **state}
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def read_state(path: str | Path, identity: str) -> dict[str, NDArray]:
    """The arrays of a file that `write_state` wrote for the same run; another is refused."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
            arrays = {name: saved[name] for name in saved.files}
            about = json.loads(str(arrays.pop("about")))
        if set(about["arrays"]) != set(arrays):
            raise ValueError("arrays are missing")
    except UNREADABLE as error:
        raise BadInput(f"{path} cannot be read as the checkpoint of a run ({error}); move it away.") from None
    if about["identity"] != identity:
        raise BadInput(f"{path} was saved by a different run; ask for that run, or move the file away.")
    return arrays
