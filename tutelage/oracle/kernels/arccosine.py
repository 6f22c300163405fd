"""The arc-cosine kernel: `E[s(a.x) t(b.x)]` for piecewise linear `s` and `t` (ReLU, |.|, linear), to rounding.

With `s = l z + k |z|`, `t = l' z + k' |z|` and `theta` the angle between `a` and `b`,
`K = l l' a.b + k k' (2/pi) |a| |b| (sin theta + (pi/2 - theta) cos theta)`.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tutelage.oracle.geometry import Angles, Rows, angles, gaps, rough_angles, rows, wedge
from tutelage.oracle.kernels.base import AbstractKernel, outer
from tutelage.problem.atoms import PiecewiseLinear


class ArcKernel(AbstractKernel):
    """Two piecewise linear activations. `linear` and `kink` are the products of their coefficients."""

    linear: float = eqx.field(static=True)
    kink: float = eqx.field(static=True)

    def __init__(self, s: PiecewiseLinear, t: PiecewiseLinear) -> None:
        self.linear = s.linear * t.linear
        self.kink = s.kink * t.kink

    @property
    def accuracy(self) -> str:
        return "closed form (arc-cosine), to rounding"

    def value(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
        if self.kink == 0:
            return self.linear * (a @ b.T)
        x, y = rows(a), rows(b)
        return x.norm[:, None] * y.norm[None, :] * self._shape(angles(x, y))

    def gradient(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n"]:
        x, y = rows(a), rows(b)
        along_b, along_a = self._gradient_parts(x, y)
        full = along_b[..., None] * b[None, :, :] + along_a[..., None] * x.unit[:, None, :]
        return jnp.where(self._undefined(x, y)[..., None], jnp.nan, full)

    def pull(self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p n"]:
        if self.kink == 0:
            return self.linear * (c @ b)
        x, y = rows(a), rows(b)
        along_b, along_a = self._gradient_parts(x, y)
        full = (c * along_b) @ b + jnp.sum(c * along_a, axis=1)[:, None] * x.unit
        return jnp.where(self._undefined_sum(c, x, y)[:, None], jnp.nan, full)

    def pulls(
        self,
        out: Float[Array, "p r"],
        a: Float[Array, "p n"],
        b: Float[Array, "q n"],
        s: Float[Array, "q r"],
        *,
        own: bool = False,
    ) -> tuple[Float[Array, "p n"], Float[Array, "p r"]]:
        # An angle from the cosine is off by 1e-16 / sin; but it goes with its own sine, and the two errors leave
        # `sin` times that: a sum is right to rounding of its terms, at half the cost of chords.
        # Students and teachers go through the same instructions, so that equal rows cancel exactly.
        y, c = rows(b), out @ s.T
        x = Rows(y.norm[: len(a)], y.unit[: len(a)]) if own else rows(a)
        arc = rough_angles(x, y)
        along_b, turn = self._parts(arc)
        missing = (x.norm == 0)[:, None] & (y.norm != 0)[None, :] & (c != 0) & (self.kink != 0)
        along_a = _row_sums(jnp.where(missing, jnp.nan, c * turn), y.norm)
        in_rows = (c * along_b) @ b + along_a[:, None] * x.unit
        return in_rows, x.norm[:, None] * (self._shape(arc) @ (y.norm[:, None] * s))

    def _gradient_parts(self, x: Rows, y: Rows) -> tuple[Float[Array, "p q"], Float[Array, "p q"]]:
        """The coefficients of `b_j` and of the unit row `a_i` in `dK/da_i`."""
        along_b, turn = self._parts(angles(x, y))
        return along_b, turn * y.norm[None, :]

    def _parts(self, arc: Angles) -> tuple[Float[Array, "p q"], Float[Array, "p q"]]:
        """Those of unit rows `b_j`."""
        along_b = self.linear + arc.sign * self.kink * (1 - _per_right_angle(arc.near))
        return along_b, self.kink * _per_right_angle(arc.sin)

    def _shape(self, arc: Angles) -> Float[Array, "p q"]:
        """The kernel of unit rows.

        Written with the angle to the nearest of b and -b: for ReLU the first bracket vanishes exactly when the rows
        point apart, so the small value there keeps all its digits.
        """
        return (self.kink + arc.sign * self.linear) * arc.cos + self.kink * _per_right_angle(wedge(arc))

    def mixed(self, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q n n"]:
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        eye = jnp.eye(a.shape[-1])[None, None]
        scalar = self.linear + arc.sign * self.kink * (1 - _per_right_angle(arc.near))
        toward = _directions(x.unit[:, None, :] + y.unit[None, :, :])
        apart = _directions(x.unit[:, None, :] - y.unit[None, :, :])
        twist = outer(toward, toward) - outer(apart, apart)
        full = scalar[..., None, None] * eye + self.kink * _per_right_angle(arc.sin)[..., None, None] * twist
        missing = ((x.norm == 0)[:, None] | (y.norm == 0)[None, :]) & (self.kink != 0)
        return jnp.where(missing[..., None, None], jnp.nan, full)

    def curvature(
        self, c: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
    ) -> Float[Array, "p n n"]:
        x, y = rows(a), rows(b)
        arc = angles(x, y)
        flat = jnp.eye(a.shape[-1])[None] - outer(x.unit, x.unit)
        # The part of the unit row b across a, over its length sin(theta): a unit vector, or 0 on alignment.
        across = _directions(jnp.einsum("pmn,pqn->pqm", flat, gaps(x, y, arc.sign)))
        ratio = y.norm[None, :] / jnp.where(x.norm == 0, 1.0, x.norm)[:, None]
        weight = c * self.kink * _per_right_angle(arc.sin) * ratio
        full = jnp.sum(weight, axis=1)[:, None, None] * flat + jnp.einsum("pq,pqm,pqn->pmn", weight, across, across)
        return jnp.where(self._undefined_sum(c, x, y)[:, None, None], jnp.nan, full)

    def _undefined(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        """Where `dK/da_i` does not exist: at a zero row `a_i`, unless `K` is identically zero in it."""
        return (x.norm == 0)[:, None] & (y.norm != 0)[None, :] & (self.kink != 0)

    def _undefined_sum(self, c: Float[Array, "p q"], x: Rows, y: Rows) -> Bool[Array, " p"]:
        """Where `sum_j c_ij dK/da_i` does not exist: coefficients that are exactly 0 do not count."""
        return (x.norm == 0) & (jnp.abs(c) @ y.norm > 0) & (self.kink != 0)


_AT_ONCE = 32
"""The compiler makes sums over more entries than this in several steps, at three times the cost."""


def _row_sums(c: Float[Array, "p q"], lengths: Float[Array, " q"]) -> Float[Array, " p"]:
    return jnp.sum(c * lengths[None, :], axis=1) if len(lengths) <= _AT_ONCE else c @ lengths


def _per_right_angle(x: Array) -> Array:
    return x * (2 / math.pi)


def _directions(v: Array) -> Array:
    length = jnp.sqrt(jnp.sum(v**2, axis=-1, keepdims=True))
    return v / jnp.where(length == 0, 1.0, length)
