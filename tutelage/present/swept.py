"""A sweep in tables, sentences and pictures."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape

from tutelage._plain import number
from tutelage.analysis.scaling import Comparison, Fit
from tutelage.present import figures
from tutelage.present.grid import grid
from tutelage.study.result import Sweep

Fits = Mapping[str, Mapping[Any, Fit]]
Comparisons = Mapping[str, Mapping[Any, Comparison]]
ROWS = 60
"""Longer tables are cut; the file has all."""


def tables(console: Console, done: Sweep) -> None:
    """One row a cell: its settings, and of each measure the median, quartiles, and how many are still to come."""
    for name in done.measures:
        data = done.dataset[name]
        flat = data.stack(cell=[dim for dim in data.dims if dim != "seed"]).transpose("cell", "seed")
        rows = [_row(done, name, flat.isel(cell=at)) for at in range(min(ROWS, flat.sizes["cell"]))]
        title = f"{name}: {data.attrs.get('long_name', name)}"
        grid(console, title, [*map(escape, done.settings), *_head(data)], rows)
        if flat.sizes["cell"] > ROWS:
            console.print(f"... and {flat.sizes['cell'] - ROWS} more; `tutelage export {done.entry.id[:8]}` has all.\n")


def _head(data: xr.DataArray) -> list[str]:
    if data.attrs.get("kind") in ("chance", "verdict"):
        return ["seeds", "share"]
    return ["seeds", "median", "25 %", "75 %", *(["still to come"] if data.attrs.get("kind") == "time" else [])]


def _row(done: Sweep, name: str, cell: xr.DataArray) -> list[str]:
    values = cell.values[np.isfinite(cell.values)]
    where = [number(cell[setting].item()) for setting in done.settings]
    kind = done.dataset[name].attrs.get("kind")
    if kind in ("chance", "verdict"):
        return [*where, str(len(values)), number(float(values.mean())) if len(values) else "–"]
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [None] * 3
    late = [str(int(np.isnan(cell.values).sum()))] if kind == "time" else []
    return [*where, str(len(cell.values)), number(middle), number(low), number(high), *late]


def sentences(fits: Fits, compared: Comparisons) -> Iterator[str]:
    """Each fit and each comparison in words."""
    for name, curves in fits.items():
        for value, fit in curves.items():
            prefix = f"{value}: " if value is not None else ""
            for found in (fit, compared[name][value]):
                yield f"{prefix}{found.sentence.removesuffix('.')}."


def record(done: Sweep, fits: Fits, compared: Comparisons) -> dict[str, Any]:
    """All of it, ready for JSON."""
    return done.entry.record() | {
        "result": done.entry.result,
        "failed": done.failed,
        "fits": [
            {"measure": name, "curve": value, **fit.record(), "laws": compared[name][value].records()}
            for name, curves in fits.items()
            for value, fit in curves.items()
        ],
    }


def draw(done: Sweep, fits: Fits, figure: Path | None, title: str | None = None) -> list[Path]:
    """A picture of each measure: into `figure` (numbered, if there are several), or into the folder of the sweep."""
    paths = []
    drawable = done.drawable()
    for name in drawable:
        path = figure or done.entry.folder / f"{name.replace(':', '-')}.png"
        if figure and len(drawable) > 1:
            path = figure.with_stem(f"{figure.stem}-{name.replace(':', '-')}")
        paths.append(figures.save(done.chart(name, fits.get(name, {}), title=title), path))
    return paths
