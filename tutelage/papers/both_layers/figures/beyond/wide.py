"""More units than 2r: whether they still pair, and how long it takes."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, Panel, Sheet, band
from tutelage.dynamics import Record
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.study import Figure, Size

OUTPUTS = 3
WIDTHS: dict[Size, tuple[int, ...]] = {"quick": (6, 8), "full": (6, 7, 8, 10, 12)}
SEEDS: dict[Size, int] = {"quick": 4, "full": 12}
STEPS: dict[Size, int] = {"quick": 2000, "full": 10_000}
LEARNT = 1e-6
OPPOSITE = -0.999


def compute(
    settings: BothLayersSettings, size: Size, *, widths: tuple[int, ...] | None = None, steps: int | None = None
) -> xr.Dataset:
    """Losses in time, when they pass below LEARNT, and the share of units with an antiparallel partner at the end."""
    rows = []
    for width in widths or WIDTHS[size]:
        chosen = BothLayersSettings(
            dim=settings.dim, outputs=OUTPUTS, width=width, init="xavier", scale=1e-8, steps=steps or STEPS[size]
        )
        result = run(chosen, seeds=SEEDS[size], record=Record(300, observables=("loss",)))
        first = np.asarray(result.final.first)
        units = first / np.linalg.norm(first, axis=-1, keepdims=True)
        paired = np.min(units @ np.swapaxes(units, 1, 2), axis=-1) < OPPOSITE
        data = result.dataset[["loss"]]
        below = data["loss"].values < LEARNT
        reached = np.where(below.any(1), data["time"].values[np.argmax(below, axis=1)], np.inf)
        rows.append(data.assign(reached=("seed", reached), paired=("seed", paired.mean(1))))
    return xr.concat(rows, "width", join="outer").assign_coords(width=list(widths or WIDTHS[size]))


def sheet(dataset: xr.Dataset) -> Sheet:
    widths, time = dataset["width"].values, dataset["time"].values[1:]
    losses = tuple(
        band(time, np.maximum(dataset["loss"].sel(width=k).values[:, 1:], 1e-17), f"k = {k}", colour=index)
        for index, k in enumerate(widths)
    )
    panels = (
        Panel(
            "loss", "time (step x updates)", "population loss", losses, xscale="log", yscale="log", xlim=(20, time[-1])
        ),
        Panel(
            f"when the loss passes {LEARNT:g}",
            "number of units k",
            "time (step x updates)",
            (band(widths, dataset["reached"].values.T, "runs", kind="points", colour=0),),
            yscale="log",
        ),
        Panel(
            "antiparallel partners at the end",
            "number of units k",
            "share of units that have one",
            (band(widths, dataset["paired"].values.T, "runs", kind="points", colour=2),),
            ylim=(-0.05, 1.05),
        ),
    )
    come = np.isfinite(dataset["reached"].values).sum(axis=1)
    share = dataset["paired"].mean("seed").values
    told = ", ".join(f"k = {k}: {n}, {part:.2f}" for k, n, part in zip(widths, come, share, strict=True))
    return Sheet(
        "Beyond the paper: more units than 2r",
        panels,
        columns=3,
        caption=f"Population gradient descent, r = {OUTPUTS}, d = 100, Xavier starts of scale 1e-8, step 0.1, to time "
        f"{time[-1]:g}; {dataset.sizes['seed']} seeds for each k (bands and bars: {BAND}; a run that has not come is "
        f"later than all). Runs below {LEARNT:g}, and the mean share of units with a partner (cosine below "
        f"{OPPOSITE}): {told}.",
    )


FIGURE = Figure("beyond_wide", "More units than 2r", compute, sheet, ours=True)
