"""Finite against infinite width (Appendix B): `xi_w = w~ - w`, a neuron of a network less its twin at infinite width.

Twins start at the same place. One moves in the field of its own network, the other, a tracer, in that of a symmetric
population. Both take the same steps, so xi is the effect of the width alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.analysis import lines
from tutelage.oracle import rows
from tutelage.papers.beyond_ntk import orbits, powers
from tutelage.papers.beyond_ntk.constants import B2, plateau
from tutelage.papers.beyond_ntk.field import PerRow, Vectors, loss, pull

Networks = Float[Array, "network unit dim"]
Numeric = NDArray[np.floating]

EXACT = 8
"""Up to this order the population is exactly symmetric, by power sums; signs alone leave errors in orders from 4 on."""
ORDERS = (0, 2, 4, 6, 8)
TIMES = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, *(5.0 * number for number in range(4, 21)), 120.0)
LATER = (140.0, 160.0, 180.0, 200.0)
LEFT = 0.75
"""The plateau counts as left when L at infinite width is below this part of its level."""


@dataclass(frozen=True)
class Comparison:
    """Networks of several widths beside one population: `square[m]` is `|xi|^2` by (network, unit, time)."""

    dim: int
    times: Numeric
    square: dict[int, Numeric]
    losses: dict[int, Numeric]
    infinite: Numeric
    orders: dict[int, Numeric]

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(self.square)

    @property
    def mean(self) -> Numeric:
        """The mean of `|xi|^2` over neurons, (width, time)."""
        return np.stack([each.mean((0, 1)) for each in self.square.values()])

    @property
    def largest(self) -> Numeric:
        """The largest `|xi|^2` over its mean in the same network, the worst network of each width, (width, time)."""
        with np.errstate(invalid="ignore"):  # at time 0 there is no error
            return np.stack([(each.max(1) / each.mean(1)).max(0) for each in self.square.values()])

    @property
    def escape(self) -> float:
        """When L at infinite width falls below `LEFT` of the plateau; nan if it does not."""
        left = self.infinite < LEFT * plateau(self.dim)
        return float(self.times[np.argmax(left)]) if left.any() else float("nan")

    @property
    def slopes(self) -> Numeric:
        """The exponent of the mean of `|xi|^2` in m, at each time after 0."""
        return lines.exponent(self.widths, self.mean[:, 1:])

    def growth(self, begin: float, end: float) -> Numeric:
        """The rate of exponential growth of the mean of `|xi|^2` between two times, by width."""
        pick = (self.times >= begin) & (self.times <= end)
        return lines.slope(self.times[pick], np.log(self.mean[:, pick]).T)


def expected_error(dim: int, time: ArrayLike) -> Numeric:
    """`m mean |xi|^2` until the plateau, uniform teacher weights: `(d + 1)/4 (1 - exp(-8 t/(pi d)))^2`.

    A network starts with the sampling error `T_2` of `E w w^T`, for which `E |T_2|^2 = (1 + 1/d)/m`. Descent takes it
    away at the rate `2 b_2/d` by `xi = -(d/2) T_2 v`, to first order.

    ```python
    >>> from tutelage.papers.beyond_ntk.width import expected_error
    >>> float(expected_error(16, 20.0).round(3))
    3.905

    ```
    """
    return (dim + 1) / 4 * (1 - np.exp(-2 * B2 / dim * np.asarray(time))) ** 2


def sized(full: bool) -> Comparison:
    """The networks and the population that the claims and the figure look at."""
    if full:
        return compare(16, (32, 64, 128, 256, 512, 1024), 256, TIMES + LATER)
    return compare(16, (32, 64, 128), 128, TIMES)


@cache
def compare(dim: int, widths: tuple[int, ...], base: int, times: tuple[float, ...], seed: int = 0) -> Comparison:
    """Networks of each of `widths` from one set of starts N(0, I/d), teacher weights 1/d, eta_inf = 0.2.

    There are as many starts as the widest network has neurons; narrower ones share them out. The population has
    `base` neurons with the signs of a Hadamard matrix, and an error of its own: at d = 16 it moves the tracers by a
    mean square of 1e-4 at time 20 and 2e-3 at 85 with 128 base neurons, and by 3e-5 and 4e-4 with 256.
    """
    if any(max(widths) % m for m in widths):
        raise BadInput(f"widths are {widths}, but each was expected to divide the largest; take powers of two.")
    a, step = jnp.full(dim, 1 / dim), 0.2
    starts = jnp.asarray(np.random.default_rng(seed).standard_normal((max(widths), dim)) / np.sqrt(dim))
    masses, signs = jnp.full(base, 1 / base), orbits.hadamard_group(dim)
    begin = orbits.gaussian_base(base, dim, seed)
    path, twins = orbits.simulate(begin, masses, signs, a, step=step, times=times, tracers=starts, exact=EXACT)
    square, losses = {}, {}
    for m in widths:
        found = networks(starts.reshape(-1, m, dim), a, step=step, times=times)
        square[m] = np.sum((found - twins.reshape(len(times), -1, m, dim)) ** 2, -1).transpose(1, 2, 0)
        losses[m] = np.stack([_losses(jnp.asarray(now), a) for now in found], axis=-1)
    populations = [jnp.asarray(now) for now in path]
    infinite = [orbits.orbit_loss(now, masses, signs, a, EXACT) for now in populations]
    orders = {k: np.array([float(powers.order_loss(now, masses, a, k)) for now in populations]) for k in ORDERS}
    return Comparison(dim, np.asarray(times), square, losses, np.array(infinite), orders)


@jax.jit
def _losses(batch: Networks, a: PerRow) -> Float[Array, " network"]:
    masses = jnp.full(batch.shape[1], 1 / batch.shape[1])
    return jax.lax.map(lambda one: loss(one, masses, a), batch)


@jax.jit
def _advance(batch, a, step, count):
    axes = jnp.eye(batch.shape[2])

    def force(one: Vectors) -> Vectors:
        own = pull(one, one, rows(one).norm ** 2 / len(one), snap=True)
        return 2 * (own - pull(one, axes, a, snap=True))

    return jax.lax.fori_loop(0, count, lambda _, now: now - step * jax.lax.map(force, now), batch)


def networks(batch: Networks, teacher_weights: PerRow, *, step: float, times: Sequence[float]) -> Numeric:
    """Descent of networks with units |z|, each by itself: (time, network, unit, dim) at `times`."""
    found = []
    for count in powers.segments(times, step):
        batch = _advance(batch, teacher_weights, step, count)
        found.append(np.asarray(batch))
    return np.stack(found)
