"""|x|/2 in place of the ReLU: without its linear part a single teacher attracts, and Theorem 3 is repaired."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, band, fitted_line, line
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.figures.beyond.common import STUDENTS, TEACHERS, last, moment, trained
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

ACTIVATIONS = {"relu": "ReLU", "half_abs": "|x|/2"}
EPS1, SCALE = 0.05, 1e-11
UPDATES: dict[Size, int] = {"quick": 1000, "full": 2500}


def compute(settings: ReluTeachersSettings, size: Size) -> xr.Dataset:
    """The same weak-recovery starts, trained with each activation (the teachers have it too)."""
    rows = [
        _traces(trained(size, UPDATES[size], pace=0.3, **_start(settings), activation=name).dataset)
        for name in ACTIVATIONS
    ]
    joined = xr.concat(rows, "activation").assign_coords(activation=list(ACTIVATIONS))
    joined["bound"] = ("time", _decay(joined["time"].values, settings.dim))
    return joined.assign_attrs(dim=settings.dim)


def _start(settings: ReluTeachersSettings) -> dict:
    return {"dim": settings.dim, "init": "weak", "scale": SCALE, "zeta": 1e-4}


def _decay(time: np.ndarray, dim: int) -> np.ndarray:
    """The factor of Eq. 4: (1 + k |v| s/s2)^(-1/(8k)), with s2 = 2 sigma sqrt d."""
    return (1 + TEACHERS * time / (2 * SCALE * math.sqrt(dim))) ** (-1 / (8 * TEACHERS))


def _traces(data: xr.Dataset) -> xr.Dataset:
    angles = measures.home_angles(data)
    length = data["first_norm"].sum("student")
    gap = (1 - xr.ufuncs.cos(angles)) / 2 - EPS1**2  # sin^2(theta/2) - eps1^2
    return xr.Dataset(
        {
            "angle": np.degrees(angles.max("student")),
            "gap_ratio": (gap / gap.isel(time=0)).max("student"),
            "length": length,
            "norm": data["first_norm"].mean("student"),
            "loss": data["loss"],
            "final_loss": last(data, "loss"),
        }
    )


def exponents(teachers: int) -> tuple[float, float]:
    """p within the teachers' span and out of it: with |x|/2 a small student's angle to a teacher shrinks as |w|^-p.

    Around `e_1` the force is `G = |v| (1/4 + (k-1)/(2 pi))`, and G bends by `k |v|/(2 pi)` towards another teacher and
    by `(k-1) |v|/(2 pi)` out of the span; p = 1 - bend/G is positive for every k, so a teacher attracts.
    """
    force = 0.25 + (teachers - 1) / (2 * math.pi)
    return 1 - teachers / (2 * math.pi) / force, 1 - (teachers - 1) / (2 * math.pi) / force


def measured_exponent(data: xr.Dataset) -> float:
    """-d ln angle/d ln norm of the median seed, from where the angle is below 10 degrees until half grown."""
    early = until_half_grown(data).median("seed")
    used = early["angle"].values < 10
    return -fitted_line(np.log(early["norm"].values[used]), np.log(early["angle"].values[used])).slope


def half_grown(dataset: xr.Dataset) -> xr.DataArray:
    """The record by which the norms of the students add up to half of those of the teachers."""
    return (dataset["length"] >= TEACHERS / 2).argmax("time")


def until_half_grown(dataset: xr.Dataset) -> xr.Dataset:
    """All records of one activation until its last seed is half grown."""
    return dataset.isel(time=slice(0, int(half_grown(dataset).max()) + 1))


def sheet(dataset: xr.Dataset) -> Sheet:
    time = dataset["time"]
    angles, losses, ratios = [], [], []
    for colour, (key, name) in enumerate(ACTIVATIONS.items()):
        data = dataset.sel(activation=key)
        angles.append(band(time, data["angle"], name, colour=colour))
        losses.append(band(time, data["loss"] / data["loss"].isel(time=0), name, colour=colour))
        early = until_half_grown(data)
        ratios.append(band(early["time"], early["gap_ratio"], name, colour=colour))
    bound = line(time.values, dataset["bound"].values, "bound of Eq. 4", dash="dashed", colour=GREY)
    centre = math.degrees(math.acos(1 / math.sqrt(TEACHERS)))
    marks = [
        Mark(f"half grown, {name}", at=float(time[int(half_grown(dataset.sel(activation=key)).max())]))
        for key, name in ACTIVATIONS.items()
    ]
    panels = (
        Panel(
            "angle to the first nearest teacher",
            "time",
            "largest theta_i* (degrees)",
            tuple(angles),
            marks=(Mark("mean direction", level=centre), *marks),
            xscale="log",
            ylim=(-3, 78),
        ),
        Panel(
            "the bound on the angle in phase 1",
            "time",
            "(sin^2(theta/2) - eps1^2) over its start",
            (*ratios, bound),
            xscale="log",
            note=f"eps1 = {EPS1:g}; the worst student, until half grown. Negative: within eps1 of its teacher.",
        ),
        _law(dataset.sel(activation="half_abs")),
        Panel("loss", "time", "loss / loss at the start", tuple(losses), xscale="log", yscale="log", ylim=(1e-8, 3)),
    )
    return Sheet("Beyond the paper: |x|/2, no linear part", panels, columns=2, caption=_caption(dataset))


def _law(data: xr.Dataset) -> Panel:
    early = until_half_grown(data).median("seed")
    norm, angle = early["norm"].values, early["angle"].values
    power = exponents(TEACHERS)[1]
    law = angle[-1] * (norm / norm[-1]) ** -power
    shown = law < 90
    return Panel(
        "|x|/2: the angle falls with the norm",
        "mean norm of a student",
        "largest theta_i* (degrees)",
        (
            line(norm, angle, "measured", colour=1),
            line(norm[shown], law[shown], f"|w|^-{power:.4f}, predicted", dash="dashed", colour=GREY),
        ),
        xscale="log",
        yscale="log",
    )


def excess(data: xr.Dataset) -> float:
    """The largest ratio of the left side of Eq. 4 to its right side until half grown, of one activation."""
    early = until_half_grown(data)
    return float((early["gap_ratio"] / early["bound"]).max())


def _caption(dataset: xr.Dataset) -> str:
    parts = []
    for key, name in ACTIVATIONS.items():
        data = dataset.sel(activation=key)
        there = moment(data["angle"], half_grown(data))
        parts.append(
            f"{name}: {float(there.max()):.3g} degrees at most when half grown, left side of Eq. 4 at most "
            f"{excess(data):.3g} times the right one, final loss at most "
            f"{float(data['final_loss'].max()):.1e}"
        )
    law = f"{measured_exponent(dataset.sel(activation='half_abs')):.4f} ({exponents(TEACHERS)[1]:.4f} predicted)"
    return (
        f"{dataset.sizes['seed']} weak-recovery starts at 45 degrees, k = {TEACHERS}, m = {STUDENTS}, "
        f"sigma = {SCALE:g}. {'; '.join(parts)}. With |x|/2 the angle falls as |w|^-p, p = {law}."
    )


FIGURE = Figure("beyond_abs", "|x|/2: a single teacher attracts", compute, sheet, ours=True)
