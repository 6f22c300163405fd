"""The four phases, and the vanilla network on the same samples, as the stages of one run."""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage.dynamics import (
    AbstractDynamics,
    DrivenStep,
    ExpertWeights,
    Learner,
    Moment,
    Prepared,
    Record,
    RoutedExperts,
    RouterSteps,
    Spherical,
    stacked,
    unstacked,
)
from tutelage.oracle import AbstractOracle, ClusterOracle, effective_rank
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import AbstractProblem, Clustered, Router, Start, Top1, Units, of_kind
from tutelage.trajectory import Handover, Stage


def plan(settings: ClusterMoeSettings, records: int) -> list[Stage]:
    """Exploration, router, experts (twice, the second time with a smaller step), second layer; then the rival."""
    s = settings
    theta = np.zeros((s.experts, s.dim))
    few = Record(records)

    def learning(name: str, samples: int, step: float, phase: int, enter: Any, router: Router | None) -> Stage:
        rows = theta if name == "explore" else None
        moves = Spherical(samples, step, rows, router, precision=s.precision, phase=phase)
        return Stage(name, moves, enter, few)

    final = stages.final_router(s)
    found = [
        learning("explore", s.explore_samples, s.explore_step, stages.EXPLORE, Explorers(s), Top1()),
        _router(s),
        learning("experts", s.samples, s.step, stages.EXPERTS, Hired(s), final),
        learning("late", s.late_samples, s.late_step, stages.LATE, None, final),
        Stage("readout", SecondLayer(s)),
    ]
    if s.vanilla_width:
        found += [
            learning("vanilla_explore", s.explore_samples, s.step, stages.EXPLORE, Vanilla(s), None),
            learning("vanilla_experts", s.samples, s.step, stages.EXPERTS, None, None),
            learning("vanilla_late", s.late_samples, s.late_step, stages.LATE, None, None),
            Stage("vanilla_readout", SecondLayer(s)),
        ]
    return found


def _router(s: ClusterMoeSettings) -> Stage:
    """Phase II, by samples; where its expectation is asked for, that is put in when experts are hired."""
    steps = RouterSteps(
        s.router_samples, s.router_steps, s.router_step, Top1(s.router_noise),
        s.average_ties and not s.router_noise, phase=stages.ROUTER, precision=s.precision,
    )  # fmt: skip
    return Stage("router", steps)


@dataclass(frozen=True)
class Explorers:
    """Phase I begins with experts that are drawn."""

    settings: ClusterMoeSettings

    def __call__(self, handover: Handover) -> Handover:
        drawn = [stages.explorers(self.settings, seed) for seed in handover.seeds]
        return handover.changed(start=stages.start(self.settings, drawn))


@dataclass(frozen=True)
class Vanilla:
    """A network without a router begins anew."""

    settings: ClusterMoeSettings

    def __call__(self, handover: Handover) -> Handover:
        drawn = [stages.vanilla(self.settings, seed) for seed in handover.seeds]
        return handover.changed(start=stages.start(self.settings, drawn))


@dataclass(frozen=True)
class Hired:
    """Phase III: experts drawn anew, or those that explored, behind the router of Phase II."""

    settings: ClusterMoeSettings

    def __call__(self, handover: Handover) -> Handover:
        routed: RoutedExperts = handover.runs["router"].final
        theta = expected(self.settings, routed) if self.settings.population_router else routed.theta
        learners = [
            stages.hired(self.settings, seed, rows, self._kept(handover, n))
            for n, (seed, rows) in enumerate(zip(handover.seeds, np.asarray(theta), strict=True))
        ]
        return handover.changed(start=stages.start(self.settings, learners))

    def _kept(self, handover: Handover, number: int) -> Learner | None:
        if self.settings.reinitialise:
            return None
        before: ExpertWeights = jax.tree.map(lambda leaf: leaf[number], handover.runs["explore"].final)
        seed = handover.seeds[number]
        return Learner(stages.data(self.settings, seed, stages.EXPERTS), before.units, before.first)


def expected(settings: ClusterMoeSettings, routed: RoutedExperts | ExpertWeights) -> NDArray[np.float64]:
    """Phase II in expectation, for every seed."""
    each = unstacked((routed.units, routed.first), len(routed.first))
    return np.stack([stages.expected(settings, units, first) for units, first in each])


class ReadExperts(eqx.Module):
    """Experts, and how good their second layer is: errors with standard errors, and by cluster; see `stages.read`."""

    first: Array
    units: Units
    theta: Array | None
    absolute: Float[Array, "*seed 2"]
    squared: Float[Array, "*seed 2"]
    absolute_by_cluster: Float[Array, "*seed cluster 2"]
    squared_by_cluster: Float[Array, "*seed cluster 2"]
    zero: Float[Array, "*seed"]
    idle: Float[Array, "*seed"]
    size: Float[Array, "*seed"]
    rank: Float[Array, "*seed expert"]


@dataclass(frozen=True)
class SecondLayer(AbstractDynamics):
    """Phase IV as a dynamics of one update: ridge regression of the second layer, and its error on fresh samples."""

    name: ClassVar[str] = "second_layer"
    revision: ClassVar[int] = 1

    settings: ClusterMoeSettings

    def prepare(self, problem: AbstractProblem, seeds: list[int], start: Start | None = None) -> Prepared:
        problem = of_kind(problem, Clustered, self.name)
        assert start is not None
        experts, count = start.student, problem.inputs.count
        lead = len(seeds)
        shapes = (lead, 2), (lead, count, 2), (lead,), (lead, experts.first.shape[1])
        two, parts, one, rank = (jax.device_put(np.zeros(shape)) for shape in shapes)
        parts_of = (experts.first, experts.units, experts.theta)
        weights = ReadExperts(*parts_of, two, two, parts, parts, one, one, one, rank)
        step = SecondLayerStep(self.settings, tuple(seeds))
        keys = np.zeros(lead, np.uint64)
        return Prepared(step, ClusterOracle(problem), False, start.teacher, weights, keys, scored=False)

    def stops(self, record: Record) -> NDArray[np.float64]:
        return np.array([1.0])

    def facts(self, problem: AbstractProblem) -> dict[str, Any]:
        return {"ridge": self.settings.ridge, "samples": self.settings.ridge_samples}


class SecondLayerStep(DrivenStep):
    """Fits all seeds; sums over samples, which are most of the work, are compiled."""

    settings: ClusterMoeSettings = eqx.field(static=True)
    seeds: tuple[int, ...] = eqx.field(static=True)

    def begin(self, oracle: AbstractOracle, weights: ReadExperts) -> Moment:
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), ())

    def drive(self, oracle: AbstractOracle, moments: Moment, stop: float) -> Moment:
        each = unstacked(moments.weights, len(self.seeds))
        done = [self._read(seed, weights) for seed, weights in zip(self.seeds, each, strict=True)]
        clock = jax.device_put(np.full(len(done), float(stop)))
        return Moment(stacked(done), clock, clock, ())

    def _read(self, seed: int, weights: ReadExperts) -> ReadExperts:
        router = None if weights.theta is None else stages.final_router(self.settings)
        data = stages.data(self.settings, seed, stages.LATE)
        learner = Learner(data, weights.units, weights.first, weights.theta, router)
        done = stages.read(self.settings, seed, learner)
        names = ("absolute", "squared", "absolute_by_cluster", "squared_by_cluster", "zero", "idle")
        numbers = [np.asarray(getattr(done.errors, name)) for name in names]
        rest = np.linalg.norm(done.readout.outgoing), effective_rank(learner.first)
        found = [np.asarray(value, float) for value in (*numbers, *rest)]
        return ReadExperts(weights.first, weights.units, weights.theta, *jax.device_put(found))
