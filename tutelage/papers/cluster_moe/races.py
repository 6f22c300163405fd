"""Which task a neuron learns, and when: the race of its overlaps while all are small (Lemmas A.4, C.6, C.12, C.21).

There `d|o_i|/dt = k rate_i |o_i|^(k-1)` for each task i, with the information exponent k and the rates below. The first
overlap of order one wins. Times count samples that the neuron receives; divide by the step, and by the probability 1/M
of being chosen, to have the paper's.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.oracle import ClusterOracle
from tutelage.problem import Clustered, Numbers, Units, lowest

Whole = NDArray[np.int64]


class Exponents(NamedTuple):
    """Information exponents: of the label in each cluster, of each task for a student that sees all, and of all.

    0 stands for a task that cannot be seen: with `sum_c s_c = 0` the clusters cancel the global one.
    """

    clusters: tuple[int, ...]
    tasks: tuple[int, ...]
    whole: int


def exponents(problem: Clustered) -> Exponents:
    """Of a clustered problem, at equal shifts of a unit in all clusters.

    ```python
    >>> from tutelage.papers.cluster_moe.races import exponents
    >>> from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
    >>> exponents(ClusterMoeSettings().problem())
    Exponents(clusters=(4, 4), tasks=(4, 4, 0), whole=4)

    ```
    """
    local, shared = np.abs(np.asarray(problem.teacher.local)), np.asarray(problem.teacher.shared)
    s, weights = np.asarray(problem.teacher.interference), problem.inputs.weights
    # Weights of clusters that cancel may leave a rounding error.
    mean = shared * (s @ weights if abs(s @ weights) > 1e-12 * np.abs(s).max() else 0.0)
    tasks = (*(lowest(row) for row in local), lowest(mean))
    seen = tuple(lowest(row + np.abs(c * shared)) for row, c in zip(local, s, strict=True))
    return Exponents(seen, tasks, min((k for k in tasks if k), default=0))


def rates(problem: Clustered, units: Units, overlaps: ArrayLike, served: ArrayLike | None = None) -> Numbers:
    """`alpha_k(b + mu_c) beta_{c,k}/C` for the local tasks, then `sum_c s_c alpha_k(b + mu_c) gamma_k/C` (unit, task).

    `overlaps` are those with the frame, whose means shift the units. `served` as in `oracle.balance.Balance`.
    """
    weights = np.asarray(problem.inputs.weights if served is None else served, float)
    oracle = ClusterOracle(problem).served(jnp.asarray(weights / weights.sum()))
    return np.asarray(oracle.rates(units, jnp.asarray(overlaps), _exponent(problem.teacher.exponent)))


def scores(rates: ArrayLike, overlaps: ArrayLike, k: int) -> Numbers:
    """`rate_i |o_i|^(k-2)`, whose largest wins, and 0 for an overlap that does not grow (unit, task).

    For odd k growth has the sign of the rate, whatever that of the overlap.

    ```python
    >>> from tutelage.papers.cluster_moe.races import scores
    >>> scores([1.0, 2.0, -1.0], [0.2, 0.1, 0.5], 4).round(3).tolist()
    [0.04, 0.02, 0.0]

    ```
    """
    rates = np.asarray(rates, float)
    starts = np.asarray(overlaps, float)[..., : rates.shape[-1]]
    growth = rates if _exponent(k) % 2 == 0 else rates * np.sign(starts)
    return np.maximum(growth, 0.0) * np.abs(starts) ** (k - 2)


def winner(scores: Numbers) -> Whole:
    """The task that wins, of each neuron; -1 if no overlap grows."""
    return np.where(scores.max(-1) > 0, scores.argmax(-1), -1)


def escape_times(rates: ArrayLike, overlaps: ArrayLike, k: int, step: float, level: float) -> Numbers:
    """Samples until each overlap has the size `level`, `(|o|^-(k-2) - level^-(k-2))/(step k (k-2) rate)` (unit, task).

    Infinite for an overlap that does not grow.
    """
    pace = scores(rates, overlaps, k)
    size = np.abs(np.asarray(overlaps, float)[..., : pace.shape[-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.maximum(1 - (size / level) ** (k - 2), 0.0)
        return np.where(pace > 0, left / (step * k * (k - 2) * pace), np.inf)


def growth(start: float, rate: float, k: int, count: int, most: float = np.inf) -> Numbers:
    """`A_{t+1} = A_t + rate A_t^(k-1)`, for `t < count` and as long as it is at most `most`."""
    values = [np.float64(start)]
    with np.errstate(over="ignore"):
        while len(values) < count and values[-1] <= most:
            values.append(values[-1] + rate * values[-1] ** (k - 1))
    return np.array(values[:-1] if values[-1] > most else values)


def power_growth(start: float, rate: float, k: int, times: ArrayLike) -> Numbers:
    """`A_0 (1 - rate (k-2) A_0^(k-2) t)^(-1/(k-2))`, which solves `A' = rate A^(k-1)`; infinite after its blow-up.

    ```python
    >>> from tutelage.papers.cluster_moe.races import power_growth
    >>> power_growth(0.5, 0.1, 4, [0.0, 10.0]).round(4).tolist()
    [0.5, 0.7071]

    ```
    """
    left = 1 - rate * (k - 2) * start ** (k - 2) * np.asarray(times, float)
    with np.errstate(divide="ignore"):
        return np.where(left > 0, start * np.maximum(left, 0.0) ** (-1 / (k - 2)), np.inf)


class Bounds(NamedTuple):
    """Below and above a sequence."""

    low: Numbers
    high: Numbers


def growth_bounds(start: float, rate: float, k: int, times: ArrayLike) -> Bounds:
    """Lemma A.4, corrected: bounds of `growth` while it is at most 1.

    The solution of the differential equation is an upper bound, as Euler's steps lag behind convex growth; with the
    rate `rate (1 + rate)^-(k-1)` it is a lower bound.
    """
    slow = rate * (1 + rate) ** (1 - k)
    return Bounds(power_growth(start, slow, k, times), power_growth(start, rate, k, times))


def printed_bounds(start: float, rate: float, k: int, times: ArrayLike) -> Bounds:
    """Lemma A.4 as printed."""
    fast = rate * (1 + rate) ** (k - 1)
    return Bounds(power_growth(start, rate, k, times), power_growth(start, fast, k, times))


def exponent_sequence(k: int, count: int) -> Numbers:
    """Lemma B.13: `A_{l+1} = (k-2)/k A_l + 1/(2k)` from `A_0 = 1/2`; it tends to 1/4."""
    values = [0.5]
    for _ in range(count - 1):
        values.append((k - 2) / k * values[-1] + 1 / (2 * k))
    return np.array(values)


def blocking_margin(k: int) -> float:
    """Lemma B.15 needs `(k-2)(1/2 - 1/(6k)) - k/4 - 1/8` above 0: the other overlaps are slower than the means turn."""
    return (k - 2) * (1 / 2 - 1 / (6 * k)) - k / 4 - 1 / 8


class Comparison(NamedTuple):
    """Lemmas C.12, C.21 and C.25: `winner` lies below the winning overlap, `others` above all others."""

    winner: Numbers
    others: Numbers


def comparison(
    path: ArrayLike,
    others: float,
    rate: float,
    top_rate: float,
    k: int,
    dim: int,
    margin: float = 0.1,
    spill: float = 2.0,
) -> Comparison:
    """The sequences that the lemmas compare overlaps with, along the winner's `path` (one entry a step).

    - `others`: the largest other overlap at the start. `rate`, `top_rate`: what multiplies `o^(k-1)` in one step, of
      the winner and of the fastest task, that is `step k` times its rate (divided by M in Phase I).
    - `margin`, `spill`: the constants a_2 and A_3. The lemmas hold with high probability for suitable ones.
    """
    path = np.asarray(path, float)
    below = growth((1 - margin) * path[0], rate, k, len(path))
    above = [np.float64((1 + margin) * max(abs(others), 0.5 / math.sqrt(dim)))]
    for kappa in path[:-1]:
        pull = (1 + margin) * top_rate * above[-1] ** (k - 1)
        above.append(above[-1] + pull + spill * rate * abs(kappa) ** (k - 1) / math.sqrt(dim))
    return Comparison(below, np.array(above))


def exploration_time(step: float, k: int, rate: float, start: float, *, experts: int = 1, margin: float = 0.1) -> float:
    """T_1 of Lemma C.6 in samples: `1/((step/M) k (k-2) (1 - 5 a_2) rate P^(k-2))` with `P = (1 - a_2) start`.

    `margin` is a_2, below 1/5. `rate` is that of `rates`, with its 1/C; the other 1/M of the paper is in the step.

    ```python
    >>> from tutelage.papers.cluster_moe.races import exploration_time
    >>> exploration_time(1e-3, 4, 0.04, 0.4, experts=8)
    385802.0

    ```
    """
    if not 0 < margin < 0.2:
        raise BadInput(f"exploration_time: margin is {margin}, but a number between 0 and 1/5 was expected.")
    pace = step / experts * k * (k - 2) * (1 - 5 * margin) * rate * ((1 - margin) * start) ** (_exponent(k) - 2)
    return float(np.floor(1 / pace))


class Professionals(NamedTuple):
    """Of each expert: the neuron and the cluster that are foretold to win."""

    neuron: Whole
    cluster: Whole


def professionals(overlaps: ArrayLike, clusters: int) -> Professionals:
    """Definition 4.7: the largest signed overlap with a local task, of all neurons (expert, neuron, row)."""
    return _largest(np.asarray(overlaps, float)[..., :clusters])


def race_professionals(scores: Numbers, clusters: int) -> Professionals:
    """The same by the race: the largest score, which knows of signs and rates; -1 if nothing local grows."""
    found = _largest(scores[..., :clusters])
    grows = scores[..., :clusters].max((-2, -1)) > 0
    return Professionals(np.where(grows, found.neuron, -1), np.where(grows, found.cluster, -1))


def _largest(table: Numbers) -> Professionals:
    place = table.reshape(len(table), -1).argmax(1)
    return Professionals(*np.divmod(place, table.shape[-1]))


def _exponent(k: int) -> int:
    if k < 3:
        raise BadInput(f"A race needs an information exponent of 3 or more, but it is {k}; with less, all tasks grow.")
    return k
