"""What neurons and the router have learned, read off the Dataset of a run."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.problem import Clustered

RECOVERED = 0.9
"""An overlap from which on a task counts as recovered."""


def tasks(data: xr.Dataset) -> list[str]:
    """The names `w1 ... wC, wg` of the tasks' rows."""
    return [str(name) for name in data["row"].values[: data.sizes["cluster"] + 1]]


def exceeding(data: xr.Dataset, exponent: int) -> xr.DataArray:
    """Figure 1(a): how many neurons of an expert (seed, row, expert) have learned something about a task in Phase I.

    These are the neurons with a larger overlap with it than the expert's best had with any local task at the start:
    the caption's threshold, which makes sense there only. For an even k overlaps count by their size.
    """
    overlap = data["explore_overlap"].sel(row=tasks(data))
    overlap = abs(overlap) if exponent % 2 == 0 else overlap
    start = overlap.isel(explore_time=0, row=slice(0, -1)).max(("explore_unit", "row"))
    return (overlap.isel(explore_time=-1) > start).sum("explore_unit").transpose("seed", "row", "expert")


def cosines(data: xr.Dataset, problem: Clustered) -> xr.DataArray:
    """The cosine of `theta_m` and `v_c` (seed, expert, cluster); the largest is where `theta_m.v_c` is."""
    theta, means = data["router"].values, np.asarray(problem.inputs.means)
    along = theta[..., : means.shape[1]] @ means.T
    norm = np.linalg.norm(theta, axis=-1, keepdims=True)
    return xr.DataArray(along / np.where(norm > 0, norm, 1.0), dims=("seed", "expert", "cluster"))


def sharpest(data: xr.Dataset) -> NDArray[np.intp]:
    """For each seed and cluster the expert that is routed most sharply to it (seed, cluster)."""
    seen = data["routed"].transpose("seed", "cluster", "expert").values
    others = np.stack([np.delete(seen, c, axis=1).max(axis=1) for c in range(seen.shape[1])], axis=1)
    return np.argmax(seen - others, axis=-1)


def grown(data: xr.Dataset, prefix: str = "") -> xr.Dataset:
    """The largest |overlap| in Phase III of an expert's neurons (seed, expert_time, expert).

    Of three kinds: `own`, with the local task of the cluster that it sees most, `shared`, and `other` local tasks. The
    same in Phase I (seed, explore_time, expert) with the prefix `explore_`; clusters are those that experts see later.
    """
    best = abs(data[f"{prefix}overlap"].sel(row=tasks(data))).max(f"{prefix}unit")
    local = best.isel(row=slice(0, -1))
    mine = xr.DataArray(1 + np.arange(local.sizes["row"]), dims="row", coords={"row": local["row"]}) == data["served"]
    kinds = {
        "own": local.where(mine).max("row"),
        "shared": best.isel(row=-1, drop=True),
        "other": local.where(~mine).max("row"),
    }
    return xr.Dataset(kinds)


def best_of(overlap: xr.DataArray, problem: Clustered) -> xr.DataArray:
    """The largest |overlap| of an expert's neurons with each task, `w1 ... wg`."""
    best = abs(overlap.sel(row=list(problem.tasks))).max("unit").rename(row="task")
    return best.assign_attrs(long_name="largest |overlap| of an expert's neurons")


def error_ratio(data: xr.Dataset) -> NDArray[np.float64]:
    """The mixture's error over that of the vanilla network, (seed)."""
    return (data["error"].sel(network="moe") / data["error"].sel(network="vanilla")).values
