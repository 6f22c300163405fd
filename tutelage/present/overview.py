"""The picture of any run: loss, gradient, norms, angles or overlaps, from the names of the schema."""

from typing import Literal

import numpy as np
import xarray as xr

from tutelage.analysis.panels import BAND, Panel, Scale, Series, Sheet, band, line

# variable, title, axis label, scale, the axes that tell its curves apart
_PANELS: tuple[tuple[str, str, str, Scale, tuple[str, ...]], ...] = (
    ("loss", "Loss", "loss", "log", ()),
    ("loss_order", "Loss by order", "loss of an order", "log", ("order",)),
    ("gradient_norm", "Gradient", "|gradient|", "log", ()),
    ("first_norm", "Incoming weights", "|w|", "log", ("student",)),
    ("second", "Outgoing weights", "v", "linear", ("student", "output")),
    ("overlap_angle", "Angle to the nearest teacher", "angle [rad]", "linear", ("student", "teacher")),
    ("overlap_expert", "The best expert for each teacher", "overlap", "linear", ("teacher",)),
    ("overlap_router", "The best router for each teacher", "overlap", "linear", ("teacher",)),
    ("overlap_ss_expert", "The most opposite two experts", "overlap", "linear", ()),
    ("best", "The best expert for each task", "largest |overlap|", "linear", ("task",)),
    ("imbalance", "Balance of the layers", "|w|² − |v|²", "linear", ("student",)),
)
_DASHES: tuple[Literal["solid", "dashed", "dotted"], ...] = ("solid", "dashed", "dotted")  # curves may coincide
_MOST_CURVES = 8
_MOST_SEEDS = 20


def overview(dataset: xr.Dataset, title: str = "Run") -> Sheet:
    """Panels for what the Dataset holds; every seed is a faint curve, and the median over seeds a strong one."""
    dataset = _nearest(_extreme(_present(dataset)))
    fixed = {"second", "imbalance"} if "second" in dataset and _constant(dataset["second"]) else set()
    panels = [_panel(dataset, *spec) for spec in _PANELS if spec[0] in dataset and spec[0] not in fixed]
    seeds = dataset.sizes.get("seed", 1)
    caption = f"{seeds} seed{'s' if seeds != 1 else ''}; faint: single seeds; strong: median."
    columns = 2 if len(panels) == 4 else min(3, max(1, len(panels)))
    return Sheet(title, tuple(panels), columns=columns, caption=caption)


def variable_panel(dataset: xr.Dataset, name: str) -> Panel:
    """One variable over time, whatever axes it has."""
    known = next((spec for spec in _PANELS if spec[0] == name), None)
    if known:
        return _panel(dataset, *known)
    variable = dataset[name]
    title, units = str(variable.attrs.get("long_name", name)), str(variable.attrs.get("units", "1"))
    axes = tuple(str(dim) for dim in variable.dims if dim not in ("seed", "time"))
    scale: Scale = "log" if bool((variable > 0).all()) else "linear"
    return _panel(dataset, name, title, name if units in ("", "1") else f"{name} [{units}]", scale, axes)


def _present(dataset: xr.Dataset) -> xr.Dataset:
    """Of the orders of the loss those that the activations have; an odd function has no even ones."""
    if "loss_order" not in dataset:
        return dataset
    largest = dataset["loss_order"].max([name for name in dataset["loss_order"].dims if name != "tensor_order"])
    shown = dataset["tensor_order"].values[(largest > 1e-12 * largest.max()).values]
    return dataset.sel(tensor_order=shown).rename(tensor_order="order")


def _nearest(dataset: xr.Dataset) -> xr.Dataset:
    """Of the angles to several teachers the least: which teacher it is, is another picture."""
    if dataset.sizes.get("teacher", 1) == 1 or "overlap_angle" not in dataset:
        return dataset
    return dataset.assign(overlap_angle=dataset["overlap_angle"].min("teacher"))


def _extreme(dataset: xr.Dataset) -> xr.Dataset:
    """Of a mixture's overlaps the best student's for each teacher, and the least one among students."""
    best = {name: dataset[name].max("student") for name in ("overlap_expert", "overlap_router") if name in dataset}
    if "best" in dataset:
        best["best"] = dataset["best"].max("expert")
    if dataset.sizes.get("student_b", 1) > 1 and "overlap_ss_expert" in dataset:
        best["overlap_ss_expert"] = dataset["overlap_ss_expert"].min(("student", "student_b"))
    else:
        dataset = dataset.drop_vars("overlap_ss_expert", errors="ignore")
    return dataset.assign(best)


def _constant(variable: xr.DataArray) -> bool:
    first = variable.isel(time=0)
    return bool(((variable == first) | variable.isnull()).all())


def _panel(dataset: xr.Dataset, name: str, title: str, ylabel: str, scale: Scale, parts: tuple[str, ...]) -> Panel:
    variable = dataset[name]
    parts = tuple(part for part in parts if part in variable.dims)
    curves = variable.stack(curve=parts) if parts else variable.expand_dims("curve")
    count = curves.sizes["curve"]
    series: list[Series] = []
    for number in range(count if count <= _MOST_CURVES else 0):
        series += _curves(curves.isel(curve=number), _label(curves, number, parts), number)
    note = "" if series else f"median of {count} curves per seed, band: {BAND}"
    time = dataset["time"].values
    return Panel(
        title, "time", ylabel, tuple(series or [_band(curves)]), xscale=_time_scale(time), yscale=scale, note=note
    )


def _band(curves: xr.DataArray) -> Series:
    """Too many curves to tell apart: their median with a band, over the seeds too."""
    values = curves.transpose(..., "time").values.reshape(-1, curves.sizes["time"])
    reached = np.isfinite(values).any(axis=0)
    return band(curves["time"].values[reached], values[:, reached], colour=0)


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
