"""A figure as data: panels of named series. Papers make them from a Dataset; `present.figures` draws them."""

from dataclasses import dataclass, field
from typing import Literal, TypedDict, Unpack

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from tutelage._types import Numbers

Scale = Literal["linear", "log", "symlog"]


class Style(TypedDict, total=False):
    """How a `Series` looks."""

    kind: Literal["line", "points", "steps"]
    dash: Literal["solid", "dashed", "dotted"]
    colour: int | None
    marker: str
    right: bool
    faint: bool


@dataclass(frozen=True)
class Series:
    """One curve, point cloud or ribbon. `low`/`high` draw a band (lines) or error bars (points).

    `colour` is a house colour index (0, 1, ...), so that one quantity keeps one colour across panels;
    None takes the next one. `right` puts the series on the right-hand axis.
    """

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    label: str = ""
    kind: Literal["line", "points", "steps"] = "line"
    dash: Literal["solid", "dashed", "dotted"] = "solid"
    colour: int | None = None
    marker: str = "o"
    low: NDArray[np.floating] | None = None
    high: NDArray[np.floating] | None = None
    right: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Field:
    """A function on a grid, drawn as filled contours with a colour bar: `values[i, j]` at `(x[j], y[i])`.

    `cells`: a table instead, each entry a cell of one colour, blank where it is nan. Its rows and columns may have
    names (numbers or words) in place of x and y, and its colours run between `ends`, or from -1 to 1 if there are none.
    `written`: the format in which entries are written into their cells, such as ".2f"; not at all if it is blank.
    """

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    values: NDArray[np.floating]
    label: str
    levels: tuple[float, ...] = ()
    cells: bool = False
    columns: tuple[float | str, ...] = ()
    rows: tuple[float | str, ...] = ()
    ends: tuple[float, float] | None = None
    written: str = ""


@dataclass(frozen=True)
class Mark:
    """A labelled vertical line (`at`), horizontal line (`level`), shaded interval (`span`) or arrow (`arrow`)."""

    label: str
    at: float | None = None
    level: float | None = None
    span: tuple[float, float] | None = None
    arrow: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """One set of axes. `names` are those of x = 0, 1, ..., where x is not a number but one of a few cases."""

    title: str
    xlabel: str
    ylabel: str
    series: tuple[Series, ...] = ()
    fields: tuple[Field, ...] = ()
    marks: tuple[Mark, ...] = ()
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    right_label: str = ""
    equal_axes: bool = False
    note: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A whole figure: a title, its panels in rows of `columns`, and a caption for the report."""

    title: str
    panels: tuple[Panel, ...]
    columns: int = 2
    caption: str = ""
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(s.label for p in self.panels for s in p.series if s.label))


GREY = 6
"""The house colour of what belongs to no curve: laws, diagonals, levels."""
BAND = "10 % to 90 %"
"""What a band shows, for captions and legends."""
_PARTS = (0.1, 0.5, 0.9)


def spread(values: ArrayLike, axis: int = 0) -> tuple[Numbers, Numbers, Numbers]:
    """The 10 % quantile, the median and the 90 % quantile over the seeds, which lie on `axis`.

    Quantiles interpolate, so that they serve any number of seeds. A nan is left out. What has not come yet is
    infinite, and so is a quantile that would lie beyond the last that has come.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.panels import spread
    >>> [float(each) for each in spread([1, 2, 3, 4, np.inf, np.nan])]
    [1.4, 3.0, inf]

    ```
    """
    ordered = np.sort(np.moveaxis(np.asarray(values, float), axis, -1))  # nan comes last
    last = np.maximum(np.sum(~np.isnan(ordered), axis=-1) - 1, 0)
    low, middle, high = (_quantile(ordered, part * last) for part in _PARTS)
    return low, middle, high


def _quantile(ordered: Numbers, place: Numbers) -> Numbers:
    """Between the entries around a place, (...) of (..., seed)."""
    place = np.round(place, 9)  # 0.1 * 30 is a little above 3
    below, above = (
        np.take_along_axis(ordered, way(place).astype(int)[..., None], -1)[..., 0] for way in (np.floor, np.ceil)
    )
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(above), below + place % 1 * (above - below), above)


def band(x: ArrayLike, values: ArrayLike | xr.DataArray, label: str = "", **style: Unpack[Style]) -> Series:
    """The median over seeds with a band (or bars, for points) from the 10 % to the 90 % quantile: see `spread`.

    `values` are (seed, x), or a DataArray with a dimension `seed`. A median that has not come yet is not shown.
    """
    rows = values.transpose("seed", ...).values if isinstance(values, xr.DataArray) else values
    low, middle, high = spread(rows)
    return line(x, np.where(np.isfinite(middle), middle, np.nan), label, low=low, high=high, **style)


def seed_lines(
    x: ArrayLike, values: xr.DataArray, label: str, *, colour: int | None = None, most: int | None = None
) -> list[Series]:
    """A line per seed, for the first `most` of them: the first is labelled, the others are faint."""
    rows = values.transpose("seed", ...).values[:most]
    return [line(x, row, "" if number else label, faint=bool(number), colour=colour) for number, row in enumerate(rows)]


def line(
    x: ArrayLike,
    y: ArrayLike,
    label: str = "",
    *,
    low: Numbers | None = None,
    high: Numbers | None = None,
    **style: Unpack[Style],
) -> Series:
    """A `Series` from anything array-like."""
    return Series(np.asarray(x, float), np.asarray(y, float), label, low=low, high=high, **style)
