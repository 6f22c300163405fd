"""The phases in expectation: exact population dynamics in overlaps, at any dimension.

Neurons follow the flow of their correlation. The frame has one more direction for each neuron, drawn in law, so that
the router and its probabilities are exact too. In Phase III an expert gets of each cluster the part that the router
sends it, which is exact for experts that are routed sharply. There is no Phase IV: a second layer is fitted to samples.
"""

import time as clock
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.dynamics import flow_overlaps
from tutelage.oracle import ClusterOracle, expected_router, passing
from tutelage.papers.cluster_moe.result import sharply
from tutelage.papers.cluster_moe.rows import best_of
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Clustered, Clusters, Experts, Frame, Numbers, Units
from tutelage.problem import stream as weights_of
from tutelage.trajectory import Run, provenance, row_names

_EXPLORERS, _HIRED, _VANILLA = range(21, 24)
PATIENCE = 1e4
"""Flows are followed for this many times `d^((k-2)/2)`, the time that a neuron needs to leave its start."""


def run_expected(settings: ClusterMoeSettings, seeds: list[int], records: int = 48) -> Run:
    """Exploration, router, experts and the vanilla network without a single sample."""
    began = clock.perf_counter()
    parts = [_one(settings, seed, records) for seed in seeds]
    data = xr.concat(parts, "seed").assign_coords(seed=seeds)
    data.attrs = provenance({"dynamics": "flow", **settings.model_dump(mode="json")})
    found: dict[str, Any] = {"sharp_experts": [int(n) for n in data["sharp"].sum("expert").values]}
    if settings.vanilla_width:
        largest = abs(data["vanilla_overlap"].isel(time=-1).sel(row="wg")).max("vanilla_unit")
        found["vanilla_global_overlap"] = [float(f"{value:.4g}") for value in largest.values]
    return Run(data, clock.perf_counter() - began, facts=found)


def _one(settings: ClusterMoeSettings, seed: int, records: int) -> xr.Dataset:
    problem = settings.problem()
    until = PATIENCE * float(settings.dim) ** ((settings.exponent - 2) / 2)
    times = np.concatenate([[0.0], np.geomspace(until * 1e-8, until, records)])
    units, rows = drawn(problem, settings.law(explore=True), weights_of(seed, _EXPLORERS))
    explored = flow_overlaps(problem, units, _seen(problem, rows), until, times=times)
    small, theta = routed(settings, units, rows, explored.final)
    seen = passing(theta, small.inputs, settings.threshold)
    units, rows = drawn(problem, settings.law(explore=False), weights_of(seed, _HIRED))
    overlap = np.stack(
        [
            flow_overlaps(
                ClusterOracle(problem).served(jnp.asarray(problem.inputs.weights * seen[:, m])), units.expert(m),
                _seen(problem, rows)[m], until, times=times,
            ).overlaps
            for m in range(settings.experts)
        ],
        axis=1,
    )  # fmt: skip
    data = xr.Dataset(
        {
            "explore_overlap": (("time", "expert", "explore_unit", "row"), explored.overlaps),
            "overlap": (("time", "expert", "unit", "row"), overlap),
            "routed": (("cluster", "expert"), seen),
            "sharp": ("expert", sharply(seen)),
            "served": ("expert", 1 + np.argmax(seen, axis=0)),
        },
        coords={"time": times, "row": list(row_names(problem)), "cluster": np.arange(1, problem.inputs.count + 1)},
    )
    if settings.vanilla_width:
        law = Experts(1, settings.vanilla_width, settings.kind, settings.bias)
        units, rows = drawn(problem, law, weights_of(seed, _VANILLA))
        flown = flow_overlaps(problem, units, _seen(problem, rows), until, times=times)
        data["vanilla_overlap"] = (("time", "vanilla_unit", "row"), flown.overlaps[:, 0])
        data["vanilla_largest"] = (("vanilla_unit", "row"), flown.largest[0])
    data["recorded"], data["stop_time"] = len(times), until
    return data.assign(best=best_of(data["overlap"], problem))


def drawn(problem: Clustered, law: Experts, draw: np.random.Generator) -> tuple[Units, Numbers]:
    """Units, and unit rows in the frame: its own coordinates, then as many as the neurons span beyond."""
    units = law.units(draw)
    count, size = law.count * law.width, problem.frame.shape[1]
    rows = Frame(problem.inputs.dim, size, count, full=False).gaussian(draw)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return units, rows.reshape(law.count, law.width, -1)


def routed(settings: ClusterMoeSettings, units: Units, rows: NDArray, overlaps: NDArray) -> tuple[Clustered, Numbers]:
    """The router of neurons that began at `rows` and now have these overlaps; and the problem in their coordinates."""
    problem = settings.problem()
    size, columns = problem.frame.shape[1], rows.shape[-1]
    inside = overlaps @ np.linalg.pinv(problem.frame).T  # coordinates in the frame from overlaps with its rows
    # A neuron stays in the span of the frame and of where it began.
    beyond = rows[..., size:]
    beyond = beyond / np.linalg.norm(beyond, axis=-1, keepdims=True)
    left = np.sqrt(np.maximum(1 - np.sum(inside**2, axis=-1, keepdims=True), 0.0))
    now = np.concatenate([inside, left * beyond], axis=-1)
    small = Clusters(columns, problem.inputs.means, problem.inputs.radius, problem.inputs.weights)
    shrunk = Clustered(small, problem.teacher, problem.noise)
    return shrunk, expected_router(shrunk, units, now, step=settings.router_step)


def _seen(problem: Clustered, rows: Numbers) -> Numbers:
    return rows[..., : problem.frame.shape[1]] @ problem.frame.T
