"""Alignment, growth and refinement along the runs (Lemmas 6, 7, Theorem 2), beside their predictions."""

import math
from dataclasses import replace

import numpy as np

from tutelage.analysis import (
    Claim,
    Finding,
    Hypothesis,
    Kind,
    Verdict,
    all_of,
    at_least,
    at_most,
    given,
    interval_at_least,
    lines,
)
from tutelage.papers.both_layers.constants import (
    C2,
    C3,
    C4,
    C7,
    C11,
    C_MAX_SQUARED,
    C_MIN_SQUARED,
    LOG_C10,
    LOG_SIGMA0,
    LOSS_LOWER,
    STEP_GROWTH,
)
from tutelage.papers.both_layers.evidence import PER_DIM, SMALL, STEP, Evidence
from tutelage.papers.both_layers.inequalities import Contraction
from tutelage.papers.both_layers.reduced import (
    local_rates,
    paper_alignment_steps,
    paper_growth_steps,
    scalar_loss,
    scalar_map,
)
from tutelage.papers.both_layers.start import alignment_time, growing_modes, growth_time, logarithmic_start
from tutelage.papers.both_layers.two_neurons import SIDES, Course, TwoNeurons
from tutelage.problem import Numbers

SCALES = (1e-2, 1e-4, SMALL)
INCOMPLETE = Finding(Verdict.NOT_REACHED, detail="No run went through alignment and growth.")


def _done(evidence: Evidence) -> list[Course]:
    """The small-start runs, when every one of them has a seed that completed; otherwise nothing."""
    courses = [evidence.courses[scale] for scale in SCALES]
    return courses if all(course.complete.any() for course in courses) else []


def alignment_seen(evidence: Evidence) -> Finding:
    courses = _done(evidence)
    if not courses:
        return INCOMPLETE
    findings, times, kept = [], [], 0.0
    for course in courses:
        keep = course.complete
        state = course.at(np.minimum(course.aligned, len(course.tau) - 1))
        start = course.at(np.zeros(len(course.aligned), int))
        kept = max(kept, float(np.max(np.abs(state.imbalance - start.imbalance)[keep])) / course.scale**2)
        findings += [at_least(state.magnitudes[keep] / course.scale, C3), at_most(state.magnitudes[keep], C2)]
        times.append(np.median(course.tau[course.aligned[keep]]))
    paper = paper_alignment_steps(STEP)
    text = f"At the observed T1 = {times[-1]:.0f}, {times[-1] / paper:.4f} of {paper}: smallest v_i over sigma;"
    text += f" b_i has moved by {kept:.3f} sigma^2 at most."
    return all_of([replace(findings[0], seeds=evidence.seeds, detail=text), *findings[1:], at_most(kept, 1.0)])


def alignment_at_theory_scale(evidence: Evidence) -> Finding:
    """Lemma 6 at sigma_0 itself: weights stay below 1e-270, so the linearised start is exact to relative 1e-500."""
    course = evidence.courses[SMALL]
    start = course.at(np.zeros(len(course.aligned), int))
    tau, options = paper_alignment_steps(STEP), {"step": STEP, "log_scale": LOG_SIGMA0 - math.log(SMALL)}
    ends = [
        logarithmic_start(second, first, start.target, tau=tau, **options)
        for second, first in zip(start.second, start.first, strict=True)
    ]
    # A start that turns round is the failure that the lemma's probability allows for.
    turned = np.any(growing_modes(start.second, start.first, start.target) * SIDES < 0, axis=1)
    ends = [end for end, wrong in zip(ends, turned, strict=True) if not wrong]
    if not ends:
        return INCOMPLETE
    angles = np.array([np.where(end.side == SIDES, end.angle, math.pi) for end in ends])
    sizes, imbalance = np.array([end.log_second for end in ends]), np.array([end.log_imbalance for end in ends])
    text = f"log10|b| <= {np.max(imbalance) / math.log(10):.0f} against log10 c10 = {LOG_C10 / math.log(10):.0f};"
    found = all_of(
        [
            at_most(angles, C4, seeds=len(ends), detail="Largest angle at the paper's T1 for sigma = sigma_0;"),
            at_most(imbalance, LOG_C10, detail=text),
            at_least(
                sizes,
                math.log(C3) + LOG_SIGMA0,
                detail=f"log10 v_i >= {np.min(sizes) / math.log(10):.0f}; {turned.sum()} of {len(turned)} turn round.",
            ),
            at_most(sizes, math.log(C2)),
        ]
    )
    ten = math.log(10)
    return given(
        found,
        Hypothesis("log10 sigma <= log10 sigma_0", True, LOG_SIGMA0 / ten, LOG_SIGMA0 / ten),
        Hypothesis("mu|a| <= c0 = 1", STEP <= 1, STEP, 1.0),
    )


def predicted_alignment(evidence: Evidence) -> Finding:
    courses = [evidence.courses[scale] for scale in (1e-4, SMALL)]
    gaps = []
    for course in courses:
        for seed in np.flatnonzero(course.complete):
            start = course.states.second[seed, 0], course.states.first[seed, 0], course.states.target
            gaps.append(abs(course.tau[course.aligned[seed]] - alignment_time(*start, step=course.step)))
    if not gaps:
        return INCOMPLETE
    equal = sum(gap == 0 for gap in gaps)
    return at_most(gaps, 0, seeds=len(gaps), detail=f"Equal in {equal} of {len(gaps)} runs, sigma = 1e-4 and 1e-8.")


def growth_phase(evidence: Evidence) -> Finding:
    courses = _done(evidence)
    if not courses:
        return INCOMPLETE
    lowest, largest = math.inf, {}
    for course in courses:
        later = (np.arange(len(course.tau)) >= course.grown[:, None])[course.complete]
        lowest = min(lowest, float(np.min(course.states.magnitudes[course.complete][later])))
        largest[course.scale] = float(
            np.max(np.abs(course.at(np.minimum(course.grown, len(course.tau) - 1)).imbalance[course.complete]))
        )
    text = "Imbalance at the observed end of growth: " + ", ".join(f"{v:.0e} (sigma={s:g})" for s, v in largest.items())
    text += f"; the paper's T2 = {paper_growth_steps(STEP, SMALL)}."
    return all_of([at_most(list(largest.values()), C11, seeds=evidence.seeds, detail=text), at_least(lowest, C7)])


def growth_by_the_lemma(evidence: Evidence) -> Finding:
    """Lemma 7 where its hypotheses are met: from sigma_0, by a step at which descent is the flow."""
    course, measured = evidence.grown_from_nothing, STEP_GROWTH
    magnitudes, imbalance = course.states.magnitudes[:, -1], np.abs(course.states.imbalance[:, -1])
    text = f"Smallest v_i, at rest since flow time {course.tau[-1]:.0f} after weights of 1e-3, long before T2;"
    found = all_of(
        [
            at_least(magnitudes, C7, seeds=len(magnitudes), detail=text),
            at_most(imbalance, C11, detail=f"|b_i| <= {float(np.max(imbalance)):.0e}."),
        ]
    )
    ten = math.log(10)
    return given(
        found,
        Hypothesis("mu|a| ln(sqrt|a|/sigma) <= c0 = 1e-8", measured <= STEP_GROWTH, measured, STEP_GROWTH),
        Hypothesis("log10 sigma <= log10 sigma_0", True, LOG_SIGMA0 / ten, LOG_SIGMA0 / ten),
    )


def growth_factor(evidence: Evidence) -> Finding:
    courses = _done(evidence)
    if not courses:
        return INCOMPLETE
    factors, products = [], []
    for course in courses:
        total, product = course.states.magnitudes + course.states.norms, course.states.magnitudes * course.states.norms
        for seed in np.flatnonzero(course.complete):
            after = np.arange(len(course.tau) - 1) >= course.aligned[seed]
            for i in range(2):
                small = after & (product[seed, :-1, i] <= 0.25)
                factors.append(np.min((total[seed, 1:, i] / total[seed, :-1, i])[small], initial=math.inf))
                reached = np.argmax(product[seed, :, i] > 0.25)
                products.append(np.min(product[seed, reached:, i]))
    bound = 1 + STEP / 8
    text = f"Smallest growth of v + |w| a step; afterwards v|w| >= {min(products):.4f}."
    return all_of([at_least(factors, bound, seeds=evidence.seeds, detail=text), at_least(products, 0.25)])


def growth_prediction(evidence: Evidence) -> Finding:
    courses = _done(evidence)
    if not courses:
        return INCOMPLETE
    errors = []
    for course in courses[1:]:
        for seed in np.flatnonzero(course.complete):
            start = course.states.second[seed, 0], course.states.first[seed, 0], course.states.target
            expected = growth_time(*start, step=course.step)
            errors.append(abs(course.tau[course.grown[seed]] - expected) / expected)
    slow = evidence.slow_course
    modes = np.abs(growing_modes(slow.states.second[:, 0], slow.states.first[:, 0], slow.states.target)) / 2
    curve = scalar_loss(scalar_map(modes, int(slow.tau[-1]), step=slow.step)[slow.tau.astype(int)]).T
    keep = slow.complete
    gap = float(np.max(np.abs(slow.loss - curve)[keep])) if keep.any() else math.nan
    return all_of(
        [
            at_most(errors, 0.02, seeds=len(errors), detail="Relative error of the end of growth;"),
            at_most(
                gap, 1e-7, detail=f"the loss curve of the scalar map is off by {gap:.1e} (sigma = 1e-4, mu = 0.01)."
            ),
        ]
    )


PREFACTOR = 1 / LOSS_LOWER  # c~ of Theorem 2, as D.2 ends: L <= |h|^2 at T, and |h|^2 <= 20 L later


SIGMA_0, MU_0, ENOUGH = 1e-2, 2.0, 10.0  # sigma_0, mu_0 and C of Theorem 2, which gives none


def _rates(course: Course) -> Numbers:
    """The largest c for which |h|^2 <= c~ (1 - c mu)^(tau - T) |h|^2(T) at every tau > T, for each complete run."""
    found = []
    for seed in np.flatnonzero(course.complete):
        error, grown = course.states.error_squared[seed], int(course.grown[seed])
        # Closer in than 1e-12 the error is rounding.
        later = np.flatnonzero((np.arange(len(error)) > grown) & (error > 1e-24))
        share = error[later] / (PREFACTOR * error[grown])
        found.append(np.min(1 - share ** (1 / (course.tau[later] - course.tau[grown]))) / course.step)
    return np.array(found)


def geometric_convergence(evidence: Evidence) -> Finding:
    population = {f"sigma={course.scale:g}": _rates(course) for course in _done(evidence)}
    sampled = {dim: _rates(course) for dim, course in evidence.rates.items()}
    if not population or not all(len(rates) == evidence.sizes.rate_seeds for rates in sampled.values()):
        return INCOMPLETE
    values = np.array(list(sampled.values()))  # (d, seed)
    slope = lines.exponent_over_seeds(list(sampled), lambda drawn: np.median(values[:, drawn], axis=1), values.shape[1])
    smallest = min(float(np.min(rates)) for rates in [*population.values(), *sampled.values()])
    text = "Smallest c: " + ", ".join(f"{np.min(rates):.3f} ({name})" for name, rates in population.items())
    text += ", " + ", ".join(f"{np.min(rates):.3f} (d={dim}, n=10d)" for dim, rates in sampled.items())
    text += f"; exponent of the median c in d, n = 10d, {slope:.2f} (95 %). D.2, corrected, yields "
    text += f"{Contraction().rate:.0e}."
    found = all_of(
        [
            interval_at_least(slope.value, slope.interval, -0.25, seeds=values.shape[1], detail=text),
            at_least(smallest, Contraction().rate),
        ]
    )
    return given(found, *_theorem_2(evidence))


def _theorem_2(evidence: Evidence) -> tuple[Hypothesis, ...]:
    """Its hypotheses on the runs of BL26; of the constants that it does not give, those of these runs are taken."""
    courses = [*_done(evidence), *evidence.rates.values()]
    least = min(float(np.min(course.states.magnitudes[course.complete, 0])) for course in courses)
    scale, smallest = max(course.scale for course in courses), min(course.scale for course in courses)
    rate = STEP * math.log(1 / smallest)
    return (
        Hypothesis("v_1(0) > 0 and v_2(0) > 0 in v = [v_1, -v_2]", least > 0, least, 0.0, ">"),
        Hypothesis("sigma <= sigma_0 sqrt|a|, sigma_0 = 1e-2", scale <= SIGMA_0, scale, SIGMA_0),
        Hypothesis("mu|a| ln(sqrt|a|/sigma) <= mu_0 = 2", rate <= MU_0, rate, MU_0),
        Hypothesis("n >= C d, C = 10, or the population", PER_DIM >= ENOUGH, PER_DIM, ENOUGH, ">="),
    )


def local_factors(evidence: Evidence) -> Finding:
    course = evidence.local
    misfit = course.states.misfit[0]
    late = slice(20, 120)  # after the start has settled, before rounding shows
    along, across = np.abs(misfit[late, :, 0]), np.linalg.norm(misfit[late, :, 1:], axis=-1)
    expected = local_rates(np.abs(course.states.second[0, -1]), course.states.norms[0, -1], step=course.step)
    found = [np.exp(np.mean(np.diff(np.log(part), axis=0), axis=0)) for part in (across, along)]
    gap = max(float(np.max(np.abs(f - e))) for f, e in zip(found, expected, strict=True))
    text = f"Across {found[0][0]:.7f} (predicted {expected[0][0]:.7f}), along {found[1][0]:.7f} ({expected[1][0]:.7f})."
    return at_most(gap, 1e-6, seeds=1, detail=text)


def contraction(evidence: Evidence) -> Finding:
    if not evidence.courses[1e-2].complete.any():
        return INCOMPLETE
    course, bound = evidence.refinement, Contraction()
    loss, gap = course.loss[0], np.diff(course.tau)
    good = loss[1:] > 1e-20
    factors = ((loss[1:] / loss[:-1]) ** (1 / gap))[good]
    sizes = np.concatenate([course.states.second[0] ** 2, course.states.norms[0] ** 2], axis=-1)
    inside = bool(np.all(sizes >= C_MIN_SQUARED) and np.all(sizes <= C_MAX_SQUARED))
    usual = bound.factor(STEP)
    deviation = min(found.value for sampled in evidence.sampled for found in sampled.suprema)
    text = f"mu = {course.step:.5f}, exact gradient. At mu = {STEP:g} the bound is {usual:.5f}"
    text += f"; samples need delta < {bound.largest_deviation:.1e}, the smallest found is {deviation:.2f}."
    found = at_most(factors, bound.factor(course.step), seeds=1, detail=text)
    return given(found, Hypothesis("the run stays in the box (43)", inside))


def sampled_contraction(evidence: Evidence) -> Finding:
    """D.2 on samples: population losses along a run on data, with the deviation and the box that the run has."""
    course, states = evidence.sampled_refinement, evidence.sampled_refinement.states
    before = TwoNeurons(states.second[:, :-1], states.first[:, :-1], states.target)
    exact = evidence.slopes(before)[1]
    empirical = -np.diff(states.first, axis=1) / course.step
    total = np.sum(before.error, axis=-1)
    near = total > 1e-6  # closer in, the difference of two updates is rounding
    gap = np.linalg.norm(empirical - exact, axis=-1) / (before.magnitudes * total[..., None])
    sizes = np.concatenate([states.second**2, states.norms**2], axis=-1)
    bound = Contraction(float(np.max(gap[near])), float(np.min(sizes)), float(np.max(sizes)))
    loss = evidence.values(states)
    factors = (loss[:, 1:] / loss[:, :-1])[near]
    text = f"Largest L(tau+1)/L(tau) on 30000 d samples, d = 3, mu = {course.step:.4f}; box [{bound.low:.2f}, "
    text += f"{bound.high:.2f}]."
    words = "delta, as measured along the run, lets the bound contract"
    met = Hypothesis(words, bound.linear > 0, bound.deviation, bound.largest_deviation)
    return given(at_most(factors, bound.factor(course.step), seeds=1, detail=text), met)


CLAIMS = (
    Claim(
        "BL17",
        "Lemma 6",
        "At T1 the angles are below pi/20, sigma/4 <= v_i <= 2 sqrt|a| and |b_i| <= c10|a|.",
        "sigma = sigma_0 = 10^-357.4, the linearised start in logarithms",
        alignment_at_theory_scale,
        explanation="At 10^-357 the linearised start is exact to relative 10^-500, so no run is needed. Starts that "
        "turn round are told and left to the lemma's probability (BL12).",
    ),
    Claim(
        "BL18",
        "new",
        "The linearised start foretells the end of alignment to the update.",
        "sigma <= 1e-4",
        predicted_alignment,
        kind=Kind.OURS,
        explanation="v +- a.w/|a| grow and shrink by 1 +- mu|a|/2, the rest stands still.",
    ),
    Claim(
        "BL19",
        "Lemma 7",
        "At T1 + T2, v_i >= sqrt|a|/4 and |b_i| <= |a|/50.",
        "sigma = sigma_0, mu|a| = 1e-8/ln(1/sigma_0)",
        growth_by_the_lemma,
        explanation="In logarithms up to weights of 1e-3, then by the flow, from which steps of 1e-11 differ by as "
        "much.",
    ),
    Claim(
        "BL52",
        "new (Lemma 7)",
        "Lemma 7's conclusion holds at the observed end of growth, with a step 10^8 times its own.",
        "at the observed time, mu = 0.1",
        growth_phase,
        kind=Kind.OURS,
        explanation="The imbalance that a run gathers is of order mu.",
    ),
    Claim(
        "BL20",
        "C.5",
        "While v|w| <= |a|/4, v + |w| grows by 1 + mu|a|/8 a step; afterwards v|w| stays above |a|/4.",
        "after alignment",
        growth_factor,
        kind=Kind.READING,
        reading="mu = 0.1 is taken, where C.5 asks for less than 1e-8/ln(1/sigma): the factor is that of this step, "
        "and smaller ones come nearer to 1 + mu|a|/2.",
        explanation="The true factor is near 1 + mu|a|/2 at first.",
    ),
    Claim(
        "BL21",
        "new",
        "The end of growth and the whole loss curve follow from the growing modes.",
        "small start",
        growth_prediction,
        kind=Kind.OURS,
        explanation="z <- z(1 + (mu/2)(|a| - z^2)) from z = |v + a.w/|a||/2, L = sum (|a| - z^2)^2/4.",
    ),
    Claim(
        "BL26",
        "Theorem 2",
        "For all tau > T, |diag(v)W - W*|_F^2 <= c~ (1 - c mu|a|)^(tau-T) times its value at T.",
        "population, and n = 10d",
        geometric_convergence,
        kind=Kind.READING,
        reading="c~ = 20, as D.2 ends, and T is the observed end of growth. That c depends on no dimension is read as "
        "an exponent in d of at least -1/4; it must also be above the 8e-4 that D.2, corrected, yields. Of "
        "sigma_0, mu_0 and C, which the theorem leaves open, 1e-2, 2 and 10 are taken, so that all runs meet them; the "
        "constants of the proof (10^-357 for sigma_0) no run can have, and of them the verdict says nothing.",
        explanation="c is not given; it is near 1 for the population, 1/3 for n = 10d, at every d.",
    ),
    Claim(
        "BL27",
        "new",
        "Near an optimum h_i shrinks by 1 - mu v_i^2/2 across the target and 1 - mu(v_i^2+|w_i|^2)/2 along it.",
        "v = 0.8, |w| = 1.25, mu = 0.05",
        local_factors,
        kind=Kind.OURS,
        explanation="The eigenvalues of the Hessian at the optimum.",
    ),
    Claim(
        "BL42",
        "D.2, corrected",
        "L(tau+1) <= (1 - a mu + b mu^2) L(tau) in the refinement phase.",
        "exact gradient, mu|a| = a/(2b)",
        contraction,
        explanation="a = 3 alpha c_min^2/4 - 640 c_max^2 delta^2, b = (alpha c_min^2 + 160 c_max^2 delta^2) L.",
    ),
    Claim(
        "BL47",
        "new (Lemma 6)",
        "At the observed end of alignment sigma/4 <= v_i <= 2 sqrt|a|, and b_i is what it was at the start.",
        "sigma = 1e-2 to 1e-8, mu = 0.1",
        alignment_seen,
        kind=Kind.OURS,
        explanation="What is seen of Lemma 6 at scales that can be run: a seventieth of its time is enough.",
    ),
    Claim(
        "BL55",
        "D.2, corrected, on samples",
        "L(tau+1) <= (1 - a mu + b mu^2) L(tau) for the population loss along descent on samples.",
        "n = 30000 d, d = 3, near the optimum",
        sampled_contraction,
        explanation="delta is the deviation along the run, and c_min, c_max are its box: with those of the proof n "
        "would have to be 10^7 d.",
    ),
)
