"""When two networks are the same up to the order and the signs of their units, and which exchanges leave one as it is.

A point is a labelled graph: the units are its vertices, with their outgoing weights, and inner products are written on
its edges. Students may only be exchanged for students and teachers for teachers of equal weight and equal angles, so
that an isomorphism of two graphs is exactly a symmetry of the loss. A unit whose activation is even or odd stands there
twice, as `w` and as `-w`; a flip of its sign is then an exchange like any other.
"""

from dataclasses import dataclass
from functools import cached_property
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from tutelage._types import Numbers
from tutelage.problem.activations import Activation
from tutelage.problem.networks import Weights

Whole = NDArray[np.int64]


def parity(activation: Activation) -> int:
    """1 for an even function, -1 for an odd one, 0 for others.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.analysis.atlas.symmetry import parity
    >>> [parity(tt.activation(name)) for name in ("abs", "erf", "relu")]
    [1, -1, 0]

    ```
    """
    z = np.linspace(0.05, 6.0, 64)
    there, back = np.asarray(activation(z)), np.asarray(activation(-z))
    scale = 1e-12 * np.max(np.abs(there) + np.abs(back))
    return next((sign for sign in (1, -1) if np.all(np.abs(back - sign * there) <= scale)), 0)


@dataclass(frozen=True)
class Shape:
    """The graph of a student beside its teacher: labels of the vertices, inner products, and which vertex is whose.

    `unit[v]` is the number of the vertex's unit, students first; `students` says how many there are.
    """

    labels: Numbers
    gram: Numbers
    unit: Whole
    students: int

    @classmethod
    def of(cls, weights: Weights, target: Weights, parities: tuple[int, int]) -> "Shape":
        """Of a student and its teacher, whose activations have these parities."""
        parts = [
            _mirrored(np.asarray(side.first, float), np.asarray(side.second, float), sign)
            for side, sign in zip((weights, target), parities, strict=True)
        ]
        rows = np.concatenate([first for first, _, _ in parts])
        kind = np.repeat([0.0, 1e6], [len(first) for first, _, _ in parts])  # never confused with a weight
        labels = np.column_stack([kind, np.concatenate([second for _, second, _ in parts])])
        count = len(weights.first)
        return cls(labels, rows @ rows.T, np.concatenate([parts[0][2], count + parts[1][2]]), count)


def _mirrored(first: Numbers, second: Numbers, sign: int) -> tuple[Numbers, Numbers, Whole]:
    unit = np.arange(len(first))
    if not sign:
        return first, second, unit
    return np.concatenate([first, -first]), np.concatenate([second, sign * second]), np.concatenate([unit, unit])


def same(one: Shape, other: Shape, tolerance: float = 1e-6) -> bool:
    """Whether an exchange of units (and of signs) makes one of the other, up to `tolerance` in the inner products."""
    if one.labels.shape != other.labels.shape:
        return False
    return _Pair(one, other, tolerance).isomorphism() is not None


@dataclass(frozen=True)
class Isotropy:
    """The exchanges that leave a point as it is: their number, and the units that they exchange among themselves."""

    order: int
    students: tuple[tuple[int, ...], ...]
    teachers: tuple[tuple[int, ...], ...]

    @cached_property
    def name(self) -> str:
        """`S5 x S2` where all exchanges of the teachers in an orbit are there and nothing else; else the order.

        Orbits of one are left out, and a point without any exchange is `1`.
        """
        sizes = sorted((len(orbit) for orbit in self.teachers if len(orbit) > 1), reverse=True)
        if self.order == prod(map(factorial, sizes)):
            return " x ".join(f"S{size}" for size in sizes) or "1"
        return f"order {self.order}"

    @property
    def parts(self) -> str:
        """Sizes of the orbits, the largest first: those of the students, and after a bar those of the teachers."""
        found = ["+".join(map(str, sorted(map(len, side), reverse=True))) for side in (self.students, self.teachers)]
        return found[0] if found[0] == found[1] else " | ".join(found)


def isotropy(shape: Shape, tolerance: float = 1e-6) -> Isotropy:
    """The symmetry of a point.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.analysis.atlas.symmetry import Shape, isotropy
    >>> teacher = tt.Weights(first=jnp.eye(4), second=jnp.ones((4, 1)))
    >>> student = tt.Weights(first=jnp.eye(4).at[0, 0].set(2.0), second=jnp.ones((4, 1)))
    >>> found = isotropy(Shape.of(student, teacher, (0, 0)))
    >>> found.name, found.parts, found.order
    ('S3', '3+1', 6)

    ```
    """
    pair = _Pair(shape, shape, tolerance)
    return Isotropy(pair.order(), *pair.orbits(shape))


class _Pair:
    """Two graphs whose labels and edges are small whole numbers, equal where the real ones are within a tolerance."""

    def __init__(self, one: Shape, other: Shape, tolerance: float):
        labels = _classes(np.stack([one.labels, other.labels]), tolerance)
        self.edges = _classes(np.stack([one.gram, other.gram]), tolerance)
        self.colours = _rows(labels)
        self.size = len(one.labels)

    def refined(self, fixed: tuple[tuple[int, int], ...] = ()) -> Whole:
        """Colours (graph, vertex), told apart as far as the colours and edges of all others can tell, from pairs of
        vertices that are to be mapped on each other."""
        colours = self.colours.copy()
        for number, (left, right) in enumerate(fixed):
            colours[0, left] = colours[1, right] = colours.max() + 1 + number
        count = 0
        while count < (found := len(np.unique(colours))):
            count = found
            seen = np.sort(self.edges * (colours.max() + 1) + colours[:, None, :], axis=-1)
            colours = _rows(np.concatenate([colours[..., None], seen], axis=-1))
        return colours

    def isomorphism(self, fixed: tuple[tuple[int, int], ...] = ()) -> Whole | None:
        """A map of vertices, or None. Where colours do not decide, one vertex is tried on all that look like it."""
        left, right = self.refined(fixed)
        if not np.array_equal(np.sort(left), np.sort(right)):
            return None
        sizes = np.bincount(left)
        if sizes.max() == 1:
            there = np.argsort(right)[np.argsort(np.argsort(left))]
            return there if np.array_equal(self.edges[0], self.edges[1][np.ix_(there, there)]) else None
        colour = int(np.flatnonzero(sizes > 1)[0])
        vertex = int(np.flatnonzero(left == colour)[0])
        tried = (self.isomorphism((*fixed, (vertex, int(twin)))) for twin in np.flatnonzero(right == colour))
        return next((found for found in tried if found is not None), None)

    def order(self) -> int:
        """Of the group of automorphisms: the product of the orbits along a chain of stabilisers."""
        fixed: tuple[tuple[int, int], ...] = ()
        order = 1
        while True:
            colours = self.refined(fixed)[0]
            cells = np.flatnonzero(np.bincount(colours) > 1)
            if not len(cells):
                return order
            members = np.flatnonzero(colours == cells[0])
            order *= sum(self.isomorphism((*fixed, (int(members[0]), int(each)))) is not None for each in members)
            fixed = (*fixed, (int(members[0]), int(members[0])))

    def orbits(self, shape: Shape) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """Students, and teachers, that some automorphism maps on each other, signs aside."""
        colours = self.refined()[0]
        places = [np.flatnonzero(shape.unit == unit) for unit in range(shape.unit.max() + 1)]
        found: list[list[int]] = []
        for unit, mine in enumerate(places):
            vertex = int(mine[0])
            for orbit in found:
                twins = [int(v) for v in places[orbit[0]] if colours[v] == colours[vertex]]
                if any(self.isomorphism(((vertex, twin),)) is not None for twin in twins):
                    orbit.append(unit)
                    break
            else:
                found.append([unit])
        students = tuple(tuple(orbit) for orbit in found if orbit[0] < shape.students)
        teachers = tuple(
            tuple(unit - shape.students for unit in orbit) for orbit in found if orbit[0] >= shape.students
        )
        return students, teachers


def _classes(values: Numbers, tolerance: float) -> Whole:
    """Numbers of the clusters that real numbers fall into: two are apart where there is a gap above the tolerance."""
    ordered = np.unique(values)
    starts = ordered[np.concatenate([[True], np.diff(ordered) > tolerance])]
    return np.searchsorted(starts, values, side="right") - 1


def _rows(table: Whole) -> Whole:
    """One number for each different row of (graph, vertex, entry)."""
    graphs, count, width = table.shape
    return np.unique(table.reshape(-1, width), axis=0, return_inverse=True)[1].reshape(graphs, count)
