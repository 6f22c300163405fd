"""Who learns whom: greedy matchings of students and teachers, predicted from the start.

- `greedy`: the paper's Eq. (6), on inner products `w_i(0).w*_j` that are not divided by norms.
- `race`: the same by predicted times, so that norms and the teachers' weights count.
- `generalised`: the race with edges between students as well, which for an odd degree cancel each other in pairs.

Ties go to the lower student, then to the lower partner, teachers first.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.papers.soft_moe.growth import Growth
from tutelage.problem import Numbers

Integers = NDArray[np.integer]


@dataclass(frozen=True)
class Pair:
    """A student learns a teacher, at a predicted time (nan if none is predicted)."""

    student: int
    teacher: int
    time: float


@dataclass(frozen=True)
class Annihilation:
    """Two students turn against each other and cancel, at a predicted time."""

    first: int
    second: int
    time: float


@dataclass(frozen=True)
class Matching:
    """Teachers' matches and cancelling students, each in order of time."""

    pairs: tuple[Pair, ...]
    annihilations: tuple[Annihilation, ...] = ()

    def winners(self, teachers: int) -> Integers:
        """The student of each teacher, -1 where there is none."""
        found = np.full(teachers, -1)
        for pair in self.pairs:
            found[pair.teacher] = pair.student
        return found


def greedy(table: ArrayLike) -> Matching:
    """Eq. (6): take the largest entry of `table` (m, m*), delete its row and column, and so on.

    Entries may be negative, as in the paper.

    ```python
    >>> from tutelage.papers.soft_moe.matching import greedy
    >>> [(pair.student, pair.teacher) for pair in greedy([[0.3, 0.2], [0.4, 0.1], [0.0, -0.1]]).pairs]
    [(1, 0), (0, 1)]

    ```
    """
    table = _table(table)
    found = _matching(-table, table.shape[1])
    return Matching(tuple(Pair(p.student, p.teacher, math.nan) for p in found.pairs))


def race(
    overlap: ArrayLike, norms: ArrayLike = 1.0, *, alphas: ArrayLike = 1.0, growth: Growth | None = None
) -> Matching:
    """Students to teachers in the order of predicted times.

    `overlap` holds the cosines gamma2 (m, m*), `norms` the b_i, `alphas` the teachers' weights; the default `growth` is
    that of the paper's units. With small overlaps the order is that of `alpha_j gamma2_ij / b_i^2`.
    """
    times = (growth or Growth()).teacher_times(_table(overlap), norms, alphas)
    return _matching(times, times.shape[1])


def generalised(
    overlap: ArrayLike,
    between: ArrayLike,
    norms: ArrayLike = 1.0,
    *,
    alphas: ArrayLike = 1.0,
    growth: Growth | None = None,
) -> Matching:
    """The race with edges between students; `between` holds their experts' cosines I2 (m, m).

    Whatever has been matched exerts no more force at leading order: a learned teacher is cancelled by its student, two
    opposed students by each other.

    ```python
    >>> from tutelage.papers.soft_moe.matching import generalised
    >>> found = generalised([[0.10], [0.08]], [[1.0, -0.06], [-0.06, 1.0]])
    >>> found.pairs, [(a.first, a.second) for a in found.annihilations]  # the two cancel before the teacher is learned
    ((), [(0, 1)])

    ```
    """
    overlap = _table(overlap)
    return _matching(edges(overlap, between, norms, alphas, growth), overlap.shape[1])


def _table(values: ArrayLike) -> Numbers:
    table = np.asarray(values, float)
    if table.ndim != 2 or not table.size or np.any(np.isnan(table)):
        raise BadInput(
            f"A matching got a table of shape {table.shape}; pass numbers, one row per student and one column per "
            "teacher."
        )
    return table


def edges(overlap: Numbers, between: ArrayLike, norms: ArrayLike, alphas: ArrayLike, growth: Growth | None) -> Numbers:
    """Times of all edges (..., m, m* + m), of many starts too; an edge between students is in the row of the lower."""
    growth, between = growth or Growth(), np.asarray(between, float)
    if between.shape != (*overlap.shape[:-1], overlap.shape[-2]):
        raise BadInput(
            f"A matching got overlaps of shape {overlap.shape} with teachers and {between.shape} between students; "
            "both need one row per student."
        )
    upper = np.triu(np.ones(between.shape[-2:], bool), 1)
    students = np.where(upper, growth.student_times(between, norms), np.inf)
    return np.concatenate([growth.teacher_times(overlap, norms, alphas), students], axis=-1)


def _matching(cost: Numbers, teachers: int) -> Matching:
    steps = zip(*(part[0].tolist() for part in removals(cost[None], teachers)), strict=True)
    found = [step for step in steps if step[0] >= 0]
    pairs = tuple(Pair(i, c, t) for i, c, t in found if c < teachers)
    return Matching(pairs, tuple(Annihilation(i, c - teachers, t) for i, c, t in found if c >= teachers))


def removals(cost: Numbers, teachers: int) -> tuple[Integers, Integers, Numbers]:
    """Take the cheapest edge of each table (draw, student, partner), delete both of its ends, and so on.

    Student, partner and cost (draw, step); -1, -1 and infinity once no edge is left. Partners count the teachers first,
    then the students: a partner of `teachers + r` is the student r.
    """
    cost, draw, found = cost.copy(), np.arange(len(cost)), []
    students, columns = cost.shape[1:]
    for _ in range(students if columns > teachers else min(students, columns)):
        i, c = np.divmod(np.argmin(cost.reshape(len(cost), -1), axis=1), columns)
        time = cost[draw, i, c]
        found.append([np.where(np.isfinite(time), i, -1), np.where(np.isfinite(time), c, -1), time])
        cost[draw, i] = cost[draw, :, c] = np.inf
        if columns > teachers:
            cost[draw, :, teachers + i] = np.inf
            cancels = c >= teachers
            cost[draw[cancels], c[cancels] - teachers] = np.inf
    student, partner, when = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    return student, partner, when
