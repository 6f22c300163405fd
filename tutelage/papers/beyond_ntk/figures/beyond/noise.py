"""Noisy labels: where the loss ends, by noise and number of samples."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk.constants import plateau
from tutelage.papers.beyond_ntk.escapes import RECORDS
from tutelage.papers.beyond_ntk.figures.beyond.common import SEEDS, TIME, Shape, along, barred, curves
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

SHAPE = Shape(6, 24)
SAMPLES: dict[Size, tuple[int, ...]] = {"quick": (600,), "full": (300, 600, 1200, 2400, 4800)}
NOISES: dict[Size, tuple[float, ...]] = {"quick": (0.0, 0.1, 0.3), "full": (0.0, 0.03, 0.1, 0.2, 0.3)}
RISEN = 1.02
"""A loss that rises by less is said to fall."""
UNTIL: dict[Size, float] = {"quick": 60.0, "full": 400.0}


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The population loss and the loss on the samples, by the number of these and their noise."""
    found = along(
        "samples", SAMPLES[size], lambda count: along("noise", NOISES[size], lambda noise: _run(size, count, noise))
    )
    return found.assign_attrs(SHAPE._asdict())


def _run(size: Size, count: int, noise: float) -> xr.Dataset:
    chosen = BeyondNtkSettings(dim=SHAPE.dim, width=SHAPE.width, until=UNTIL[size], samples=count, noise=noise)
    return traces(chosen, SEEDS, RECORDS)[["L", "trained"]]


def overfit(dataset: xr.Dataset) -> xr.DataArray:
    """The loss at the end over the least on the way there, mean over seeds: 1 where it still falls."""
    return (dataset["L"].isel(time=-1) / dataset["L"].min("time")).mean("seed")


def sheet(dataset: xr.Dataset) -> Sheet:
    counts = dataset["samples"].values
    shown = sorted({int(counts[0]), int(counts[-1])})
    panels = (*(_curves(dataset, count) for count in shown), _ends(dataset))
    return Sheet("Beyond the paper: noisy labels", panels, columns=len(panels), caption=_caption(dataset))


def _height(dataset: xr.Dataset) -> Mark:
    return Mark("plateau", level=plateau(dataset.attrs["dim"], dataset.attrs["width"]))


def _curves(dataset: xr.Dataset, count: int) -> Panel:
    return Panel(
        f"population loss, N = {count}",
        TIME,
        "L",
        curves(dataset["L"].sel(samples=count), "noise", dataset["noise"].values.tolist(), "noise"),
        marks=(_height(dataset),),
        xscale="log",
        yscale="log",
        ylim=(0.5 * float(dataset["L"].min()), 2 * float(dataset["L"].max())),
    )


def _ends(dataset: xr.Dataset) -> Panel:
    noisy = dataset.where(dataset["noise"] > 0, drop=True)
    end, noise, counts = noisy["L"].isel(time=-1), noisy["noise"].values, dataset["samples"].values
    weights = dataset.attrs["dim"] * dataset.attrs["width"]
    points = [barred(noise, end.sel(samples=n), f"N = {n}", colour=c) for c, n in enumerate(counts)]
    bound = [
        line(noise, noise**2 * weights / n, "" if c else r"$\sigma^2\,m d/N$", dash="dashed", colour=c)
        for c, n in enumerate(counts)
    ]
    return Panel(
        f"population loss at time {float(dataset['time'][-1]):g}",
        r"noise $\sigma$",
        "L",
        (*points, *bound),
        marks=(_height(dataset),),
        xscale="log",
        yscale="log",
    )


def _caption(dataset: xr.Dataset) -> str:
    about, end = dataset.attrs, dataset.isel(time=-1)
    told = "; ".join(
        f"N = {n}: "
        + ", ".join(
            f"{float(end['L'].sel(samples=n, noise=s).median()):.2g} (noise {s:g})" for s in dataset["noise"].values
        )
        for n in dataset["samples"].values
    )
    return (
        f"d = {about['dim']}, m = {about['width']}, {about['dim'] * about['width']} weights, full-batch descent on N "
        f"noisy examples, {dataset.sizes['seed']} seeds. Median L at time {float(dataset['time'][-1]):g}: {told}. Much "
        f"noise keeps the network near the plateau for long{_risen(dataset)}. f* itself has the standard deviation "
        f"{np.sqrt((1 - 2 / np.pi) / about['dim']):.2f}. The dashed lines are what as many free numbers as weights "
        "would fit of the noise."
    )


def _risen(dataset: xr.Dataset) -> str:
    over = overfit(dataset)
    worst = over.where(over == over.max(), drop=True)
    if float(over.max()) < RISEN:
        return ""
    return (
        f"; where it is fitted the loss rises again, to {float(over.max()):.2f} times its least value with "
        f"N = {int(worst['samples'][0])} and noise {float(worst['noise'][0]):g}"
    )


FIGURE = Figure("beyond_noise", "Noisy labels", compute, sheet, ours=True)
