"""Stationary points: families, spectra, cubic descent, escape, spurious minima (Theorem 1, D.1, Figure 1)."""

import math

import numpy as np

from tutelage.analysis import Claim, Finding, Hypothesis, Kind, Verdict, all_of, at_least, at_most, every, given, lines
from tutelage.papers.both_layers.classify import classify, nullity
from tutelage.papers.both_layers.constants import C_MIN_SQUARED, smoothness
from tutelage.papers.both_layers.evidence import FRAME, Evidence
from tutelage.papers.both_layers.inequalities import stationarity_gap
from tutelage.papers.both_layers.landscape import Kind as PointKind
from tutelage.papers.both_layers.landscape import (
    StationaryPoint,
    global_minimum,
    nonstrict_saddle,
    paired_minimum,
    two_neurons,
)
from tutelage.papers.both_layers.slices import descent_coefficient, escape_rate, escape_steps, valley_loss
from tutelage.papers.both_layers.two_neurons import SIDES, Course
from tutelage.problem import Numbers

TARGET = np.eye(1, FRAME)
SADDLES = tuple(
    nonstrict_saddle(TARGET[0], c, v1, v2)
    for c, v1, v2 in ((0.5, 0.8, 1.7), (2, 1.3, 0.6), (-1.5, 1, 1), (-3, 0.9, 1.1))
)
MINIMA = tuple(global_minimum(TARGET[0], (v1, -v2), (1.0, 1.0)) for v1, v2 in ((1.0, 1.0), (0.7, 1.4), (2.0, 0.3)))


def _stack(points: tuple[StationaryPoint, ...]) -> tuple[Numbers, Numbers, Numbers]:
    return np.stack([p.second for p in points]), np.stack([p.first for p in points]), points[0].target


def _gradient_norms(evidence: Evidence, second: Numbers, first: Numbers, target: Numbers) -> Numbers:
    parts = evidence.gradients(second, first, target)
    return np.sqrt(sum(np.sum(part**2, axis=(1, 2)) for part in parts))


def families(evidence: Evidence) -> Finding:
    on = _gradient_norms(evidence, *_stack(MINIMA + SADDLES))
    between = [two_neurons(TARGET[0], c) for c in (-0.9, -0.5, -0.1)]
    off = _gradient_norms(evidence, np.stack([v for v, _ in between]), np.stack([w for _, w in between]), TARGET)
    text = f"Norm of the gradient on both families; for c in (-1, 0) it is at least {off.min():.3f}."
    found = all_of([at_most(on, 1e-13, seeds=len(on), detail=text), at_least(off, 1 / math.sqrt(8) - 1e-12)])
    return given(found, _signs(MINIMA + SADDLES))


def _signs(points: tuple[StationaryPoint, ...]) -> Hypothesis:
    least = min(float(np.min(point.second[:, 0] * SIDES)) for point in points)
    return Hypothesis("v_1 > 0 > v_2, one output and two units", least > 0, least, 0.0, ">")


def saddle_spectrum(evidence: Evidence) -> Finding:
    hessians = evidence.hessians(*_stack(SADDLES))
    gaps = [
        np.max(np.abs(np.linalg.eigvalsh(hessian) - point.eigenvalues)) / np.max(point.eigenvalues)
        for hessian, point in zip(hessians, SADDLES, strict=True)
    ]
    return at_most(
        gaps,
        1e-10,
        seeds=len(gaps),
        detail=f"All {2 * FRAME + 2} eigenvalues of four saddles, multiplicities d+2, d-1 and 1, d = {FRAME}.",
    )


def cubic_descent(evidence: Evidence) -> Finding:
    level = np.max(np.abs(evidence.losses(*_stack(SADDLES)) - 0.25))
    rng = evidence.random(7)
    first = rng.standard_normal((32, 2, FRAME))
    first[:, 1] = first[:, 0] - TARGET[0]
    signs = np.tile([[1.0], [-1.0]], (32, 1, 1))
    exact = valley_loss(first, TARGET[0])
    slice_gap = np.max(np.abs(evidence.losses(signs, first, TARGET) - exact) / (1 + exact))
    cs, eps = np.array([0.5, 1.0, 2.0, -1.5, -3.0]), 0.01
    shifted = np.stack([two_neurons(TARGET[0], c)[1] for c in cs])
    shifted[:, :, 1] = eps
    drop = (0.25 - evidence.losses(signs[: len(cs)], shifted, TARGET)) / eps**3
    cubic = np.max(np.abs(drop / [descent_coefficient(c) for c in cs] - 1))
    found = all_of(
        [
            at_most(
                cubic,
                0.01,
                seeds=len(cs),
                detail="Relative error of the cubic coefficient 1/(6 pi c^2 (c+1)^2) at shift 0.01.",
            ),
            at_most(level, 1e-14, detail=f"The level is 1/4 to {level:.0e},"),
            at_most(slice_gap, 1e-13, detail=f"the loss on the slice v_1 w_1 - v_2 w_2 = a agrees to {slice_gap:.0e}."),
        ]
    )
    return given(found, _signs(SADDLES))


def _shift(course: Course) -> Numbers:
    """The shift of the effective weights across the target, of a single run."""
    return np.mean(np.abs(course.states.second) * course.states.across, axis=-1)[0]


def escape_law(evidence: Evidence) -> Finding:
    ratios, texts = [], []
    for course, (c, v1, v2, _, _) in zip(evidence.escapes, evidence.sizes.escapes, strict=True):
        eps, time = _shift(course), course.tau * course.step
        early = np.arange(len(eps)) < np.argmax(eps >= 0.2) if np.any(eps >= 0.2) else np.zeros(len(eps), bool)
        slope = lines.slope(time[early], 1 / eps[early]) if early.sum() > 2 else np.nan
        ratios.append(np.abs(-slope / escape_rate(c, v1, v2) - 1))
        texts.append(f"c={c:g}: slope {slope:.4g}, -K = {-escape_rate(c, v1, v2):.4g}.")
    return at_most(ratios, 0.1, seeds=len(ratios), detail=" ".join(texts))


def escape_on_time(evidence: Evidence) -> Finding:
    """When the loss falls below 0.2, against the law with its first correction."""
    courses = [(course, 0, *case[:3]) for course, case in zip(evidence.escapes, evidence.sizes.escapes, strict=True)]
    index = int(np.argmax(evidence.plateau.tau >= 400))
    along = float(evidence.plateau.states.first[0, index, 1] @ evidence.plateau.states.target)
    courses.append((evidence.plateau, index, along, 1.0, 1.0))
    gaps, texts = [], []
    for course, since, c, v1, v2 in courses:
        eps = float(_shift(course)[since])
        left = course.tau[np.argmax(course.loss[0] < 0.2)] if np.any(course.loss[0] < 0.2) else math.nan
        expected = course.tau[since] + escape_steps(eps, c, step=course.step, v1=v1, v2=v2)
        leading = course.tau[since] + 1 / (escape_rate(c, v1, v2) * eps * course.step)
        gaps.append(abs(expected / left - 1))
        texts.append(f"c={c:.2g}: {left:.0f} updates, predicted {expected:.0f}, to leading order {leading:.0f}.")
    return at_most(gaps, 0.05, seeds=len(gaps), detail=f"Relative error of the time of escape. {' '.join(texts)}")


def spurious_minimum(evidence: Evidence) -> Finding:
    rng, count = evidence.random(9), evidence.sizes.states
    second = rng.uniform(0.3, 2.0, (count, 2))
    share = rng.uniform(0.05, 0.95, count)
    first = (np.stack([share, 1 - share], 1) / second)[..., None] * TARGET[0]
    size = 10 ** rng.uniform(-3, -0.6, count)[:, None]
    moved = second + size * rng.uniform(-1, 1, (count, 2)) * second  # a positive v stays positive: size < 0.26
    first = first + size[..., None] * rng.standard_normal(first.shape) / math.sqrt(FRAME)
    rise = evidence.losses(moved[..., None], first, TARGET) - 0.25
    return at_least(
        rise, -1e-15, seeds=count, detail="Smallest rise of the loss above 1/4 around points with equal signs."
    )


def gap_inequality(evidence: Evidence) -> Finding:
    rng, count = evidence.random(36), evidence.sizes.states
    first = rng.standard_normal((count, 2, FRAME)) * 10 ** rng.uniform(-1, 1, (count, 2, 1))
    in_first = evidence.gradients(np.tile([[1.0], [-1.0]], (count, 1, 1)), first, TARGET)[1]
    left = np.linalg.norm(in_first.sum(axis=1), axis=1)
    scale = np.linalg.norm(first, axis=(1, 2))
    return at_least(
        (left - stationarity_gap(first)) / scale, -1e-14, seeds=count, detail="Smallest slack, relative to |W|."
    )


def paired_nullity(evidence: Evidence) -> Finding:
    off, seen = 0, list[str]()
    for outputs in evidence.sizes.nullity_outputs:
        rng = evidence.random(40 + outputs)
        basis = np.eye(outputs) + 0.3 * rng.standard_normal((outputs, outputs))
        point = paired_minimum(np.eye(outputs, FRAME), basis, rng.uniform(0.7, 1.4, outputs))
        found = nullity(evidence.hessians(*_stack((point,)))[0])
        off, seen = max(off, abs(found - (outputs**2 + outputs))), [*seen, f"r={outputs}: {found}"]
    return at_most(off, 0, seeds=len(seen), detail="Nullity " + ", ".join(seen) + ".")


def caption_point(evidence: Evidence) -> Finding:
    return _stationary(evidence, 1.0, 2.0)


def caption_mended(evidence: Evidence) -> Finding:
    return _stationary(evidence, 2.0, 1.0)


def _stationary(evidence: Evidence, *multiples: float) -> Finding:
    """The norm of the gradient in W where w_1 and w_2 are these multiples of the target, v = (1, -1) being fixed."""
    second, first = np.array([[[1.0], [-1.0]]]), np.array(multiples)[None, :, None] * TARGET[0]
    norm = float(np.linalg.norm(evidence.gradients(second, first, TARGET)[1]))
    return at_most(norm, 1e-8, seeds=1, detail=f"L = {float(evidence.losses(second, first, TARGET)[0]):.2f} there.")


def stays_at_saddle(evidence: Evidence) -> Finding:
    course = evidence.plateau
    loss, tau = course.loss[0], course.tau
    early = loss[np.argmax(tau >= 400)]
    away = float(abs(early - 0.25))
    near = Hypothesis("the run comes near the saddle: |L - 1/4| after 400 updates", away <= 0.01, away, 0.01)
    index = int(np.argmax(tau >= 400))
    shift = float(np.mean(course.states.across[0, index]))
    c = float(course.states.first[0, index, 1] @ course.states.target)
    left = tau[np.argmax(loss < 0.2)] if np.any(loss < 0.2) else math.inf
    predicted = tau[index] + escape_steps(shift, c, step=course.step)
    text = f"L = {early:.6f} after 400 updates; it fell below 0.2 after {left:.0f}, predicted {predicted:.0f}."
    return given(at_least(loss[-1], 0.2, seeds=1, detail=text), near)


def frobenius_norm(evidence: Evidence) -> Finding:
    point = global_minimum(TARGET[0], (1.0, -1.0), (1.0, 1.0))
    hessian = evidence.hessians(*_stack((point,)))[0]
    # A coordinate across everything adds the same 2x2 block again and again as d grows.
    extra = [2 + FRAME - 1, 2 + 2 * FRAME - 1]
    block = np.sum(hessian[np.ix_(extra, extra)] ** 2)
    dims = np.array([10, 100, 1000, 10**6])
    norms = np.sqrt(np.sum(hessian**2) + (dims - FRAME) * block)
    bound = smoothness(math.sqrt(C_MIN_SQUARED), 2.0)
    text = "Frobenius norm at the optimum for d = 10, 100, 1000, 1e6: " + ", ".join(f"{x:.4g}" for x in norms) + "."
    return at_most(norms, bound, detail=text)


def only_three_levels(evidence: Evidence) -> Finding:
    """The distance of every stationary level found to the nearest of 0, 1/4, 1/2."""
    gaps, texts, total = [], [], 0
    for width, levels in evidence.stationary.items():
        gaps += [min(abs(row.level - level) for level in (0.0, 0.25, 0.5)) for row in levels.rows]
        kinds = ", ".join(f"{row.count} {row.kind} at {abs(row.level):.4g}" for row in levels.rows)
        texts.append(f"k={width}: {levels.found} of {levels.starts} starts end at a zero of the gradient: {kinds}.")
        total += levels.starts
    return at_most(gaps, 1e-9, seeds=total, detail=" ".join(texts))


def ends_are_named(evidence: Evidence) -> Finding:
    """Small starts end at global minima or at spurious local minima, and at nothing else."""
    seen: dict[str, int] = {}
    for trials in evidence.trials.values():
        second, first = trials.final_second[..., None], trials.final_first
        norms = _gradient_norms(evidence, second, first, trials.target[None])
        for v, w, loss, norm in zip(second, first, trials.loss, norms, strict=True):
            kind = classify(v, w, trials.target, loss=float(loss), gradient_norm=float(norm))
            seen[kind.value] = seen.get(kind.value, 0) + 1
    total = sum(seen.values())
    good = sum(seen.get(kind.value, 0) for kind in (PointKind.GLOBAL, PointKind.SPURIOUS))
    text = ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))
    return every(good, total, detail=f"{text}.")


CLAIMS = (
    Claim(
        "BL05",
        "Theorem 1",
        "The gradient vanishes on both families, and for c in (-1, 0) it does not.",
        "k = 2, signs (+,-)",
        families,
        must_hold=True,
        explanation="Effective weights (a, -a), and ((c+1)a, ca) on one side of the target line.",
    ),
    Claim(
        "BL06",
        "D.1",
        "The Hessian at a saddle has eigenvalues 0, (v_1^2+v_2^2)/2 and (|W|^2+v_1^2+v_2^2)/2.",
        "k = 2, multiplicities d+2, d-1, 1",
        saddle_spectrum,
        must_hold=True,
        explanation="H = K^T K / 2 with K = [w_i | v_i I]: no negative curvature.",
    ),
    Claim(
        "BL07",
        "Theorem 1",
        "The saddles lie at |a|^2/4 and the loss falls from them cubically.",
        "k = 2",
        cubic_descent,
        must_hold=True,
        explanation="On the slice the loss is |a|^2/4 - |w~_1||w~_2| (sin theta - theta cos theta)/(2 pi), exactly.",
    ),
    Claim(
        "BL08",
        "new",
        "A saddle is left algebraically: 1/eps falls linearly in time at rate K.",
        "both layers trained, eps < 0.2",
        escape_law,
        kind=Kind.OURS,
        explanation="1/K = 2 pi c^2 (c+1)^2 |a| (1/v_1^2 + 1/v_2^2); corrections are of relative order eps.",
    ),
    Claim(
        "BL54",
        "new",
        "A saddle is left at the time (1/eps - kappa ln(1 + 1/(kappa eps)))/K, to 5 %.",
        "shifts eps of 0.025 to 0.07",
        escape_on_time,
        kind=Kind.OURS,
        explanation="d eps/dt = K eps^2 (1 + kappa eps), kappa = 2 (c p_2 + (c+1) p_1)^2/(pi c^2 (c+1)^2 |a|) with "
        "p_1 = v_2^2/(v_1^2 + v_2^2) = 1 - p_2; what is left of the error is of relative order eps.",
    ),
    Claim(
        "BL09",
        "new",
        "With equal signs the points at level |a|^2/4 are local minima.",
        "k = 2, v_1, v_2 > 0",
        spurious_minimum,
        kind=Kind.OURS,
        explanation="With v >= 0 the network is not negative, so L >= |a|^2/4. Theorem 1 fixes the signs (+,-).",
    ),
    Claim(
        "BL36",
        "D.1",
        "|grad_1 + grad_2| >= (theta - sin theta)|w~_1 + w~_2|/(2 pi): no other stationary points.",
        "v = (1,-1)",
        gap_inequality,
        must_hold=True,
        explanation="Taking norms in the last display of D.1.",
    ),
    Claim(
        "BL40",
        "new",
        "At a minimum of r antiparallel pairs the Hessian has nullity r^2 + r.",
        "k = 2r, rank A = r",
        paired_nullity,
        kind=Kind.OURS,
        explanation="An invertible r x r matrix mixes the pairs, and each pair has one free scale.",
    ),
    Claim(
        "BL43",
        "Figure 1, caption",
        "(w_1, w_2) = (a, 2a) is a stationary point.",
        "v = (1,-1)",
        caption_point,
        kind=Kind.SLIP,
        mended="BL51",
        expected=Verdict.FAILS,
        explanation="The neurons are interchanged in the caption: the saddle is (2a, a).",
    ),
    Claim(
        "BL51",
        "Figure 1, caption, corrected",
        "(w_1, w_2) = (2a, a) is a stationary point.",
        "v = (1,-1)",
        caption_mended,
        must_hold=True,
        explanation="The saddle with c = 1.",
    ),
    Claim(
        "BL44",
        "Figure 1(b)",
        "Started near 1.5a, descent ends in a non-strict saddle.",
        "v = (1,-1) fixed, start off the line",
        stays_at_saddle,
        kind=Kind.READING,
        reading="The figure says that descent stalls, which it does; that it ends there is our reading. In a shorter "
        "run the claim holds.",
        expected=Verdict.FAILS,
        explanation="It is a long plateau that is left by the escape law; only an exactly collinear start stays.",
    ),
    Claim(
        "BL45",
        "Lemma 9",
        "The Frobenius norm of the Hessian is bounded in the box, free of d.",
        "as printed",
        frobenius_norm,
        kind=Kind.SLIP,
        mended="BL25",
        expected=Verdict.FAILS,
        explanation="The proof bounds the spectral norm; Frobenius grows like sqrt(d/2).",
    ),
    Claim(
        "BL48",
        "new (Theorem 1)",
        "The gradient vanishes only at the levels 0, 1/4 and 1/2 of the loss (in units of |a|^2).",
        "one output, random starts, d = 3",
        only_three_levels,
        kind=Kind.OURS,
        explanation="A search by Levenberg-Marquardt, not a proof; Theorem 1 settles k = 2 with signs (+,-).",
    ),
    Claim(
        "BL49",
        "new (Section 4)",
        "Small starts end at global minima or at spurious local minima, never at a saddle.",
        "sigma = 1e-8, Xavier",
        ends_are_named,
        kind=Kind.OURS,
        explanation="The stationary points at which small starts end without success are local minima: all growing "
        "modes have one sign there.",
    ),
)
