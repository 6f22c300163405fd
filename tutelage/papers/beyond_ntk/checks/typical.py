"""Stage 1 on whole populations: orders 0 and 2 (Lemma A.2), the hypothesis H_1, and the growth of winners."""

import math

import numpy as np

from tutelage.analysis import Claim, Finding, Kind, all_of, at_least, at_most
from tutelage.papers.beyond_ntk import typical, warmup
from tutelage.papers.beyond_ntk.constants import RATE2
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.races import Warmup
from tutelage.problem import Numbers
from tutelage.study import Size

RATIOS = (1.0, 2.0)
DIMS: dict[Size, tuple[int, ...]] = {"quick": (16, 32), "full": (16, 32, 64, 128)}
WINNERS: dict[Size, tuple[int, ...]] = {"quick": (16, 32), "full": (16, 32, 64)}
MARGIN = 0.1
"""For poly(kappa_1) in `c_t poly(kappa_1)`, with `c_t = log d`. A larger one asks for less."""


def _runs(evidence: Evidence) -> list[Warmup]:
    return [typical.stage_one(dim, ratio) for dim in DIMS[evidence.size] for ratio in RATIOS]


def _named(run: Warmup) -> str:
    return f"d = {len(run.weights)}, ratio {run.weights.max() / run.weights.min():g}"


def _small(run: Warmup) -> float:
    """`log(d)/d^2`, the paper's c_t/d^2."""
    return math.log(len(run.weights)) / len(run.weights) ** 2


def order_zero_follows(evidence: Evidence) -> Finding:
    beyond, told, looked = [], [], 0
    for run in _runs(evidence):
        zero, plus, minus = warmup.excess(run.moments, run.weights)
        # exp(poly(kappa)) stands for kappa_1 in the bound for Delta < 0, so that its factor is 1 within rounding.
        factor = 1 - 1 / (16 * warmup.spread(run.weights) ** 2 * len(run.weights))
        neither = np.abs(zero) > np.where(zero > 0, minus * factor, plus)
        beyond.append(float(np.max(np.abs(zero[neither]), initial=0.0)) / _small(run))
        told.append(f"{beyond[-1]:.3f} of {np.abs(zero).max() / _small(run):.3f} ({_named(run)})")
        looked += len(zero)
    text = f"|Delta| d^2/log d at the times at which the second alternative does not hold, and at all {looked} times: "
    return at_most(beyond, MARGIN / 2, detail=f"{text}{', '.join(told)}.")


def _lacking(run: Warmup, delta: Numbers) -> float:
    """The least C with `d(delta)/dt <= -delta/(4 kappa d) + C log d/d^3` between all records."""
    wanted = delta[:-1] / (4 * warmup.spread(run.weights) * len(run.weights))
    seen = -np.diff(delta) / np.diff(run.times)
    return float(np.max(wanted - seen)) * len(run.weights) / _small(run)


def order_two_decays(evidence: Evidence) -> Finding:
    worst, told = [], []
    for run in _runs(evidence):
        _, plus, minus = warmup.excess(run.moments, run.weights)
        worst.append(max(_lacking(run, plus), _lacking(run, minus)))
        told.append(f"{worst[-1]:.3f} ({_named(run)})")
    text = f"The least C with delta' <= -delta/(4 kappa d) + C log d/d^3, all times: {', '.join(told)}."
    return at_most(worst, MARGIN, detail=text)


def orders_are_learned(evidence: Evidence) -> Finding:
    worst, told = [], []
    for run in _runs(evidence):
        later = run.times >= typical.end_of_warmup(len(run.weights), warmup.spread(run.weights))
        seen = warmup.excess(run.moments, run.weights)
        start = max(float(np.abs(part[0])) for part in seen) / _small(run)
        worst.append(max(float(np.abs(part[later]).max()) for part in seen) / _small(run))
        told.append(f"{worst[-1]:.2f}, {start:.1f} at the start ({_named(run)})")
    text = f"The largest of |Delta|, delta_+, delta_- times d^2/log d from T_1 to T_2: {', '.join(told)}."
    return at_most(worst, 1.0, detail=text)


def typical_stay(evidence: Evidence) -> Finding:
    growth, told = [], []
    for run in _runs(evidence):
        square = run.base**2
        unit = square / square.sum(2, keepdims=True)
        first = max(float(square[0].max()), float(unit[0].max()))
        growth.append(max(float(square.max()), float(unit.max())) / (warmup.spread(run.weights) * first))
        told.append(f"{growth[-1]:.2f} ({_named(run)}, c_0 = {first * len(run.weights):.1f})")
    text = f"c_t/(kappa c_0) at T_2, where kappa is for Claim A.2: {', '.join(told)}."
    return at_most(growth, 2.0, detail=text)


def moments_stay(evidence: Evidence) -> Finding:
    raw, unit, told = [], [], []
    for run in _runs(evidence):
        square, kappa, dim = run.base**2, warmup.spread(run.weights), len(run.weights)
        share = np.mean(square / square.sum(2, keepdims=True), axis=1)
        raw.append(dim * float(run.moments.max()) / (2 * kappa))
        unit.append(dim * float(share.max()) / (4 * kappa**2))
        told.append(f"{raw[-1]:.2f} and {unit[-1]:.2f} ({_named(run)})")
    text = f"Largest d E w_i^2/(2 kappa) and d E wbar_i^2/(4 kappa^2): {', '.join(told)}."
    return all_of([at_most(raw, 1.0, detail=text), at_most(unit, 1.0)])


def high_orders_are_small(evidence: Evidence) -> Finding:
    worst, told = [], []
    for run in _runs(evidence):
        kappa, dim = warmup.spread(run.weights), len(run.weights)
        seen = []
        for at in (0, len(run.times) // 2, -1):
            base = run.base[at]
            whole, network = typical.high_forces(base, run.weights)
            largest = np.max(base**2 / np.sum(base**2, axis=1, keepdims=True), axis=1, keepdims=True)
            small = kappa * _small(run)
            seen.append((np.max(np.abs(whole) / (small + kappa / dim * largest)), np.max(np.abs(network)) / small))
        worst.append(np.max(seen, axis=0))
        told.append(f"{worst[-1][0]:.3f} and {worst[-1][1]:.3f} ({_named(run)})")
    text = "The least C/4 for the whole and for the network's part, over all neurons, coordinates and three times: "
    return at_most(np.array(worst), 0.25, detail=f"{text}{', '.join(told)}.")


# Winners.


def _winners(evidence: Evidence) -> list[typical.Winners]:
    return [typical.winners(dim) for dim in WINNERS[evidence.size]]


def good_neurons_grow(evidence: Evidence) -> Finding:
    others, spent, told, looked = [], [], [], 0
    for run in _winners(evidence):
        won, left, dim = run.won, run.left, run.dim
        for k in range(run.paths.shape[1]):
            path = np.abs(run.paths[won[k] : left[k] + 1, k, 1:])
            others.append(float(np.max(path / path[0])) if left[k] > won[k] else math.inf)
            spent.append(float(run.times[left[k]] - run.times[won[k]]) * RATE2 / (dim * math.log(dim**2)))
            looked += 1
        told.append(f"{max(spent[-len(won) :]):.2f} (d = {dim})")
    text = f"{looked} neurons, from vbar_i^2 >= 1/2 until |v|^2 > d: the largest growth of another coordinate is "
    text += f"{max(others):.3f}, and the longest time over d log(d^2)/C_2 is {', '.join(told)}."
    return all_of([at_most(others, 2.0, detail=text), at_most(spent, 1.0), at_least(spent, 0.0)])


def maximum_adds_up(evidence: Evidence) -> Finding:
    worst, told = [], []
    for run in _winners(evidence):
        sums = [
            float(np.trapezoid(run.share[: stop + 1, k], run.times[: stop + 1])) if stop else math.inf
            for k, stop in enumerate(run.left)
        ]
        worst.append(max(sums) / (run.dim * math.log(run.dim)))
        told.append(f"{min(sums) / (run.dim * math.log(run.dim)):.2f} to {worst[-1]:.2f} (d = {run.dim})")
    text = f"The sum over d log(1/lambda_0), until |v|^2 > 1/lambda_0 = d: {', '.join(told)}."
    return at_most(worst, 2 / RATE2, detail=text)


_SETTING = "population with all signs and orders up to 8, d = 16 and 32 (to 128 in full), a_max/a_min = 1 and 2"
_TYPICAL = "The paper's start, cut to d w_i^2 <= log d: neurons outside S have no mass, as in the limit."
_WINNERS = "neurons without mass in a whole population, d = 16 and 32 (64 in full), equal weights, all orders"

CLAIMS = (
    Claim(
        "C9", "Proposition A.8",
        "From time 0 to T_2: |Delta| <= c_t poly(kappa_1)/d^2, or 0 < Delta <= delta_- (1 - 1/(16 kappa^2 d)), or "
        "0 < -Delta <= delta_+.", _SETTING, order_zero_follows,
        kind=Kind.READING, reading=f"{_TYPICAL} c_t poly(kappa_1) is taken as log(d)/20, and the factor of delta_+, "
        "with kappa_1 = exp(poly(kappa)), as 1. With equal weights both orders are learned at the start, and it is "
        "the first alternative that holds; the least constant for it is told, and falls with d.",
    ),
    Claim(
        "C10", "Proposition A.9",
        "delta_+(t+1) <= delta_+(t) (1 - eta/(4 kappa d)) + eta c_t poly(kappa_1)/d^3, and so delta_-.", _SETTING,
        order_two_decays,
        kind=Kind.READING, reading=f"{_TYPICAL} c_t poly(kappa_1) is taken as log(d)/10. The rate 1/(4 kappa d) is the "
        "paper's for delta_+ while Delta > 0; it is asked for of both, and at all times, where the paper has "
        "1/(poly(kappa_1) d).",
    ),
    Claim(
        "C10:end", "Lemma A.2",
        "From T_1 to T_2 |Delta|, delta_+ and delta_- are at most c_t poly(kappa_1)/d^2.", _SETTING, orders_are_learned,
        kind=Kind.READING, reading=f"{_TYPICAL} T_1 is taken as kappa d log(d)/C_1, T_2 as half the time in which the "
        "cubic law takes the largest typical coordinate to infinity, c_t poly(kappa_1) as log d.",
    ),
    Claim(
        "C31", "Proposition A.1, (A.2)",
        "Neurons of S stay small and dense: |w|_inf^2 and |wbar|_inf^2 are at most c_t/d until T_2.", _SETTING,
        typical_stay,
        kind=Kind.READING, reading=f"{_TYPICAL} c_t is taken as 2 kappa c_0, with c_0 that of the start, and T_2 as in "
        "C10:end: by the cubic law alone c_t would double until then.",
    ),
    Claim(
        "C31:mean", "Proposition A.1, (A.3)", "E w_i^2 <= 2 kappa/d and E wbar_i^2 <= 4 kappa^2/d until T_2.", _SETTING,
        moments_stay,
    ),
    Claim(
        "C8:bound", "Proposition A.7",
        "|[grad_{>=4}]_i| <= C/4 (c_t kappa/d^2 + kappa/d |vbar|_inf^2) |v_i|, and the part from the network is at "
        "most C/4 c_t kappa/d^2 |v_i|.", _SETTING, high_orders_are_small,
        kind=Kind.READING, reading=f"{_TYPICAL} C is taken as 1 and c_t as log d, at the start, on the way and at "
        "T_2; the least C that will do is told, and does not grow with d.",
    ),
    Claim(
        "C32", "Claim A.4",
        "A neuron with one large coordinate reaches 1/lambda_0 in this coordinate, and until then no other coordinate "
        "doubles.", _WINNERS, good_neurons_grow,
        kind=Kind.READING, reading="The thresholds log(d)^10/sqrt(d) and log(d)^2/sqrt(d) are above all coordinates at "
        "any d that can be run: large is read as vbar_i^2 >= 1/2, 1/lambda_0 as d. The time d^2/polylog(d) is read as "
        "d log(d^2)/C_2, in which a neuron on an axis, at its rate C_2/d, grows from 1/d to d.",
    ),
    Claim(
        "C33", "Claim A.5",
        "Until |v|^2 > 1/lambda_0 the sum of eta |vbar|_inf^2 is at most poly(kappa_1) d log(1/lambda_0).", _WINNERS,
        maximum_adds_up,
        kind=Kind.READING, reading="1/lambda_0 is taken as d and poly(kappa_1) as 2/C_2 = 5.5: what a neuron needs "
        "that grows from |v_i|^2 = 1/d at the least rate there is for its |vbar|_inf, C_2 |vbar|_inf^2/d.",
    ),
)  # fmt: skip
