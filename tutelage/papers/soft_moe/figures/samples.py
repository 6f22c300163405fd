"""How many examples pruning by the sample loss takes."""

import numpy as np
import xarray as xr

from tutelage.analysis import Panel, Sheet, binomial_interval, line
from tutelage.papers.soft_moe.samples import COUNTS, DRAWS, EPSILON, PRUNED_DIM, TEACHERS, WIDTHS, agreements
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """How often the sample loss keeps what the population loss keeps."""
    coords = {"width": list(WIDTHS[size]), "count": list(COUNTS[size])}
    return xr.Dataset({"same": (("width", "count"), agreements(size))}, coords, {"draws": DRAWS[size]})


def sheet(dataset: xr.Dataset) -> Sheet:
    count, draws = dataset["count"].values.astype(float), dataset.attrs["draws"]
    series = []
    for colour, width in enumerate(dataset["width"].values):
        seen = dataset["same"].sel(width=width).values
        ends = [binomial_interval(int(k), draws, 0.95) for k in seen]
        low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
        series.append(line(count, seen / draws, f"m = {width}", low=low, high=high, colour=colour))
    panel = Panel("", "examples n", "share of draws that keep the same experts", tuple(series), xscale="log")
    return Sheet("Pruning by the sample loss", (panel,), columns=1, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    draws, parts = dataset.attrs["draws"], []
    for width in dataset["width"].values:
        seen = dataset["same"].sel(width=width).values
        full = [int(c) for c, k in zip(dataset["count"].values, seen, strict=True) if k == draws]
        parts.append(f"m = {width}: all draws from n = {min(full)} on" if full else f"m = {width}: not in all draws")
    return (
        f"States of Assumption 4 with eps = {EPSILON:g}, m* = {TEACHERS}, d = {PRUNED_DIM}; {draws} draws of state and "
        f"examples, bands: 95 % intervals. Same: the experts that the rule (7), (8) keeps by the mean over n fresh "
        f"examples are those that it keeps by the population loss. {'; '.join(parts)}."
    )


FIGURE = Figure("pruning_samples", "Pruning by the sample loss", compute, sheet, ours=True)
