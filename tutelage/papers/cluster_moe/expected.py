"""The phases in expectation: exact population dynamics in overlaps, at any dimension.

Neurons follow the flow of their correlation. The frame has one more direction for each neuron, drawn in law, so that
the router and its probabilities are exact too. In Phase III an expert gets of each cluster the part that the router
sends it, which is exact for experts that are routed sharply. There is no Phase IV: a second layer is fitted to samples.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage import BadInput, StopReason
from tutelage.dynamics import NeuronFlow, Record, neurons_at, stacked
from tutelage.oracle import expected_router, passing
from tutelage.papers.cluster_moe.learned import best_of
from tutelage.papers.cluster_moe.result import sharply
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Clustered, Clusters, Experts, Frame, Numbers, Units
from tutelage.problem import stream as weights_of
from tutelage.trajectory import Handover, Run, Stage, provenance

_EXPLORERS, _HIRED, _VANILLA = range(21, 24)
PATIENCE = 1e4
"""Flows are followed for this many times `d^((k-2)/2)`, the time that a neuron needs to leave its start."""


def plan(settings: ClusterMoeSettings, records: int) -> list[Stage]:
    """Exploration, experts behind the expected router, and the vanilla network, without a single sample."""
    s, until = settings, PATIENCE * float(settings.dim) ** ((settings.exponent - 2) / 2)
    moves = NeuronFlow(until, times=np.concatenate([[0.0], np.geomspace(until * 1e-8, until, records)]))
    begin: dict[str, Begun | Hired] = {"explore": Begun(s, s.law(explore=True), _EXPLORERS), "experts": Hired(s)}
    if s.vanilla_width:
        begin["vanilla"] = Begun(s, Experts(1, s.vanilla_width, s.kind, s.bias), _VANILLA)
    return [Stage(name, moves, enter, Record((until,))) for name, enter in begin.items()]


@dataclass(frozen=True)
class Begun:
    """A stage begins with neurons that are drawn."""

    settings: ClusterMoeSettings
    law: Experts
    purpose: int

    def __call__(self, handover: Handover, served: Numbers | None = None) -> Handover:
        problem = self.settings.problem()
        units, rows = zip(*(self.drawn(seed) for seed in handover.seeds), strict=True)
        overlaps = np.stack(rows)[..., : problem.frame.shape[1]] @ problem.frame.T
        return handover.changed(start=neurons_at(problem, stacked(list(units)), overlaps, served))

    def drawn(self, seed: int) -> tuple[Units, Numbers]:
        return drawn(self.settings.problem(), self.law, weights_of(seed, self.purpose))


@dataclass(frozen=True)
class Hired:
    """Experts drawn anew, each sent what the router of those who explored sends it."""

    settings: ClusterMoeSettings

    def __call__(self, handover: Handover) -> Handover:
        seen = routes(self.settings, handover.seeds, handover.runs["explore"])
        served = self.settings.problem().inputs.weights * np.swapaxes(seen, 1, 2)
        return Begun(self.settings, self.settings.law(explore=False), _HIRED)(handover, served)


def ended(run: Run) -> Run:
    """The run, if its neurons came to its end: of one that was cut short, the last record would be the start."""
    if StopReason.CAP in run.stopped:
        raise BadInput(f"Some neuron took {int(run.solver_steps.max())} steps before the end; try a larger rtol.")
    return run


def routes(settings: ClusterMoeSettings, seeds: tuple[int, ...], explored: Run) -> Numbers:
    """The probability that an expert sees a sample of a cluster (seed, cluster, expert)."""
    begun, final = Begun(settings, settings.law(explore=True), _EXPLORERS), ended(explored).last("overlap").values
    found = []
    for seed, overlaps in zip(seeds, final, strict=True):
        small, theta = routed(settings, *begun.drawn(seed), overlaps)
        found.append(passing(theta, small.inputs, settings.threshold))
    return np.stack(found)


def dataset(run: Run, settings: ClusterMoeSettings) -> xr.Dataset:
    """All that was recorded, along one axis of time, which every stage begins anew."""
    problem = settings.problem()
    explored, hired = run.stages["explore"], run.stages["experts"]
    seen = routes(settings, tuple(int(seed) for seed in hired.seed.values), explored)
    overlap = _noted(hired)
    data = xr.Dataset({"overlap": overlap, "stop_time": hired.stop_time}).assign(
        recorded=("seed", np.full(len(seen), overlap.sizes["time"])),
        explore_overlap=_noted(explored).rename(unit="explore_unit"),
        routed=(("seed", "cluster", "expert"), seen),
        sharp=(("seed", "expert"), sharply(seen)),
        served=(("seed", "expert"), 1 + np.argmax(seen, axis=1)),
    )
    data = data.assign_coords(cluster=np.arange(1, problem.inputs.count + 1))
    if settings.vanilla_width:
        rival = run.stages["vanilla"]
        names = {"unit": "vanilla_unit"}
        data["vanilla_overlap"] = _noted(rival).isel(expert=0).rename(names)
        data["vanilla_largest"] = rival.last("largest").isel(expert=0).drop_vars(("time", "step")).rename(names)
    data.attrs = provenance({"dynamics": "flow", **settings.model_dump(mode="json")}, None)
    return data.assign(best=best_of(data["overlap"], problem))


def _noted(run: Run) -> xr.DataArray:
    """Overlaps along time."""
    return ended(run).last("noted").drop_vars(("time", "step")).rename(moment="time")


def numbers(data: xr.Dataset) -> dict[str, list[float]]:
    """A few plain numbers of a run, for its summary."""
    found: dict[str, list[float]] = {"sharp_experts": [int(n) for n in data["sharp"].sum("expert").values]}
    if "vanilla_overlap" in data:
        largest = abs(data["vanilla_overlap"].isel(time=-1).sel(row="wg")).max("vanilla_unit")
        found["vanilla_global_overlap"] = [float(f"{value:.4g}") for value in largest.values]
    return found


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
