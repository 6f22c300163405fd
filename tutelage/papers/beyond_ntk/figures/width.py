"""Finite against infinite width: how far neurons stray from their twins, by width and time (Appendix B)."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line
from tutelage.papers.beyond_ntk.constants import plateau
from tutelage.papers.beyond_ntk.figures.beyond.common import TIME
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.beyond_ntk.width import LEFT, expected_error, sized
from tutelage.study import Figure, Size

LOOKS = (2.0, 8.0, 60.0)
"""Times at which the error is shown against the width."""


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Errors and losses of networks of several widths, and the losses of the population."""
    found = sized(size == "full")
    by_width, in_time = ("width", "time"), ("time",)
    return xr.Dataset(
        {
            "square": (by_width, found.mean),
            "largest": (by_width, found.largest),
            "loss": (by_width, np.stack([each.mean(0) for each in found.losses.values()])),
            "infinite": (in_time, found.infinite),
            "order_loss": (("tensor_order", "time"), np.stack(list(found.orders.values()))),
            "slope": (in_time, np.concatenate([[np.nan], found.slopes])),
        },
        {"width": list(found.widths), "time": found.times, "tensor_order": list(found.orders)},
        {"dim": found.dim, "escape": found.escape, "plateau": plateau(found.dim)},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    return Sheet(
        "Finite against infinite width: the error of a neuron falls as 1/m and hardly grows on the plateau",
        (
            _scaled(dataset),
            _widths(dataset),
            _slope(dataset),
            _largest(dataset),
            _losses(dataset),
            _orders(dataset),
        ),
        columns=3,
        caption=_caption(dataset),
    )


def _left(dataset: xr.Dataset) -> Mark:
    return Mark("escape", at=dataset.attrs["escape"])


def _each(values: xr.DataArray, over: str = "width", name: str = "m =") -> tuple[Series, ...]:
    """In time, a curve for each width, or each of what else there is."""
    return tuple(
        line(values["time"], values.sel({over: at}), f"{name} {at}", colour=index)
        for index, at in enumerate(values[over].values)
    )


def _scaled(dataset: xr.Dataset) -> Panel:
    later = dataset.isel(time=slice(1, None))
    law = expected_error(dataset.attrs["dim"], later["time"])
    told = line(later["time"], law, "predicted from order 2", dash="dashed", colour=GREY)
    return Panel(
        "mean error, times m",
        TIME,
        r"$m\,\mathrm{mean}\,|\xi|^2$",
        (*_each(later["width"] * later["square"]), told),
        marks=(_left(dataset),),
        yscale="log",
    )


def _widths(dataset: xr.Dataset) -> Panel:
    widths = dataset["width"].values
    series = []
    for index, time in enumerate(LOOKS):
        at = dataset.sel(time=time)
        series.append(
            line(widths, at["square"], f"time {time:g}: slope {float(at['slope']):.2f}", kind="points", colour=index)
        )
    level = float(np.exp(np.mean(np.log(widths * dataset["square"].sel(time=LOOKS[-1])))))
    series.append(line(widths, level / widths, "slope -1", dash="dashed", colour=GREY))
    return Panel(
        "mean error against width",
        "width m",
        r"$\mathrm{mean}\,|\xi|^2$",
        tuple(series),
        xscale="log",
        yscale="log",
    )


def _slope(dataset: xr.Dataset) -> Panel:
    return Panel(
        "exponent of m in the mean error",
        TIME,
        r"$d \log \mathrm{mean}\,|\xi|^2 / d \log m$",
        (line(dataset["time"][1:], dataset["slope"][1:], "fitted", colour=0),),
        marks=(Mark("-1", level=-1.0), _left(dataset)),
        ylim=(-1.5, -0.5),
    )


def _largest(dataset: xr.Dataset) -> Panel:
    return Panel(
        "largest error over mean",
        TIME,
        r"$\max |\xi|^2 / \mathrm{mean}\,|\xi|^2$",
        _each(dataset["largest"].isel(time=slice(1, None))),
        marks=(_left(dataset),),
        ylim=(0, 1.15 * float(dataset["largest"].max())),
    )


def _losses(dataset: xr.Dataset) -> Panel:
    dim = dataset.attrs["dim"]
    infinite = line(dataset["time"], dim * dataset["infinite"], "infinite", dash="dashed", colour=GREY)
    return Panel(
        "loss",
        TIME,
        "d L",
        (*_each(dim * dataset["loss"]), infinite),
        marks=(Mark("plateau", level=dim * dataset.attrs["plateau"]), _left(dataset)),
        yscale="log",
    )


def _orders(dataset: xr.Dataset) -> Panel:
    later = dataset.isel(time=slice(1, None))
    return Panel(
        "infinite width, order by order",
        TIME,
        r"$|T_k|$",
        _each(xr.apply_ufunc(np.sqrt, later["order_loss"]), "tensor_order", "order"),
        marks=(_left(dataset),),
        yscale="log",
    )


def _caption(dataset: xr.Dataset) -> str:
    about, widths = dataset.attrs, dataset["width"].values
    levels = ", ".join(f"{m * float(dataset['square'].sel(width=m, time=20.0)):.2f}" for m in widths)
    law = float(expected_error(about["dim"], 20.0))
    return (
        f"d = {about['dim']}, uniform teacher weights, starts N(0, I/d), the population gradient, eta_inf = 0.2. xi is "
        "a neuron of a network less its twin, which starts at the same place and moves in the field of a symmetric "
        "population: base neurons with the signs of a Hadamard matrix, orders up to 8 as in the full group. "
        f"{max(widths)} starts are shared out to networks of each width. At time 20, m mean|xi|^2 is {levels} for m = "
        f"{', '.join(map(str, widths))}; {law:.2f} is predicted from the error of E w w^T at the start, which must be "
        f"learned away. The escape, here at time {about['escape']:g}, is where L at infinite width is {LEFT:.0%} of "
        "its plateau. Orders 0 and 2 of the population start at its quasi-random error, not at 0."
    )


FIGURE = Figure("width", "Finite against infinite width", compute, sheet, ours=True)
