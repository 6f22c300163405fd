"""Runs that figures and claims share: settings by name and size, and their Datasets."""

import warnings
from collections.abc import Callable
from typing import Any

import xarray as xr

from tutelage.papers.cluster_moe.presets import PRESETS
from tutelage.papers.cluster_moe.recipe import run
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Size

SMALL: dict[str, Any] = {
    "dim": 20,
    "explore_step": 1.3e-3,
    "explore_samples": 2_400_000,
    "step": 8e-4,
    "samples": 900_000,
    "late_step": 1.5e-4,
    "late_samples": 200_000,
    "ridge_samples": 10_000,
    "vanilla_width": 48,
    "test_samples": 40_000,
}
"""The default laboratory in 20 dimensions in place of 30, where neurons leave their starts in a third of the time."""
_PAPER: dict[str, Any] = {
    "dim": 24,
    "explore_width": 32,
    "width": 32,
    "explore_samples": 320_000,
    "samples": 130_000,
    "late_samples": 32_000,
    "ridge_samples": 2_000,
    "test_samples": 2_000,
    "vanilla_width": 0,
}
QUICK: dict[str, dict[str, Any]] = {
    "lab_b": SMALL,
    "paper_fig1": _PAPER
    | {"explore_step": 1 / (8 * 32), "step": 1 / 32, "late_step": 1 / 32, "router_samples": 200, "router_steps": 60},
    "paper_fig1_mended": _PAPER | {"explore_step": 3e-4, "step": 1e-4, "late_step": 2e-5, "router_samples": 80_000},
}
"""What is smaller in quick size. Of the paper's experiment the learning rate stays 1 for fewer neurons."""
SEEDS: dict[Size, int] = {"quick": 2, "full": 4}
SINGLE = ("paper_fig1", "paper_fig1_mended")
"""Runs of one seed, which is all that the paper shows."""


def configured(name: str, size: Size, **changes: Any) -> ClusterMoeSettings:
    """The settings of a preset, in quick size the small ones."""
    scaled = QUICK.get(name, {}) if size == "quick" else {}
    return ClusterMoeSettings(**PRESETS[name] | scaled | changes)


def laboratory(name: str = "lab_b", size: Size = "quick", seeds: int | None = None, **changes: Any) -> xr.Dataset:
    """The Dataset of a preset's run, over `seeds` seeds (two in quick size, four in full; of the paper's one)."""
    settings, count = configured(name, size, **changes), 1 if name in SINGLE else SEEDS[size]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the paper does not state is in the figure's caption
        return run(settings, seeds=seeds or count).dataset


def of_laboratory(
    read_off: Callable[[xr.Dataset, ClusterMoeSettings], xr.Dataset],
) -> Callable[[ClusterMoeSettings, Size], xr.Dataset]:
    """The data of a figure: what is read off the default laboratory, whatever the settings."""
    return lambda settings, size: read_off(laboratory("lab_b", size), configured("lab_b", size))
