"""The trained network and the kernel methods it is compared with, on the same samples of the same teacher.

The network is that of Theorem 1.1 (`theorem`), a run for each seed; kernel methods have the samples of the first. All
losses are the paper's, `E(f - f*)^2`, and exact: none needs a test set. The teacher has uniform weights.
"""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from tutelage.analysis import (
    KERNELS,
    feature_bound,
    kernel_ridge,
    random_directions,
    random_features_loss,
    tangent_features_loss,
)
from tutelage.oracle import EmpiricalOracle, TiedOracle, draw
from tutelage.papers.beyond_ntk import recipe, theorem
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.problem import Weights
from tutelage.study import Size

RIDGES = {
    "ntk-abs": (1e-3, 0.1),
    "ntk-relu": (1e-3, 0.1),
    "arc-abs": (10.0, 1e-3, 1.0, 3.0),
    "arc-relu": (10.0, 1e-3, 1.0, 3.0),
    "rbf": (0.03, 0.01, 0.1),
}
"""Multiples of the mean of the diagonal. Tangent kernels do best with hardly any; arc-cosine kernels with one that
hides the harmonics of degree 4, as long as there are fewer samples than these. The first are the likely best: beyond
4000 samples two are tried, beyond 8000 one."""
MANY = 4000


class Contest(NamedTuple):
    """A dimension and a number of samples."""

    dim: int
    samples: int


DIMENSIONS: dict[Size, tuple[Contest, ...]] = {
    size: tuple(Contest(dim, theorem.samples(dim)) for dim in plan.dims) for size, plan in theorem.PLANS.items()
}
SAMPLES: dict[Size, tuple[Contest, ...]] = {
    "quick": tuple(Contest(12, count) for count in (350, 1728)),
    "full": tuple(Contest(16, count) for count in (500, 1000, 2000, 4096, 8000)),
}
"""From fewer samples than the network has weights, `m d`, to several times as many."""


def teacher(dim: int) -> Weights:
    """`1/d sum |x_i|`."""
    return Weights(jnp.eye(dim), jnp.full((dim, 1), 1 / dim))


def samples(settings: BeyondNtkSettings, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The examples on which the network of this seed descends."""
    chosen = recipe.problem(settings)
    oracle = draw(chosen, chosen.begin(seed, full=True).teacher, settings.samples, seed)
    assert isinstance(oracle, TiedOracle) and isinstance(oracle.plain, EmpiricalOracle)
    return np.asarray(oracle.plain.x), np.asarray(oracle.plain.y)[:, 0]


def network_levels(contest: Contest, seeds: int) -> np.ndarray:
    """The population loss at the end of Algorithm 1, seed by seed."""
    return theorem.trained(contest.dim, contest.samples, seeds)["L"].isel(time=-1).values


@cache
def ridge_level(kernel: str, dim: int, count: int, seed: int = 0) -> float:
    """Kernel ridge regression on the samples, with the ridge that is best for the population."""
    x, y = samples(BeyondNtkSettings(dim=dim, samples=count), seed)
    tried = 1 if count > 2 * MANY else 2 if count > MANY else None
    return float(kernel_ridge(kernel, x, y, teacher(dim), RIDGES[kernel][:tried]).min())


@cache
def random_features_level(dim: int, count: int, seed: int = 0) -> float:
    """The best combination of `count` random features |u.x|."""
    return random_features_loss(random_directions(count, dim, _random(seed)), teacher(dim))


@cache
def tangent_features_level(dim: int, units: int, seed: int = 0) -> float:
    """The best combination of the `units x dim` tangent features of random units."""
    return tangent_features_loss(random_directions(units, dim, _random(seed)), teacher(dim))


def bound(dim: int, count: int) -> float:
    """What no `count` features go below on average over rotations of the teacher."""
    return feature_bound(dim, np.full(dim, 1 / dim), count)


def levels(contest: Contest) -> dict[str, float]:
    """The losses of the kernel methods, by name.

    Ridge regressions on the samples, as many random features (at most 8000), and the tangent features of as many units
    as the network has.
    """
    found = {name: ridge_level(name, contest.dim, contest.samples) for name in KERNELS}
    found["random features"] = random_features_level(contest.dim, min(contest.samples, 2 * MANY))
    units = theorem.algorithm(*contest).width
    found["tangent features"] = tangent_features_level(contest.dim, units)
    return found


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([2026, 21, seed])
