"""The Gaussian start: norms (Lemma 1) and angles (Lemma 2)."""

import math

import numpy as np
from scipy.stats import kstest, norm

from tutelage.analysis import (
    Claim,
    Finding,
    Kind,
    all_of,
    angles_between,
    at_least,
    probability_at_least,
    probability_is,
)
from tutelage.papers.relu_teachers.assumptions import assumptions
from tutelage.papers.relu_teachers.chain import norm_bounds, norm_probability
from tutelage.papers.relu_teachers.evidence import Evidence

DELTA = 0.01


def start_norms(evidence: Evidence) -> Finding:
    findings = []
    for dim in evidence.sizes.start_dims:
        lengths = np.linalg.norm(evidence.starts[dim], axis=-1)
        s1, s2 = norm_bounds(1.0, dim)
        inside = int(np.sum(np.all((lengths >= s1) & (lengths <= s2), axis=1)))
        law = norm_probability(dim, lengths.shape[1])
        text = f"d = {dim}: {inside} of {len(lengths)} starts inside, law {law:.6f}."
        findings.append(probability_is(inside, len(lengths), law, detail=text))
    return all_of(findings)


def start_angles(evidence: Evidence, dim: int = 100) -> Finding:
    starts, teacher = evidence.starts[dim], np.eye(2, evidence.starts[dim].shape[-1])
    theta = np.stack([angles_between(one, teacher) for one in starts])
    pairs = theta.shape[1] * theta.shape[2]
    # The normal tail: P(|cos| > x) <= 2 exp(-d x^2/2) for each of the m k angles.
    zeta = math.asin(math.sqrt(2 * math.log(2 * pairs / DELTA) / dim))
    good = int(np.sum(np.max(np.abs(np.pi / 2 - theta), axis=(1, 2)) <= zeta))
    chance = float(kstest(np.cos(theta).ravel(), norm(scale=1 / math.sqrt(dim)).cdf).pvalue)
    recovered = sum(assumptions(one, teacher, dim=dim, sigma=1.0).weak_recovery for one in starts)
    nearest = float(np.mean(np.max(np.cos(theta), axis=-1)))
    text = f"Starts with all angles within {zeta:.3f} of pi/2, d = {dim}; the nearest teacher's cosine averages "
    text += f"{nearest:.3f}, and {recovered} of {len(starts)} starts satisfy Assumption 1."
    return all_of(
        [
            probability_at_least(good, len(starts), 1 - DELTA, detail=text),
            # A false alarm in 10000.
            at_least(chance, 1e-4, detail=f"Kolmogorov-Smirnov p = {chance:.2g} against N(0, 1/d)."),
        ]
    )


CLAIMS = (
    Claim(
        "INIT",
        "Lemma 1",
        "All initial norms lie between s1 = sigma sqrt(d)/2 and s2 = 2 sigma sqrt(d), with the chance that chi^2 has.",
        "Gaussian start, m = 6",
        start_norms,
        kind=Kind.READING,
        reading="The lemma has an order, d of log(m/delta), for 1 - delta; the exact law of chi^2 stands for it, which "
        "no constant enters.",
        explanation="P(d/4 <= chi^2_d <= 4d)^m: 0.95 for d = 10, 1 - 8e-8 for d = 50.",
    ),
    Claim(
        "GORTH",
        "Lemma 2",
        "With d of order log(mk/delta)/zeta^2 all angles of students and teachers, the nearest included, lie within "
        "zeta of pi/2; cos theta_ij is about N(0, 1/d).",
        "Gaussian start, d = 100, k = 2, m = 6, delta = 0.01",
        start_angles,
        kind=Kind.READING,
        reading="The order has the constant of the normal tail, 2 log(2mk/delta)/zeta^2, which suffices by a union "
        "bound; a constant below that would fail in the end.",
        explanation="So a Gaussian start in high dimension does not satisfy Assumption 1: it must be imposed.",
    ),
)
