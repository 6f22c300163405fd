"""How well both networks predict after Phase IV: over seeds, by cluster, and the one over the other."""

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Series, Sheet, line, mean_interval
from tutelage.papers.cluster_moe.learned import error_ratio
from tutelage.papers.cluster_moe.runs import of_laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure

NAMES = {"moe": "mixture of experts", "vanilla": "without a router"}
LEVEL = 0.95


def read_off(data: xr.Dataset, settings: ClusterMoeSettings) -> xr.Dataset:
    """Mean absolute errors (seed, network), also by cluster, and that of predicting zero."""
    names = ("dim", "experts", "width", "vanilla_width", "ridge_samples", "test_samples")
    found = data[["error", "error_se", "error_by_cluster", "zero"]]
    return found.assign_attrs({name: getattr(settings, name) for name in names})


def sheet(dataset: xr.Dataset) -> Sheet:
    about, seeds = dataset.attrs, dataset.sizes["seed"]
    ratio = error_ratio(dataset)
    caption = (
        f"Laboratory B after all phases, by SGD from random starts, {seeds} seeds: mean absolute error against the "
        f"labels without noise on {about['test_samples']:,} fresh samples, after ridge regression of the second layer "
        f"on {about['ridge_samples']:,}; d = {about['dim']}, {about['experts']} experts of {about['width']} neurons, "
        f"and a network of {about['vanilla_width']} without a router on the same samples, in the protected case of "
        "Theorem 4.3. Dashed lines are predicting zero, and on the right one half. Left: by seed (the standard error "
        "of the test is smaller than a point), lines are means over seeds, shaded are their "
        f"{LEVEL:.0%} Student intervals; middle: by cluster, seeds as crosses "
        "beside their mean with the same interval, cut at the frame. Right: the "
        f"mixture's error over the other's, {ratio.min():.2f} to {ratio.max():.2f}."
    )
    panels = (_by_seed(dataset), _by_cluster(dataset), _ratios(dataset))
    return Sheet("Errors after Phase IV", panels, columns=3, caption=caption)


def _mean(values: np.ndarray, at: np.ndarray, colour: int) -> Series:
    """A line at the mean with its interval, cut at zero, as errors are."""
    found, mean = mean_interval(values, LEVEL), float(values.mean())
    low, high = (np.full(2, max(end, 0.0)) for end in (found.low, found.high))
    return line(at, np.full(2, mean), "", colour=colour, low=low, high=high)


def _seeds(dataset: xr.Dataset) -> tuple[str, ...]:
    return tuple(str(seed) for seed in dataset["seed"].values)


def _by_seed(dataset: xr.Dataset) -> Panel:
    seeds = np.arange(dataset.sizes["seed"], dtype=float)
    ends, series = np.array([-0.4, len(seeds) - 0.6]), []
    for colour, (name, label) in enumerate(NAMES.items()):
        error = dataset["error"].sel(network=name).values
        spread = dataset["error_se"].sel(network=name).values
        series.append(_mean(error, ends, colour))
        series.append(line(seeds, error, label, kind="points", colour=colour, low=error - spread, high=error + spread))
    zero = float(dataset["zero"].mean())
    return Panel(
        "By seed", "seed", "mean absolute error", tuple(series), marks=(Mark("predicting zero", level=zero),),
        xlim=(ends[0], ends[1]), ylim=(0.0, 1.25 * zero), names=_seeds(dataset),
    )  # fmt: skip


def _by_cluster(dataset: xr.Dataset) -> Panel:
    count, seeds = dataset.sizes["cluster"], dataset.sizes["seed"]
    series, beside = [], np.linspace(0.08, 0.2, seeds)
    for colour, name in enumerate(NAMES):  # whose labels are in the first panel
        error = dataset["error_by_cluster"].sel(network=name).transpose("cluster", "seed").values
        found = [mean_interval(row, LEVEL) for row in error]
        low, high = np.array([max(each.low, 0.0) for each in found]), np.array([each.high for each in found])
        at = np.arange(count) + (0.05 if colour else -0.2)
        series.append(line(at, error.mean(1), kind="points", colour=colour, low=low, high=high))
        series.append(line(np.add.outer(at, beside).ravel(), error.ravel(), kind="points", colour=colour, marker="x"))
    zero = float(dataset["zero"].mean())
    return Panel(
        "By cluster", "", "mean absolute error", tuple(series), marks=(Mark("predicting zero", level=zero),),
        xlim=(-0.5, count - 0.5), ylim=(0.0, 1.25 * zero), names=tuple(f"cluster {c + 1}" for c in range(count)),
    )  # fmt: skip


def _ratios(dataset: xr.Dataset) -> Panel:
    ratio = error_ratio(dataset)
    ends = np.array([-0.4, len(ratio) - 0.6])
    series = (
        _mean(ratio, ends, 2),
        line(np.arange(len(ratio), dtype=float), ratio, kind="points", colour=2),
    )
    return Panel(
        "Mixture over network without a router", "seed", "ratio of the errors", series,
        marks=(Mark("half", level=0.5),), xlim=(ends[0], ends[1]), ylim=(0.0, 1.05), names=_seeds(dataset),
    )  # fmt: skip


FIGURE = Figure("errors", "Errors of both networks", of_laboratory(read_off), sheet, ours=True)
