"""Numbers of a run computed again by a plain loop: one update after the other, one sample after the other."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.analysis import Certificate, Check, errors
from tutelage.dynamics import Learner, Samples, Stream
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings

SAMPLES = 2000
"""On how many samples of a phase the two ways are compared."""


def certify(settings: ClusterMoeSettings, data: xr.Dataset) -> Certificate:
    """Phases I, III and IV of the first seed, on some of their samples, against loops written in plain NumPy."""
    data, rows = data.isel(seed=0), []
    seed = int(data["seed"])
    start = stages.explorers(settings, seed)
    rows.append(_trained("Phase I", settings, seed, start, settings.explore_step, stages.EXPLORE))
    explored = eqx.tree_at(lambda each: each.first, start, jnp.asarray(data["explore_weights"].values))
    hired = stages.hired(settings, seed, data["router"].values, None if settings.reinitialise else explored)
    rows.append(_trained("Phase III", settings, seed, hired, settings.step, stages.EXPERTS))
    last = eqx.tree_at(lambda each: each.first, hired, jnp.asarray(data["weights"].values, settings.precision))
    rows.append(_read(settings, seed, last))
    note = f"{SAMPLES} samples of Phases I and III by a plain loop; the error of Phase IV on {SAMPLES} samples."
    return Certificate(tuple(rows), (note,))


def _trained(name: str, settings: ClusterMoeSettings, seed: int, learner: Learner, step: float, phase: int) -> Check:
    """The overlap that differs most between blocks and the loop."""
    moved = stages.trained(settings, [seed], [learner], step, SAMPLES, phase)
    ours = np.asarray(moved.final.first[0], float)
    plain = looped(learner, SAMPLES, step)
    worst = np.unravel_index(np.argmax(np.abs(ours - plain)), ours.shape)
    difference = float(np.abs(ours - plain)[worst])
    # Rounding errors of some hundred updates, which large steps may multiply.
    tolerance = 1e-9 if settings.precision == "float64" else 1e-3
    return Check(f"{name}: a weight", "plain loop", float(ours[worst]), float(plain[worst]), difference, tolerance)


def looped(learner: Learner, samples: int, step: float) -> NDArray[np.float64]:
    """Algorithm 1 word by word: project the gradient, step, normalise."""
    drawn = _drawn(learner.stream, samples)
    inputs, labels = np.asarray(drawn.inputs, float), np.asarray(drawn.labels, float)
    gates = np.ones((samples, len(learner.first)))
    if learner.theta is not None and learner.router is not None:
        scores = drawn.inputs @ learner.theta.T.astype(drawn.inputs.dtype)
        drawn_at = learner.stream.uniforms(0, samples, len(learner.first)).astype(drawn.inputs.dtype)
        gates = np.asarray(learner.router.chosen(scores, drawn_at), float)
    first = np.array(learner.first, float)
    experts = [learner.units.expert(m) for m in range(len(first))]
    outgoing = np.asarray(learner.units.outgoing)
    for x, y, seen in zip(inputs, labels, gates, strict=True):
        for m in np.flatnonzero(seen):
            pre = first[m] @ x
            slope = np.asarray(experts[m].slope(jnp.asarray(pre)))
            gradient = (y * outgoing[m] * slope)[:, None] * x
            gradient -= np.sum(gradient * first[m], axis=1, keepdims=True) * first[m]
            moved = first[m] + step * gradient
            first[m] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return first


@eqx.filter_jit
def _drawn(stream: Stream, samples: int) -> Samples:
    return stream.samples(0, samples)


def _read(settings: ClusterMoeSettings, seed: int, learner: Learner) -> Check:
    """The mean absolute error of the second layer, with and without the library's sums."""
    done = stages.read(settings, seed, learner)
    test = stages.data(settings, seed, stages.TEST)
    router = stages.final_router(settings)
    ours = errors(test, done.units, done.first, samples=SAMPLES, theta=learner.theta, router=router).absolute.value
    drawn = _drawn(test, SAMPLES)
    assert learner.theta is not None
    scores = np.asarray(drawn.inputs, float) @ np.asarray(learner.theta).T
    gates = np.asarray(router.gates(jnp.asarray(scores), test.uniforms(0, SAMPLES, len(learner.first))))
    total = np.zeros(SAMPLES)
    for m, rows in enumerate(np.asarray(done.first, float)):
        pre = np.asarray(drawn.inputs, float) @ rows.T
        units = done.units.expert(m)
        total += gates[:, m] * (np.asarray(units.value(jnp.asarray(pre))) @ np.asarray(units.outgoing)) / len(rows)
    plain = float(np.mean(np.abs(total - np.asarray(drawn.clean, float))))
    return Check("Phase IV: mean absolute error", "plain loop", ours, plain, abs(ours - plain), 1e-6 * max(plain, 1.0))
