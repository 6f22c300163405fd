"""Pieces that several figures share."""

import numpy as np

from tutelage.analysis import Series, line


def plane(weights: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates along the target (the first frame axis) and along a random direction of the frame across it."""
    across = np.random.default_rng(seed).standard_normal(weights.shape[-1] - 1)
    return weights[..., 0], weights[..., 1:] @ (across / np.linalg.norm(across))


def path(x: np.ndarray, y: np.ndarray, label: str, colour: int) -> tuple[Series, Series, Series]:
    """A trajectory in the plane: its path, its start (open) and its end."""
    return (
        line(x, y, label, colour=colour),
        line(x[:1], y[:1], kind="points", marker="x", colour=colour),
        line(x[-1:], y[-1:], kind="points", marker="*", colour=colour),
    )
