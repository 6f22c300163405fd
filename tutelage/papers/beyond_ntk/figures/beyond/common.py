"""The sizes that figures of this gallery share, so that their runs share a compilation, and how they are drawn."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import xarray as xr
from numpy.typing import ArrayLike

from tutelage.analysis import BAND, Series, band, seed_lines
from tutelage.papers.beyond_ntk.escapes import RECORDS, scale
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Size

TIME = r"time $\eta_\infty T$"
SEEDS = 3


class Shape(NamedTuple):
    """Dimension and width."""

    dim: int
    width: int

    @property
    def until(self) -> float:
        """Twice as long as the plateau, and more."""
        return 5.5 * scale(self.dim)


SHAPES: dict[Size, Shape] = {"quick": Shape(10, 40), "full": Shape(20, 80)}


def runs(size: Size, **values: Any) -> xr.Dataset:
    """Population descent with these settings."""
    shape = SHAPES[size]
    common: dict[str, Any] = {"dim": shape.dim, "width": shape.width, "until": shape.until}
    return traces(BeyondNtkSettings(**common | values), SEEDS, RECORDS)


def along(name: str, values: Sequence[float], row: Callable[[Any], xr.Dataset]) -> xr.Dataset:
    """The Datasets of all values, along an axis of that name."""
    joined = xr.concat([row(value).drop_vars("step", errors="ignore") for value in values], name)
    return joined.assign_coords({name: list(values)})


def curves(values: xr.DataArray, over: str, shown: Sequence[float], label: str) -> tuple[Series, ...]:
    """In time but for its start, a line for each seed at each of the values `over` an axis that are shown."""
    later = values.isel(time=slice(1, None))
    places = [at for at in values[over].values if at in shown]
    return tuple(
        series
        for colour, at in enumerate(places)
        for series in seed_lines(later["time"], later.sel({over: at}), f"{label} {at:g}", colour=colour)
    )


def barred(x: ArrayLike, values: xr.DataArray, label: str = f"median over seeds, {BAND}", **style: Any) -> Series:
    """Medians over seeds with their bars."""
    return band(x, values, label, kind="points", **style)
