"""How long weak recovery takes, against the dimension."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Panel, Sheet, band, line, lines, spread
from tutelage.papers.cluster_moe.passages import (
    DIMS,
    NEURONS,
    SCALE,
    STRONG,
    WEAK,
    K,
    foretold,
    passage,
)
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.paper import Figure, Size


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Samples to the two levels (dim, neuron), infinite where they were not reached."""
    dims = DIMS[size]
    found = [passage(dim) for dim in dims]
    return xr.Dataset(
        {
            "weak": (("dim", "neuron"), np.stack([each.weak for each in found])),
            "strong": (("dim", "neuron"), np.stack([each.strong for each in found])),
        },
        {"dim": list(dims)},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    return Sheet(
        "Time of weak recovery, against the dimension",
        (_times(dataset), _ratios(dataset)),
        columns=2,
        caption=_caption(dataset),
    )


def _fine(dataset: xr.Dataset) -> np.ndarray:
    dims = dataset["dim"].values
    return np.geomspace(dims[0], dims[-1], 60)


def _times(dataset: xr.Dataset) -> Panel:
    dims = dataset["dim"].values
    chain = band(dims, dataset["weak"].values.T, f"chain: median, {BAND}", kind="points", colour=0)
    fine = _fine(dataset)
    told = np.array([foretold(float(d), WEAK) for d in fine])
    return Panel(
        f"time to the overlap {WEAK:g}",
        "dimension d",
        "samples",
        (
            chain,
            line(fine, told, "without noise", colour=1),
            line(
                fine,
                chain.y[-1] * (fine / dims[-1]) ** (K - 1),
                f"$d^{{k-1}} = d^{K - 1}$, through the last point",
                dash="dashed",
                colour=GREY,
            ),
        ),
        xscale="log",
        yscale="log",
    )


def _ratios(dataset: xr.Dataset) -> Panel:
    dims, fine = dataset["dim"].values, _fine(dataset)
    later = np.where(np.isfinite(dataset["strong"]), dataset["strong"], np.nan) - dataset["weak"].values
    weak = spread(dataset["weak"].values, axis=1)[1]
    ratio = np.nanmedian(later, axis=1) / weak
    told = np.array([foretold(float(d), STRONG) / foretold(float(d), WEAK) - 1 for d in fine])
    return Panel(
        f"time from {WEAK:g} to {STRONG:g}, over that before",
        "dimension d",
        "ratio of medians",
        (
            line(dims, ratio, "chain", kind="points", colour=0),
            line(fine, told, "without noise", colour=1),
            line(
                fine,
                ratio[-1] * (fine / dims[-1]) ** (-(K - 2) / 2),
                f"$d^{{-(k-2)/2}} = d^{{-{(K - 2) // 2}}}$, through the last point",
                dash="dashed",
                colour=GREY,
            ),
        ),
        xscale="log",
        yscale="log",
    )


def _caption(dataset: xr.Dataset) -> str:
    dims, mid = dataset["dim"].values, spread(dataset["weak"].values, axis=1)[1]
    slope = lines.exponent(dims, mid)
    told = ", ".join(f"{t:.3g} (d = {d})" for t, d in zip(mid, dims, strict=True))
    lost = int(np.sum(~np.isfinite(dataset["weak"].values)))
    return (
        f"{NEURONS} independent neurons per dimension, unit h_4, two antipodal clusters with rho = 3, start 2/sqrt(d) "
        f"on one local task, step {SCALE:g} d^-2; exact in law. Median samples to {WEAK:g}: {told}; log-log slope "
        f"{slope:.2f}, and k - 1 = {K - 1}. {lost} neurons in all had not passed when the run was ended. The start is "
        f"{2 / np.sqrt(dims[0]):.2f} at d = {dims[0]}, which bends the line without noise."
    )


FIGURE = Figure("hitting", "Time of weak recovery against the dimension", compute, sheet, ours=True)
