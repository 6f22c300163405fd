"""What a kernel is, and how the derivatives of a smooth one follow from its three numbers.

A kernel depends on the rows through `alpha = |a|`, `beta = |b|` and `rho = cos(a, b)`. With unit rows `u`, `v` and the
tangents `tau = v - rho u`, `ups = u - rho v`, the derivatives of `k(alpha, beta, rho)` are

    dK/da       = k_alpha u + (k_rho/alpha) tau
    d2K/da db^T = k_alphabeta u v^T + (k_alpharho/beta) u ups^T + (k_betarho/alpha) tau v^T
                  + (k_rhorho/(alpha beta)) tau ups^T + (k_rho/(alpha beta)) (I - u u^T)(I - v v^T)
    d2K/da da^T = k_alphaalpha u u^T + ((k_alpharho - k_rho/alpha)/alpha) (u tau^T + tau u^T)
                  + (k_rhorho/alpha^2) tau tau^T + ((k_alpha - rho k_rho/alpha)/alpha) (I - u u^T)

In these coordinates nothing cancels when long rows are nearly parallel, as `F_c b + 2 F_qa a` would, and each
coefficient has a limit at a zero row, where `u = 0` stands for the missing direction.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage.oracle.geometry import Angles, Rows, angles, gaps, rows


class AbstractKernel(eqx.Module):
    """`K(a_i, b_j) = E[s(a_i.x) t(b_j.x)]`, `x ~ N(0, I)`, and its derivatives, by formula.

    Where a derivative does not exist (with respect to a zero row, if the slope of `s` jumps at 0) it is `nan`.
    """

    @property
    @abc.abstractmethod
    def accuracy(self) -> str:
        """How the numbers are made and how right they are, in words."""

    @abc.abstractmethod
    def value(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        """`K(a_i, b_j)`."""

    @abc.abstractmethod
    def gradient(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n"]:
        """`dK(a_i, b_j) / da_i`."""

    @abc.abstractmethod
    def pull(self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p n"]:
        """`sum_j c_ij dK(a_i, b_j) / da_i`, without the tensor of all gradients."""

    def pulls(
        self,
        out: Float[Array, "p r"],
        a: Float[Array, "p n"],
        b: Float[Array, "q n"],
        s: Float[Array, "q r"],
        *,
        own: bool = False,
    ) -> tuple[Float[Array, "p n"], Float[Array, "p r"]]:
        """`sum_j (out_i.s_j) dK(a_i, b_j)/da_i` and `sum_j K(a_i, b_j) s_j`, to rounding of their largest terms.

        `own`: the first rows of `b` are those of `a`.
        """
        del own
        return self.pull(out @ s.T, a, b), self.value(a, b) @ s

    @abc.abstractmethod
    def mixed(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n n"]:
        """`d2K(a_i, b_j) / da_i db_j^T`."""

    @abc.abstractmethod
    def curvature(
        self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
    ) -> Float[Array, "p n n"]:
        """`sum_j c_ij d2K(a_i, b_j) / da_i da_i^T`."""


class Slopes(NamedTuple):
    """The two coefficients of `dK/da`."""

    along: Float[Array, "p q"]  # k_alpha
    across: Float[Array, "p q"]  # k_rho / alpha


class MixedParts(NamedTuple):
    """The five coefficients of `d2K/da db^T`."""

    lengths: Float[Array, "p q"]  # k_alphabeta
    length_turn: Float[Array, "p q"]  # k_alpharho / beta
    turn_length: Float[Array, "p q"]  # k_betarho / alpha
    turns: Float[Array, "p q"]  # k_rhorho / (alpha beta)
    flat: Float[Array, "p q"]  # k_rho / (alpha beta)


class CurvatureParts(NamedTuple):
    """The four coefficients of `d2K/da da^T`."""

    length: Float[Array, "p q"]  # k_alphaalpha
    shear: Float[Array, "p q"]  # (k_alpharho - k_rho / alpha) / alpha
    turn: Float[Array, "p q"]  # k_rhorho / alpha^2
    flat: Float[Array, "p q"]  # (k_alpha - rho k_rho / alpha) / alpha


class PolarKernel(AbstractKernel):
    """A kernel that knows its coefficients in lengths and angle; the derivatives in the rows are made here."""

    @abc.abstractmethod
    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]: ...

    @abc.abstractmethod
    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes: ...

    @abc.abstractmethod
    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts: ...

    @abc.abstractmethod
    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts: ...

    def _no_gradient(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        """Where `dK/da` does not exist."""
        return jnp.zeros((len(x.norm), len(y.norm)), dtype=bool)

    def _no_mixed(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        """Where `d2K/da db^T` does not exist."""
        return jnp.zeros((len(x.norm), len(y.norm)), dtype=bool)

    def value(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        x, y = rows(a), rows(b)
        return self._value(x, y, angles(x, y))

    def gradient(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n"]:
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        slopes = self._slopes(x, y, arc)
        full = slopes.along[..., None] * x.unit[:, None, :] + slopes.across[..., None] * _tangents(x, y, arc)
        return jnp.where(self._no_gradient(x, y)[..., None], jnp.nan, full)

    def pull(self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p n"]:
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        slopes = self._slopes(x, y, arc)
        weight = c * slopes.across

        def by_products() -> Array:
            return weight @ y.unit - jnp.sum(weight * arc.sign * arc.cos, axis=1)[:, None] * x.unit

        def by_tangents() -> Array:
            return jnp.sum(weight[..., None] * _tangents(x, y, arc), axis=1)

        # For parallel rows the part along `a` can be as small as 1/(1 + 2 alpha^2) of `across`: products of matrices
        # keep 14 digits of it while alpha < 8, and beyond that only the tangents do.
        turned = jax.lax.cond(jnp.max(x.norm, initial=0.0) < 8, by_products, by_tangents)
        full = jnp.sum(c * slopes.along, axis=1)[:, None] * x.unit + turned
        return jnp.where(jnp.any(self._no_gradient(x, y) & (c != 0), axis=1)[:, None], jnp.nan, full)

    def mixed(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n n"]:
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        parts = self._mixed_parts(x, y, arc)
        u, v = x.unit[:, None, :], y.unit[None, :, :]
        tau = _tangents(x, y, arc)
        ups = jnp.swapaxes(_tangents(y, x, _swap(arc)), 0, 1)
        flat_x, flat_y = (jnp.eye(a.shape[-1])[None] - outer(unit, unit) for unit in (x.unit, y.unit))
        full = (
            _fill(parts.lengths) * outer(u, v)
            + _fill(parts.length_turn) * outer(u, ups)
            + _fill(parts.turn_length) * outer(tau, v)
            + _fill(parts.turns) * outer(tau, ups)
            + _fill(parts.flat) * (flat_x[:, None] @ flat_y[None])
        )
        return jnp.where(_fill(self._no_mixed(x, y)), jnp.nan, full)

    def curvature(
        self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
    ) -> Float[Array, "p n n"]:
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        parts = self._curvature_parts(x, y, arc)
        u, tau = x.unit, _tangents(x, y, arc)
        sheared = outer(u, jnp.einsum("pq,pqn->pn", c * parts.shear, tau))
        uu = outer(u, u)
        full = (
            jnp.sum(c * parts.length, axis=1)[:, None, None] * uu
            + sheared
            + jnp.swapaxes(sheared, 1, 2)
            + jnp.einsum("pq,pqm,pqn->pmn", c * parts.turn, tau, tau)
            + jnp.sum(c * parts.flat, axis=1)[:, None, None] * (jnp.eye(a.shape[-1])[None] - uu)
        )
        missing = jnp.any(self._no_gradient(x, y) & (c != 0), axis=1)
        return jnp.where(missing[:, None, None], jnp.nan, full)


def outer(u: Float[Array, "*#batch m"], v: Float[Array, "*#batch n"]) -> Float[Array, "... m n"]:
    """`u v^T` over leading axes."""
    return u[..., :, None] * v[..., None, :]


def _fill(x: Array) -> Array:
    return x[..., None, None]


def _swap(arc: Angles) -> Angles:
    return Angles(*(part.T for part in arc))


def _tangents(x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q n"]:
    """`tau = v - rho u`, written with the gap between the rows so that it keeps its digits when they are parallel."""
    u = x.unit[:, None, :]
    return arc.sign[..., None] * (arc.rest[..., None] * u - gaps(x, y, arc.sign))
