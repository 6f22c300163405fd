"""Beyond the paper: a target with unequal singular values is learned one mode at a time."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.laws import plateau_level
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.study import Figure, Size

VALUES = (3.0, 1.0, 0.3)


def compute(settings: BothLayersSettings, size: Size) -> xr.DataTree:
    """A = diag(3, 1, 0.3) with six units; and one unit too few (five for three equal modes)."""
    common = {"dim": settings.dim, "outputs": 3, "init": "xavier", "scale": 1e-8}
    modes = run(
        BothLayersSettings(**common, width=6, singular_values=VALUES, step=0.05, steps=20_000),
        seeds=5,
        record=Record(observables=("loss",)),
    )
    lacking = run(BothLayersSettings(**common, width=5, steps=16_000), seeds=5, record=Record(observables=("loss",)))
    return xr.DataTree.from_dict({"modes": modes.dataset, "lacking": lacking.dataset})


def sheet(tree: xr.DataTree) -> Sheet:
    modes, lacking = tree["modes"].to_dataset(), tree["lacking"].to_dataset()
    levels = [sum(value**2 for value in VALUES[skip:]) / 2 for skip in range(3)]
    names = ("all modes left", "two left", "one left")
    stepwise = Panel(
        "singular values 3, 1, 0.3; six units",
        "time (step x updates)",
        "population loss",
        tuple(_seeds(modes)),
        marks=tuple(Mark(f"{name}: {level:.3g}", level=level) for name, level in zip(names, levels, strict=True)),
        xscale="log",
        yscale="log",
        ylim=(1e-8, 20),
    )
    floor = Panel(
        "three equal modes; five units",
        "time (step x updates)",
        "population loss",
        tuple(_seeds(lacking)),
        marks=(Mark(f"three units at 120 degrees: {plateau_level():.5f}", level=plateau_level()),),
        xscale="log",
        ylim=(0, 1.6),
    )
    lowest = float(np.nanmin(lacking["loss"].values))
    close = Panel(
        "the same, enlarged",
        "time (step x updates)",
        "population loss",
        tuple(_seeds(lacking)),
        marks=(*floor.marks, Mark(f"one unit and four bent away: {lowest:.5f}", level=lowest)),
        xscale="log",
        xlim=(100, 1600),
        ylim=(0.1578, 0.1592),
    )
    return Sheet(
        "Beyond the paper: modes one at a time, and one unit too few",
        (stepwise, floor, close),
        columns=3,
        caption="Five seeds each. Plateaus of the loss are half the squared singular values that remain. With 2r - 1 "
        "units a run ends where three units share a plane at 120 degrees, or a little lower, where four units bend "
        "away from the fifth.",
    )


def _seeds(data: xr.Dataset):
    for index in range(data.sizes["seed"]):
        loss = np.maximum(data["loss"].values[index, 1:], 1e-17)
        yield line(data["time"].values[1:], loss, f"seed {index}", colour=index)


FIGURE = Figure("incremental", "Unequal singular values, and one unit too few", compute, sheet, ours=True)
