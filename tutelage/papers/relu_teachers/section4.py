"""The runs of Section 4: online SGD at the paper's settings, and when its first two phases are over in them."""

from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from tutelage.analysis import lines
from tutelage.dynamics import Record
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.phases import NEEDED
from tutelage.papers.relu_teachers.recipe import run
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.problem import Numbers
from tutelage.trajectory import Run

Init = Literal["gaussian", "weak"]
RECORDS = 250
ALIGNED, SETTLED = 0.95, 0.95
"""t1 is when the mean cosine to the nearest teacher stays above the one, t2 when the mean norm stays above the other
of that at a balanced minimum: "the angle aligns", and "until the norm of neurons' weights is unchanged"."""


class Case(NamedTuple):
    """One column of Figure 2 or 3."""

    teachers: int
    students: int
    scale: float
    eta: float


FIGURE_2 = tuple(Case(k, m, 1e-6, 5e-4) for k, m in ((2, 20), (4, 12), (4, 20), (4, 40)))
FIGURE_3 = tuple(Case(4, 20, sigma, eta) for sigma, eta in ((1e-4, 5e-4), (1e-5, 5e-4), (1e-6, 5e-4), (1e-6, 1e-3)))


def trained(settings: ReluTeachersSettings, case: Case, init: Init, seeds: int) -> Run:
    """A run of SGD; dimension, norm, batch and number of updates are those of `settings`."""
    chosen = ReluTeachersSettings(
        dim=settings.dim,
        norm=settings.norm,
        batch=settings.batch,
        steps=settings.steps,
        teachers=case.teachers,
        students=case.students,
        scale=case.scale,
        step=case.eta,
        init=init,
    )
    return run(chosen, seeds=seeds, dtype="float32", record=Record(RECORDS, observables=NEEDED))


def traces(run: Run, case: Case, norm: float) -> xr.Dataset:
    """Cosines, norms and loss against updates, and t1 and t2 in updates, seed by seed."""
    data = run.dataset
    share = data["first_norm"] * case.students / (case.teachers * norm)
    columns = {
        **_spread("cosine", measures.nearest_cosines(data), "cosine of a student and its nearest teacher"),
        **_spread("norm", share, "norm of a student over that at a balanced minimum"),
        "mean_cosine": measures.mean_cosines(data).min("student"),
        "loss": data["loss"],
    }
    # The cases differ in the step size, so that updates, not times, are common to them.
    found = xr.Dataset(columns).swap_dims(time="step").drop_vars("time")
    ends = {"t1": ("cosine_mean", ALIGNED), "t2": ("norm_mean", SETTLED)}
    return found.assign({name: ("seed", _stays_above(found[what], level)) for name, (what, level) in ends.items()})


def _spread(name: str, values: xr.DataArray, text: str) -> dict[str, xr.DataArray]:
    found = {"mean": values.mean("student"), "least": values.min("student"), "most": values.max("student")}
    return {f"{name}_{which}": part.assign_attrs(long_name=f"{text}, {which}") for which, part in found.items()}


def _stays_above(values: xr.DataArray, level: float) -> Numbers:
    """The update from which each seed stays above the level, between records by a line; nan if it does not."""
    step, found = values["step"].values.astype(float), []
    for one in values.transpose("seed", "step").values:
        below = np.flatnonzero(~(one >= level))
        last = int(below[-1]) if len(below) else -1
        if last == len(step) - 1 or last < 0:
            found.append(np.nan if last >= 0 else step[0])
        else:
            found.append(float(np.interp(level, one[last : last + 2], step[last : last + 2])))
    return np.array(found)


def late_slopes(one: Any) -> Numbers:
    """d ln L / d ln T fitted to the second half of the updates, for each seed."""
    step = one["step"].values
    late = step >= step[-1] / 2
    return lines.exponent(step[late], one["loss"].transpose("step", "seed").values[late])
