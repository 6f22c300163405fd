"""Single neurons in law, by the chain, for claims and figures: when they pass a level, and where they settle.

All neurons of one run start at the same place, with one overlap; the median is over the samples they see.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad

from tutelage import run
from tutelage.dynamics import NeuronSgd, in_basis, neurons_at
from tutelage.oracle import Balance, shifted
from tutelage.papers.cluster_moe import races
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Clustered, Experts, Numbers, Tasks, Units, activation, antipodal
from tutelage.study import Size

K = 4
RATE = 0.5  # alpha_4 beta_4/C of the unit h_4
SCALE = 0.15  # of the step, times d^(-k/2)
WEAK, STRONG = 0.5, 0.75
"""The levels a_2 of weak recovery and 1 - a_2 of the next stage."""
DIMS: dict[Size, tuple[int, ...]] = {"quick": (32, 64, 96), "full": (32, 64, 128, 256)}
NEURONS = 16
RECORDS = 40  # of a chain whose mean is taken, over their second half
PATIENCE = 4.0  # times the predicted time, after which a neuron is given up; an eighth of them is at d = 32


class Passage(NamedTuple):
    """Samples to the two levels, of each neuron, infinite if not reached; and what the noiseless equation says."""

    weak: Numbers
    strong: Numbers
    foretold_weak: float
    foretold_strong: float


def passage(dim: int) -> Passage:
    """Neurons `h_4` from the overlap 2/sqrt(d) with the first task, step 0.15 d^-2 (Lemma C.6's order)."""
    step, start = step_of(dim), start_of(dim)
    told = foretold(dim, WEAK), foretold(dim, STRONG)
    # Two antipodal clusters with `h_4`, `-h_4`, and `h_4` between them.
    about, samples = ClusterMoeSettings(dim=dim).problem(), int(PATIENCE * told[1])
    found = run(
        about,
        NeuronSgd(samples, step, levels=(WEAK, STRONG), until=(0,)),
        start=neurons_at(about, _polynomial(K, NEURONS), np.tile([start, 0, 0, 0, 0], (NEURONS, 1))),
        record=(samples,),
        seeds=[dim],
    )
    weak, strong = found.last("hit_time").values[0, :, 0, :, 0]
    return Passage(weak, strong, *told)


def step_of(dim: float) -> float:
    return SCALE * dim ** (-K / 2)


def start_of(dim: float) -> float:
    return 2 / float(np.sqrt(dim))


def foretold(dim: float, level: float) -> float:
    """Samples to a level by `d kappa/dt = step k rate kappa^(k-1) (1 - kappa^2)`, without noise."""
    whole, _ = quad(_pace, start_of(dim), level)
    return whole / (step_of(dim) * K * RATE)


def _pace(kappa: float) -> float:
    return 1 / (kappa ** (K - 1) * (1 - kappa**2))


def _polynomial(order: int, count: int) -> Units:
    return Units(jnp.ones(count), jnp.zeros(count), jnp.ones((count, 1)), lowest=order)


# How far the means turn a neuron in Phase I.

DRIFTING: dict[Size, tuple[int, ...]] = {"quick": (32, 64), "full": (32, 64, 128)}
BIAS = 0.3  # of ReLU neurons, so that a shift changes their coefficients by its first power


def drifted(dim: int, count: int = 256) -> tuple[Numbers, Numbers]:
    """The largest change of `alpha_k` of each neuron in `d^(k-1)` samples, and its largest overlap times `sqrt(d)`."""
    about, draw = ClusterMoeSettings(dim=dim).problem(), np.random.default_rng([2027, 8, dim])
    rows = in_basis(about.frame)
    units = Units(
        jnp.asarray(draw.choice([-1.0, 1.0], (1, count))), jnp.full((1, count), BIAS), kind=activation("relu")
    )
    start = Experts(1, count).overlaps(draw, dim, rows.shape[1]) @ rows.T
    samples = dim ** (K - 1)
    found = run(
        about,
        NeuronSgd(samples, step_of(dim)),
        start=neurons_at(about, units, start),
        record=np.arange(RECORDS + 1) * samples // RECORDS,
        seeds=[dim],
    )
    path, size = found.overlap.values[0, :, 0], about.inputs.radius
    shift = jnp.asarray(size * path[..., about.inputs.count + 1 :])
    moved = np.stack([np.asarray(shifted(units.expert(0), shift[..., c], K + 1))[..., K] for c in range(2)], -1)
    still = np.asarray(shifted(units.expert(0), jnp.zeros(count), K + 1))[..., K]
    return np.abs(moved - still[:, None]).max((0, -1)), np.abs(path).max((0, -1)) * np.sqrt(dim)


# Where neurons settle.

HALF = float(np.sqrt(0.5))
STEPS: dict[Size, tuple[float, ...]] = {"quick": (1.0, 0.5), "full": (2.0, 1.0, 0.5, 0.25, 0.125)}
"""Steps, over the first of each case."""


class Case(NamedTuple):
    """A neuron that begins on a task: in what dimension, with what unit and step, and what it receives."""

    name: str
    dim: int
    order: int
    """Of the polynomial unit `h_order`; 0 for ReLU."""
    bias: float
    step: float
    served: tuple[float, float]
    task: int


CASES = (
    Case("ReLU, b = -1, both clusters, d = 200", 200, 0, -1.0, 2.5e-4, (0.5, 0.5), 1),
    Case("h_3, own cluster only, d = 50", 50, 3, 0.0, 4e-5, (1.0, 0.0), 0),
)


class Settled(NamedTuple):
    """Alignments: the mean of the chain over its second half, its standard error over neurons, and the predictions."""

    measured: float
    error: float
    foretold: float
    near_one: float


def taught(case: Case) -> Clustered:
    """The paper's teacher with local tasks of unit size, `(h_3+h_5)/sqrt(2)` and `(h_3+h_4)/sqrt(2)`, and `h_3`."""
    tasks = Tasks([{3: HALF, 5: HALF}, {3: HALF, 4: HALF}], {3: 1.0}, (1.0, -1.0))
    return Clustered(antipodal(case.dim, 3.0), tasks)


def units_of(case: Case, count: int) -> Units:
    if case.order:
        return _polynomial(case.order, count)
    return Units(jnp.ones(count), jnp.full(count, case.bias), kind=activation("relu"))


def balance_of(case: Case) -> Balance:
    return Balance(taught(case), units_of(case, 1), case.task, case.served)


def settled(case: Case, step: float, relaxations: float = 8.0, count: int = NEURONS) -> Settled:
    """The chain from full alignment, through some relaxation times of the linear law near 1."""
    balance = balance_of(case)
    pull = float(balance.drift(0.95)[0]) / (1 - 0.95**2)
    samples = int(relaxations / (2 * step * pull))
    about, start = taught(case), np.tile(np.eye(5)[case.task], (count, 1))
    found = run(
        about,
        NeuronSgd(samples, step),
        start=neurons_at(about, units_of(case, count), start, case.served),
        record=np.arange(RECORDS + 1) * samples // RECORDS,
        seeds=[case.dim],
    )
    path = found.overlap.values[0, :, 0, :, case.task]
    seen = path[len(path) // 2 :].mean(0)
    error = float(seen.std(ddof=1) / np.sqrt(count))
    return Settled(float(seen.mean()), error, float(balance.stationary(step)[0]), float(balance.near_one(step)[0]))


# Who wins in an expert.

EXPERTS: dict[Size, int] = {"quick": 24, "full": 200}
WIDTH = 4
EXPLORE_STEP = 3e-4


class Won(NamedTuple):
    """Of each expert whose race has ended: who won, and who was foretold by the race and by Definition 4.7."""

    seen: races.Professionals
    race: races.Professionals
    printed: races.Professionals
    lost: int
    """Experts in which no neuron has passed in time."""


def won(experts: int, samples: int = 250_000) -> Won:
    """Experts of the default laboratory (d = 30, ReLU), whose neurons here see samples of their own."""
    settings = ClusterMoeSettings()
    about, draw = settings.problem(), np.random.default_rng([2027, 7])
    rows = in_basis(about.frame)
    law = Experts(experts, WIDTH, "relu")
    units, start = law.units(draw), law.overlaps(draw, settings.dim, rows.shape[1]) @ rows.T
    scores = races.scores(races.rates(about, units, start), start, K)
    clusters = settings.clusters
    found = run(
        about,
        NeuronSgd(samples, EXPLORE_STEP, levels=(WEAK,), until=tuple(range(clusters))),
        start=neurons_at(about, units, start),
        record=(samples,),
        seeds=[7],
    )
    hits = found.last("hit_time").values[0, 0, ..., :clusters]
    # Some start above the level at d = 30: they have won at time 0.
    ended = np.isfinite(hits).any((1, 2))
    seen = races.professionals(-hits[ended], clusters)
    foretold = races.race_professionals(scores[ended], clusters), races.professionals(start[ended], clusters)
    return Won(seen, *foretold, int(np.sum(~ended)))
