"""The population side of Example 4.1 and Theorem 4.3: what the neurons of a network without a router learn.

Theorem 4.3 says that no neuron learns the global task. Its proof takes for granted that a neuron's overlaps with the
learnable local tasks are of order `d^-1/2` (Lemma B.9; `Race.ready`). A fraction of about `d^{-|C_j|/(2(k-2))}` of the
neurons starts with less, and with ReLU these go to the global task: see `Escapes.predicted`.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from tutelage import run
from tutelage.analysis import Interval, lines
from tutelage.dynamics import NeuronFlow, initial, neurons_at
from tutelage.oracle import ClusterOracle
from tutelage.papers.cluster_moe.expected import ended
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Experts, Numbers, Units
from tutelage.study import Size
from tutelage.trajectory import Run

Flags = NDArray[np.bool_]

LEARNT = 0.5  # an overlap from which on a task counts as learnt; neurons then go on to their end points
PATIENCE = 1e14  # the time given to a race, in units of d^((k-2)/2), the time of a typical start
RTOL = 1e-6  # of a step; which task wins does not change with 1e-8
RECORDS = 32  # of every race, so that all races of one kind share a compiled program
WIDTH = 800  # neurons of a race in the claims
DIMS: dict[Size, tuple[int, ...]] = {
    "quick": (10**2, 10**4, 10**6, 10**8),
    "full": (10**2, 10**4, 10**6, 10**8, 10**10, 10**12),
}
ROUNDS: dict[Size, int] = {"quick": 1, "full": 10}  # races of `WIDTH` neurons at each dimension
ASYMPTOTIC = 10**4  # from here on the fraction of neurons that learn the global task is compared with a power of d
BEYOND = (
    -3.4,
    -2.9,
)  # biases left of all zeros of `alpha_6` and of its maximum at -2.86, where every flow along a mean ends
BIAS = 0.3  # biases up to this: `alpha_6(b + rho nu)` of ReLU, zero at 0.74, keeps its sign along the whole flow


def example(dim: int, *, exponent: int = 6, clusters: int = 2, **changes: Any) -> ClusterMoeSettings:
    """Example 4.1 with `h_k` for `He_k`: `f_c = (-1)^c h_k`, `g = h_k`, `s = (1, -1, 0, ...)`; ReLU unless changed.

    ```python
    >>> from tutelage.papers.cluster_moe.vanilla import example
    >>> example(10**4, clusters=3).interference
    (1.0, -1.0, 0.0)

    ```
    """
    values: dict[str, Any] = {
        "dim": dim,
        "radius": 1.0,
        "means": "orthogonal",
        "local": tuple({exponent: (-1.0) ** c} for c in range(clusters)),
        "shared": {exponent: 1.0},
        "interference": (1.0, -1.0, *[0.0] * (clusters - 2)),
        "bias": BIAS,
    }
    return ClusterMoeSettings(**values | changes)


PROTECTED: dict[str, Any] = {"activation": "polynomial", "radius": 3.0, "bias": 0.0}
"""Changes of `example` to `a h_k`, whose coefficient of order k does not depend on the shift: nothing drives `xi`."""


@dataclass(frozen=True)
class Ends:
    """What became of neurons: overlaps (unit, row), their suprema, when they crossed the threshold, and when a
    coefficient changed its sign (unit, cluster, order); times are infinite if it never happened."""

    final: Numbers
    largest: Numbers
    crossed: Numbers
    flipped: Numbers


@dataclass(frozen=True)
class Race:
    """Neurons of a vanilla network from random starts, each to its end.

    - `start` (unit, row), `rates` (unit, task): while overlaps are small, `d|o_i|/dt = k rates_i |o_i|^(k-1)`.
    - `flow`: what became of them.
    """

    dim: int
    exponent: int
    units: Units
    start: Numbers
    rates: Numbers
    flow: Ends

    @property
    def clusters(self) -> int:
        return self.rates.shape[1] - 1

    @property
    def learnable(self) -> Flags:
        """`C_j` of Definition B.8 as a table (unit, cluster): `beta_{c,k} alpha_k(b + rho nu_c) > 0` at the start."""
        return self.rates[:, :-1] > 0

    @property
    def ready(self) -> Flags:
        """The neurons all of whose learnable overlaps start with `d^-1/2` or more: Lemma B.9's first condition."""
        tasks = np.abs(self.start[:, : self.clusters]) * np.sqrt(self.dim)
        return np.asarray(np.all((tasks >= 1) | ~self.learnable, axis=-1))

    @property
    def escaped(self) -> Flags:
        """Which neurons ever learn the global task: `sup_t |xi|` is what Theorem 4.3 bounds."""
        return np.asarray(self.flow.largest[:, self.clusters] > LEARNT)

    @property
    def flips(self) -> Flags:
        """Which neurons break Assumption 3.4: `alpha_k(b + rho nu_c)` changes its sign for some cluster."""
        return np.asarray(np.isfinite(self.flow.flipped[:, :, self.exponent]).any(-1))

    @property
    def shared(self) -> Flags:
        """Which neurons end on the global task."""
        return np.abs(self.flow.final[:, self.clusters]) > LEARNT

    @property
    def local(self) -> Flags:
        """Which neurons end on a local task."""
        return np.abs(self.flow.final[:, : self.clusters]).max(-1) > LEARNT

    @property
    def highest(self) -> Numbers:
        """`sup_t |xi| sqrt(d)` of each neuron."""
        return self.flow.largest[:, self.clusters] * np.sqrt(self.dim)

    @property
    def favourite(self) -> NDArray[np.int64]:
        """The task that wins the race by its start: the largest `rates_i |o_i|^(k-2)`; the last is the global one."""
        tasks = np.abs(self.start[:, : self.clusters + 1])
        return np.argmax(self.rates * tasks ** (self.exponent - 2), axis=-1)


def coefficients(oracle: ClusterOracle, units: Units, overlaps: ArrayLike, count: int) -> Numbers:
    """`alpha_i(b + rho nu_c)` (unit, cluster, order) for orders below `count`."""
    return np.asarray(_coefficients(oracle, units, jnp.asarray(overlaps), count))


@eqx.filter_jit
def _coefficients(oracle: ClusterOracle, units: Units, overlaps: Array, count: int) -> Array:
    return oracle.coefficients(units, overlaps, count)


@eqx.filter_jit
def _rates(oracle: ClusterOracle, units: Units, overlaps: Array, exponent: int) -> Array:
    return oracle.rates(units, overlaps, exponent)


def race(
    settings: ClusterMoeSettings,
    count: int = WIDTH,
    seed: int = 0,
    *,
    threshold: float = LEARNT,
    served: tuple[float, ...] | None = None,
    biases: tuple[float, float] | None = None,
) -> Race:
    """`count` neurons of a vanilla network with these settings, by exact population flow.

    `served`: other probabilities of the clusters, such as (1, 0) for an expert that is sent the first one only.
    `biases`: the interval that they are uniform on, in place of the one around zero.
    """
    oracle, units, start = begun(settings, count, seed, served)
    if biases is not None:
        low, high = biases
        spread = low + (high - low) * (units.bias / settings.bias + 1) / 2
        units = eqx.tree_at(lambda each: each.bias, units, spread)
    flow = ends(flown(settings, units, start, served=served, threshold=threshold))
    k = settings.exponent
    return Race(settings.dim, k, units, start, np.asarray(_rates(oracle, units, jnp.asarray(start), k)), flow)


def flown(
    settings: ClusterMoeSettings,
    units: Units,
    start: Numbers,
    *,
    served: tuple[float, ...] | None = None,
    at: Numbers | None = None,
    **options: Any,
) -> Run:
    """The flow of neurons to the last of the times `at`; to a horizon, noted in logarithmic time, if None."""
    problem = settings.problem()
    # Typical neurons need `d^((k-2)/2)`, the most unlucky of a thousand 10^12 of these.
    horizon = PATIENCE * float(settings.dim) ** ((settings.exponent - 2) / 2)
    times = np.geomspace(1.0, horizon, RECORDS) if at is None else at
    moves = NeuronFlow(float(times[-1]), RTOL, times=times, **options)
    return ended(run(problem, moves, start=neurons_at(problem, units, start, served)))


def ends(found: Run) -> Ends:
    """What became of the neurons of a flow."""
    return Ends(*(found.last(name).values[0, 0] for name in ("overlap", "largest", "cross_time", "flip_time")))


def clock(settings: ClusterMoeSettings) -> float:
    """The time after which a typical neuron with a learnable overlap of `d^-1/2` has learnt: `d^((k-2)/2)`, times 1/
    `k (k-2)` of its rate. What is allowed beside this is a power of `log d`: see `patience`."""
    k, (oracle, units, start) = settings.exponent, begun(settings, WIDTH)
    rates = np.abs(np.asarray(_rates(oracle, units, jnp.asarray(start), k))[:, :-1])
    return float(settings.dim) ** ((k - 2) / 2) / (k * (k - 2) * float(np.median(rates)))


def patience(settings: ClusterMoeSettings) -> float:
    """`(log d)^(k-2)`, our reading of what `O~` allows a time: enough for an overlap of `d^-1/2 / log d`."""
    return float(np.log(settings.dim)) ** (settings.exponent - 2)


def course(settings: ClusterMoeSettings, until: float | None = None) -> Numbers:
    """Overlaps (record, unit, row): the first half of the records up to one clock, the others up to `patience` clocks.

    `until`: a learnable overlap stops its neuron there.
    """
    _, units, start = begun(settings, WIDTH)
    soon, later = np.geomspace(1e-3, 1, RECORDS // 2), np.geomspace(1, patience(settings), RECORDS // 2 + 1)
    options: dict[str, Any] = {} if until is None else {"threshold": until, "halt": _learnable(settings)}
    times = clock(settings) * np.append(soon, later[1:])
    return flown(settings, units, start, at=times, **options).last("noted").values[0, :, 0]


def late(settings: ClusterMoeSettings) -> Numbers:
    """Overlaps (record, unit, row) from `patience` clocks on, to the end of the race."""
    _, units, start = begun(settings, WIDTH)
    first = clock(settings) * patience(settings)
    times = np.geomspace(first, first * PATIENCE, RECORDS)
    return flown(settings, units, start, at=times).last("noted").values[0, :, 0]


def _learnable(settings: ClusterMoeSettings) -> Flags:
    """Which overlaps (unit, row) are with learnable tasks."""
    oracle, units, start = begun(settings, WIDTH)
    rates = np.asarray(_rates(oracle, units, jnp.asarray(start), settings.exponent))[:, :-1]
    return np.pad(rates > 0, ((0, 0), (0, start.shape[1] - rates.shape[1])))


def after(settings: ClusterMoeSettings) -> tuple[Flags, Numbers]:
    """Lemma B.14's time `t_Delta`, when a learnable overlap reaches `d^(-1/4 - 1/(8k))`, and what follows it.

    Which neurons reach it; and the overlaps (record, unit, row) of all at `RECORDS` times from `t_Delta` on, dense
    where the task is learnt.
    """
    _, units, start = begun(settings, WIDTH)
    halt = _learnable(settings)
    first = ends(flown(settings, units, start, threshold=level(settings), halt=halt))
    second = ends(flown(settings, units, first.final))
    took = np.min(np.where(halt, second.crossed, np.inf), axis=-1)
    reached = np.any(halt & np.isfinite(first.crossed), axis=-1)
    grid = np.concatenate([1 - np.geomspace(1, 1e-3, RECORDS - 12), 1 + np.geomspace(1e-3, 1e3, 12)])
    paced = flown(settings, units, first.final, at=grid, pace=np.where(np.isfinite(took), took, 1.0))
    return reached, paced.last("noted").values[0, :, 0]


def level(settings: ClusterMoeSettings) -> float:
    """`d^(-1/4 - 1/(8k))`, from which on a learnable overlap blocks the others (Lemmas B.14 and B.15)."""
    return float(settings.dim) ** (-1 / 4 - 1 / (8 * settings.exponent))


def begun(
    settings: ClusterMoeSettings, count: int, seed: int = 0, served: tuple[float, ...] | None = None
) -> tuple[ClusterOracle, Units, Numbers]:
    """The oracle, neurons and their overlaps at the start."""
    problem = settings.problem()
    draw = np.random.default_rng([2027, 4, seed])
    units, start = initial(problem, Experts(1, count, settings.kind, settings.bias), draw)
    oracle = ClusterOracle(problem)
    return oracle if served is None else oracle.served(jnp.asarray(served)), units.expert(0), start[0]


def destined(found: Race, cluster: int = 0, margin: float = 0.1) -> tuple[Flags, Flags]:
    """`J_c` and `J_g` of Definition C.18 for an expert that is sent one cluster, by the starts alone.

    `w.w_c >= d^-1/2` and `|beta_(c,k)| (w.w_c)^(k-2) (1 - margin) >= |s_c gamma_k| |w.w_g|^(k-2)`, or with exchanged
    roles; `|alpha_k|` is common to both sides. The paper's sets ignore its sign: see `Race.rates`.
    """
    power, least = found.exponent - 2, 1 / np.sqrt(found.dim)
    rows = found.start[:, [cluster, found.clusters]]
    weight = np.abs(found.rates[:, [cluster, found.clusters]]) * np.abs(rows) ** power
    own, common = rows[:, 0] >= least, rows[:, 1] >= least
    return own & (weight[:, 0] * (1 - margin) >= weight[:, 1]), common & (weight[:, 1] * (1 - margin) >= weight[:, 0])


@dataclass(frozen=True)
class Escapes:
    """How many neurons learnt the global task: `successes` of `trials` at each of `dims`; `learnable` is `|C_j|`.

    - `order`: `alpha_k` differs between clusters by `d^(-order/2)`. It is 1; for ReLU without biases 2, as there
      `alpha_k` of even order is an even function of the shift.
    - `foretold`: for how many the global task wins the race by their starts, `Race.favourite`.
    - `flips`: how many neurons break Assumption 3.4 on their way.
    - `spread`: the largest `|alpha_k|` at the start over the smallest, from `ASYMPTOTIC` on.
    """

    dims: tuple[int, ...]
    successes: NDArray[np.int64]
    trials: int
    learnable: int
    exponent: int
    foretold: NDArray[np.int64]
    order: int = 1
    flips: int = 0
    spread: float = 1.0

    @property
    def fractions(self) -> Numbers:
        return self.successes / self.trials

    @property
    def predicted(self) -> float:
        """The exponent of the fraction as a power of d: `-order |C_j|/(2(k-2))`.

        The global task's rate is `d^(-order/2)` of the local ones', because it lives on differences between clusters
        alone. It wins if `|kappa_c|^(k-2) < d^(-order/2) |xi|^(k-2)` for all learnable c: each has a probability of
        `d^{-order/(2(k-2))}`.
        """
        return -self.order * self.learnable / (2 * (self.exponent - 2))

    def slope(self, least: int = ASYMPTOTIC, level: float = 0.999) -> lines.Estimate:
        """The exponent of `f_g` as a power of d, from `least` dimensions on; nan if no neuron escaped there.

        Logarithms by least squares, weighted by the binomial variance `(1 - f)/(f n)`; a normal interval.
        """
        far = np.array(self.dims) >= least
        if not self.successes[far].any():
            return lines.Estimate(float("nan"), Interval(float("nan"), float("nan"), level))
        f = np.maximum(self.fractions[far], 0.5 / self.trials)
        weight = self.trials * f / (1 - f)
        x = np.log(np.array(self.dims, float)[far])
        away = x - np.average(x, weights=weight)
        total = float(np.sum(weight * away**2))
        found, half = float(np.sum(weight * away * np.log(f)) / total), float(norm.isf((1 - level) / 2)) * total**-0.5
        return lines.Estimate(found, Interval(found - half, found + half, level))


def protected_dims(size: Size) -> tuple[int, ...]:
    """Where the protected polynomial is looked at: nothing is to be seen in between."""
    return DIMS[size] if size == "full" else DIMS[size][::3]


def escapes(size: Size, *, clusters: int = 2, **changes: Any) -> Escapes:
    """Example 4.1 at growing dimensions: ReLU with small biases, or with `changes` of `example`."""
    found, dims = [], protected_dims(size) if changes == PROTECTED else DIMS[size]
    for dim in dims:
        settings = example(dim, clusters=clusters, **changes)
        found.append([race(settings, seed=seed) for seed in range(ROUNDS[size])])
    first = found[0][0]
    return Escapes(
        dims,
        np.array([sum(int(each.escaped.sum()) for each in row) for row in found]),
        WIDTH * ROUNDS[size],
        round(float(np.mean(first.learnable.sum(-1)))),
        first.exponent,
        np.array([sum(int(np.sum(each.favourite == clusters)) for each in row) for row in found]),
        order=2 if changes.get("bias") == 0 and "activation" not in changes else 1,
        flips=sum(int(each.flips.sum()) for row in found for each in row),
        spread=spread([each for row in found for each in row if each.dim >= ASYMPTOTIC]),
    )


def spread(races: list[Race]) -> float:
    """The largest `|alpha_k|` of all neurons at the start over the smallest."""
    start = np.concatenate([np.abs(each.rates[:, 0]) for each in races])
    return float(start.max() / start.min())


def shares(
    dim: int, means: str, radii: tuple[float, ...], biases: tuple[float, ...], count: int, exponent: int = 4
) -> Numbers:
    """The fraction of neurons that learn the global task, (radius, bias range): two clusters, ReLU, `f_c = +-h_k`.

    Neurons of all bias ranges run in one batch: they do not see each other.
    """
    table = []
    for radius in radii:
        settings = example(dim, exponent=exponent, radius=radius, means=means, bias=1.0)
        _, units, start = begun(settings, count * len(biases))
        scale = jnp.asarray(np.repeat(biases, count))
        spread = Units(units.outgoing, units.bias * scale, units.signs, units.kind, units.lowest)
        final = ends(flown(settings, spread, start)).final[:, settings.clusters]
        table.append(np.mean(np.abs(final).reshape(len(biases), count) > LEARNT, axis=-1))
    return np.array(table)
