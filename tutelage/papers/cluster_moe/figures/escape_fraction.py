"""How many neurons of a vanilla network learn the global task, against the dimension."""

from typing import Any, Literal

import numpy as np
import xarray as xr

from tutelage.analysis import Panel, Series, Sheet, binomial_interval, line
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.cluster_moe.vanilla import PROTECTED, ROUNDS, WIDTH, Escapes, escapes, example, race
from tutelage.study import Figure, Size

LEVEL = 0.95


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """`learnt` of `trials` neurons by kind and dimension, and the suprema of `|xi| sqrt(d)` of the first races."""
    kinds = {"ReLU, C = 2": escapes(size), "polynomial, C = 2": escapes(size, protected=True)}
    if size == "full":
        kinds["ReLU, C = 6"] = escapes(size, clusters=6)
    dims = kinds["ReLU, C = 2"].dims
    found: dict[str, Any] = {
        "learnt": (("kind", "dim"), [_on(seen, seen.successes, dims) for seen in kinds.values()]),
        "foretold": (("kind", "dim"), [_on(seen, seen.foretold, dims) for seen in kinds.values()]),
        "slope": ("kind", [seen.slope()[0] for seen in kinds.values()]),
        "slope_error": ("kind", [seen.slope()[1] for seen in kinds.values()]),
        "predicted": ("kind", [seen.predicted for seen in kinds.values()]),
    }
    ends = [dims[0], dims[-1]]
    for name, changes in (("relu", {}), ("polynomial", PROTECTED)):
        highest = [np.sort(race(example(dim, **changes)).highest) for dim in ends]
        found[f"highest_{name}"] = (("end", "neuron"), highest)
    coords = {"kind": list(kinds), "dim": list(dims), "end": ends}
    return xr.Dataset(found, coords, {"trials": WIDTH * ROUNDS[size]})


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
    for colour, kind in enumerate(dataset["kind"].values):
        row = dataset.sel(kind=kind)
        known = np.isfinite(row["learnt"].values)
        counts = row["learnt"].values[known].astype(int)
        spans = [binomial_interval(int(n), trials, LEVEL) for n in counts]
        low, high = np.array([s.low for s in spans]), np.array([s.high for s in spans])
        if counts.any():
            series.append(line(dims[known], counts / trials, kind, kind="points", low=low, high=high, colour=colour))
            power = float(row["predicted"])
            fit = np.exp(np.mean(np.log(counts / trials) - power * np.log(dims[known])))
            label = f"predicted, $d^{{{power:.3g}}}$"
            series.append(line(dims, fit * dims**power, label, dash="dashed", colour=colour))
            told = row["foretold"].values[known] / trials
            series.append(
                line(dims[known], told, "" if colour else "foretold by the starts", dash="dotted", colour=colour)
            )
        else:
            series.append(
                line(dims[known], high, f"{kind}: none, end of interval", kind="points", marker="v", colour=colour)
            )
    lowest = min(float(each.y.min()) for each in series)
    return Panel(
        "fraction of neurons",
        "dimension d",
        "neurons that end on the global task, $f_g$",
        tuple(series),
        xscale="log",
        yscale="log",
        ylim=(lowest / 100, 0.5),  # room for the legend below all points
    )


def _suprema(dataset: xr.Dataset) -> Panel:
    series = []
    for colour, (name, label) in enumerate((("relu", "ReLU"), ("polynomial", "polynomial"))):
        for number, dim in enumerate(dataset["end"].values):
            values = dataset[f"highest_{name}"].values[number]
            part = 1 - np.arange(len(values)) / len(values)
            dash: Literal["dashed", "solid"] = "dashed" if number == 0 else "solid"
            series.append(line(values, part, f"{label}, d = {_power(dim)}", kind="steps", dash=dash, colour=colour))
    return Panel(
        "how high the overlap gets",
        r"$\sup_t |\xi|\,\sqrt{d}$",
        "neurons that reach it",
        tuple(series),
        xscale="log",
        yscale="log",
        xlim=(0.1, 1.5 * float(dataset["highest_relu"].max())),
    )


def _power(dim: int) -> str:
    return f"$10^{{{round(np.log10(dim))}}}$"


def _caption(dataset: xr.Dataset) -> str:
    told = []
    for kind in dataset["kind"].values:
        row = dataset.sel(kind=kind)
        if np.nansum(row["learnt"].values):
            slope, error, predicted = (float(row[name]) for name in ("slope", "slope_error", "predicted"))
            told.append(f"{kind}: exponent {slope:.3f} +- {error:.3f}, predicted {predicted:.3f}")
    return (
        f"Example 4.1 with k = 6: exact population flow of {dataset.attrs['trials']} neurons at each point, and "
        "95% binomial intervals. ReLU with biases in [-0.6, 0.6] and rho = 1 against a h_6 with rho = 3, for which "
        f"the clusters cancel exactly. {'; '.join(told)}. Dashed lines have the slope -|C_j|/(2(k-2)); dotted: "
        "neurons whose start gives the global task the largest rate_i |o_i|^(k-2). Right: "
        f"the neurons of one race of {dataset.sizes['neuron']}; a bounded supremum is what Theorem 4.3 says of all."
    )


FIGURE = Figure("escape_fraction", "Neurons that learn the global task", compute, sheet, ours=True)
