"""The linearised start: while every weight is small, the two layers of each neuron feed each other linearly.

With m_j = mu s_j / 2 for the singular values s_j of the target, the mode V_i.u_j + w_i.r_j of neuron i grows by 1 + m_j
per step, the mode V_i.u_j - w_i.r_j shrinks by 1 - m_j, and the rest of w_i stands still: Phase 1 (Section 5.4).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.papers.both_layers.constants import C4, C7
from tutelage.problem import Numbers


@dataclass(frozen=True)
class LogState:
    """Neurons of a one-output network at a scale no double can hold (k,): logarithms are natural.

    `side` is the sign of v; `angle` that of w_i to `side` times a; `log_imbalance` bounds ln||w|^2 - v^2|.
    """

    side: Numbers
    angle: Numbers
    log_second: Numbers
    log_imbalance: Numbers


def logarithmic_start(
    second: ArrayLike, first: ArrayLike, target: ArrayLike, *, step: float, tau: float, log_scale: float
) -> LogState:
    """The linearised start from `exp(log_scale)` times the given weights, when the result is not representable either.

    ```python
    >>> from tutelage.papers.both_layers.start import logarithmic_start
    >>> state = logarithmic_start([1.0], [[0.0, 1.0]], [1.0, 0.0], step=0.1, tau=100, log_scale=-2000.0)
    >>> [round(float(x[0]), 3) for x in (state.side, state.angle, state.log_second)]
    [1.0, 0.015, -1995.814]

    ```
    """
    second, first, target = np.ravel(np.asarray(second, float)), np.asarray(first, float), np.asarray(target, float)
    size = float(np.linalg.norm(target))
    rate, along = step * size / 2, first @ target / size
    across = np.linalg.norm(first - np.outer(along, target / size), axis=1)
    growth, ratio = tau * math.log1p(rate), ((1 - rate) / (1 + rate)) ** tau
    # In units of exp(log_scale + growth), so that nothing overflows.
    v = ((second + along) + (second - along) * ratio) / 2
    s = ((second + along) - (second - along) * ratio) / 2
    angle = np.arctan2(across * math.exp(-growth), np.sign(v) * s)
    with np.errstate(divide="ignore"):
        # b = |w_perp|^2 - (v^2 - s^2), and v^2 - s^2 shrinks by 1 - (mu|a|/2)^2 per step.
        kept = np.log(np.abs(second**2 - along**2)) + tau * math.log1p(-(rate**2))
        imbalance = 2 * log_scale + np.logaddexp(2 * np.log(across), kept)
        return LogState(np.sign(v), angle, log_scale + growth + np.log(np.abs(v)), imbalance)


def growing_modes(second: ArrayLike, first: ArrayLike, target: ArrayLike) -> Numbers:
    """V_i + (A w_i) scaled by A's singular values, in A's output basis; for one output v_i + a.w_i/|a|.

    Leading axes of `second` (..., k, r) and `first` (..., k, n) are allowed; r = 1 may be left out of `second`.

    ```python
    >>> from tutelage.papers.both_layers.start import growing_modes
    >>> growing_modes([0.5, -0.5], [[1.0, 0.0], [0.25, 3.0]], [2.0, 0.0]).tolist()
    [1.5, -0.25]

    ```
    """
    first, target = np.asarray(first, float), np.asarray(target, float)
    left, _, right = np.linalg.svd(np.atleast_2d(target), full_matrices=False)
    if target.ndim == 1:
        # The sign of a singular vector is arbitrary: keep a itself, so that the mode is v + a.w/|a|.
        return np.asarray(second, float).reshape(first.shape[:-1]) + first @ target / np.linalg.norm(target)
    return np.asarray(second, float) @ left + first @ right.T


def both_signs(modes: ArrayLike) -> NDArray[np.bool_]:
    """Whether positive and negative entries occur along the last axis: the sign rule for success from a small start.

    Neuron i ends with sign(v_i) = sign(v_i(0) + a.w_i(0)/|a|) and w_i along that sign times a; both sides of the
    target line must be taken. The paper reads the rule off v_i(0) alone (Section 4), which is nearly the same.

    ```python
    >>> from tutelage.papers.both_layers.start import both_signs
    >>> both_signs([[0.3, -0.2], [0.3, 0.2]]).tolist()
    [True, False]

    ```
    """
    modes = np.asarray(modes)
    return np.any(modes > 0, axis=-1) & np.any(modes < 0, axis=-1)


def alignment_time(second: ArrayLike, first: ArrayLike, target: ArrayLike, *, step: float, angle: float = C4) -> int:
    """The first step from which every w_i of the linearised start stays within `angle` of its side of the target line.

    It does not depend on the scale of the start. From v = |w_perp|, a.w = 0 it is asinh(1/tan angle)/ln(1+mu|a|/2).

    ```python
    >>> from tutelage.papers.both_layers.start import alignment_time
    >>> alignment_time([1e-8], [[0.0, 1e-8]], [1.0, 0.0], step=0.1)
    53

    ```
    """
    second, first, target = (np.asarray(x, float) for x in (second, first, target))
    size = np.linalg.norm(target)
    along = first @ target / size
    across = np.linalg.norm(first - np.outer(along, target / size), axis=1)
    grown, shrunk = (second.reshape(-1) + along) / 2, (second.reshape(-1) - along) / 2
    if np.any(grown == 0):
        raise BadInput("A neuron with v + a.w/|a| = 0 never aligns: start it with another seed.")
    side = np.sign(grown)
    rate = step * size / 2
    # Beyond this the shrinking mode can no longer matter, so the last violation lies before it.
    need = across / math.tan(angle) + np.abs(shrunk)
    last = int(np.max(np.ceil(np.log(np.maximum(need / np.abs(grown), 1.0)) / math.log1p(rate)))) + 1
    tau = np.arange(last + 1)[:, None]
    toward = np.abs(grown) * (1 + rate) ** tau - side * shrunk * (1 - rate) ** tau
    violated = np.any(math.tan(angle) * toward < across, axis=1)
    return int(np.max(np.nonzero(violated)[0], initial=-1)) + 1


def growth_time(
    second: ArrayLike, first: ArrayLike, target: ArrayLike, *, step: float, reach: float = C7, log_scale: float = 0.0
) -> float:
    """When the slowest mode would reach `reach` sqrt|a| at the linear rate: the end of the growth phase, nearly.

    ```python
    >>> from tutelage.papers.both_layers.start import growth_time
    >>> round(growth_time([1e-8, -1e-8], [[0.0, 1e-8], [0.0, -1e-8]], [1.0, 0.0], step=0.1), 1)
    363.3

    ```
    """
    size = float(np.linalg.norm(np.asarray(target, float)))
    slowest = float(np.min(np.abs(growing_modes(second, first, target)))) / 2
    return (math.log(reach * math.sqrt(size) / slowest) - log_scale) / math.log1p(step * size / 2)
