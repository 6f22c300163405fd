"""The picture of any run: loss, gradient, norms, angles and balance, from the names of the schema."""

from typing import Literal

import numpy as np
import xarray as xr

from tutelage.analysis.panels import Panel, Scale, Series, Sheet, line

# variable, title, axis label, scale, the axes that tell its curves apart
_PANELS: tuple[tuple[str, str, str, Scale, tuple[str, ...]], ...] = (
    ("loss", "Loss", "loss", "log", ()),
    ("gradient_norm", "Gradient", "|gradient|", "log", ()),
    ("first_norm", "Incoming weights", "|w|", "log", ("student",)),
    ("second", "Outgoing weights", "v", "linear", ("student", "output")),
    ("overlap_angle", "Angle to the teacher", "angle [rad]", "linear", ("student", "teacher")),
    ("imbalance", "Balance of the layers", "|w|² − |v|²", "linear", ("student",)),
)
_DASHES: tuple[Literal["solid", "dashed", "dotted"], ...] = ("solid", "dashed", "dotted")  # curves may coincide
_MOST_CURVES = 8
_MOST_SEEDS = 20


def overview(dataset: xr.Dataset, title: str = "Run") -> Sheet:
    """Panels for what the Dataset holds; every seed is a faint curve, and the median over seeds a strong one."""
    panels = [_panel(dataset, *spec) for spec in _PANELS if spec[0] in dataset]
    seeds = dataset.sizes.get("seed", 1)
    caption = f"{seeds} seed{'s' if seeds != 1 else ''}; faint: single seeds; strong: median."
    return Sheet(title, tuple(panels), columns=min(3, max(1, len(panels))), caption=caption)


def _panel(dataset: xr.Dataset, name: str, title: str, ylabel: str, scale: Scale, parts: tuple[str, ...]) -> Panel:
    variable = dataset[name]
    curves = variable.stack(curve=parts) if parts else variable.expand_dims("curve")
    shown = min(curves.sizes["curve"], _MOST_CURVES)
    series: list[Series] = []
    for number in range(shown):
        series += _curves(curves.isel(curve=number), _label(curves, number, parts), number)
    hidden = curves.sizes["curve"] - shown
    note = f"the first {shown} of {shown + hidden} curves" if hidden else ""
    time = dataset["time"].values
    return Panel(title, "time", ylabel, tuple(series), xscale=_time_scale(time), yscale=scale, note=note)


def _curves(variable: xr.DataArray, label: str, colour: int) -> list[Series]:
    time = variable["time"].values
    values = np.atleast_2d(variable.transpose(..., "time").values)
    faint = [line(time, row, faint=True, colour=colour) for row in values[:_MOST_SEEDS]] if len(values) > 1 else []
    reached = np.isfinite(values).any(axis=0)
    middle = np.nanmedian(values[:, reached], axis=0)
    return [*faint, line(time[reached], middle, label, colour=colour, dash=_DASHES[colour % 3])]


def _label(curves: xr.DataArray, number: int, parts: tuple[str, ...]) -> str:
    """What tells this curve from its neighbours: axes of length one say nothing."""
    telling = [part for part in parts if len(np.unique(curves[part].values)) > 1]
    return ", ".join(f"{part} {curves[part].values[number]}" for part in telling)


def _time_scale(time: np.ndarray) -> Scale:
    """Log-spaced records are shown on a log axis."""
    positive = time[time > 0]
    if len(positive) < 3:
        return "linear"
    return "log" if np.median(positive) < 0.2 * positive[-1] else "linear"
