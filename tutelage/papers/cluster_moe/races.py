"""Which task a neuron learns, and when: the race of its overlaps while all are small (Lemmas A.4, C.6, C.12, C.21).

There `d|o_i|/dt = k rate_i |o_i|^(k-1)` for each task i, with the information exponent k and the rates below. The first
overlap of order one wins. Times count samples that the neuron receives; divide by the step, and by the probability 1/M
of being chosen, to have the paper's.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.oracle import ClusterOracle
from tutelage.problem import Clustered, Numbers, Units

Whole = NDArray[np.int64]


def rates(problem: Clustered, units: Units, overlaps: ArrayLike, served: ArrayLike | None = None) -> Numbers:
    """`alpha_k(b + mu_c) beta_{c,k}/C` for the local tasks, then `sum_c s_c alpha_k(b + mu_c) gamma_k/C` (unit, task).

    `overlaps` are those with the frame, whose means shift the units. `served` as in `oracle.step_size.Balance`.
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
