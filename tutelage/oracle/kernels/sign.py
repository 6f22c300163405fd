"""The arcsine kernels of a sign: `E[sign(a.x) t(b.x)]` for `t` a sign or a mixture of erf, to rounding.

A sign is erf of infinite slope, which the formulas of `arcsine` do not bear. With `t(z) = erf(g z)`, `q = g |b|` and
`D^2 = 1 + 2 q^2 sin^2`, the limit is `K = (2/pi) arctan(sqrt(2) q rho / D)`; for two signs `K = (2/pi) arcsin(rho)`.
Nothing depends on the length of a row whose unit is a sign, and its derivatives are those of a function of direction.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from tutelage.oracle.geometry import Angles, Rows, over
from tutelage.oracle.kernels.base import CurvatureParts, MixedParts, PolarKernel, Slopes
from tutelage.problem.atoms import ErfMixture, Sign

TIP = 1e-14
_FACTOR = 2 * math.sqrt(2) / math.pi


class SignKernel(PolarKernel):
    """Two signs; `size` is the product of theirs.

    Where rows are parallel or opposite `K` has the tip of a cone: there is no derivative, and 0 is given, the mean over
    all directions. For a unit with itself this is right, since `K(w, w)` does not change with `w`. Rows count as
    parallel where rounding would choose the direction, below an angle of `TIP`.
    """

    size: float = eqx.field(static=True)

    def __init__(self, s: Sign, t: Sign) -> None:
        self.size = s.size * t.size

    @property
    def accuracy(self) -> str:
        return "closed form (arcsine of a sign), to rounding"

    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]:
        some = (x.norm > 0)[:, None] & (y.norm > 0)[None, :]
        return self.size * jnp.where(some, arc.sign * (1 - 2 / math.pi * arc.near), 0.0)

    def _bends(self, arc: Angles) -> tuple[Array, Array, Array]:
        """`rho`, `k_rho` and `k_rhorho`, the last two 0 at the tips."""
        rho, sine = arc.sign * arc.cos, jnp.where(arc.sin < TIP, 0.0, arc.sin)
        slope = over(jnp.full_like(rho, 2 / math.pi * self.size), sine)
        return rho, slope, over(over(rho * slope, sine), sine)

    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes:
        _, slope, _ = self._bends(arc)
        return Slopes(along=jnp.zeros_like(slope), across=over(slope, x.norm[:, None]))

    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts:
        _, slope, bend = self._bends(arc)
        lengths, zero = x.norm[:, None] * y.norm[None, :], jnp.zeros_like(slope)
        return MixedParts(zero, zero, zero, turns=over(bend, lengths), flat=over(slope, lengths))

    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts:
        return _of_direction(x, *self._bends(arc))

    def _no_gradient(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        return (x.norm == 0)[:, None] & (y.norm != 0)[None, :]

    def _no_mixed(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        return (x.norm == 0)[:, None] | (y.norm == 0)[None, :]


class _Nodes(NamedTuple):
    """Per node of the mixture (first axis) and pair of rows; `gain` is `(2 sqrt(2)/pi) weight g / D`."""

    g: Float[Array, "m 1 1"]
    q: Float[Array, "m p q"]
    rho: Float[Array, "p q"]
    sine: Float[Array, "1 p q"]  # squared
    spread: Float[Array, "m p q"]  # 1 + 2 q^2
    square: Float[Array, "m p q"]  # D^2
    weight: Float[Array, "m 1 1"]
    gain: Float[Array, "m p q"]


def _nodes(sign: Sign, mixture: ErfMixture, norm: Float[Array, "p q"], arc: Angles) -> _Nodes:
    """`norm`: the length of the row that belongs to the mixture, for each pair."""
    weight, g = (jnp.asarray(np.array(part))[:, None, None] for part in (mixture.weights, mixture.slopes))
    q, sine, weight = g * norm[None], arc.sin[None] ** 2, sign.size * weight
    square = 1 + 2 * q**2 * sine
    gain = _FACTOR * weight * g / jnp.sqrt(square)
    return _Nodes(g, q, arc.sign * arc.cos, sine, 1 + 2 * q**2, square, weight, gain)


def _angle(m: _Nodes) -> Float[Array, "p q"]:
    turn = jnp.arctan2(math.sqrt(2) * m.q * m.rho[None], jnp.sqrt(m.square))
    return 2 / math.pi * jnp.sum(m.weight * turn, axis=0)


class SignErfKernel(PolarKernel):
    """A sign, whose rows come first, and a mixture of erf."""

    s: Sign
    t: ErfMixture

    @property
    def accuracy(self) -> str:
        return "closed form (arcsine of a sign), to rounding"

    def _meeting(self, x: Rows, y: Rows, arc: Angles) -> _Nodes:
        return _nodes(self.s, self.t, jnp.broadcast_to(y.norm[None, :], arc.cos.shape), arc)

    def _bends(self, x: Rows, y: Rows, arc: Angles) -> tuple[Array, Array, Array]:
        """`rho`, `k_rho / |b|` and `k_rhorho / |b|`."""
        m = self._meeting(x, y, arc)
        bend = jnp.sum(m.gain * 2 * m.q**2 / m.square, axis=0) * m.rho
        return m.rho, jnp.sum(m.gain, axis=0), bend

    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]:
        return _angle(self._meeting(x, y, arc))

    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes:
        _, slope, _ = self._bends(x, y, arc)
        return Slopes(along=jnp.zeros_like(slope), across=over(slope * y.norm[None, :], x.norm[:, None]))

    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts:
        m = self._meeting(x, y, arc)
        _, slope, bend = self._bends(x, y, arc)
        norm, zero = x.norm[:, None], jnp.zeros_like(slope)
        by_length = jnp.sum(m.gain / m.square, axis=0)
        return MixedParts(zero, zero, over(by_length, norm), turns=over(bend, norm), flat=over(slope, norm))

    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts:
        rho, slope, bend = self._bends(x, y, arc)
        norm = y.norm[None, :]
        return _of_direction(x, rho, slope * norm, bend * norm)

    def _no_gradient(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        return (x.norm == 0)[:, None] & (y.norm != 0)[None, :]

    def _no_mixed(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        return jnp.broadcast_to((x.norm == 0)[:, None], (len(x.norm), len(y.norm)))


class ErfSignKernel(PolarKernel):
    """A mixture of erf, whose rows come first, and a sign."""

    s: ErfMixture
    t: Sign

    @property
    def accuracy(self) -> str:
        return "closed form (arcsine of a sign), to rounding"

    def _meeting(self, x: Rows, y: Rows, arc: Angles) -> _Nodes:
        m = _nodes(self.t, self.s, jnp.broadcast_to(x.norm[:, None], arc.cos.shape), arc)
        some = jnp.where(y.norm > 0, 1.0, 0.0)[None, None, :]  # the sign of nothing is 0
        return m._replace(weight=m.weight * some, gain=m.gain * some)

    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]:
        return _angle(self._meeting(x, y, arc))

    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes:
        m = self._meeting(x, y, arc)
        return Slopes(along=jnp.sum(m.gain / m.spread, axis=0) * m.rho, across=jnp.sum(m.gain, axis=0))

    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts:
        m = self._meeting(x, y, arc)
        slope, by_length = jnp.sum(m.gain, axis=0), jnp.sum(m.gain / m.square, axis=0)
        bend = jnp.sum(m.gain * 2 * m.q**2 / m.square, axis=0) * m.rho
        norm, zero = y.norm[None, :], jnp.zeros_like(slope)
        return MixedParts(zero, over(by_length, norm), zero, turns=over(bend, norm), flat=over(slope, norm))

    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts:
        m = self._meeting(x, y, arc)
        base = 2 * m.gain * m.g * m.q
        rho = m.rho
        return CurvatureParts(
            length=-jnp.sum(base * (2 / m.spread + m.sine / m.square) / m.spread, axis=0) * rho,
            shear=-jnp.sum(base * m.sine / m.square, axis=0),
            turn=jnp.sum(base / m.square, axis=0) * rho,
            flat=-jnp.sum(base / m.spread, axis=0) * rho,
        )

    def _no_mixed(self, x: Rows, y: Rows) -> Bool[Array, "p q"]:
        return jnp.broadcast_to((y.norm == 0)[None, :], (len(x.norm), len(y.norm)))


def _of_direction(x: Rows, rho: Array, slope: Array, bend: Array) -> CurvatureParts:
    """Second derivatives of a function of the direction of `a` alone, from `k_rho` and `k_rhorho`."""
    square = x.norm[:, None] ** 2
    turned = over(slope, square)
    return CurvatureParts(jnp.zeros_like(slope), shear=-turned, turn=over(bend, square), flat=-rho * turned)
