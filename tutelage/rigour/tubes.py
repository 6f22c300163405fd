"""What moves as one column, and how quickly an error in it can grow: bounds of the Hessian over a box.

Balls that are carried from update to update forget how their numbers depend on each other, and widen by some bits an
update. But an update, and a gradient flow, have symmetric derivatives: the length of an error grows by no more than
their largest eigenvalue over a box that contains all that may be meant. So a centre is carried exactly, and one length.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from flint import arb, arb_mat

from tutelage.rigour.balls import CannotEnclose, dot, known_all
from tutelage.rigour.loss import State, identity
from tutelage.rigour.networks import Networks
from tutelage.rigour.spectra import doubles, pivots

LAYERS = ("second", "first")
"""Outgoing weights first, as in Hessians."""


class Enclosed(Protocol):
    """A loss whose value, gradient and Hessian are enclosed."""

    @property
    def networks(self) -> Networks: ...

    def start(self) -> State: ...

    def value(self, state: State) -> arb: ...

    def gradient(self, state: State) -> State: ...

    def hessian(self, state: State) -> arb_mat: ...


class Moving:
    """The weights that move as a column, and back.

    ```python
    >>> from flint import arb_mat
    >>> from tutelage.rigour.loss import State
    >>> from tutelage.rigour.tubes import Moving
    >>> moving = Moving(State(arb_mat([[1, 2]]), arb_mat([[3]])), ("first", "second"))
    >>> [int(x.unique_fmpz()) for x in moving.column(moving.begin).entries()]
    [3, 1, 2]

    ```
    """

    def __init__(self, begin: State, trains: Sequence[str]):
        self.begin, self.moves = begin, [layer for layer in LAYERS if layer in trains]
        self.sizes = [len(getattr(begin, layer).entries()) for layer in self.moves]
        self.size = sum(self.sizes)

    def state(self, column: arb_mat) -> State:
        """Weights from a column of all that moves."""
        parts, entries = {"first": self.begin.first, "second": self.begin.second}, column.entries()
        for layer, size in zip(self.moves, self.sizes, strict=True):
            parts[layer] = arb_mat(parts[layer].nrows(), parts[layer].ncols(), entries[:size])
            entries = entries[size:]
        return State(**parts)

    def column(self, state: State) -> arb_mat:
        """All that moves as a column."""
        entries = [x for layer in self.moves for x in getattr(state, layer).entries()]
        return arb_mat(len(entries), 1, entries)

    def spread(self, by_layer: Sequence[arb]) -> list[arb]:
        """A number for each entry from those of the layers, first and second."""
        given = dict(zip(("first", "second"), by_layer, strict=True))
        return [given[layer] for layer, size in zip(self.moves, self.sizes, strict=True) for _ in range(size)]


def largest(matrix: arb_mat) -> arb:
    """A number above all eigenvalues of every symmetric matrix within a matrix of balls.

    ```python
    >>> from flint import arb_mat
    >>> from tutelage.rigour.tubes import largest
    >>> 3 < largest(arb_mat([[1, 2], [2, 1]])) < 3.001
    True

    ```
    """
    known_all(matrix, "The Hessian over a box")
    even = (matrix + matrix.transpose()) * (arb(1) / 2)
    middle, wide = even.mid(), max(sum((x.rad() for x in row), arb(0)).upper() for row in even.tolist())
    sizes, axes = np.linalg.eigh(doubles(middle))
    top = arb(float(sizes[-1]) + 1e-9 * float(np.abs(sizes).max() + 1e-300))
    if all(pivot > 0 for pivot in pivots(identity(len(sizes)) * top - middle, arb_mat(axes.tolist()))):
        return (top + wide).upper()  # no eigenvalue of the radii is larger than their largest sum in a row
    raise CannotEnclose("The largest eigenvalue of the Hessian cannot be bounded; use more precision.")


def scaled(hessian: arb_mat, roots: Sequence[arb]) -> arb_mat:
    """The Hessian in weights divided by these roots of the layers' rates: in them the dynamics is symmetric."""
    rows = hessian.tolist()
    return arb_mat([[x * a * b for x, b in zip(row, roots, strict=True)] for row, a in zip(rows, roots, strict=True)])


def stretch(hessian: arb_mat, roots: Sequence[arb]) -> arb:
    """By how much an update of descent can lengthen an error, in these weights: a bound of `|I - s H s|`."""
    update = identity(len(roots)) - scaled(hessian, roots)
    return largest(update).max(largest(-update))


def around(column: arb_mat, radius: arb, roots: Sequence[arb]) -> arb_mat:
    """All that is within a length of a column, where entries are divided by these roots."""
    wide = arb(0, 1) * radius
    return arb_mat(len(roots), 1, [x + wide * root for x, root in zip(column.entries(), roots, strict=True)])


def radii(column: arb_mat, roots: Sequence[arb]) -> arb:
    """The length of a column's radii, where entries are divided by these roots."""
    parts = [x.rad() / root for x, root in zip(column.entries(), roots, strict=True)]
    return dot(parts, parts).sqrt().upper()
