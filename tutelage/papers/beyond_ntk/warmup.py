"""Stage 1.1: the second moments `q_i = E w_i^2` of a sign-symmetric law under orders 0 and 2 alone (Eq. 3.2).

Both orders multiply a coordinate by a number that is the same for all neurons, so the d moments obey a closed equation,

    dq_i/dt = -2 q_i [b_0 (sum_k q_k - 1) + b_2 (q_i - a_i)],

and `v_i(t)^2 / q_i(t)` never changes for any neuron. Descent has `q_i <- q_i (1 - eta [...])^2`. This is exact without
the orders from 4 on; they are weaker by a factor of order d.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from tutelage import BadInput
from tutelage.papers.beyond_ntk.constants import B0, B2
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.problem import Numbers

RTOL, ATOL = 1e-10, 1e-13
"""Of the solver, on `log q`: absolute errors of the logarithm are relative errors of q."""


def spaced(dim: int, ratio: float) -> Numbers:
    """Evenly spaced teacher weights, the largest `ratio` times the smallest, that add up to 1."""
    return BeyondNtkSettings(dim=dim, kappa=ratio).teacher_weights


def spread(weights: ArrayLike) -> float:
    """The paper's kappa: all `a_i` lie in [1/(kappa d), kappa/d]."""
    scaled = np.size(weights) * np.asarray(weights, float)
    return float(max(scaled.max(), 1 / scaled.min()))


class Excess(NamedTuple):
    """What orders 0 and 2 still have to learn (before Lemma A.2); `zero` has a sign, the others are at least 0."""

    zero: Numbers
    """Delta = b_0 (sum q - 1)."""
    plus: Numbers
    """delta_+ = b_2 max [q_i - a_i]^+."""
    minus: Numbers
    """delta_- = b_2 max [a_i - q_i]^+."""


def excess(moments: ArrayLike, weights: ArrayLike) -> Excess:
    """Delta, delta_+ and delta_- of moments (..., d).

    ```python
    >>> from tutelage.papers.beyond_ntk.warmup import excess
    >>> [round(float(x), 4) for x in excess([0.5, 0.6], [0.4, 0.6])]
    [0.2546, 0.1273, 0.0]

    ```
    """
    q, a = np.asarray(moments, float), np.asarray(weights, float)
    over = B2 * np.max(q - a, axis=-1), B2 * np.max(a - q, axis=-1)
    return Excess(B0 * (q.sum(-1) - a.sum()), np.maximum(over[0], 0.0), np.maximum(over[1], 0.0))


def pull(moments: ArrayLike, weights: ArrayLike) -> Numbers:
    """`Delta + delta_i`: a neuron's coordinate i shrinks at this rate (Eq. 3.2)."""
    q, a = np.asarray(moments, float), np.asarray(weights, float)
    return B0 * (q.sum(-1, keepdims=True) - a.sum()) + B2 * (q - a)


def flow(start: ArrayLike, weights: ArrayLike, times: ArrayLike) -> Numbers:
    """Moments (time, d) of the flow from `start` at time 0, by an implicit solver on their logarithms.

    ```python
    >>> from tutelage.papers.beyond_ntk.warmup import flow
    >>> flow([0.5, 0.5], [0.4, 0.6], [0.0, 50.0]).round(6).tolist()
    [[0.5, 0.5], [0.4, 0.6]]

    ```
    """
    q, a = _paired(start, weights)
    times = np.asarray(times, float)

    def velocity(_: float, logs: Numbers) -> Numbers:
        return -2 * pull(np.exp(logs), a)

    def slope(_: float, logs: Numbers) -> Numbers:
        moments = np.exp(logs)
        return -2 * (B0 * np.broadcast_to(moments, (len(a), len(a))) + B2 * np.diag(moments))

    span = (0.0, float(times[-1]))
    found = solve_ivp(velocity, span, np.log(q), "LSODA", times, jac=slope, rtol=RTOL, atol=ATOL)
    return np.exp(found.y.T)


def descent(start: ArrayLike, weights: ArrayLike, step: float, steps: int) -> Numbers:
    """Moments (steps + 1, d) of gradient descent: `q_i <- q_i (1 - eta [Delta + delta_i])^2`."""
    q, a = _paired(start, weights)
    path = [q]
    for _ in range(steps):
        q = q * (1 - step * pull(q, a)) ** 2
        path.append(q)
    return np.stack(path)


def spectrum(weights: ArrayLike) -> Numbers:
    """The rates at which the moments approach `a`, in rising order: d - 1 near `2 b_2 a_i`, one near `2 b_0`.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.beyond_ntk.warmup import spectrum
    >>> spectrum(np.full(30, 1 / 30))[[0, -1]].round(4).tolist()
    [0.0849, 5.1778]

    ```
    """
    a = np.asarray(weights, float)
    # Similar to the Jacobian at q = a, and symmetric.
    return np.linalg.eigvalsh(2 * (B0 * np.sqrt(np.outer(a, a)) + B2 * np.diag(a)))


def largest_step(weights: ArrayLike) -> float:
    """Descent is stable at the fixed point for steps eta_inf below this: 2/(2 b_0 + 2 b_2/d) for uniform weights."""
    return 2 / float(spectrum(weights)[-1])


def largest_first_step(total: float, dim: int) -> float:
    """From `E|w|^2 = total > 1`, uniform: a step above this makes the first update grow.

    ```python
    >>> from tutelage.papers.beyond_ntk.warmup import largest_first_step
    >>> round(largest_first_step(30, 30), 4)
    0.0266

    ```
    """
    if total <= 1:
        raise BadInput(
            f"largest_first_step: total is {total}, but more than 1 was expected; below, no step is too large."
        )
    return 2 / ((B0 + B2 / dim) * (total - 1))


def _paired(start: ArrayLike, weights: ArrayLike) -> tuple[Numbers, Numbers]:
    a = np.asarray(weights, float)
    q = np.asarray(start, float)
    if q.ndim > 1 or np.any(q <= 0):
        raise BadInput(
            "The start must be positive second moments, one per direction, but has other values; pass E w_i^2 > 0."
        )
    return np.broadcast_to(q, a.shape).astype(float), a
