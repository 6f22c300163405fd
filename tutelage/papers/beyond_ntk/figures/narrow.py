"""Figure 2: a network of width 2d is said to be stuck. On samples it is on a plateau for that long, which ends."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Series, Sheet, line, seed_lines
from tutelage.papers.beyond_ntk.escapes import half_times
from tutelage.papers.beyond_ntk.figures.stagewise import ORDERS, TIME
from tutelage.papers.beyond_ntk.runs import from_large
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

RECORDS = 200
TOLD = 2000.0
"""The time of 10^5 steps of 0.02; the start N(0, I) bears none above 0.027."""
LITERAL = 2.0
"""The time of 10^5 steps of 2e-5: there all numbers of the text are seen."""
UNTIL, SEEDS = 3000.0, 5


class Cases(NamedTuple):
    """Networks that are compared on samples; `until`: when runs end, for each number of samples and each width."""

    dim: int
    widths: tuple[int, ...]
    samples: tuple[int, ...]
    seeds: int
    until: tuple[tuple[float, ...], ...]


CASES = {
    "quick": Cases(10, (20, 60), (1200, 2400), 5, ((400.0, 400.0), (400.0, 400.0))),
    "full": Cases(30, (60, 100), (10_000, 20_000), 5, ((8000.0, 4000.0), (4000.0, 3000.0))),
}
"""The full ones are the paper's, and twice as many samples. Wider networks and more samples are given less time."""


def narrow(settings: BeyondNtkSettings) -> xr.Dataset:
    """The population gradient at width 2d."""
    return _run(settings, SEEDS, dim=settings.dim, width=2 * settings.dim, samples=0, until=UNTIL)


def on_samples(settings: BeyondNtkSettings, cases: Cases, width: int, samples: int) -> xr.Dataset:
    """Networks of one width, each with its own start and samples."""
    until = cases.until[cases.samples.index(samples)][cases.widths.index(width)]
    return _run(settings, cases.seeds, dim=cases.dim, width=width, samples=samples, until=until)


def _run(settings: BeyondNtkSettings, seeds: int, **values: float) -> xr.Dataset:
    plain = {"truncate": (), "stage": None}
    return from_large(settings.model_copy(update=plain | values), seeds, RECORDS)


def escape_times(settings: BeyondNtkSettings, cases: Cases) -> xr.DataArray:
    """When the plateau ends, by sample size, width and seed; infinite if it had not when the run did."""
    found = [[half_times(on_samples(settings, cases, m, n)) for m in cases.widths] for n in cases.samples]
    coords = {"samples": list(cases.samples), "width": list(cases.widths), "seed": np.arange(cases.seeds)}
    return xr.DataArray(found, coords, ("samples", "width", "seed")).fillna(np.inf)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.DataTree:
    """The networks of the figure on its samples, that of width 2d without sampling noise, and when plateaus end."""
    cases = CASES[size]
    runs = {f"width_{width}": on_samples(settings, cases, width, cases.samples[0]) for width in cases.widths}
    parts = {name: _later(run) for name, run in (runs | {"exact": narrow(settings)}).items()}
    about = {"dim": settings.dim, "dim_on_samples": cases.dim}
    ends = xr.Dataset({"escape": escape_times(settings, cases)}, attrs=about)
    return xr.DataTree.from_dict({"ends": ends, **parts})


def _later(run: xr.Dataset) -> xr.Dataset:
    return run[["norm", "L"]].drop_vars("step", errors="ignore").isel(time=slice(1, None))


def sheet(tree: xr.DataTree) -> Sheet:
    """All orders on samples, for both widths and without sampling noise, and when the plateau ends."""
    ends = tree["ends"].to_dataset()
    widths, few = ends["width"].values, int(ends["samples"][0])
    dim, other = ends.attrs["dim"], ends.attrs["dim_on_samples"]
    panels = (
        *(_orders(tree[f"width_{m}"].to_dataset(), f"{few} samples, d = {other}, m = {m}") for m in widths),
        _orders(tree["exact"].to_dataset(), f"population gradient, d = {dim}, m = {2 * dim}"),
        _ends(ends["escape"]),
    )
    return Sheet("Figure 2: a long plateau, not a trap", panels, columns=2, caption=_caption(tree))


def at(norm: xr.DataArray, order: int, time: float) -> np.ndarray:
    """`|T_k|` of each seed at the record nearest to a time."""
    return norm.sel(tensor_order=order).sel(time=time, method="nearest").values


def _caption(tree: xr.DataTree) -> str:
    ends = tree["ends"].to_dataset()
    texts = []
    for width in ends["width"].values:
        norm = tree[f"width_{width}"].to_dataset()["norm"]
        if float(norm["time"][-1]) >= TOLD:
            ranges = (f"{name} {_range(at(norm, k, TOLD))}" for k, name in ORDERS.items())
            texts.append(f"on samples, m = {width}: {', '.join(ranges)}")
    exact = tree["exact"].to_dataset()["norm"]
    ranges = (f"{name} {_range(at(exact, k, TOLD))}" for k, name in ORDERS.items())
    texts.append(f"with the population gradient: {', '.join(ranges)}")
    stay = int(np.sum(~np.isfinite(ends["escape"].values)))
    return (
        f"Student and teacher with |z|, equal teacher weights, start N(0, I), {ends.sizes['seed']} seeds, each with "
        "its own start and samples (the first is drawn strong). Time is the sum of the steps eta_inf, which are 0.002 "
        "until time 0.4, 0.02 until 4.4, and 0.2 from there on. The paper gives no step: 10^5 steps of 0.02 are the "
        f"time {TOLD:g}. |T_k| there, smallest to largest of the seeds: {'; '.join(texts)}. Dips of order 0 are "
        f"changes of its sign. Lower right: when orders above 2 have halved; {stay} of {ends['escape'].size} runs had "
        "not come to that when they ended."
    )


def _range(values: np.ndarray) -> str:
    return f"{np.min(values):.2g} to {np.max(values):.2g}"


def _orders(run: xr.Dataset, title: str) -> Panel:
    time, curves = run["time"].values, []
    for colour, (order, name) in enumerate(ORDERS.items()):
        curves += seed_lines(time, run["norm"].sel(tensor_order=order), name, colour=colour)
    told = (Mark("$10^5$ steps of 0.02", at=TOLD),) if time[-1] >= TOLD else ()
    return Panel(
        title, TIME, "tensor loss $|T_k|$", tuple(curves), marks=(*told, Mark("0.1", level=0.1)), xscale="log",
        yscale="log",
    )  # fmt: skip


def _ends(escape: xr.DataArray) -> Panel:
    """Medians over seeds, and all seeds that left; the caption counts the others."""
    curves: list[Series] = []
    for colour, samples in enumerate(escape["samples"].values):
        times = escape.sel(samples=samples).transpose("width", "seed").values
        medians = np.where(np.isfinite(np.median(times, axis=1)), np.median(times, axis=1), np.nan)
        places = np.arange(len(times), dtype=float)
        curves.append(line(places, medians, f"{samples} samples, median", colour=colour))
        each, shown = np.repeat(places, times.shape[1]).reshape(times.shape), np.isfinite(times)
        curves.append(Series(each[shown], times[shown], kind="points", colour=colour, faint=True))
    names = tuple(f"m = {width}" for width in escape["width"].values)
    return Panel("when the plateau ends", "", TIME, tuple(curves), yscale="log", names=names)


FIGURE = Figure("fig2", "Figure 2: a network of width 2d", compute, sheet)
