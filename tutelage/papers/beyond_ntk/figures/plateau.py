"""How long and how high the plateau is, against the dimension and the width."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line, lines, seed_lines
from tutelage.papers.beyond_ntk.constants import TAIL, plateau
from tutelage.papers.beyond_ntk.escapes import (
    DIMS,
    LEFT,
    RATIO,
    SEEDS,
    WIDTHS,
    escape_times,
    heights,
    plateau_run,
    scale,
)
from tutelage.papers.beyond_ntk.figures.beyond.common import TIME, barred
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """`by_dim` and `by_width`: escape times and heights, seed by seed; and the curves of the first."""
    dims, (dim, widths) = DIMS[size], WIDTHS[size]
    curves = {d: plateau_run(d, RATIO * d, SEEDS) for d in dims}
    found: dict[str, Any] = {
        "time_by_dim": (("dim", "seed"), [escape_times(curves[d], d) for d in dims]),
        "height_by_dim": (("dim", "seed"), [heights(curves[d]) for d in dims]),
        "time_by_width": (("width", "seed"), [escape_times(plateau_run(dim, m, SEEDS), dim) for m in widths]),
        "height_by_width": (("width", "seed"), [heights(plateau_run(dim, m, SEEDS)) for m in widths]),
    }
    found |= {f"time_{d}": (f"time_{d}", curves[d]["time"].values) for d in dims}
    found |= {f"loss_{d}": (("seed", f"time_{d}"), curves[d]["L"].values) for d in dims}
    coords = {"dim": list(dims), "width": list(widths), "seed": list(range(SEEDS))}
    return xr.Dataset(found, coords, {"fixed": dim, "ratio": RATIO})


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = (_curves(dataset), _by_dim(dataset), _by_width(dataset), _heights(dataset))
    return Sheet("The plateau, against dimension and width", panels, columns=2, caption=_caption(dataset))


def _curves(dataset: xr.Dataset) -> Panel:
    series: list[Series] = []
    for colour, d in enumerate(dataset["dim"].values):
        loss = dataset[f"loss_{d}"].isel({f"time_{d}": slice(1, None)})
        series += seed_lines(loss[f"time_{d}"], d * loss, f"d = {d}", colour=colour)
    marks = (Mark("end of the plateau", level=LEFT),)
    return Panel(
        f"loss, m = {dataset.attrs['ratio']} d",
        TIME,
        "d L",
        tuple(series),
        marks=marks,
        xscale="log",
        yscale="log",
    )


def _by_dim(dataset: xr.Dataset) -> Panel:
    dims = dataset["dim"].values
    points = barred(dims, dataset["time_by_dim"], colour=0)
    last = points.y[-1]
    fine = np.geomspace(dims[0], dims[-1], 50)
    power = line(fine, last * (fine / dims[-1]) ** 2, "$d^2$", dash="dotted", colour=GREY)
    law = line(fine, last / scale(dims[-1]) * fine**2 / np.log(fine), r"$d^2/\log d$", dash="dashed", colour=GREY)
    return Panel(
        f"length against d, m = {dataset.attrs['ratio']} d",
        "dimension d",
        f"time at which d L = {LEFT:g}",
        (points, law, power),
        xscale="log",
        yscale="log",
    )


def _by_width(dataset: xr.Dataset) -> Panel:
    times, dim = dataset["time_by_width"], dataset.attrs["fixed"]
    points = barred(dataset["width"].values, times, colour=0)
    return Panel(
        f"length against the width, d = {dim}",
        "width m",
        f"time at which d L = {LEFT:g}",
        (points,),
        xscale="log",
        ylim=(0.0, 1.15 * float(times.max())),
    )


def _heights(dataset: xr.Dataset) -> Panel:
    dims, fixed, ratio = dataset["dim"].values, dataset.attrs["fixed"], dataset.attrs["ratio"]
    widths = dataset["width"].values
    measured = dataset["height_by_dim"].mean("seed").values * dims
    others = dataset["height_by_width"].mean("seed").values * fixed
    across = np.array([d * plateau(int(d), ratio * int(d)) for d in dims])
    along = np.array([fixed * plateau(fixed, m) for m in widths])
    ends = np.array([0.95 * min(across.min(), along.min()), 1.05 * max(across.max(), along.max())])
    return Panel(
        "height against the formula",
        r"$d\,L_{\mathrm{plateau}}(d) + (1 - 3/\pi)\,d/m$",
        "d L where it is flattest",
        (
            line(across, measured, f"d = {', '.join(map(str, dims))}; m = {ratio} d", kind="points", colour=0),
            line(along, others, f"d = {fixed}; m = {', '.join(map(str, widths))}", kind="points", colour=1, marker="^"),
            line(ends, ends, "equal", dash="dashed", colour=GREY),
        ),
        marks=(Mark(r"$1 - 3/\pi$", level=TAIL),),
    )


def _caption(dataset: xr.Dataset) -> str:
    dims, mean = dataset["dim"].values, dataset["time_by_dim"].mean("seed").values
    told = ", ".join(f"{t:.0f} (d = {d})" for d, t in zip(dims, mean, strict=True))
    ratios = ", ".join(f"{t / scale(int(d)):.2f}" for d, t in zip(dims, mean, strict=True))
    wide = ", ".join(
        f"{t:.0f} (m = {m})"
        for m, t in zip(dataset["width"].values, dataset["time_by_width"].mean("seed").values, strict=True)
    )
    return (
        f"Population gradient, abs student, uniform weights, eta_inf = 0.2, {dataset.sizes['seed']} seeds. Mean times: "
        f"{told}; the log-log slope is {lines.exponent(dims, mean):.2f}, and the ratio to d^2/log d is {ratios}. Wider "
        f"networks leave sooner, d = {dataset.attrs['fixed']}: {wide}. The lines of the second panel go through its "
        "last point."
    )


FIGURE = Figure("plateau", "Length and height of the plateau", compute, sheet, ours=True)
