"""Figure 1: one moment tensor after the other is learned."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk.phases import STAGES
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

ORDERS = {0: "0th", 2: "2nd", 4: "4th", 6: "6th"}
STEP, SAMPLES, UNTIL, RECORDS = 0.02, 10_000, 2000.0, 300
SLOW = 200
TIME = r"time $\eta_\infty T$ (T steps)"
KEPT = ("norm", "L", "trained", "loss", "loss_order", "loss_beyond")


def population(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The run of the figure, from `N(0, I)`, where the orders begin as the text says they do.

    Full: 10^5 steps of 0.02. Quick: after 200 of them, steps ten times as long, which the start would not bear.
    """
    start = settings.model_copy(update={"scale": math.sqrt(settings.dim), "samples": 0, "truncate": (), "stage": None})
    if size == "full":
        return traces(start.model_copy(update={"step": STEP, "until": UNTIL}), 1, RECORDS)
    saved = 0.9 * SLOW * 10 * STEP
    return traces(start.model_copy(update={"step": 10 * STEP, "until": UNTIL + saved}), 1, RECORDS, SLOW)


def sampled(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The same network on a fixed data set, from `N(0, I/d)`; quick stops long before the plateau ends."""
    update = {"scale": 1.0, "samples": SAMPLES, "step": 0.2, "truncate": (), "stage": None}
    until = 2 * UNTIL if size == "full" else UNTIL / 20
    return traces(settings.model_copy(update=update | {"until": until}), 3 if size == "full" else 1, RECORDS)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Both runs, on a common grid of times."""
    both = [_on_grid(run(settings, size)) for run in (population, sampled)]
    joined = xr.concat([both[0], both[1].isel(seed=[0])], xr.Variable("data", ["population", "samples"]), join="outer")
    about = {"dim": settings.dim, "width": settings.width, "samples": SAMPLES, "size": size}
    return joined.isel(seed=0, drop=True).assign_attrs(about)


def _on_grid(run: xr.Dataset) -> xr.Dataset:
    """At common log-spaced times, of which a run has those that it reaches, by interpolation between records."""
    grid = np.geomspace(0.02, 2 * UNTIL, RECORDS)
    kept = run[list(KEPT)].drop_vars("step", errors="ignore")
    return kept.interp(time=grid[grid <= float(run.time[-1])])


def sheet(dataset: xr.Dataset) -> Sheet:
    """Tensor losses in time for both gradients, then both losses on samples."""
    about = dataset.attrs
    exact, some = (dataset.sel(data=name).dropna("time", subset=["L"]) for name in ("population", "samples"))
    panels = [
        _orders(exact, "population gradient, start N(0, I)"),
        _orders(some, f"{about['samples']} examples, start N(0, I/d)"),
        _overfit(some, about["samples"]),
    ]
    how = "10^5 steps of 0.02" if about["size"] == "full" else "steps of 0.02 to time 4, then of 0.2"
    caption = (
        f"d = {about['dim']}, m = {about['width']}, student and teacher with |z|, equal teacher weights. Time is the "
        f"number of steps times eta_inf (left: {how}; right: steps of 0.2). Tensor losses are the unsquared norms "
        "|T_k|. Orders 0 and 2 are learned at once, orders 4 and 6 wait on a plateau and are then learned together. On "
        "samples the plateau lasts longer, and on it the network overfits."
    )
    return Sheet("Figure 1: one moment tensor after the other", tuple(panels), caption=caption, columns=3)


def _orders(run: xr.Dataset, title: str) -> Panel:
    time = run["time"].values
    curves = [line(time, run["norm"].sel(tensor_order=k), name, colour=i) for i, (k, name) in enumerate(ORDERS.items())]
    stages = [phase for phase in STAGES(run) if phase.name != "convergence (stage 2)"]
    marks = tuple(Mark(f"end of {phase.name.partition(' (')[0]}", at=phase.end) for phase in stages)
    return Panel(title, TIME, "tensor loss $|T_k|$", tuple(curves), marks=marks, xscale="log", yscale="log")


def _overfit(run: xr.Dataset, samples: int) -> Panel:
    time = run["time"].values
    curves = (line(time, run["L"], "population", colour=0), line(time, run["trained"], "examples", colour=1))
    return Panel(f"loss on {samples} examples", TIME, "$L$", curves, xscale="log", yscale="log")


FIGURE = Figure("fig1", "Figure 1: one moment tensor after the other is learned", compute, sheet)
