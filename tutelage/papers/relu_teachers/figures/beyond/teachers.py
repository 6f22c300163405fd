"""Teachers that are not orthogonal, or not of one norm: the plateau of any teachers, predicted and measured."""

import math
from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, band, fitted_line, line
from tutelage.papers.relu_teachers.figures.beyond.common import STUDENTS, TEACHERS, last, moment, trained
from tutelage.papers.relu_teachers.plateau import MeanDirection
from tutelage.papers.relu_teachers.recipe import teacher_rows
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

CASES: dict[str, dict[str, Any]] = {
    "orthogonal": {},
    "cosine 0.2": {"cosine": 0.2},
    "cosine -0.2": {"cosine": -0.2},
    "norms 1 to 1.75": {"norms": (1.0, 1.25, 1.5, 1.75)},
}
SCALE = 1e-12
AFTER = 0.2  # by then the students have grown, and the gradient is least on the plateau


def compute(settings: ReluTeachersSettings, size: Size, *, cases: dict[str, Any] = CASES) -> xr.DataTree:
    """The plateau and the escape in small steps, and the end of longer runs, for each set of teachers."""
    common: dict[str, Any] = {"dim": settings.dim, "scale": SCALE}
    early = [_early(trained(size, 1500, pace=0.05, **common, **case).dataset, case) for case in cases.values()]
    late = [_late(trained(size, 3000, pace=1.0, **common, **case).dataset) for case in cases.values()]
    parts = {"early": early, "late": late}
    return xr.DataTree.from_dict(
        {name: xr.concat(rows, "case").assign_coords(case=list(cases)) for name, rows in parts.items()}
    )


def _early(data: xr.Dataset, case: dict[str, Any]) -> xr.Dataset:
    at = MeanDirection(teacher_rows(ReluTeachersSettings(teachers=TEACHERS, norm=1.0, **case)))
    norms = np.linalg.norm(at.teacher, axis=1)
    to_mean = xr.DataArray(at.teacher @ at.direction / norms, dims="teacher")
    before = (data["time"] > AFTER) & (data["loss"] > at.loss / 2)
    slowest = data["gradient_norm"].where(before).argmin("time")
    off = moment(data["overlap_angle"], slowest) - np.arccos(to_mean)
    rates = [_rate(data["time"].values, row) for row in _spread(data).transpose("seed", "time").values]
    return xr.Dataset(
        {
            "loss": data["loss"],
            "plateau": moment(data["loss"], slowest),
            "off": np.degrees(abs(off).max(("student", "teacher"))),
            "length": moment(data["first_norm"].sum("student"), slowest),
            "rate": ("seed", rates),
            "predicted_plateau": at.loss,
            "predicted_length": at.sum_of_norms,
            "predicted_rate": float(at.escape_rates(STUDENTS).max()),
        }
    )


def _spread(data: xr.Dataset) -> xr.DataArray:
    """How far the students differ in their cosines to the teachers (rms)."""
    differences = data["overlap_cos"] - data["overlap_cos"].mean("student")
    return (differences**2).sum("teacher").mean("student") ** 0.5


def _rate(time: np.ndarray, spread: np.ndarray) -> float:
    """The rate at which the students part: a line through ln spread, from 4 times its least value up to 0.1."""
    least = int(np.argmin(spread))
    rising = slice(least, least + int(np.argmax(np.append(spread[least:], 1.0) >= 0.1)))
    time, spread = time[rising], spread[rising]
    used = spread > 4 * spread[:1]
    return fitted_line(time[used], np.log(spread[used])).slope if used.sum() >= 5 else math.nan


def _late(data: xr.Dataset) -> xr.Dataset:
    angles = last(data, "overlap_angle").min("teacher")
    loss = last(data, "loss")
    return xr.Dataset({"loss": data["loss"], "final_loss": loss, "angle": np.degrees(angles.max("student"))})


def sheet(tree: xr.DataTree) -> Sheet:
    early, late = tree["early"].to_dataset(), tree["late"].to_dataset()
    names = [str(name) for name in early["case"].values]
    levels = early["predicted_plateau"].values
    panels = (
        Panel(
            "loss, and predicted shelves",
            "time",
            "population loss",
            tuple(band(early["time"], early["loss"].isel(case=i), n, colour=i) for i, n in enumerate(names)),
            marks=tuple(Mark(f"{level:.4f}", level=float(level)) for level in levels),
            yscale="log",
            xlim=(0, 5),
        ),
        Panel(
            "rate of escape",
            "predicted from the curvature at the mean direction",
            "measured",
            (*_points(early, "rate", names), _diagonal(early["predicted_rate"].values)),
        ),
        Panel(
            "to the end",
            "time",
            "population loss",
            tuple(band(late["time"], late["loss"].isel(case=i), n, colour=i) for i, n in enumerate(names)),
            xscale="log",
            yscale="log",
            xlim=(1e-2, float(late["time"][-1])),
        ),
    )
    return Sheet("Beyond the paper: any teachers", panels, columns=3, caption=_caption(early, late, names))


def _points(data: xr.Dataset, what: str, names: list[str]):
    for i, name in enumerate(names):
        x = [float(data[f"predicted_{what}"][i])]
        yield band(x, data[what].isel(case=i).values[:, None], name, kind="points", colour=i)


def _diagonal(values: np.ndarray):
    ends = np.array([0.95 * values.min(), 1.05 * values.max()])
    return line(ends, ends, "measured = predicted", dash="dashed", colour=GREY)


def _caption(early: xr.Dataset, late: xr.Dataset, names: list[str]) -> str:
    rows = []
    for i, name in enumerate(names):
        one = early.isel(case=i).median("seed")
        rows.append(
            f"{name}: plateau {float(one['plateau']):.5f} ({float(one['predicted_plateau']):.5f} predicted), norms "
            f"{float(one['length']):.4f} ({float(one['predicted_length']):.4f}), rate {float(one['rate']):.3f} "
            f"({float(one['predicted_rate']):.3f}), {float(one['off']):.2f} degrees from the predicted direction, "
            f"final loss at most {float(late['final_loss'][i].max()):.1e}, angle "
            f"{float(late['angle'][i].max()):.2g} degrees"
        )
    return (
        f"{early.sizes['seed']} Gaussian seeds each, k = {TEACHERS}, m = {STUDENTS}, sigma = {SCALE:g}; medians at the "
        f"slowest point, extremes at the end. {'; '.join(rows)}."
    )


FIGURE = Figure("beyond_teachers", "Teachers at other angles and of other norms", compute, sheet, ours=True)
