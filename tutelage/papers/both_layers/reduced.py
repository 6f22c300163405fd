"""After alignment each neuron is one number: the scalar map, its logistic limit, where it ends and how fast.

`z` is the common value of |v_i| and |w_i| of a balanced neuron on the target line.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from tutelage.papers.both_layers.constants import C8, C9
from tutelage.problem import Numbers


def scalar_map(start: ArrayLike, steps: int, *, step: float, target: float = 1.0) -> Numbers:
    """`z <- z (1 + (mu/2)(|a| - z^2))`, from `start` (any shape): values at 0..steps along a new first axis.

    ```python
    >>> from tutelage.papers.both_layers.reduced import scalar_map
    >>> scalar_map(0.1, 3, step=0.1).round(5).tolist()
    [0.1, 0.10495, 0.11014, 0.11558]

    ```
    """
    values = np.empty((steps + 1, *np.shape(start)))
    values[0] = start
    for tau in range(steps):
        values[tau + 1] = values[tau] * (1 + step / 2 * (target - values[tau] ** 2))
    return values


def scalar_loss(z: ArrayLike, target: float = 1.0) -> Numbers:
    """The loss 1/4 sum_i (|a| - z_i^2)^2 of one balanced neuron per side (last axis).

    ```python
    >>> from tutelage.papers.both_layers.reduced import scalar_loss
    >>> float(scalar_loss([0.0, 0.0])), float(scalar_loss([1.0, 0.0]))
    (0.5, 0.25)

    ```
    """
    return np.sum((target - np.asarray(z, float) ** 2) ** 2, axis=-1) / 4


def local_rates(second: ArrayLike, first_norm: ArrayLike, *, step: float) -> tuple[Numbers, Numbers]:
    """Factors per step at the optimum (k = 2) by which v_i w_i -+ a shrinks across and along the target.

    ```python
    >>> from tutelage.papers.both_layers.reduced import local_rates
    >>> across, along = local_rates(0.8, 1.25, step=0.05)
    >>> round(float(across), 4), round(float(along), 7)
    (0.984, 0.9449375)

    ```
    """
    second, first_norm = np.asarray(second, float), np.asarray(first_norm, float)
    return 1 - step * second**2 / 2, 1 - step * (second**2 + first_norm**2) / 2


def paper_alignment_steps(step: float, target: float = 1.0) -> int:
    """T1 = ceil(c9 / (mu|a|)) of Lemma 6.

    ```python
    >>> from tutelage.papers.both_layers.reduced import paper_alignment_steps
    >>> paper_alignment_steps(0.1)
    4041

    ```
    """
    return math.ceil(C9 / (step * target))


def paper_growth_steps(step: float, scale: float, target: float = 1.0) -> int:
    """T2 = ceil(c8 / (mu|a|) ln(sqrt|a|/sigma)) of Lemma 7.

    ```python
    >>> from tutelage.papers.both_layers.reduced import paper_growth_steps
    >>> paper_growth_steps(0.1, 1e-4)
    2948

    ```
    """
    return math.ceil(C8 / (step * target) * math.log(math.sqrt(target) / scale))
