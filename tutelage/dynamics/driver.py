"""A run in progress, on the host: chunk by chunk, with records, events, progress and checkpoints between chunks.

A chunk is a pure function of the state before it, so a run restored from a saved state ends bit-identical to one that
was never interrupted. Nothing here knows which dynamics it drives: a step says itself what it does between chunks.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage._errors import BadInput, StopReason
from tutelage._interrupt import Interrupted, stop_asked
from tutelage.dynamics.base import Ahead, DrivenStep, Moment, Prepared
from tutelage.dynamics.batch import one_factorisation
from tutelage.dynamics.checkpoint import Arrays, Checkpoint, Kept
from tutelage.dynamics.loop import Fixed, Limits, Observables, State, advance, crossed_by, locate, note, prepare
from tutelage.dynamics.record import Record

Progress = Callable[[str, int, int], None]


class Loop(Kept):
    """A run in progress: `advance` until it is `over`; `arrays` and `adopt` between chunks.

    A run begins with the `quick` form of its oracle and takes the careful one from the chunk on in which the quick one
    is strained. `identity` is written into what is saved, and only a loop with the same one reads it back.
    """

    PARTS = 8

    def __init__(
        self,
        prepared: Prepared,
        *,
        stops: NDArray[np.float64],
        observables: Observables,
        limits: Limits,
        record: Record | None = None,
        identity: str = "",
    ):
        record = record or Record()
        self.identity, self.batched, self.step = identity, prepared.batched, prepared.step
        self.careful, self.oracle = prepared.oracle, prepared.oracle.quick()
        self.teacher, self.start, self.stops = prepared.teacher, prepared.start, np.asarray(stops, float)
        self.events, self.crossings = record.events or (), record.crossings or ()
        if not self.step.watches and (self.events or self.crossings):
            raise BadInput("This dynamics watches no events or crossings; leave them out, and look at the records.")
        watched = (self.events, self.crossings)
        self.fixed = Fixed(observables, watched, limits, prepared.batched, prepared.teacher)
        self.position = 0
        self.rows: list[dict[str, NDArray[Any]]] = []
        self.state: State = self._apart(
            lambda oracle, start, keys: prepare(self.step, self.fixed, oracle, start, keys),
            self.start,
            jnp.asarray(prepared.keys),
        )
        self.event_times = np.where(np.asarray(self.state.fired), 0.0, np.nan)

    @property
    def chunk(self) -> int:
        """How many recording times the next chunk has: few while it may have to be done again with the careful form."""
        if isinstance(self.step, DrivenStep):
            return 1
        if self.oracle is not self.careful:
            return self.step.trial
        return 16 if len(self.stops) <= 1024 else 256

    @property
    def over(self) -> bool:
        return self.position >= len(self.stops) or not np.any(self.reasons == StopReason.RUNNING)

    @property
    def reasons(self) -> NDArray[np.integer]:
        return np.asarray(self.state.reason)

    def advance(self) -> None:
        """Run the next chunk."""
        stops = self._next_stops()
        self._take(*self.step.between(self._ahead(stops[-1])))
        if isinstance(self.step, DrivenStep) and not self._driven(self.step, stops[0]):
            return
        state, row = self._chunk(stops)
        if np.any(np.asarray(row.pop("_strained"))[:, : len(stops)]):  # cut on the host: nothing is compiled
            # The quick form begins to lose digits: this chunk again, and all later ones, with the careful form.
            self.oracle = self.careful
            state, row = self._chunk(stops)
            row.pop("_strained")
        self.state = state
        self.rows.append({name: np.asarray(value)[:, : len(stops)] for name, value in row.items()})
        self.position += len(stops)
        self._note_events()

    def _next_stops(self) -> NDArray[np.float64]:
        """The recording times of the next chunk. It spans a part of the run only: one can stop a run between chunks."""
        stops = self.stops[self.position : self.position + self.chunk]
        last = self.stops[self.position - 1] if self.position else 0.0
        within = np.searchsorted(stops, last + self.stops[-1] / self.PARTS, side="right")
        return stops[: max(1, int(within))]

    def _ahead(self, horizon: float) -> Ahead:
        running = self.reasons == StopReason.RUNNING
        return Ahead(self.oracle, self.batched, self.state.moment, running, float(horizon))

    def _take(self, step: Any, moments: Moment) -> None:
        """Go on with another step; if its memory has another shape, so have the brackets of events."""
        self.step, old = step, self.state
        if moments is old.moment:
            return
        before = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], len(self.events), 1), moments)
        self.state = State(moments, old.steps, old.reason, old.fired, before, old.after, old.crossed)

    def _chunk(self, stops: NDArray[np.float64]) -> tuple[State, dict[str, Any]]:
        if isinstance(self.step, DrivenStep):
            state, row = note(self.fixed, self.oracle, self.start, self.state, jnp.asarray(stops[0]))
            return state, {name: np.asarray(value)[:, None] for name, value in row.items()}
        padded = jnp.asarray(np.pad(stops, (0, self.chunk - len(stops)), mode="edge"))
        state, rows = self._apart(
            lambda oracle, start, state: advance(self.step, self.fixed, oracle, start, state, padded),
            self.start,
            self.state,
        )
        return state, rows

    def _driven(self, step: DrivenStep, stop: float) -> bool:
        """Let the step go on towards the next record; whether it is there, or paused so that the run may be kept."""
        moments = step.drive(self.oracle, self.state.moment, float(stop))
        self.state = eqx.tree_at(lambda s: (s.moment, s.steps), self.state, (moments, self.state.steps + 1))
        return bool(np.all(np.asarray(moments.clock) >= stop))

    def _apart(self, call: Callable[..., Any], *per_seed: Any) -> Any:
        """`call(oracle, *per_seed)` for all seeds at once or, if the step asks for it, one by one on all cores."""
        if not self.step.apart:
            with one_factorisation if self.step.factorises else nullcontext():
                return jax.block_until_ready(call(self.oracle, *per_seed))

        def one(seed: int) -> Any:
            cut = lambda leaf: leaf[seed : seed + 1]  # noqa: E731
            own = jax.tree.map(cut, self.oracle) if self.batched else self.oracle
            return jax.block_until_ready(call(own, *jax.tree.map(cut, per_seed)))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(one, range(len(jax.tree.leaves(per_seed)[0]))))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def follow(
        self,
        progress: Progress | None = None,
        label: str = "run",
        checkpoint: Checkpoint | None = None,
        whole: Kept | None = None,
        *,
        last: bool = True,
    ) -> None:
        """Advance to the end. `whole` is what the checkpoint keeps; this loop may be a stage of it, or the `last`."""
        while not self.over:
            if progress:
                progress(label, self.position, len(self.stops))
            self.advance()
            stop = stop_asked()  # asked once: a stop that comes during the writing waits for the next chunk
            if checkpoint and not (self.over and last):
                checkpoint.between(whole or self)
            if stop and not self.over:
                raise Interrupted
        if progress:
            progress(label, len(self.stops), len(self.stops))

    def final_reasons(self) -> tuple[StopReason, ...]:
        """Why each seed ended; one still running at the last recording time has reached its horizon."""
        ended = np.where(self.reasons == StopReason.RUNNING, StopReason.HORIZON, self.reasons)
        return tuple(StopReason(int(code)) for code in ended)

    def records(self) -> dict[str, NDArray[Any]]:
        """What was recorded, with leading axes (seed, record)."""
        return {name: np.concatenate([row[name] for row in self.rows], axis=1) for name in self.rows[0]}

    def _note_events(self) -> None:
        new = np.asarray(self.state.fired) & np.isnan(self.event_times)
        if not new.any():
            return
        moments = self._apart(
            lambda oracle, start, state: locate(self.step, self.fixed, oracle, start, state), self.start, self.state
        )
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
            crossed = crossed_by(self.fixed, self.oracle, self.start, moment, crossed)
        self.state = eqx.tree_at(lambda s: (s.moment, s.crossed), self.state, (moment, crossed))

    def arrays(self) -> tuple[dict[str, Any], Arrays]:
        """All that the next chunk needs: plain values, and arrays."""
        leaves = {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.state))}
        rows = {f"row/{i}/{name}": value for i, row in enumerate(self.rows) for name, value in row.items()}
        about = {
            "position": self.position,
            "rows": len(self.rows),
            "step": self.step.memo(),
            "careful": self.oracle is self.careful,
        }
        return about, {"events": self.event_times, **leaves, **rows}

    def adopt(self, about: dict[str, Any], saved: Arrays) -> None:
        """Continue from the arrays of a loop that was built in the same way."""
        self.oracle = self.careful if about["careful"] else self.oracle
        self._take(*self.step.recalled(about["step"], self._ahead(self.stops[-1])))
        leaves, structure = jax.tree.flatten(self.state)
        loaded = [saved[f"state/{i}"] for i in range(len(leaves)) if f"state/{i}" in saved]
        if [leaf.shape for leaf in loaded] != [leaf.shape for leaf in leaves]:
            raise BadInput("The checkpoint was saved by a different run; ask for that run, or move the file away.")
        self.state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in loaded])
        self.event_times, self.position = saved["events"], about["position"]
        self.rows = [{} for _ in range(about["rows"])]
        for key in saved:
            if key.startswith("row/"):
                _, index, name = key.split("/", 2)
                self.rows[int(index)][name] = saved[key]
