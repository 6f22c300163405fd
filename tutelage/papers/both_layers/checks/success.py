"""Which small starts succeed, and how often (Section 4, the probability in Theorem 2, Appendix E.1)."""

import dataclasses
import math

import numpy as np
from scipy.optimize import linprog

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
    lines,
    probability_is,
)
from tutelage.papers.both_layers.clusters import side_sums
from tutelage.papers.both_layers.constants import CHAT4
from tutelage.papers.both_layers.evidence import Evidence
from tutelage.papers.both_layers.laws import failure_law, initial_event_law, plateau_level, success_law
from tutelage.papers.both_layers.pairs import pair_up
from tutelage.papers.both_layers.start import both_signs, growing_modes
from tutelage.problem import Numbers


def sign_rule(evidence: Evidence) -> Finding:
    right, total = 0, 0
    for trials in evidence.trials.values():
        predicted = both_signs(growing_modes(trials.start_second, trials.start_first, trials.target))
        right, total = right + int(np.sum(predicted == trials.success)), total + len(predicted)
    text = f"{right} of {total} outcomes foretold from v_i(0) + a.w_i(0)/|a|."
    return every(right, total, detail=text)


def paper_sign_rule(evidence: Evidence) -> Finding:
    trials = evidence.trials[2]
    mixed = both_signs(trials.start_second)
    good = int(np.sum(trials.success[mixed]))
    return every(good, int(mixed.sum()), detail=f"{good} of {mixed.sum()} starts with opposite signs succeed.")


def equal_signs_fail(evidence: Evidence) -> Finding:
    trials = evidence.trials[2]
    equal = ~both_signs(trials.start_second)
    bad = int(np.sum(~trials.success[equal]))
    return every(bad, int(equal.sum()), detail=f"{bad} of {equal.sum()} starts with equal signs get stuck.")


def success_probability(evidence: Evidence) -> Finding:
    findings = []
    for width, trials in evidence.trials.items():
        good, count = int(trials.success.sum()), len(trials.success)
        text = f"k={width}: {good}/{count} (law {success_law(width):.4f})."
        findings.append(probability_is(good, count, success_law(width), detail=text))
    failed = np.concatenate([trials.loss[~trials.success] for trials in evidence.trials.values()])
    if len(failed):
        findings.append(at_most(np.abs(failed - 0.25), 1e-6, detail="All failures are at L = 1/4."))
    return all_of(findings)


def failure_probability(evidence: Evidence) -> Finding:
    findings = []
    for dim, trials in evidence.theorem_trials.items():
        bad, count = int(np.sum(~trials.success)), len(trials.success)
        text = f"d={dim}: {bad}/{count} (law {failure_law(dim):.4f})."
        findings.append(probability_is(bad, count, failure_law(dim), detail=text))
    return all_of(findings)


def side_totals(evidence: Evidence) -> Finding:
    worst, by_sign, count = 0.0, 0.0, 0
    for width, trials in evidence.trials.items():
        # Neurons of one side keep angles of 1e-8, so that the loss stops near 1e-25.
        done = trials.loss < 1e-22
        if width == 2 or not done.any():
            continue
        second, first = trials.final_second[done], trials.final_first[done]
        for total in side_sums(second, first, trials.target):
            worst = max(worst, float(np.max(np.abs(total - trials.target))))
        positive = np.sum(np.where(second > 0, second, 0.0)[..., None] * first, axis=1)
        by_sign, count = max(by_sign, float(np.max(np.abs(positive - trials.target)))), count + int(done.sum())
    if not count:
        return Finding(Verdict.NOT_REACHED, detail="No run with k > 2 converged below a loss of 1e-22.")
    return at_most(worst, 1e-12, seeds=count, detail=f"Grouped by the sign of v_i instead: {by_sign:.0e}.")


def initial_event_bound(dim: int) -> float:
    """The probability that C.4 states, with its own constant."""
    return 1 - 8 * math.exp(-min(1 / 16, CHAT4**2 / 4) * dim)


def initial_event(evidence: Evidence) -> Finding:
    dim, trials = next(iter(evidence.theorem_trials.items()))
    v = np.abs(trials.start_second)
    along = trials.start_first @ trials.target * np.sign(trials.start_second)
    good = int(np.sum(np.all(along >= -CHAT4 * v, axis=1)))
    law = initial_event_law(dim, CHAT4) ** 2
    stated = initial_event_bound(dim)
    finding = probability_is(good, len(v), law, detail=f"d={dim}: {good}/{len(v)}, law of two t-variables {law:.3f}.")
    needed = math.log(8) / (CHAT4**2 / 4)
    text = f"The stated probability {stated:.2f} says nothing before d = {needed:.1e}."
    finding = dataclasses.replace(finding, detail=f"{text} {finding.detail}")
    return given(finding, Hypothesis("the stated probability is positive", stated > 0, stated, 0.0, ">"))


def pairing(evidence: Evidence) -> Finding:
    gaps: dict[float, float] = {}
    angles, residuals, mutual, count = [], [], True, 0
    for runs in evidence.outputs.values():
        for run in runs:
            found = [pair_up(v, w, run.target) for v, w in zip(run.final_second, run.final_first, strict=True)]
            mutual &= all(pairs.mutual for pairs in found)
            angles += [np.max([*pairs.first_angle, *pairs.second_angle]) for pairs in found]
            residuals += [pairs.residual for pairs in found]
            gaps[run.step] = max(gaps.get(run.step, 0.0), max(np.max([*p.first_gap, *p.second_gap]) for p in found))
            count += len(found)
    slope = _slope(gaps)
    text = f"Norms in a pair differ by {max(gaps.values()):.1e}, slope {slope:.2f} in mu; A to {max(residuals):.0e}."
    return all_of(
        [
            at_most(angles, 1e-12, seeds=count, detail="pi minus the angle of partners, both layers. " + text),
            at_most(residuals, 1e-11),
            at_most(abs(slope - 1), 0.25),
            every(int(mutual), 1),
        ]
    )


def imbalance_order(evidence: Evidence) -> Finding:
    drifts: dict[float, float] = {}
    count = 0
    for runs in evidence.outputs.values():
        for run in runs:
            ends = [
                np.sum(w**2, axis=-1) - np.sum(v**2, axis=-1)
                for v, w in ((run.start_second, run.start_first), (run.final_second, run.final_first))
            ]
            drifts[run.step] = max(drifts.get(run.step, 0.0), float(np.max(np.abs(ends[1] - ends[0]))))
            count += len(run.loss)
    slope = _slope(drifts)
    text = "Largest drift of b_i: " + ", ".join(f"{value:.1e} at mu={step:g}" for step, value in drifts.items()) + "."
    return at_most(abs(slope - 1), 0.2, seeds=count, detail=f"Slope {slope:.3f} of the drift in mu. {text}")


def _slope(values: dict[float, float]) -> float:
    return float(lines.exponent(list(values), list(values.values())))


def half_space_success(evidence: Evidence) -> Finding:
    good, total, inside, inside_good = 0, 0, 0, 0
    for runs in evidence.outputs.values():
        run = runs[0]
        success = run.loss < 1e-6
        halves = np.array(
            [
                _in_half_space(growing_modes(v, w, run.target))
                for v, w in zip(run.start_second, run.start_first, strict=True)
            ]
        )
        good, total = good + int(success.sum()), total + len(success)
        inside, inside_good = inside + int(halves.sum()), inside_good + int(success[halves].sum())
    text = f"{inside_good} of {inside} succeed among starts whose directions lie in a half-space."
    if not inside:
        return Finding(Verdict.NOT_REACHED, seeds=total, detail="No start lay in a half-space.")
    return every(good, total, detail=text)


def _in_half_space(modes: Numbers) -> bool:
    """Whether some u has u.m_i >= 1 for all i."""
    found = linprog(np.zeros(modes.shape[1]), A_ub=-modes / np.linalg.norm(modes, axis=1, keepdims=True),
                    b_ub=-np.full(len(modes), 1e-6), bounds=[(-1, 1)] * modes.shape[1])  # fmt: skip
    return bool(found.status == 0)


def one_too_few(evidence: Evidence) -> Finding:
    """Whether, with 2r - 1 neurons, every run ends where three of them share a plane."""
    losses = evidence.short_of_one
    there = np.abs(losses - plateau_level()) < 1e-6
    others = sorted({f"{loss:.6f}" for loss in losses[~there]})
    text = f"r = 3, k = 5: {int(there.sum())} of {len(losses)} end at {plateau_level():.6f}"
    text += f", the others at {', '.join(others)}." if others else "."
    count = int(there.sum())
    return every(count, len(losses), detail=text)


CLAIMS = (
    Claim(
        "BL10",
        "new (Section 4)",
        "A small start succeeds exactly when both signs occur in v_i(0) + a.w_i(0)/|a|.",
        "sigma = 1e-8, Xavier",
        sign_rule,
        kind=Kind.OURS,
        explanation="Only the growing mode of each neuron survives the linear phase.",
    ),
    Claim(
        "BL11",
        "new (Section 4)",
        "P(success) = 1 - 2^(1-k).",
        "small sign-symmetric start",
        success_probability,
        kind=Kind.OURS,
        explanation="The signs of the growing modes are independent and fair.",
    ),
    Claim(
        "BL12",
        "new (Theorem 2)",
        "P(failure) = 2p(1-p), p = P(t_d < -sqrt d).",
        "Theorem 2's start, sigma -> 0",
        failure_probability,
        kind=Kind.OURS,
        explanation="A neuron turns round when a.w_i(0) < -v_i(0); about 2^(-d/2).",
    ),
    Claim(
        "BL28",
        "Section 5.2",
        "The imbalance |w_i|^2 - |V_i|^2 is kept by the flow: its drift under descent is O(mu).",
        "k = 2r, whole runs",
        imbalance_order,
        kind=Kind.READING,
        reading="O(mu) is read as a drift that is proportional to mu between two steps, to 0.2 in the exponent.",
        explanation="Each update adds mu^2 (|grad_w|^2 - |grad_V|^2), over 1/mu updates.",
    ),
    Claim(
        "BL37",
        "Section 4, k > 2",
        "At convergence the sums of v_i w_i on the two sides of the target both equal a.",
        "k > 2, sigma = 1e-8",
        side_totals,
        explanation="Weighted by v_i and grouped by sign(w_i.a); grouping by sign(v_i) is right generically only.",
    ),
    Claim(
        "BL38",
        "Appendix E.1",
        "The neurons end in r antiparallel pairs: directions exactly, norms up to O(mu).",
        "k = 2r, sigma = 1e-8",
        pairing,
        kind=Kind.READING,
        reading="O(mu) is read as gaps of norms that are proportional to mu between two steps, to 0.25 in the "
        "exponent; directions are exact to 1e-12.",
        explanation="At a global minimum each line must balance, so k = 2r leaves r pairs.",
    ),
    Claim(
        "BL39",
        "new",
        "Every small start succeeds for r >= 2, also when all initial directions lie in a half-space.",
        "k = 2r, sigma = 1e-8",
        half_space_success,
        kind=Kind.OURS,
        explanation="A half-space start has probability 1/2 (Wendel); for r = 1 it would fail.",
    ),
    Claim(
        "BL41",
        "C.4, initial event",
        "a.w_1(0) >= -c4^ v_1(0) and -a.w_2(0) >= -c4^ v_2(0) with probability 1 - 8 exp(-c4^^2 d/4).",
        "Theorem 2's start",
        initial_event,
        expected=Verdict.NOT_APPLICABLE,
        explanation="The event has probability near 1/4; the stated bound is negative, so vacuous, below d = 5e6.",
    ),
    Claim(
        "BL46",
        "Section 4",
        "Iterates get stuck only when v_1(0), v_2(0) have the same sign.",
        "k = 2, sigma = 1e-8, Xavier",
        paper_sign_rule,
        expected=Verdict.FAILS,
        explanation="The sign that counts is that of v_i(0) + a.w_i(0)/|a|.",
    ),
    Claim(
        "BL53",
        "new (Section 4)",
        "Iterates get stuck whenever v_1(0), v_2(0) have the same sign.",
        "k = 2, sigma = 1e-8, Xavier",
        equal_signs_fail,
        kind=Kind.OURS,
        expected=Verdict.FAILS,
        explanation="The paper says only when. The sign that counts is that of v_i(0) + a.w_i(0)/|a|.",
    ),
    Claim(
        "BL50",
        "new (Appendix E.1)",
        "With k = 2r - 1 neurons every small start ends with three neurons at 120 degrees in a plane, at L = 0.15825.",
        "r = 3, sigma = 1e-8, Xavier",
        one_too_few,
        kind=Kind.OURS,
        expected=Verdict.FAILS,
        explanation="About half the starts end a little lower, at 0.158046: one neuron with four bent away from it, at "
        "166.4 and 89.2 degrees to each other, instead of a pair and three at 120 degrees.",
    ),
)
