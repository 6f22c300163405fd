"""Stage 1.2: one neuron in an isotropic bulk, and which coordinate of it wins when.

If the law of the neurons is rotation invariant its force on a neuron is radial. So the direction feels the teacher
alone, whatever the other neurons do, and for equal weights

    d vbar/dt = (4/pi) (1 - vbar vbar^T) (a o asin vbar),     d log|v|/dt = 4 (sum_r a_r kap(vbar_r) - E|w|^2 kap_0).

To third order the first is the paper's `B_14 a_i vbar_i^3` (Eq. 3.5) less the same for all coordinates. A neuron's own
start decides all of it: that is the lottery. For unequal weights a bulk that has learned order 2, `E ww^T = diag(a)`,
takes the linear part away: `asin vbar - vbar` stands for `asin vbar`, which is the same for equal weights. What is left
out then is the small part of the bulk's orders from 4 on that is not radial.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.papers.beyond_ntk.constants import C0, gradient_rates, kernel_from_four
from tutelage.problem import Numbers

PACE = 1 / 32
"""Growth of a coordinate in one step of the Runge-Kutta scheme; hitting times are then right to 1e-7 of themselves."""
LEVEL = 0.5  # of vbar_i^2: only one coordinate can be above it
RATE4 = gradient_rates(4)[0]
"""`B_{1,4} = 2/(3 pi)`."""

_SMALL = 0.3  # below it by series, since the closed forms lose vbar^-4 in digits
_ORDERS = tuple(range(4, 40, 2))  # 0.3^40 is below rounding beside 0.3^4


class Hits(NamedTuple):
    """When a coordinate of each neuron reached the level (inf: never), and which one (-1: none)."""

    time: Numbers
    winner: NDArray[np.int64]


def velocity(directions: ArrayLike, weights: ArrayLike) -> Numbers:
    """`d vbar/dt` of unit rows (n, d) in a bulk that has learned orders 0 and 2."""
    v = np.asarray(directions, float)
    force = 2 * C0 * np.asarray(weights, float) * (np.arcsin(np.clip(v, -1, 1)) - v)
    return force - np.sum(force * v, axis=-1, keepdims=True) * v


def hits(neurons: ArrayLike, weights: ArrayLike, until: float, level: float = LEVEL) -> Hits:
    """The direction equation for every row of `neurons` (n, d), whose lengths do not count, up to time `until`.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.beyond_ntk.directions import hits
    >>> found = hits([[0.3, -0.6, 0.2], [0.5, 0.5, -0.5]], np.full(3, 1 / 3), until=100.0)
    >>> found.winner.tolist(), bool(np.isinf(found.time[1]))  # three equal coordinates never part
    ([1, -1], True)

    ```
    """
    if not LEVEL <= level < 1:
        raise BadInput(f"hits: level is {level}, but one winner needs 1/2 <= level < 1; choose it there.")
    v, a = _directions(neurons), np.asarray(weights, float)
    clock, time, winner = np.zeros(len(v)), np.full(len(v), np.inf), np.full(len(v), -1)
    there = np.max(v**2, axis=1) >= level
    time[there], winner[there] = 0.0, np.argmax(np.abs(v[there]), axis=1)
    moving = np.flatnonzero(~there)
    while len(moving):
        before, since = v[moving], clock[moving]
        after, now = _step(before, a, until - since)
        v[moving], clock[moving] = after, since + now
        over = np.max(after**2, axis=1) >= level
        best = np.argmax(np.abs(after[over]), axis=1)
        time[moving[over]] = since[over] + _crossing(before[over], after[over], best, now[over], a, math.sqrt(level))
        winner[moving[over]] = best
        moving = moving[~over & (clock[moving] < until)]
    return Hits(time, winner)


def turned(neurons: ArrayLike, weights: ArrayLike, until: float) -> Numbers:
    """The directions of neurons (n, d) after a time `until` in an isotropic bulk."""
    v, a = _directions(neurons), np.asarray(weights, float)
    left = np.full(len(v), float(until))
    while len(moving := np.flatnonzero(left > 0)):
        v[moving], now = _step(v[moving], a, left[moving])
        left[moving] -= now
    return v


def _directions(neurons: ArrayLike) -> Numbers:
    v = np.atleast_2d(np.asarray(neurons, float))
    if not np.all(np.any(v, axis=1)):
        raise BadInput("A neuron is zero and has no direction; leave such neurons out.")
    return _unit(v)


def _unit(v: Numbers) -> Numbers:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _step(v: Numbers, a: Numbers, left: Numbers) -> tuple[Numbers, Numbers]:
    """One step of the classical Runge-Kutta scheme, of each neuron's own length, and that length: at most `left`.

    A step is a part of the time in which the strongest coordinate, alone, would grow by a factor e.
    """
    time = np.minimum(PACE / np.max(a * _own(v), axis=1), left)
    h = time[:, None]
    one = velocity(v, a)
    two = velocity(v + h / 2 * one, a)
    three = velocity(v + h / 2 * two, a)
    four = velocity(v + h * three, a)
    return _unit(v + h / 6 * (one + 2 * two + 2 * three + four)), time


def _crossing(
    before: Numbers, after: Numbers, winner: NDArray[np.int64], span: Numbers, a: Numbers, level: float
) -> Numbers:
    """When |v_winner| reaches the level in a step, on the cubic through both values and slopes, by bisection."""
    rows = np.arange(len(winner))
    x0, x1 = before[rows, winner], after[rows, winner]
    s0, s1 = (span * velocity(v, a)[rows, winner] for v in (before, after))
    low, high = np.zeros(len(winner)), np.ones(len(winner))
    for _ in range(50):
        u = (low + high) / 2
        value = (1 - u) ** 2 * ((1 + 2 * u) * x0 + u * s0) + u**2 * ((3 - 2 * u) * x1 - (1 - u) * s1)
        below = np.abs(value) < level
        low, high = np.where(below, u, low), np.where(below, high, u)
    return span * high


def blow_up_time(square: ArrayLike, weight: ArrayLike) -> Numbers:
    """`1/(2 B_14 a x_0^2)`, at which that law blows up."""
    return 1 / (2 * RATE4 * np.asarray(weight, float) * np.asarray(square, float))


def signal(directions: ArrayLike, weights: ArrayLike) -> Numbers:
    """`Q_p` of Eq. (A.32) for unit rows (n, d): how fast the teacher's orders from 4 on make coordinate p grow.

    `Q_p = (4/pi) a_p (asin(v_p)/v_p - 1) - sum_r a_r [(8/pi)(1 - s_r) - (4/pi) v_r asin v_r]`, by series where small.
    """
    v, a = np.asarray(directions, float), np.asarray(weights, float)
    return a * _own(v) - (_shared(v) @ a)[..., None]


def _own(v: Numbers) -> Numbers:
    """`sum_j B_{1,2j} v^{2j-2}`."""
    safe = np.where(np.abs(v) < _SMALL, 1.0, v)
    whole = 2 * C0 * (np.arcsin(np.clip(safe, -1, 1)) / safe - 1)
    return np.where(np.abs(v) < _SMALL, _series(v**2, 0) / np.where(v == 0, 1.0, v**2), whole)


def _shared(v: Numbers) -> Numbers:
    """`sum_j B_{2,2j} v^{2j}`."""
    x = np.clip(v, -1, 1)
    whole = 4 * C0 * (1 - np.sqrt(1 - x**2)) - 2 * C0 * x * np.arcsin(x)
    return np.where(np.abs(v) < _SMALL, _series(v**2, 1), whole)


def _series(square: Numbers, which: int) -> Numbers:
    total = np.zeros_like(square)
    for order in reversed(_ORDERS):
        total = gradient_rates(order)[which] + square * total
    return square**2 * total


def signal_power(neurons: ArrayLike, weights: ArrayLike) -> Numbers:
    """`sum_p v_p^2 Q_p = |v|^2 sum_r a_r 4 kap_4(vbar_r)`, the right-hand side of Eq. (A.33), never negative."""
    v = np.asarray(neurons, float)
    square = np.sum(v**2, axis=-1)
    unit = v / np.sqrt(square)[..., None]
    return 4 * square * (np.asarray(kernel_from_four(unit)) @ np.asarray(weights, float))
