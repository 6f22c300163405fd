"""From the stages of a run to a labelled Dataset, and to a few numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.oracle import passing
from tutelage.papers.cluster_moe.learned import best_of
from tutelage.papers.cluster_moe.plan import expected
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers
from tutelage.trajectory import Phase, Run, provenance, row_names

SHARP = 0.9
"""An expert is routed sharply when it sees a cluster's samples with at least this probability, and those of all other
clusters with at most one minus it."""


def sharply(seen: Numbers, sharp: float = SHARP) -> NDArray[np.bool_]:
    """Which experts are routed sharply, from probabilities (..., cluster, expert)."""
    ordered = np.sort(seen, axis=-2)
    return (ordered[..., -1, :] >= sharp) & np.all(ordered[..., :-1, :] <= 1 - sharp, axis=-2)


def dataset(run: Run, settings: ClusterMoeSettings) -> xr.Dataset:
    """All that was recorded, with names on every axis.

    Time counts samples. Phases II and IV take none of it: their samples are a batch.
    """
    problem, parts = settings.problem(), run.stages
    seeds = [int(seed) for seed in run.dataset["seed"].values]
    coords = {"seed": seeds, "row": list(row_names(problem)), "cluster": np.arange(1, problem.inputs.count + 1)}
    variables: dict[str, Any] = _explored(parts["explore"]) | _routed(settings, parts["router"])
    variables |= _hired(parts) | _errors(parts)
    if settings.vanilla_width:
        variables |= _vanilla(parts)
    data = xr.Dataset(variables, coords=coords)
    data = _best(data, settings)
    data.attrs = provenance({"dynamics": "sgd", **settings.model_dump(mode="json")}, None)
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


def _explored(explore: Run) -> dict[str, Any]:
    axes = ("seed", "explore_time", "expert", "explore_unit", "row")
    return {
        "explore_time": ("explore_time", _time(explore), {"long_name": "samples of Phase I"}),
        "explore_overlap": (
            axes,
            explore.overlap.values,
            {"long_name": "overlap of neurons with the frame, Phase I"},
        ),
        "explore_outgoing": (("seed", "expert", "explore_unit"), np.asarray(explore.final.units.outgoing)),
        "explore_weights": (("seed", "expert", "explore_unit", "input"), np.asarray(explore.final.first)),
    }


def _time(stage: Run) -> NDArray[np.integer]:
    return stage.dataset["time"].values.astype(int)


def _routed(settings: ClusterMoeSettings, router: Run) -> dict[str, Any]:
    exact, inputs = expected(settings, router.final), settings.problem().inputs
    theta = exact if settings.population_router else np.asarray(router.final.theta)
    seen = np.stack([passing(each, inputs, settings.threshold) for each in theta])
    pairs = ("seed", "cluster", "expert")
    result: dict[str, Any] = {
        "router": (("seed", "expert", "input"), theta, {"long_name": "theta"}),
        "router_expected": (("seed", "expert", "input"), exact, {"long_name": "theta in expectation"}),
        "routed": (pairs, seen, {"long_name": "probability that an expert sees a sample of a cluster"}),
        "sharp": (("seed", "expert"), sharply(seen), {"long_name": "routed sharply to one cluster"}),
        "served": (("seed", "expert"), 1 + np.argmax(seen, axis=1), {"long_name": "the cluster that it sees most"}),
    }
    if not settings.population_router:
        data = router.dataset
        steps = data["step"].values.astype(int) - 1  # a record after a step says what that step saw
        result |= {
            "router_steps": (("seed", "router_step"), np.broadcast_to(steps, (data.sizes["seed"], len(steps)))),
            "router_entropy": (("seed", "router_step"), data["entropy"].values),
            "router_load": (("seed", "router_step", "cluster", "expert"), data["counts"].values),
        }
    return result


def _hired(parts: Mapping[str, Run]) -> dict[str, Any]:
    times, overlap = _joined([parts["experts"], parts["late"]])
    axes = ("seed", "expert_time", "expert", "unit", "row")
    return {
        "expert_time": ("expert_time", times, {"long_name": "samples of Phase III"}),
        "overlap": (axes, overlap, {"long_name": "overlap of neurons with the frame, Phase III"}),
        "outgoing": (("seed", "expert", "unit"), np.asarray(parts["late"].final.units.outgoing)),
        "weights": (("seed", "expert", "unit", "input"), np.asarray(parts["late"].final.first)),
        "effective_rank": (("seed", "expert"), np.asarray(parts["readout"].final.rank)),
    }


def _joined(stages: list[Run]) -> tuple[NDArray[np.integer], Numbers]:
    """Times and overlaps of stages, one after the other: the first record of a later one is the last one before it."""
    times, overlaps = [_time(stages[0])], [stages[0].overlap.values]
    for stage in stages[1:]:
        times.append(times[-1][-1] + _time(stage)[1:])
        overlaps.append(stage.overlap.values[:, 1:])
    return np.concatenate(times), np.concatenate(overlaps, axis=1)


def _vanilla(parts: Mapping[str, Run]) -> dict[str, Any]:
    times, overlap = _joined([parts[f"vanilla_{name}"] for name in ("explore", "experts", "late")])
    last, read = parts["vanilla_late"].final, parts["vanilla_readout"].final
    axes = ("seed", "vanilla_time", "vanilla_unit", "row")
    return {
        "vanilla_time": ("vanilla_time", times, {"long_name": "samples of the vanilla network"}),
        "vanilla_overlap": (axes, overlap[:, :, 0], {"long_name": "overlap of the vanilla neurons"}),
        "vanilla_weights": (("seed", "vanilla_unit", "input"), np.asarray(last.first)[:, 0]),
        "vanilla_rank": ("seed", np.asarray(read.rank)[:, 0]),
    }


def _errors(parts: Mapping[str, Run]) -> dict[str, Any]:
    """Errors of both networks: `error` absolute, `squared_error`, with standard errors, and by cluster."""
    found = [parts[name].final for name in ("readout", "vanilla_readout") if name in parts]
    result: dict[str, Any] = {"network": ("network", ["moe", "vanilla"][: len(found)])}
    for name, kind, words in (
        ("error", "absolute", "mean absolute error"),
        ("squared_error", "squared", "squared error"),
    ):
        whole = np.stack([getattr(each, kind) for each in found], axis=1)
        split = np.stack([getattr(each, f"{kind}_by_cluster") for each in found], axis=1)
        result |= {
            name: (("seed", "network"), whole[..., 0], {"long_name": f"{words} against the noiseless target"}),
            f"{name}_se": (("seed", "network"), whole[..., 1], {"long_name": "standard error of the test samples"}),
            f"{name}_by_cluster": (("seed", "network", "cluster"), split[..., 0]),
        }
    for name in ("zero", "idle", "size"):
        result[name] = (("seed", "network"), np.stack([getattr(each, name) for each in found], axis=1))
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
    end, seeds = float(both["time"].values[-1]), data.sizes["seed"]
    return data.assign(
        best=both,
        recorded=("seed", np.full(seeds, both.sizes["time"])),
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
