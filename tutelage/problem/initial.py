"""Laws of initial weights, drawn in the frame so that `dim` can be anything."""

import abc
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tutelage._errors import BadInput
from tutelage.problem.frame import Matrix, orthonormalise

Mean = tuple[tuple[float, ...], ...]


class AbstractRows(abc.ABC):
    """A law of incoming weight vectors: a function of jointly Gaussian rows, and of given `mean` rows."""

    mean: Mean = ()

    @abc.abstractmethod
    def rows(self, gaussian: Matrix, mean: Matrix) -> Matrix:
        """Turn standard Gaussian rows into rows of this law."""


@dataclass(frozen=True)
class GaussianRows(AbstractRows):
    """`w_i = mean_i + std * N(0, I)`, independent; `mean` is one row for all or one a unit.

    ```python
    >>> import tutelage as tt
    >>> tt.GaussianRows(0.1, mean=((1.5,),))
    GaussianRows(std=0.1, mean=((1.5,),))

    ```
    """

    std: float
    mean: Mean = ()

    def rows(self, gaussian: Matrix, mean: Matrix) -> Matrix:
        return self.std * gaussian + (mean if len(self.mean) else 0.0)


@dataclass(frozen=True)
class SphereRows(AbstractRows):
    """Independent uniform directions of a given norm."""

    norm: float = 1.0

    def rows(self, gaussian: Matrix, mean: Matrix) -> Matrix:
        return self.norm * gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True)


@dataclass(frozen=True)
class OrthonormalRows(AbstractRows):
    """Uniformly random mutually orthogonal directions of a given norm; there can be at most `dim` of them."""

    norm: float = 1.0

    def rows(self, gaussian: Matrix, mean: Matrix) -> Matrix:
        if gaussian.shape[0] > gaussian.shape[1]:
            raise BadInput(
                f"OrthonormalRows: {gaussian.shape[0]} rows cannot be orthogonal in dim {gaussian.shape[1]}."
            )
        return self.norm * orthonormalise(gaussian)


class AbstractEntries(abc.ABC):
    """A law of outgoing weights."""

    @abc.abstractmethod
    def entries(self, draw: Generator, shape: tuple[int, int]) -> Matrix:
        """Draw a (units, outputs) matrix."""


@dataclass(frozen=True)
class GaussianEntries(AbstractEntries):
    """Independent `N(0, std^2)` outgoing weights."""

    std: float

    def entries(self, draw: Generator, shape: tuple[int, int]) -> Matrix:
        return self.std * draw.standard_normal(shape)


@dataclass(frozen=True)
class ChiEntries(AbstractEntries):
    """`sign_i * scale * chi_degrees`: the norm of a Gaussian vector, with chosen signs."""

    scale: float
    degrees: float
    signs: tuple[float, ...]

    def entries(self, draw: Generator, shape: tuple[int, int]) -> Matrix:
        return np.asarray(self.signs)[:, None] * self.scale * np.sqrt(draw.chisquare(self.degrees, shape))
