"""The three phases of Section 5 (alignment, growth, local refinement), detected, beside their predictions."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import Milestone, detect, milestones
from tutelage.papers.both_layers.constants import C4, C7
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.start import alignment_time, growth_time
from tutelage.trajectory import Phase, Run


def side_angles(dataset: xr.Dataset) -> xr.DataArray:
    """The angle of each unit to its own side of the target line: to a where v > 0, to -a where v < 0."""
    angle = dataset["overlap_angle"].isel(teacher=0)
    return xr.where(dataset["second"].isel(output=0) > 0, angle, math.pi - angle)


def phases(run: Run, settings: BothLayersSettings) -> list[Phase]:
    """Alignment until all angles stay below c4, growth until all |v| reach c7 sqrt|a|, then refinement.

    One output only: with several, units pair up and "the side of a" has no meaning. Predictions are those of the
    linearised start; times are flow times.
    """
    if settings.outputs != 1 or "overlap_angle" not in run.dataset or settings.trains != "both":
        return []
    reach = C7 * math.sqrt(settings.target)
    target = np.asarray(run.teacher.first)[0]

    def predicted(rule, one: xr.Dataset) -> float | None:
        index = int(np.flatnonzero(run.dataset["seed"].values == int(one["seed"]))[0])
        second, first = np.asarray(run.start.second[index, :, 0]), np.asarray(run.start.first[index])
        return settings.step * rule(second, first, target, step=settings.step)

    small = settings.scale <= 1e-1 * math.sqrt(settings.target) and not settings.offset
    marks = (
        Milestone(
            "alignment",
            lambda one: (side_angles(one) <= C4).all("student"),
            "until every unit stays within pi/20 of its side of the target line",
            (lambda one: predicted(alignment_time, one)) if small else None,
        ),
        Milestone(
            "growth",
            lambda one: (abs(one["second"].isel(output=0)) >= reach).all("student"),
            "until every outgoing weight has reached sqrt|a|/4",
            (lambda one: predicted(growth_time, one)) if small else None,
            stays=False,
        ),
    )
    return detect(run.dataset, [milestones(marks, "refinement", "linear convergence to the optimum")])
