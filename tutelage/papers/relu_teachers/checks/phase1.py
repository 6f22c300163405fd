"""Phase 1 (Theorems 3 and 6) with the literal constants of Theorem 6, in the flow to T1 = eps1^2/(100 k m)."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from tutelage.analysis import Claim, Finding, Hypothesis, Verdict, all_of, at_least, at_most, given
from tutelage.papers.relu_teachers import kernel
from tutelage.papers.relu_teachers.chain import first_phase_time, log10_eta_first, log10_sigma
from tutelage.papers.relu_teachers.evidence import Evidence
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.track import NORM, Track, hypotheses

ROUNDING = 1e-9  # of a logarithm that is compared with itself


def _each(evidence: Evidence, check: Callable[[Track], Finding], teachers: int | None = None) -> Finding:
    """One finding of all runs with so many teachers (2 means two or more; None all)."""
    wanted = {None: (1, math.inf), 1: (1, 1), 2: (2, math.inf)}[teachers]
    tracks = [track for (k, _), track in evidence.literal.items() if wanted[0] <= k <= wanted[1]]
    return all_of([_with_hypotheses(check(track), track) for track in tracks])


def _with_hypotheses(finding: Finding, track: Track, *more: Hypothesis) -> Finding:
    """The finding with what was measured of the theorem's hypotheses; it speaks of nothing if they do not hold."""
    most = log10_sigma(math.log10(track.eps1), track.teachers, track.students, track.dim)
    least = math.log10(track.sigma)
    small = Hypothesis("log10 sigma at most that of Theorem 6", least <= most + ROUNDING, least, most)
    text = f"k = {track.teachers}, eps1 = {track.eps1:g}, sigma = {track.sigma:.2g}. {finding.detail}"
    return given(dataclasses.replace(finding, seeds=track.seeds, detail=text), *hypotheses([track]), small, *more)


def _norms(track: Track) -> Finding:
    s1, s2 = track.bounds
    upper = (s2 + 2 * track.teachers * NORM * track.time)[None, :, None]
    growth = float(np.min(np.diff(track.norms, axis=1) / track.norms[:, 1:]))
    low = float(np.min(track.norms / s1))
    text = f"|w_i| over its upper bound; |w_i|/s1 >= {low:.2f}, smallest relative growth of a record {growth:.1e}."
    return all_of([at_most(track.norms / upper, 1.0, detail=text), at_least(low, 1.0), at_least(growth, 0.0)])


def _gradients(track: Track) -> Finding:
    slopes = [kernel.gradient(one, track.teacher) for seed in track.weights for one in seed[::4]]
    return at_most(
        np.linalg.norm(slopes, axis=-1) / (2 * track.teachers * NORM), 1.0, detail="|grad_i| over its bound."
    )


def _angle_decay(track: Track, literal_end: float | None = None) -> Finding:
    k, s2 = track.teachers, track.bounds[1]
    left = np.sin(track.theta / 2) ** 2 - track.eps1**2
    right = (1 + k * NORM * track.time / s2)[None, :, None] ** (-1 / (8 * k)) * left[:, :1]
    worst = np.max((left / right)[:, 1:], axis=(0, 2))
    broken = np.flatnonzero(worst > 1)
    text = f"Left side over right side; it is {worst[-1]:.3g} at the end."
    if len(broken):
        text += f" First broken at s = {track.time[1 + broken[0]]:.2g}, T1 is {literal_end or track.time[-1]:.2g}."
    return at_most(worst, 1.0, detail=text)


def _angle_end(track: Track) -> Finding:
    mean = math.degrees(Plateau(track.teachers, track.students).theta_m)
    text = f"Largest angle at T1: {np.degrees(np.max(track.theta[:, -1])):.3g} degrees"
    text += f"; the mean direction of the teachers is at {mean:.1f}." if track.teachers > 1 else "."
    return at_most(track.theta[:, -1], 4 * track.eps1, detail=text)


def _balance(track: Track) -> Finding:
    last = track.heights[:, -1]
    return at_most(np.max(last, axis=1) / np.min(last, axis=1), 2.0, detail="Largest h_i*/h_j* at T1.")


def _small(track: Track) -> Finding:
    share = track.norms * 48 * track.students / (track.eps1**2 * NORM)
    return at_most(share, 1.0, detail="Largest |w_i| to T1 over eps1^2 nv/(48 m).")


def _steps(evidence: Evidence, teachers: int) -> Finding:
    """With the first-order and the second-order part of the change, which is exact (EQ24) where a difference is not."""

    def check(track: Track) -> Finding:
        eta = 10 ** log10_eta_first(math.log10(track.eps1), math.log10(track.sigma), track.teachers, track.dim)
        slack = []
        for seed, home in zip(track.weights, track.home, strict=True):
            for one in seed[::8]:
                step = evidence.step(one, track.teacher, eta, home)
                change = (step.I2 + step.I3) * 2 * step.after.lengths / (eta * NORM)
                slack.append(change - np.sin(step.theta_own / 2) ** 2 + track.eps1**2)
        text = "Least difference of both sides, over eta nv/(4 |w_i|)."
        return at_least(slack, -ROUNDING, detail=text)

    return _each(evidence, check, teachers)


def _sum_bounds(teachers: int) -> tuple[float, float]:
    """Of h_i*(T1) over T1 nv (Eq. 31)."""
    k = teachers
    low = 49 * k + 49 * math.pi - 5 * math.pi * k - 73.5
    return low / (100 * math.pi), (low + 10 * math.pi * k + 49) / (100 * math.pi)


def _sum(track: Track) -> Finding:
    low, high = _sum_bounds(track.teachers)
    found = track.heights[:, -1] / (track.time[-1] * NORM)
    text = f"h_i*(T1)/(T1 nv) from {np.min(found):.4f} to {np.max(found):.4f}, allowed [{low:.4f}, {high:.4f}]."
    return all_of([at_least(found - low, 0.0, detail=text), at_most(found - high, 0.0)])


def sums_two(evidence: Evidence) -> Finding:
    """Runs, and for more teachers the rate of the mean direction, which P1-RATE:k=2 compares with runs."""
    rates = evidence.mean_rates
    text = "By the rate of the mean direction: "
    text += ", ".join(f"{rates[k]:.4f} for k = {k}, at least {_sum_bounds(k)[0]:.4f} allowed" for k in rates) + "."
    by_rate = at_least([rates[k] - _sum_bounds(k)[0] for k in rates], 0.0, detail=text)
    return all_of([_each(evidence, _sum, 2), by_rate])


def _rise(track: Track) -> Finding:
    k = track.teachers
    late = track.within(track.time[-1] / 50)
    rates = np.diff(track.heights[:, late], axis=1) / np.diff(track.time[late])[None, :, None]
    low, high = ((k + math.pi - x) * NORM / (2 * math.pi) for x in (1.5, 0.5))
    seen = Plateau(k, track.students).projection_rate
    text = f"d h_i*/ds on [T1/50, T1] from {np.min(rates):.4f} to {np.max(rates):.4f}, allowed [{low:.4f}, {high:.4f}]"
    text += f"; F nv/(2 pi sqrt k) = {seen:.4f}."
    return all_of([at_least(rates, low, detail=text), at_most(rates, high)])


def angle_decay_two(evidence: Evidence) -> Finding:
    track = evidence.literal_descent
    found = _angle_decay(track, first_phase_time(track.eps1, track.teachers, track.students))
    steps, step = track.dataset["step"].values[-1], track.time[-1] / track.dataset["step"].values[-1]
    text = f"{found.detail} This is descent, {steps:.0f} steps of eta = {step:.2g}."
    most = log10_eta_first(math.log10(track.eps1), math.log10(track.sigma), track.teachers, track.dim)
    slow = Hypothesis(
        "log10 eta at most that of Theorem 6", math.log10(step) <= most + ROUNDING, math.log10(step), most
    )
    descent = _with_hypotheses(dataclasses.replace(found, detail=text), track, slow)
    return all_of([_each(evidence, _angle_decay, 2), descent])


SETTING = "Theorem 6 with its own sigma and zeta = eps1^2/(10 k), flow"
DECAY = (
    "sin^2(theta_i*/2) - eps1^2 <= (1 + k nv s/s2)^(-1/(8k)) (sin^2(theta_i*(0)/2) - eps1^2) for s <= T1, where "
    "theta_i* is the angle of student i to the teacher nearest at the start"
)
STEP = "sin^2(theta_i*/2) falls in every step to T1 by at least eta nv/(4 |w_i(t+1)|) (sin^2(theta_i*/2) - eps1^2)"
SUM = "49 k + 49 pi - 5 pi k - 73.5 <= 100 pi h_i*(T1)/(T1 nv) <= 49 k + 49 pi + 5 pi k - 24.5, with T1 in flow time"
COLLAPSE = "At a teacher the others still pull with nv/4 each: students turn to the mean direction of the teachers."

CLAIMS = (
    Claim(
        "P1-NORM",
        "Eq. 3, 16",
        "s1 <= |w_i| <= s2 + 2 k nv s, and |w_i| does not decrease, for s <= T1.",
        SETTING,
        lambda evidence: _each(evidence, _norms),
        explanation="The rate of growth is F nv/(2 pi), well below 2 k nv.",
    ),
    Claim(
        "P1-GRAD",
        "Eq. 22",
        "|grad_i| <= 2 k nv for s <= T1.",
        SETTING,
        lambda evidence: _each(evidence, _gradients),
        must_hold=True,
        explanation="A loose bound.",
    ),
    Claim(
        "P1-SMALL",
        "Eq. 21",
        "|w_i| <= eps1^2 nv/(48 m) for s <= T1.",
        SETTING,
        lambda evidence: _each(evidence, _small),
        explanation="The rate of growth is F nv/(2 pi), and T1 = eps1^2/(100 k m).",
    ),
    Claim(
        "P1-STEP:k=1",
        "Eq. 27",
        f"{STEP}; one teacher.",
        f"{SETTING}, and its own eta",
        lambda evidence: _steps(evidence, 1),
        explanation="Students turn to their teacher only.",
    ),
    Claim(
        "P1-STEP:k=2",
        "Eq. 27",
        f"{STEP}; two teachers or more.",
        f"{SETTING}, and its own eta",
        lambda evidence: _steps(evidence, 2),
        expected=Verdict.FAILS,
        explanation=COLLAPSE,
    ),
    Claim(
        "P1-ANGLE:k=1",
        "Eq. 4, 17",
        f"{DECAY}; one teacher.",
        SETTING,
        lambda evidence: _each(evidence, _angle_decay, 1),
        must_hold=True,
        explanation="The true law is theta ~ 1/|w| ~ 1/s.",
    ),
    Claim(
        "P1-ANGLE:k=2",
        "Eq. 4, 17",
        f"{DECAY}; two teachers or more.",
        f"{SETTING}, and descent with its own eta",
        angle_decay_two,
        expected=Verdict.FAILS,
        explanation=f"The proof uses |cos theta_il| <= zeta at all times, which is assumed at s = 0 only. {COLLAPSE}",
    ),
    Claim(
        "P1-END:k=1",
        "Eq. 5, 18",
        "theta_i*(T1) <= 4 eps1; one teacher.",
        SETTING,
        lambda evidence: _each(evidence, _angle_end, 1),
        must_hold=True,
        explanation="The true law is theta ~ 1/|w| ~ 1/s.",
    ),
    Claim(
        "P1-END:k=2",
        "Eq. 5, 18",
        "theta_i*(T1) <= 4 eps1; two teachers or more.",
        SETTING,
        lambda evidence: _each(evidence, _angle_end, 2),
        expected=Verdict.FAILS,
        explanation=f"theta_i*(T1) = arccos(1/sqrt k). {COLLAPSE}",
    ),
    Claim(
        "P1-BAL",
        "Eq. 5, 19",
        "h_i*(T1) <= 2 h_j*(T1) for all students i, j, where h_i* is the component along the first nearest teacher.",
        SETTING,
        lambda evidence: _each(evidence, _balance),
        explanation="All students have grown by the same amount in the same direction.",
    ),
    Claim(
        "P1-SUM:k=1",
        "Eq. 29 to 31",
        f"{SUM}; one teacher.",
        SETTING,
        lambda evidence: _each(evidence, _sum, 1),
        explanation="The rate is nv/2.",
    ),
    Claim(
        "P1-SUM:k=2",
        "Eq. 29 to 31",
        f"{SUM}; two teachers or more.",
        f"{SETTING}; k = 3, 4, 8 by the rate of the mean direction",
        sums_two,
        expected=Verdict.FAILS,
        explanation="It holds for two teachers, and from three on the mean direction is too far from each.",
    ),
    Claim(
        "P1-RATE:k=1",
        "Appendix D",
        "d h_i*/ds lies in [k + pi - 1.5, k + pi - 0.5] nv/(2 pi) on [T1/50, T1]; one teacher.",
        SETTING,
        lambda evidence: _each(evidence, _rise, 1),
        explanation="The rate is nv/2.",
    ),
    Claim(
        "P1-RATE:k=2",
        "Appendix D",
        "d h_i*/ds lies in [k + pi - 1.5, k + pi - 0.5] nv/(2 pi) on [T1/50, T1]; two teachers or more.",
        SETTING,
        lambda evidence: _each(evidence, _rise, 2),
        expected=Verdict.FAILS,
        explanation="The rate is F nv/(2 pi sqrt k), that of the mean direction.",
    ),
)
