"""The induction behind Theorem 1 along exact flows: Definition 1's errors, Conditions 1 and 2, and T_c of (14).

Levels count from 1: at level l the pair `(i_l, j_l)` of Eq. (6) is the next to be learned, and `R_(l-1)` holds the
students of the pairs before it.
"""

import functools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tutelage import flow
from tutelage.dynamics import Record
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.exact import Exact
from tutelage.papers.soft_moe.gaps import gaps
from tutelage.papers.soft_moe.races import Start
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers
from tutelage.study import Size
from tutelage.trajectory import Run

DELTA = 1 / 7
"""delta_P: Theorem 1 asks for less, so that a bound that holds with it has the widest choice."""
BETA_6 = 2.0
"""Of (14). Orthonormal starts need 1.5 in its third condition."""
SPREAD = 4.0
"""beta_3 of Condition 1: squared overlaps are at most `beta_3 log(m / delta_P) / d`."""
AFTER = 20.0
"""beta_8 of Lemmas 11 and 13, "any constant": a router is recovered about 6 after its expert."""
LOG = 5.0
"""Of `O(log d)` in Lemmas 16 and 17: a router that closes in at the rate 0.538 is then within d^-2.7."""
UNTIL = 0.3
"""The end of a run over sqrt(d): what Condition 1's lower bound allows is recovered by 0.27."""
TEACHERS, STUDENTS = 2, 8
"""`m^2 / (delta_P sqrt(d))` must be small at a d that can be run: 0.014 at 1e9, where the paper's m = 25 has 0.14."""
DIMS: dict[Size, tuple[int, ...]] = {"quick": (10**7, 10**9), "full": (10**7, 10**8, 10**9)}
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}
"""Of starts that meet Condition 1, the first of `DRAWN`."""
DRAWN = 60
RTOL = 1e-10  # `v_i.w_i` is of the size of a cubed overlap
RECORDS, NEAR = 151, 16
"""Records over the whole run, and from each recovery to the end of the windows behind it."""
FORCES = 12  # records up to T_c at which forces are looked at


Init = Literal["iid", "orthonormal"]


@dataclass(frozen=True)
class Seen:
    """All overlaps of one seed (time, ...), in the paper's letters (Eq. 9)."""

    gamma1: Numbers
    gamma2: Numbers
    zeta1: Numbers
    zeta2: Numbers
    i1: Numbers
    i2: Numbers
    i3: Numbers

    @classmethod
    def of(cls, rows: Numbers, teacher: Numbers) -> "Seen":
        """From the rows (time, 2m, frame) of routers and experts and those of the teachers, which are orthonormal."""
        v, w = np.split(rows / np.linalg.norm(rows, axis=-1, keepdims=True), 2, axis=1)
        taught_v, taught_w = np.split(teacher, 2)
        among = [left @ right.swapaxes(1, 2) for left, right in ((v, v), (w, w), (v, w))]
        return cls(v @ taught_v.T, w @ taught_w.T, v @ taught_w.T, w @ taught_v.T, *among)


@dataclass(frozen=True)
class Errors:
    """Definition 1 at one level, each at every record; `sum_1` and `sum_2` are the largest so far."""

    one: Numbers
    two: Numbers
    three: Numbers
    four: Numbers
    five: Numbers
    forward: Numbers
    among: Numbers
    backward_1: Numbers
    backward_2: Numbers
    backward_3: Numbers
    sum_1: Numbers
    sum_2: Numbers


def errors(seen: Seen, pairs: list[tuple[int, int]], level: int) -> Errors:
    """Definition 1; `among` is its eps_(B,2), the overlaps of students with each other."""
    students, teachers = np.arange(seen.gamma1.shape[1]), np.arange(seen.gamma1.shape[2])
    before, (own, target) = pairs[: level - 1], pairs[level - 1]
    left = np.setdiff1d(students, [i for i, _ in before])
    unused, others = np.setdiff1d(left, own), np.setdiff1d(teachers, target)
    apart = ~np.eye(len(students), dtype=bool)
    own_3 = np.abs(np.diagonal(seen.i3, axis1=1, axis2=2))

    one, three = (largest(table[:, unused]) for table in (seen.gamma1, seen.gamma2))
    two, four = (largest(table[:, own, others]) for table in (seen.gamma1, seen.gamma2))
    zetas = (seen.zeta1, seen.zeta2)
    off = [table[:, i, np.setdiff1d(teachers, j)] for table in (seen.gamma1, seen.gamma2) for i, j in pairs[:level]]
    learned = [table[:, [i for i, _ in before]] for table in zetas]
    forward = np.max([largest(part) for part in (*off, *learned)], axis=0)
    among = np.max([largest(table[:, apart]) for table in (seen.i1, seen.i2, seen.i3)], axis=0)
    backward_1 = np.max([*(largest(table[:, left]) for table in zetas), among, two], axis=0)
    backward_2 = np.maximum(backward_1, one)
    sum_1 = np.maximum.accumulate(np.max([four, backward_1, forward], axis=0))
    sum_2 = np.maximum.accumulate(np.max([sum_1, one, three], axis=0))
    backward_3 = largest(own_3[:, unused])
    five = own_3[:, own]
    return Errors(one, two, three, four, five, forward, among, backward_1, backward_2, backward_3, sum_1, sum_2)


def largest(part: Numbers) -> Numbers:
    """The largest size at each time; 0 of nothing."""
    return np.max(np.abs(part.reshape(len(part), -1)), axis=1, initial=0.0)


@dataclass(frozen=True, eq=False)
class Course:
    """One seed's flow at its records: `rows` (time, 2m, frame), and when each student reached 0.9 with each teacher."""

    settings: SoftMoeSettings
    time: Numbers
    rows: Numbers
    teacher: Numbers
    expert_time: Numbers
    router_time: Numbers
    seed: int = 0

    @cached_property
    def seen(self) -> Seen:
        """All overlaps."""
        return Seen.of(self.rows, self.teacher)

    @cached_property
    def start(self) -> Start:
        """The first overlaps, and what they predict."""
        return Start(self.settings, self.rows[0], self.teacher)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Those of Eq. (6), in its order."""
        return [(pair.student, pair.teacher) for pair in self.start.greedy.pairs]

    @property
    def levels(self) -> range:
        """1, 2, ..., m*."""
        return range(1, len(self.pairs) + 1)

    @cached_property
    def _errors(self) -> list[Errors]:
        return [errors(self.seen, self.pairs, level) for level in self.levels]

    def errors(self, level: int) -> Errors:
        """Definition 1 at this level."""
        return self._errors[level - 1]

    @property
    def bound(self) -> float:
        """`m^2 / (delta_P sqrt(d))`, the size that errors keep in every lemma."""
        return self.settings.students**2 / (DELTA * math.sqrt(self.settings.dim))

    @property
    def near(self) -> float:
        """`m^7 / (delta_P^3 d^(3/2))`, the error of what is learned."""
        return self.settings.students**7 / (DELTA**3 * self.settings.dim**1.5)

    def own(self, level: int) -> tuple[Numbers, Numbers]:
        """gamma1 and gamma2 of the pair of this level."""
        at = (slice(None), *self.pairs[level - 1])
        return self.seen.gamma1[at], self.seen.gamma2[at]

    def recovery(self, level: int) -> float:
        """`T_(r,l)` of Definition 2: when gamma2 of the pair reaches 0.9; infinite if it did not."""
        return _finite(self.expert_time[self.pairs[level - 1]])

    def both(self, level: int) -> float:
        """T_1 of Lemma 13: when gamma1 has reached it, too."""
        return max(self.recovery(level), _finite(self.router_time[self.pairs[level - 1]]))

    def crossed(self, level: int) -> dict[str, float]:
        """When each part of (14) is first true: the quantities of A_1 one by one, A_2 and A_3; infinite if never."""
        found, gamma2 = self.errors(level), self.own(level)[1]
        cube = self.settings.students * found.sum_2**3
        parts = {
            "eps_B": found.backward_2 > BETA_6 * self.bound,
            "eps_3": found.three > BETA_6 * self.bound,
            "eps_4": found.four > BETA_6 * self.bound,
            "A_2": found.backward_3 >= BETA_6 * cube,
            "A_3": found.five >= BETA_6 * (cube + found.backward_1 * gamma2**2),
        }
        return {name: first(self.time, flags) for name, flags in parts.items()}

    def t_c(self, level: int) -> float:
        """T_c as the proofs use it: the first time at which any error is too large."""
        return min(self.crossed(level).values())

    def printed_t_c(self, level: int) -> float:
        """T_c as printed: the first time at which the least of eps_B, eps_3, eps_4 is too large, with A_2 and A_3."""
        found, gamma2 = self.errors(level), self.own(level)[1]
        cube = self.settings.students * found.sum_2**3
        least = np.min([found.backward_2, found.three, found.four], axis=0)
        flags = (least > BETA_6 * self.bound) & (found.backward_3 >= BETA_6 * cube)
        return first(self.time, flags & (found.five >= BETA_6 * (cube + found.backward_1 * gamma2**2)))

    def until(self, end: float) -> NDArray[np.bool_]:
        """Which records lie in `[0, end]`."""
        return self.time <= end

    @cached_property
    def velocity(self) -> tuple[NDArray[np.intp], Numbers]:
        """Some records up to T_c of the first level, and `d I2/dt` (record, m, m) there by the exact gradient."""
        chosen = np.flatnonzero(self.until(self.t_c(1)))
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, FORCES).astype(int))]
        exact = Exact(Constants.of(), len(self.pairs), self.rows.shape[-1])
        return chosen, np.stack([turning(exact, self.rows[at]) for at in chosen])


def turning(exact: Exact, rows: Numbers) -> Numbers:
    """`d I2/dt` (m, m): gradients are orthogonal to their rows, so `d w_i / |w_i| = -gradient / |w_i|`."""
    slope, (_, experts) = np.split(exact.gradient(rows), 2)[1], np.split(rows, 2)
    norms = np.linalg.norm(experts, axis=1)
    one = -(slope / norms[:, None]) @ (experts / norms[:, None]).T
    return one + one.T


def first(time: Numbers, flags: NDArray[np.bool_]) -> float:
    """The first time at which a flag is up; infinite if never."""
    return float(time[np.argmax(flags)]) if flags.any() else math.inf


def _finite(time: float) -> float:
    return float(np.nan_to_num(time, nan=math.inf))


def condition_1(settings: SoftMoeSettings, rows: Numbers, teacher: Numbers) -> bool:
    """Whether a start meets Condition 1 with beta_1 = beta_2 = 1, beta_3 = `SPREAD`: gaps, norms, small overlaps."""
    seen, step = Seen.of(rows[None], teacher), DELTA / (settings.students * settings.teachers)
    found = gaps(Start(settings, rows, teacher).products[None])
    clear = found.worst("all")[0] >= 2 * step
    high = np.min(found.chosen) >= math.sqrt(math.log(settings.teachers) / settings.dim)
    alike = np.max(np.abs(np.linalg.norm(rows, axis=1) ** 2 - 1)) <= step
    apart = ~np.eye(settings.students, dtype=bool)
    parts = [*(part[0][apart] for part in (seen.i1, seen.i2, seen.i3))]
    parts += [part[0] for part in (seen.gamma1, seen.gamma2, seen.zeta1, seen.zeta2)]
    most = max(float(np.max(np.abs(part))) for part in parts)
    small = most**2 <= SPREAD * math.log(settings.students / DELTA) / settings.dim
    return bool(clear and high and alike and small)


def good_seeds(settings: SoftMoeSettings, count: int) -> tuple[int, ...]:
    """The first seeds whose start meets Condition 1, at most `count` of them."""
    problem, found = recipe.problem(settings), []
    for seed in range(DRAWN):
        begun = problem.begin(seed)
        if condition_1(settings, np.asarray(begun.student.first), np.asarray(begun.teacher.first)):
            found.append(seed)
    return tuple(found[:count])


@functools.lru_cache(maxsize=16)
def courses(init: Init, dim: int, count: int) -> tuple[Course, ...]:
    """Flows from starts that meet Condition 1: run once for times of recovery, again with records behind these."""
    settings = SoftMoeSettings(teachers=TEACHERS, students=STUDENTS, dim=dim, init=init)
    seeds, until = good_seeds(settings, count), UNTIL * math.sqrt(dim) + 100

    def run(at: Numbers, rtol: float, weights: bool = False) -> Run:
        record = Record(at, observables=("loss",), crossings=CROSSINGS[:2], events=(), weights=weights)
        return flow(recipe.problem(settings), until=until, seeds=seeds, rtol=rtol, record=record)

    met = run(np.array([0.0, until]), 1e-7).expert_time.values
    met = np.unique(met[np.isfinite(met)])
    behind = np.concatenate([[0.0, 1.0, 2.0, 4.0, 6.0], np.linspace(8, LOG * math.log(dim) + 10, NEAR - 5)])
    times = np.union1d(np.linspace(0, until, RECORDS), (met[:, None] + behind).ravel())
    found = run(times[times <= until], RTOL, weights=True)
    data, teacher = found.dataset, np.asarray(found.teacher.first)
    names = ("recorded", "weights_first", "expert_time", "router_time", "seed")
    parts = zip(*(data[name].values.tolist() if name == "seed" else data[name].values for name in names), strict=True)
    time = data["time"].values
    # A flow that has come to rest ends early.
    return tuple(Course(settings, time[:last], rows[:last], teacher, *crossed) for last, rows, *crossed in parts)
