"""Names of what neurons are compared with."""

import xarray as xr

from tutelage.problem import Clustered


def best_of(overlap: xr.DataArray, problem: Clustered) -> xr.DataArray:
    """The largest |overlap| of an expert's neurons with each task, `w1 ... wg`."""
    best = abs(overlap.sel(row=list(problem.tasks))).max("unit").rename(row="task")
    return best.assign_attrs(long_name="largest |overlap| of an expert's neurons")
