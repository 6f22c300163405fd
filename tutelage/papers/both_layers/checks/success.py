"""Which small starts succeed, and how often (Section 4, the probability in Theorem 2, Appendix E.1)."""

import dataclasses
import math
from collections.abc import Callable

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
from tutelage.papers.both_layers.constants import C4, CHAT4
from tutelage.papers.both_layers.evidence import Evidence, Trials
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


def _ended(trials: Trials, below: float = 1e-22) -> tuple[Numbers, Numbers]:
    """Second (run, k) and first layer (run, k, n) of the runs that have reached a global minimum."""
    # Units of one side keep angles of 1e-8 from a small start, so that the loss stops near 1e-25.
    done = trials.loss < below
    return trials.final_second[done], trials.final_first[done]


def _group_sums(second: Numbers, first: Numbers, *, weighted: bool) -> Numbers:
    """Sums of w_i, or of |v_i| w_i, over v_i > 0 and over v_i < 0: (run, 2, n)."""
    size = np.abs(second) if weighted else np.ones_like(second)
    return np.stack([np.einsum("si,sin->sn", size * (side * second > 0), first) for side in (1, -1)], axis=1)


def _group_gaps(second: Numbers, first: Numbers, target: Numbers, *, weighted: bool) -> Numbers:
    """The larger distance of the two sums to a and to -a, for each run."""
    gaps = _group_sums(second, first, weighted=weighted) - np.stack([target, -target])
    return np.max(np.linalg.norm(gaps, axis=-1), axis=-1)


def unit_angles(first: Numbers, target: Numbers) -> Numbers:
    """The angles of units to the line of the target."""
    along = first @ target / np.linalg.norm(target)
    across = np.linalg.norm(first - along[..., None] * target / np.linalg.norm(target), axis=-1)
    return np.arctan2(across, np.abs(along))


def no_unit_aligns(evidence: Evidence) -> Finding:
    angles = np.concatenate([unit_angles(_ended(t)[1], t.target).ravel() for t in _wide(evidence)])
    fixed = evidence.fixed_trials
    off = np.min(unit_angles(_ended(fixed, 1e-15)[1], fixed.target), axis=1) > C4
    text = f"{int(np.sum(angles > C4))} of {angles.size} units end off the line of a; smallest |cos| = 1 - "
    text += (
        f"{float(np.max(2 * np.sin(angles / 2) ** 2)):.0e}. With v fixed at +1 and -1, sigma = 1, no unit aligns in "
    )
    text += f"{int(off.sum())} of {len(off)} runs."
    return every(int(np.sum(angles > C4)), angles.size, detail=text)


def _wide(evidence: Evidence) -> list[Trials]:
    return [trials for width, trials in evidence.trials.items() if width > 2]


def units_on_the_line(evidence: Evidence) -> Finding:
    across = []
    for trials in _wide(evidence):
        first = _ended(trials)[1]
        across.append(np.linalg.norm(first - (first @ trials.target)[..., None] * trials.target, axis=-1).ravel())
    return at_most(
        np.concatenate(across), 1e-6, seeds=sum(map(len, across)), detail="Largest |w_i| across a at the end."
    )


def sums_by_sign(evidence: Evidence) -> Finding:
    return _sums(_wide(evidence), weighted=True)


def plain_sums(evidence: Evidence) -> Finding:
    return _sums(_wide(evidence), weighted=False)


def _sums(several: list[Trials], *, weighted: bool) -> Finding:
    gaps = [_group_gaps(*_ended(trials), trials.target, weighted=weighted) for trials in several]
    widths = ", ".join(f"{gap.max():.1e} (k={t.start_second.shape[1]})" for gap, t in zip(gaps, several, strict=True))
    count = sum(map(len, gaps))
    return at_most(np.concatenate(gaps), 1e-12, seeds=count, detail=f"Largest distance of a sum to +-a: {widths}.")


def sums_with_fixed_signs(evidence: Evidence) -> Finding:
    trials = evidence.fixed_trials
    second, first = _ended(trials, 1e-15)
    good = _group_gaps(second, first, trials.target, weighted=False) < 1e-6
    text = f"{int(good.sum())} of {len(good)} runs at a global minimum, {len(trials.loss)} in all."
    return every(int(good.sum()), len(good), detail=text)


def outer_weights_end_at_one(evidence: Evidence) -> Finding:
    return _ones(evidence.trials[2], 1e-22)


def default_start_ends_at_one(evidence: Evidence) -> Finding:
    trials = evidence.default_trials
    imbalance = np.sum(trials.start_first**2, axis=-1) - trials.start_second**2
    kept = np.sqrt((np.sqrt(imbalance**2 + 4) - imbalance) / 2)
    done = trials.loss < 1e-22
    gap = float(np.max(np.abs(np.abs(trials.final_second) - kept)[done]))
    found = _ones(trials, 1e-22)
    return dataclasses.replace(found, detail=f"{found.detail} From b_i of the start |v_i| is foretold to {gap:.2f}.")


def _ones(trials: Trials, below: float) -> Finding:
    """|v_i| and |w_i| at 1, and w_i on a or -a, in the runs with two units that succeed."""
    second, first = _ended(trials, below)
    gaps = np.abs(np.abs(second) - 1)
    misses = np.linalg.norm(first - np.sign(second)[..., None] * trials.target, axis=-1)
    text = f"Largest ||v_i| - 1| of {len(second)} runs that succeed; w_i is off +-a by {misses.max():.1e} at most."
    return all_of([at_most(gaps, 1e-12, seeds=len(second), detail=text), at_most(misses, 1e-12)])


def gaussian_failures(evidence: Evidence) -> Finding:
    return _gaussian(evidence, lambda dim, width: width == 2)


def gaussian_decay(evidence: Evidence) -> Finding:
    return _gaussian(evidence, lambda dim, width: width > 2)


def _gaussian(evidence: Evidence, chosen: Callable[[int, int], bool]) -> Finding:
    """Failures of starts with Gaussian v against 2^(1-k), at each (d, k) that is asked for."""
    findings = []
    for (dim, width), trials in evidence.gauss_trials.items():
        if chosen(dim, width):
            bad, count = int(np.sum(~trials.success)), len(trials.success)
            law = 1 - success_law(width)
            text = f"d={dim}, k={width}: {bad} of {count} fail (law {law:.4f})."
            findings.append(probability_is(bad, count, law, detail=text))
    return all_of(findings)


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


def pairing_of_many(evidence: Evidence) -> Finding:
    run = evidence.many_outputs
    found = [pair_up(v, w, run.target) for v, w in zip(run.final_second, run.final_first, strict=True)]
    good = [bool(pairs.mutual and max([*pairs.first_angle, *pairs.second_angle]) < 1e-9) for pairs in found]
    gap = max(np.max([*pairs.first_gap, *pairs.second_gap]) for pairs in found)
    text = f"r = {len(run.target)}, k = {run.final_second.shape[1]}: partners' norms differ by "
    text += f"{gap:.1e}; "
    text += f"A to {max(pairs.residual for pairs in found):.0e}."
    return every(sum(good), len(good), detail=text)


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
    text = f"{good} of {total} succeed; {inside_good} of {inside} of the starts whose directions lie in a half-space."
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
        "Grouped by the sign of v_i, the sums of |v_i| w_i recover a and -a exactly.",
        "k > 2, both layers, sigma = 1e-8, Xavier",
        sums_by_sign,
        kind=Kind.READING,
        reading="The text sums the w_i themselves (BL64); weighted by |v_i| the sums are exact from small starts. "
        "Exactly is read as to 1e-12, at global minima.",
        explanation="All w_i are on the line of a, where the units of each side carry a; from a small start the side "
        "of a unit is the sign of v_i.",
    ),
    Claim(
        "BL64",
        "Section 4, k > 2",
        "Grouped by the sign of v_i, the sums of w_i recover a and -a exactly.",
        "k > 2, both layers, sigma = 1e-8, Xavier",
        plain_sums,
        kind=Kind.READING,
        reading="Figure 2 says neither which layers learn nor the scale of the start. Here both learn from a small "
        "one; with v fixed BL65.",
        expected=Verdict.FAILS,
        explanation="Balanced layers share a as sum v_i^2, so that the plain sums have the length sum |v_i|, more "
        "than 1.",
    ),
    Claim(
        "BL65",
        "Section 4, k > 2",
        "Grouped by the sign of v_i, the sums of w_i recover a and -a exactly.",
        "k = 4, v fixed at +1, -1, +1, -1, sigma = 1, Xavier",
        sums_with_fixed_signs,
        kind=Kind.READING,
        reading="With v fixed: the reading in which Figure 2 is as described. Exactly is read as to 1e-6, in runs "
        "whose loss is below 1e-15.",
        expected=Verdict.FAILS,
        explanation="True where two pairs are antiparallel. In other runs two units of opposite signs coincide and "
        "cancel, anywhere, and belong to neither a nor -a.",
    ),
    Claim(
        "BL62",
        "Section 4, k > 2",
        "No individual w_i aligns with the direction of a or -a.",
        "k > 2, both layers, sigma = 1e-8, Xavier, runs that succeed",
        no_unit_aligns,
        kind=Kind.READING,
        reading="Aligned is within pi/20 of the line, the paper's c4. Figure 2 says neither which layers learn nor "
        "the scale. From the small start it is as false as can be; with v fixed and sigma = 1 it is true of most runs.",
        expected=Verdict.FAILS,
        explanation="What a unit has across a stays as small as it began, and what it has along a grows.",
    ),
    Claim(
        "BL63",
        "new (Section 4)",
        "From a small start every unit of a run that succeeds ends within 1e-6 of the line of a.",
        "k > 2, both layers, sigma = 1e-8, Xavier",
        units_on_the_line,
        kind=Kind.OURS,
        explanation="The linearised start keeps |w_perp|, of order 1e-8.",
    ),
    Claim(
        "BL66",
        "Section 4, k = 2",
        "Where descent succeeds v ends at +1 and -1, and w_1, w_2 at a and -a exactly.",
        "sigma = 1e-8, Xavier",
        outer_weights_end_at_one,
        kind=Kind.READING,
        reading="Exactly is read as to 1e-12, from the small start; from the default one it is not so (BL67).",
        explanation="The imbalance |w_i|^2 - v_i^2 stays of order sigma^2, so that v_i^2 = |w_i||v_i| = |a|.",
    ),
    Claim(
        "BL67",
        "Section 4, k = 2",
        "Where descent succeeds v ends at +1 and -1, and w_1, w_2 at a and -a exactly.",
        "sigma = 1, Xavier",
        default_start_ends_at_one,
        kind=Kind.READING,
        reading="Exactly is read as to 1e-12, from the default start, sigma = 1; from a small one it is so (BL66).",
        expected=Verdict.FAILS,
        explanation="The flow keeps b_i = |w_i|^2 - v_i^2, so that v_i^2 ends at (sqrt(b_i^2 + 4) - b_i)/2; steps of "
        "0.1 move b_i a little.",
    ),
    Claim(
        "BL68",
        "Theorem 2, remark",
        "With v_i Gaussian of variance sigma^2/2 the success probability is a constant, whatever d.",
        "k = 2, sigma -> 0",
        gaussian_failures,
        kind=Kind.READING,
        reading="The remark names no constant and no accuracy. The constant is taken as 1/2, and at each d the exact "
        "interval of the failures must have 1/2 and lie within a tenth of it. Another constant would be refuted by the "
        "same runs.",
        unconditional="The law of the start is the whole hypothesis, and runs are drawn from it.",
        explanation="The constant is 1/2: v_i + a.w_i/|a| is symmetric and independent of that of the other unit.",
    ),
    Claim(
        "BL69",
        "Theorem 2, remark",
        "With v_i Gaussian of variance sigma^2/k the failure probability decays as e^-k.",
        "k > 2, sigma -> 0",
        gaussian_decay,
        kind=Kind.READING,
        reading="e^-k is read as exponential in k. The law is 2^(1-k) = 2 e^(-0.69 k): a multiple of e^-k itself it "
        "is not.",
        unconditional="The law of the start is the whole hypothesis, and runs are drawn from it.",
        explanation="All of k fair signs must agree.",
    ),
    Claim(
        "BL70",
        "Appendix E.1",
        "For r > 10, too, the neurons end in r antiparallel pairs.",
        "r = 12, k = 24, sigma = 1e-8",
        pairing_of_many,
        kind=Kind.READING,
        reading="r = 12 stands for r > 10; pairs are asked to be antiparallel to 1e-9.",
        explanation="As for r up to 10 (BL38).",
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
