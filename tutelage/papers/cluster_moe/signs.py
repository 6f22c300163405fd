"""Assumption 3.4 along a run: whether the coefficients of its neurons have kept their signs."""

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.analysis import Hypothesis
from tutelage.oracle import ClusterOracle
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.cluster_moe.vanilla import coefficients
from tutelage.problem import Units

UNTRAINED = Hypothesis("Assumption 3.4: coefficients keep their signs, as neurons are placed and not trained", True)


class Changed(NamedTuple):
    """The part of the neurons that had a change of sign on record, in Phases I and III."""

    explore: float
    experts: float


def changed(settings: ClusterMoeSettings, units: Units, overlaps: NDArray) -> NDArray[np.bool_]:
    """Which neurons have had `alpha_k(b + rho nu_c)` of both signs, for some cluster, in records (time, ...)."""
    k = settings.exponent
    alpha = coefficients(ClusterOracle(settings.problem()), units, overlaps, k + 1)[..., k]
    return np.any(alpha * alpha[0] < 0, axis=(0, -1))


def of_run(settings: ClusterMoeSettings, data: xr.Dataset) -> Changed:
    """Of all seeds of a run of the four phases, by its Dataset."""
    found = []
    for number, seed in enumerate(data["seed"].values.tolist()):
        explorers = stages.explorers(settings, seed)
        hired = stages.hired(settings, seed, data["router"].values[number])
        pairs = ((explorers, "explore_overlap"), (hired, "overlap"))
        found.append([np.mean(changed(settings, learner.units, data[name].values[number])) for learner, name in pairs])
    return Changed(*np.mean(found, axis=0).tolist())


def kept(share: float) -> Hypothesis:
    """Assumption 3.4 as a hypothesis of what was trained: no coefficient changes its sign."""
    return Hypothesis("Assumption 3.4: part of the neurons whose alpha_k changes its sign", share == 0, share, 0.0)
