"""How long weak recovery takes, against the dimension."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Panel, Series, Sheet, band, line, lines, spread
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
from tutelage.study import Figure, Size


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


def _times(dataset: xr.Dataset) -> Panel:
    chain = band(dataset["dim"], dataset["weak"].values.T, f"chain: median, {BAND}", kind="points", colour=0)
    law = f"$d^{{k-1}} = d^{K - 1}$"
    return _panel(f"time to the overlap {WEAK:g}", "samples", chain, lambda d: foretold(d, WEAK), K - 1, law)


def _ratios(dataset: xr.Dataset) -> Panel:
    later = np.where(np.isfinite(dataset["strong"]), dataset["strong"], np.nan) - dataset["weak"].values
    weak = spread(dataset["weak"].values, axis=1)[1]
    chain = line(dataset["dim"], np.nanmedian(later, axis=1) / weak, "chain", kind="points", colour=0)
    title, law = f"time from {WEAK:g} to {STRONG:g}, over that before", f"$d^{{-(k-2)/2}} = d^{{-{(K - 2) // 2}}}$"
    return _panel(
        title, "ratio of medians", chain, lambda d: foretold(d, STRONG) / foretold(d, WEAK) - 1, -(K - 2) / 2, law
    )


def _panel(title: str, label: str, chain: Series, told: Callable[[float], float], power: float, law: str) -> Panel:
    """The chain, what is told without noise, and a power of d through the last point."""
    dims = chain.x
    fine = np.geomspace(dims[0], dims[-1], 60)
    series = (
        chain,
        line(fine, [told(float(d)) for d in fine], "without noise", colour=1),
        line(
            fine,
            chain.y[-1] * (fine / dims[-1]) ** power,
            f"{law}, through the last point",
            dash="dashed",
            colour=GREY,
        ),
    )
    return Panel(title, "dimension d", label, series, xscale="log", yscale="log")


def _caption(dataset: xr.Dataset) -> str:
    dims, mid = dataset["dim"].values, spread(dataset["weak"].values, axis=1)[1]
    slope = lines.exponent(dims, mid)
    told = ", ".join(f"{t:.3g} (d = {d})" for t, d in zip(mid, dims, strict=True))
    lost = int(np.sum(~np.isfinite(dataset["weak"].values)))
    return (
        f"{NEURONS} independent neurons per dimension, unit h_4, two antipodal clusters with rho = 3, start 2/sqrt(d) "
        f"on one local task, step {SCALE:g} d^-2: SGD by the chain of overlaps, exact in law, each neuron with "
        "samples of "
        f"its own. Points: the median, on the left with {BAND} of the neurons; solid: the flow without noise; "
        "dashed: the "
        f"power of d through the last point. Median samples to {WEAK:g}: {told}; log-log slope {slope:.2f}, and k - "
        "1 = "
        f"{K - 1}. {lost} neurons in all had not passed when the run was ended. The start is "
        f"{2 / np.sqrt(dims[0]):.2f} "
        f"at d = {dims[0]}, which bends the line without noise."
    )


FIGURE = Figure("hitting", "Time of weak recovery against the dimension", compute, sheet, ours=True)
