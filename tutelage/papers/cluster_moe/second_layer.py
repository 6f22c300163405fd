"""How the error falls with the experts' width and with the samples of Phase IV: second layers fitted again.

Neurons do not meet in Phase III, where the loss is the correlation. So the first neurons of an expert are an expert of
that width.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import xarray as xr

from tutelage.analysis import lines
from tutelage.dynamics import Learner
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers

PARTS = (4, 2, 1)
"""Widths are those of the run over these."""
BATCHES = (16, 4, 1)


def learned(settings: ClusterMoeSettings, data: xr.Dataset, number: int) -> Learner:
    """The experts of a run's seed (by its place) after Phase III."""
    seed = int(data["seed"].values[number])
    learner = stages.hired(settings, seed, data["router"].values[number])
    return eqx.tree_at(lambda each: each.first, learner, jnp.asarray(data["weights"].values[number]))


def by_width(settings: ClusterMoeSettings, data: xr.Dataset) -> xr.DataArray:
    """Mean absolute errors (seed, width)."""
    widths = [settings.width // part for part in PARTS]
    rows = []
    for number, seed in enumerate(map(int, data["seed"].values)):
        learner = learned(settings, data, number)
        units, first = stages.readers(settings, seed, learner)
        parts = [(jax.tree.map(lambda leaf, width=width: leaf[:, :width], units), first[:, :width]) for width in widths]
        found = [stages.reread(settings, seed, *part, learner.theta).errors for part in parts]
        rows.append([each.absolute.value for each in found])
    return xr.DataArray(rows, dims=("seed", "width"), coords={"width": widths})


def by_samples(settings: ClusterMoeSettings, data: xr.Dataset) -> xr.DataArray:
    """Mean absolute errors (seed, samples)."""
    counts = [settings.ridge_samples // part for part in BATCHES]
    rows = [
        [
            stages.read(settings.model_copy(update={"ridge_samples": count}), seed, learned(settings, data, number))
            .errors.absolute.value
            for count in counts
        ]
        for number, seed in enumerate(map(int, data["seed"].values))
    ]  # fmt: skip
    return xr.DataArray(rows, dims=("seed", "samples"), coords={"samples": counts})


def slopes(errors: xr.DataArray) -> Numbers:
    """Of log error against the log of the second axis, for each seed."""
    return lines.exponent(errors[errors.dims[1]].values, errors.values.T)
