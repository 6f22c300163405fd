"""Theorem 1 when d goes to infinity at fixed m and m*: the race of leading order, in which no d is left.

Multiplied by sqrt(d), the first overlaps of independent Gaussian experts become independent normal numbers: `z_ij` of
student i with teacher j, `s_ir` of students i and r. On the time scale sqrt(d) only two things happen: a student with
`z > 0` is at its teacher at `sqrt(d) / (4.5 z)`, and two students with `s < 0` are opposite at `sqrt(d) / (9 |s|)`
(`growth`). Everything else is smaller by a power of d, and what has met exerts no more force: the earliest edge takes
both of its ends out, and so on. So all times are pure numbers here, in units of sqrt(d).
"""

import functools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.stats import norm

from tutelage.papers.soft_moe.growth import Growth
from tutelage.papers.soft_moe.matching import removals
from tutelage.problem import Numbers, agreeing_signs
from tutelage.study import Size

FEW = 25
MOST = 5 * 10**6  # edges held at a time


@dataclass(frozen=True)
class Start:
    """A kind of first weights, as far as the race sees it.

    `repels`: two students whose experts point away from each other run to opposite directions and cancel, as they do
    for an odd degree. `even`: both signs of an overlap with a teacher are as good.
    """

    words: str
    repels: bool = True
    even: bool = False
    signs: str = "as drawn"


STARTS = {
    "iid": Start("iid Gaussian (Assumption 2)"),
    "signed": Start("iid, fixed output signs +1 and -1", signs="outputs"),
    "flipped": Start("iid, experts' signs flipped to agree", signs="agreeing"),
    "orthonormal": Start("orthonormal", repels=False),
    "even": Start("iid, experts of degree 4", repels=False, even=True),
}
"""The paper's start, and what may save its theorem."""


@dataclass(frozen=True)
class Limit:
    """The race of as many `draws` of a start of `students` and `teachers`.

    ```python
    >>> from tutelage.papers.soft_moe.limit import Limit
    >>> free, paper = Limit(25, 5, 1000, "orthonormal"), Limit(25, 5, 1000)
    >>> float(free.matched.mean()), bool(paper.matched.mean() < 0.2)
    (1.0, True)

    ```
    """

    students: int
    teachers: int
    draws: int
    start: str = "iid"

    @cached_property
    def _race(self) -> tuple[NDArray[np.int64], Numbers, NDArray[np.bool_]]:
        size = max(1, MOST // (self.students * (self.students + self.teachers)))
        rng = np.random.default_rng([19, self.students, self.teachers, list(STARTS).index(self.start)])
        parts = [self._some(rng, min(size, self.draws - done)) for done in range(0, self.draws, size)]
        winners, times, greedy = (np.concatenate(part) for part in zip(*parts, strict=True))
        return winners, times, greedy

    def _some(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], Numbers, NDArray[np.bool_]]:
        m, k, kind = self.students, self.teachers, STARTS[self.start]
        taught, between = rng.standard_normal((count, m, k)), np.triu(rng.standard_normal((count, m, m)), 1)
        if kind.signs != "as drawn":
            signs = self._signs(rng, between + between.swapaxes(1, 2))
            # `s He_3(w.x)` is `He_3(s w.x)`: a fixed sign of the output is a sign of the expert.
            taught, between = signs[:, :, None] * taught, signs[:, :, None] * signs[:, None] * between
        if kind.even:
            taught = np.abs(taught)
        cost = _cost(taught, between if kind.repels else np.zeros_like(between))
        student, partner, time = removals(cost, k)
        return *_by_teacher(student, partner, time, k), _in_order(taught, student, partner)

    def _signs(self, rng: np.random.Generator, between: Numbers) -> Numbers:
        if STARTS[self.start].signs == "agreeing":
            return np.array([agreeing_signs(one) for one in between])
        half = np.where(np.arange(self.students) % 2, -1.0, 1.0)
        return np.broadcast_to(half, between.shape[:2])

    @property
    def winners(self) -> NDArray[np.int64]:
        """The student of each teacher (draw, teacher), -1 if it has none."""
        return self._race[0]

    @property
    def times(self) -> Numbers:
        """When each teacher is reached, in units of sqrt(d); infinite if it never is."""
        return self._race[1]

    @property
    def matched(self) -> NDArray[np.bool_]:
        """Whether every teacher gets a student of its own, whichever and however late: an upper bound of Theorem 1."""
        return self.matched_by(math.inf)

    def matched_by(self, horizon: float) -> NDArray[np.bool_]:
        """The same before `horizon sqrt(d)`."""
        return np.all((self.times < np.inf) & (self.times <= horizon), axis=1)

    @property
    def as_greedy(self) -> NDArray[np.bool_]:
        """Whether the students and the order are those of Eq. (6)."""
        return self.matched & self._race[2]


GRID = ((1, 2, 5, 10, 25, 50, 100), (1, 2, 5))
"""Students and teachers at which the limit is looked at, where there are at least as many students."""
DRAWS: dict[Size, tuple[int, int]] = {"quick": (2000, 300), "full": (20000, 2000)}
"""Of each pair of them: up to 25 students, and more than that."""


class Limits:
    """Limits over the grid and over the starts, each made when first asked for."""

    def __init__(self, size: Size):
        self.size = size

    def at(self, students: int, teachers: int, start: str = "iid") -> Limit:
        """The limit for these numbers, the same draws each time."""
        few, many = DRAWS[self.size]
        return _limit(students, teachers, few if students <= FEW else many, start)

    @property
    def grid(self) -> list[Limit]:
        """From the paper's start, for all students and teachers of the grid."""
        return [self.at(m, k) for k in GRID[1] for m in GRID[0] if m >= k]


@functools.lru_cache(maxsize=64)
def _limit(students: int, teachers: int, draws: int, start: str) -> Limit:
    return Limit(students, teachers, draws, start)


STRONGEST = 16.0
"""A product is above half of it in one draw of 1e15."""


def one_teacher(students: int) -> float:
    """The chance that one teacher gets a student of its own, exactly: no draws.

    Edges come in the order of their strength, `z` of a teacher and `-2 s` of two students. Of products that have not
    come by strength `a` no more is known than that they are weaker. So with k students left one of them goes to the
    teacher at the rate `k phi(a)/Phi(a)`, two cancel at `k (k-1)/2 phi(a/2)/(2 Phi(a/2))`, and the chance at strength
    `a` follows from that of k - 2. For m to infinity it goes to 0.80 if m is even and to 0.81 if m is odd, where the
    last student has nobody to cancel with; `1 - exp(-int_0^inf 2 phi(2a)/Phi(-a) da) = 0.803` is that of a mean field.

    ```python
    >>> from tutelage.papers.soft_moe.limit import one_teacher
    >>> [round(one_teacher(students), 3) for students in (1, 2, 5, 100, 101)]
    [0.5, 0.5, 0.671, 0.789, 0.797]

    ```
    """
    left = np.arange(students, 0, -2)[::-1].astype(float)

    def slope(strength: float, chance: Numbers) -> Numbers:
        to_teacher = left * norm.pdf(strength) / norm.cdf(strength)
        together = left * (left - 1) / 2 * norm.pdf(strength / 2) / (2 * norm.cdf(strength / 2))
        return np.asarray(to_teacher * (1 - chance) + together * (np.append(0.0, chance[:-1]) - chance))

    found = solve_ivp(
        slope, (0, STRONGEST), np.zeros(len(left)), "LSODA", rtol=1e-8, atol=1e-10, lband=min(1, len(left) - 1), uband=0
    )
    return float(found.y[-1, -1])


def _cost(taught: Numbers, between: Numbers) -> Numbers:
    """Times of all edges (draw, m, m* + m), infinite for overlaps that shrink. See `matching.edges`."""
    force = Growth().force
    with np.errstate(divide="ignore"):
        to_teacher = np.where(taught > 0, 1 / (force * taught), np.inf)
        together = np.where(between < 0, 1 / (2 * force * np.abs(between)), np.inf)
    return np.concatenate([to_teacher, together], axis=2)


def _by_teacher(
    student: NDArray[np.integer], partner: NDArray[np.integer], time: Numbers, teachers: int
) -> tuple[NDArray[np.int64], Numbers]:
    """Winner and time of each teacher, from the edges in the order of their times."""
    winners, times = np.full((len(student), teachers), -1), np.full((len(student), teachers), np.inf)
    draw, step = np.nonzero((partner >= 0) & (partner < teachers))
    teacher = partner[draw, step]
    winners[draw, teacher], times[draw, teacher] = student[draw, step], time[draw, step]
    return winners, times


def _in_order(taught: Numbers, student: NDArray[np.integer], partner: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether teachers are reached in the order of Eq. (6), and by its students, as far as the race goes."""
    teachers = taught.shape[2]
    chosen, column, _ = removals(-taught, teachers)
    same = []
    for edges in zip(student, partner, chosen, column, strict=True):
        reached = [(i, c) for i, c in zip(*(part.tolist() for part in edges[:2]), strict=True) if 0 <= c < teachers]
        same.append(reached == list(zip(*(part.tolist() for part in edges[2:]), strict=True))[: len(reached)])
    return np.array(same)
