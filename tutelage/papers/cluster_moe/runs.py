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
SEEDS: dict[Size, int] = {"quick": 2, "full": 4}


def configured(name: str, size: Size, **changes: Any) -> ClusterMoeSettings:
    """The settings of a preset; of "lab_b" in quick size the small ones."""
    scaled = SMALL if name == "lab_b" and size == "quick" else {}
    return ClusterMoeSettings(**PRESETS[name] | scaled | changes)


def laboratory(name: str = "lab_b", size: Size = "quick", seeds: int | None = None, **changes: Any) -> xr.Dataset:
    """The Dataset of a preset's run, over `seeds` seeds (two in quick size, four in full)."""
    settings = configured(name, size, **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the paper does not state is in the figure's caption
        return run(settings, seeds=seeds or SEEDS[size]).dataset


def of_laboratory(
    read_off: Callable[[xr.Dataset, ClusterMoeSettings], xr.Dataset],
) -> Callable[[ClusterMoeSettings, Size], xr.Dataset]:
    """The data of a figure: what is read off the default laboratory, whatever the settings."""
    return lambda settings, size: read_off(laboratory("lab_b", size), configured("lab_b", size))
