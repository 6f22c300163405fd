"""Adaptive k: how many experts should see a sample, by the level of the threshold, and with k fixed."""

import xarray as xr

from tutelage.analysis import BAND, Mark, Panel, Sheet, band, line
from tutelage.papers.cluster_moe.beyond.adapting import adapted
from tutelage.study import Figure

LEVEL = r"level of the threshold, in $|\theta_m|$"


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = (_errors(dataset), _active(dataset), _both(dataset))
    return Sheet("Beyond the paper: adaptive k", panels, columns=3, caption=_caption(dataset))


def _errors(dataset: xr.Dataset) -> Panel:
    marks = (
        Mark("vanilla network", level=float(dataset["vanilla"].mean())),
        Mark("best fixed k", level=float(dataset["k_error"].mean("seed").min())),
    )
    return Panel("error, threshold", LEVEL, "mean absolute error",
                 (band(dataset["level"], dataset["level_error"], f"median of seeds, {BAND}", colour=0),), marks=marks,
                 ylim=(0.0, 1.05))  # fmt: skip


def _active(dataset: xr.Dataset) -> Panel:
    series = (
        band(dataset["level"], dataset["level_active"], "active experts", colour=0),
        band(dataset["level"], dataset["level_idle"], "samples without one", colour=1, right=True),
    )
    return Panel("active experts per sample", LEVEL, f"number of {dataset.attrs['experts']}", series,
                 ylim=(0.0, 1.25 * dataset.attrs["experts"]), right_label="part of the samples")  # fmt: skip


def _both(dataset: xr.Dataset) -> Panel:
    mean = dataset.median("seed")
    order = mean["level_active"].argsort().values
    series = (
        line(mean["level_active"].values[order], mean["level_error"].values[order], "threshold, by level", colour=0),
        band(dataset["k"], dataset["k_error"], "fixed k", colour=2, kind="points"),
    )
    return Panel("adaptive and fixed", "active experts per sample", "mean absolute error", series, ylim=(0.0, 1.05))


def best(dataset: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The level and the k of the least mean error."""
    mean = dataset.mean("seed")
    return mean.isel(level=mean["level_error"].argmin("level")), mean.isel(k=mean["k_error"].argmin("k"))


def _caption(dataset: xr.Dataset) -> str:
    about, (by_level, by_number) = dataset.attrs, best(dataset)
    zero = dataset.mean("seed").sel(level=0.0)
    top1 = float(dataset["k_error"].sel(k=1).mean())
    return (
        f"d = {about['dim']}, {about['experts']} experts of {about['width']} neurons, {dataset.sizes['seed']} seeds. "
        "Experts are those of Phase III with threshold 0; only the second layer is fitted again. An active expert has "
        f"weight 1. Level 0, the paper's: error {float(zero['level_error']):.3f}, {float(zero['level_active']):.2f} "
        f"active experts. Least error over levels: {float(by_level['level_error']):.3f} at level "
        f"{float(by_level['level']):g}, {float(by_level['level_active']):.2f} active. Fixed k: {top1:.3f} with k = 1, "
        f"and at best {float(by_number['k_error']):.3f} with k = {int(by_number['k'])}. Higher levels leave samples "
        "without an expert; lower ones let experts of the other cluster speak."
    )


FIGURE = Figure("beyond_adaptive", "Adaptive k", lambda settings, size: adapted(size), sheet, ours=True)
