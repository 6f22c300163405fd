"""Numbers that a sweep may ask of a run by name, and a phase diagram."""

import numpy as np
import xarray as xr

from tutelage import BadInput
from tutelage.study import Diagram
from tutelage.trajectory import Measure, Run

LEARNT = 0.5
"""A neuron of the vanilla network has learned the global task when its overlap with it is above this."""


def _last(run: Run, name: str) -> xr.DataArray:
    """The last record of |overlap|; flows have one axis of time, SGD one for each network."""
    if name not in run.dataset:
        raise BadInput(f"The run has no {name}: it had no vanilla network; set vanilla_width above 0.")
    found = abs(run.dataset[name])
    [axis] = [dim for dim in found.dims if str(dim).endswith("time")]
    return found.isel({axis: -1})


def _errors(run: Run) -> xr.DataArray:
    if "error" not in run.dataset:
        raise BadInput("error and error_ratio need a second layer, which a flow has not; sweep with the dynamics sgd.")
    return run.dataset["error"]


def error(run: Run) -> np.ndarray:
    """The mean absolute error of the mixture."""
    return _errors(run).sel(network="moe").values


def error_ratio(run: Run) -> np.ndarray:
    """The mixture's error over that of the vanilla network."""
    both = _errors(run)
    if both.sizes["network"] < 2:
        raise BadInput("error_ratio compares with the vanilla network; set vanilla_width above 0.")
    return (both.sel(network="moe") / both.sel(network="vanilla")).values


def sharp_experts(run: Run) -> np.ndarray:
    """How many experts see one cluster with probability 0.9 or more, and all others with 0.1 or less."""
    return run.dataset["sharp"].sum("expert").values.astype(float)


def recovered(run: Run) -> np.ndarray:
    """The share of sharply routed experts with a neuron above 0.9 on their own local task and one on the global."""
    best = _last(run, "overlap").max("unit")
    rows = [f"w{c}" for c in run.dataset["cluster"].values]
    own = best.sel(row=rows).isel(row=run.dataset["served"] - 1)
    both = (own > 0.9) & (best.sel(row="wg") > 0.9)
    sharp = run.dataset["sharp"].astype(bool)
    counted = sharp.sum("expert")
    return ((both & sharp).sum("expert") / counted.where(counted > 0)).values


def global_overlap(run: Run) -> np.ndarray:
    """The largest overlap of the vanilla network's neurons with the global task, at the end."""
    return _last(run, "vanilla_overlap").sel(row="wg").max("vanilla_unit").values


def global_share(run: Run) -> np.ndarray:
    """The share of the vanilla network's neurons that learn the global task."""
    return (_last(run, "vanilla_overlap").sel(row="wg") > LEARNT).mean("vanilla_unit").values


MEASURES = (
    Measure("error", "mean absolute error of the mixture", error),
    Measure("error_ratio", "error of the mixture over that of the vanilla network", error_ratio),
    Measure("sharp_experts", "experts that are routed sharply", sharp_experts),
    Measure("recovered", "share of sharply routed experts that know both tasks", recovered),
    Measure("global_overlap", "largest overlap of a vanilla neuron with the global task", global_overlap),
    Measure("global_share", "share of vanilla neurons that learn the global task", global_share),
)

DIAGRAMS = (
    Diagram(
        "global",
        "Where a vanilla network learns the global task after all",
        measure="global_share",
        over={
            "quick": {"radius": (0.5, 1.0, 2.0, 3.0), "bias": (0.0, 0.3, 0.6, 1.0)},
            "full": {"radius": tuple(np.linspace(0.25, 4, 12)), "bias": tuple(np.linspace(0, 2, 11))},
        },
        seeds={"quick": 1, "full": 4},
        settings={"dim": 10_000, "experts": 1, "explore_width": 1, "width": 1, "vanilla_width": 200},
        dynamics="flow",
    ),
)
