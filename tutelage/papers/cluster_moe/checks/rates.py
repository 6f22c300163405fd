"""Theorem 4.6 and its lemmas as rates: how the error falls with each size."""

from collections.abc import Callable

import numpy as np

from tutelage.analysis import (
    Claim,
    Finding,
    Kind,
    Verdict,
    given,
    interval_at_least,
    interval_at_most,
    interval_is,
    mean_at_least,
)
from tutelage.papers.cluster_moe import rates, signs
from tutelage.papers.cluster_moe.assumptions import assumed
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.rates import Rate

WITHIN = 0.1
"""How close an interval has to be to the exponent that it has."""


def _told(rate: Rate) -> str:
    mean = rate.errors.mean(0)
    pairs = ", ".join(f"{error:.3f} ({size:g})" for size, error in zip(rate.sizes, mean, strict=True))
    return f"Means over {len(rate.errors)} seeds: {pairs}."


def _judged(rate: Rate, judge: Callable[..., Finding], law: float, **more: float) -> Finding:
    found = judge(rate.exponent, rate.interval, law, seeds=len(rate.errors), detail=_told(rate), **more)
    flips = signs.UNTRAINED if rate.flipped is None else signs.kept(rate.flipped)
    return given(found, *assumed(rates.laboratory()), flips)


def falls_with_width(evidence: Evidence) -> Finding:
    return _judged(rates.by_width(evidence.size), interval_at_most, -1.0)


def falls_with_samples(evidence: Evidence) -> Finding:
    return _judged(rates.by_samples(evidence.size), interval_is, -0.5, within=WITHIN)


def falls_with_training(evidence: Evidence) -> Finding:
    return _judged(rates.by_late(evidence.size), interval_at_most, -1 / 3)


def is_as_small_as_the_slip(evidence: Evidence) -> Finding:
    return _judged(rates.by_slip(evidence.size), interval_at_least, 1.0)


def cannot_be_smaller(evidence: Evidence) -> Finding:
    rate = rates.squares(evidence.size)
    ratios = rate.errors / rates.least_square(rate.sizes)
    worst = int(np.argmin(ratios.mean(0)))
    return mean_at_least(ratios[:, worst], 1.0, level=rates.LEVEL, detail=_told(rate))


def does_not_grow_with_dim(evidence: Evidence) -> Finding:
    return _judged(rates.by_dim(evidence.size), interval_at_most, 0.0)


_PLACED = "laboratory B with neurons placed on their tasks and perfect routing; {}; 8 seeds (quick: 3)"
_RANGE = "An exponent over this range of sizes stands for the rate; the other sizes are where they hardly matter"

CLAIMS = (
    Claim(
        "CM-22:width",
        "Theorem 4.6, Lemma C.27",
        "The error falls with the neurons J of an expert at least like 1/J.",
        _PLACED.format("J = 4 to 32, biases up to 4, 20,000 samples of Phase IV"),
        falls_with_width,
        kind=Kind.READING,
        reading=f"{_RANGE}. Beyond J = 32 samples and biases limit it, and it falls less.",
    ),
    Claim(
        "CM-22:samples",
        "Theorem 4.6, Lemma C.29",
        "The part of the error that label noise brings falls with the samples of Phase IV like T_4^(-1/2).",
        _PLACED.format("J = 32, noise 3, T_4 = 1000 to 64,000"),
        falls_with_samples,
        kind=Kind.READING,
        reading=f"{_RANGE}. Without label noise the error falls to that of the width with few samples.",
    ),
    Claim(
        "CM-22:late",
        "Theorem 4.6, Lemma C.26",
        "The error falls with the samples of Phase III at least like T_3^(-1/3), if its step falls like 1/T_3.",
        _PLACED.format("J = 32, d = 20, SGD from overlaps 0.75 with 240,000 to 960,000 samples (quick: to 480,000)"),
        falls_with_training,
        kind=Kind.READING,
        reading=f"{_RANGE}. T_3 ~ epsilon^-3 at a fixed d is -1/3; T_3 ~ d epsilon^-2 alone would be -1/2. With 60,000 "
        "samples noise makes some neurons change a sign, and Assumption 3.4 is not met.",
    ),
    Claim(
        "CM-C28",
        "Lemmas C.26 and C.28",
        "With neurons of overlaps 1 - epsilon (Lemma C.26) the part of the root mean square error that this brings is "
        "of order epsilon (Lemma C.28).",
        _PLACED.format("one expert of 128 neurons per cluster, epsilon = 0.005 to 0.04, one direction per task"),
        is_as_small_as_the_slip,
        kind=Kind.READING,
        reading=f"{_RANGE}. All neurons of a task miss it in the same direction, which Lemma C.26 allows, as it bounds "
        "overlaps only. Different misses could be averaged by the second layer, which the proof does not do.",
        expected=Verdict.FAILS,
        explanation="A neuron at 1 - epsilon is sqrt(2 epsilon) away from its task. So C.28 needs 1 - epsilon^2 of "
        "C.26. With a step of order epsilon^2/d, held for some relaxation times, the theorem's d epsilon^-2 samples "
        "are enough for that.",
    ),
    Claim(
        "CM-C28:mended",
        "Lemmas C.26 and C.28",
        "With neurons of overlaps 1 - epsilon, all of a task in one direction, the mean squared error is at least "
        "2 (1 - (1 - epsilon)^(2 k)), which is of order epsilon and not epsilon^2.",
        _PLACED.format("one expert of 128 neurons per cluster, epsilon = 0.005 to 0.04, one direction per task"),
        cannot_be_smaller,
        kind=Kind.OURS,
        explanation="Of h_k along the task no function of the neuron's argument has more than (1 - epsilon)^(2 k) of "
        "the variance: what is missed is 2 k epsilon of it.",
    ),
    Claim(
        "CM-22:dim",
        "Section 4.2, total sample complexity",
        "With steps that fall like d^(-k/2) and samples that grow like d^(k-1) the error does not grow with d.",
        "laboratory B from d = 12 to 24, 4 seeds (quick: d = 10 and 14, 2 seeds)",
        does_not_grow_with_dim,
        kind=Kind.READING,
        reading="The constant in front of d^(k-1) is that of our laboratory, and d is small. That the exponent is not "
        "less is seen on single neurons (CM-09).",
        expected=Verdict.NOT_APPLICABLE,
        explanation="With the noise of SGD nearly all neurons that explore change the sign of a coefficient, which "
        "Assumption 3.4 excludes (CM-24:trained).",
    ),
)
