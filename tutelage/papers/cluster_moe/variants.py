"""Laboratory B with one assumption changed: what the vanilla network is protected by, label noise, tasks, means."""

from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tutelage.oracle import ClusterOracle, passing
from tutelage.papers.cluster_moe import runs
from tutelage.papers.cluster_moe.learned import error_ratio
from tutelage.papers.cluster_moe.recipe import run
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Experts, Numbers
from tutelage.study import Size

LEARNT = 0.5
"""A neuron of the vanilla network has learned the global task when its overlap with it ends above this."""
_BRIEF: dict[str, Any] = {
    "dim": 10,
    "explore_step": 3e-3,
    "explore_samples": 120_000,
    "router_samples": 40_000,
    "step": 2e-3,
    "samples": 120_000,
    "late_step": 4e-4,
    "late_samples": 40_000,
    "ridge_samples": 4_000,
    "vanilla_width": 48,
    "test_samples": 4_000,
}
SIZES: dict[Size, dict[str, Any]] = {"quick": _BRIEF, "full": runs.SMALL}
"""In full the dimension is 20, a third of the work of 30."""


class Variant(NamedTuple):
    """What is changed, as a function of d where it depends on it, and over how many seeds in full size."""

    label: str
    changes: dict[str, Any]
    per_root: tuple[str, ...] = ()
    """Settings that are `1/sqrt(d)`."""
    seeds: int = 4


VARIANTS = {
    "plain": Variant("laboratory B", {}),
    "biases": Variant("biases in [-1, 1]", {"bias": 1.0}, seeds=8),
    "orthogonal": Variant("orthogonal means", {"means": "orthogonal"}, seeds=8),
    "noise": Variant("label noise 1", {"noise": 1.0}),
    "correlated": Variant("tasks correlated", {}, ("correlation",)),
    "slanted": Variant("means slanted", {}, ("slant",)),
}
UNPROTECTED = ("biases", "orthogonal")
"""Where nothing keeps a vanilla network from the global task."""


def settings_of(name: str, size: Size) -> ClusterMoeSettings:
    """The settings of a variant."""
    return runs.configured("lab_b", size, **_changes(name, size))


def _changes(name: str, size: Size) -> dict[str, Any]:
    variant, plain = VARIANTS[name], SIZES[size]
    return plain | variant.changes | dict.fromkeys(variant.per_root, plain["dim"] ** -0.5)


def trained(name: str, size: Size) -> xr.Dataset:
    """The Dataset of a variant's run."""
    seeds = VARIANTS[name].seeds if size == "full" else 2
    return runs.laboratory("lab_b", size, seeds=seeds, **_changes(name, size))


def ratios(name: str, size: Size) -> Numbers:
    """The mixture's error over that of the vanilla network, by seed."""
    return error_ratio(trained(name, size))


def sharp_shares(data: xr.Dataset) -> Numbers:
    """The part of the experts that are routed sharply, by seed."""
    return data["sharp"].mean("expert").values


def global_shares(data: xr.Dataset) -> Numbers:
    """The part of the vanilla neurons that end with the global task, by seed."""
    last = abs(data["vanilla_overlap"].isel(vanilla_time=-1).sel(row="wg"))
    return (last > LEARNT).mean("vanilla_unit").values


# The distance rho of the means from the origin, as d grows.

RADII = (0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
RADIUS_DIMS: dict[Size, tuple[int, ...]] = {"quick": (10**2, 10**6), "full": (10**2, 10**4, 10**8)}
RADIUS_SEEDS: dict[Size, int] = {"quick": 1, "full": 4}


@cache
def by_radius(size: Size) -> Numbers:
    """The part of the experts routed sharply, (dim, radius, seed), in expectation. The last radius is log d."""
    return np.array([[_sharp(dim, radius, size) for radius in (*RADII, np.log(dim))] for dim in RADIUS_DIMS[size]])


def _sharp(dim: int, radius: float, size: Size) -> Numbers:
    settings = ClusterMoeSettings(dim=dim, radius=float(radius), width=1, vanilla_width=0)
    found = run(settings, dynamics="flow", record=2, seeds=RADIUS_SEEDS[size]).dataset
    return sharp_shares(found)


def most_routed(radius: float) -> float:
    """The largest probability of a sample of a cluster that any row has at threshold 0: that of the mean itself."""
    inputs = ClusterMoeSettings(dim=4, radius=radius).problem().inputs  # the mean has as many entries
    return float(passing(np.asarray(inputs.means[:1]), inputs, 0.0)[0, 0])


# Means that are not orthogonal to tasks.

SLANT_DIMS: dict[Size, tuple[int, ...]] = {"quick": (10**2, 10**6), "full": (10**2, 10**4, 10**6, 10**8)}
NEURONS = 400


def perturbation(dim: int) -> float:
    """How much larger the force of a slant 1/sqrt(d) on starting neurons is than the force without it, in the median.

    Forces are those along the tasks. Lower orders than k come in with the shift `rho/sqrt(d)` of the argument.
    """
    units = Experts(1, NEURONS, "relu").units(np.random.default_rng([2027, 33]))
    with_it, without = (_force(ClusterMoeSettings(dim=dim, slant=slant), units) for slant in (dim**-0.5, 0.0))
    return float(np.median(np.linalg.norm(with_it - without, axis=-1) / np.linalg.norm(without, axis=-1)))


def _force(settings: ClusterMoeSettings, units: Any) -> Numbers:
    problem = settings.problem()
    draw = np.random.default_rng([2027, 34])
    inside = Experts(1, NEURONS, "relu").overlaps(draw, settings.dim, problem.frame.shape[1])
    force = ClusterOracle(problem).field(units, jnp.asarray(inside @ problem.frame.T)).force
    return np.asarray(force)[0, :, : settings.clusters + 1]
