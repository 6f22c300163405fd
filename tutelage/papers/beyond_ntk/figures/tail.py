"""How the loss ends: as a power of time if there are more units than directions, exponentially if there are as many."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk.figures.beyond.common import TIME
from tutelage.papers.beyond_ntk.masses import law_loss
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.beyond_ntk.tails import FLOOR, PLANS, local_slopes, losses
from tutelage.study import Figure, Size

STEEPEST = -12.0


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The loss over time, width by width, and its local exponent."""
    plan = PLANS[size]
    times = losses(plan, plan.widths[-1])[0]
    values = np.array([np.interp(times, *losses(plan, width)) for width in plan.widths])
    found = {
        "L": (("width", "time"), values),
        "slope": (("width", "time"), np.array([local_slopes(times, each) for each in values])),
    }
    coords = {"width": list(plan.widths), "time": times}
    return xr.Dataset(found, coords, {"dim": plan.dim, "seeds": plan.seeds})


def sheet(dataset: xr.Dataset) -> Sheet:
    dim, times = dataset.attrs["dim"], dataset["time"].values
    late = times > times[-1] / 30
    curves, slopes = [], []
    for colour, width in enumerate(dataset["width"].values):
        one = dataset.sel(width=width)
        alive = one["L"].values > 10 * FLOOR
        label = f"m = {width}" + (" = d" if width == dim else "")
        curves.append(line(times[alive], one["L"].values[alive], label, colour=colour))
        shown = alive & late & (one["slope"].values > STEEPEST)
        slopes.append(line(times[shown], one["slope"].values[shown], label, colour=colour))
    law = line(times[late], law_loss(times[late], dim), "mass equation, exponent -2", dash="dashed", colour=GREY)
    panels = (
        Panel("loss, log time", TIME, "L", (*curves, law), xscale="log", yscale="log"),
        Panel("loss, linear time", TIME, "L", tuple(curves), yscale="log"),
        Panel(
            "local exponent",
            TIME,
            "d log L / d log t",
            tuple(slopes),
            marks=(Mark("mass equation: -2", level=-2.0),),
            xscale="log",
            ylim=(STEEPEST, 0.5),
        ),
    )
    return Sheet("The end of the descent, width by width", panels, columns=3, caption=_caption(dataset))


def _level(loss: float) -> str:
    return f"= {loss:.2g}" if loss > 10 * FLOOR else f"below {10 * FLOOR:g}"


def _caption(dataset: xr.Dataset) -> str:
    about, end = dataset.attrs, float(dataset["time"][-1])
    told = "; ".join(
        f"m = {m}: L {_level(float(dataset['L'].sel(width=m)[-1]))}"
        + (f", exponent {float(dataset['slope'].sel(width=m)[-1]):.2f}" if m > about["dim"] else "")
        for m in dataset["width"].values
    )
    return (
        f"d = {about['dim']}, population gradient, uniform weights, eta_inf = 0.2; median of {about['seeds']} seed(s). "
        f"At time {end:g}: {told}. With m = d the loss falls exponentially, a straight line in the second panel. With "
        "more units, those that nobody needs fade as a power of time; the mass equation of Claim A.10 gives the "
        "exponent -2 for very wide networks and late times."
    )


FIGURE = Figure("tail", "How the loss ends", compute, sheet, ours=True)
