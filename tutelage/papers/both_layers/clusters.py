"""What the neurons of each side of the target carry."""

import numpy as np
from numpy.typing import ArrayLike

from tutelage.problem import Numbers


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
