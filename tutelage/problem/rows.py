"""Rows of weights that are given and not drawn."""

import numpy as np
from numpy.typing import NDArray


def equicorrelated(count: int, cosine: float) -> NDArray[np.float64]:
    """Unit rows in their own span, any two with this cosine: the coordinate axes when it is 0.

    ```python
    >>> from tutelage.problem.rows import equicorrelated
    >>> rows = equicorrelated(3, 0.5)
    >>> (rows @ rows.T).round(12)
    array([[1. , 0.5, 0.5],
           [0.5, 1. , 0.5],
           [0.5, 0.5, 1. ]])

    ```
    """
    return np.asarray(np.linalg.cholesky((1 - cosine) * np.eye(count) + cosine), float)


def least_cosine(count: int) -> float:
    """What the common cosine of so many vectors must lie above."""
    return -1 / (count - 1) if count > 1 else -1.0
