"""The error of Theorem 4.6 against each of its sizes: neurons J, samples T_4 and T_3, alignment, and dimension.

Each size is changed alone, with the others where they hardly matter. So Phase IV is looked at with experts whose
neurons are placed: every second one on the expert's local task, the others on the global one. They are routed
perfectly. Only the dependence on the dimension is that of whole runs.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from tutelage.analysis import Interval, lines, mean_interval
from tutelage.dynamics import Learner
from tutelage.oracle import shifted
from tutelage.papers.cluster_moe import runs, signs, stages
from tutelage.papers.cluster_moe.races import Whole
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers
from tutelage.study import Size

SEEDS: dict[Size, int] = {"quick": 3, "full": 8}
WIDTHS: dict[Size, tuple[int, ...]] = {"quick": (4, 8, 16), "full": (4, 8, 16, 32)}
COUNTS: dict[Size, tuple[int, ...]] = {"quick": (1000, 4000, 16_000), "full": (1000, 4000, 16_000, 64_000)}
SLIPS: dict[Size, tuple[float, ...]] = {"quick": (0.04, 0.01), "full": (0.04, 0.02, 0.01, 0.005)}
LATE: dict[Size, tuple[int, ...]] = {"quick": (240_000, 480_000), "full": (240_000, 480_000, 960_000)}
"""With fewer, the step is so large that noise turns coefficients of some neurons around: Assumption 3.4 is not met."""
DIMS: dict[Size, tuple[int, ...]] = {"quick": (10, 14), "full": (12, 16, 20, 24)}
DIM_SEEDS: dict[Size, int] = {"quick": 2, "full": 4}
RELAXED = 45.0
"""Samples with a step `e` are this many over `e`: some relaxation times, until alignment is where noise keeps it."""
RECORDS = 33
"""Of SGD from weak recovery, where signs of coefficients are looked at."""
NOISE = 3.0
LEVEL = 0.95


class Rate(NamedTuple):
    """Errors (seed, size), and the exponent of each seed's power law.

    `flipped`: the part of the neurons with a change of sign on record (Assumption 3.4); None where none is trained.
    """

    sizes: Numbers
    errors: Numbers
    flipped: float | None = None

    @property
    def slopes(self) -> Numbers:
        """Of log error against log size, for each seed."""
        return np.asarray(lines.exponent(self.sizes, self.errors.T))

    @property
    def exponent(self) -> float:
        """The mean over seeds."""
        return float(self.slopes.mean())

    @property
    def interval(self) -> Interval:
        """Student's, of that mean."""
        return mean_interval(self.slopes, LEVEL)


def laboratory(**changes: Any) -> ClusterMoeSettings:
    """Laboratory B with a wide range of biases and many samples of Phase IV."""
    plain: dict[str, Any] = {"width": 16, "ridge_samples": 20_000, "ridge_bias": 4.0, "test_samples": 20_000}
    return ClusterMoeSettings(**plain | changes)


_ALONE = laboratory(experts=2, width=128)


def placed(settings: ClusterMoeSettings, seed: int, slip: float = 0.0) -> Learner:
    """Experts whose neurons have overlaps `1 - slip` with their tasks, all that know one task in the same direction.

    One direction is the worst case: different errors of many neurons could be averaged by the second layer.
    """
    theta = np.zeros((settings.experts, settings.dim))
    mine = np.arange(settings.experts) % settings.clusters
    theta[:, : settings.problem().inputs.means.shape[1]] = settings.problem().inputs.means[mine]
    learner = stages.hired(settings, seed, theta)
    frame = np.zeros((settings.clusters + 1, settings.dim))
    frame[:, : settings.clusters + 1] = settings.problem().teacher.directions
    tasks = np.where(np.arange(settings.width) % 2 == 0, mine[:, None], settings.clusters)
    aside = np.random.default_rng([2027, 46, seed]).standard_normal((settings.experts, 2, settings.dim))
    aside[..., : settings.problem().frame.shape[1]] = 0.0
    aside /= np.linalg.norm(aside, axis=-1, keepdims=True)
    kappa = 1 - slip
    rows = kappa * frame[tasks] + np.sqrt(1 - kappa**2) * aside[:, np.arange(settings.width) % 2]
    outgoing = np.asarray(learner.units.outgoing) * _able(settings, learner, mine, tasks)
    where = lambda each: (each.first, each.units.outgoing)  # noqa: E731
    return eqx.tree_at(where, learner, (jnp.asarray(rows), jnp.asarray(outgoing)))


def _able(settings: ClusterMoeSettings, learner: Learner, mine: Whole, tasks: Whole) -> Numbers:
    """The signs with which neurons stay where they are: SGD drives one of the other sign from its task."""
    teacher, k = settings.problem().teacher, settings.exponent
    alpha = np.asarray(shifted(learner.units, jnp.zeros(learner.units.bias.shape), k + 1))[..., k]
    local = np.asarray(teacher.local)[mine, k][:, None]
    common = (np.asarray(teacher.interference)[mine] * np.asarray(teacher.shared)[k])[:, None]
    return np.sign(alpha * np.where(tasks == settings.clusters, common, local))


def _missed(settings: ClusterMoeSettings, seed: int, learner: Learner) -> float:
    return float(stages.read(settings, seed, learner).errors.absolute.value)


def _over(sizes: Sequence[float], seeds: int, missed: Callable[[Any, int], float]) -> Rate:
    return Rate(np.asarray(sizes, float), np.array([[missed(size, seed) for size in sizes] for seed in range(seeds)]))


@cache
def by_width(size: Size) -> Rate:
    """Against the neurons of an expert: perfect alignment, no noise."""

    def missed(width: int, seed: int) -> float:
        settings = laboratory(width=width)
        return _missed(settings, seed, placed(settings, seed))

    return _over(WIDTHS[size], SEEDS[size], missed)


@cache
def by_samples(size: Size) -> Rate:
    """Against T_4: the part of the root mean square error that label noise brings, with perfect alignment.

    A second layer is linear in the labels, so that this part and the rest add up in squares.
    """

    def missed(count: int, seed: int) -> float:
        noisy, clean = (_squared(laboratory(width=32, ridge_samples=count, noise=zeta), seed) for zeta in (NOISE, 0.0))
        return float(np.sqrt(max(noisy - clean, 0.0)))

    return _over(COUNTS[size], SEEDS[size], missed)


@cache
def by_slip(size: Size) -> Rate:
    """Against `1 - kappa`, the epsilon of Lemma C.26: the part of the root mean square error that it brings."""
    whole, perfect = squares(size), [[_squared(_ALONE, seed)] for seed in range(SEEDS[size])]
    return Rate(whole.sizes, np.sqrt(np.maximum(whole.errors - perfect, 0.0)))


@cache
def squares(size: Size) -> Rate:
    """The mean squared error against `1 - kappa`, of one wide expert per cluster."""
    return _over(SLIPS[size], SEEDS[size], lambda slip, seed: _squared(_ALONE, seed, slip))


def least_square(slips: Numbers) -> Numbers:
    """What no second layer gets below, of both tasks: a function of the neurons' argument has `kappa^(2k)` of h_k."""
    return 2 * (1 - (1 - slips) ** (2 * _ALONE.exponent))


def _squared(settings: ClusterMoeSettings, seed: int, slip: float = 0.0) -> float:
    return float(stages.read(settings, seed, placed(settings, seed, slip)).errors.squared.value)


@cache
def by_late(size: Size) -> Rate:
    """Against T_3: SGD from weak recovery, with steps that fall like one over the number of samples."""

    settings, flips = laboratory(width=32, dim=20), []
    frame = np.pad(settings.problem().frame, ((0, 0), (0, settings.dim - settings.problem().frame.shape[1])))

    def missed(count: int, seed: int) -> float:
        start = placed(settings, seed, 0.25)
        stops = np.linspace(0, count, RECORDS).round()
        ran = stages.trained(settings, [seed], [start], RELAXED / count, count, stages.LATE, stops)
        overlaps = ran.dataset["weights"].values[0] @ frame.T
        flips.append(float(np.mean(signs.changed(settings, start.units, overlaps))))
        return _missed(settings, seed, eqx.tree_at(lambda each: each.first, start, jnp.asarray(ran.final.first[0])))

    return _over(LATE[size], SEEDS[size], missed)._replace(flipped=max(flips))


@cache
def by_dim(size: Size) -> Rate:
    """Against d, of whole runs with `d^(k-1)` samples."""
    found = [runs.laboratory("lab_b", size, seeds=DIM_SEEDS[size], **of_dim(dim)) for dim in DIMS[size]]
    errors = np.array([data["error"].sel(network="moe").values for data in found])
    flips = [
        max(signs.of_run(runs.configured("lab_b", size, **of_dim(dim)), data))
        for dim, data in zip(DIMS[size], found, strict=True)
    ]
    return Rate(np.asarray(DIMS[size], float), errors.T, max(flips))


def of_dim(dim: int) -> dict[str, float | int]:
    """Laboratory B at another dimension, scaled from d = 20 as the theorem says, without a vanilla network.

    Steps fall like `d^(-k/2)`; samples of Phases I and III grow like `d^(k-1)`, those of Phase II like d.
    """
    scale, k = dim / 20, 4
    steps = {"explore_step": 1.3e-3, "step": 8e-4, "late_step": 1.5e-4}
    counts = {"explore_samples": 2_400_000, "samples": 900_000, "late_samples": 200_000}
    fallen = {name: step * scale ** (-k / 2) for name, step in steps.items()}
    grown = {name: round(count * scale ** (k - 1)) for name, count in counts.items()}
    return {"dim": dim, "vanilla_width": 0, "router_samples": round(400_000 * scale)} | fallen | grown
