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
    at_most,
    probability_at_least,
    probability_at_most,
    probability_is,
)
from tutelage.papers.relu_teachers.assumptions import assumptions
from tutelage.papers.relu_teachers.chain import norm_bounds, norm_probability
from tutelage.papers.relu_teachers.evidence import Evidence

DELTA, STUDENTS, TEACHERS = 0.01, 6, 2
NORMS, ANGLES = 3.2, 2.0
"""Constants of the orders: d >= NORMS ln(2 m/delta) and d >= ANGLES ln(2 m k/delta)/zeta^2."""
ZETA = 0.5
LARGE = tuple((m, delta) for m in (1, 6, 100, 10**4) for delta in (0.1, 1e-2, 1e-4, 1e-8))


def enough_for_norms(students: int, delta: float) -> int:
    """From the tails of chi^2: P(chi^2 < d/4) <= exp(-0.318 d), P(chi^2 > 4 d) <= exp(-0.807 d)."""
    return math.ceil(NORMS * math.log(2 * students / delta))


def enough_for_angles(students: int, teachers: int, delta: float) -> int:
    """From the tail of a coordinate of a unit vector: P(|cos| > x) <= 2 exp(-d x^2/2), with x = zeta up to its cube."""
    return math.ceil(ANGLES * math.log(2 * students * teachers / delta) / math.sin(ZETA) ** 2)


def start_norms(evidence: Evidence) -> Finding:
    dim = enough_for_norms(STUDENTS, DELTA)
    lengths = np.linalg.norm(evidence.starts[dim], axis=-1)
    s1, s2 = norm_bounds(1.0, dim)
    inside = int(np.sum(np.all((lengths >= s1) & (lengths <= s2), axis=1)))
    failing = max((1 - norm_probability(enough_for_norms(m, delta), m)) / delta for m, delta in LARGE)
    text = f"d = {dim}: {inside} of {len(lengths)} starts inside, delta = {DELTA}. By the law of chi^2 the chance of a "
    text += f"start outside is at most {failing:.2g} delta for m to {LARGE[-1][0]} and delta to {LARGE[-1][1]:g}."
    sampled = probability_at_least(inside, len(lengths), 1 - DELTA, detail=text)
    return all_of([sampled, at_most(failing, 1.0)])


def start_law(evidence: Evidence) -> Finding:
    findings = []
    for dim in evidence.sizes.start_dims:
        lengths = np.linalg.norm(evidence.starts[dim], axis=-1)
        s1, s2 = norm_bounds(1.0, dim)
        inside = int(np.sum(np.all((lengths >= s1) & (lengths <= s2), axis=1)))
        law = norm_probability(dim, lengths.shape[1])
        text = f"d = {dim}: {inside} of {len(lengths)} starts inside, law {law:.6f}."
        findings.append(probability_is(inside, len(lengths), law, detail=text))
    return all_of(findings)


def start_angles(evidence: Evidence) -> Finding:
    dim = enough_for_angles(STUDENTS, TEACHERS, DELTA)
    good, starts = _within(evidence, dim)
    few = max(dim // 8, 2)
    short, _ = _within(evidence, few)
    text = (
        f"d = {dim}: {good} of {starts} starts have all angles within {ZETA} of pi/2, delta = {DELTA}; at d = {few}, "
    )
    text += f"an eighth of it, {short}: the order is right."
    found = probability_at_least(good, starts, 1 - DELTA, detail=text)
    return all_of([found, probability_at_most(short, starts, 1 - DELTA)])


def _within(evidence: Evidence, dim: int) -> tuple[int, int]:
    """Starts whose angles, those to the nearest teacher included, all lie within zeta of pi/2; and of how many."""
    starts = evidence.starts[dim]
    theta = np.stack([angles_between(one, np.eye(TEACHERS, starts.shape[-1])) for one in starts])
    return int(np.sum(np.max(np.abs(np.pi / 2 - theta), axis=(1, 2)) <= ZETA)), len(starts)


def no_weak_recovery(evidence: Evidence, dim: int = 100) -> Finding:
    starts, teacher = evidence.starts[dim], np.eye(TEACHERS, evidence.starts[dim].shape[-1])
    cosines = np.cos([angles_between(one, teacher) for one in starts])
    chance = float(kstest(cosines.ravel(), norm(scale=1 / math.sqrt(dim)).cdf).pvalue)
    recovered = sum(assumptions(one, teacher, dim=dim, sigma=1.0).weak_recovery for one in starts)
    nearest = float(np.mean(np.max(cosines, axis=-1)))
    text = (
        f"d = {dim}: the nearest teacher's cosine averages {nearest:.3f}; Kolmogorov-Smirnov p = {chance:.2g} against "
    )
    text += f"N(0, 1/d); {recovered} of {len(starts)} starts satisfy Assumption 1 with eps1 = 0.1."
    # A false alarm in 10000.
    return all_of([at_most(recovered / len(starts), 0.0, detail=text), at_least(chance, 1e-4)])


CLAIMS = (
    Claim(
        "INIT",
        "Lemma 1",
        "All initial norms lie between s1 = sigma sqrt(d)/2 and s2 = 2 sigma sqrt(d) with probability at least "
        "1 - delta, once d is of the order log(m/delta).",
        "Gaussian start, m = 6, delta = 0.01; the exact law for m to 1e4 and delta to 1e-8",
        start_norms,
        kind=Kind.READING,
        reading="d >= 3.2 ln(2m/delta) is taken, which the tails of chi^2 give; a constant below 3.1 fails for "
        "small delta in the end.",
        explanation="The chance of a student outside falls as exp(-0.318 d).",
    ),
    Claim(
        "INIT:law",
        "new (Lemma 1)",
        "The chance that all m norms lie in [s1, s2] is P(d/4 <= chi^2_d <= 4d)^m.",
        "Gaussian start, m = 6",
        start_law,
        kind=Kind.OURS,
        explanation="0.95 for d = 10, 1 - 8e-8 for d = 50.",
    ),
    Claim(
        "GORTH",
        "Lemma 2",
        "With d of the order log(mk/delta)/zeta^2 all angles of students and teachers, the nearest included, lie "
        "within zeta of pi/2 with probability at least 1 - delta.",
        "Gaussian start, k = 2, m = 6, zeta = 0.5, delta = 0.01",
        start_angles,
        kind=Kind.READING,
        reading="d >= 2 ln(2mk/delta)/sin(zeta)^2 is taken, by the normal tail; with an eighth of it the statement "
        "fails. The proof's constant, 32 and more, suffices all the more.",
        explanation="The order is right in both directions.",
    ),
    Claim(
        "GORTH:weak",
        "new (Assumption 1, Lemma 2)",
        "A Gaussian start in high dimension does not satisfy Assumption 1: cos theta_ij is about N(0, 1/d).",
        "Gaussian start, d = 100, k = 2, m = 6",
        no_weak_recovery,
        kind=Kind.OURS,
        explanation="The nearest teacher is no nearer than the others, in the order of things: weak recovery must be "
        "imposed.",
    ),
)
