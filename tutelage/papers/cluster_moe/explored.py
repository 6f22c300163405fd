"""Which neuron of an expert is the first to learn a local task in Phase I, and what its start had foretold."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutelage.papers.cluster_moe import races
from tutelage.papers.cluster_moe.passages import WEAK
from tutelage.papers.cluster_moe.races import Professionals
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Units


class Explored(NamedTuple):
    """The first to reach the level, of each expert (-1 if none does), and who was foretold by two rules."""

    first: Professionals
    by_definition: Professionals
    by_race: Professionals

    def right(self, told: Professionals) -> tuple[int, int]:
        """For how many experts the cluster was foretold, of how many in which some neuron reached the level."""
        met = self.first.cluster >= 0
        return int(np.sum(told.cluster[met] == self.first.cluster[met])), int(met.sum())


def trained(settings: ClusterMoeSettings, units: Units, overlaps: NDArray) -> Explored:
    """From records (time, expert, unit, row) of Phase I.

    Several may reach it between two records: the largest then counts as the first.
    """
    sizes = np.abs(overlaps[..., : settings.clusters])
    experts, width = sizes.shape[1], sizes.shape[-1]
    best = sizes.reshape(len(sizes), experts, -1)
    reached = best.max(-1) >= WEAK
    when, ever = reached.argmax(0), reached.any(0)
    place = best[when, np.arange(experts)].argmax(-1)
    first = Professionals(*(np.where(ever, part, -1) for part in np.divmod(place, width)))
    scores = races.scores(races.rates(settings.problem(), units, overlaps[0]), overlaps[0], settings.exponent)
    told = races.professionals(overlaps[0], settings.clusters), races.race_professionals(scores, settings.clusters)
    return Explored(first, *told)


def alone(overlaps: NDArray, clusters: int) -> NDArray[np.float64]:
    """How well one neuron stands out at some record of Phase I (time, expert, unit, row), for each expert (expert, 2).

    At the record where a local overlap has the level and the largest other overlap of the expert's neurons, local or
    global, is smallest: that other one, and its ratio to the first. Infinite if the level is never reached.
    """
    sizes = np.abs(overlaps)
    local = np.sort(sizes[..., :clusters].reshape(*sizes.shape[:2], -1), axis=-1)
    winner, other = local[..., -1], np.maximum(local[..., -2], sizes[..., clusters].max(-1))
    other = np.where(winner >= WEAK, other, np.inf)
    when = other.argmin(0), np.arange(sizes.shape[1])
    return np.stack([other[when], other[when] / winner[when]], axis=-1)
