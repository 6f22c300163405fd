"""The sizes that figures of this gallery share, so that their runs share a compilation, and how they are drawn."""

from typing import Any, NamedTuple

import xarray as xr
from numpy.typing import ArrayLike

from tutelage.analysis import BAND, Series, band
from tutelage.papers.beyond_ntk.escapes import RECORDS, scale
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.paper import Size

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


def barred(x: ArrayLike, values: xr.DataArray, label: str = f"median over seeds, {BAND}", **style: Any) -> Series:
    """Medians over seeds with their bars."""
    return band(x, values, label, kind="points", **style)
