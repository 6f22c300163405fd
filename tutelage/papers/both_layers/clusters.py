"""Neurons that share a line through the origin, and what each line carries."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from tutelage.problem import Numbers


@dataclass(frozen=True)
class Lines:
    """`label` of each neuron; `imbalance` of each line, |sum of V_i |w_i||, which vanishes at every global minimum."""

    label: NDArray[np.integer]
    imbalance: Numbers

    def __len__(self) -> int:
        return len(self.imbalance)


def find_lines(second: ArrayLike, first: ArrayLike, angle: float = 1e-3) -> Lines:
    """Group neurons (second (k, r), first (k, n)) whose incoming vectors are parallel or antiparallel within `angle`.

    ```python
    >>> from tutelage.papers.both_layers.clusters import find_lines
    >>> lines = find_lines([[1.0], [-2.0], [1.0]], [[1.0, 0.0], [-0.5, 0.0], [0.0, 1.0]])
    >>> lines.label.tolist(), lines.imbalance.tolist()
    ([0, 0, 1], [0.0, 1.0])

    ```
    """
    second, first = np.asarray(second, float), np.asarray(first, float)
    norms = np.linalg.norm(first, axis=1)
    unit = first / norms[:, None]
    apart = np.linalg.norm(unit[:, None] - unit[None], axis=-1)
    together = np.linalg.norm(unit[:, None] + unit[None], axis=-1)
    between = 2 * np.arctan2(np.minimum(apart, together), np.maximum(apart, together))
    count, label = connected_components(between <= angle, directed=False)
    sums = np.array([np.sum(second[label == j] * norms[label == j, None], axis=0) for j in range(count)])
    return Lines(label, np.linalg.norm(sums, axis=1))


def side_sums(second: ArrayLike, first: ArrayLike, target: ArrayLike) -> tuple[Numbers, Numbers]:
    """P and Q: sums of V_i w_i^T over neurons with w_i.a > 0, and with w_i.a < 0 (one output; leading axes allowed).

    At every global minimum on the target line both equal a; sums grouped by the sign of v_i need not.

    ```python
    >>> from tutelage.papers.both_layers.clusters import side_sums
    >>> [s.tolist() for s in side_sums([1.0, -2.0], [[1.0, 0.0], [-0.5, 0.0]], [1.0, 0.0])]
    [[1.0, 0.0], [1.0, 0.0]]

    ```
    """
    first, target = np.asarray(first, float), np.asarray(target, float)
    terms = np.asarray(second, float).reshape(first.shape[:-1])[..., None] * first
    plus = (first @ target > 0)[..., None]
    return np.sum(np.where(plus, terms, 0.0), axis=-2), np.sum(np.where(plus, 0.0, terms), axis=-2)
