"""`b' M^+ b` for a Gram matrix: how much of a target its span holds."""

import numpy as np
from scipy import linalg

from tutelage._types import Numbers


def explained(gram: Numbers, target: Numbers) -> float:
    """`b' M^+ b`, the squared norm of the projection on features with Gram matrix `M` and inner products `b`.

    A well-conditioned `M` is solved by Cholesky, with the relative error `eps/rcond`. One that is singular to rounding
    (its entries are right to `eps`, its eigenvalues to `size * eps` times the largest) goes through its eigenvectors;
    those below `size * eps` times the largest are left out. That leaves out functions, never adds any: the result can
    only be too small, and a loss made from it too large.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.kernels.solve import explained
    >>> round(explained(np.ones((2, 2)), np.array([0.5, 0.5])), 12)     # the same feature twice
    0.25

    ```
    """
    gram, target = np.asarray(gram, float), np.asarray(target, float)
    size = len(gram)
    if size == 0:
        return 0.0
    floor = size * np.finfo(float).eps
    try:
        factor = linalg.cholesky(gram, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return _by_eigenvectors(gram, target, floor)
    condition, _ = linalg.lapack.dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")
    if condition < floor:
        return _by_eigenvectors(gram, target, floor)
    return float(np.sum(linalg.solve_triangular(factor, target, lower=True, check_finite=False) ** 2))


def _by_eigenvectors(gram: Numbers, target: Numbers, floor: float) -> float:
    values, vectors = linalg.eigh(gram, check_finite=False)
    kept = values > floor * values[-1]
    return float(np.sum((vectors[:, kept].T @ target) ** 2 / values[kept]))
