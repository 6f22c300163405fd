"""Directions in which a point may be moved without any change of the loss: what they are is known, and divided out.

- Scaling, if both layers learn: a unit whose activation is of degree n gives the same with `r w` and `a / r^n`.
- Rotations: of the coordinates orthogonal to all teachers, of all students at once.

Both are linear in the weights: a direction at a point x is `G x`. The gradient is orthogonal to it everywhere.
"""

from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

from flint import arb, arb_mat

from tutelage.rigour.balls import Rows, ball, dot
from tutelage.rigour.loss import State
from tutelage.rigour.networks import Networks

NEGLIGIBLE = Fraction(1, 10**9)
"""Components outside the teachers' span below this, relative to the largest weight, are taken for roundings of 0: where
all are, rotations move nothing. If that were wrong, the Hessian would be singular, and the point refused."""
Row = tuple[Fraction, ...]


class Gauge(NamedTuple):
    """All such directions of a problem."""

    scaling: tuple[tuple[int, int], ...]  # units, each with the degree of its activation
    free: tuple[Row, ...]  # a basis of the coordinates orthogonal to all teachers

    @property
    def rotations(self) -> int:
        """How many rotations there are within the coordinates that are used."""
        return len(self.free) * (len(self.free) - 1) // 2

    def settled(self, rows: Rows) -> "Gauge":
        """Without rotations, if they do not move these rows but for roundings."""
        most = max(abs(x) for row in rows for x in row)
        for row, axis in product(rows, self.free):
            along = sum((x * y for x, y in zip(row, axis, strict=True)), Fraction(0))
            if abs(along) > NEGLIGIBLE * most * max(map(abs, axis)):
                return self
        return self._replace(free=())

    def directions(self, state: State, trains: tuple[str, ...]) -> list[State]:
        """What each does to the weights."""
        first, second = state.first.tolist(), state.second.tolist()
        found = []
        for unit, degree in self.scaling:
            found.append(State(_only(unit, first, arb(1)), _only(unit, second, arb(-degree))))
        none = arb_mat(state.second.nrows(), state.second.ncols())
        for one, other in combinations([[ball(x) for x in row] for row in self.free], 2):
            rows = [_turned(row, one, other) for row in first]
            found.append(State(arb_mat(rows), none))
        return found if "first" in trains else []

    def outside(self, state: State) -> arb_mat:
        """What rotations into a coordinate that is not used do to the students along it: a column for each."""
        free = [[ball(x) for x in row] for row in self.free]
        return arb_mat([[dot(row, axis) for axis in free] for row in state.first.tolist()])


def gauge_of(networks: Networks) -> Gauge:
    """The directions of a problem in which the loss does not change."""
    degree, units = networks.student_form.degree, range(len(networks.student.first))
    both = set(networks.trains) == {"first", "second"}
    if networks.gated is not None:  # a vector enters by its direction, and learns if its part does
        kinds = [part in networks.parts for part in ("routers", "experts")]
        count = len(networks.student.second)
        scaling = tuple((row, 0) for row in range(2 * count) if kinds[row >= count])
    else:  # a tied unit of degree n is of degree n + 1 in its row: r w and a / r^(n + 1)
        more = int(networks.tied[0])
        scaling = tuple((unit, degree + more) for unit in units) if both and degree is not None else ()
    free = null_space(networks.teacher.first) if "first" in networks.trains else ()
    return Gauge(scaling, free).settled(networks.student.first)


def _only(unit: int, rows: list[list[arb]], factor: arb) -> arb_mat:
    """A multiple of one row, and no other."""
    return arb_mat([[factor * x if i == unit else arb(0) for x in row] for i, row in enumerate(rows)])


def _turned(row: list[arb], one: list[arb], other: list[arb]) -> list[arb]:
    """How a row begins to move when `one` is turned to `other`."""
    along, across = dot(row, one), dot(row, other)
    return [along * y - across * x for x, y in zip(one, other, strict=True)]


def null_space(rows: Rows) -> tuple[Row, ...]:
    """A basis of all that is orthogonal to some rows, exactly.

    ```python
    >>> from fractions import Fraction as F
    >>> from tutelage.rigour.gauge import null_space
    >>> null_space(((F(1), F(2), F(0)),))
    ((Fraction(-2, 1), Fraction(1, 1), Fraction(0, 1)), (Fraction(0, 1), Fraction(0, 1), Fraction(1, 1)))

    ```
    """
    size, left = len(rows[0]), [list(row) for row in rows]
    pivots: list[int] = []
    for column in range(size):
        place = next((i for i in range(len(pivots), len(left)) if left[i][column]), None)
        if place is None:
            continue
        here = len(pivots)
        left[here], left[place] = left[place], left[here]
        left[here] = [x / left[here][column] for x in left[here]]
        for i, row in enumerate(left):
            if i != here and row[column]:
                left[i] = [x - row[column] * y for x, y in zip(row, left[here], strict=True)]
        pivots.append(column)
    found = []
    for column in (c for c in range(size) if c not in pivots):
        row = [Fraction(int(c == column)) for c in range(size)]
        for i, pivot in enumerate(pivots):
            row[pivot] = -left[i][column]
        found.append(tuple(row))
    return tuple(found)
