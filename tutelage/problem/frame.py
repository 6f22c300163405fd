"""The frame: a population trajectory never leaves the span of its vectors, so `dim` is only a number.

Vectors that are given (teachers, fixed weights, means) are reduced to a few coordinates by a QR factorisation, which
keeps every inner product. Gaussian rows are drawn directly in coordinates: on the given directions they are standard
normal, and beyond them the rows have the law of the triangular factor of a Gaussian matrix (Bartlett), with
chi-distributed diagonal. No vector of length `dim` is ever formed.

Starting points are drawn on the host: they are small, and compiling a sampler costs more than a thousand draws.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tutelage._errors import BadInput
from tutelage._types import Numbers as Numbers

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """Coordinates for rows on `anchored` given directions and `free` Gaussian rows, in `size` columns."""

    dim: int
    anchored: int
    free: int
    full: bool

    @property
    def size(self) -> int:
        """Number of coordinates in use: at most `dim`, and at most the number of vectors."""
        return self.dim if self.full else self.anchored + min(self.free, self.dim - self.anchored)

    def pad(self, rows: Matrix) -> Matrix:
        """Write coordinates on the anchored directions as rows of the frame."""
        return np.pad(rows, ((0, 0), (0, self.size - rows.shape[1])))

    def gaussian(self, draw: Generator) -> Matrix:
        """The `free` rows, jointly with the law of iid N(0, I_dim) vectors."""
        rows = draw.standard_normal((self.free, self.size))
        if self.full:
            return rows
        outside = self.size - self.anchored
        beyond = np.tril(rows[:, self.anchored :], -1)
        degrees = float(self.dim - self.anchored) - np.arange(outside)
        beyond[np.arange(outside), np.arange(outside)] = np.sqrt(draw.chisquare(degrees))
        return np.concatenate([rows[:, : self.anchored], beyond], axis=1)


def reduce_rows(rows: Matrix) -> Matrix:
    """Coordinates of given rows in their own span, with the same inner products."""
    count, columns = rows.shape
    if columns <= count:
        return rows
    triangle = np.linalg.qr(rows.T, mode="r")
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return np.asarray((signs[:, None] * triangle).T)


def anchor(dim: int, rows: Matrix, free: int, *, full: bool, kept: int = 0) -> tuple[Frame, Matrix]:
    """The frame for given `rows` and `free` Gaussian ones, and the coordinates of the given rows in it.

    Rows with fewer than `dim` columns are vectors whose other coordinates are zero. If inputs are not the same in all
    directions, their first coordinates are `kept`, and so are all that the rows have.
    """
    if rows.shape[1] > dim:
        raise BadInput(f"A weight vector has {rows.shape[1]} entries but dim is {dim}; pass at most dim entries.")
    if full and dim > 10**6:
        raise BadInput(f"Real samples in dim={dim} do not fit in memory; use population dynamics, or dim up to 1e6.")
    coordinates = rows if full or kept else reduce_rows(rows)
    coordinates = np.pad(coordinates, ((0, 0), (0, max(kept - coordinates.shape[1], 0))))
    frame = Frame(dim, coordinates.shape[1], free, full)
    return frame, frame.pad(coordinates)


def settle(dim: int, teacher: Matrix, student: Matrix, *, kept: int = 0) -> tuple[Matrix, Matrix]:
    """Teacher and student rows with the first `kept` coordinates as they are, then the teacher's directions, then one
    column per student unit (if `dim` allows).

    The coordinates of online SGD, which leaves the span that it starts in.
    """
    if kept:
        (one, taught), (other, learning) = (np.split(rows, [kept], axis=1) for rows in (teacher, student))
        taught, learning = settle(dim - kept, taught, learning)
        return np.hstack([one, taught]), np.hstack([other, learning])
    turn = np.linalg.qr(teacher.T, mode="complete")[0]
    own = min(teacher.shape)
    columns = own + min(len(student), dim - own)
    inside, rest = np.split(student @ turn, [own], axis=1)
    coordinates = (teacher @ turn)[:, :own], np.hstack([inside, reduce_rows(rest)])
    taught, learning = (np.pad(rows, ((0, 0), (0, columns - rows.shape[1]))) for rows in coordinates)
    return taught, learning


def orthonormalise(rows: Matrix) -> Matrix:
    """Gaussian rows to uniformly random orthonormal ones in the same span."""
    basis, triangle = np.linalg.qr(rows.T)
    return (basis * np.sign(np.diag(triangle))).T


def stream(seed: int, purpose: int) -> Generator:
    """The random stream of a seed for one purpose (0: starting weights, 1: data); streams are independent."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, purpose])))
