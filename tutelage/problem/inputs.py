"""Where inputs come from."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tutelage._checks import put, table, whole
from tutelage._errors import BadInput
from tutelage._types import Numbers


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Gaussian inputs `x ~ N(0, C)`, standard unless a covariance is given; `dim` is only a number, up to 1e12.

    - `covariance`: of the first coordinates, as a matrix or as a list of their variances. The others are standard and
      independent of these, so that a few strong directions cost nothing at any `dim`: choose the axes along them.

    ```python
    >>> import tutelage as tt
    >>> tt.Gaussian(1e9).dim
    1000000000
    >>> tt.Gaussian(1e9, covariance=[4.0, 0.25]).root.tolist()
    [[2.0, 0.0], [0.0, 0.5]]

    ```
    """

    dim: int
    covariance: Numbers | None = field(default=None)

    def __init__(self, dim: float, covariance: ArrayLike | None = None) -> None:
        put(self, dim=whole("Gaussian: dim", dim, least=1, most=10**12))
        put(self, covariance=None if covariance is None else _covariance(covariance, self.dim))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Gaussian) or self.dim != other.dim:
            return False
        return _same(self.covariance, other.covariance)

    def __hash__(self) -> int:
        return hash((self.dim, None if self.covariance is None else self.covariance.tobytes()))

    @property
    def kept(self) -> int:
        """How many coordinates are not standard, and stay what they are in every frame."""
        return 0 if self.covariance is None else len(self.covariance)

    @cached_property
    def root(self) -> Numbers:
        """The symmetric root of the covariance: `x = root z` with a standard `z`, in the coordinates that are kept."""
        if self.covariance is None:
            return np.zeros((0, 0))
        sizes, axes = np.linalg.eigh(self.covariance)
        return np.asarray((axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T)

    def coloured(self, standard: Numbers) -> Numbers:
        """Inputs (sample, dim) of this law, from standard ones."""
        if self.covariance is None:
            return standard
        return np.concatenate([standard[:, : self.kept] @ self.root, standard[:, self.kept :]], axis=1)


def _same(one: Numbers | None, other: Numbers | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


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
