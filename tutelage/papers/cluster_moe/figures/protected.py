"""Where a vanilla network of ReLU neurons learns the global task: by the clusters' distance and the range of biases."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import Field, Panel, Sheet
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.cluster_moe.vanilla import WIDTH, shares
from tutelage.study import Figure, Size

MEANS = ("antipodal", "orthogonal")
RADII: dict[Size, tuple[float, ...]] = {"quick": (0.5, 1.0, 3.0), "full": (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)}
BIASES: dict[Size, tuple[float, ...]] = {
    "quick": (0.0, 0.3, 0.6, 1.0),
    "full": (0.0, 0.1, 0.3, 0.6, 0.8, 1.0, 1.5, 2.0),
}
ORDER = 4  # k
COUNTS: dict[Size, int] = {"quick": WIDTH // 4, "full": WIDTH // 2}  # neurons per cell


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """`share` by arrangement, radius and bias range, in the settings' dimension."""
    radii, biases = RADII[size], BIASES[size]
    found: dict[str, Any] = {
        "share": (
            ("means", "radius", "bias"),
            [shares(settings.dim, m, radii, biases, COUNTS[size], ORDER) for m in MEANS],
        )
    }
    coords = {"means": list(MEANS), "radius": list(radii), "bias": list(biases)}
    return xr.Dataset(found, coords, {"dim": settings.dim, "neurons": COUNTS[size], "order": ORDER})


def sheet(dataset: xr.Dataset) -> Sheet:
    top = max(float(dataset["share"].max()), 0.01)
    panels = tuple(_panel(dataset.sel(means=means), top) for means in dataset["means"].values)
    title = f"Neurons that learn the global task without a router: ReLU, k = {dataset.attrs['order']}, "
    return Sheet(f"{title}d = {dataset.attrs['dim']}", panels, columns=2, caption=_caption(dataset))


def _panel(dataset: xr.Dataset, top: float) -> Panel:
    biases, radii = dataset["bias"].values, dataset["radius"].values
    field = Field(
        np.arange(len(biases), dtype=float),
        np.arange(len(radii), dtype=float),
        dataset["share"].values,
        "$f_g$",
        cells=True,
        columns=tuple(f"{value:g}" for value in biases),
        rows=tuple(f"{value:g}" for value in radii),
        ends=(0.0, top),
    )
    return Panel(
        f"{dataset['means'].item()} means",
        "biases lie in [-b, b], b =",
        r"distance $\rho$ of the means",
        fields=(field,),
    )


def _caption(dataset: xr.Dataset) -> str:
    free = dataset["share"].sel(bias=0.0)
    antipodal, orthogonal = (free.sel(means=means) for means in MEANS)
    return (
        f"The fraction f_g of {dataset.attrs['neurons']} ReLU neurons per cell that end on the global task, by exact "
        "population flow from uniform starts, one draw; two clusters, f_1 = h_4, f_2 = -h_4, g = h_4, s = (1, -1), "
        f"k = {dataset.attrs['order']}, d = {dataset.attrs['dim']}. Biases are uniform on [-b, b]. Without them "
        f"and with antipodal means it is {float(antipodal.max()):g} for every rho: the force on the global task is "
        f"zero. With orthogonal means it rises to {float(orthogonal.max()):.2f} without biases; the largest cell has "
        f"{float(dataset['share'].max()):.2f}."
    )


FIGURE = Figure("protected", "Where the global task is learned without a router", compute, sheet, ours=True)
