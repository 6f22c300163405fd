"""Finite samples: concentration, gradient deviations, how many samples are enough (Lemmas 10, 11, Theorem 2)."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import (
    Claim,
    Finding,
    Hypothesis,
    Kind,
    Verdict,
    all_of,
    at_most,
    every,
    given,
    interval_at_most,
    interval_is,
    lines,
)
from tutelage.papers.both_layers.checks.inequalities import sampled_gradients
from tutelage.papers.both_layers.constants import C4, C5
from tutelage.papers.both_layers.evidence import Evidence, Sampled
from tutelage.problem import Numbers


def uniform_concentration(evidence: Evidence) -> Finding:
    scaled = {key: found.value * math.sqrt(key[1]) for key, found in evidence.suprema.items()}
    random = [found.random * math.sqrt(key[1]) for key, found in evidence.suprema.items()]
    ratios = np.array(list(evidence.planar), float)
    exact = np.array(list(evidence.planar.values()))  # (n/d, data set)
    # n = d log^2(1/delta)/delta^2 samples for a deviation of delta: delta is sqrt(d/n) log(n/d), up to a constant.
    law = np.sqrt(1 / ratios) * np.log(ratios)
    slope = lines.exponent_over_seeds(ratios, lambda drawn: exact[:, drawn].mean(1) / law, exact.shape[1])
    largest = np.max(exact, axis=1) * np.sqrt(ratios)
    text = "Largest S sqrt(n/d) of the data sets in the plane, exactly: "
    text += ", ".join(f"{value:.2f} (n={ratio:g}d)" for value, ratio in zip(largest, ratios, strict=True))
    text += f"; the mean over sqrt(d/n) log(n/d) has the exponent {slope:.3f} in n/d (95 %). By search, lower bounds: "
    text += ", ".join(f"{value:.2f} (d={d}, n={r}d)" for (d, r), value in scaled.items())
    text += f"; random directions {min(random):.2f} to {max(random):.2f}."
    return interval_at_most(slope.value, slope.interval, 0.0, seeds=exact.shape[1], detail=text)


def _deviations(evidence: Evidence, sampled: Sampled) -> tuple[Numbers, Numbers, Numbers]:
    """|grad Lhat - grad L| and v_i (seed, time, 2), and |h_1| + |h_2|; zero where the error is near rounding."""
    states, _, in_first = sampled_gradients(sampled)
    exact = evidence.slopes(states)[1]
    total = np.sum(states.error, axis=-1)
    gap = np.linalg.norm(in_first - exact, axis=-1)
    gap = np.where((total > 1e-4)[..., None], gap, 0.0)
    return gap, np.abs(states.second), total


def gradient_deviation(evidence: Evidence) -> Finding:
    worst, texts = [], []
    for sampled in evidence.sampled:
        gap, v, total = _deviations(evidence, sampled)
        ratio = np.max(gap / (v * total[..., None]), axis=(1, 2))
        delta = np.array([found.value for found in sampled.suprema])
        worst.append(float(np.max(ratio / delta)))
        texts.append(f"n={sampled.ratio}d: {ratio.max():.3f} against S >= {delta.min():.3f}.")
    return at_most(
        worst, 1.0, seeds=len(evidence.sampled[0].suprema), detail="Largest ratio over delta := S. " + " ".join(texts)
    )


def bounded_deviation(evidence: Evidence) -> Finding:
    worst, largest = [], 0.0
    for sampled in evidence.sampled:
        gap, v, _ = _deviations(evidence, sampled)
        states = sampled.course.states
        reach = np.max(np.abs(states.second) * states.norms, axis=(1, 2))
        delta = np.array([found.value for found in sampled.suprema])
        worst.append(float(np.max(np.max(gap / v, axis=(1, 2)) / (2 * delta * (reach + 1)))))
        largest = max(largest, float(np.max(reach)))
    text = "Largest deviation over 2 delta (C + 1) v_i |a|, with the C of each run."
    found = at_most(worst, 1.0, seeds=len(evidence.sampled[0].suprema), detail=text)
    return given(found, Hypothesis("|v_i w_i| <= C|a|, C being the largest of the runs", True, largest, largest))


def deviation_hypothesis(evidence: Evidence) -> Finding:
    sizes, texts, kept = [], [], True
    for sampled in evidence.sampled:
        gap, v, _ = _deviations(evidence, sampled)
        sizes.append(float(np.max(2 * gap / v)))
        texts.append(f"n={sampled.ratio}d: {sizes[-1]:.2f}.")
        course = sampled.course
        angle = np.max(course.states.angles, axis=-1)
        first = np.where((angle <= C4).any(1), np.argmax(angle <= C4, axis=1), len(course.tau))
        kept &= bool(np.all(np.where(np.arange(len(course.tau)) >= first[:, None], angle, 0.0) <= C4))
    text = "The conclusion (angles stay below pi/20 once there) " + ("held." if kept else "did not hold either.")
    return at_most(
        sizes,
        C5,
        seeds=len(evidence.sampled[0].suprema),
        detail="Largest |Delta G_i|/|a|: " + " ".join(texts) + f" {text}",
    )


def sample_threshold(evidence: Evidence) -> Finding:
    runs, count = evidence.recovered, evidence.sizes.scan_seeds
    dims = np.array(list(runs), float)

    def half(drawn: NDArray[np.intp]) -> Numbers:
        """The n of each d with which half of these data sets succeed."""
        shares = [{ratio: np.mean(good[drawn]) for ratio, good in by.items()} for by in runs.values()]
        return dims * [crossing(np.array(list(by)), np.array(list(by.values()))) for by in shares]

    law, places = lines.exponent_over_seeds(dims, half, count), half(np.arange(count)) / dims
    texts = [
        f"d={dim}: " + ", ".join(f"{np.mean(good):.2f} at n={ratio:g}d" for ratio, good in by.items()) + "."
        for dim, by in runs.items()
    ]
    text = f"Half are recovered at n/d = {', '.join(f'{place:.2f}' for place in places)}; n goes as d^{law:.2f} (95 %)."
    text += f" Recovered {' '.join(texts)}"
    return interval_is(law.value, law.interval, 1.0, within=0.25, seeds=count, detail=text)


def crossing(ratios: Numbers, share: Numbers) -> float:
    """Where the recovered share first passes 1/2, by interpolation; nan when it does not."""
    above = share >= 0.5
    if above[0] or not above.any():
        return math.nan
    i = int(np.argmax(above))
    return float(ratios[i - 1] + (0.5 - share[i - 1]) / (share[i] - share[i - 1]) * (ratios[i] - ratios[i - 1]))


def several_outputs(evidence: Evidence) -> Finding:
    """Empirical runs with r > 1: whether the end has the population loss of the target."""
    good = {case: int(np.sum(loss < 1e-4)) for case, loss in evidence.recovered_outputs.items()}
    count = sum(len(loss) for loss in evidence.recovered_outputs.values())
    text = "Recovered: " + ", ".join(
        f"{n} of {evidence.sizes.multi_seeds} (r={r}, d={d})" for (r, d), n in good.items()
    )
    return every(sum(good.values()), count, detail=f"{text}.")


def norm_on_a_net(evidence: Evidence) -> Finding:
    """Lemma 14 in the plane: random symmetric matrices, and those whose eigenvectors lie farthest from the net."""
    entries = evidence.random(14).standard_normal((evidence.sizes.states, 3))
    worst = []
    for eps, net in evidence.nets.items():
        turn = np.arctan2(net[:, 1], net[:, 0])
        middle = (turn[0] + turn[1]) / 2
        farthest = np.array([[np.cos(2 * middle), np.sin(2 * middle), -np.cos(2 * middle)]])
        matrices = np.concatenate([entries, farthest])
        first, across, last = matrices.T
        norm = np.abs(first + last) / 2 + np.hypot((first - last) / 2, across)
        forms = matrices @ np.stack([net[:, 0] ** 2, 2 * net[:, 0] * net[:, 1], net[:, 1] ** 2])
        worst.append(np.max((1 - 2 * eps) * norm / np.max(np.abs(forms), axis=1)))
    sizes = ", ".join(f"{len(net)} points (eps={eps:g})" for eps, net in evidence.nets.items())
    text = f"Largest (1 - 2 eps)|A|/max |u.Au|, d = 2: {sizes}; 9^d = 81."
    return all_of([at_most(worst, 1.0, seeds=len(entries), detail=text), at_most(len(evidence.nets[0.25]), 9**2)])


def tail_bounds(evidence: Evidence) -> Finding:
    levels = np.concatenate([np.linspace(1, 20, 39), [50.0, 200.0, 1e4]])
    first, second = np.array([evidence.tail_moments(level) for level in levels]).T
    text = f"Largest e^(tau/2) E Y^2, tau = 1 to 1e4; e^(tau/2) E Y <= {np.max(first):.3f}, bound 4."
    return all_of([at_most(second, 16.0, seeds=len(levels), detail=text), at_most(first, 4.0)])


def _no_growth(evidence: Evidence, name: str, bound: Callable, summary: Callable) -> Finding:
    """That a number over data sets, of their suprema, divided by a bound without its constant, does not grow with n, "
    "at any tau."""
    levels = sorted({level for level, _ in evidence.truncated})
    found, texts = [], []
    for level in levels:
        ratios = np.array([ratio for at, ratio in evidence.truncated if at == level], float)
        values = np.array([evidence.truncated[level, int(ratio)][:, 0] for ratio in ratios])
        law = bound(level, ratios)
        slope = lines.exponent_over_seeds(ratios, lambda drawn: summary(values[:, drawn]) / law, values.shape[1])  # noqa: B023
        found.append(interval_at_most(slope.value, slope.interval, 0.25, seeds=values.shape[1]))
        texts.append(f"tau={level:g}: {np.max(summary(values) / law):.2f}, exponent {slope:.2f}")
    text = f"Largest {name} over the bound without its constant, and its exponent in n (95 %): {'; '.join(texts)}."
    return all_of([replace(found[0], detail=text), *found[1:]])


TAIL = 1.0  # t of Lemma 23: a probability of 1 - 1/e, which sixty data sets can show


def truncated_mean(evidence: Evidence) -> Finding:
    return _no_growth(
        evidence, "mean supremum", lambda level, r: level / np.sqrt(r), lambda values: np.mean(values, axis=1)
    )


def truncated_tail(evidence: Evidence) -> Finding:
    return _no_growth(
        evidence,
        "supremum at 1 - 1/e",
        lambda level, r: level / np.sqrt(r) + np.sqrt(level * TAIL / (2 * r)) + level * TAIL / (2 * r),
        lambda values: np.quantile(values, 1 - math.exp(-TAIL), axis=1),
    )


TAIL_CONSTANT = 8.0  # C of Lemma 16, with c = 1/2


def tail_on_a_net(evidence: Evidence) -> Finding:
    shares, texts = [], []
    for (level, ratio), values in evidence.truncated.items():
        law = math.sqrt(math.exp(-level / 2) / ratio) + 1 / ratio
        shares.append(float(np.quantile(values[:, 1], 1 - math.exp(-TAIL))) / law)
        texts.append(f"{shares[-1]:.2f} (tau={level:g}, n={ratio}d)")
    count = evidence.sizes.truncated_sets
    text = f"Deviation at 1 - 1/e over the bound without its constant: {', '.join(texts)}."
    return at_most(shares, TAIL_CONSTANT, seeds=count, detail=text)


CLAIMS = (
    Claim(
        "BL29",
        "Lemma 10",
        "sup |M - EM| <= C sqrt(d/n), up to a logarithm.",
        "Gaussian data",
        uniform_concentration,
        kind=Kind.READING,
        reading="The logarithm is read as log(n/d), and C as one that does not grow with n/d. The upper bound is "
        "decided for d = 2 alone, where arcs of directions can be enumerated; for larger d a search finds lower "
        "bounds, which are told.",
        explanation="C is not given; in the plane the supremum is exact, elsewhere what a search finds, a lower bound.",
    ),
    Claim(
        "BL30",
        "Lemma 11",
        "|grad_{w_i} Lhat - grad_{w_i} L| <= v_i delta (|h_1| + |h_2|), delta := sup |M - EM|.",
        "along empirical runs",
        gradient_deviation,
        explanation="delta is the supremum found on the same data, a lower bound of the true one.",
    ),
    Claim(
        "BL31",
        "Corollary 24",
        "The deviation is at most 2 delta (C + 1) v_i|a| where |v_i w_i| <= C|a|.",
        "along empirical runs",
        bounded_deviation,
        explanation="Lemma 11 with |h_i| <= (C + 1)|a|.",
    ),
    Claim(
        "BL32",
        "Lemmas 4, 5, hypothesis",
        "|Delta G_i| <= |a|/50 along empirical runs.",
        "n up to 500d",
        deviation_hypothesis,
        kind=Kind.READING,
        reading="n up to 500 d, where n >= C d with a C that is not given: it would have to be far larger.",
        expected=Verdict.FAILS,
        explanation="It would need far more samples; what the lemmas conclude holds without it.",
    ),
    Claim(
        "BL33",
        "Theorem 2",
        "n >= C d samples suffice, with one C for all d.",
        "sigma = 1e-3, 6000 updates",
        sample_threshold,
        kind=Kind.READING,
        reading="One C for all d is read as a law: the n with which half of the data sets succeed goes as d^1, to 1/4 "
        "in the exponent, at one sigma and mu.",
        unconditional="The start has the law of the theorem, and sigma, mu and n are asked for up to constants that it "
        "leaves open.",
        explanation="Success against n/d falls on one curve; half the runs succeed between 2.5 and 3.",
    ),
    Claim(
        "BL56",
        "Section 4",
        "For several outputs, too, n >= c r d samples suffice.",
        "k = 2r, sigma = 1e-3, Xavier, 6000 updates",
        several_outputs,
        kind=Kind.READING,
        reading="c = 4 is taken for the sufficiently large c, and success is a population loss below 1e-4 in every "
        "run; a smaller c fails in some.",
        explanation="The run has k (d + r) weights and n r equations, so that n of order d is what must be asked for.",
    ),
    Claim(
        "BL57",
        "Lemma 14",
        "|A| <= max over an eps-net of |u.Au|/(1 - 2 eps), and a 1/4-net has at most 9^d points.",
        "d = 2, random and worst symmetric matrices",
        norm_on_a_net,
        must_hold=True,
        explanation="The net of equal angles is the smallest of its mesh in the plane.",
    ),
    Claim(
        "BL58",
        "Lemma 15",
        "E(Z^2 - tau)_+ <= 4 e^(-tau/2) and E(Z^2 - tau)_+^2 <= 16 e^(-tau/2).",
        "tau >= 1",
        tail_bounds,
        must_hold=True,
        explanation="The constants are those that the lemma's proof yields, c = 1/2 and C = 16.",
    ),
    Claim(
        "BL59",
        "Lemma 16",
        "Over a 1/4-net the tails' means are within C sqrt(e^(-c tau) d/n) + C d/n of their expectations.",
        "d = 2, 13 points, tau = 1, 4, 9, probability 1 - 1/e",
        tail_on_a_net,
        kind=Kind.READING,
        reading="C = 8 and c = 1/2 are taken, and a probability that sixty data sets can show. A smaller C does, too, "
        "down to the measured one.",
        explanation="The net has 13 points in the plane.",
    ),
    Claim(
        "BL60",
        "Lemma 21",
        "E sup |(P_n - P) f| <= C tau sqrt(d/n) over the truncated class.",
        "d = 2, one u, tau = 1, 4, 9",
        truncated_mean,
        kind=Kind.READING,
        reading="C is one that does not grow with n: the exponent in n of the ratio is at most 1/4, at tau = 1, 4 and "
        "9. In the plane, where arcs can be enumerated; for larger d the supremum is not known.",
        explanation="The true mean goes as sqrt(d/n), and grows less than tau.",
    ),
    Claim(
        "BL61",
        "Lemma 23",
        "With probability 1 - e^-t, sup |(P_n - P) f| <= C tau sqrt(d/n) + C sqrt(tau t/n) + C tau t/n.",
        "d = 2, one u, t = 1, tau = 1, 4, 9",
        truncated_tail,
        kind=Kind.READING,
        reading="C is one that does not grow with n: the exponent in n of the ratio is at most 1/4, at tau = 1, 4 and "
        "9. In the plane, where arcs can be enumerated; t = 1 is what sixty data sets can show.",
        explanation="The quantile follows the mean (BL60).",
    ),
)
