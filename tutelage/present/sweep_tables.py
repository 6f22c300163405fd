"""A sweep in tables, sentences and pictures."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape

from tutelage._plain import number
from tutelage.analysis.scaling import Choice
from tutelage.present import figures
from tutelage.present.terminal import grid
from tutelage.study.cells import VERDICTS
from tutelage.study.sweep_data import LEVEL, limits, probabilities, spread_to_come
from tutelage.study.sweep_result import Sweep

Choices = Mapping[str, Mapping[Any, Choice]]
ROWS = 60
"""Longer tables are cut; the file has all."""
WORDS = {value: verdict.value for verdict, value in VERDICTS.items()}


def tables(console: Console, done: Sweep) -> None:
    """One row per cell: its settings, and of each measure the median and its spread, or the share and its interval."""
    for name in done.measures:
        data = done.dataset[name]
        dims = tuple(str(dim) for dim in data.dims if dim != "seed")
        flat = data.transpose(*dims, "seed").stack(cell=dims).transpose("cell", "seed")
        head, columns = _columns(flat, limits(done.dataset, name, dims).reshape(flat.shape))
        shown = min(ROWS, flat.sizes["cell"])
        where = [[number(flat[setting][at].item()) for setting in done.settings] for at in range(shown)]
        rows = [[*place, *(number(column[at]) for column in columns)] for at, place in enumerate(where)]
        grid(console, f"{name}: {data.attrs.get('long_name', name)}", [*map(escape, done.settings), *head], rows)
        if flat.sizes["cell"] > ROWS:
            console.print(f"... and {flat.sizes['cell'] - ROWS} more; `tutelage export {done.entry.id[:8]}` has all.\n")


def _columns(flat: xr.DataArray, limit: np.ndarray) -> tuple[list[str], list[list[Any]]]:
    """What is said of each cell. Seeds still to come are later than all others: they count in the quantiles."""
    values, kind = flat.values.astype(float), flat.attrs.get("kind")
    known = np.isfinite(values).sum(1)
    if kind == "verdict":
        return ["verdict"], [[WORDS.get(value, "–") for value in values[:, 0]]]
    if kind == "chance":
        interval = f"{100 * LEVEL:g} % interval"
        low, share, high = map(_nothing, probabilities(values))
        return ["seeds", "share", f"{interval} from", "to"], [known.tolist(), share, low, high]
    late = np.isfinite(limit).sum(1)
    low, middle, high = map(_nothing, spread_to_come(values, limit))
    head, columns = ["seeds", "median", "10 %", "90 %"], [(known + late).tolist(), middle, low, high]
    return (head, columns) if kind != "time" else ([*head, "still to come"], [*columns, late.tolist()])


def _nothing(values: np.ndarray) -> list[float | None]:
    """What is not a number is a dash in a table."""
    return [float(value) if np.isfinite(value) else None for value in values]


def sentences(chosen: Choices) -> Iterator[str]:
    """Laws and how they compare, in words."""
    for curves in chosen.values():
        for value, choice in curves.items():
            yield from (f"{value}: {text}." if value is not None else f"{text}." for text in choice.sentences)


def record(done: Sweep, chosen: Choices) -> dict[str, Any]:
    """All of it, ready for JSON."""
    return done.entry.record() | {
        "result": done.entry.result,
        "failed": done.failed,
        "fits": [
            {"measure": name, "curve": value, **choice.record()}
            for name, curves in chosen.items()
            for value, choice in curves.items()
        ],
    }


def draw(
    done: Sweep, chosen: Choices, figure: Path | None, title: str | None = None, width: float | None = None
) -> list[Path]:
    """A picture of each measure: into `figure` (numbered, if there are several), or into the folder of the sweep."""
    paths = []
    drawable = done.drawable()
    for name in drawable:
        path = figure or done.entry.folder / f"{name.replace(':', '-')}.png"
        if figure and len(drawable) > 1:
            path = figure.with_stem(f"{figure.stem}-{name.replace(':', '-')}")
        paths.append(figures.save(done.chart(name, chosen.get(name, {}), title=title), path, width))
    return paths
