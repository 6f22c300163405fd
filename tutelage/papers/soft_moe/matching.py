"""Who learns whom: greedy matchings of students and teachers, predicted from the start.

- `greedy`: the paper's Eq. (6), on inner products `w_i(0).w*_j` that are not divided by norms.
- `race`: the same by predicted times, so that norms and the teachers' weights count.
- `generalised`: the race with edges between students as well, which for an odd degree cancel each other in pairs.

Each is there for one start (NumPy) and, as `..._many`, for thousands (compiled). Ties go to the lower student, then to
the lower partner, teachers first.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.papers.soft_moe.growth import Growth
from tutelage.problem import Numbers

Integers = NDArray[np.integer]


@dataclass(frozen=True)
class Pair:
    """A student learns a teacher, at a predicted time (infinite if it cannot, nan if none was asked for)."""

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

    def agreement(self, other: "Matching") -> int:
        """How many pairs of a student and a teacher both have."""
        return len({(p.student, p.teacher) for p in self.pairs} & {(p.student, p.teacher) for p in other.pairs})


@dataclass(frozen=True)
class Matchings:
    """Matchings of many draws: arrays (draw, step), where -1 and infinity mean that nothing was left to match.

    `partner` counts the teachers first, then the students: a partner of `teachers + r` is the student r.
    """

    student: Integers
    partner: Integers
    time: Numbers
    teachers: int

    def __len__(self) -> int:
        return len(self.student)

    def __getitem__(self, draw: int) -> Matching:
        steps = zip(self.student[draw], self.partner[draw], self.time[draw], strict=True)
        return _matching(((int(i), int(c), float(t)) for i, c, t in steps if i >= 0), self.teachers)

    @property
    def winners(self) -> Integers:
        """The student of each teacher (draw, teacher), -1 where there is none."""
        found = np.full((len(self), self.teachers), -1)
        draw, step = np.nonzero((self.partner >= 0) & (self.partner < self.teachers))
        found[draw, self.partner[draw, step]] = self.student[draw, step]
        return found

    @property
    def matched(self) -> Integers:
        """The number of teachers that found a student, by draw."""
        return np.sum(self.winners >= 0, axis=1)

    @property
    def annihilated(self) -> Integers:
        """The number of pairs of students that cancel, by draw."""
        return np.sum(self.partner >= self.teachers, axis=1)


def greedy(table: ArrayLike, times: ArrayLike | None = None) -> Matching:
    """Eq. (6): take the largest entry of `table` (m, m*), delete its row and column, and so on.

    Entries may be negative, as in the paper; `times` (m, m*) are only copied to the pairs.

    ```python
    >>> from tutelage.papers.soft_moe.matching import greedy
    >>> [(pair.student, pair.teacher) for pair in greedy([[0.3, 0.2], [0.4, 0.1], [0.0, -0.1]]).pairs]
    [(1, 0), (0, 1)]

    ```
    """
    table = _table(table)
    times = np.full(table.shape, np.nan) if times is None else np.asarray(times, float)
    found = _matching(_removals(-table, table.shape[1]), table.shape[1])
    return Matching(tuple(Pair(p.student, p.teacher, float(times[p.student, p.teacher])) for p in found.pairs))


def race(
    overlap: ArrayLike, norms: ArrayLike = 1.0, *, alphas: ArrayLike = 1.0, growth: Growth | None = None
) -> Matching:
    """Students to teachers in the order of predicted times.

    `overlap` holds the cosines gamma2 (m, m*), `norms` the b_i, `alphas` the teachers' weights; the default `growth` is
    that of the paper's units. With small overlaps the order is that of `alpha_j gamma2_ij / b_i^2`.
    """
    times = (growth or Growth()).teacher_times(_table(overlap), norms, alphas)
    return _matching(_removals(times, times.shape[1]), times.shape[1])


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
    times = _edges(_table(overlap), between, norms, alphas, growth)
    teachers = _table(overlap).shape[1]
    return _matching(_removals(times, teachers), teachers)


def generalised_many(
    overlap: ArrayLike,
    between: ArrayLike,
    norms: ArrayLike = 1.0,
    *,
    alphas: ArrayLike = 1.0,
    growth: Growth | None = None,
) -> Matchings:
    """`generalised` for cosines (draw, m, m*) and (draw, m, m), norms (draw, m), in one compiled call."""
    overlap = _table(overlap, 3)
    return _many(_edges(overlap, between, norms, alphas, growth), overlap.shape[2])


def _table(values: ArrayLike, dims: int = 2) -> Numbers:
    table = np.asarray(values, float)
    if table.ndim != dims or not table.size or np.any(np.isnan(table)):
        raise BadInput(
            f"A matching got a table of shape {table.shape}; pass numbers, one row per student and one column per "
            + ("teacher, for each draw." if dims == 3 else "teacher.")
        )
    return table


def _edges(overlap: Numbers, between: ArrayLike, norms: ArrayLike, alphas: ArrayLike, growth: Growth | None) -> Numbers:
    """Times of all edges (..., m, m* + m); an edge between students stands in the row of the lower one."""
    growth, between = growth or Growth(), np.asarray(between, float)
    if between.shape != (*overlap.shape[:-1], overlap.shape[-2]):
        raise BadInput(
            f"A matching got overlaps of shape {overlap.shape} with teachers and {between.shape} between students; "
            "both need one row per student."
        )
    upper = np.triu(np.ones(between.shape[-2:], bool), 1)
    students = np.where(upper, growth.student_times(between, norms), np.inf)
    return np.concatenate([growth.teacher_times(overlap, norms, alphas), students], axis=-1)


def _removals(cost: Numbers, teachers: int) -> Iterator[tuple[int, int, float]]:
    """Take the cheapest edge (student, partner, cost), delete both of its ends, and so on while there is one."""
    cost = cost.copy()
    while np.isfinite(cost).any():
        i, c = map(int, np.unravel_index(np.argmin(cost), cost.shape))
        yield i, c, float(cost[i, c])
        gone = [i] + ([c - teachers] if c >= teachers else [])
        cost[gone] = cost[:, c] = np.inf
        if cost.shape[1] > teachers:
            cost[:, [teachers + r for r in gone]] = np.inf


def _matching(steps: Iterator[tuple[int, int, float]], teachers: int) -> Matching:
    found = list(steps)
    pairs = tuple(Pair(i, c, t) for i, c, t in found if c < teachers)
    return Matching(pairs, tuple(Annihilation(i, c - teachers, t) for i, c, t in found if c >= teachers))


def _many(cost: Numbers, teachers: int) -> Matchings:
    student, partner, time = map(np.asarray, _removals_many(jnp.asarray(cost), teachers))
    return Matchings(student, partner, time, teachers)


Removals = tuple[Int[jax.Array, " step"], Int[jax.Array, " step"], Float[jax.Array, " step"]]


def removals(cost: Float[jax.Array, "student partner"], teachers: int) -> Removals:
    """The removals of one table, traceable: student and partner (-1 once none is left) and cost, one entry per step."""
    students, columns = cost.shape
    steps = students if columns > teachers else min(students, columns)

    def step(n, state):
        free, open_, found = state
        usable = free[:, None] & (jnp.concatenate([open_, free]) if columns > teachers else open_)
        masked = jnp.where(usable, cost, jnp.inf)
        place = jnp.argmin(masked)
        i, c = place // columns, place % columns
        some = jnp.isfinite(masked[i, c])
        # An index out of range is dropped: a student is no teacher, and nothing is deleted once no edge is left.
        free = free.at[jnp.where(some, i, students)].set(False, mode="drop")
        free = free.at[jnp.where(some & (c >= teachers), c - teachers, students)].set(False, mode="drop")
        open_ = open_.at[jnp.where(some, c, columns)].set(False, mode="drop")
        new = (jnp.where(some, i, -1), jnp.where(some, c, -1), masked[i, c])
        return free, open_, tuple(old.at[n].set(value) for old, value in zip(found, new, strict=True))

    nothing = (jnp.full(steps, -1), jnp.full(steps, -1), jnp.full(steps, jnp.inf))
    state = (jnp.full(students, True), jnp.full(teachers, True), nothing)
    return jax.lax.fori_loop(0, steps, step, state)[2]


@functools.partial(jax.jit, static_argnames="teachers")
def _removals_many(cost: Float[jax.Array, "draw student partner"], teachers: int) -> Removals:
    return jax.vmap(lambda one: removals(one, teachers))(cost)
