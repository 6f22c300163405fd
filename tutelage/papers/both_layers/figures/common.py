"""Pieces that several figures share."""

import numpy as np
import xarray as xr

from tutelage.analysis.panels import Series, line


def combined(**parts: xr.Dataset) -> xr.Dataset:
    """Several Datasets as one: names and dims of each get its keyword as a prefix; attrs are those of the first."""
    renamed = []
    for prefix, part in parts.items():
        names = {
            name: f"{prefix}_{name}" for name in [*part.variables, *(d for d in part.dims if d not in part.variables)]
        }
        renamed.append(part.rename(names).drop_attrs(deep=False))
    first = next(iter(parts.values()))
    return xr.merge(renamed, combine_attrs="drop").assign_attrs(first.attrs)


def part(dataset: xr.Dataset, prefix: str) -> xr.Dataset:
    """One part of a combined Dataset, under its own names."""
    wanted = [name for name in dataset.variables if str(name).startswith(f"{prefix}_")]
    chosen = dataset[[name for name in wanted if name in dataset.data_vars]]
    return chosen.rename(
        {
            n: str(n).removeprefix(f"{prefix}_")
            for n in [*chosen.variables, *chosen.dims]
            if n in chosen.dims or n in chosen.variables
        }
    )


def plane(weights: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates along the target (the first frame axis) and along a random direction of the frame across it."""
    across = np.random.default_rng(seed).standard_normal(weights.shape[-1] - 1)
    return weights[..., 0], weights[..., 1:] @ (across / np.linalg.norm(across))


def path(x: np.ndarray, y: np.ndarray, label: str, colour: int) -> tuple[Series, Series, Series]:
    """A trajectory in the plane: its path, its start (open) and its end."""
    return (
        line(x, y, label, colour=colour),
        line(x[:1], y[:1], kind="points", marker="x", colour=colour),
        line(x[-1:], y[-1:], kind="points", marker="*", colour=colour),
    )
