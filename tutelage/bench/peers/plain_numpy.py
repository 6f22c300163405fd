"""Gradient descent of ReLU networks in NumPy, with the gradient written out."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


def gradient(first: Rows, teacher: Rows) -> Rows:
    """Of the population loss; a leading axis for seeds is allowed."""
    found, size = np.zeros_like(first), np.linalg.norm(first, axis=-1)
    for sign, other in ((1.0, first), (-1.0, teacher)):
        length = np.linalg.norm(other, axis=-1)
        cosine = first @ np.swapaxes(other, -1, -2) / (size[..., :, None] * length[..., None, :])
        angle = np.arccos(np.clip(cosine, -1.0, 1.0))
        along = (np.sin(angle) * length[..., None, :]).sum(-1) / size
        found += sign * (along[..., None] * first + (np.pi - angle) @ other)
    return found / (2 * np.pi)


def descend(first: Rows, teacher: Rows, step: float, steps: int) -> Rows:
    """So many updates, of all seeds at once."""
    for _ in range(steps):
        first = first - step * gradient(first, teacher)
    return first


def settle(first: Rows, teacher: Rows, step: float, size: float, most: int = 10**6) -> Rows:
    """Updates of one start until its gradient is this small."""
    for _ in range(most):
        slope = gradient(first, teacher)
        if np.linalg.norm(slope) < size:
            break
        first = first - step * slope
    return first
