"""How far sample moments stray from their means: S = sup over w, w' of |M(w,w') - E M(w,w')| (Lemma 10).

M(w,w') = (1/n) sum 1{w.x_i >= 0} 1{w'.x_i >= 0} x_i x_i^T, Eq. (4). The supremum is searched for, so the result is a
lower bound; in the plane it is enumerated. So are the pieces of the proof (C.6): nets, truncation, tails.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.special import erfcx, expit

from tutelage.problem import Numbers


def mean_moment(w: Numbers, other: Numbers) -> Numbers:
    """E M(w,w') = ((pi - theta) I + sin(theta)(b b^T - c c^T)) / (2 pi), b and c the unit sum and difference (A.3.3).

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.concentration import mean_moment
    >>> mean_moment(np.array([1.0, 0.0]), np.array([1.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.5]]

    ```
    """
    u, v = w / np.linalg.norm(w), other / np.linalg.norm(other)
    together, apart = u + v, u - v
    theta = 2 * np.arctan2(np.linalg.norm(apart), np.linalg.norm(together))
    result = (np.pi - theta) * np.eye(len(w))
    if 0 < theta < np.pi:
        half = np.tan(theta / 2)
        result += (half * np.outer(together, together) - np.outer(apart, apart) / half) / 2
    return result / (2 * np.pi)


def deviation(x: Numbers, w: Numbers, other: Numbers) -> Numbers:
    """M(w,w') - E M(w,w') on the sample `x` (n, d).

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.concentration import deviation
    >>> w = np.array([1.0, 0.0])
    >>> deviation(np.eye(2), w, w).tolist()
    [[0.0, 0.0], [0.0, 0.0]]

    ```
    """
    kept = x[(x @ w >= 0) & (x @ other >= 0)]
    return kept.T @ kept / len(x) - mean_moment(w, other)


def deviation_norm(x: Numbers, w: Numbers, other: Numbers) -> float:
    """Its spectral norm.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.concentration import deviation_norm
    >>> deviation_norm(2 * np.eye(2), np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    1.5

    ```
    """
    return float(np.max(np.abs(np.linalg.eigvalsh(deviation(x, w, other)))))


def planar_supremum(x: Numbers) -> float:
    """S itself for inputs `x` (n, 2), by enumeration.

    Two half-planes meet in an arc of directions of length at most pi. While the arc keeps the same samples, M - EM is
    largest when it ends at its outermost samples, and EM - M when it ends at the next ones outside, or is pi long.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.concentration import planar_supremum, search_supremum
    >>> x = np.random.default_rng(0).standard_normal((50, 2))
    >>> found = search_supremum(x, rng=np.random.default_rng(1), restarts=6)
    >>> bool(0.95 < found.value / planar_supremum(x) <= 1 + 1e-12)
    True

    ```
    """
    squares = np.stack([x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2])
    return _over_arcs(x, squares, _arc, _top)


def _over_arcs(x: Numbers, values: Numbers, mean: Callable, size: Callable) -> float:
    """The largest `size` of +-(P_n - P) of `values` (m, n) over arcs; `mean(begin, end)`: their expectation (m, N)."""
    count, order = len(x), np.argsort(np.arctan2(x[:, 1], x[:, 0]))
    angles = np.arctan2(x[order, 1], x[order, 0])
    angles, values = np.concatenate([angles, angles + 2 * np.pi]), np.tile(values[:, order] / count, 2)
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    half = mean(0.0, np.array([np.pi]))
    largest = 0.0
    for i in range(count):
        last = np.arange(i, i + count)
        last = last[angles[last] - angles[i] <= np.pi]
        kept = sums[:, last + 1] - sums[:, [i]]
        largest = max(largest, float(np.max(size(kept - mean(angles[i], angles[last])))))
        # The samples strictly between i and `after`, which must fit into a half-plane.
        after = np.arange(i + 1, i + count + 1)
        after = after[(after == i + 1) | (angles[after - 1] - angles[min(i + 1, 2 * count - 1)] <= np.pi)]
        kept = sums[:, after] - sums[:, [i + 1]]
        short = angles[after] - angles[i] <= np.pi
        largest = max(largest, float(np.max(size(np.where(short, mean(angles[i], angles[after]), half) - kept))))
    return largest


def truncated_supremum(x: Numbers, level: float) -> float:
    """sup over w, w' of |(P_n - P) min(x_1^2, tau) 1{w.x >= 0} 1{w'.x >= 0}| in the plane, by enumeration (Lemma 21).

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.concentration import truncated_supremum
    >>> x = np.random.default_rng(0).standard_normal((4000, 2))
    >>> bool(0 < truncated_supremum(x, 4.0) < 0.1)
    True

    ```
    """
    fine = np.linspace(-np.pi, 3 * np.pi, 8193)
    squared = np.maximum(np.cos(fine) ** 2, 1e-300)
    # r^2 is exponential with mean 2: E min(r^2 k, tau) = 2k (1 - exp(-tau/(2k))).
    dense = -2 * squared * np.expm1(-level / (2 * squared)) / (2 * np.pi)
    grown = np.concatenate([[0.0], np.cumsum((dense[1:] + dense[:-1]) / 2 * np.diff(fine))])

    def mean(begin: float, end: Numbers) -> Numbers:
        return (np.interp(end, fine, grown) - np.interp(begin, fine, grown))[None]

    return _over_arcs(x, np.minimum(x[:, 0] ** 2, level)[None], mean, lambda entries: entries)


def circle_net(eps: float) -> Numbers:
    """Points of the circle (N, 2) such that none of it is farther than `eps` from all of them.

    ```python
    >>> from tutelage.papers.both_layers.concentration import circle_net
    >>> len(circle_net(0.25))
    13

    ```
    """
    angles = np.linspace(0, 2 * np.pi, math.ceil(np.pi / (2 * math.asin(eps / 2))), endpoint=False)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def tail_moments(level: float) -> tuple[float, float]:
    """E Y and E Y^2 for Y = (Z^2 - tau)_+, times e^(tau/2): the proof of Lemma 15 bounds them by 4 and 16.

    ```python
    >>> from tutelage.papers.both_layers.concentration import tail_moments
    >>> [round(moment, 3) for moment in tail_moments(1.0)]
    [0.798, 2.642]

    ```
    """

    def tail(t: float) -> float:
        return float(erfcx(math.sqrt((level + t) / 2))) * math.exp(-t / 2)

    return quad(tail, 0, np.inf)[0], 2 * quad(lambda t: t * tail(t), 0, np.inf)[0]


def net_deviation(x: Numbers, net: Numbers, level: float) -> float:
    """max over u in the net of |(P_n - P) ((x.u)^2 - tau)_+| (Lemma 16)."""
    mean = np.mean(np.maximum((x @ net.T) ** 2 - level, 0.0), axis=0)
    return float(np.max(np.abs(mean - tail_moments(level)[0] * math.exp(-level / 2))))


def _arc(begin: float, end: Numbers) -> Numbers:
    """The entries (3, N) of E 1{x in the arc} x x^T."""
    length, lean = end - begin, (np.sin(2 * end) - np.sin(2 * begin)) / 2
    return np.stack([length + lean, np.sin(end) ** 2 - np.sin(begin) ** 2, length - lean]) / (2 * np.pi)


def _top(entries: Numbers) -> Numbers:
    """The largest eigenvalues of symmetric 2x2 matrices with entries (3, N)."""
    first, across, last = entries
    return (first + last) / 2 + np.hypot((first - last) / 2, across)


@dataclass(frozen=True)
class Supremum:
    """The largest deviation found, where, and the largest among random directions for comparison."""

    value: float
    w: Numbers
    other: Numbers
    random: float


def search_supremum(
    x: Numbers, *, rng: np.random.Generator, restarts: int = 9, ascents: int = 60, perturbations: int = 250
) -> Supremum:
    """A lower bound of S by restarts of smoothed ascent and random polish; a third of them keep w' = w.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.concentration import search_supremum
    >>> x = np.random.default_rng(0).standard_normal((200, 2))
    >>> found = search_supremum(x, rng=np.random.default_rng(1), restarts=3, ascents=20, perturbations=50)
    >>> found.value >= found.random
    True

    ```
    """
    best, random = (-1.0, x[0], x[0]), 0.0
    for restart in range(restarts):
        tied = restart % 3 == 0
        w, other = (_unit(row) for row in rng.standard_normal((2, x.shape[1])))
        partner = w if tied else other
        state = (deviation_norm(x, w, partner), w, partner)
        random = max(random, state[0])
        state = _ascend(x, state, tied, ascents)
        state = _polish(x, state, tied, perturbations, rng)
        best = max(best, state, key=lambda s: s[0])
    return Supremum(*best, random)


def _ascend(
    x: Numbers, state: tuple[float, Numbers, Numbers], tied: bool, count: int
) -> tuple[float, Numbers, Numbers]:
    """Ascent of sign * u^T(M - EM)u, u the leading eigenvector, with indicators smoothed by logistic functions."""
    value, w, other = state
    for it in range(count):
        values, vectors = np.linalg.eigh(deviation(x, w, other))
        top = int(np.argmax(np.abs(values)))
        sharpness = 3 + 37 * it / max(count - 1, 1)
        slopes = _smoothed_slopes(x, w, other, vectors[:, top], sharpness, tied)
        size = np.sign(values[top]) * 0.5 * 0.97**it
        trial = _unit(w + size * _unit(slopes[0] - (slopes[0] @ w) * w))
        partner = trial if tied else _unit(other + size * _unit(slopes[1] - (slopes[1] @ other) * other))
        found = deviation_norm(x, trial, partner)
        if found > value:
            value, w, other = found, trial, partner
    return value, w, other


def _smoothed_slopes(
    x: Numbers, w: Numbers, other: Numbers, u: Numbers, sharpness: float, tied: bool
) -> tuple[Numbers, Numbers]:
    """Derivatives in w and w' of u^T(M - EM)u."""
    on, off = expit(sharpness * (x @ w)), expit(sharpness * (x @ other))
    weight = (x @ u) ** 2 * sharpness / len(x)
    if tied:
        slope = (weight * on * (1 - on)) @ x  # one indicator only, and EM = I/2 does not move
        return slope, slope
    empirical = (weight * on * (1 - on) * off) @ x, (weight * off * (1 - off) * on) @ x
    p, q, cosine = w @ u, other @ u, np.clip(w @ other, -1 + 1e-12, 1 - 1e-12)
    half = np.sqrt((1 - cosine) / (1 + cosine))
    turn = (1 + half**2) / 4 * ((p + q) ** 2 + (p - q) ** 2 / half**2) - 1
    turn = -turn / np.sqrt(1 - cosine**2) / (2 * np.pi)
    lean = [(half * (p + q) - s * (p - q) / half) / (2 * np.pi) for s in (1, -1)]
    return empirical[0] - lean[0] * u - turn * other, empirical[1] - lean[1] * u - turn * w


def _polish(
    x: Numbers, state: tuple[float, Numbers, Numbers], tied: bool, count: int, rng: np.random.Generator
) -> tuple[float, Numbers, Numbers]:
    """Random tangent steps of adaptive length, kept when the true norm rises."""
    value, w, other = state
    scale = 0.3
    for _ in range(count):
        trial = _unit(w + scale * _unit(rng.standard_normal(len(w))))
        partner = trial if tied else _unit(other + scale * _unit(rng.standard_normal(len(w))))
        found = deviation_norm(x, trial, partner)
        if found > value:
            value, w, other, scale = found, trial, partner, scale * 1.3
        else:
            scale *= 0.97
    return value, w, other


def _unit(vector: Numbers) -> Numbers:
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else vector
