"""Finite samples: concentration, gradient deviations, how many samples are enough (Lemmas 10, 11, Theorem 2)."""

import math

import numpy as np

from tutelage.analysis import (
    Claim,
    Finding,
    Hypothesis,
    Kind,
    Verdict,
    at_most,
    given,
    interval_at_most,
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
    crossings, texts = [], []
    for dim, counts in evidence.recovered.items():
        ratios = np.array(sorted(counts))
        share = np.array([counts[ratio] for ratio in ratios]) / evidence.sizes.scan_seeds
        crossings.append(_crossing(ratios, share))
        texts.append(f"d={dim}: " + ", ".join(f"{s:.2f} at n={r:g}d" for r, s in zip(ratios, share, strict=True)) + ".")
    text = "Recovered " + " ".join(texts)
    if np.any(np.isnan(crossings)):
        return Finding(
            Verdict.FAILS, math.nan, 1.0, seeds=evidence.sizes.scan_seeds, detail=f"No crossing of 1/2. {text}"
        )
    spread = max(crossings) - min(crossings)
    text = f"Half are recovered at n/d = {', '.join(f'{c:.2f}' for c in crossings)}. {text}"
    return at_most(spread, 1.0, seeds=evidence.sizes.scan_seeds, detail=text)


def _crossing(ratios: Numbers, share: Numbers) -> float:
    """Where the recovered share first passes 1/2, by interpolation; nan when it does not."""
    above = share >= 0.5
    if above[0] or not above.any():
        return math.nan
    i = int(np.argmax(above))
    return float(ratios[i - 1] + (0.5 - share[i - 1]) / (share[i] - share[i - 1]) * (ratios[i] - ratios[i - 1]))


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
        reading="One C for all d is read as thresholds n/d of half the runs that differ by at most 1 from d = 10 to "
        "40, at one sigma and mu; with C left open no finite d can refute it.",
        unconditional="The start has the law of the theorem, and sigma, mu and n are asked for up to constants that it "
        "leaves open.",
        explanation="Success against n/d falls on one curve; half the runs succeed between 2.5 and 3.",
    ),
)
