"""The phases of the paper (align, grow, converge) and, for two teachers or more, those that really happen.

The paper's T1 and T2 are clock times; what they should mark is detected, and the clock stands beside it as the
prediction. With k >= 2 the students do not align with a teacher each while they are small: they collapse onto the mean
direction, wait on the plateau there, escape from it, and only then separate.
"""

import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from tutelage.analysis import Crossing, Milestone, Phase, crossing, detect, fitted_line, growth, loss_phases, milestones
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.chain import EPS2_GROWTH, first_phase_time, second_phase_time
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.trajectory import Run

EPS1 = 0.1  # a free parameter of Theorem 6; its literal size underflows
NEAR_PLATEAU = 0.03  # of the sum of norms
SEPARATED = math.radians(20)
NEEDED = ("loss", "gradient_norm", "first_norm", "overlap", "overlap_cos", "overlap_angle")

Detector = Callable[[xr.Dataset], list[Phase]]


def phases(run: Run, settings: ReluTeachersSettings) -> list[Phase]:
    """All phases found, seed by seed, with predictions; outside the paper's setting, those any loss curve may have."""
    if any(name not in run.dataset for name in NEEDED):
        return []
    if not settings.plain or settings.students < settings.teachers:
        return detect(run.dataset, [loss_phases, local_phase])
    level = Plateau(settings.teachers, settings.students, float(settings.teacher_norms[0]))
    true_picture = [] if settings.teachers == 1 else [lambda one: mean_direction_phases(one, level)]
    return detect(run.dataset, [*paper_phases(level), *true_picture, local_phase])


def paper_phases(level: Plateau) -> list[Detector]:
    """Phases 1 and 2 of the paper, each from the start, because for k >= 2 they need not come in its order."""
    clock = first_phase_time(EPS1, level.teachers, level.students)
    fitted = second_phase_time(EPS1, EPS2_GROWTH, level.teachers, level.students)
    small = Milestone(
        "small norms",
        lambda one: one["first_norm"].max("student") > level.norm / (3 * level.students),
        "until a student's norm passes |v|/(3m) (Eq. 21)",
        level.small_norm_time,
        stays=False,
    )
    aligned = Milestone(
        "alignment (T1)",
        lambda one: measures.home_angles(one).max("student") <= 4 * EPS1,
        f"until every student stays within 4 eps1 = {4 * EPS1:g} rad of its first nearest teacher (Eq. 5); "
        "predicted: the paper's clock",
        clock,
    )
    grown = Milestone(
        "growth (T2)",
        lambda one: abs(measures.missing(one, level.norm)).max("teacher") <= level.norm / 3,
        "until every |H_l| stays below |v|/3 (Lemma 3); predicted: the paper's clock, an upper bound",
        fitted,
    )
    return [milestones((mark,)) for mark in (small, aligned, grown)]


def mean_direction_phases(one: xr.Dataset, level: Plateau) -> list[Phase]:
    """Collapse to the mean direction, plateau, escape and separation."""
    valid = np.isfinite(one["loss"].values)
    time = one["time"].values
    spread = measures.spread(one).values
    closest = int(np.nanargmax(np.where(valid, measures.mean_cosines(one).min("student").values, np.nan)))
    shelf = _plateau(one, level, valid)
    found = [_collapse(one, level, spread, closest), *([shelf] if shelf else [])]
    apart = math.sqrt(1 - 1 / level.teachers) / 2
    begin = int(np.searchsorted(time, max(found[-1].start, float(time[closest]))))
    left = crossing(time, spread >= apart, valid=valid, after=float(time[begin]), stays=False)
    if left is None or left.record == begin:  # they never came together
        return found
    found.append(_escape(time, spread, begin, left, apart, level))
    parted = crossing(
        time, measures.nearest_angles(one).max("student").values <= SEPARATED, valid=valid, after=left.time
    )
    if parted is not None:
        text = f"until every student stays within {math.degrees(SEPARATED):.0f} degrees of a teacher"
        found.append(Phase("separation", left.time, parted.time, text, uncertainty=parted.uncertainty))
    return found


def _collapse(one: xr.Dataset, level: Plateau, spread: np.ndarray, closest: int) -> Phase:
    """Until the students are nearest to the mean direction; the fit is of ln spread against ln |w|."""
    time = one["time"].values
    norm = one["first_norm"].mean("student").values
    used = np.arange(len(time)) <= closest
    used &= (norm > 10 * norm[0]) & (norm < level.norm / (3 * level.students)) & (spread > 0)
    fit = fitted_line(np.log(norm[used]), np.log(spread[used])) if used.sum() >= 8 else None
    reached = float(measures.mean_cosines(one).min("student").values[closest])
    text = f"all students turn to the mean direction: smallest cosine {reached:.4g}"
    if fit is not None:
        text += f"; differences shrink as |w|^{fit.slope:.4g} (predicted {-level.decay_inside:.4g})"
    spacing = float(time[closest] - time[max(closest - 1, 0)])
    return Phase("collapse", float(time[0]), float(time[closest]), text, uncertainty=spacing, fit=fit)


def _plateau(one: xr.Dataset, level: Plateau, valid: np.ndarray) -> Phase | None:
    """The stretch on which the norms add up to those of the saddle."""
    time, total = one["time"].values, one["first_norm"].sum("student").values
    near = valid & (np.abs(total - level.sum_of_norms) < NEAR_PLATEAU * level.sum_of_norms)
    if not near.any():
        return None
    first = int(np.argmax(near))
    last = first + int(np.argmin(np.append(near[first:], False))) - 1
    slowest = first + int(np.argmin(one["gradient_norm"].values[first : last + 1]))
    seen = float(one["loss"].values[slowest])
    text = f"the loss is {seen:.5g} where it moves least (predicted {level.loss:.5g})"
    spacing = float(time[last] - time[last - 1]) if last else 0.0
    return Phase("plateau", float(time[first]), float(time[last]), text, uncertainty=spacing)


def _escape(time: np.ndarray, spread: np.ndarray, begin: int, left: Crossing, apart: float, level: Plateau) -> Phase:
    """From the plateau's beginning until the spread is half of that of students on their teachers."""
    rise = growth(time[begin : left.record + 1], spread[begin : left.record + 1])
    predicted = float(time[begin]) + math.log(apart / spread[begin]) / level.gamma_inside
    fit = rise.fit if rise else None
    seen = f"as exp({fit.slope:.4g} s)" if fit else "too fast for a fit"
    text = f"directions part {seen} (predicted rate {level.gamma_inside:.4g} at the saddle)"
    return Phase("escape", float(time[begin]), left.time, text, predicted, left.uncertainty, fit=fit)


def local_phase(one: xr.Dataset) -> list[Phase]:
    """Where `|grad|^2/(3 L^(4/3))` stays within 10 % of its last value, if that lasts for a factor 3 in time and most
    of the loss is gone."""
    valid = np.isfinite(one["loss"].values) & (one["loss"].values > 0)
    if not valid.any():
        return []
    time, rate = one["time"].values, measures.cubic_rate(one).values
    end = int(np.flatnonzero(valid)[-1])
    begun = crossing(time, np.abs(rate - rate[end]) <= 0.1 * rate[end], valid=valid)
    loss = one["loss"].values
    # A run that has hardly moved has a constant rate too; the exponent itself tends to 3 only slowly, as 3 s/(s0 + s).
    if begun is None or time[end] < 3 * begun.time or loss[end] > 0.01 * loss[0]:
        return []
    text = f"loss = (c (s + s0))^-3 with c = {rate[end]:.4g}"
    return [Phase("local", begun.time, float(time[end]), text, uncertainty=begun.uncertainty)]
