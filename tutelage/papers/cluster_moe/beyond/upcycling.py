"""Experts copied from one dense network, in place of experts that begin at random.

A dense network sees every sample, an expert that explores one in M, so that its neurons are M times as fast. Its
neurons are dealt to the experts: each gets some of them at random, perturbed. Were all experts the same copy, all `V_m`
would be the same, and the router `V_m - mean V` zero: symmetric experts cannot be told apart.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage import BadInput
from tutelage.dynamics import Learner
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.beyond.exploring import by_record, followed, tried
from tutelage.papers.cluster_moe.runs import SEEDS, configured
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers, Units
from tutelage.problem import stream as weights_of
from tutelage.study import Size

SHAKES = (0.0, 0.5, 1.0)
"""How large the perturbation of a copied neuron is, as a multiple of its length."""
SHAKEN = SHAKES[1]
DEALS: dict[Size, int] = {"quick": 3, "full": 16}
"""How often the neurons of a dense network are dealt."""
DENSE, LATER = 1 / 6, 1 / 6
"""How long the dense network learns, and how long copies explore, as parts of the samples of Phase I."""
RECORDS: dict[Size, int] = {"quick": 7, "full": 24}
_DEAL, _ONWARDS = 31, 7  # streams of weights and of samples


def dealt(
    settings: ClusterMoeSettings, units: Units, first: Numbers, shake: float, draw: np.random.Generator
) -> tuple[Units, Numbers]:
    """Experts of `explore_width` neurons each, drawn without return from the units of one network (1, unit, dim).

    A neuron becomes `w + shake g`, normalised, with `g` Gaussian of expected squared length 1; its sign and bias stay.
    """
    count, width = settings.experts, settings.explore_width
    if width > first.shape[1]:
        raise BadInput(
            f"dealt: experts of {width} neurons were asked for, but the network has {first.shape[1]}; use a wider one."
        )
    places = np.stack([draw.choice(first.shape[1], width, replace=False) for _ in range(count)])
    rows = first[0][places]
    rows = rows + shake * draw.standard_normal(rows.shape) / np.sqrt(rows.shape[-1])
    mine = jax.tree.map(lambda leaf: leaf[0][places], units)
    return mine, rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def copied(size: Size) -> xr.Dataset:
    """Phase II with copies of a dense network of any age, by perturbation: `aim` (seed, time, shake, deal)."""
    settings = configured("lab_b", size, average_ties=False)
    learners, times, first = _dense(size)
    data = by_record(lambda seed, units, at: _dealt_at(settings, size, seed, units, at), learners, first)
    return data.sel(batch=0, drop=True).assign_coords(time=times)


def continued(size: Size) -> xr.Dataset:
    """Copies of the dense network at half of its time, perturbed, explore on; time counts all samples."""
    settings = configured("lab_b", size, average_ties=False)
    learners, times, first = _dense(size)
    place = int(np.searchsorted(times, times[-1] / 2))
    copies = [
        _explorer(settings, seed, *dealt(settings, learner.units, rows[place], SHAKEN, weights_of(seed, _DEAL)))
        for seed, (learner, rows) in enumerate(zip(learners, first, strict=True))
    ]
    samples = int(LATER * settings.explore_samples)
    # On samples that the dense network has not seen.
    later, moved = followed(settings, copies, samples, RECORDS[size], _ONWARDS)
    data = by_record(lambda seed, units, at: tried(settings, seed, units, at), copies, moved)
    return data.sel(batch=0, drop=True).assign_coords(time=times[place] + later)


def _dense(size: Size) -> tuple[list[Learner], NDArray, Numbers]:
    settings = configured("lab_b", size, average_ties=False)
    learners = [stages.vanilla(settings, seed) for seed in range(SEEDS[size])]
    samples = int(DENSE * settings.explore_samples)
    return learners, *followed(settings, learners, samples, RECORDS[size])


def _dealt_at(settings: ClusterMoeSettings, size: Size, seed: int, units: Units, first: Numbers) -> xr.Dataset:
    draw = weights_of(seed, _DEAL)
    shakes = [
        xr.concat(
            [tried(settings, seed, *dealt(settings, units, first, shake, draw)) for _ in range(DEALS[size])], "deal"
        )
        for shake in SHAKES
    ]
    return xr.concat(shakes, "shake").assign_coords(shake=list(SHAKES))[["aim", "size"]]


def _explorer(settings: ClusterMoeSettings, seed: int, units: Units, first: Numbers) -> Learner:
    """Copies in Phase I."""
    learner = stages.explorers(settings, seed)
    return eqx.tree_at(lambda each: (each.units, each.first), learner, (units, jnp.asarray(first, settings.precision)))
