"""The four phases and the vanilla network, stage after stage, of several seeds: checkpointed and resumable."""

from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage._interrupt import Interrupted, stop_asked
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Progress
from tutelage.dynamics.spherical import SEGMENT, Course, Learner, read_state, write_state
from tutelage.oracle.routing import effective_rank
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.trajectory.spherical import watched

LABELS = {
    "explore": "Phase I, exploration",
    "router": "Phase II, router",
    "experts": "Phase III, experts",
    "late": "Phase III, smaller step",
    "readout": "Phase IV, second layer",
    "vanilla_explore": "vanilla network",
    "vanilla_experts": "vanilla network",
    "vanilla_late": "vanilla network, smaller step",
    "vanilla_readout": "vanilla network, second layer",
}

PARTS = 1000
"""Of the work of a run, in which progress is told."""


class Pipeline:
    """A whole run in progress. `found` has the arrays of finished stages, "stage/name", with a leading seed axis."""

    def __init__(self, settings: ClusterMoeSettings, seeds: list[int], *, records: int = 48, identity: str = ""):
        self.settings, self.seeds, self.records, self.identity = settings, seeds, records, identity
        self.found: dict[str, NDArray] = {}
        self.plan = [name for name in LABELS if settings.vanilla_width or not name.startswith("vanilla")]
        self.stage = 0
        self.course: Course | None = None

    def finish(self, progress: Progress | None = None, kept: Checkpoint | None = None) -> None:
        """Run all stages that are left."""
        while self.stage < len(self.plan):
            name = self.plan[self.stage]
            make = getattr(self, f"_begin_{name}", None)
            if make:
                self.course = self.course or make()
                self._follow(self.course, name, progress, kept)
                self._keep_course(name, self.course)
            else:
                self._tell(progress, name, 0)
                getattr(self, f"_do_{name}")()
            self.stage, self.course = self.stage + 1, None
            self._between(kept)

    def _follow(self, course: Course, name: str, progress: Progress | None, kept: Checkpoint | None) -> None:
        while not course.over:
            self._tell(progress, name, course.position)
            course.advance()
            self._between(kept)

    def _between(self, kept: Checkpoint | None) -> None:
        if kept:
            kept.between(self)
        if stop_asked() and self.stage < len(self.plan):
            raise Interrupted(f"stopped in {LABELS[self.plan[self.stage]]}")

    def _tell(self, progress: Progress | None, name: str, within: int) -> None:
        if progress:
            before = sum(self._work(each) for each in self.plan[: self.stage])
            total = sum(self._work(each) for each in self.plan)
            done = before + self._work(name) * within // self._samples(name)
            progress(LABELS[name], PARTS * done // total, PARTS)

    def _work(self, name: str) -> int:
        """How long a stage takes, roughly: samples times the neurons that see one, and something for its drawing."""
        s = self.settings
        if name.startswith("vanilla"):
            seen = s.vanilla_width
        else:
            seen = s.explore_width if name in ("explore", "router") else s.width * max(1, s.experts // s.clusters)
        return self._samples(name) * (20 + seen)

    def _samples(self, name: str) -> int:
        """How many samples a stage has."""
        s = self.settings
        return {
            "explore": s.explore_samples,
            "router": s.router_samples * s.router_steps,
            "experts": s.samples,
            "late": s.late_samples,
        }.get(name.removeprefix("vanilla_"), s.ridge_samples + s.test_samples)

    # Stages that learn: each begins a course.

    def _begin_explore(self) -> Course:
        return self._course("explore", self._each(stages.explorers), self.settings.explore_step)

    def _begin_experts(self) -> Course:
        return self._course("experts", self._hired(), self.settings.step)

    def _begin_late(self) -> Course:
        learners = self._moved(self._hired(), "experts", stages.LATE)
        return self._course("late", learners, self.settings.late_step)

    def _begin_vanilla_explore(self) -> Course:
        return self._course("vanilla_explore", self._each(stages.vanilla), self.settings.step)

    def _begin_vanilla_experts(self) -> Course:
        learners = self._moved(self._each(stages.vanilla), "vanilla_explore", stages.EXPERTS)
        return self._course("vanilla_experts", learners, self.settings.step)

    def _begin_vanilla_late(self) -> Course:
        learners = self._moved(self._each(stages.vanilla), "vanilla_experts", stages.LATE)
        return self._course("vanilla_late", learners, self.settings.late_step)

    # Stages that do not: each fills in what it finds.

    def _do_router(self) -> None:
        s = self.settings
        explorers = self._moved(self._each(stages.explorers), "explore", stages.EXPLORE)
        exact = [stages.expected(s, each.units, each.first) for each in explorers]
        self.found["router/expected"] = np.stack(exact)
        if s.population_router:
            self.found["router/theta"] = np.stack(exact)
            return
        done = [
            stages.routed(s, seed, each.units, each.first) for seed, each in zip(self.seeds, explorers, strict=True)
        ]
        self.found["router/theta"] = np.stack([each.theta for each in done])
        for name in ("steps", "counts", "entropy"):
            self.found[f"router/{name}"] = np.stack([getattr(each, name) for each in done])

    def _do_readout(self) -> None:
        self._read("readout", self._moved(self._hired(), "late", stages.LATE))

    def _do_vanilla_readout(self) -> None:
        self._read("vanilla_readout", self._moved(self._each(stages.vanilla), "vanilla_late", stages.LATE))

    def _read(self, name: str, learners: list[Learner]) -> None:
        done = [stages.read(self.settings, seed, each) for seed, each in zip(self.seeds, learners, strict=True)]
        for measure in ("absolute", "squared"):
            self.found[f"{name}/{measure}"] = np.array([getattr(each.errors, measure) for each in done])
            by_cluster = [getattr(each.errors, f"{measure}_by_cluster") for each in done]
            self.found[f"{name}/{measure}_by_cluster"] = np.array(by_cluster)
        self.found[f"{name}/zero"] = np.array([each.errors.zero for each in done])
        self.found[f"{name}/idle"] = np.array([each.errors.idle for each in done])
        self.found[f"{name}/size"] = np.array([np.linalg.norm(each.readout.outgoing) for each in done])
        self.found[f"{name}/rank"] = np.stack([effective_rank(each.first) for each in learners])

    def _hired(self) -> list[Learner]:
        theta = self.found["router/theta"]
        kept: list[Learner | None] = [None] * len(self.seeds)
        if not self.settings.reinitialise:
            kept = list(self._moved(self._each(stages.explorers), "explore", stages.EXPERTS))
        return [
            stages.hired(self.settings, seed, own, before)
            for seed, own, before in zip(self.seeds, theta, kept, strict=True)
        ]

    def _each(self, make: Callable[[ClusterMoeSettings, int], Learner]) -> list[Learner]:
        return [make(self.settings, seed) for seed in self.seeds]

    def _moved(self, learners: list[Learner], stage: str, phase: int) -> list[Learner]:
        """Learners where a stage left them, on the samples of a phase."""
        return [
            eqx.tree_at(
                lambda each: each.first,
                stages.onwards(learner, self.settings, seed, phase),
                jnp.asarray(first, self.settings.precision),
            )
            for learner, seed, first in zip(learners, self.seeds, self.found[f"{stage}/first"], strict=True)
        ]

    def _course(self, name: str, learners: list[Learner], step: float) -> Course:
        samples = self._samples(name)
        stops = np.geomspace(SEGMENT, max(samples, 2 * SEGMENT), self.records)
        width = learners[0].first.shape[1]
        return Course(
            learners, stages.rule(self.settings, step, width), samples, stops, watched(self.settings.problem())
        )

    def _keep_course(self, name: str, course: Course) -> None:
        self.found[f"{name}/first"] = np.stack([np.asarray(each.first) for each in course.learners])
        self.found[f"{name}/outgoing"] = np.stack([np.asarray(each.units.outgoing) for each in course.learners])
        self.found[f"{name}/time"] = course.stops
        self.found |= {f"{name}/{key}": value for key, value in course.records().items()}

    def save(self, path: str | Path) -> None:
        """Write the whole state (plain arrays, nothing pickled)."""
        course = {f"course/{name}": value for name, value in (self.course.state() if self.course else {}).items()}
        found = {f"found/{name}": value for name, value in self.found.items()}
        write_state(path, self.identity, {"stage": np.asarray(self.stage), **found, **course})

    def restore(self, path: str | Path) -> None:
        """Continue from a saved state of a pipeline that was built in the same way."""
        state = read_state(path, self.identity)
        self.stage = int(state["stage"])
        self.found = _within(state, "found/")
        course = _within(state, "course/")
        self.course = None
        if course:
            self.course = getattr(self, f"_begin_{self.plan[self.stage]}")()
            self.course.adopt(course)


def _within(state: dict[str, NDArray], prefix: str) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
