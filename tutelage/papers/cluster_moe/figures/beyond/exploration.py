"""How long must experts explore before the router is trained? Phase II at every time of Phase I."""

import xarray as xr

from tutelage.analysis import BAND, Mark, Panel, Series, Sheet, band, line
from tutelage.papers.cluster_moe.beyond.exploring import scratch
from tutelage.papers.cluster_moe.result import SHARP
from tutelage.study import Figure

TIME = "samples of Phase I"


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = (_sharp(dataset), _aims(dataset), _sizes(dataset))
    return Sheet("Beyond the paper: longer exploration", panels, columns=3, caption=_caption(dataset))


def named(batch: int) -> str:
    """A batch as a legend has it."""
    return "expectation" if batch == 0 else f"n = {batch:,}".replace(",", " ")


def _later(dataset: xr.Dataset) -> xr.Dataset:
    """Without time 0, for axes in logarithms."""
    return dataset.isel(time=slice(1, None))


def _by_batch(dataset: xr.Dataset, name: str) -> tuple[Series, ...]:
    """A curve for each batch: median and band of seeds."""
    later, series = _later(dataset), []
    for colour, batch in enumerate(later["batch"].values):
        part = later[name].sel(batch=batch)
        series.append(band(later["time"], part, named(batch), colour=colour))
    return tuple(series)


def _sharp(dataset: xr.Dataset) -> Panel:
    return Panel("experts that are routed sharply", TIME, "part of the experts", _by_batch(dataset, "sharp"),
                 xscale="log", ylim=(-0.03, 1.4))  # fmt: skip


def _aims(dataset: xr.Dataset) -> Panel:
    return Panel("aim of the experts", TIME, "P(cluster known best) - P(other)", _by_batch(dataset, "aim"),
                 xscale="log", marks=(Mark("chance", level=0.0),), ylim=(-0.5, 1.4))  # fmt: skip


def _sizes(dataset: xr.Dataset) -> Panel:
    later = _later(dataset)
    curves = [line(later["time"], later["size"].mean("seed"), "expected router", colour=0)]
    curves += [
        line(later["time"], later["miss"].sel(batch=n).mean("seed"), f"miss, {named(n)}", colour=c, dash="dashed")
        for c, n in enumerate(later["batch"].values)
        if n
    ]
    return Panel("signal and noise of the router", TIME, r"rms of $|\theta_m|$", tuple(curves), xscale="log",
                 yscale="log")  # fmt: skip


def caption_numbers(dataset: xr.Dataset) -> dict[str, xr.DataArray]:
    """The numbers of the caption: aims at the start and in the last quarter of the samples, signal over noise then."""
    late = dataset.where(dataset["time"] >= 0.75 * dataset["time"][-1], drop=True).mean(["seed", "time"])
    first = dataset.isel(time=0).mean("seed")
    return {"first": first["aim"], "last": late["aim"], "sharp": first["sharp"], "signal": late["size"] / late["miss"]}


def _caption(dataset: xr.Dataset) -> str:
    about, numbers, batches = dataset.attrs, caption_numbers(dataset), dataset["batch"].values
    aims = "; ".join(
        f"{named(n)}: {float(first):.2f} at the start, {float(last):.2f} in the last quarter"
        for n, first, last in zip(batches, numbers["first"], numbers["last"], strict=True)
    )
    ratio = ", ".join(f"{float(numbers['signal'].sel(batch=n)):.2g} ({named(n)})" for n in batches if n)
    growth = float(dataset["size"].isel(time=-1).mean("seed") / dataset["size"].isel(time=0).mean("seed"))
    return (
        f"d = {about['dim']}, M = {about['experts']}, {about['explore_width']} neurons per expert, "
        f"{dataset.sizes['seed']} seeds (median, {BAND}). One router step from zero at every record, in expectation or "
        "on n samples. Aim: the probability that an expert sees the cluster that it knows more of than others do, less "
        f"that of the other; 0 by chance. {aims[0].upper()}{aims[1:]}. Sharpness alone says little: before any "
        f"exploration {100 * float(numbers['sharp'].sel(batch=0)):.0f} % of the experts see one cluster with "
        f"probability {SHARP:g} or more and the other with {1 - SHARP:.1f} or less, as only the direction of theta "
        f"counts, and differences between experts are largest along the means. What exploration buys is aim, and "
        f"signal: the expected router grows {growth:.1f} times, and is in the last quarter {ratio} times the miss of a "
        "sampled one."
    )


FIGURE = Figure(
    "beyond_exploration", "Longer exploration before routing", lambda settings, size: scratch(size), sheet, ours=True
)
