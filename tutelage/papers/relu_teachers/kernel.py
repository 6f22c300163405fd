"""The ReLU kernel, the loss and its gradient by the paper's formulas (Eq. 12-15), in NumPy.

Rows are vectors: students (m, n), teachers (k, n). All outgoing weights are 1. These are the plain sums: below a loss
of about 1e-14 they are rounding noise, and the oracles of the library are to be used instead.
"""

import numpy as np
from numpy.typing import ArrayLike

from tutelage import BadInput
from tutelage.analysis import angles_between
from tutelage.problem import Numbers


def rows(name: str, value: ArrayLike) -> Numbers:
    """`value` as a matrix of non-zero rows; the gradient has no value at a zero row."""
    array = np.asarray(value, float)
    if array.ndim != 2 or not array.size:
        raise BadInput(f"{name} has shape {array.shape}, but a matrix with one row per unit was expected.")
    if not np.all(np.any(array, axis=1)) or not np.all(np.isfinite(array)):
        raise BadInput(f"{name} has a row that is zero or not finite; give every unit a small non-zero vector.")
    return array


def kernel(first: ArrayLike, other: ArrayLike) -> Numbers:
    """g(a, b) = E relu(a.x) relu(b.x) = |a||b|/(2 pi) (sin t + (pi - t) cos t) for all pairs of rows (Eq. 12, 13).

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.kernel import kernel
    >>> (2 * np.pi * kernel(np.eye(2), [[1.0, 0.0], [-1.0, 0.0]])).round(6).tolist()
    [[3.141593, 0.0], [1.0, 1.0]]

    ```
    """
    first, other = rows("first", first), rows("other", other)
    t = angles_between(first, other)
    sizes = np.linalg.norm(first, axis=1)[:, None] * np.linalg.norm(other, axis=1)
    return sizes * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)


def slope(first: ArrayLike, other: ArrayLike) -> Numbers:
    """d g(a, b) / d a = (|b| sin t abar + (pi - t) b) / (2 pi), as (a, b, n); it is also E[relu(b.x) 1[a.x > 0] x]."""
    first, other = rows("first", first), rows("other", other)
    t = angles_between(first, other)
    unit = first / np.linalg.norm(first, axis=1, keepdims=True)
    along = (np.sin(t) * np.linalg.norm(other, axis=1))[:, :, None] * unit[:, None, :]
    return (along + (np.pi - t)[:, :, None] * other[None, :, :]) / (2 * np.pi)


def loss(first: ArrayLike, teacher: ArrayLike) -> float:
    """L = 1/2 E (f - f*)^2 as the plain sum of kernels (Eq. 14).

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.kernel import loss
    >>> round(loss(0.5 * np.eye(2), np.eye(2)), 6)  # a quarter of the loss of the zero network
    0.164789

    ```
    """
    own, met, floor = kernel(first, first), kernel(first, teacher), kernel(teacher, teacher)
    return float(own.sum() / 2 + floor.sum() / 2 - met.sum())


def gradient(first: ArrayLike, teacher: ArrayLike) -> Numbers:
    """The gradient of every student, (m, n) (Eq. 2, 15)."""
    return slope(first, first).sum(1) - slope(first, teacher).sum(1)
