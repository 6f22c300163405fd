"""What a second layer over drawn biases can say of a polynomial (Lemma C.27), without learning it."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tutelage.analysis import Claim, Finding, Kind, Verdict, all_of, interval_at_most, lines
from tutelage.papers.cluster_moe.checks.quadrature import hermite
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.problem import Numbers

REACH, BIASES = 3.0, 6.0  # |w.x| up to which a polynomial is approximated, and C_b
COUNTS = (64, 128, 256, 512, 1024)
DRAWS = 24
LOGS = 0.25  # of an exponent in N between 64 and 1024: what a factor of log N adds


class Fitted(NamedTuple):
    """Second layers by the construction of `built`, (count, draw): the largest error, and norms over N."""

    error: Numbers
    square: Numbers
    total: Numbers


def polynomial(u: Numbers) -> Numbers:
    """`h_4 + h_3`, which is neither even nor odd."""
    return hermite(u, 5)[..., 3] + hermite(u, 5)[..., 4]


def _bend(t: Numbers) -> Numbers:
    """Its second derivative: `sqrt(i (i-1)) h_(i-2)`."""
    table = hermite(t, 3)
    return math.sqrt(6) * table[..., 1] + math.sqrt(12) * table[..., 2]


def built(bias: Numbers) -> tuple[Numbers, Numbers]:
    """Weights of `ReLU(u + b_j)` and `ReLU(-u + b_j)`, times `1/2N`, that give `polynomial` for `|u| <= REACH`.

    By `f(u) = f(0) + f'(0) u + int_0^R f''(t) ReLU(u - t) + f''(-t) ReLU(-u - t) dt`: the integral is a sum over biases
    in [-R, 0], each with half of the gaps beside it; biases of R and more give the straight line.
    """
    count = len(bias)
    plus, minus = np.zeros(count), np.zeros(count)
    order = np.argsort(-bias)
    place = -bias[order]
    inside = (place > 0) & (place < REACH)
    t = place[inside]
    ends = np.concatenate([[0.0], (t[1:] + t[:-1]) / 2, [REACH]])
    gap = np.diff(ends)
    plus[order[inside]], minus[order[inside]] = gap * _bend(t), gap * _bend(-t)
    far = bias >= REACH
    level, rise = polynomial(np.zeros(1))[0], float(np.sum(np.diff(polynomial(np.array([-1e-5, 1e-5])))) / 2e-5)
    share = 1 / max(int(far.sum()), 1)
    plus[far] += share * (level / (2 * bias[far]) + rise / 2)
    minus[far] += share * (level / (2 * bias[far]) - rise / 2)
    return 2 * count * plus, 2 * count * minus


def as_printed(bias: Numbers) -> tuple[Numbers, Numbers]:
    """The nearest with one coefficient for both signs of w, and a minus sign between them, by least squares."""
    u = np.linspace(-REACH, REACH, 601)
    rows = (np.maximum(u[:, None] + bias, 0) - np.maximum(-u[:, None] + bias, 0)) / (2 * len(bias))
    a = np.linalg.lstsq(rows, polynomial(u), rcond=1e-10)[0]
    return a, -a


def fitted(evidence: Evidence, weights: Callable[[Numbers], tuple[Numbers, Numbers]]) -> Fitted:
    """Errors on a grid that no bias knows."""
    u, draw = np.linspace(-REACH, REACH, 2001), evidence.random(80)
    table = []
    for count in COUNTS:
        for _ in range(DRAWS):
            bias = draw.uniform(-BIASES, BIASES, count)
            plus, minus = weights(bias)
            said = np.maximum(u[:, None] + bias, 0) @ plus + np.maximum(-u[:, None] + bias, 0) @ minus
            both = np.abs(np.concatenate([plus, minus]))
            error = np.abs(said / (2 * count) - polynomial(u)).max()
            table.append((error, np.sum(both**2) / count, np.sum(both) / count))
    error, square, total = np.array(table).reshape(len(COUNTS), DRAWS, 3).transpose(2, 0, 1)
    return Fitted(error, square, total)


def _exponent(values: Numbers) -> lines.Estimate:
    return lines.exponent_over_seeds(COUNTS, lambda chosen: np.median(values[:, chosen], axis=1), DRAWS, level=0.99)


def relu_sums_approximate(evidence: Evidence) -> Finding:
    seen = fitted(evidence, built)
    error, square, total = map(_exponent, seen)
    told = ", ".join(f"{value:.3g} (N = {n})" for value, n in zip(np.median(seen.error, axis=1), COUNTS, strict=True))
    text = f"Median of the largest error over {DRAWS} draws: {told}: exponent {error:.2f}. Of sum a^2/N "
    text += f"{square:.2f}, of sum "
    text += f"|a|/N {total:.2f}."
    return all_of(
        [
            interval_at_most(error.value, error.interval, -1 + LOGS, seeds=DRAWS, detail=text),
            interval_at_most(square.value, square.interval, LOGS, seeds=DRAWS),
            interval_at_most(total.value, total.interval, LOGS, seeds=DRAWS),
        ]
    )


def one_set_approximates(evidence: Evidence) -> Finding:
    seen = fitted(evidence, as_printed)
    error = _exponent(seen.error)
    even = float(np.abs(hermite(np.linspace(-REACH, REACH, 601), 5)[:, 4]).max())
    text = f"The largest error is {np.median(seen.error[-1]):.3g} at N = {COUNTS[-1]}; the even part of the "
    text += "polynomial alone "
    text += f"has {even:.3g}. Exponent {error:.2f}."
    return interval_at_most(error.value, error.interval, -1 + LOGS, seeds=DRAWS, detail=text)


_SUM = f"h_3 + h_4 on [-3, 3], biases drawn from [-6, 6], N = {COUNTS[0]} to {COUNTS[-1]}"

CLAIMS = (
    Claim(
        "CM-C27",
        "Lemma C.27, corrected",
        "2N coefficients with sum a^2 and sum |a| of order N, one for each sign of w, give a polynomial up to O~(1/N).",
        f"{_SUM}, by a sum for an integral",
        relu_sums_approximate,
        kind=Kind.READING,
        reading="O~ is read as an exponent in N that is larger by 0.25 at most.",
    ),
    Claim(
        "CM-C27:printed",
        "Lemma C.27",
        "The same with one coefficient for both signs of w, and a minus sign between them.",
        f"{_SUM}, by least squares",
        one_set_approximates,
        kind=Kind.SLIP,
        mended="CM-C27",
        expected=Verdict.FAILS,
        explanation="Such a sum is an odd function of w.x. The statement has 2N coefficients, its display N.",
    ),
)
