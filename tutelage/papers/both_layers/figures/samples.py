"""How many samples gradient descent on a fixed data set needs."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, binomial_interval, line
from tutelage.dynamics import Record
from tutelage.papers.both_layers.checks.samples import crossing
from tutelage.papers.both_layers.recipe import run
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.papers.both_layers.two_neurons import TwoNeurons
from tutelage.study import Figure, Size

RATIOS = {"quick": (2.0, 3.0, 4.0), "full": (2.0, 2.5, 3.0, 4.0, 6.0)}


def compute(settings: BothLayersSettings, size: Size) -> xr.Dataset:
    """The fraction of seeds that reach |h|^2 < 1e-4, over n/d and d."""
    ratios = RATIOS[size]
    dims, seeds = ((10, 20), 24) if size == "quick" else ((10, 20, 40), 32)
    reached = np.zeros((len(dims), len(ratios), seeds), bool)
    for i, dim in enumerate(dims):
        for j, ratio in enumerate(ratios):
            chosen = BothLayersSettings(dim=dim, scale=1e-3, steps=6000, samples=int(ratio * dim))
            result = run(chosen, seeds=seeds, record=Record([0, 6000], observables=("loss",)))
            reached[i, j] = TwoNeurons.final(result).error_squared < 1e-4
    return xr.Dataset(
        {"success": (("dim", "ratio", "seed"), reached, {"long_name": "|h|^2 < 1e-4 after 6000 updates"})},
        {"dim": list(dims), "ratio": list(ratios), "seed": np.arange(seeds)},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    ratios, seeds = dataset["ratio"].values, dataset.sizes["seed"]
    series, places = [], []
    for colour, dim in enumerate(dataset["dim"].values):
        counts = dataset["success"].sel(dim=dim).values.sum(1)
        intervals = [binomial_interval(int(count), seeds, 0.95) for count in counts]
        low, high = np.array([i.low for i in intervals]), np.array([i.high for i in intervals])
        # Moved apart a little, so that the bars of different d can be told from each other.
        place = ratios + 0.03 * (colour - 1)
        series.append(line(place, counts / seeds, f"d = {dim}", kind="points", colour=colour, low=low, high=high))
        series.append(line(place, counts / seeds, colour=colour, faint=True))
        places.append(crossing(ratios, counts / seeds))
    panel = Panel(
        f"{seeds} data sets a point",
        "samples per dimension n/d",
        "fraction that recovers the target",
        tuple(series),
        marks=(Mark("half", level=0.5),),
        ylim=(-0.02, 1.05),
    )
    return Sheet(
        "How many samples are needed",
        (panel,),
        columns=1,
        caption="Full-batch descent on n fixed examples from the start of Theorem 2, scale 1e-3, step 0.1, 6000 "
        "updates; bars are exact 95% intervals. Curves for different d fall together: half of the data sets are "
        f"recovered at n/d = {', '.join(f'{place:.2f}' for place in places)}, between the points that were run.",
    )


FIGURE = Figure("samples", "Sample threshold of empirical descent", compute, sheet, ours=True)
