"""A run in progress, on the host: chunk by chunk, with records, events, progress and checkpoints between chunks.

A chunk is a pure function of the state before it, so a run restored from a saved state ends bit-identical to one that
was never interrupted. Nothing here knows which dynamics it drives: a step says itself what it does between chunks.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import NDArray

from tutelage._errors import BadInput, StopReason
from tutelage._interrupt import Interrupted, stop_asked
from tutelage.dynamics.base import Ahead, DrivenStep, Moment, Prepared
from tutelage.dynamics.batch import one_factorisation
from tutelage.dynamics.checkpoint import Arrays, Checkpoint, Kept
from tutelage.dynamics.compiled import number
from tutelage.dynamics.loop import (
    PAUSE,
    Fixed,
    Limits,
    Observables,
    advance,
    arrive,
    crossed_by,
    locate,
    note,
    prepare,
)
from tutelage.dynamics.record import Record
from tutelage.oracle.base import AbstractOracle

Progress = Callable[[str, int, int], None]
Host = Any
"""A tree of arrays of NumPy, all with a leading axis of seeds."""

FEW, MANY = 32, 256
"""Records of a chunk."""
HELD = 2**26
"""Bytes that the weights at the records of a chunk may take, if these are many."""
SLOW = 0.5
"""Seconds of a chunk from which on the next one is kept short."""

LANE = 4096
"""Weights in a lane: enough that a program is not all overhead, and so few that they stay in the nearest cache."""
WIDEST = 256


def lane_size(weights: int, seeds: int) -> int:
    """How many seeds with so many weights are in a lane: a power of two, and no more than gives every core one."""
    fair = -(-seeds // (os.cpu_count() or 1))
    return min(1 << max(fair - 1, 0).bit_length(), 1 << max(LANE // weights, 1).bit_length() - 1, WIDEST)


def chunk_size(held: float) -> int:
    """How many of many records are in a chunk, if the weights of all seeds take so many bytes."""
    return int(np.clip(HELD // held, FEW, MANY))


def _room(like: Host, seeds: int) -> Host:
    """Zeros for all seeds, for a tree that some of them have."""
    return jax.tree.map(lambda leaf: np.zeros((seeds, *leaf.shape[1:]), leaf.dtype), like)


def _put(whole: Host, seeds: NDArray[np.intp], part: Host, where: NDArray[np.bool_] | None = None) -> Host:
    """The whole with the part of some seeds in its place, or only with those records of it. It is written to, unless
    all seeds are given: a copy for each of many lanes would cost more than what they compute."""

    def put(old: Any, new: Any) -> Any:
        if where is not None:
            new = np.where(where.reshape(where.shape + (1,) * (new.ndim - 2)), new, old[seeds])
        if len(seeds) == len(old):
            return new
        old[seeds] = new
        return old

    return jax.tree.map(put, whole, part)


def _filled(leaf: NDArray[Any], count: int) -> NDArray[Any]:
    """With zeros up to so many records."""
    if leaf.shape[1] == count:
        return leaf
    whole = np.zeros((len(leaf), count, *leaf.shape[2:]), leaf.dtype)
    whole[:, : leaf.shape[1]] = leaf
    return whole


def _between(first: NDArray[Any], last: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Which records of a chunk were made from one count to the other."""
    index = np.arange(count)[None]
    return (index >= first[:, None]) & (index < last[:, None])


class Loop(Kept):
    """A run in progress: `advance` until it is `over`; `arrays` and `adopt` between chunks.

    Seeds are run in lanes, on all cores: a lane is a few seeds that go on with one form of the oracle, and is padded to
    one size, so that one program serves however many of them are left. `identity` is written into what is saved, and
    only a loop with the same one reads it back.
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
        self.oracle = prepared.oracle
        forms = prepared.oracle.forms()
        self.forms = forms if prepared.step.tells_strain else (prepared.oracle,)
        self.quick, self.careful = forms[0], forms[:2][-1]
        self.teacher, self.start, self.stops = prepared.teacher, prepared.start, np.asarray(stops, float)
        self.events, self.crossings = record.events or (), record.crossings or ()
        if not self.step.watches and (self.events or self.crossings):
            raise BadInput("This dynamics watches no events or crossings; leave them out, and look at the records.")
        watched = (self.events, self.crossings)
        self.observables = observables
        self.fixed = Fixed(watched, limits, number(self.stops[-1]), prepared.batched, prepared.teacher)
        self.position = 0
        self.rows: list[dict[str, NDArray[Any]]] = []
        self.slow = True  # until the first chunk has shown otherwise
        self.seeds = len(prepared.keys)
        weights = sum(int(leaf.size) // len(leaf) for leaf in jax.tree.leaves(self.start))
        self.lane = 1 if self.step.apart else lane_size(weights, self.seeds)
        begun = self._in_lanes(
            self._cut(np.arange(self.seeds)),
            lambda oracle, start, keys: prepare(self.step, self.fixed, oracle, start, keys),
            self.forms[0], self.start, prepared.keys,
        )  # fmt: skip
        self.state: Host = jax.tree.map(lambda *parts: np.concatenate(parts), *begun)
        self.event_times = np.where(np.asarray(self.state.fired), 0.0, np.nan)

    @cached_property
    def chunk(self) -> int:
        """How many recording times a chunk has at most; all chunks are padded to that."""
        if isinstance(self.step, DrivenStep):
            return 1
        if len(self.stops) <= FEW:
            return FEW
        return chunk_size(sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(self.start)))

    @property
    def weights(self) -> PyTree:
        """Where the seeds are."""
        weights: PyTree = jax.device_put(self.state.moment.weights)
        return weights

    @property
    def over(self) -> bool:
        return self.position >= len(self.stops) or not np.any(self.reasons == StopReason.RUNNING)

    @property
    def reasons(self) -> NDArray[np.integer]:
        return np.asarray(self.state.reason)

    def advance(self) -> None:
        """Run the next chunk."""
        stops, began = self._next_stops(), time.monotonic()
        if isinstance(self.step, DrivenStep) and not self._driven(self.step, stops[0]):
            return
        self.rows.append(self._measured(self._noted(stops)))
        self.position += len(stops)
        self.state = self.state._replace(made=np.zeros(self.seeds, int))
        self.slow = time.monotonic() - began > SLOW

    def _next_stops(self) -> NDArray[np.float64]:
        """The recording times of the next chunk. If it may take long it spans a part of the run only: one can stop a
        run between chunks. Where these are does not change its numbers."""
        stops = self.stops[self.position : self.position + self.chunk]
        if not self.slow:
            return stops
        last = self.stops[self.position - 1] if self.position else 0.0
        within = np.searchsorted(stops, last + self.stops[-1] / self.PARTS, side="right")
        return stops[: max(1, int(within))]

    def _ahead(self, stops: NDArray[np.float64]) -> Ahead:
        steps = np.asarray(self.state.steps)
        paused = (self.reasons == StopReason.RUNNING) & (steps > 0) & (steps % PAUSE == 0)
        due = np.append(stops, np.inf)[np.asarray(self.state.made)]
        return Ahead(self.forms[0], self.batched, self.state.moment, paused, due, float(self.stops[-1]))

    def _take(self, step: Any, moments: Moment) -> None:
        """Go on with another step; if its memory has another shape, so have the brackets of events."""
        self.step, old = step, self.state
        if moments is old.moment:
            return
        before = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:, None], len(self.events), 1), moments)
        self.state = old._replace(moment=moments, before=before)

    def _noted(self, stops: NDArray[np.float64]) -> Host:
        """Take all seeds to the records of a chunk, and note where they are; each with the form that serves it."""
        if isinstance(self.step, DrivenStep):
            done = arrive(self.step, self.fixed, self.oracle, self.start, self.state, jnp.asarray(stops[0]))
            self.state, noted = jax.tree.map(np.asarray, done)
            return noted
        noted = None
        while len(going := np.flatnonzero((self.reasons == StopReason.RUNNING) & (self.state.made < len(stops)))):
            self._take(*self.step.between(self._ahead(stops)))
            forms = np.asarray(self.state.form)
            noted = self._pass(going, stops, noted)
            self._note_events(forms)
        assert noted is not None
        return noted

    def _pass(self, going: NDArray[np.intp], stops: NDArray[np.float64], noted: Host | None) -> Host:
        """These seeds as far as their forms of the oracle serve them."""
        before = self.state
        if self.lane < self.seeds or len(going) < self.seeds:  # written to, lane by lane
            self.state = jax.tree.map(np.array, before)
        due: tuple[Any, Any] = _filled(stops[None], self.chunk)[0], number(len(stops))
        for form, oracle in enumerate(self.forms):
            lanes = self._cut(going[before.form[going] == form])
            done = self._in_lanes(
                lanes,
                lambda oracle, start, state: advance(self.step, self.fixed, oracle, start, state, *due),
                oracle, self.start, before,
            )  # fmt: skip
            for seeds, (state, seen) in zip(lanes, done, strict=True):
                seen = jax.tree.map(lambda leaf: leaf[:, : len(stops)], seen)
                state = state._replace(strained=np.zeros(len(seeds), bool))
                new = _between(before.made[seeds], state.made, len(stops))
                self.state = _put(self.state, seeds, state)
                noted = _put(noted or _room(seen, self.seeds), seeds, seen, new)
        assert noted is not None
        return noted

    def _measured(self, noted: Host) -> dict[str, NDArray[Any]]:
        """What is recorded of all seeds at the records of a chunk; of one that has not got there, nothing."""
        seen = noted.reached.any(1)
        seen[0] |= not seen.any()
        row = self._seen_by(self.quick, np.flatnonzero(seen), noted)
        lost = row["_lost"] & noted.reached
        if lost.any():  # most runs never get there, and do not wait for the compiler
            row = _put(row, *self._carefully(lost, noted))
        del row["_lost"]
        return {**row, "_reached": self._finite(noted.reached, row.pop("_finite")), "_time": noted.time}

    def _finite(self, reached: NDArray[np.bool_], finite: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The records that count: a run that diverges ends at its last finite one."""
        broken = np.logical_or.accumulate(reached & ~finite, 1)
        if broken.any():
            reason = np.where(broken.any(1), StopReason.NONFINITE, self.reasons)
            self.state = self.state._replace(reason=reason)
        return reached & ~broken

    def _carefully(
        self, lost: NDArray[np.bool_], noted: Host
    ) -> tuple[NDArray[np.intp], dict[str, NDArray[Any]], NDArray[np.bool_]]:
        """The records that the quick form has lost, measured by the careful one: their seeds, and which they are."""
        seeds = np.flatnonzero(lost.any(1))
        row = self._seen_by(self.careful, seeds, noted)
        return seeds, {name: value[seeds] for name, value in row.items()}, lost[seeds]

    def _seen_by(self, oracle: AbstractOracle, seeds: NDArray[np.intp], noted: Host) -> dict[str, NDArray[Any]]:
        """The records of some seeds measured by this form of the oracle."""
        row: dict[str, NDArray[Any]] = {}
        lanes, weights = self._cut(seeds), self._padded(noted.weights)
        count = number(noted.reached.shape[1])
        call = lambda oracle, start, weights: note(self.observables, self.fixed, oracle, start, weights, count)  # noqa: E731
        for lane, part in zip(lanes, self._in_lanes(lanes, call, oracle, self.start, weights), strict=True):
            part = {name: value[:, : noted.reached.shape[1]] for name, value in part.items()}
            row = _put(row or _room(part, self.seeds), lane, part)
        return row

    def _padded(self, weights: Any) -> Any:
        """Weights of as many records as a chunk has."""
        return jax.tree.map(lambda leaf: _filled(leaf, self.chunk), weights)

    def _cut(self, seeds: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        return [seeds[i : i + self.lane] for i in range(0, len(seeds), self.lane)]

    def _in_lanes(
        self, lanes: list[NDArray[np.intp]], call: Callable[..., Any], oracle: AbstractOracle, *per_seed: Any
    ) -> list[Host]:
        """`call(oracle, *per_seed)` for every lane, on all cores."""

        def one(seeds: NDArray[np.intp]) -> Host:
            filled = np.concatenate([seeds, np.repeat(seeds[:1], self.lane - len(seeds))])
            everyone = len(seeds) == self.lane == self.seeds  # nothing is copied then: data may be large
            take = lambda leaf: np.asarray(leaf)[filled]  # noqa: E731
            own = jax.tree.map(take, oracle) if self.batched and not everyone else oracle
            done = call(own, *(per_seed if everyone else jax.tree.map(take, per_seed)))
            return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(seeds)], done)

        if len(lanes) < 2 or self.step.factorises:
            with one_factorisation if self.step.factorises else nullcontext():
                return [one(seeds) for seeds in lanes]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(one, lanes))

    def _driven(self, step: DrivenStep, stop: float) -> bool:
        """Let the step go on towards the next record; whether it is there, or paused so that the run may be kept."""
        moments = step.drive(self.oracle, jax.device_put(self.state.moment), float(stop))
        self.state = self.state._replace(moment=moments, steps=self.state.steps + 1)
        return bool(np.all(np.asarray(moments.clock) >= stop))

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

    def _note_events(self, forms: NDArray[np.integer]) -> None:
        """Find the times of events that have come, with the forms that made the steps in which they did."""
        new = np.asarray(self.state.fired) & np.isnan(self.event_times)
        moments: Host | None = None
        for form, oracle in enumerate(self.forms):
            lanes = self._cut(np.flatnonzero(new.any(1) & (forms == form)))
            found = self._in_lanes(
                lanes,
                lambda oracle, start, state: locate(self.step, self.fixed, oracle, start, state),
                oracle, self.start, self.state,
            )  # fmt: skip
            for seeds, part in zip(lanes, found, strict=True):
                moments = _put(moments or _room(part, self.seeds), seeds, part)
        if moments is None:
            return
        self.event_times = np.where(new, moments.time, self.event_times)
        self._rewind(new & np.asarray([event.stop for event in self.events]), moments)

    def _rewind(self, stopping: NDArray[np.bool_], moments: Moment) -> None:
        """A stopping event ends the run at its own moment, not at the end of the step around it."""
        seeds = np.flatnonzero(stopping.any(1))
        if not len(seeds):
            return
        times = np.where(stopping, np.asarray(moments.time), np.inf)
        which = times.argmin(1)
        found = jax.tree.map(lambda leaf: leaf[seeds, which[seeds]], moments)
        moment = _put(jax.tree.map(np.array, self.state.moment), seeds, found)
        crossed = self.state.crossed
        if crossed:
            crossed = crossed_by(self.fixed, self.oracle, self.start, moment, crossed)
        self.state = self.state._replace(moment=moment, crossed=crossed)

    def arrays(self) -> tuple[dict[str, Any], Arrays]:
        """All that the next chunk needs: plain values, and arrays."""
        leaves = {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.state))}
        rows = {f"row/{i}/{name}": value for i, row in enumerate(self.rows) for name, value in row.items()}
        about = {
            "position": self.position,
            "rows": len(self.rows),
            "step": self.step.memo(),
        }
        return about, {"events": self.event_times, **leaves, **rows}

    def adopt(self, about: dict[str, Any], saved: Arrays) -> None:
        """Continue from the arrays of a loop that was built in the same way."""
        self._take(*self.step.recalled(about["step"], self._ahead(self.stops[-1:])))
        leaves, structure = jax.tree.flatten(self.state)
        loaded = [saved[f"state/{i}"] for i in range(len(leaves)) if f"state/{i}" in saved]
        if [leaf.shape for leaf in loaded] != [leaf.shape for leaf in leaves]:
            raise BadInput("The checkpoint was saved by a different run; ask for that run, or move the file away.")
        self.state = jax.tree.unflatten(structure, loaded)
        self.event_times, self.position = saved["events"], about["position"]
        self.rows = [{} for _ in range(about["rows"])]
        for key in saved:
            if key.startswith("row/"):
                _, index, name = key.split("/", 2)
                self.rows[int(index)][name] = saved[key]
