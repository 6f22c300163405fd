"""The one loop: every dynamics on every oracle, chunk by chunk, seeds in one batch.

Inside a chunk everything is compiled: step until the next recording time, then compute the observables. Between
chunks the host collects, reports progress and may save; a chunk is a pure function of the state before it, so a run
restored from a saved state ends bit-identical to one that was never interrupted.
"""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt64
from numpy.typing import NDArray

from tutelage._errors import BadInput, StopReason
from tutelage._interrupt import Interrupted, stop_asked
from tutelage.dynamics.base import AbstractDynamics, Moment
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.events import Crossings, End, Event, cross
from tutelage.dynamics.flow import REACH, Flow, stiffness
from tutelage.dynamics.snapshot import Snapshot
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights

Observables = tuple[tuple[str, Callable[[Snapshot], Any]], ...]
Watched = tuple[tuple[Event, ...], tuple[Crossings, ...]]
Progress = Callable[[str, int, int], None]


UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, struct.error),
    *(zipfile.BadZipFile, zlib.error),
)
"""What a damaged archive may raise."""


class Limits(NamedTuple):
    """When to call a run converged (checked at recording times; the gradient relative to the norm of the weights, so
    that a tiny start is not mistaken for an end), and the cap on steps."""

    loss: Float[Array, ""]
    gradient: Float[Array, ""]
    steps: Int[Array, ""]


class State(eqx.Module):
    """All that the next chunk needs. `before` and `after` bracket the step in which each event happened; `crossed`: the
    times of crossings, an array for each."""

    moment: Moment
    steps: Int[Array, ""]
    reason: Int[Array, ""]
    fired: Bool[Array, " event"]
    before: Moment
    after: Float[Array, " event"]
    crossed: tuple[Array, ...] = ()


class Scene(NamedTuple):
    """What stays fixed during a run, for one seed."""

    oracle: AbstractOracle
    teacher: Weights
    start: Weights

    def view(self, weights: Weights) -> Snapshot:
        return Snapshot(weights, self.teacher, self.start, self.oracle)


def _event_values(events: tuple[Event, ...], view: Snapshot) -> Float[Array, " event"]:
    return jnp.stack([jnp.asarray(event.when(view), float) for event in events]) if events else jnp.zeros(0)


def _ends(dynamics: AbstractDynamics, crossings: tuple[Crossings, ...], scene: Scene, moment: Moment) -> list[End]:
    """The watched arrays at a moment, with their rates of change if the dynamics has a velocity."""
    velocity = dynamics.velocity(scene.oracle, moment)
    ends = []
    for crossing in crossings:
        values = lambda w, c=crossing: jnp.asarray(c.values(scene.view(w)), float)  # noqa: E731
        if velocity is None:
            ends.append(End(moment.clock, values(moment.weights), None))
        else:
            ends.append(End(moment.clock, *jax.jvp(values, (moment.weights,), (velocity,))))
    return ends


def _begin(dynamics: AbstractDynamics, watched: Watched, scene: Scene, key: UInt64[Array, ""]) -> State:
    events, crossings = watched
    moment = dynamics.seeded(dynamics.begin(scene.oracle, scene.start), key)
    fired = _event_values(events, scene.view(scene.start)) >= 0
    before = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], len(events), 0), moment)
    reason = jnp.where(_finite(scene.start), StopReason.RUNNING, StopReason.NONFINITE)
    crossed = tuple(
        jnp.where(end.values >= 0, 0.0, jnp.nan)
        for end in (_ends(dynamics, crossings, scene, moment) if crossings else ())
    )
    state = State(moment, jnp.array(0), reason, fired, before, jnp.where(fired, 0.0, jnp.nan), crossed)
    # Strong types throughout, so that the first chunk and the later ones share one compilation.
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)


def _finite(weights: Weights) -> Bool[Array, ""]:
    return jnp.all(jnp.isfinite(weights.first)) & jnp.all(jnp.isfinite(weights.second))


def _step(dynamics, watched: Watched, scene: Scene, limit, cap, state: State) -> State:
    (events, crossings), old = watched, state.moment
    new, moved, stuck = dynamics.step(scene.oracle, old, limit)
    finite = _finite(new.weights) & ~stuck
    moment = jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)
    reason = jnp.where(finite, state.reason, StopReason.NONFINITE)
    steps = state.steps + 1
    fired, before, after = state.fired, state.before, state.after
    if events:
        happened = ~fired & moved & finite & (_event_values(events, scene.view(moment.weights)) >= 0)
        before = jax.tree.map(lambda kept, now: jnp.where(_like(happened, kept), now, kept), before, old)
        after = jnp.where(happened, moment.clock, after)
        fired = fired | happened
        stops = jnp.any(happened & jnp.asarray([event.stop for event in events]))
        reason = jnp.where(stops, StopReason.EVENT, reason)
    reason = jnp.where((steps >= cap) & (reason == StopReason.RUNNING), StopReason.CAP, reason)
    crossed = state.crossed
    if crossings:
        olds, news = (_ends(dynamics, crossings, scene, at) for at in (old, moment))
        crossed = tuple(cross(*each, moment.time) for each in zip(crossed, olds, news, strict=True))
    return State(moment, steps, reason, fired, before, after, crossed)


def _like(mask: Bool[Array, " event"], leaf: Array) -> Array:
    return mask.reshape(mask.shape + (1,) * (leaf.ndim - 1))


def _record(observables: Observables, scene: Scene, limits: Limits, limit, state: State) -> tuple[State, dict]:
    view = scene.view(state.moment.weights)
    running = state.reason == StopReason.RUNNING
    small = (limits.loss > 0) & (view.loss <= limits.loss)
    size = jnp.sqrt(jnp.sum(view.weights.first**2) + jnp.sum(view.weights.second**2))
    done = running & (small | (view.gradient_norm <= limits.gradient * size))
    row = {name: jnp.asarray(fn(view)) for name, fn in observables}
    # Weights may still be finite when their loss is not: a run that diverges ends at its last finite record.
    lost = running & ~jnp.isfinite(view.loss)
    row["_reached"] = running & ~lost & (state.moment.clock >= limit)
    row["_time"] = state.moment.time
    row["_strained"] = running & scene.oracle.strained(view.weights, view.loss, view.gradient)
    reason = jnp.where(lost, StopReason.NONFINITE, jnp.where(done, StopReason.CONVERGED, state.reason))
    return eqx.tree_at(lambda s: s.reason, state, reason), row


def _each_seed(function, oracle: AbstractOracle, batched: bool, *per_seed):
    """`function(oracle, *per_seed)` for all seeds at once; the oracle is each seed's own only if `batched`."""
    arrays, static = eqx.partition(oracle, eqx.is_array)
    if len(jax.tree.leaves(per_seed)[0]) == 1:
        # Without a batch axis the compiler does better: by a sixth in online SGD.
        own, rest = jax.tree.map(lambda leaf: leaf[0], (arrays if batched else None, per_seed))
        done = function(eqx.combine(own if batched else arrays, static), *rest)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], done)
    axes = (0 if batched else None, *(0 for _ in per_seed))
    return jax.vmap(lambda own, *rest: function(eqx.combine(own, static), *rest), in_axes=axes)(arrays, *per_seed)


@eqx.filter_jit
def _prepare(dynamics, watched, oracle, batched, teacher, start, keys) -> State:
    return _each_seed(lambda o, s, k: _begin(dynamics, watched, Scene(o, teacher, s), k), oracle, batched, start, keys)


@eqx.filter_jit
def _advance(dynamics, observables, watched, limits: Limits, oracle, batched, teacher, start, state, stops):
    """One chunk for all seeds: to each of `stops` in turn, recording there."""

    def one(oracle, start, state):
        scene = Scene(oracle, teacher, start)

        def to_stop(state, stop):
            going = lambda s: (s.reason == StopReason.RUNNING) & (s.moment.clock < stop)  # noqa: E731
            state = jax.lax.while_loop(going, lambda s: _step(dynamics, watched, scene, stop, limits.steps, s), state)
            return _record(observables, scene, limits, stop, state)

        return jax.lax.scan(to_stop, state, stops)

    return _each_seed(one, oracle, batched, start, state)


@eqx.filter_jit
def _locate(dynamics, events, oracle, batched, teacher, start, state: State) -> Moment:
    """The moments at which events happened, by bisection with the dynamics' own steps."""

    def one(oracle, start, state):
        scene = Scene(oracle, teacher, start)

        def find(index, before, after):
            def halve(_, ends):
                middle = 0.5 * (ends[0] + ends[1])
                seen = dynamics.within(oracle, before, middle)
                passed = _event_values(events, scene.view(seen.weights))[index] >= 0
                return jnp.where(passed, ends[0], middle), jnp.where(passed, middle, ends[1])

            _, high = jax.lax.fori_loop(0, 52, halve, (before.clock, after))
            return dynamics.within(oracle, before, high)

        return jax.vmap(find)(jnp.arange(len(events)), state.before, state.after)

    return _each_seed(one, oracle, batched, start, state)


@eqx.filter_jit
def _crossed_by(crossings, oracle, batched, teacher, start, moment: Moment, crossed) -> tuple[Array, ...]:
    """Times of crossings up to a moment inside the last step: what was crossed later in it has not happened."""

    def one(oracle, start, moment, crossed):
        view = Scene(oracle, teacher, start).view(moment.weights)
        there = [jnp.where(jnp.asarray(c.values(view), float) >= 0, moment.time, jnp.nan) for c in crossings]
        return tuple(jnp.where(t <= moment.time, t, now) for t, now in zip(crossed, there, strict=True))

    return _each_seed(one, oracle, batched, start, moment, crossed)


@eqx.filter_jit
def _stiffness(oracle, batched, weights) -> Float[Array, " seed"]:
    return _each_seed(stiffness, oracle, batched, weights)


@eqx.filter_jit
def _resume(dynamics, oracle, batched, moment) -> Moment:
    return _each_seed(dynamics.resume, oracle, batched, moment)


class Loop:
    """A run in progress: `advance` until it says it is over; `save` and `restore` between chunks.

    `auto` lets a flow change to the stiff solver when the measured curvature says that an explicit one would need
    more than `PATIENCE` steps to the end of the next chunk. A run begins with the `quick` form of its oracle and takes
    the careful one from the chunk on in which the quick one is strained. `keys`: one a seed, for a dynamics that draws.
    `identity` is written into what is saved, and only a loop with the same one reads it back.
    """

    PATIENCE = 20_000
    LARGEST_HESSIAN = 800
    PARTS = 8

    def __init__(
        self,
        dynamics: AbstractDynamics,
        oracle: AbstractOracle,
        *,
        batched: bool,
        teacher: Weights,
        start: Weights,
        stops: NDArray[np.floating],
        observables: Observables,
        events: Sequence[Event] = (),
        crossings: Sequence[Crossings] = (),
        limits: Limits,
        auto: bool = False,
        keys: NDArray[np.uint64] | None = None,
        identity: str = "",
    ):
        self.identity = identity
        self.dynamics, self.batched, self.auto = dynamics, batched, auto
        self.careful, self.oracle = oracle, oracle.quick()
        self.teacher, self.start, self.stops = teacher, start, np.asarray(stops, float)
        self.observables, self.limits = observables, limits
        self.events, self.crossings = tuple(events), tuple(crossings)
        self.position = 0
        self.rows: list[dict[str, NDArray]] = []
        keys = np.zeros(len(start.first), np.uint64) if keys is None else keys
        self.state = self._apart(
            lambda oracle, start, keys: _prepare(dynamics, self._watched, oracle, batched, teacher, start, keys),
            start,
            jnp.asarray(keys),
        )
        self.event_times = np.where(np.asarray(self.state.fired), 0.0, np.nan)

    @property
    def _watched(self) -> Watched:
        return self.events, self.crossings

    @property
    def chunk(self) -> int:
        """How many recording times the next chunk has: few while it may have to be done again with the careful form."""
        if self.oracle is not self.careful and not isinstance(self.dynamics, Flow):
            return 4
        return 16 if len(self.stops) <= 1024 else 256

    @property
    def over(self) -> bool:
        return self.position >= len(self.stops) or not np.any(self.reasons == StopReason.RUNNING)

    @property
    def reasons(self) -> NDArray[np.integer]:
        return np.asarray(self.state.reason)

    def advance(self) -> None:
        """Run the next chunk."""
        stops = self._ahead()
        self._measure_stiffness(stops[-1])
        state, row = self._chunk(stops)
        if np.any(row.pop("_strained")[:, : len(stops)]):
            # The quick form begins to lose digits: this chunk again, and all later ones, with the careful form.
            self.oracle = self.careful
            state, row = self._chunk(stops)
            row.pop("_strained")
        self.state = state
        self.rows.append({name: np.asarray(value)[:, : len(stops)] for name, value in row.items()})
        self.position += len(stops)
        self._note_events()

    def _ahead(self) -> NDArray[np.floating]:
        """The recording times of the next chunk. It spans a part of the run only: one can stop a run between chunks."""
        stops = self.stops[self.position : self.position + self.chunk]
        last = self.stops[self.position - 1] if self.position else 0.0
        within = np.searchsorted(stops, last + self.stops[-1] / self.PARTS, side="right")
        return stops[: max(1, int(within))]

    def _chunk(self, stops: NDArray[np.floating]) -> tuple[State, dict[str, Any]]:
        padded = np.pad(stops, (0, self.chunk - len(stops)), mode="edge")
        return self._apart(
            lambda oracle, start, state: _advance(
                self.dynamics, self.observables, self._watched, self.limits, oracle, self.batched,
                self.teacher, start, state, jnp.asarray(padded),
            ),
            self.start,
            self.state,
        )  # fmt: skip

    def _apart(self, call: Callable[..., Any], *per_seed: Any) -> Any:
        """`call(oracle, *per_seed)` for all seeds at once or, with the stabilised solver, one by one on all cores.

        In a batch every seed would wait for the one that needs most stages; that cost a factor of three.
        """
        if getattr(self.dynamics, "solver", "") != "stabilised":
            return call(self.oracle, *per_seed)

        def one(seed: int) -> Any:
            cut = lambda leaf: leaf[seed : seed + 1]  # noqa: E731
            own = jax.tree.map(cut, self.oracle) if self.batched else self.oracle
            return jax.block_until_ready(call(own, *jax.tree.map(cut, per_seed)))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(one, range(len(jax.tree.leaves(per_seed)[0]))))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def finish(
        self, progress: Progress | None = None, label: str = "run", checkpoint: Checkpoint | None = None
    ) -> None:
        """Advance to the end, from where the checkpoint is if there is one."""
        if checkpoint:
            checkpoint.resume(self)
        while not self.over:
            if progress:
                progress(label, self.position, len(self.stops))
            self.advance()
            stop = stop_asked()  # asked once: a stop that comes during the writing waits for the next chunk
            if checkpoint and not self.over:
                checkpoint.between(self)
            if stop and not self.over:
                raise Interrupted
        if checkpoint:
            checkpoint.ended(self)
        if progress:
            progress(label, len(self.stops), len(self.stops))

    def final_reasons(self) -> tuple[StopReason, ...]:
        """Why each seed ended; one still running at the last recording time has reached its horizon."""
        ended = np.where(self.reasons == StopReason.RUNNING, StopReason.HORIZON, self.reasons)
        return tuple(StopReason(int(code)) for code in ended)

    def _note_events(self) -> None:
        new = np.asarray(self.state.fired) & np.isnan(self.event_times)
        if not new.any():
            return
        moments = self._apart(
            lambda oracle, start, state: _locate(
                self.dynamics, self.events, oracle, self.batched, self.teacher, start, state
            ),
            self.start,
            self.state,
        )  # fmt: skip
        self.event_times = np.where(new, np.asarray(moments.time), self.event_times)
        stopping = new & np.asarray([event.stop for event in self.events])
        self._rewind(stopping, moments)

    def _rewind(self, stopping: NDArray[np.bool_], moments: Moment) -> None:
        """A stopping event ends the run at its own moment, not at the end of the step around it."""
        seeds = np.flatnonzero(stopping.any(1))
        if not len(seeds):
            return
        times = np.where(stopping, np.asarray(moments.time), np.inf)
        which = times.argmin(1)
        place = lambda now, found: now.at[seeds].set(found[seeds, which[seeds]])  # noqa: E731
        moment = jax.tree.map(place, self.state.moment, moments)
        crossed = self.state.crossed
        if crossed:
            crossed = _crossed_by(self.crossings, self.oracle, self.batched, self.teacher, self.start, moment, crossed)
        self.state = eqx.tree_at(lambda s: (s.moment, s.crossed), self.state, (moment, crossed))

    def _measure_stiffness(self, horizon: float) -> None:
        """Cap explicit steps by the curvature; if too many would be needed, change to the stiff solver (`auto`)."""
        if not (isinstance(self.dynamics, Flow) and self.dynamics.solver == "explicit"):
            return
        weights = self.state.moment.weights
        running = self.reasons == StopReason.RUNNING
        if weights.first[0].size + weights.second[0].size > self.LARGEST_HESSIAN or not running.any():
            return
        curvature = np.asarray(_stiffness(self.oracle, self.batched, weights))[running]
        ahead = (horizon - np.asarray(self.state.moment.clock))[running]
        if self.auto and np.any(curvature * ahead / REACH > self.PATIENCE):
            self._change_flow(solver="stiff")
        elif np.all(curvature > 0):
            self._change_flow(longest=jnp.asarray(REACH / curvature.max()))

    def _change_flow(self, solver: str = "explicit", **changes: Any) -> None:
        dynamics = self.dynamics
        assert isinstance(dynamics, Flow)
        self.dynamics = Flow(dynamics.rtol, dynamics.rates, dynamics.trains, solver, **changes)
        if solver == dynamics.solver:
            return
        moment = _resume(self.dynamics, self.oracle, self.batched, self.state.moment)
        before = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], len(self.events), 1), moment)
        old = self.state
        self.state = State(moment, old.steps, old.reason, old.fired, before, old.after, old.crossed)

    def save(self, path: str | Path) -> None:
        """Write the whole state (plain arrays, nothing pickled)."""
        leaves = {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.state))}
        rows = {f"row/{i}/{name}": value for i, row in enumerate(self.rows) for name, value in row.items()}
        about = {
            "identity": self.identity,
            "position": self.position,
            "rows": len(self.rows),
            "solver": getattr(self.dynamics, "solver", ""),
            "longest": float(getattr(self.dynamics, "longest", np.inf)),
            "careful": self.oracle is self.careful,
            "arrays": [*leaves, *rows],
        }
        arrays: dict[str, Any] = {"about": np.array(json.dumps(about)), "events": self.event_times, **leaves, **rows}
        with open(path, "wb") as file:
            np.savez(file, **arrays)

    def restore(self, path: str | Path) -> None:
        """Continue from a saved state of a loop that was built in the same way."""
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
                arrays = {name: saved[name] for name in saved.files}
                about = json.loads(str(arrays["about"]))
            if not {"about", "events", *about["arrays"]} == set(arrays):  # a damaged index may leave out some
                raise ValueError("arrays are missing")
        except UNREADABLE as error:
            raise BadInput(f"{path} cannot be read as the checkpoint of a run ({error}); move it away.") from None
        self._adopt(path, about, arrays)

    def _adopt(self, path: str | Path, about: dict[str, Any], saved: dict[str, NDArray]) -> None:
        foreign = BadInput(f"{path} was saved by a different run; restore it into a loop built the same way.")
        if about["identity"] != self.identity:
            raise foreign
        self.oracle = self.careful if about["careful"] else self.oracle
        if about["solver"] == "stiff" and getattr(self.dynamics, "solver", "") == "explicit":
            self._change_flow(solver="stiff")
        if np.isfinite(about["longest"]):
            self._change_flow(longest=jnp.asarray(about["longest"]))
        leaves, structure = jax.tree.flatten(self.state)
        loaded = [saved[f"state/{i}"] for i in range(len(leaves)) if f"state/{i}" in saved]
        if [x.shape for x in loaded] != [x.shape for x in leaves]:
            raise foreign
        self.state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in loaded])
        self.event_times, self.position = saved["events"], about["position"]
        self.rows = [{} for _ in range(about["rows"])]
        for key in saved:
            if key.startswith("row/"):
                _, index, name = key.split("/", 2)
                self.rows[int(index)][name] = saved[key]
