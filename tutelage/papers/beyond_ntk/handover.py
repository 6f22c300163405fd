"""Stage 2 of a whole population: dense neurons hand their mass over to neurons near the axes, under all orders.

The start is what Stage 1 leaves: dense neurons with `E w w^T = diag(a (1 - 1/d))`, and near each axis a neuron of mass
`d^-4` that has won it, `gamma_i = a_i/d`, and is dense in its other coordinates. The proof's `beta` and `gamma` count
neurons by what they were at the start, and so do those here.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

import jax.numpy as jnp
import numpy as np

from tutelage.papers.beyond_ntk import masses, warmup
from tutelage.papers.beyond_ntk.masses import Masses
from tutelage.papers.beyond_ntk.orbits import hadamard_group, orbit_field, orbit_loss, simulate
from tutelage.papers.beyond_ntk.races import STEP
from tutelage.papers.beyond_ntk.typical import EXACT, neurons
from tutelage.problem import Numbers

WARM = 10.0
"""T_3 - T_2 over d log d."""
LATE = 3.0
"""T_4 - T_3 over d^2: the time in which `beta`, at the rate of the mass equation, falls to about `1/d^2`."""
RECORDS = 60  # of each substage


@dataclass(frozen=True)
class Handover:
    """Neurons (time, neuron, d), the last d of them near the axes, and the mass of each; times are counted from T_2."""

    times: Numbers
    paths: Numbers
    each: Numbers
    weights: Numbers

    @property
    def dim(self) -> int:
        return len(self.weights)

    @property
    def kappa(self) -> float:
        return warmup.spread(self.weights)

    @property
    def dense(self) -> Numbers:
        """Those that were dense at T_2, (time, neuron, d)."""
        return self.paths[:, : -self.dim]

    @property
    def axes(self) -> Numbers:
        """Those that had won an axis at T_2, (time, axis, d)."""
        return self.paths[:, -self.dim :]

    @property
    def warm(self) -> int:
        """The number of the record at T_3."""
        return RECORDS

    @cached_property
    def masses(self) -> Masses:
        """`beta` and `gamma` (time, d)."""
        own = np.diagonal(self.axes, axis1=1, axis2=2)
        return Masses(np.mean(self.dense**2, axis=1), self.each[-self.dim :] * own**2)

    @property
    def imbalance(self) -> Numbers:
        """Delta of Stage 2, of the whole population."""
        return masses.imbalance(self.masses, self.weights)

    @cached_property
    def losses(self) -> Numbers:
        """The paper's L at every record."""
        a, signs = jnp.asarray(self.weights), hadamard_group(self.dim)
        return np.array([orbit_loss(jnp.asarray(now), jnp.asarray(self.each), signs, a, EXACT) for now in self.paths])

    @cached_property
    def slopes(self) -> Numbers:
        """`E |grad_w L|^2` at every record."""
        return np.array([mean_square_force(now, self.each, self.weights) for now in self.paths])


def mean_square_force(neurons: Numbers, each: Numbers, weights: Numbers) -> float:
    """`E |G(w; P)|^2` of a population."""
    base, mass = jnp.asarray(neurons), jnp.asarray(each)
    force = orbit_field(base, base, mass, hadamard_group(len(weights)), jnp.asarray(weights), exact=EXACT)
    return float(mass @ jnp.sum(force**2, axis=1))


def start(masses: Masses, mass: float, count: int = 32, seed: int = 8) -> tuple[Numbers, Numbers]:
    """Neurons of a population with these masses, and the mass of each; those near the axes have `mass` each."""
    dim = len(masses.beta)
    dense = neurons(count, dim, seed)
    dense = dense * np.sqrt(masses.beta / np.mean(dense**2, axis=0))
    near = dense[np.arange(dim) % count]
    np.fill_diagonal(near, np.sqrt(masses.gamma / mass))
    return np.concatenate([dense, near]), np.concatenate([np.full(count, 1 / count), np.full(dim, mass)])


@cache
def handover(dim: int, ratio: float, late: bool) -> Handover:
    """From T_2 to T_3, and if `late` to T_4."""
    a = warmup.spaced(dim, ratio)
    base, each = start(Masses(a * (1 - 1 / dim), a / dim), dim**-4.0)
    warm = WARM * dim * math.log(dim)
    times = np.linspace(0.0, warm, RECORDS + 1)
    if late:
        times = np.concatenate([times, warm + np.linspace(0.0, LATE * dim**2, RECORDS + 1)[1:]])
    times = STEP * np.rint(times / STEP)
    path, _ = simulate(
        jnp.asarray(base), jnp.asarray(each), hadamard_group(dim), jnp.asarray(a), step=STEP, times=list(times),
        exact=EXACT,
    )  # fmt: skip
    return Handover(times, path, each, a)
