"""A population of stage 2: neurons on the axes and a sign-symmetric cloud of dense ones, with the exact force of both.

The reduced equations of stages 1.2 and 2 are statements about this force; here it is without any of their reductions,
but that orders from 10 on are those of a group of signs instead of all of them.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from tutelage.papers.beyond_ntk.field import PerRow, Vectors
from tutelage.papers.beyond_ntk.masses import Masses
from tutelage.papers.beyond_ntk.orbits import Signs, hadamard_group, orbit_field, orbit_loss
from tutelage.problem import Numbers

EXACT = 8  # orders up to this one by power sums: the largest there is


@dataclass(frozen=True)
class Mixture:
    """Dense base neurons (M, d), of mass 1/M each, with `E w_i^2 = beta_i`; pairs `+-sqrt(gamma_i) e_i` of mass 1."""

    dense: Numbers
    gamma: Numbers
    weights: Numbers

    @property
    def masses(self) -> Masses:
        """`beta` and `gamma`."""
        return Masses(np.mean(self.dense**2, axis=0), self.gamma)

    def force(self, neurons: ArrayLike) -> Numbers:
        """`G(v; P)` of neurons (n, d)."""
        v = np.asarray(neurons, float)
        # In calls of one size, so that all of them share one compiled function.
        size = 2 * len(self.dense) + len(self.gamma)
        filled = np.concatenate([v, np.ones((-len(v) % size, v.shape[1]))])
        parts = [
            np.asarray(orbit_field(jnp.asarray(part), *self._population, exact=EXACT))
            for part in np.split(filled, len(filled) // size)
        ]
        return np.concatenate(parts)[: len(v)]

    def rates(self, neurons: ArrayLike) -> Numbers:
        """`(v_i^2)'/v_i^2` under the flow, for neurons (n, d) without a zero."""
        return -2 * self.force(neurons) / np.asarray(neurons)

    def mass_rates(self) -> Masses:
        """The logarithmic rates of all `beta_i` and `gamma_i` under the flow."""
        force = self.force(np.concatenate([self.dense, np.eye(len(self.gamma))]))
        dense, axes = force[: len(self.dense)], force[len(self.dense) :]
        return Masses(-2 * np.mean(self.dense * dense, axis=0) / self.masses.beta, -2 * np.diag(axes))

    def loss(self) -> float:
        """The paper's L."""
        return orbit_loss(*self._population, exact=EXACT)

    @property
    def _population(self) -> tuple[Vectors, PerRow, Signs, PerRow]:
        base = jnp.asarray(np.concatenate([self.dense, np.diag(np.sqrt(self.gamma))]))
        each = jnp.concatenate([jnp.full(len(self.dense), 1 / len(self.dense)), jnp.ones(len(self.gamma))])
        return base, each, hadamard_group(len(self.gamma)), jnp.asarray(self.weights)


def mixture(masses: Masses, weights: ArrayLike, rng: np.random.Generator, count: int = 32) -> Mixture:
    """`count` dense Gaussian neurons scaled to have exactly these masses."""
    dense = rng.standard_normal((count, len(masses.beta)))
    return Mixture(dense * np.sqrt(masses.beta / np.mean(dense**2, axis=0)), masses.gamma, np.asarray(weights, float))
