"""Inertia of a symmetric matrix of balls, and lower bounds of its least eigenvalue, by `L D L'` (Sylvester).

Before it the matrix is turned by the eigenvectors of its middle, in doubles: it is then nearly diagonal, and no pivot
is small but where an eigenvalue is. The turn need not be exact, only invertible, and that follows: what it gives would
else be singular, and its pivots would not all differ from 0.
"""

from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from tutelage.rigour.balls import CannotEnclose
from tutelage.rigour.loss import identity


class Inertia(NamedTuple):
    """How many eigenvalues are negative, and a number that is below all of them."""

    negative: int
    least: float


def inertia(matrix: arb_mat) -> Inertia:
    """Of every symmetric matrix within a matrix of balls.

    ```python
    >>> from flint import arb_mat
    >>> from tutelage.rigour.spectra import inertia
    >>> found = inertia(arb_mat([[2, 1], [1, -3]]))
    >>> found.negative, -3.1931 < found.least < -3.1925
    (1, True)

    ```
    """
    middle = doubles(matrix)
    sizes, axes = np.linalg.eigh((middle + middle.T) / 2)
    turn = arb_mat(axes.tolist())
    negative = sum(1 for pivot in pivots(matrix, turn) if pivot < 0)
    size = float(np.abs(sizes).max())
    for margin in (1e-12, 1e-9, 1e-6):
        least = float(sizes[0]) - margin * size
        shifted = matrix - identity(len(sizes)) * arb(least)
        try:
            if all(pivot > 0 for pivot in pivots(shifted, turn)) and (negative or least > 0):
                return Inertia(negative, least)
        except CannotEnclose:
            continue
    raise CannotEnclose(f"The least eigenvalue, near {sizes[0]:.3g}, cannot be bounded; use a smaller box.")


def pivots(matrix: arb_mat, turn: arb_mat) -> list[arb]:
    """The diagonal of D in `L D L'` of the turned matrix; none may contain 0."""
    rows = (turn.transpose() * matrix * turn).tolist()
    found = []
    for p, row in enumerate(rows):
        pivot = row[p]
        if not (pivot > 0 or pivot < 0):
            raise CannotEnclose(
                "The sign of an eigenvalue of the Hessian cannot be decided: it may be singular there; use a smaller "
                "box, or another point."
            )
        found.append(pivot)
        for i in range(p + 1, len(rows)):
            below, factor = rows[i], row[i] / pivot
            for j in range(i, len(rows)):  # the upper half is all that is read
                below[j] -= factor * row[j]
    return found


def doubles(matrix: arb_mat) -> NDArray[np.float64]:
    """The middles, rounded."""
    return np.array([[float(x.mid()) for x in row] for row in matrix.tolist()])
