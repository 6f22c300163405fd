"""Stage 1 of typical neurons, those of the set S of Definition A.2, and of winners among them without mass.

The proof lives in dimensions where almost all mass is in S. At a few dozen dimensions a Gaussian law has a large part
elsewhere. So populations here have all of their mass in S, nearly: Gaussian coordinates with `d w_i^2 <= log d`, scaled
to `E w_i^2 = 1/d`, which makes `C_0` about 2. Neurons outside S have no mass, as in the limit, and are tracers.
"""

import math
from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp
import numpy as np
from scipy.stats import norm, qmc

from tutelage.papers.beyond_ntk import powers, warmup
from tutelage.papers.beyond_ntk.constants import RATE1, gradient_rates
from tutelage.papers.beyond_ntk.directions import signal
from tutelage.papers.beyond_ntk.orbits import hadamard_group, simulate
from tutelage.papers.beyond_ntk.races import STEP, Warmup
from tutelage.problem import Numbers

COUNT = 128
EXACT = 8
"""Orders up to this one are those of all signs."""
SMALLEST, LARGEST = 12.0, 20.0
"""`d v_i^2` of a winner's largest coordinate at the start."""


def neurons(count: int, dim: int, seed: int) -> Numbers:
    """Typical neurons (count, d) of positive coordinates, by quasi-random numbers, with `E w_i^2 = 1/d` exactly."""
    half = norm.cdf(math.sqrt(math.log(dim))) - 0.5
    uniform = qmc.Sobol(dim, rng=np.random.default_rng(seed)).random(count)
    drawn = np.asarray(norm.ppf(0.5 + half * uniform))
    return drawn / np.sqrt(dim * np.mean(drawn**2, axis=0))


def end_of_stage_one(dim: int, kappa: float) -> float:
    """T_2: half the time in which the cubic law takes `d vbar_i^2` from `2 kappa log d`, `a_i = kappa/d`, to infinity.

    ```python
    >>> from tutelage.papers.beyond_ntk.typical import end_of_stage_one
    >>> round(end_of_stage_one(100, 1.0))
    1279

    ```
    """
    return dim**2 / (8 * gradient_rates(4)[0] * kappa**2 * math.log(dim))


def end_of_warmup(dim: int, kappa: float) -> float:
    """T_1: when the slowest mode of order 2, whose rate is at least `C_1/(kappa d)`, has fallen by a factor d."""
    return kappa * dim * math.log(dim) / RATE1


@cache
def stage_one(dim: int, ratio: float) -> Warmup:
    """The population from time 0 to T_2, recorded at each step of the first 30 units of time and less often later."""
    a = warmup.spaced(dim, ratio)
    until = end_of_stage_one(dim, warmup.spread(a))
    steps = np.unique(np.rint(np.concatenate([np.arange(100), np.geomspace(100, until / STEP, 200)])).astype(int))
    times, base = STEP * steps, jnp.asarray(neurons(COUNT, dim, seed=5))
    path = powers.simulate(base, jnp.full(COUNT, 1 / COUNT), jnp.asarray(a), step=STEP, times=list(times))
    return Warmup(times, path, a)


def high_forces(base: Numbers, a: Numbers) -> tuple[Numbers, Numbers]:
    """Orders from 4 on of `[G(v)]_i/v_i` for base neurons v (neuron, d), whole and without the teacher's part.

    The population's part is that of orders 4 to 16, by power sums; the teacher's has all orders.
    """
    v, masses = jnp.asarray(base), jnp.full(len(base), 1 / len(base))
    orders = range(4, powers.LARGEST + 1, 2)
    network = sum(np.asarray(powers.order_field(v, v, masses, jnp.zeros(len(a)), order)) for order in orders) / base
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    return network - signal(unit, a), network


@dataclass(frozen=True)
class Winners:
    """Neurons with one large coordinate, the first, in a population on the plateau: (time, neuron, d)."""

    times: Numbers
    paths: Numbers

    @property
    def dim(self) -> int:
        return self.paths.shape[2]

    @property
    def square(self) -> Numbers:
        """`|v|^2` (time, neuron)."""
        return np.sum(self.paths**2, axis=2)

    @property
    def share(self) -> Numbers:
        """`|vbar|_inf^2` (time, neuron)."""
        return np.max(self.paths**2, axis=2) / self.square

    @property
    def won(self) -> Numbers:
        """The first record with `vbar_1^2 >= 1/2`, neuron by neuron."""
        return np.argmax(self.paths[..., 0] ** 2 >= self.square / 2, axis=0)

    @property
    def left(self) -> Numbers:
        """The first record with `|v|^2 > 1/lambda_0`, for which d is taken, neuron by neuron."""
        return np.argmax(self.square > self.dim, axis=0)


@cache
def winners(dim: int, count: int = 12, base: int = 32) -> Winners:
    """Equal weights, until all have `|v|^2 > d`."""
    a, first = np.full(dim, 1 / dim), neurons(base, dim, seed=6)
    v = neurons(16, dim, seed=7)[:count]
    v[:, 0] = np.sqrt(np.linspace(SMALLEST, LARGEST, count) / dim)
    until = 0.2 * dim**2 + 4.0 * dim * math.log(dim)
    times = STEP * np.arange(0, round(until / STEP) + 10, 10)
    _, paths = simulate(
        jnp.asarray(first), jnp.full(base, 1 / base), hadamard_group(dim), jnp.asarray(a), step=STEP,
        times=list(times), tracers=jnp.asarray(v), exact=EXACT,
    )  # fmt: skip
    return Winners(times, paths)
