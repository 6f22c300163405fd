"""Where inputs come from."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tutelage._checks import put, table, whole
from tutelage._errors import BadInput
from tutelage._identity import LATER
from tutelage._types import Numbers


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Gaussian inputs `x ~ N(mean, C)`, standard unless a mean or a covariance is given; `dim` is only a number, up to
    1e12.

    - `covariance`: of the first coordinates, as a matrix or as a list of their variances. The others are standard and
      independent of these, so that a few strong directions cost nothing at any `dim`: choose the axes along them.
    - `mean`: of the first coordinates; that of the others is 0.

    ```python
    >>> import tutelage as tt
    >>> tt.Gaussian(1e9).dim
    1000000000
    >>> tt.Gaussian(1e9, covariance=[4.0, 0.25]).root.tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    >>> tt.Gaussian(1e9, covariance=[4.0], mean=[0.0, 3.0]).kept
    2

    ```
    """

    dim: int
    covariance: Numbers | None = field(default=None)
    mean: Numbers | None = field(default=None, metadata=LATER)

    def __init__(self, dim: float, covariance: ArrayLike | None = None, mean: ArrayLike | None = None) -> None:
        put(self, dim=whole("Gaussian: dim", dim, least=1, most=10**12))
        put(self, covariance=None if covariance is None else _covariance(covariance, self.dim))
        put(self, mean=None if mean is None else _mean(mean, self.dim))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Gaussian) or self.dim != other.dim:
            return False
        return _same(self.covariance, other.covariance) and _same(self.mean, other.mean)

    def __hash__(self) -> int:
        given = (self.covariance, self.mean)
        return hash((self.dim, *(None if each is None else each.tobytes() for each in given)))

    @property
    def standard(self) -> bool:
        """Whether neither a mean nor a covariance was given."""
        return self.covariance is None and self.mean is None

    @property
    def kept(self) -> int:
        """How many coordinates are not standard, and stay what they are in every frame."""
        return max(0 if each is None else len(each) for each in (self.covariance, self.mean))

    @cached_property
    def root(self) -> Numbers:
        """The symmetric root of the covariance: `x = root z + centre` with a standard `z`, in the kept coordinates."""
        root = np.eye(self.kept)
        if self.covariance is not None:
            size = len(self.covariance)
            root[:size, :size] = 0.0
            varied = np.ix_(*2 * [np.flatnonzero(np.any(self.covariance, axis=1))])  # what is constant stays exactly so
            sizes, axes = np.linalg.eigh(self.covariance[varied])
            root[varied] = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T
        return root

    @property
    def centre(self) -> Numbers:
        """The mean of the coordinates that are kept."""
        given = np.zeros(0) if self.mean is None else self.mean
        return np.pad(given, (0, self.kept - len(given)))

    def coloured(self, standard: Numbers) -> Numbers:
        """Inputs (sample, dim) of this law, from standard ones."""
        if self.standard:
            return standard
        inside = standard[:, : self.kept] @ self.root + self.centre
        return np.concatenate([inside, standard[:, self.kept :]], axis=1)

    def with_constant(self) -> "Gaussian":
        """These inputs with a coordinate in front that always is 1: what rows with a bias in front see.

        ```python
        >>> import numpy as np, tutelage as tt
        >>> tt.Gaussian(2, mean=[5.0]).with_constant().coloured(np.zeros((1, 3))).tolist()
        [[1.0, 5.0, 0.0]]

        ```
        """
        covariance = np.pad(np.eye(self.kept), (1, 0))
        if self.covariance is not None:
            covariance[1 : len(self.covariance) + 1, 1 : len(self.covariance) + 1] = self.covariance
        return Gaussian(self.dim + 1, covariance, np.pad(self.centre, (1, 0), constant_values=1.0))


def _same(one: Numbers | None, other: Numbers | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _mean(given: ArrayLike, dim: int) -> Numbers:
    expected = f"a list of at most {dim} finite numbers"
    found = table("Gaussian: mean", given, expected, axes=(1,))
    if not 0 < len(found) <= dim:
        raise BadInput(f"Gaussian: mean has {len(found)} entries, but {expected} was expected.")
    return np.array(found)  # not the one of the caller, who may change it


def _covariance(given: ArrayLike, dim: int) -> Numbers:
    expected = "a list of variances or a symmetric matrix"
    found = table("Gaussian: covariance", given, expected, axes=(1, 2))
    matrix = np.diag(found) if found.ndim == 1 else found
    if not matrix.size or matrix.shape[0] != matrix.shape[1] or len(matrix) > dim:
        raise BadInput(
            f"Gaussian: covariance has shape {found.shape}, but {expected} of at most {dim} rows was expected."
        )
    size = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > 1e-12 * size:
        raise BadInput("Gaussian: covariance is not symmetric; pass (C + C.T) / 2 if that is what is meant.")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -1e-12 * size:
        raise BadInput(f"Gaussian: covariance has the eigenvalue {least:.3g}, but none below 0 was expected.")
    return np.asarray((matrix + matrix.T) / 2)
