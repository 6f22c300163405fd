"""The plateau of runs: how high it is, how long it lasts, and when a level is reached.

Runs go to `HORIZON` times `d^2/log d`, which is a little after the end of the plateau.
"""

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.papers.beyond_ntk.phases import escaped, high_orders, low_orders
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Size

LEFT = 0.03
"""The plateau is over when `d L` is below this: two thirds of its height, `1 - 3/pi`, at infinite width."""
QUIET = 0.1
"""The plateau has begun when orders 0 to 2 are at most this part of the loss of all others."""
HORIZON, RECORDS = 2.5, 120
DIMS: dict[Size, tuple[int, ...]] = {"quick": (10, 20), "full": (10, 20, 30, 40)}
RATIO = 4
"""Units a dimension, where the dimension changes."""
WIDTHS: dict[Size, tuple[int, tuple[int, ...]]] = {"quick": (10, (10, 40)), "full": (20, (20, 30, 60, 80, 120, 240))}
"""The dimension in which the width changes, and the widths."""
SEEDS = 3


def scale(dim: int) -> float:
    """`d^2/log d`, the order of the length of Stage 1 in Algorithm 1."""
    return dim**2 / math.log(dim)


def plateau_run(dim: int, width: int, seeds: int) -> xr.Dataset:
    """Population descent with uniform weights until the plateau is over, which takes longer for narrow networks."""
    until = HORIZON * scale(dim) * (1 if width >= 2 * dim else 2)
    return traces(BeyondNtkSettings(dim=dim, width=width, until=until), seeds, RECORDS)


def first_below(values: xr.DataArray, level: float) -> NDArray[np.float64]:
    """The first time, seed by seed, at which positive `values` are at most `level`; nan if never.

    Between two records their logarithm is taken as linear in time.

    ```python
    >>> import numpy as np, xarray as xr
    >>> from tutelage.papers.beyond_ntk.escapes import first_below
    >>> first_below(xr.DataArray([[1.0, 1.0, 1e-2]], {"time": [0.0, 1.0, 3.0]}, ("seed", "time")), 0.1).tolist()
    [2.0]

    ```
    """
    time = values["time"].values
    return np.array([_crossing(time, np.log(each), math.log(level)) for each in values.transpose("seed", ...).values])


def _crossing(time: NDArray[np.float64], logs: NDArray[np.float64], level: float) -> float:
    met = np.flatnonzero(logs <= level)
    if not len(met):
        return math.nan
    last = int(met[0])
    if last == 0:
        return float(time[0])
    share = (logs[last - 1] - level) / (logs[last - 1] - logs[last])
    return float(time[last - 1] + share * (time[last] - time[last - 1]))


def escape_times(dataset: xr.Dataset, dim: int) -> NDArray[np.float64]:
    """When `d L` falls below `LEFT`, seed by seed."""
    return first_below(dataset["L"], LEFT / dim)


def heights(dataset: xr.Dataset) -> NDArray[np.float64]:
    """The plateau's L, seed by seed: where it falls least in log time once orders 0 to 2 are learned; nan if never."""
    later = dataset.isel(time=slice(1, None))
    quiet = (low_orders(later) <= QUIET * high_orders(later)).transpose("seed", "time").values
    loss = later["L"].transpose("seed", "time").values
    falls = -np.gradient(np.log(loss), np.log(later["time"].values), axis=1)
    flattest = np.argmin(np.where(quiet, falls, np.inf), axis=1)
    return np.where(quiet.any(1), loss[np.arange(len(loss)), flattest], np.nan)


def half_times(dataset: xr.Dataset) -> NDArray[np.float64]:
    """When orders above 2 have halved since the lower ones were learned, seed by seed, at records; nan if never."""
    found = [escaped(dataset.isel(seed=seed)) for seed in range(dataset.sizes["seed"])]
    return np.array([float(each["time"][int(each.argmax("time"))]) if bool(each.any()) else math.nan for each in found])
