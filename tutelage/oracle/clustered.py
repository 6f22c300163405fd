"""The population side of clustered inputs: what one unit's correlation with the label is, and how it turns the unit.

A unit vector `w` enters only through its overlaps `o` with the rows of the frame: `kappa_c = w.w_c`, `xi = w.w_g` and
`nu_c = w.v_c`. With the coefficients `alpha_i(bias + radius nu_c)` of `oracle.kernels.shifted` all is a finite sum.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from tutelage._checks import instance
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.kernels.shifted import shifted
from tutelage.problem.atoms import along_last
from tutelage.problem.clusters import Clustered
from tutelage.problem.hermite import moved
from tutelage.problem.trees import flatten, unflatten
from tutelage.problem.units import Units

Overlaps = Float[Array, "*#batch #unit row"]
"""They may be the same for several units, or for several experts."""


class Field(NamedTuple):
    """Of each unit: its correlation with the label, the turning force, and what it does to a router.

    - `correlation`: `E[y a s(w.x + b)]`.
    - `force`: `p` with `E[y a s'(w.x + b) x] = p @ frame + (a multiple of w)`. The spherical gradient is its part that
      is orthogonal to `w`; of the overlaps, `S p - o (o.p)` with the frame's Gram matrix `S`.
    - `router`: `q` with `E[y a s(w.x + b) x] = q[:-1] @ frame + q[-1] w`.
    """

    correlation: Float[Array, "*batch unit"]
    force: Overlaps
    router: Float[Array, "*batch unit wide"]


class NeuronWeights(eqx.Module):
    """Neurons on the sphere as their overlaps with the frame, and what else they are."""

    overlaps: Overlaps
    units: Units


class ClusterOracle(AbstractOracle):
    """Exact expectations over clustered inputs, for units on the unit sphere.

    As a loss it is minus the correlation of all units with the label, and its gradient is that on the sphere.

    ```python
    >>> import jax.numpy as jnp, numpy as np, tutelage as tt
    >>> from tutelage.problem.clusters import antipodal
    >>> tasks = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
    >>> oracle = tt.ClusterOracle(tt.Clustered(antipodal(30, 3.0), tasks))
    >>> units = tt.Experts(1, 2, "relu").units(np.random.default_rng(0))
    >>> oracle.turning(units, jnp.zeros((1, 2, 5))).shape  # overlaps with w1, w2, wg, v1, v2
    (1, 2, 5)

    ```
    """

    local: Float[Array, "cluster order"]
    shared: Float[Array, "cluster order"]
    gram: Float[Array, "row row"]
    radius: Float[Array, ""]
    weights: Float[Array, "*#unit cluster"]
    accuracy: str = eqx.field(static=True)

    def __init__(self, problem: Clustered):
        instance("ClusterOracle: problem", problem, Clustered, "a tt.Clustered")
        frame, teacher, inputs = problem.frame, problem.teacher, problem.inputs
        self.accuracy = "exact"
        # All on the host: every operation on the device would be a program of its own.
        gram, radius, count = np.asarray(frame @ frame.T), float(inputs.radius), inputs.count
        # A task whose direction has a part along the mean is a shifted one: f(z + t) has other coefficients.
        own = radius * gram[np.arange(count), count + 1 + np.arange(count)]
        common = radius * gram[count, count + 1 :]
        by_own, by_common = np.asarray(moved(jax.device_put(np.stack([own, common])), teacher.orders))
        local = np.einsum("cli,ci->cl", by_own, np.asarray(teacher.local))
        shared = np.asarray(teacher.interference)[:, None] * np.einsum(
            "cli,i->cl", by_common, np.asarray(teacher.shared)
        )
        self.gram, self.radius, self.weights = jax.device_put((gram, np.asarray(radius), np.asarray(inputs.weights)))
        self.local, self.shared = jax.device_put((local, shared))

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.local)

    def served(self, weights: ArrayLike) -> "ClusterOracle":
        """The same with other probabilities of the clusters, such as (1, 0) for an expert that sees only the first.

        They need not add up to 1, and may have axes of the units before that of the clusters.
        """
        other: ClusterOracle = eqx.tree_at(lambda oracle: oracle.weights, self, jnp.asarray(weights, float))
        return other

    def coefficients(self, units: Units, overlaps: Overlaps, count: int) -> Float[Array, "*#batch #unit cluster count"]:
        """`alpha_i(bias + radius nu_c)` for each cluster."""
        nu = overlaps[..., self.count + 1 :]
        return jnp.stack([shifted(units, self.radius * nu[..., c], count) for c in range(self.count)], axis=-2)

    def field(self, units: Units, overlaps: Overlaps) -> Field:
        """Correlation, turning force and router field of each unit, from its overlaps with the frame."""
        orders = self.local.shape[1]
        alpha = self.coefficients(units, overlaps, orders + 1)
        kappa, xi = overlaps[..., : self.count], overlaps[..., self.count]
        own, common = _powers(kappa, orders), _powers(xi, orders)[..., None, :]
        i = along_last(np.arange(float(orders)), alpha.ndim)
        local, shared = (along_last(table, alpha.ndim) for table in (self.local, self.shared))
        level = local * own + shared * common  # Q_{c,i}
        own_slope, common_slope = (jnp.roll(table, 1, -1) * (1.0 * (i > 0)) for table in (own, common))  # kappa^(i-1)
        here, above = alpha[..., :orders], alpha[..., 1:] * np.sqrt(i + 1)
        below = jnp.roll(here, 1, -1) * np.sqrt(i)
        weight = along_last(self.weights, alpha.ndim - 1)

        def total(table: Array) -> Array:
            return weight * jnp.sum(table, axis=-1)  # by cluster

        force = jnp.concatenate(
            [
                total(here * i * local * own_slope),
                jnp.sum(total(here * i * shared * common_slope), axis=-1, keepdims=True),
                self.radius * total(above * level),
            ],
            axis=-1,
        )
        router = jnp.concatenate(
            [
                total(below * local * own_slope),
                jnp.sum(total(below * shared * common_slope), axis=-1, keepdims=True),
                self.radius * total(here * level),
                jnp.sum(total(above * level), axis=-1, keepdims=True),
            ],
            axis=-1,
        )
        return Field(jnp.sum(total(here * level), axis=-1), force, router)

    def rates(self, units: Units, overlaps: Overlaps, order: int) -> Float[Array, "*#batch #unit task"]:
        """How fast small overlaps with the tasks grow by one order: `d|o_i|/dt = k rate_i |o_i|^(k-1)`, for even k.

        `p_c alpha_k(b + mu_c) beta_ck` for the local tasks; then, for the shared one, `sum_c p_c s_c alpha_k gamma_k`.
        """
        alpha = self.coefficients(units, overlaps, order + 1)[..., order]
        tables = (self.weights, self.local[:, order], self.shared[:, order])
        weights, local, shared = (along_last(table, alpha.ndim) for table in tables)
        alpha = alpha * weights
        return jnp.concatenate([alpha * local, jnp.sum(alpha * shared, axis=-1, keepdims=True)], axis=-1)

    def loss(self, weights: NeuronWeights) -> Float[Array, ""]:
        return -jnp.sum(self.field(weights.units, weights.overlaps).correlation)

    def gradient(self, weights: NeuronWeights) -> NeuronWeights:
        still = jax.tree.map(jnp.zeros_like, weights.units)
        return NeuronWeights(-self.turning(weights.units, weights.overlaps), still)

    def hessian(self, weights: NeuronWeights) -> Float[Array, "parameters parameters"]:
        slope = lambda y: flatten(self.gradient(unflatten(y, weights)))  # noqa: E731
        return jnp.asarray(jax.jacfwd(slope)(flatten(weights)))

    def turning(self, units: Units, overlaps: Overlaps) -> Overlaps:
        """How the overlaps move when the units climb their correlation on the sphere: `S p - o (o.p)`."""
        force = self.field(units, overlaps).force
        along = jnp.sum(overlaps * force, axis=-1, keepdims=True)
        return force @ self.gram - overlaps * along


def _powers(x: Float[Array, "..."], count: int) -> Float[Array, "... count"]:
    return jnp.stack([x**j for j in range(count)], axis=-1)
