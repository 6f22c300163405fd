"""From what was asked to a finished run: one loop, or one after another; checkpointed and resumed as one."""

import dataclasses
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from tutelage._errors import BadInput
from tutelage._interrupt import Interrupted, stop_asked
from tutelage.dynamics.base import AbstractDynamics, Prepared
from tutelage.dynamics.checkpoint import Arrays, Checkpoint, Kept
from tutelage.dynamics.compiled import number
from tutelage.dynamics.driver import Loop, Progress
from tutelage.dynamics.loop import Limits
from tutelage.dynamics.record import Observable, Record
from tutelage.dynamics.room import hold, of_records
from tutelage.problem.problem import Problem, Start
from tutelage.trajectory.asked import Asked, Handover, Stage
from tutelage.trajectory.dataset import to_dataset
from tutelage.trajectory.joining import joined
from tutelage.trajectory.observables import chosen
from tutelage.trajectory.result import Run


def perform(asked: Asked, *, progress: Progress | None = None, checkpoint: Checkpoint | None = None) -> Run:
    """Compute the run, from where the checkpoint is if there is one."""
    began = time.perf_counter()
    training = Training(asked)
    if checkpoint:
        checkpoint.resume(training)
    training.finish(progress, checkpoint)
    if checkpoint:
        checkpoint.ended(training)
    return training.result(time.perf_counter() - began)


def again(run: Run, *, record: dict[str, Any] | None = None, seeds: Sequence[int] | None = None, **changes: Any) -> Run:
    """The same run with other fields of its dynamics, or of what it records; or some of its seeds."""
    asked = run.asked
    if asked is None or not isinstance(asked.plan, AbstractDynamics):
        raise BadInput("Only a run of one dynamics whose problem is known can be run again with changes.")
    # The dynamics are dataclasses; that their base is not keeps it an interface.
    plan = dataclasses.replace(asked.plan, **changes)  # type: ignore[type-var]
    recorded = dataclasses.replace(asked.record, **(record or {}))
    new = dataclasses.replace(asked, plan=plan, record=recorded, seeds=asked.seeds if seeds is None else tuple(seeds))
    return perform(new)


class Running:
    """One stage in progress: its loop, and what is needed to make a Dataset of it."""

    def __init__(self, asked: Asked, stage: Stage, handover: Handover):
        self.asked, self.stage, self.handover, self.seeds = asked, stage, handover, handover.seeds
        problem, dynamics = handover.problem, stage.dynamics
        self.record, stop = (stage.record or Record()).over(asked.record), stage.stop or asked.stop
        room, stops = dynamics.room(problem, len(self.seeds)), dynamics.stops(self.record)
        hold(room)
        self.prepared: Prepared = dynamics.prepare(problem, list(self.seeds), handover.start)
        self.measured: tuple[Observable, ...] = chosen(problem, self.record, self.prepared.start)
        hold(room | of_records(self.prepared, self.measured, len(stops)))
        still = dynamics.still if stop.gradient is None else stop.gradient
        scored = self.prepared.scored
        self.loop = Loop(
            self.prepared,
            stops=stops,
            observables=tuple((each.name, each.measure) for each in self.measured),
            limits=Limits(
                number(float(stop.loss)) if scored and stop.loss > 0 else None,
                number(float(still)) if scored else None,
                number(dynamics.most if stop.steps is None else stop.steps),
            ),
            record=self.record,
        )

    def by_work(self, progress: Progress) -> Progress:
        """Progress in updates, where there are any: records are seldom evenly spaced, and work goes with updates."""
        end = int(self.loop.stops[-1])
        if end < 1 or not self.stage.dynamics.counted:
            return progress

        def told(label: str, done: int, total: int) -> None:
            clock = int(np.max(np.asarray(self.loop.state.moment.clock)))
            progress(label, end if done == total else min(clock, end), end)

        return told

    @property
    def end(self) -> Start:
        """Where it left its students, beside the teacher."""
        return Start(self.prepared.teacher, self.loop.weights)

    def dataset(self) -> xr.Dataset:
        """Records, events and why each seed stopped."""
        loop, rows = self.loop, self.loop.records()
        count = rows["_time"].shape[1]
        times = np.where(rows["_reached"], rows["_time"], -np.inf).max(0)
        problem, dynamics = self.handover.problem, self.stage.dynamics
        about: dict[str, Any] = {"dim": problem.inputs.dim, "noise": float(problem.noise)}
        if isinstance(problem, Problem) and problem.penalty is not None:
            about["penalty"] = dataclasses.asdict(problem.penalty)
        settings = {"dynamics": dynamics.name, **dynamics.facts(problem), **about, **loop.step.memo()}
        return to_dataset(
            rows, self.measured, seeds=np.asarray(self.seeds), clock=loop.stops[:count], time=times,
            extra=self._extra(rows), settings=settings, asked=self.asked.described,
        )  # fmt: skip

    def _extra(self, rows: Arrays) -> dict[str, xr.Variable]:
        loop = self.loop
        extra = {
            "stopped": xr.Variable("seed", [reason.name.lower() for reason in loop.final_reasons()]),
            "stop_time": xr.Variable(
                "seed", np.asarray(loop.state.moment.time), {"long_name": "time at which the run ended"}
            ),
            "recorded": xr.Variable("seed", rows["_reached"].sum(1), {"long_name": "number of recorded times"}),
            "solver_steps": xr.Variable("seed", np.asarray(loop.state.steps), {"long_name": "steps taken"}),
        }
        if loop.events:
            extra["event_time"] = xr.Variable(("seed", "event"), loop.event_times, {"long_name": "time of the event"})
            extra["event"] = xr.Variable("event", [event.name for event in loop.events])
        for crossing, crossed in zip(loop.crossings, loop.state.crossed, strict=True):
            about = {"long_name": crossing.long_name or f"time of {crossing.name}"}
            extra[crossing.name] = xr.Variable(("seed", *crossing.dims), np.asarray(crossed), about)
        return extra


class Training(Kept):
    """A run in progress, of one stage or of several."""

    def __init__(self, asked: Asked):
        self.asked = asked
        self.stages = asked.plan if isinstance(asked.plan, tuple) else (Stage("", asked.plan),)
        self.done: list[Running] = []
        self.runs: dict[str, Run] = {}
        self.current = self._entered()

    @cached_property
    def identity(self) -> str:  # type: ignore[override]
        """Of what was asked. Found out when a checkpoint needs it: a run that is not kept may be of anything."""
        return self.asked.identity

    def _entered(self) -> Running:
        """The next stage, from where the last one ended."""
        stage, last = self.stages[len(self.done)], self.done[-1] if self.done else None
        problem = last.handover.problem if last else self.asked.problem
        handover = Handover(problem, self.asked.seeds, last.end if last else self.asked.start, dict(self.runs))
        return Running(self.asked, stage, stage.entered(handover))

    def finish(self, progress: Progress | None, checkpoint: Checkpoint | None) -> None:
        """Run all stages that are left."""
        staged = isinstance(self.asked.plan, tuple)
        while True:
            told = self.current.by_work(progress) if progress else None
            self.current.loop.follow(told, self._label, checkpoint, self, last=self._last)
            if self._last:
                return
            self._over()
            if staged and checkpoint:
                checkpoint.between(self)
            if stop_asked():
                raise Interrupted

    @property
    def _label(self) -> str:
        """What is in hand, and which part it is."""
        name = self.current.stage.name or self.asked.label
        return name if len(self.stages) == 1 else f"{name}, {len(self.done) + 1} of {len(self.stages)}"

    @property
    def _last(self) -> bool:
        return len(self.done) + 1 == len(self.stages)

    def _over(self) -> None:
        self.done.append(self.current)
        self.runs[self.current.stage.name] = self._stage_run(self.current)
        self.current = self._entered()

    def _stage_run(self, stage: Running) -> Run:
        return Run(stage.dataset(), 0.0, ends=(stage.prepared, stage.loop.weights))

    def result(self, seconds: float) -> Run:
        """The finished run."""
        last = self._stage_run(self.current)
        if not isinstance(self.asked.plan, tuple):
            return dataclasses.replace(last, seconds=seconds, asked=self.asked)
        stages = self.runs | {self.current.stage.name: last}
        whole = joined({name: run.dataset for name, run in stages.items()}, self.asked.described)
        return dataclasses.replace(last, dataset=whole, seconds=seconds, asked=self.asked, stages=stages)

    def arrays(self) -> tuple[dict[str, Any], Arrays]:
        """Of all stages that were begun."""
        parts = [stage.loop.arrays() for stage in (*self.done, self.current)]
        arrays = {f"{n}/{name}": value for n, (_, part) in enumerate(parts) for name, value in part.items()}
        return {"stages": [about for about, _ in parts]}, arrays

    def adopt(self, about: dict[str, Any], saved: Arrays) -> None:
        """Go on from there: each stage begins from the end of the one before, as it did the first time."""
        for n, part in enumerate(about["stages"]):
            prefix = f"{n}/"
            mine = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
            self.current.loop.adopt(part, mine)
            if n + 1 < len(about["stages"]):
                self._over()
