"""Figure 2: a network of width 2d is said to be stuck. It is on a plateau, which ends."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Series, Sheet, line
from tutelage.papers.beyond_ntk.escapes import half_times
from tutelage.papers.beyond_ntk.figures.beyond.common import along
from tutelage.papers.beyond_ntk.figures.stagewise import ORDERS, TIME
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

RECORDS = 200
UNTIL = 3000.0
LITERAL = 2.0
"""The time of 10^5 steps if the step of Algorithm 1 is 1.2e-3: there the text's numbers are seen."""


class Cases(NamedTuple):
    """Networks that are compared on samples."""

    dim: int
    widths: tuple[int, ...]
    samples: tuple[int, ...]
    seeds: int
    until: float


CASES = {
    "quick": Cases(10, (20, 60), (1200, 2400), 5, 400.0),
    "full": Cases(30, (60, 100), (10_000, 20_000), 3, 4000.0),
}


def narrow(settings: BeyondNtkSettings) -> xr.Dataset:
    """The population gradient at width 2d, from `N(0, I/d)`."""
    return _run(settings, dim=settings.dim, width=2 * settings.dim, until=UNTIL, seeds=1)


def on_samples(settings: BeyondNtkSettings, cases: Cases, width: int, samples: int) -> xr.Dataset:
    """Networks of one width, each with its own start and examples."""
    return _run(settings, dim=cases.dim, width=width, samples=samples, until=cases.until, seeds=cases.seeds)


def _run(settings: BeyondNtkSettings, *, seeds: int, **values: float) -> xr.Dataset:
    plain = {"scale": 1.0, "samples": 0, "step": 0.2, "truncate": (), "stage": None}
    return traces(settings.model_copy(update=plain | values), seeds, RECORDS)


def escape_times(settings: BeyondNtkSettings, cases: Cases) -> xr.DataArray:
    """When the plateau ends, by sample size, width and seed; infinite if it had not when the run did."""
    found = [[half_times(on_samples(settings, cases, m, n)) for m in cases.widths] for n in cases.samples]
    coords = {"samples": list(cases.samples), "width": list(cases.widths), "seed": np.arange(cases.seeds)}
    return xr.DataArray(found, coords, ("samples", "width", "seed")).fillna(np.inf)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The network of the figure, and what becomes of several widths on several numbers of examples."""
    cases, alone = CASES[size], narrow(settings)

    def by_width(samples: int) -> xr.Dataset:
        return along("width", cases.widths, lambda width: on_samples(settings, cases, width, samples)[["norm"]])

    parts = {
        "norm": alone["norm"].isel(seed=0, drop=True).rename(time="alone_time"),
        "L": alone["L"].isel(seed=0, drop=True).rename(time="alone_time"),
        "fourth": along("samples", cases.samples, by_width)["norm"].sel(tensor_order=4, drop=True),
        "escape": escape_times(settings, cases),
    }
    data = xr.Dataset({name: part.drop_vars("step", errors="ignore") for name, part in parts.items()})
    return data.assign_attrs(dim=settings.dim, dim_on_samples=cases.dim, until=cases.until)


def sheet(dataset: xr.Dataset) -> Sheet:
    """The network alone, the fourth order on samples, and when the plateau ends."""
    small, many = int(dataset["samples"][0]), int(dataset["samples"][-1])
    dim, other = dataset.attrs["dim"], dataset.attrs["dim_on_samples"]
    panels = (_alone(dataset), _on_samples(dataset, small), _ends(dataset))
    stay = int(np.sum(~np.isfinite(dataset["escape"].values)))
    end, seeds = float(dataset["L"][-1]), dataset.sizes["seed"]
    caption = (
        f"Left: population gradient, d = {dim}, m = 2d. At time {LITERAL:g}, which is 10^5 steps if the step of the "
        "algorithm was 1.2e-3, orders 2, 4 and 6 are above 0.1 and order 0 is below 0.01, as the text says; the "
        f"network is not stuck, and L ends at {end:.1e}. Middle and right: full batches of N = {small} and {many} "
        f"examples, d = {other}, {seeds} seeds per case; time is steps x eta_inf, up to {dataset.attrs['until']:g}. "
        f"{stay} of {dataset['escape'].size} runs were still on the plateau at the end."
    )
    return Sheet("Figure 2: a long plateau, not a trap", panels, columns=3, caption=caption)


def _alone(dataset: xr.Dataset) -> Panel:
    time = dataset["alone_time"].values[1:]
    curves = [
        line(time, dataset["norm"].sel(tensor_order=k)[1:], name, colour=i)
        for i, (k, name) in enumerate(ORDERS.items())
    ]
    return Panel(
        f"population gradient, m = {2 * dataset.attrs['dim']}", TIME, "tensor loss $|T_k|$",
        tuple(curves), marks=(Mark(f"time {LITERAL:g}", at=LITERAL), Mark("0.1", level=0.1)), xscale="log",
        yscale="log",
    )  # fmt: skip


def _on_samples(dataset: xr.Dataset, samples: int) -> Panel:
    time, curves = dataset["time"].values[1:], []
    for colour, width in enumerate(dataset["width"].values):
        runs = dataset["fourth"].sel(samples=samples, width=width).transpose("seed", "time").values[:, 1:]
        curves += [line(time, run, f"m = {width}" if i == 0 else "", colour=colour) for i, run in enumerate(runs)]
    return Panel(
        f"N = {samples} examples, d = {dataset.attrs['dim_on_samples']}", TIME,
        "4th-order tensor loss $|T_4|$", tuple(curves), xscale="log", yscale="log",
    )  # fmt: skip


def _ends(dataset: xr.Dataset) -> Panel:
    """Medians over seeds, and all seeds that left; the caption counts the others."""
    widths, curves = dataset["width"].values, []
    for colour, samples in enumerate(dataset["samples"].values):
        times = dataset["escape"].sel(samples=samples).transpose("width", "seed").values
        medians = np.where(np.isfinite(np.median(times, axis=1)), np.median(times, axis=1), np.nan)
        curves.append(line(widths, medians, f"N = {samples}, median", colour=colour))
        shown = np.isfinite(times)
        each = np.repeat(widths, times.shape[1]).reshape(times.shape)
        curves.append(Series(each[shown].astype(float), times[shown], kind="points", colour=colour, faint=True))
    return Panel("when the plateau ends", "width m", TIME, tuple(curves), xscale="log", yscale="log")


FIGURE = Figure("fig2", "Figure 2: a network of width 2d", compute, sheet)
