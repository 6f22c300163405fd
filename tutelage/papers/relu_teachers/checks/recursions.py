"""What one step of descent does, exactly: the recursions of the proof, as printed and corrected, and further facts."""

import math

import numpy as np

from tutelage.analysis import Claim, Finding, Kind, Verdict, all_of, at_least, at_most, lines
from tutelage.papers.relu_teachers import kernel
from tutelage.papers.relu_teachers.evidence import Evidence
from tutelage.papers.relu_teachers.local import groups_of
from tutelage.papers.relu_teachers.slow import slow_levels
from tutelage.papers.relu_teachers.steps import Step
from tutelage.papers.relu_teachers.track import Track
from tutelage.problem import Numbers

ETA = 0.01


def _steps(evidence: Evidence, tag: int) -> list[Step]:
    first, teacher = evidence.networks(tag)
    return [evidence.step(one, teacher, ETA) for one in first]


def _largest(*parts: Numbers) -> float:
    return max(float(np.max(np.abs(part))) for part in parts)


def recursion_printed(evidence: Evidence) -> Finding:
    steps = _steps(evidence, 11)
    rise = max(_largest(step.rise - step.printed_rise) for step in steps)
    whole = max(_largest(step.after.H - step.printed_H) for step in steps)
    text = f"Largest error of the rise of h_i*, eta = {ETA:g}; of H with the printed sign of Q, {whole:.1e}."
    return at_most(max(rise, whole), 1e-14, seeds=len(steps), detail=text)


def recursion_corrected(evidence: Evidence) -> Finding:
    steps = _steps(evidence, 11)
    rise = max(_largest(step.rise - step.predicted_rise) for step in steps)
    whole = max(_largest(step.after.H - step.predicted_H) for step in steps)
    size = max(_largest(step.rise) for step in steps)
    text = f"Largest error of the rise of h_i* (which is up to {size:.1e}) and of H, {rise:.0e} and {whole:.0e}."
    return at_most(max(rise, whole), 1e-14, seeds=len(steps), detail=text)


def cosine_step(evidence: Evidence) -> Finding:
    steps = _steps(evidence, 12)
    gap = max(_largest(step.cosine_rise - step.I2 - step.I3) for step in steps)
    return at_most(gap, 1e-14, seeds=len(steps), detail="Largest error of the change of cos theta_i*.")


def residual_split(evidence: Evidence) -> Finding:
    inputs, least, gap, moments = evidence.random(14).standard_normal((1000, 8)), math.inf, 0.0, 0.0
    for step in _steps(evidence, 13):
        first, second = step.split(inputs)
        error = np.maximum(inputs @ step.first.T, 0).sum(1) - np.maximum(inputs @ step.teacher.T, 0).sum(1)
        squares = step.split_moments
        whole = squares[0] + squares[1] + 2 * squares[2]
        least, gap = min(least, float(np.min(first))), max(gap, _largest(first + second - error))
        moments = max(moments, abs(whole - 2 * kernel.loss(step.first, step.teacher)))
    text = f"Largest error of R1 + R2 = f - f* at 1000 inputs; R1 >= {least:.1g}; moments give 2L within {moments:.0e}."
    return all_of([at_most(gap, 1e-12, detail=text), at_least(least, -1e-12), at_most(moments, 1e-12)])


def copies(evidence: Evidence) -> Finding:
    gaps = []
    for step in _steps(evidence, 15):
        doubled = evidence.step(np.vstack([step.first, step.first]) / 2, step.teacher, ETA)
        gaps.append(_largest(doubled.gradient - np.vstack([step.gradient, step.gradient])))
    text = "Largest difference of the gradient of a student and of its two halves: their sum moves twice as fast."
    return at_most(gaps, 1e-14, seeds=len(gaps), detail=text)


def exponential(evidence: Evidence) -> Finding:
    run = evidence.single
    # Below 1e-16 the slowest direction is all that is left; weights are rounded at 1e-16, losses thus near 1e-31.
    keep = (run.loss < 1e-16) & (run.loss > 1e-24)
    found = float(lines.slope(run.steps[keep], np.log(run.loss[keep]))) if keep.sum() > 5 else math.nan
    predicted = 2 * math.log(1 - run.step * run.curvature)
    text = f"ln L falls by {-found:.5f} a step from 1e-16 to 1e-24, predicted {-predicted:.5f}."
    return at_most(abs(found / predicted - 1), 0.01, seeds=1, detail=f"Relative deviation of the rate; {text}")


def slow_flow(evidence: Evidence) -> Finding:
    track = evidence.gaussian
    begin, end = (int(np.argmin(np.abs(track.time - s))) for s in (1e3, 1e6))
    gaps = np.array([_predicted(track, seed, begin, end) / track.loss[seed, end] - 1 for seed in range(track.seeds)])
    text = f"Relative error of L at s = {track.time[end]:.2g}, foretold from the state at s = {track.time[begin]:.3g}."
    return at_most(np.abs(gaps), 0.01, seeds=track.seeds, detail=text)


def _predicted(track: Track, seed: int, begin: int, end: int) -> float:
    """The sum over groups of the cubic loss that the slow flow reaches, from the weights at one record."""
    first, passed = track.weights[seed, begin], track.time[end] - track.time[begin]
    tau, total = track.now[seed], 0.0
    for label, axis in enumerate(track.teacher):
        members = first[tau == label]
        across = members - np.outer(members @ axis, axis)
        if len(members) > 1:
            total += float(slow_levels(groups_of(members, axis[None])[0], across, [passed])[-1])
    return total


CLAIMS = (
    Claim(
        "RECUR:printed",
        "Eq. 37, Appendix E",
        "h_i*(t+1) - h_i*(t) = eta/2 H_tau + eta/(2 pi) sum_{l != tau} H_l + Q_i with + theta_i* nv in Q_i, and "
        "H(t+1) = M H + Q.",
        "random students, k = 3, m = 5",
        recursion_printed,
        kind=Kind.SLIP,
        mended="RECUR:corrected",
        expected=Verdict.FAILS,
        explanation="Two signs are wrong: theta_i* nv enters Q_i with a minus, and Q enters H with a minus.",
    ),
    Claim(
        "RECUR:corrected",
        "Eq. 37, corrected",
        "The recursions of h_i* and H hold for every step with - theta_i* nv in Q_i and - Q in H.",
        "random students, k = 3, m = 5",
        recursion_corrected,
        must_hold=True,
        explanation="Exact, not an approximation.",
    ),
    Claim(
        "EQ24",
        "Eq. 24, 25",
        "cos theta_i*(t+1) - cos theta_i*(t) = I2 + I3, with I2 of first and I3 of second order in eta.",
        "random students, k = 3, m = 5",
        cosine_step,
        must_hold=True,
        explanation="Exact, not an approximation.",
    ),
    Claim(
        "SPLIT",
        "Eq. 51",
        "f - f* = R1 + R2 with R1(x) >= 0 everywhere and R2 = sum_l (r_l.x) 1[v_l.x > 0].",
        "random students, k = 3, m = 5",
        residual_split,
        must_hold=True,
        explanation="R1 is the cost of wrong angles, R2 that of wrong sums.",
    ),
    Claim(
        "COPIES",
        "new",
        "Two halves of every student move through the same networks in half the time: curves fall together on eta m t.",
        "random students, k = 3, m = 5",
        copies,
        kind=Kind.OURS,
        must_hold=True,
        explanation="The gradient of a student depends on its direction and on the network only.",
    ),
    Claim(
        "EXPO",
        "new",
        "With as many students as teachers the loss falls exponentially, by (1 - eta lmin)^2 a step, not as t^-3.",
        "descent, m = k = 2, weak recovery",
        exponential,
        kind=Kind.OURS,
        explanation="A group of one has no slow motion: the minimum is not degenerate.",
    ),
    Claim(
        "SLOW",
        "new",
        "From s = 1e3 on the loss is that of a cubic flow in each group by itself, for any shares.",
        "flow, Gaussian start, k = 2, m = 6",
        slow_flow,
        kind=Kind.OURS,
        explanation="It also says how slowly L s^3 comes to its limit when the shares are uneven.",
    ),
)
