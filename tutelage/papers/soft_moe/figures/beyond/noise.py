"""Online SGD against the flow: the noise dial eta/B, growing norms, and pairs that do not stay cancelled."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Panel, Series, Sheet, band, line, spread
from tutelage.dynamics import Record
from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.figures.beyond.common import OBSERVED, cancelled, changed, flows
from tutelage.papers.soft_moe.recipe import run
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

TEACHERS, STUDENTS, DIM = 2, 6, 100
DIALS: dict[Size, tuple[tuple[float, int], ...]] = {
    "quick": ((0.02, 1000), (0.01, 1000)),
    "full": ((0.02, 250), (0.02, 1000), (0.02, 4000), (0.02, 20000), (0.005, 1000)),
}
"""Step eta and batch B; the last of the full size has the ratio eta/B of the third, with a smaller step."""
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}
UNTIL: dict[Size, float] = {"quick": 12.0, "full": 24.0}
RECORDS = 24
FLOW = "flow"
FLOOR = 1e-3  # of losses in the figure
MARGIN = 0.1  # of loss; a unit alone costs 0.88


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """The flow, and SGD with ever larger batches, from the same starts."""
    base = changed(settings, students=STUDENTS, teachers=TEACHERS, alphas=None, dim=DIM, until=UNTIL[size], init="iid")
    seeds = SEEDS[size]
    times = np.linspace(0, UNTIL[size], RECORDS + 1)
    rows = {FLOW: _traces(flows(base, seeds, UNTIL[size], times).dataset)}
    for step, batch in DIALS[size]:
        chosen = changed(base, step=step, batch=batch)
        noisy = run(
            chosen,
            seeds=seeds,
            dynamics="sgd",
            dtype="float32",
            record=Record(np.round(times / step), observables=OBSERVED, crossings=()),
        )
        rows[f"{batch}, {step:g}"] = _traces(noisy.dataset).assign_coords(time=times)
    dials = [0.0, *(step / batch for step, batch in DIALS[size])]
    joined = xr.concat(rows.values(), "dial").assign_coords(dial=list(rows))
    return joined.assign(ratio=("dial", dials))


def _traces(data: xr.Dataset) -> xr.Dataset:
    def growth(name: str) -> xr.DataArray:
        squares = (data[name] ** 2).mean("student")
        return squares / squares.isel(time=0)

    found = xr.Dataset(
        {
            "loss": data["loss"],
            "expert_norm": growth("norm_expert"),
            "router_norm": growth("norm_router"),
            "pairs": cancelled(data),
            "recovered": (data["overlap_expert"] >= RECOVERED).any("student").sum("teacher"),
        }
    )
    return found.drop_vars("step", errors="ignore")


def at(dataset: xr.Dataset, time: float) -> xr.Dataset:
    """The record nearest to a time."""
    return dataset.sel(time=time, method="nearest")


def against(dataset: xr.Dataset, time: float) -> tuple[xr.DataArray, xr.DataArray]:
    """In how many seeds the loss is below that of the flow from the same start by `MARGIN` or more, and above it."""
    loss = at(dataset, time)["loss"]
    gain = loss.sel(dial=FLOW) - loss
    return (gain > MARGIN).sum("seed"), (gain < -MARGIN).sum("seed")


def sheet(dataset: xr.Dataset) -> Sheet:
    time, end = dataset["time"].values, dataset["loss"].isel(time=-1).clip(min=FLOOR)
    names = [str(name) for name in dataset["dial"].values]

    def means(name: str) -> tuple[Series, ...]:
        """Without bands: of six rows of small counts, or of losses that saddles hold back, they would hide all."""
        return tuple(line(time, dataset[name].sel(dial=n).mean("seed"), **_style(n, names)) for n in names)

    norms = tuple(band(time, dataset["expert_norm"].sel(dial=n), _label(n), **_style(n, names)) for n in names)

    scatter = (
        line(end.sel(dial=FLOW), end.sel(dial=n), kind="points", colour=_style(n, names)["colour"]) for n in names[1:]
    )
    ends = [FLOOR, float(end.max())]
    panels = (
        Panel("loss", "time", "population loss, mean", means("loss"), yscale="log"),
        Panel(
            "squared norms of experts",
            "time",
            "|w_i|^2 over that at the start, median",
            norms,
            yscale="log",
        ),
        Panel("pairs of opposite experts", "time", "number, mean", means("pairs"), ylim=(-0.1, 4.0)),
        Panel(
            f"loss at time {time[-1]:g}, seed by seed",
            "loss of the flow",
            "loss of SGD from the same start",
            (*scatter, line(ends, ends, "equal", dash="dashed", colour=GREY)),
            xscale="log",
            yscale="log",
            note=f"Losses below {FLOOR:g} are shown there.",
        ),
    )
    return Sheet("Beyond the paper: SGD noise against cancelling pairs", panels, columns=2, caption=_caption(dataset))


def _label(name: str) -> str:
    """A name is the batch and the step, or the flow's own."""
    if name == FLOW:
        return FLOW
    batch, step = name.split(", ")
    return f"B = {batch}, eta = {step}: eta/B = {float(step) / int(batch):.0e}"


def _style(name: str, names: list[str]) -> dict[str, Any]:
    """One colour per row; the flow, and a row that repeats another one's eta/B with another step, are dashed."""
    number = names.index(name)
    ratios = [float(n.split(", ")[1]) / int(n.split(", ")[0]) for n in names[1 : number + 1]]
    again = len(ratios) > 1 and bool(np.isclose(ratios[-1], ratios[:-1], rtol=1e-9).any())
    return {"colour": number - 1 if number else 6, "dash": "dashed" if again or not number else "solid"}


def _caption(dataset: xr.Dataset) -> str:
    texts = []
    for name in dataset["dial"].values:
        rows = []
        for time in sorted({min(12.0, float(dataset["time"][-1])), float(dataset["time"][-1])}):
            one = at(dataset.sel(dial=name), time)
            below, above = (int(count.sel(dial=name)) for count in against(dataset, time))
            low, half, high = spread(one["loss"])
            rows.append(
                f"t = {time:g}: loss {half:.2f} ({low:.2f} to {high:.2f}), expert norms^2 "
                f"{100 * (float(one['expert_norm'].mean()) - 1):+.0f} %, router norms^2 "
                f"{100 * (float(one['router_norm'].mean()) - 1):+.0f} %, {float(one['pairs'].mean()):.2f} pairs, "
                f"{float(one['recovered'].mean()):.2f} recovered"
                + (f", loss below the flow's in {below} seeds and above in {above}" if name != FLOW else "")
            )
        texts.append(f"{_label(str(name))}: {'; '.join(rows)}")
    return (
        f"{dataset.sizes['seed']} iid starts, m* = {TEACHERS}, m = {STUDENTS}, d = {DIM}. Losses and pairs: means over "
        f"seeds; norms: medians, bands {BAND}. Here losses are medians ({BAND}), the rest means: {'. '.join(texts)}."
    )


FIGURE = Figure("beyond_noise", "SGD noise against cancelling pairs", compute, sheet, ours=True)
