"""Flows of the whole problem, and who recovered which teacher, when, beside who was predicted to."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import lines, mean_interval
from tutelage.dynamics import Crossings, Record
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.draws import Draws
from tutelage.papers.soft_moe.events import ANNIHILATED, CROSSINGS, RECOVERED, THEOREM
from tutelage.papers.soft_moe.growth import Growth
from tutelage.papers.soft_moe.matching import Matching, edges, generalised, greedy, race, removals
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers
from tutelage.study import Size
from tutelage.trajectory import Run

STAGE = 0.4
"""The time of the first stage, over sqrt(dim): nearly every draw's predicted recoveries are over by then."""


SEEDS: dict[Size, int] = {"quick": 10, "full": 20}
"""Of the settings' own run in the figures; the quick ones are those of the claims."""


class Race:
    """One flow of `settings` for seeds 0, 1, ..., made when first asked for; a store has it for the next."""

    def __init__(
        self,
        settings: SoftMoeSettings,
        seeds: int | tuple[int, ...],
        until: float,
        records: int = 200,
        watched: tuple[Crossings, ...] = CROSSINGS,
    ):
        self.settings, self.seeds, self.until, self.records, self.watched = settings, seeds, until, records, watched

    @cached_property
    def run(self) -> Run:
        settings = self.settings.model_copy(update={"until": self.until})
        # Closer at first: students that cancel do it early.
        times = [np.linspace(0, self.until / parts, self.records // 2 + 1) for parts in (1, 8)]
        return recipe.run(settings, seeds=self.seeds, record=Record(np.union1d(*times), crossings=self.watched))

    @property
    def count(self) -> int:
        """How many seeds there are."""
        return self.run.dataset.sizes["seed"]

    @cached_property
    def starts(self) -> list["Start"]:
        """The first overlaps of each seed."""
        first = np.asarray(self.run.start.first)
        return [Start(self.settings, rows, np.asarray(self.run.teacher.first)) for rows in first]

    @cached_property
    def times(self) -> Numbers:
        """When each teacher (seed, teacher) is first recovered by an expert; infinite if never."""
        return np.nan_to_num(self.run.expert_time.values, nan=np.inf).min(1)

    @cached_property
    def winners(self) -> NDArray[np.int64]:
        """Which student (seed, teacher) that was; -1 if none."""
        found = np.nan_to_num(self.run.expert_time.values, nan=np.inf).argmin(1)
        return np.where(np.isfinite(self.times), found, -1)

    @cached_property
    def singles(self) -> NDArray[np.int64]:
        """How many teachers have one and only one student, expert and router, at the end of each seed (Figure 1)."""
        last = [self.run.last(f"overlap_{role}").values for role in ("expert", "router")]
        return np.array([int(single(*both).sum()) for both in zip(*last, strict=True)])

    @property
    def recovered(self) -> NDArray[np.int64]:
        """How many teachers each seed recovered."""
        return np.isfinite(self.times).sum(1)

    @cached_property
    def _both(self) -> Numbers:
        """When a student (seed, student, teacher) has recovered a teacher's router and expert; infinite if never."""
        return np.nan_to_num(np.maximum(self.run.expert_time.values, self.run.router_time.values), nan=np.inf)

    @property
    def pair_times(self) -> Numbers:
        """`T_l` of Theorem 1: when one student has recovered router and expert of each teacher (seed, teacher)."""
        return self._both.min(1)

    @property
    def matching(self) -> NDArray[np.int64]:
        """Which student (seed, teacher) that was, the mapping I of Theorem 1; -1 if none."""
        return np.where(np.isfinite(self.pair_times), self._both.argmin(1), -1)

    @cached_property
    def matched(self) -> NDArray[np.bool_]:
        """Whether every teacher has been recovered, router and expert, by a student of its own."""
        own = [len(set(students)) == len(students) for students in self.matching.tolist()]
        return np.isfinite(self.pair_times).all(1) & np.array(own)

    @property
    def finish(self) -> Numbers:
        """When the last teacher is recovered by both; infinite if one never is."""
        return self.pair_times.max(1)

    @cached_property
    def as_greedy(self) -> NDArray[np.bool_]:
        """Whether every teacher was recovered by the student of Eq. (6), in the order of Eq. (6)."""
        good = []
        for start, times, winners in zip(self.starts, self.pair_times, self.matching, strict=True):
            pairs = start.greedy.pairs
            ordered = [times[pair.teacher] for pair in pairs]
            same = all(winners[pair.teacher] == pair.student for pair in pairs)
            good.append(same and len(pairs) == len(times) and bool(np.all(np.diff(ordered) >= 0)))
        return np.array(good)

    def agreement(self, predicted: str) -> NDArray[np.int64]:
        """In how many teachers the winner is that of a matching ("greedy" or "generalised"), none included."""
        teachers = self.settings.teachers
        pairs = zip(self.starts, self.winners, strict=True)
        return np.array([int(np.sum(getattr(s, predicted).winners(teachers) == w)) for s, w in pairs])

    def opposite(self, time: float = np.inf) -> NDArray[np.int64]:
        """How many disjoint pairs of students have opposite experts at the last record up to `time`.

        Students that are opposite to several are counted once: the closest to -1 first.
        """
        at = max(int(np.searchsorted(self.run.time.values, time, side="right")) - 1, 0)
        return np.array([_disjoint(one) for one in self.run.overlap_ss_expert.values[:, at]])


def single(expert: Numbers, router: Numbers) -> NDArray[np.bool_]:
    """Whether a teacher has exactly one expert above 0.9 and exactly one router, of the same student."""
    near, routed = expert > RECOVERED, router > RECOVERED
    return np.asarray((near.sum(0) == 1) & (routed.sum(0) == 1) & (near & routed).any(0))


def _disjoint(between: Numbers) -> int:
    found, between = 0, between.copy()
    while between.min() < ANNIHILATED:
        pair = np.unravel_index(between.argmin(), between.shape)
        between[list(pair)] = between[:, list(pair)] = 0.0
        found += 1
    return found


class Start:
    """The first overlaps of one seed, and what they predict."""

    def __init__(self, settings: SoftMoeSettings, rows: Numbers, teacher: Numbers):
        experts, taught = rows[settings.students :], teacher[settings.teachers :]
        self.settings, self.products = settings, experts @ taught.T
        self.norms = np.linalg.norm(experts, axis=1)
        self.cosines = self.products / np.outer(self.norms, np.linalg.norm(taught, axis=1))
        self.between = experts @ experts.T / np.outer(self.norms, self.norms)

    @property
    def _growth(self) -> Growth:
        return Growth.of(self.settings)

    @cached_property
    def greedy(self) -> Matching:
        """Eq. (6)."""
        return greedy(self.products * self.settings.importance)

    @cached_property
    def race(self) -> Matching:
        """The order of predicted times: norms and the teachers' weights enter."""
        return race(self.cosines, self.norms, alphas=self.settings.importance, growth=self._growth)

    @cached_property
    def generalised(self) -> Matching:
        """The same with students that cancel each other."""
        return generalised(self.cosines, self.between, self.norms, alphas=self.settings.importance, growth=self._growth)


LARGE = 10**10
"""The dim in which Theorem 1 is looked at: its bounds say something there. That of the settings if it is larger."""
LARGE_SEEDS: dict[Size, dict[str, int]] = {
    "quick": {"iid": 4, "orthonormal": 4},
    "full": {"iid": 90, "orthonormal": 110},
}
"""50 without a failure decide that a probability is at least 6/7; some clauses fail in some per cent of the starts, and
not all of the iid ones recover two teachers."""
FINISHED: dict[Size, int] = {"quick": 2, "full": 50}
CANDIDATES: dict[Size, int] = {"quick": 400, "full": 1500}
"""Starts among which those of `finished` are looked for: about one of 28 is one."""


def large(settings: SoftMoeSettings, size: Size, init: str) -> Race:
    """The first stage of Theorem 1 in a large dim, which claims and figures look at together."""
    return stage(settings, LARGE_SEEDS[size][init], dim=max(settings.dim, LARGE), init=init)


def finished(settings: SoftMoeSettings, size: Size) -> Race | None:
    """The same from the first iid starts that are predicted to recover all teachers; None if there are none."""
    chosen = SoftMoeSettings(**settings.model_dump() | {"dim": max(settings.dim, LARGE), "init": "iid", "until": None})
    draws = Draws(chosen, CANDIDATES[size])
    cosines = draws.overlap_expert, draws.overlap_ss_expert
    _, partner, time = removals(
        edges(*cosines, draws.norm_expert, chosen.importance, Growth.of(chosen)), chosen.teachers
    )
    come = (partner >= 0) & (partner < chosen.teachers) & (time <= STAGE * math.sqrt(chosen.dim))
    seeds = tuple(np.flatnonzero(come.sum(1) == chosen.teachers)[: FINISHED[size]].tolist())
    return stage(settings, seeds, dim=chosen.dim, init="iid") if seeds else None


def stage(settings: SoftMoeSettings, seeds: int | tuple[int, ...], *, dim: int | None = None, **values: Any) -> Race:
    """The first stage of Theorem 1, to 0.4 sqrt(dim)."""
    chosen = SoftMoeSettings(**settings.model_dump() | values | {"dim": dim or settings.dim, "until": None})
    return Race(chosen, seeds, STAGE * math.sqrt(chosen.dim) + 10, records=120, watched=THEOREM)


SWEEPS: dict[Size, tuple[tuple[int, ...], int]] = {
    "quick": ((10**2, 10**4, 10**6), 3),
    "full": (tuple(10**n for n in range(2, 9)), 6),
}
"""Dims, and the number of seeds."""


def swept(settings: SoftMoeSettings, size: Size) -> "Sweep":
    """The sweep over dims from orthonormal starts that a figure and a claim look at together."""
    dims, seeds = SWEEPS[size]
    first = SoftMoeSettings(**settings.model_dump() | {"init": "orthonormal", "dim": dims[0], "until": None})
    return Sweep.of(first, dims, seeds)


@dataclass(frozen=True)
class Sweep:
    """The first recovery from the same seeds in many dimensions: times (dim, seed), observed and predicted.

    An observed time is infinite if it did not come in time.
    """

    dims: tuple[int, ...]
    times: Numbers
    predicted: Numbers

    @classmethod
    def of(cls, settings: SoftMoeSettings, dims: tuple[int, ...], seeds: int) -> "Sweep":
        cells = np.array([[_first(settings, dim, seed) for seed in range(seeds)] for dim in dims])
        return cls(dims, cells[..., 0], cells[..., 1])

    @property
    def seeds(self) -> int:
        return self.times.shape[1]

    def beyond(self, least: int) -> "Sweep":
        """The part of it in dims from `least` up."""
        kept = [number for number, dim in enumerate(self.dims) if dim >= least]
        return Sweep(tuple(self.dims[number] for number in kept), self.times[kept], self.predicted[kept])

    @cached_property
    def exponent(self) -> lines.Estimate:
        """Of the time in dim: the mean of the seeds' exponents, with its 99 % interval; nan if a time did not come.

        Seeds are the same in all dims, each with a level of its own, so that a seed has an exponent of its own.
        """
        with np.errstate(invalid="ignore"):
            each = lines.exponent(self.dims, self.times)
        return lines.Estimate(float(each.mean()), mean_interval(each, level=0.99))


def _first(settings: SoftMoeSettings, dim: int, seed: int) -> tuple[float, float]:
    """When the first pair is recovered, observed and predicted."""
    at = SoftMoeSettings(**settings.model_dump() | {"dim": dim, "until": None})
    start = recipe.problem(at).begin(seed)
    predicted = Start(at, np.asarray(start.student.first), np.asarray(start.teacher.first)).race.pairs[0].time
    # The prediction is right to some per cent, so that nothing is run for long after it.
    return float(Race(at, (seed,), 1.5 * predicted + 5, records=2).times.min()), predicted
