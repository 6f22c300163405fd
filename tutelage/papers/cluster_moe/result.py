"""From what a pipeline found to a labelled Dataset, and to a few numbers."""

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.oracle import passing
from tutelage.papers.cluster_moe.learned import best_of
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers
from tutelage.trajectory import Phase, provenance, row_names

SHARP = 0.9
"""An expert is routed sharply when it sees a cluster's samples with at least this probability, and those of all other
clusters with at most one minus it."""

Found = dict[str, NDArray]


def sharply(seen: Numbers, sharp: float = SHARP) -> NDArray[np.bool_]:
    """Which experts are routed sharply, from probabilities (..., cluster, expert)."""
    ordered = np.sort(seen, axis=-2)
    return (ordered[..., -1, :] >= sharp) & np.all(ordered[..., :-1, :] <= 1 - sharp, axis=-2)


def dataset(settings: ClusterMoeSettings, seeds: list[int], found: Found) -> xr.Dataset:
    """All that was recorded, with names on every axis.

    Time counts samples. Phases II and IV take none of it: their samples are a batch.
    """
    problem = settings.problem()
    coords = {"seed": seeds, "row": list(row_names(problem)), "cluster": np.arange(1, problem.inputs.count + 1)}
    variables: dict[str, Any] = _explored(found) | _routed(settings, found) | _hired(found) | _errors(found)
    if settings.vanilla_width:
        variables |= _vanilla(found)
    data = xr.Dataset(variables, coords=coords)
    data = _best(data, settings)
    data.attrs = provenance({"dynamics": "sgd", **settings.model_dump(mode="json")})
    return data


def phases(settings: ClusterMoeSettings) -> list[Phase]:
    """When the phases begin and end, in samples of the stream."""
    drop = settings.explore_samples + settings.samples
    end = drop + settings.late_samples
    spans = (
        ("Phase I", 0, settings.explore_samples, "experts explore, routed at random"),
        ("Phase II", settings.explore_samples, settings.explore_samples, "the router learns, on a batch of its own"),
        ("Phase III", settings.explore_samples, drop, "experts learn what they are sent"),
        ("Phase III, smaller step", drop, end, "the same, with a smaller step"),
        ("Phase IV", end, end, "ridge regression of the second layer, on a batch of its own"),
    )
    return [Phase(name, start, stop, rule) for name, start, stop, rule in spans]


def _explored(found: Found) -> dict[str, Any]:
    axes = ("seed", "explore_time", "expert", "explore_unit", "row")
    return {
        "explore_time": ("explore_time", found["explore/time"], {"long_name": "samples of Phase I"}),
        "explore_overlap": (
            axes,
            found["explore/overlap"],
            {"long_name": "overlap of neurons with the frame, Phase I"},
        ),
        "explore_outgoing": (("seed", "expert", "explore_unit"), found["explore/outgoing"]),
        "explore_weights": (("seed", "expert", "explore_unit", "input"), found["explore/first"]),
    }


def _routed(settings: ClusterMoeSettings, found: Found) -> dict[str, Any]:
    theta, exact, inputs = found["router/theta"], found["router/expected"], settings.problem().inputs
    seen = np.stack([passing(each, inputs, settings.threshold) for each in theta])
    pairs = ("seed", "cluster", "expert")
    result: dict[str, Any] = {
        "router": (("seed", "expert", "input"), theta, {"long_name": "theta"}),
        "router_expected": (("seed", "expert", "input"), exact, {"long_name": "theta in expectation"}),
        "routed": (pairs, seen, {"long_name": "probability that an expert sees a sample of a cluster"}),
        "sharp": (("seed", "expert"), sharply(seen), {"long_name": "routed sharply to one cluster"}),
        "served": (("seed", "expert"), 1 + np.argmax(seen, axis=1), {"long_name": "the cluster that it sees most"}),
    }
    if "router/entropy" in found:
        result |= {
            "router_steps": (("seed", "router_step"), found["router/steps"]),
            "router_entropy": (("seed", "router_step"), found["router/entropy"]),
            "router_load": (("seed", "router_step", "cluster", "expert"), found["router/counts"]),
        }
    return result


def _hired(found: Found) -> dict[str, Any]:
    late = found["late/overlap"][:, 1:]  # its first record is the last one before the step drops
    times = np.concatenate([found["experts/time"], found["experts/time"][-1] + found["late/time"][1:]])
    axes = ("seed", "expert_time", "expert", "unit", "row")
    overlap = np.concatenate([found["experts/overlap"], late], axis=1)
    return {
        "expert_time": ("expert_time", times, {"long_name": "samples of Phase III"}),
        "overlap": (axes, overlap, {"long_name": "overlap of neurons with the frame, Phase III"}),
        "outgoing": (("seed", "expert", "unit"), found["late/outgoing"]),
        "weights": (("seed", "expert", "unit", "input"), found["late/first"]),
        "effective_rank": (("seed", "expert"), found["readout/rank"]),
    }


def _vanilla(found: Found) -> dict[str, Any]:
    names = ("vanilla_explore", "vanilla_experts", "vanilla_late")
    parts, times, before = [], [], 0
    for number, name in enumerate(names):
        skip = 1 if number else 0
        parts.append(found[f"{name}/overlap"][:, skip:, 0])
        times.append(before + found[f"{name}/time"][skip:])
        before += int(found[f"{name}/time"][-1])
    axes = ("seed", "vanilla_time", "vanilla_unit", "row")
    return {
        "vanilla_time": ("vanilla_time", np.concatenate(times), {"long_name": "samples of the vanilla network"}),
        "vanilla_overlap": (axes, np.concatenate(parts, axis=1), {"long_name": "overlap of the vanilla neurons"}),
        "vanilla_weights": (("seed", "vanilla_unit", "input"), found["vanilla_late/first"][:, 0]),
        "vanilla_rank": ("seed", found["vanilla_readout/rank"][:, 0]),
    }


def _errors(found: Found) -> dict[str, Any]:
    """Errors of both networks: `error` absolute, `squared_error`, with standard errors, and by cluster."""
    names = [name for name in ("readout", "vanilla_readout") if f"{name}/absolute" in found]
    result: dict[str, Any] = {"network": ("network", ["moe", "vanilla"][: len(names)])}
    for name, kind, words in (
        ("error", "absolute", "mean absolute error"),
        ("squared_error", "squared", "squared error"),
    ):
        whole = np.stack([found[f"{each}/{kind}"] for each in names], axis=1)
        parts = np.stack([found[f"{each}/{kind}_by_cluster"] for each in names], axis=1)
        result |= {
            name: (("seed", "network"), whole[..., 0], {"long_name": f"{words} against the noiseless target"}),
            f"{name}_se": (("seed", "network"), whole[..., 1], {"long_name": "standard error of the test samples"}),
            f"{name}_by_cluster": (("seed", "network", "cluster"), parts[..., 0]),
        }
    for name in ("zero", "idle", "size"):
        result[f"{name}"] = (("seed", "network"), np.stack([found[f"{each}/{name}"] for each in names], axis=1))
    return result


def _best(data: xr.Dataset, settings: ClusterMoeSettings) -> xr.Dataset:
    """`best`: the largest |overlap| of an expert's neurons, through all phases; the frame's rows `w1 ... wg` only."""
    problem = settings.problem()
    one = best_of(data["explore_overlap"].rename(explore_time="time", explore_unit="unit"), problem)
    two = best_of(data["overlap"].rename(expert_time="time"), problem)
    one = one.assign_coords(time=data["explore_time"].values)
    two = two.assign_coords(time=settings.explore_samples + data["expert_time"].values)
    # At the boundary the record is that of the explorers; those who are drawn anew begin after it.
    both = xr.concat([one, two.isel(time=slice(1, None))], "time")
    data = data.assign(best=both)
    count, end = both.sizes["time"], float(both["time"].values[-1])
    seeds = data.sizes["seed"]
    return data.assign(
        recorded=("seed", np.full(seeds, count)),
        stop_time=("seed", np.full(seeds, end)),
    )


def numbers(data: xr.Dataset) -> dict[str, Any]:
    """A few plain numbers of a run, for its summary."""
    result: dict[str, Any] = {
        "sharp_experts": [int(n) for n in data["sharp"].sum("expert").values],
        "error": {str(n): _rounded(data["error"].sel(network=n)) for n in data["network"].values},
        "error_of_zero": _rounded(data["zero"].isel(network=0)),
    }
    if "vanilla_overlap" in data:
        last = abs(data["vanilla_overlap"].isel(vanilla_time=-1).sel(row="wg")).max("vanilla_unit")
        result["vanilla_global_overlap"] = _rounded(last)
    return result


def _rounded(values: xr.DataArray) -> list[float]:
    return [round(float(value), 4) for value in values.values]
