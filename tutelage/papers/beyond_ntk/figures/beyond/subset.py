"""Is over-parametrisation needed? Networks of ever fewer units per direction, with the population gradient."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, binomial_interval, line
from tutelage.papers.beyond_ntk.figures.beyond.common import SEEDS, TIME, along, barred
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.beyond_ntk.tails import FLOOR, PLANS, RECORDS
from tutelage.study import Figure, Size

DIM = PLANS["quick"].dim
UNTIL: dict[Size, float] = {"quick": PLANS["quick"].until, "full": 400.0}
WIDTHS: dict[Size, tuple[int, ...]] = {"quick": PLANS["quick"].widths, "full": (9, 10, 12, 20, 40)}
SEED_COUNT: dict[Size, int] = {"quick": SEEDS, "full": 8}
FOUND = 1e-3
"""A run has found the teacher if `d L` ends below this, a fiftieth of the plateau."""


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Losses in time, and directions with a unit on them, width by width."""
    return along("width", WIDTHS[size], lambda width: _row(width, size)).assign_attrs(dim=DIM)


def _row(width: int, size: Size) -> xr.Dataset:
    data = traces(BeyondNtkSettings(dim=DIM, width=width, until=UNTIL[size]), SEED_COUNT[size], RECORDS)
    covered = (data["caught"] > 0).sum("teacher").isel(time=-1, drop=True)
    # A seed whose gradient is at rounding level has stopped: nan from there on.
    loss = data["L"].fillna(FLOOR).clip(min=FLOOR)
    return xr.Dataset({"L": loss, "covered": covered})


def successes(dataset: xr.Dataset) -> xr.DataArray:
    """How many seeds have found the teacher, by width."""
    return (dataset.attrs["dim"] * dataset["L"].isel(time=-1) < FOUND).sum("seed")


def sheet(dataset: xr.Dataset) -> Sheet:
    dim, widths, seeds = dataset.attrs["dim"], dataset["width"].values, dataset.sizes["seed"]
    end = float(dataset["time"][-1])
    later, counts = dataset.isel(time=slice(1, None)), successes(dataset).values
    ratio = widths / dim
    curves = [
        line(later["time"], dim * later["L"].sel(width=m).median("seed"), f"m = {m}", colour=c)
        for c, m in enumerate(widths)
    ]
    chances = [binomial_interval(int(count), seeds) for count in counts]
    chance = line(
        ratio,
        counts / seeds,
        f"{seeds} seeds, 99 % interval",
        kind="points",
        low=np.array([each.low for each in chances]),
        high=np.array([each.high for each in chances]),
        colour=0,
    )
    panels = (
        Panel("loss", TIME, "d L, median", tuple(curves), marks=(Mark("found", level=FOUND),), yscale="log"),
        Panel(f"d L < {FOUND:g} at time {end:g}", "units per direction m/d", "part of the seeds", (chance,),
              xscale="log", ylim=(-0.05, 1.25)),
        Panel("directions with a unit on them", "units per direction m/d", f"number of {dim}",
              (barred(ratio, dataset["covered"], colour=0),),
              xscale="log", ylim=(0.0, 1.25 * dim)),
    )  # fmt: skip
    return Sheet("Beyond the paper: is over-parametrisation needed?", panels, columns=3, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    counts, seeds = successes(dataset), dataset.sizes["seed"]
    end = float(dataset["time"][-1])
    fewer = int(dataset["width"].min()) < dataset.attrs["dim"]
    told = ", ".join(
        f"m = {m}: {int(counts.sel(width=m))} of {seeds}, L = {float(dataset['L'].sel(width=m)[:, -1].median()):.2g}"
        for m in dataset["width"].values
    )
    return (
        f"d = {dataset.attrs['dim']}, |z| student, uniform weights, population gradient, to time {end:g}. Found the "
        f"teacher, and median L: {told}. With the population gradient as many units as directions are enough, and end "
        f"lower than more of them{'; with fewer a direction stays without a unit of its own' if fewer else ''}."
    )


FIGURE = Figure("beyond_subset", "Is over-parametrisation needed?", compute, sheet, ours=True)
