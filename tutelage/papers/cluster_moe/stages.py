"""The parts of the paper's algorithm, one seed at a time: who learns from which stream, with what step.

Streams and draws are numbered by what they are for, so that every part can be made again by itself.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array
from numpy.typing import ArrayLike

from tutelage import run
from tutelage.analysis import Errors, Readout, errors, ridge
from tutelage.dynamics import ExpertWeights, Learner, Record, Routed, Spherical, Stream, route, stacked, stream
from tutelage.oracle import expected_router
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Experts, Numbers, Router, Start, Threshold, Top1, TopK, Units, activation
from tutelage.problem import stream as weights_of
from tutelage.trajectory import Run

# Numbers of the streams of samples; the vanilla network sees the same as the experts.
EXPLORE, ROUTER, EXPERTS, LATE, READOUT, TEST = range(1, 7)
# Numbers of the streams of weights.
_EXPLORERS, _HIRED, _READERS, _VANILLA, _VANILLA_READERS = range(11, 16)


def data(settings: ClusterMoeSettings, seed: int, phase: int) -> Stream:
    """The samples of a phase."""
    return stream(settings.problem(), seed, phase, settings.precision)


def final_router(settings: ClusterMoeSettings) -> Router:
    """Who sees what in Phases III and IV."""
    return Threshold(settings.threshold) if settings.top_k is None else TopK(settings.top_k)


def explorers(settings: ClusterMoeSettings, seed: int) -> Learner:
    """Phase I: every sample goes to one expert, drawn among all, because all scores are zero."""
    units, first = settings.law(explore=True).draw(weights_of(seed, _EXPLORERS), settings.dim)
    theta = jax.device_put(np.zeros((settings.experts, settings.dim)))
    return Learner(data(settings, seed, EXPLORE), units, _cast(settings, first), theta, Top1())


def routed(settings: ClusterMoeSettings, seed: int, units: Units, first: ArrayLike) -> Routed:
    """Phase II, by samples."""
    return route(
        data(settings, seed, ROUTER), units, jnp.asarray(first, float), samples=settings.router_samples,
        steps=settings.router_steps, step=settings.router_step, router=Top1(settings.router_noise),
        rao_blackwell=settings.average_ties and not settings.router_noise,
    )  # fmt: skip


def expected(settings: ClusterMoeSettings, units: Units, first: ArrayLike) -> Numbers:
    """Phase II in expectation: the router after one step, without samples."""
    return expected_router(settings.problem(), units, np.asarray(first, float), step=settings.router_step)


def hired(settings: ClusterMoeSettings, seed: int, theta: ArrayLike, kept: Learner | None = None) -> Learner:
    """Phase III: every expert with a high enough score learns; experts are drawn anew, or are those that explored."""
    units, drawn = settings.law(explore=False).draw(weights_of(seed, _HIRED), settings.dim)
    first = _cast(settings, drawn)
    if kept is not None:
        units, first = kept.units, kept.first
    rows = jax.device_put(np.asarray(theta))
    return Learner(data(settings, seed, EXPERTS), units, first, rows, final_router(settings))


def learned(settings: ClusterMoeSettings, data: xr.Dataset, number: int) -> Learner:
    """The experts of a run's seed (by its place) after Phase III."""
    learner = hired(settings, int(data["seed"].values[number]), data["router"].values[number])
    return eqx.tree_at(lambda each: each.first, learner, jnp.asarray(data["weights"].values[number]))


def vanilla(settings: ClusterMoeSettings, seed: int) -> Learner:
    """One network without a router, which sees every sample."""
    law = Experts(1, settings.vanilla_width, settings.kind, settings.bias)
    units, first = law.draw(weights_of(seed, _VANILLA), settings.dim)
    return Learner(data(settings, seed, EXPLORE), units, _cast(settings, first))


class Read(NamedTuple):
    """A second layer and how good it is; `units` have it, `first` has the flipped signs."""

    readout: Readout
    errors: Errors
    units: Units
    first: Array


def read(settings: ClusterMoeSettings, seed: int, learner: Learner) -> Read:
    """Phase IV: signs and biases drawn anew, ridge regression, and the error on fresh samples."""
    units, first = readers(settings, seed, learner)
    return reread(settings, seed, units, first, learner.theta)


def readers(settings: ClusterMoeSettings, seed: int, learner: Learner) -> tuple[Units, Array]:
    """The features of a seed's Phase IV: units with its activation, and incoming weights.

    Each neuron's sign is flipped or not, and its bias is uniform on [-C_b, C_b].
    """
    draw = weights_of(seed, _VANILLA_READERS if learner.theta is None else _READERS)
    shape = learner.first.shape[:2]
    signs = draw.choice([-1.0, 1.0], shape) if settings.flip else np.ones(shape)
    bias = draw.uniform(-1, 1, shape) * settings.ridge_bias
    units = eqx.tree_at(lambda each: each.bias, learner.units, jax.device_put(bias))
    if settings.ridge_activation is not None:
        units = Units(units.outgoing, units.bias, kind=activation(settings.ridge_activation))
    return units, jax.device_put(signs[..., None] * np.asarray(learner.first, float))


def reread(settings: ClusterMoeSettings, seed: int, units: Units, first: Array, theta: Array | None) -> Read:
    """The second layer of these features, by ridge regression, and its error."""
    routing: dict[str, Any] = {"theta": theta, "router": final_router(settings) if theta is not None else None}
    found = ridge(
        data(settings, seed, READOUT), units, first, samples=settings.ridge_samples, penalty=settings.ridge, **routing
    )
    units = found.put(units)
    missed = errors(data(settings, seed, TEST), units, first, samples=settings.test_samples, **routing)
    return Read(found, missed, units, first)


def start(settings: ClusterMoeSettings, learners: list[Learner]) -> Start:
    """From where learners, one for each seed, are trained."""
    weights = [ExpertWeights(each.first, each.units, each.theta) for each in learners]
    return Start(jax.device_put(settings.problem().frame), stacked(weights))


def trained(
    settings: ClusterMoeSettings,
    seeds: list[int],
    learners: list[Learner],
    step: float,
    samples: int,
    phase: int,
    stops: ArrayLike = (0.0,),
) -> Run:
    """Learners of these seeds through `samples` samples of a phase; weights are recorded."""
    moves = Spherical(samples, step, None, learners[0].router, precision=settings.precision, phase=phase)
    seen = Record(np.asarray(stops, float), observables=(), weights=True)
    return run(settings.problem(), moves, seeds=seeds, start=start(settings, learners), record=seen)


def _cast(settings: ClusterMoeSettings, first: ArrayLike) -> Array:
    return jax.device_put(np.asarray(first, settings.precision))
