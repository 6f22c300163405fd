"""The trained network and the kernel methods it is compared with, on the same samples of the same teacher.

All losses are the paper's, `E(f - f*)^2`, and exact: none needs a test set. The teacher has uniform weights.
"""

from functools import cache
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr

from tutelage.analysis import (
    KERNELS,
    feature_bound,
    kernel_ridge,
    random_directions,
    random_features_loss,
    tangent_features_loss,
)
from tutelage.dynamics import Record
from tutelage.oracle import EmpiricalOracle, TiedOracle, draw
from tutelage.papers.beyond_ntk import recipe
from tutelage.papers.beyond_ntk.observed import paper_loss
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
STEP = 0.3
"""Below the limit of stability, `2/(2 b_0 + 2 b_2/d)`, which is 0.37 at d = 10 and grows with d."""


class Contest(NamedTuple):
    """A dimension and a number of samples, with the width of the network and the time it is given.

    `dynamics`: descent, or the flow that it follows, which crosses a long plateau in fewer evaluations of the gradient.
    """

    dim: int
    samples: int
    width: int
    until: float
    dynamics: Literal["descent", "flow"] = "descent"

    @property
    def settings(self) -> BeyondNtkSettings:
        return BeyondNtkSettings(
            dim=self.dim, width=self.width, samples=self.samples, step=STEP, until=self.until, kappa=1.0
        )


# A network of m units needs more than m d samples, and a time that grows as d^2 to leave the plateau.
DIMENSIONS: dict[Size, tuple[Contest, ...]] = {
    "quick": (Contest(10, 1000, 40, 300.0), Contest(12, 1400, 48, 450.0)),
    "full": (
        Contest(10, 1000, 40, 600.0),
        Contest(20, 4000, 80, 2000.0),
        Contest(30, 8000, 120, 3000.0, "flow"),
        Contest(40, 16000, 160, 5000.0, "flow"),
    ),
}
SAMPLES: dict[Size, tuple[Contest, ...]] = {
    "quick": (Contest(12, 350, 48, 450.0), Contest(12, 1400, 48, 450.0)),
    "full": tuple(Contest(20, count, 80, 2000.0) for count in (500, 1000, 2000, 4000)),
}


def teacher(dim: int) -> Weights:
    """`1/d sum |x_i|`."""
    return Weights(jnp.eye(dim), jnp.full((dim, 1), 1 / dim))


def samples(settings: BeyondNtkSettings, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The examples on which the network of this seed descends."""
    chosen = recipe.problem(settings)
    oracle = draw(chosen, chosen.begin(seed, full=True).teacher, settings.samples, seed)
    assert isinstance(oracle, TiedOracle) and isinstance(oracle.plain, EmpiricalOracle)
    return np.asarray(oracle.plain.x), np.asarray(oracle.plain.y)[:, 0]


def network(contest: Contest) -> xr.Dataset:
    """The run on the samples, with the population loss along it."""
    if contest.dynamics == "flow":
        # Errors of a percent of a step are below those of descent with the step above.
        done = recipe.run(contest.settings, dynamics="flow", rtol=1e-2, record=Record(60, first=1.0))
    else:
        done = recipe.run(contest.settings, record=60)
    return done.dataset.isel(seed=0)


def network_level(contest: Contest) -> float:
    """The population loss at the end of the run."""
    return float(paper_loss(network(contest)).isel(time=-1))


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
    found["tangent features"] = tangent_features_level(contest.dim, contest.width)
    return found


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([2026, 21, seed])
