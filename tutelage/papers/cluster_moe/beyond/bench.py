"""Many second layers of the same features: routers and sets of experts are changed, and the ridge is fitted again.

What experts say about the samples of Phase IV and of the test is kept, so that another router is another mask, and a
set of experts a part of the same normal equations. Experts that are active have weight 1, whatever the router.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tutelage import BadInput
from tutelage.dynamics import Learner, Stream
from tutelage.papers.cluster_moe import stages
from tutelage.papers.cluster_moe.runs import configured, laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import First, Numbers, Router, Units, unit_values
from tutelage.study import Size

CHUNK = 8192


class Batch(NamedTuple):
    """What experts say (sample, expert, unit), the router's scores, its random numbers, and labels."""

    said: Numbers
    scores: Numbers
    uniforms: Numbers
    labels: Numbers
    clean: Numbers


class Tried(NamedTuple):
    """Of sets of experts: mean absolute errors on the test, and what the fit takes off the mean squared label.

    `active`: how many of all experts are active a sample; `idle`: for what part of the samples none is.
    """

    errors: Numbers
    gains: Numbers
    active: float
    idle: float


class Bench:
    """One seed of a laboratory after Phase III; signs and biases are those of its own Phase IV."""

    def __init__(self, settings: ClusterMoeSettings, seed: int, learner: Learner):
        if learner.theta is None:
            raise BadInput("Bench: the learner has no router, but experts behind one were expected.")
        units, first = stages.readers(settings, seed, learner)
        self.settings, self.shape = settings, first.shape[:2]
        self.fitted = _batch(settings, seed, stages.READOUT, settings.ridge_samples, units, first, learner.theta)
        self.test = _batch(settings, seed, stages.TEST, settings.test_samples, units, first, learner.theta)
        self.scale = np.linalg.norm(np.asarray(learner.theta), axis=1)

    def tried(self, router: Router, sets: Sequence[Sequence[int]] | None = None) -> Tried:
        """The ridge fitted again with this router, for each set of experts; with all of them if none is given."""
        sets = [range(self.shape[0])] if sets is None else sets
        if any(not len(each) for each in sets):
            raise BadInput("Bench: a set of experts is empty, but at least one expert was expected.")
        # What active experts say about the samples of Phase IV; zero for the others.
        said = self.fitted.said * _active(router, self.fitted)[..., None]
        features = said.reshape(len(said), -1)
        gram, right = features.T @ features, features.T @ self.fitted.labels
        found = np.zeros((len(right), len(sets)))
        for column, each in enumerate(sets):
            mine = np.isin(np.repeat(np.arange(self.shape[0]), self.shape[1]), list(each))
            matrix = gram[np.ix_(mine, mine)] / len(features) + self.settings.ridge * np.eye(mine.sum())
            found[mine, column] = cho_solve(cho_factor(matrix), right[mine] / len(features))
        active = _active(router, self.test)
        idle = 1 - active.any(axis=1).mean()
        gains = right @ found / len(features)
        return Tried(self._missed(active, found), gains, float(active.sum(axis=1).mean()), float(idle))

    def _missed(self, active: NDArray[np.bool_], found: Numbers) -> Numbers:
        total = np.zeros(found.shape[1])
        for start in range(0, len(active), CHUNK):
            piece = slice(start, start + CHUNK)
            said = (self.test.said[piece] * active[piece][..., None]).reshape(-1, len(found))
            total += np.sum(np.abs(said @ found - self.test.clean[piece][:, None]), axis=0)
        return total / len(active)


def benches(size: Size) -> Iterator[Bench]:
    """A bench for each seed of the default laboratory, one at a time: each holds all that is said."""
    settings, run = configured("lab_b", size), laboratory("lab_b", size)
    for number, seed in enumerate(run["seed"].values):
        yield Bench(settings, int(seed), stages.learned(settings, run, number))


def _batch(
    settings: ClusterMoeSettings, seed: int, phase: int, samples: int, units: Units, first: First, theta: jax.Array
) -> Batch:
    data = stages.data(settings, seed, phase)
    parts = [_said(data, units, first, theta, jnp.asarray(at), CHUNK) for at in range(0, samples, CHUNK)]
    return Batch(*(np.concatenate([np.asarray(each) for each in kind])[:samples] for kind in zip(*parts, strict=True)))


@eqx.filter_jit
def _said(
    data: Stream, units: Units, first: First, theta: jax.Array, at: jax.Array, count: int
) -> tuple[jax.Array, ...]:
    drawn = data.samples(at, count)
    scores = drawn.inputs.astype(float) @ theta.T
    uniforms = data.uniforms(at, count, len(theta))
    return unit_values(units, first, drawn.inputs), scores, uniforms, drawn.labels, drawn.clean


def _active(router: Router, batch: Batch) -> NDArray[np.bool_]:
    return np.asarray(router.chosen(jnp.asarray(batch.scores), jnp.asarray(batch.uniforms)))
