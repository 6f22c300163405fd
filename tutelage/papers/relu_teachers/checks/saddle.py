"""What really happens with two teachers or more: collapse to the mean direction, a strict saddle, and escape."""

import math

import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import Claim, Finding, Kind, at_most, lines
from tutelage.papers.relu_teachers.evidence import Evidence
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.track import NORM, Track
from tutelage.problem import Numbers

APART = math.radians(20)


def _fit(x: Numbers, y: Numbers, keep: NDArray[np.bool_]) -> float:
    """The slope of ln y against x where `keep`; nan if there is too little to fit."""
    return float(lines.slope(x[keep], np.log(y[keep]))) if keep.sum() >= 5 else math.nan


def _decays(track: Track, level: Plateau) -> tuple[Numbers, Numbers]:
    """Measured p_V and p_perp of each seed: minus the slope of ln deviation against ln |w| while norms are small."""
    size = np.mean(track.norms, axis=-1)
    small = (size > 1e3 * size[:, :1]) & (size < 0.01 * level.student_norm)
    return tuple(
        np.array([-_fit(np.log(size[i]), deviation[i], small[i]) for i in range(track.seeds)])
        for deviation in (track.spread, track.outside)
    )  # type: ignore[return-value]


def _escape(track: Track, level: Plateau) -> Numbers:
    """The rate at which directions part, of each seed, while norms are those of the saddle."""
    total = np.sum(track.norms, axis=-1)
    near = (np.abs(total / level.sum_of_norms - 1) < 1e-3) & (track.spread < 0.03)
    return np.array([_fit(track.time, track.spread[i], near[i]) for i in range(track.seeds)])


def plateau(evidence: Evidence) -> Finding:
    track = evidence.sweep[min(evidence.sweep)]
    level = Plateau(track.teachers, track.students, NORM)
    before = track.within(0.0, level.escape_time(float(np.min(track.spread))))
    still = np.argmin(np.where(before, track.slope, np.inf), axis=1)
    at = np.arange(track.seeds), still
    seen = {
        "L": (track.loss[at], level.loss),
        "sum |w_i|": (np.sum(track.norms[at], axis=-1), level.sum_of_norms),
        "gam_V": (_escape(track, level), level.gamma_inside),
    }
    seen["p_V"], seen["p_perp"] = zip(_decays(track, level), (level.decay_inside, level.decay_outside), strict=True)
    gaps = [np.max(np.abs(found / predicted - 1)) for found, predicted in seen.values()]
    text = ", ".join(f"{name} = {np.mean(found):.5g} ({predicted:.5g})" for name, (found, predicted) in seen.items())
    closest = float(np.max(np.min(track.mean_cosine, axis=-1), axis=1).min())
    text = f"Measured (predicted): {text}; all cosines to the mean direction reach {closest:.7f}."
    return at_most(gaps, 0.01, seeds=track.seeds, detail=f"Largest relative deviation, sigma = {track.sigma:g}. {text}")


def _parted(track: Track) -> float:
    """The median over seeds of the time at which all theta_i* come below 20 degrees, between records by a line."""
    widest, times = np.max(track.theta, axis=-1), []
    for one in widest:
        above = np.flatnonzero(one > APART)[-1]
        if above + 1 == len(one):
            return math.nan
        share = (one[above] - APART) / (one[above] - one[above + 1])
        times.append(track.time[above] + share * (track.time[above + 1] - track.time[above]))
    return float(np.median(times))


def lengthening(evidence: Evidence) -> Finding:
    tracks = [evidence.sweep[length] for length in sorted(evidence.sweep, reverse=True)]
    sigmas = [track.sigma for track in tracks]
    times = np.array([_parted(track) for track in tracks])
    level = Plateau(2, tracks[0].students)
    predicted = np.array([level.lengthening(sigmas[0] / sigma) for sigma in sigmas[1:]])
    found = times[1:] - times[0]
    text = "Time at which all theta_i* fall below 20 degrees: "
    text += ", ".join(f"{time:.3f} for sigma = {sigma:g}" for time, sigma in zip(times, sigmas, strict=True))
    text += f"; predicted differences {', '.join(f'{value:.3f}' for value in predicted)}."
    return at_most(np.abs(found / predicted - 1), 0.01, seeds=evidence.seeds, detail=text)


SETTING = "flow, weak recovery, k = 2, m = 6, small sigma"

CLAIMS = (
    Claim(
        "SADDLE",
        "new",
        "Students of small norm collapse onto the mean direction, deviations falling as |w|^-p_V within span V and "
        "|w|^-p_perp outside, and wait at L = L(0) - (F nv/(2 pi))^2 with sum |w_i| = F nv/pi, a saddle left at the "
        "rate gam_V.",
        SETTING,
        plateau,
        kind=Kind.OURS,
        explanation="The mean direction maximises sum_l g(., v_l); F = (pi - theta_m) sqrt k + sqrt(k(k-1)).",
    ),
    Claim(
        "LENGTH",
        "new",
        "The plateau lengthens by (p_V/gam_V) ln(ratio) when sigma is divided by a ratio.",
        SETTING,
        lengthening,
        kind=Kind.OURS,
        explanation="Deviations shrink to sigma^p_V before they grow as exp(gam_V s).",
    ),
)
