"""Networks in stage 2 beside infinite width (Lemmas B.2 and B.3): m neurons drawn from a population, and their twins.

A neuron of the network is an image of a base neuron under a change of signs, and so is its twin, which moves with the
population. xi is the difference; at the start of a substage it is 0. Of a neuron on an axis only what is across the
axis counts in stage 2.2, as in the lemma: its length is its own affair.
"""

import math
from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage.papers.beyond_ntk.handover import LATE, WARM
from tutelage.papers.beyond_ntk.orbits import full_group, simulate
from tutelage.papers.beyond_ntk.typical import EXACT, neurons
from tutelage.papers.beyond_ntk.width import networks
from tutelage.problem import Numbers

DIM, DENSE, STEP, RECORDS = 8, 16, 0.3, 12
ON_AXES = 0.25
"""The part of the neurons, and at T_2 of the mass, that is near the axes."""


@dataclass(frozen=True)
class Strays:
    """`|xi|^2` and `|w|^2` of every neuron through one substage: by width, (network, neuron, time)."""

    times: Numbers
    error: dict[int, Numbers]
    square: dict[int, Numbers]

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(self.error)

    @property
    def mean(self) -> Numbers:
        """The mean of `|xi|^2` over the neurons of a network, (width, network, time)."""
        return np.stack([each.mean(1) for each in self.error.values()])

    @property
    def largest(self) -> Numbers:
        """The largest `|xi|^2/|w|^2` of a network at any time, (width, network)."""
        return np.stack([(self.error[m] / self.square[m]).max((1, 2)) for m in self.widths])


def begin() -> tuple[Numbers, Numbers]:
    """A population at T_2, and the masses of its neurons: dense ones, and one near each axis."""
    dense = neurons(DENSE, DIM, seed=9)
    near = 0.1 * dense[:DIM]
    np.fill_diagonal(near, 1.0)
    each = np.concatenate([np.full(DENSE, (1 - ON_AXES) / DENSE), np.full(DIM, ON_AXES / DIM)])
    return np.concatenate([dense, near]), each


def operated(base: Numbers) -> Numbers:
    """The surgery at T_3: neurons near the axes are put on them."""
    axes = np.diag(np.diag(base[-DIM:]))
    return np.concatenate([base[:-DIM], axes])


@cache
def strays(widths: tuple[int, ...], count: int) -> tuple[Strays, Strays]:
    """Stages 2.1 and 2.2 of `count` networks of each width, equal weights; drawn anew at T_3."""
    base, each = begin()
    warm = np.linspace(0.0, WARM * DIM * math.log(DIM), RECORDS)
    path = _population(base, each, warm)
    late = np.linspace(0.0, LATE * DIM**2, RECORDS)
    later = _population(operated(path[-1]), each, late)
    return _beside(path, each, warm, widths, count, across=False), _beside(
        later, each, late, widths, count, across=True
    )


def _population(base: Numbers, each: Numbers, times: Numbers) -> Numbers:
    a = jnp.full(DIM, 1 / DIM)
    found, _ = simulate(
        jnp.asarray(base), jnp.asarray(each), full_group(DIM), a, step=STEP, times=list(times), exact=EXACT
    )
    return found


def _beside(path: Numbers, each: Numbers, times: Numbers, widths: tuple[int, ...], count: int, across: bool) -> Strays:
    error, square = {}, {}
    for m in widths:
        rng = np.random.default_rng([2026, 40, m])
        which, sign = rng.choice(len(each), (count, m), p=each), rng.choice((-1.0, 1.0), (count, m, DIM))
        twins = path[:, which] * sign
        xi = networks(jnp.asarray(twins[0]), jnp.full(DIM, 1 / DIM), step=STEP, times=list(times)) - twins
        if across:
            xi = np.where(_on(which), 0.0, xi)
        error[m] = np.sum(xi**2, axis=-1).transpose(1, 2, 0)
        square[m] = np.sum(twins**2, axis=-1).transpose(1, 2, 0)
    return Strays(times, error, square)


def _on(which: NDArray[np.integer]) -> NDArray[np.bool_]:
    """The coordinate of its axis, for neurons that are on one."""
    return which[..., None] - DENSE == np.arange(DIM)
