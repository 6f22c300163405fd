"""The error of Theorem 4.6 against width, samples, training, alignment and dimension, beside the theorem's rates."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import Panel, Series, Sheet, line
from tutelage.papers.cluster_moe import rates
from tutelage.papers.cluster_moe.rates import Rate
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

LAWS = {
    "width": ("neurons $J$ of an expert", "mean absolute error", -1.0, "$1/J$"),
    "samples": ("samples $T_4$ of Phase IV", "error from label noise (rms)", -0.5, "$T_4^{-1/2}$"),
    "late": ("samples $T_3$ of Phase III", "mean absolute error", -1 / 3, "$T_3^{-1/3}$"),
    "slip": (r"$\epsilon$, overlaps are $1 - \epsilon$", "error from misalignment (rms)", 1.0, r"$\epsilon$"),
    "dim": ("dimension $d$, samples of order $d^{k-1}$", "mean absolute error", 0.0, "constant"),
}
TITLES = {
    "width": "Width",
    "samples": "Samples of the second layer",
    "late": "Training in Phase III",
    "slip": "Misalignment",
    "dim": "Dimension: whole runs",
}

WORDS = {"width": "J", "samples": "T_4", "late": "T_3", "slip": "epsilon", "dim": "d"}


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Errors by seed, and exponents with intervals."""
    variables: dict[str, Any] = {}
    about: dict[str, Any] = {}
    for name in LAWS:
        rate: Rate = getattr(rates, f"by_{name}")(size)
        variables[name] = ((f"{name}_seed", f"{name}_size"), rate.errors)
        variables[f"{name}_exponent"] = (f"{name}_fit", [rate.exponent, rate.interval.low, rate.interval.high])
        about[f"{name}_sizes"] = rate.sizes
    return xr.Dataset(variables).assign_attrs(about)


def sheet(dataset: xr.Dataset) -> Sheet:
    fits = "; ".join(
        f"{WORDS[name]} {fit[0]:.2f} ({fit[1]:.2f} to {fit[2]:.2f}; {law[2]:.2f})"
        for name, law in LAWS.items()
        for fit in [dataset[f"{name}_exponent"].values]
    )
    placed, whole = dataset.sizes["width_seed"], dataset.sizes["dim_seed"]
    caption = (
        "Laboratory B (k = 4, ReLU, rho = 3). In the first four panels neurons are placed on their tasks, half of an "
        "expert on its local one, and routing is perfect: d = 30 and no noise but in the second (zeta = "
        f"{rates.NOISE:g}); in the third they start at overlaps 0.75, at d = 20, and learn by SGD with a step of "
        f"{rates.RELAXED:g}/T_3; in the fourth one expert per cluster has 128, which all miss their task in one "
        "direction. Otherwise J is 32 where it is not the axis. "
        f"{placed} seeds. Last panel: whole runs of all phases by SGD from random starts, 24 "
        f"neurons, steps of order d^(-k/2), {whole} seeds. Points are seeds, solid lines their means, dashed lines "
        "the power of Theorem 4.6 through the left-most mean (in the fourth panel that of Lemmas C.26 and C.28, "
        f"through the right-most). Exponents with Student's {rates.LEVEL:.0%} intervals, and the theorem's: {fits}."
    )
    return Sheet("Theorem 4.6 as rates", tuple(_panel(dataset, name) for name in LAWS), columns=3, caption=caption)


def _panel(dataset: xr.Dataset, name: str) -> Panel:
    along, what, power, words = LAWS[name]
    sizes, errors = np.asarray(dataset.attrs[f"{name}_sizes"], float), dataset[name].values
    mean, fit = errors.mean(0), dataset[f"{name}_exponent"].values
    seeds: Series = line(np.tile(sizes, len(errors)), errors.ravel(), "seeds", kind="points", colour=0)
    measured = line(sizes, mean, f"mean, exponent {fit[0]:.2f}", colour=0)
    law = line(sizes, mean[0] * (sizes / sizes[0]) ** power, f"{words}", colour=1, dash="dashed")
    return Panel(TITLES[name], along, what, (seeds, measured, law), xscale="log", yscale="log")


FIGURE = Figure("rates", "Theorem 4.6 as rates", compute, sheet, ours=True)
