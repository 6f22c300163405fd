"""Unequal teacher weights: strong directions are found first."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Panel, Sheet, line, lines
from tutelage.papers.beyond_ntk.escapes import half_times
from tutelage.papers.beyond_ntk.figures.beyond.common import SHAPES, TIME, along, barred, curves, runs
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

KAPPAS: dict[Size, tuple[float, ...]] = {"quick": (1.0, 2.0, 4.0, 8.0), "full": (1.0, 2.0, 4.0, 8.0, 16.0)}
SHOWN = (1.0, 4.0, 8.0)
HELD = 0.5
"""A direction is taken when units on it hold this part of its weight."""


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Losses, escape times, and when each direction is taken, for each ratio of weights."""
    joined = along("kappa", KAPPAS[size], lambda ratio: _row(size, ratio))
    return joined.assign_attrs(SHAPES[size]._asdict())


def _row(size: Size, ratio: float) -> xr.Dataset:
    data = runs(size, kappa=ratio)
    a = BeyondNtkSettings(dim=SHAPES[size].dim, kappa=ratio).teacher_weights
    held = data["caught"] >= HELD * xr.DataArray(a, dims="teacher")
    taken = data["time"].isel(time=held.argmax("time")).where(held.any("time"))
    found = {"L": data["L"], "escape": ("seed", half_times(data)), "taken": taken.drop_vars(("time", "step"))}
    return xr.Dataset(found | {"weight": ("teacher", a)})


def sheet(dataset: xr.Dataset) -> Sheet:
    dim, kappas, times = dataset.attrs["dim"], dataset["kappa"].values, []
    for colour, kappa in enumerate(k for k in kappas if k in SHOWN):
        one, label = dataset.sel(kappa=kappa), f"ratio {kappa:g}"
        weights = np.broadcast_to(dim * one["weight"].values, one["taken"].transpose("seed", "teacher").shape)
        times.append(
            line(
                weights.ravel(),
                one["taken"].transpose("seed", "teacher").values.ravel(),
                label,
                kind="points",
                colour=colour,
            )
        )
    strong = np.linspace(0.2, 2.0, 50)
    level = float(dataset["taken"].sel(kappa=1.0).median())
    law = line(strong, level / strong, r"$\propto 1/a_i$", dash="dashed", colour=GREY)
    panels = (
        Panel("loss", TIME, "d L", curves(dim * dataset["L"], "kappa", SHOWN, "ratio"), xscale="log", yscale="log"),
        Panel("when a direction is taken", r"weight $d\,a_i$", TIME, (*times, law), xscale="log", yscale="log"),
        Panel(
            "length of the plateau",
            r"$a_{\max}/a_{\min}$",
            "time at which orders above 2 halve",
            (barred(kappas, dataset["escape"], colour=0),),
            xscale="log",
            ylim=(0.0, 1.25 * float(dataset["escape"].max())),
        ),
    )
    return Sheet("Beyond the paper: unequal teacher weights", panels, columns=3, caption=_caption(dataset))


def exponent(dataset: xr.Dataset) -> float:
    """The slope of log time against log weight, over all directions that were taken with unequal weights."""
    unequal = dataset.where(dataset["kappa"] > 1, drop=True)
    taken, weight = xr.broadcast(unequal["taken"], unequal["weight"])
    x, y = weight.values.ravel(), taken.values.ravel()
    seen = np.isfinite(y) & np.isfinite(x)
    return float(lines.exponent(x[seen], y[seen]))


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    told = "; ".join(
        f"{float(k):g}: mean escape {float(one['escape'].mean()):.0f}, L {float(one['L'].isel(time=-1).median()):.2g}, "
        f"{int(one['taken'].notnull().sum())} of {one['taken'].size} directions taken"
        for k, one in ((k, dataset.sel(kappa=k)) for k in dataset["kappa"].values)
    )
    return (
        f"d = {about['dim']}, m = {about['width']}, weights evenly spaced, population gradient, "
        f"{dataset.sizes['seed']} seeds, to time {float(dataset['time'][-1]):.0f}. By the ratio of weights: {told}. A "
        f"direction is taken when units on it hold half of its weight; that time goes as a_i to the power "
        f"{exponent(dataset):.2f}. The dashed line has the median of equal weights."
    )


FIGURE = Figure("beyond_kappa", "Unequal teacher weights", compute, sheet, ours=True)
