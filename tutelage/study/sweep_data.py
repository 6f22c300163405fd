"""Reading the Dataset of a sweep: its settings and measures by name, and what many seeds say together."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tutelage._errors import BadInput, unknown
from tutelage._plain import number
from tutelage._types import Numbers
from tutelage.analysis.claims import binomial_interval
from tutelage.analysis.panels import spread

LEVEL = 0.95  # of the intervals of probabilities


def measured(dataset: xr.Dataset, measure: str) -> xr.DataArray:
    """The measure, or an error naming the nearest."""
    known = [str(name) for name in dataset.data_vars if "seed" in dataset[name].dims]
    if measure not in known:
        raise unknown("measure of the sweep", measure, [name for name in known if not name.endswith("_limit")])
    return dataset[measure]


def trend_axes(dataset: xr.Dataset, measure: str, over: str | None) -> tuple[str, str | None]:
    """The setting on the x axis, and the one that has curves, if there is one.

    In a random or Sobol design all settings change at once: one is chosen, the others make no curves.
    """
    names = settings(dataset, measure)
    numbers = [name for name in names if np.issubdtype(dataset[name].dtype, np.number)]
    if over is not None and over not in numbers:
        raise unknown("number of the sweep", over, numbers)
    axis = over or next(iter(numbers), None)
    others = [name for name in names if name != axis]
    scattered = "point" in dataset[measure].dims
    if axis is None or (len(others) > 1 and not scattered):
        raise BadInput(
            f"A trend is over one setting that is a number, and at most one more, but {measure!r} has "
            f"{listed(names)}; choose a value of the others, for example with dataset.sel(...)."
        )
    return axis, others[0] if others and not scattered else None


def settings(dataset: xr.Dataset, measure: str) -> list[str]:
    """The settings that were swept over."""
    dims = [str(dim) for dim in dataset[measure].dims if dim != "seed"]
    if dims == ["point"]:
        return [str(name) for name in dataset.coords if dataset[name].dims == ("point",) and name != "point"]
    return dims


def limits(dataset: xr.Dataset, measure: str, dims: tuple[str, ...]) -> Numbers:
    """Times that values are known to be above; nan where there is none."""
    name = f"{measure}_limit"
    shape = tuple(dataset.sizes[dim] for dim in (*dims, "seed"))
    if name not in dataset:
        return np.full(shape, np.nan)
    limit = dataset[name].transpose(*dims, "seed").values.astype(float)
    values = dataset[measure].transpose(*dims, "seed").values
    return np.where(np.isnan(values) & np.isfinite(limit), limit, np.nan)


@dataclass(frozen=True)
class Curve:
    """One curve of a trend: its value of the second setting, x in rising order, `values` and `limit` (x, seed).

    `scattered`: its points differ in other settings as well.
    """

    value: Hashable
    label: str
    x: Numbers
    values: Numbers
    limit: Numbers
    law: Numbers | None
    scattered: bool = False


def curves_of(dataset: xr.Dataset, measure: str, axis: str, other: str | None) -> Iterator[Curve]:
    (dim,) = dataset[axis].dims
    order = np.argsort(dataset[axis].values, kind="stable")
    data = dataset.isel({dim: order})
    scattered = dim == "point" and len(settings(dataset, measure)) > 1
    for value in [None] if other is None else dataset[other].values.tolist():
        part = data if other is None else data.sel({other: value})
        label = "" if other is None else f"{long_name(dataset[other])} = {number(value)}"
        values = part[measure].transpose(dim, "seed").values.astype(float)
        law = part[f"{measure}_law"].values.astype(float) if f"{measure}_law" in part else None
        limit = limits(part, measure, (str(dim),))
        yield Curve(value, label, part[axis].values.astype(float), values, limit, law, scattered)


def long_name(variable: xr.DataArray) -> str:
    """What a variable is, in words."""
    return str(variable.attrs.get("long_name") or str(variable.name).replace("_", " "))


def axis_label(variable: xr.DataArray) -> str:
    """What a variable is, with its units."""
    units = variable.attrs.get("units", "")
    return f"{long_name(variable)} [{units}]" if units else long_name(variable)


def listed(names: Sequence[str]) -> str:
    """Names with commas between."""
    return ", ".join(names) or "none"


def spread_to_come(values: Numbers, limit: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """As `spread` over the last axis; a value still to come counts as larger than all, and is not shown.

    That is right where the runs of a cell end at one time. A bar that would end among those still to come ends at the
    largest limit.
    """
    filled = np.where(np.isfinite(limit), np.inf, values)
    low, middle, high = spread(filled, axis=-1)
    latest = np.max(np.where(np.isfinite(limit), limit, -np.inf), axis=-1)
    high = np.where(np.isinf(high), latest, high)
    hidden = ~np.isfinite(middle)
    return tuple(np.where(hidden, np.nan, each) for each in (low, middle, high))  # type: ignore[return-value]


def probabilities(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The low end of the exact interval, the part of successes over the last axis, and the high end; nan if none."""
    trials = np.isfinite(values).sum(-1)
    successes = np.nansum(values, -1)
    low, high = np.full((2, *trials.shape), np.nan)
    for place in zip(*np.nonzero(trials), strict=True):
        interval = binomial_interval(int(successes[place]), int(trials[place]), LEVEL)
        low[place], high[place] = interval.low, interval.high
    with np.errstate(invalid="ignore"):
        return low, successes / np.where(trials > 0, trials, np.nan), high
