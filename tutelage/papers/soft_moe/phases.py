"""Phases of a run, from its recorded times of recovery and annihilation (Theorem 1 and Section 4.1)."""

import numpy as np
import xarray as xr

from tutelage.analysis import Phase
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.trajectory import Run

NEEDED = ("expert_time", "router_time", "pair_time")


def phases(run: Run, settings: SoftMoeSettings) -> list[Phase]:
    """Search, recovery of teachers one after another, routers that lag behind, and what is left, seed by seed."""
    if any(name not in run.dataset for name in NEEDED):
        return []
    seeds = (run.dataset.isel(seed=[number]) for number in range(run.dataset.sizes["seed"]))
    return [phase for one in seeds for phase in _of_seed(one.squeeze("seed"), settings)]


def _of_seed(one: xr.Dataset, settings: SoftMoeSettings) -> list[Phase]:
    seed, end = int(one["seed"]), float(one["stop_time"])
    expert, router = one["expert_time"].values, one["router_time"].values
    # When each teacher is first recovered; nan if it never is.
    experts, both = (np.sort(np.fmin.reduce(times)) for times in (expert, np.maximum(expert, router)))
    met, count = experts[np.isfinite(experts)], settings.teachers
    pairs = one["pair_time"].values
    pairs = np.sort(pairs[np.triu_indices(len(pairs), 1)])
    pairs = pairs[np.isfinite(pairs)]
    found = []
    if len(pairs):
        text = f"experts become opposite and cancel each other: pairs, {len(pairs)}"
        found.append(Phase("annihilation", float(pairs[0]), float(pairs[-1]), text, seed=seed))
    if not len(met):
        return [*found, Phase("search", 0.0, end, "no expert recovers a teacher", seed=seed)]
    found.append(Phase("search", 0.0, float(met[0]), "until an expert first recovers a teacher's", seed=seed))
    text = f"experts recover {len(met)} of {count} teachers, one after another"
    found.append(Phase("recovery", float(met[0]), float(met[-1]), text, seed=seed))
    done = both[np.isfinite(both)]
    if len(done):
        text = f"routers follow their experts: {len(done)} of {count} teachers recovered by both"
        found.append(Phase("routers follow", float(met[0]), float(done[-1]), text, seed=seed))
    if len(done) == count and end > done[-1]:
        found.append(Phase("all recovered", float(done[-1]), end, "every teacher has its student", seed=seed))
    return found
