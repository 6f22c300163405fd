"""Find the antiparallel pairs into which the neurons of a multi-output network fall (Appendix E.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from tutelage.problem import Numbers


@dataclass(frozen=True)
class Pairing:
    """Who is paired with whom, and how exact it is (entries per pair, except `partner` and `residual`).

    - `partner`: index of each neuron's partner; `mutual`: every partner names its partner back.
    - `first_angle`, `second_angle`: pi minus the angle between the two incoming (outgoing) vectors.
    - `first_gap`, `second_gap`: difference of their norms. `residual`: |sum over pairs of V_i w_i^T - A|.
    """

    partner: NDArray[np.integer]
    mutual: bool
    first_angle: Numbers
    second_angle: Numbers
    first_gap: Numbers
    second_gap: Numbers
    residual: float


def pair_up(second: ArrayLike, first: ArrayLike, target: ArrayLike) -> Pairing:
    """The best matching of neurons (second (k, r), first (k, n)) into antiparallel partners.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.landscape import paired_minimum
    >>> from tutelage.papers.both_layers.pairs import pair_up
    >>> point = paired_minimum(np.eye(2, 3), basis=[[1.0, 0.5], [0.0, 2.0]])
    >>> found = pair_up(point.second, point.first, point.target)
    >>> found.partner.tolist(), found.mutual, round(found.residual, 12)
    ([2, 3, 0, 1], True, 0.0)

    ```
    """
    second, first = np.asarray(second, float), np.asarray(first, float)
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second)]
    cost = (units[0] @ units[0].T + units[1] @ units[1].T) / 2
    np.fill_diagonal(cost, 10.0)  # beyond the range [-1, 1] of a cosine, so that no neuron is its own partner
    partner = linear_sum_assignment(cost)[1]
    mutual = bool(np.all(partner[partner] == np.arange(len(first))))
    left = np.flatnonzero(np.arange(len(first)) < partner)
    right = partner[left]
    gaps = [np.abs(np.linalg.norm(x[left], axis=1) - np.linalg.norm(x[right], axis=1)) for x in (first, second)]
    residual = np.linalg.norm(second[left].T @ first[left] - np.asarray(target, float))
    angles = [_supplement(u[left], u[right]) for u in units]
    return Pairing(partner, mutual, angles[0], angles[1], gaps[0], gaps[1], float(residual))


def _supplement(a: Numbers, b: Numbers) -> Numbers:
    """pi minus the angle of unit rows, exact for nearly opposite ones."""
    return 2 * np.arctan2(np.linalg.norm(a + b, axis=1), np.linalg.norm(a - b, axis=1))
