"""How many neurons of a vanilla network learn the global task, against the dimension."""

from typing import Any, Literal

import numpy as np
import xarray as xr

from tutelage.analysis import Panel, Series, Sheet, binomial_interval, line
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.cluster_moe.vanilla import (
    ASYMPTOTIC,
    BIAS,
    PROTECTED,
    ROUNDS,
    WIDTH,
    Escapes,
    escapes,
    example,
    race,
)
from tutelage.study import Figure, Size

LEVEL = 0.95
_BIASED, _BARE = f"ReLU, |b| up to {BIAS:g}, C = 2", "ReLU, b = 0, C = 2"
_POLYNOMIAL, _FOUR = "$a\\,h_6$, C = 2", f"ReLU, |b| up to {BIAS:g}, C = 4"


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """`learnt` of `trials` neurons by kind and dimension, and the suprema of `|xi| sqrt(d)` of the first races."""
    kinds = {_BIASED: escapes(size), _BARE: escapes(size, bias=0.0), _POLYNOMIAL: escapes(size, **PROTECTED)}
    if size == "full":
        kinds[_FOUR] = escapes(size, clusters=4)
    dims = kinds[_BIASED].dims
    slopes = [seen.slope(level=LEVEL) for seen in kinds.values()]
    found: dict[str, Any] = {
        "learnt": (("kind", "dim"), [_on(seen, seen.successes, dims) for seen in kinds.values()]),
        "foretold": (("kind", "dim"), [_on(seen, seen.foretold, dims) for seen in kinds.values()]),
        "slope": ("kind", [slope.value for slope in slopes]),
        "slope_low": ("kind", [slope.interval.low for slope in slopes]),
        "slope_high": ("kind", [slope.interval.high for slope in slopes]),
        "predicted": ("kind", [seen.predicted for seen in kinds.values()]),
        "flips": ("kind", [seen.flips for seen in kinds.values()]),
    }
    ends = [dims[0], dims[-1]]
    for name, changes in (("relu", {}), ("bare", {"bias": 0.0}), ("polynomial", PROTECTED)):
        highest = [np.sort(race(example(dim, **changes)).highest) for dim in ends]
        found[f"highest_{name}"] = (("end", "neuron"), highest)
    coords = {"kind": list(kinds), "dim": list(dims), "end": ends}
    return xr.Dataset(found, coords, {"trials": WIDTH * ROUNDS[size], "from": ASYMPTOTIC, "bias": BIAS})


def _on(seen: Escapes, numbers: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """Numbers at these dimensions; nan where there was no race."""
    counts = dict(zip(seen.dims, numbers, strict=True))
    return np.array([counts.get(dim, np.nan) for dim in dims], float)


def sheet(dataset: xr.Dataset) -> Sheet:
    return Sheet(
        "Neurons of a vanilla network that learn the global task",
        (_fractions(dataset), _suprema(dataset)),
        columns=2,
        caption=_caption(dataset),
    )


def _fractions(dataset: xr.Dataset) -> Panel:
    dims, trials = dataset["dim"].values, int(dataset.attrs["trials"])
    series: list[Series] = []
    far = dims >= dataset.attrs["from"]
    for colour, kind in enumerate(dataset["kind"].values):
        row = dataset.sel(kind=kind)
        known = np.isfinite(row["learnt"].values)
        counts = np.where(known, row["learnt"].values, 0).astype(int)
        seen = counts > 0
        if not seen.any():
            high = np.full(int(known.sum()), binomial_interval(0, trials, LEVEL).high)
            series.append(
                line(dims[known], high, f"{kind}: none, end of interval", kind="points", marker="v", colour=colour)
            )
            continue
        spans = [binomial_interval(int(n), trials, LEVEL) for n in counts[seen]]
        low, high = np.array([s.low for s in spans]), np.array([s.high for s in spans])
        series.append(line(dims[seen], counts[seen] / trials, kind, kind="points", low=low, high=high, colour=colour))
        power, chosen = float(row["predicted"]), seen & far
        weight = counts[chosen]  # of logarithms of counts, by their variance
        fit = np.exp(np.average(np.log(counts[chosen] / trials) - power * np.log(dims[chosen]), weights=weight))
        label = "" if colour else "predicted power of d"
        series.append(line(dims, fit * dims**power, label, dash="dashed", colour=colour))
        told = row["foretold"].values / trials
        label = "" if colour else "foretold by the starts"
        series.append(line(dims[told > 0], told[told > 0], label, dash="dotted", colour=colour))
    lowest = min(float(each.y.min()) for each in series)
    room = 10.0 ** (0.45 * len(series))  # for the legend below all points
    return Panel(
        "fraction of neurons that ever learn it",
        "dimension d",
        r"neurons with $\sup_t |\xi| > 1/2$, $f_g$",
        tuple(series),
        xscale="log",
        yscale="log",
        ylim=(lowest / room, 0.5),
    )


def _suprema(dataset: xr.Dataset) -> Panel:
    series = []
    kinds = (("relu", f"ReLU, |b| up to {BIAS:g}"), ("bare", "ReLU, b = 0"), ("polynomial", "$a\\,h_6$"))
    for colour, (name, label) in enumerate(kinds):
        for number, dim in enumerate(dataset["end"].values):
            values = dataset[f"highest_{name}"].values[number]
            part = 1 - np.arange(len(values)) / len(values)
            dash: Literal["dashed", "solid"] = "dashed" if number == 0 else "solid"
            series.append(line(values, part, f"{label}, d = {_power(dim)}", kind="steps", dash=dash, colour=colour))
    return Panel(
        "how high the overlap gets on the way",
        r"$\sup_t |\xi|\,\sqrt{d}$",
        "part of the neurons that reach it",
        tuple(series),
        xscale="log",
        yscale="log",
        xlim=(0.1, 1.5 * float(dataset["highest_relu"].max())),
        ylim=(0.5 / dataset.sizes["neuron"], 1.3),
    )


def _power(dim: int) -> str:
    return f"$10^{{{round(np.log10(dim))}}}$"


def _caption(dataset: xr.Dataset) -> str:
    told = []
    for kind in dataset["kind"].values:
        row = dataset.sel(kind=kind)
        if np.nansum(row["learnt"].values):
            slope, low, high = (float(row[name]) for name in ("slope", "slope_low", "slope_high"))
            told.append(f"{kind}: {slope:.3f} ({low:.3f} to {high:.3f}), predicted {float(row['predicted']):.3f}")
    flips = int(dataset["flips"].sum())
    return (
        f"Example 4.1 with k = 6 and orthogonal means: exact population flow of {dataset.attrs['trials']} neurons at "
        "each "
        f"point, from uniform starts, with 95% binomial intervals. ReLU with rho = 1, and biases in [-{BIAS:g}, "
        f"{BIAS:g}] "
        "or none, against the unit a h_6 with rho = 3, for which the clusters cancel exactly. Of all these neurons "
        f"{flips} change the sign of alpha_6 on their way (Assumption 3.4). Exponents from d = "
        f"{dataset.attrs['from']:.0e} on, with 95% intervals: {'; '.join(told)}. Dashed: that predicted power, "
        "through the points; dotted: neurons whose start gives the global task the largest rate_i |o_i|^(k-2). "
        "Right: the "
        f"{dataset.sizes['neuron']} neurons of one race each, in the smallest (dashed) and largest (solid) "
        "dimension; a "
        "bounded supremum of all neurons is what Theorem 4.3 says."
    )


FIGURE = Figure("escape_fraction", "Neurons that learn the global task", compute, sheet, ours=True)
