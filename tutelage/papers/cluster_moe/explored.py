"""Which neuron of an expert is the first to learn a local task in Phase I, and what its start had foretold."""

from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from tutelage.dynamics.chain import walk
from tutelage.papers.cluster_moe import races
from tutelage.papers.cluster_moe.races import Professionals
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem.units import Experts, Units

WEAK = 0.5
"""The level a_2 of weak recovery."""


class Explored(NamedTuple):
    """The first to reach the level, of each expert (-1 if none does), and who was foretold by two rules."""

    first: Professionals
    by_definition: Professionals
    by_race: Professionals

    def right(self, told: Professionals) -> tuple[int, int]:
        """For how many experts the cluster was foretold, of how many in which some neuron reached the level."""
        met = self.first.cluster >= 0
        return int(np.sum(told.cluster[met] == self.first.cluster[met])), int(met.sum())


def foretold(settings: ClusterMoeSettings, units: Units, start: NDArray) -> tuple[Professionals, Professionals]:
    """By Definition 4.7 and by the race, from overlaps with the frame (expert, unit, row)."""
    problem = settings.problem()
    scores = races.scores(races.rates(problem, units, start), start, settings.exponent)
    return races.professionals(start, settings.clusters), races.race_professionals(scores, settings.clusters)


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
    return Explored(first, *foretold(settings, units, overlaps[0]))


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


def in_law(settings: ClusterMoeSettings, experts: int, step: float, samples: int, seed: int = 0) -> Explored:
    """Experts of independent neurons by the single-neuron chain: in law as in SGD, but for samples that they share."""
    problem, law = settings.problem(), Experts(experts, settings.explore_width, settings.kind, settings.bias)
    draw = np.random.default_rng([seed, experts])
    units, size = law.units(draw), problem.frame.shape[1]
    start = law.overlaps(draw, settings.dim, size) @ problem.frame.T
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), units)
    walked = walk(problem, flat, start.reshape(-1, start.shape[-1]), step=step, samples=samples, seed=seed)
    hits = walked.hits[0].reshape(start.shape)[..., : settings.clusters].reshape(experts, -1)
    ever = np.isfinite(hits.min(-1))
    first = Professionals(*(np.where(ever, part, -1) for part in np.divmod(hits.argmin(-1), settings.clusters)))
    return Explored(first, *foretold(settings, units, start))
