"""The pieces activations are sums of, each with its Hermite coefficients at every scale and their derivatives.

With `h_k = He_k / sqrt(k!)` and `z ~ N(0, 1)`, the coefficients of `s` at scale `r` are `A_k(r) = E[s(r z) h_k(z)]`,
so that `E[s(a.x) t(b.x)] = sum_k A_k(|a|) B_k(|b|) cos^k` (Mehler). Every derivative of that sum needs only how
`A_k` moves with `r`, which a `ScaleJet` holds in the combinations that stay finite at `r = 0` for a smooth `s`.
"""

import abc
import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf as _erf
from jaxtyping import Array, Float

AnyArray = Array | np.ndarray
AnyArrayT = TypeVar("AnyArrayT", Array, np.ndarray)
Scales = Float[Array, "*rows"]
Table = Float[Array, "*rows count"]


class ScaleJet(NamedTuple):
    """Hermite coefficients `A_k(r)` for `k < count` (last axis) and their derivatives in the scale `r`."""

    value: Table  # A_k
    slope: Table  # A_k'
    second: Table  # A_k''
    over: Table  # A_k / r, for k >= 1 (0 at k = 0)
    over_twice: Table  # A_k / r^2, for k >= 2 (0 below)
    turn: Table  # (A_k' - A_k / r) / r, for k >= 1 (0 at k = 0)
    lift: Table  # (A_k' - k A_k / r) / r = coefficients of s''


class Atom(eqx.Module):
    """One piece of an activation: a function of a number, with its Hermite coefficients."""

    @property
    @abc.abstractmethod
    def degree(self) -> float:
        """The last Hermite coefficient that is not zero (`inf` if there is none)."""

    @abc.abstractmethod
    def derivative(self, z: Array, order: int = 0) -> Array:
        """The derivative of the given order, almost everywhere."""

    @abc.abstractmethod
    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        """The first `count` normalised Hermite coefficients of `s(scale z)`, with derivatives in the scale."""

    @abc.abstractmethod
    def second_moment(self, scale: Scales) -> Scales:
        """`E[s(scale z)^2]`, the sum of the squares of all Hermite coefficients (Parseval)."""

    def rough_at_zero(self, count: int) -> Float[np.ndarray, " count"] | None:
        """Hermite coefficients of the part that has no derivative at 0, up to a factor; None if there is no such part.

        Where it meets another unit, derivatives with respect to a zero row do not exist.
        """
        del count
        return None

    def __call__(self, z: Array) -> Array:
        return self.derivative(z, 0)


class PiecewiseLinear(Atom):
    """`linear z + kink |z|`: the identity is (1, 0), `|z|` is (0, 1), ReLU is (1/2, 1/2)."""

    linear: float = eqx.field(static=True)
    kink: float = eqx.field(static=True)

    @property
    def degree(self) -> float:
        return math.inf if self.kink else 1

    def rough_at_zero(self, count: int) -> Float[np.ndarray, " count"] | None:
        return self.kink * absolute_coefficients(count) if self.kink else None

    def derivative(self, z: Array, order: int = 0) -> Array:
        if order == 0:
            return self.linear * z + self.kink * jnp.abs(z)
        return self.linear + self.kink * jnp.sign(z) if order == 1 else jnp.zeros_like(z)

    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        r = scale[..., None]
        k = along_last(np.arange(count), r.ndim)
        bent = self.kink * along_last(absolute_coefficients(count), r.ndim)
        unit = bent + self.linear * (k == 1)
        one = jnp.ones_like(r)
        # At r = 0 the last three do not exist; the kernel marks that itself, so any finite number will do here.
        inverse = jnp.where(r > 0, 1 / jnp.where(r > 0, r, 1.0), 0.0)
        return ScaleJet(
            value=unit * r,
            slope=unit * one,
            second=jnp.zeros_like(unit * one),
            over=unit * (k >= 1) * one,
            over_twice=inverse * (bent * (k >= 2)),
            turn=jnp.zeros_like(unit * one),
            lift=inverse * (bent * (1 - k)),
        )

    def second_moment(self, scale: Scales) -> Scales:
        return (self.linear**2 + self.kink**2) * scale**2


@functools.cache
def absolute_coefficients(count: int) -> Float[np.ndarray, " count"]:
    """Normalised Hermite coefficients of `|z|`: `sqrt(2/pi)`, 0, and on by `a_{k+2} = a_k (1-k)/sqrt((k+1)(k+2))`."""
    values = np.zeros(count)
    values[:1] = math.sqrt(2 / math.pi)
    for k in range(0, count - 2, 2):
        values[k + 2] = values[k] * (1 - k) / math.sqrt((k + 1) * (k + 2))
    return values


class Sign(Atom):
    """`size` for positive `z`, `-size` for negative, 0 at 0: what steps are made of. Its scale makes no difference."""

    size: float = eqx.field(static=True)

    @property
    def degree(self) -> float:
        return math.inf

    def rough_at_zero(self, count: int) -> Float[np.ndarray, " count"] | None:
        return self.size * sign_coefficients(count)

    def derivative(self, z: Array, order: int = 0) -> Array:
        return self.size * jnp.sign(z) if order == 0 else jnp.zeros_like(z)

    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        r = scale[..., None]
        k = along_last(np.arange(count), r.ndim)
        unit = self.size * along_last(sign_coefficients(count), r.ndim)
        # At r = 0 nothing but the value exists; the kernel marks that itself, so any finite number will do here.
        inverse = jnp.where(r > 0, 1 / jnp.where(r > 0, r, 1.0), 0.0)
        value = jnp.where(r > 0, unit, 0.0)
        zero = jnp.zeros_like(value)
        return ScaleJet(
            value=value,
            slope=zero,
            second=zero,
            over=inverse * unit,
            over_twice=inverse**2 * (unit * (k >= 2)),
            turn=-(inverse**2) * unit,
            lift=-(inverse**2) * (k * unit),
        )

    def second_moment(self, scale: Scales) -> Scales:
        return jnp.where(scale > 0, self.size**2, 0.0)


@functools.cache
def sign_coefficients(count: int) -> Float[np.ndarray, " count"]:
    """Normalised Hermite coefficients of the sign, the slope of `|z|`: `sqrt(k+1)` times the next one of that."""
    return np.asarray(absolute_coefficients(count + 1)[1:] * np.sqrt(np.arange(1, count + 1)))


class Polynomial(Atom):
    """`sum_m coefficients[m] z^m`."""

    coefficients: tuple[float, ...] = eqx.field(static=True)

    @property
    def degree(self) -> float:
        return len(self.coefficients) - 1

    def derivative(self, z: Array, order: int = 0) -> Array:
        values = np.polynomial.polynomial.polyder(np.array(self.coefficients), order)
        return jnp.polyval(jnp.asarray(values[::-1]), jnp.asarray(z, float))

    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        table = _monomial_table(self.coefficients, count)  # [k, m]: the part of A_k that goes with r^m
        m = np.arange(len(self.coefficients))
        k = np.arange(count)[:, None]

        def times(factor: np.ndarray, down: int) -> Array:
            part = table * factor
            powers = jnp.stack([scale ** max(int(j) - down, 0) for j in m], axis=-1)
            return jnp.einsum("...m,km->...k", powers, jnp.asarray(np.where(m >= down, part, 0.0)))

        one = np.ones_like(table)
        return ScaleJet(
            value=times(one, 0),
            slope=times(one * m, 1),
            second=times(one * m * (m - 1), 2),
            over=times(one * (k >= 1), 1),
            over_twice=times(one * (k >= 2), 2),
            turn=times(one * (m - 1) * (k >= 1), 2),
            lift=times(one * (m - k), 2),
        )

    def second_moment(self, scale: Scales) -> Scales:
        return jnp.sum(self.scale_jet(scale, len(self.coefficients)).value ** 2, axis=-1)


@functools.cache
def _monomial_table(coefficients: tuple[float, ...], count: int) -> Float[np.ndarray, "count power"]:
    """`table[k, m] = coefficients[m] E[z^m h_k(z)]`, with `E[z^m He_k] = m! / (2^j j!)`, `j = (m - k)/2`."""
    table = np.zeros((count, len(coefficients)))
    for m, value in enumerate(coefficients):
        for k in range(m % 2, min(m, count - 1) + 1, 2):
            j = (m - k) // 2
            table[k, m] = value * (math.factorial(m) // (2**j * math.factorial(j))) / math.sqrt(math.factorial(k))
    return table


class ErfMixture(Atom):
    """`sum_q weights[q] erf(slopes[q] z)`; erf itself, and (exactly) tanh and the odd part of the sigmoid."""

    weights: tuple[float, ...] = eqx.field(static=True)
    slopes: tuple[float, ...] = eqx.field(static=True)

    @property
    def degree(self) -> float:
        return math.inf

    def derivative(self, z: Array, order: int = 0) -> Array:
        w, b = np.array(self.weights), np.array(self.slopes)
        z = jnp.asarray(z, float)[..., None]
        x = along_last(b, z.ndim) * z
        if order == 0:
            return jnp.asarray(_erf(x) @ w)
        bell = 2 / math.sqrt(math.pi) * jnp.exp(-(x**2))
        return jnp.asarray(bell @ (w * b) if order == 1 else (-2 * x * bell) @ (w * b**2))

    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        # One node: A_k = c_k u^k, u = b r / sqrt(1 + 2 b^2 r^2), k odd. Each derivative is written with v = u / r and
        # shrink = 1 - 2 u^2 = 1 / (1 + 2 b^2 r^2), so that nothing cancels at large scales or divides by r.
        r = scale[..., None, None]
        w, b = (along_last(np.array(part)[:, None], r.ndim) for part in (self.weights, self.slopes))
        k = along_last(np.arange(float(count)), r.ndim)
        c = along_last(erf_coefficients(count), r.ndim)
        shrink = 1 / (1 + 2 * (b * r) ** 2)
        v = b * jnp.sqrt(shrink)
        u = v * r
        once = c * u ** np.maximum(k - 1, 0) * v
        twice = c * (k >= 2) * u ** np.maximum(k - 2, 0) * v**2
        tail = 2 * c * u**k * v**2

        def total(x: Array) -> Array:
            return jnp.sum(w * x, axis=-2)

        return ScaleJet(
            value=total(once * r),
            slope=total(k * shrink * once),
            second=total(k * shrink * ((k - 1) * shrink * twice - 3 * tail)),
            over=total(once),
            over_twice=total(twice),
            turn=total((k - 1) * twice - k * tail),
            lift=total(-k * tail),
        )

    def second_moment(self, scale: Scales) -> Scales:
        w, x = np.array(self.weights), along_last(np.array(self.slopes), scale.ndim + 1) * scale[..., None]
        spread = jnp.sqrt(1 + 2 * x**2)
        angle = jnp.arcsin(2 * x[..., :, None] * x[..., None, :] / (spread[..., :, None] * spread[..., None, :]))
        return 2 / math.pi * jnp.einsum("...ij,i,j->...", angle, w, w)


@functools.cache
def erf_coefficients(count: int) -> Float[np.ndarray, " count"]:
    """`c_k` with `E[erf(b r z) h_k] = c_k (b r)^k (1 + 2 b^2 r^2)^(-k/2)` for odd k: `c_1 = 2/sqrt(pi)`, ..."""
    values = np.zeros(count)
    if count > 1:
        values[1] = 2 / math.sqrt(math.pi)
    for k in range(1, count - 2, 2):
        values[k + 2] = values[k] * -2 * k / math.sqrt((k + 1) * (k + 2))
    return values


class Smooth(Atom):
    """`fn(z) - kink_removed |z|`: any function JAX can trace, made smooth at 0, by quadrature.

    `kinks` are points other than 0 where the slope jumps, by `jumps`; the quadrature is split there.
    """

    fn: Callable[[Array], Array] = eqx.field(static=True)
    kink_removed: float = eqx.field(static=True, default=0.0)
    kinks: tuple[float, ...] = eqx.field(static=True, default=())
    jumps: tuple[float, ...] = eqx.field(static=True, default=())
    nodes: int = eqx.field(static=True, default=20)

    @property
    def degree(self) -> float:
        return math.inf

    def derivative(self, z: Array, order: int = 0) -> Array:
        fn = self.fn
        for _ in range(order):
            fn = jax.grad(fn)
        z = jnp.asarray(z)
        smooth = jax.vmap(fn)(z.ravel()).reshape(z.shape)
        removed = (jnp.abs(z), jnp.sign(z), jnp.zeros_like(z))[min(order, 2)]
        return smooth - (self.kink_removed * removed).astype(smooth.dtype)

    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        r = scale[..., None]
        z, weight = self._rule(scale)
        first = self.derivative(r * z, 1) * weight
        spots, bends = self._bends(scale, z, weight)
        k = along_last(np.arange(float(count)), r.ndim)
        s_prime, s_second = project(first, z, count), project(bends, spots, count)
        over_twice = _delay(s_second, 2) / np.sqrt(np.maximum(k * (k - 1), 1))
        return ScaleJet(
            value=project(self.derivative(r * z) * weight, z, count),
            slope=project(first * z, z, count),
            second=project(bends * spots**2, spots, count),
            over=_delay(s_prime, 1) / np.sqrt(np.maximum(k, 1)),
            over_twice=over_twice,
            turn=(s_second + (k - 1) * over_twice) * (1.0 * (k >= 1)),
            lift=s_second,
        )

    def second_moment(self, scale: Scales) -> Scales:
        z, weight = self._rule(scale)
        return jnp.sum(weight * self.derivative(scale[..., None] * z) ** 2, axis=-1)

    def _rule(self, scale: Scales) -> tuple[AnyArray, AnyArray]:
        """Nodes and weights for `E[f(z)]`, split where `scale z` is at a kink."""
        if not self.kinks:
            return _gaussian_rule(np, along_last(_PANELS, scale.ndim + 1), self.nodes)
        panels = jnp.broadcast_to(_PANELS, (*scale.shape, len(_PANELS)))
        edges = jnp.sort(jnp.concatenate([panels, self._kinks_at(scale)], axis=-1), axis=-1)
        return _gaussian_rule(jnp, edges, self.nodes)

    def _bends(self, scale: Scales, z: AnyArray, weight: AnyArray) -> tuple[AnyArray, Array]:
        """Where the second derivative sits and how much: the nodes, and a point mass at each kink."""
        r = scale[..., None]
        second = self.derivative(r * z, 2) * weight
        if not self.kinks:
            return z, second
        # E[delta(r z - x) g(z)] = phi(x/r) g(x/r) / r
        points = self._kinks_at(scale)
        masses = along_last(np.array(self.jumps), r.ndim) * jnp.where(
            r > 0, _bell(jnp, points) / jnp.where(r > 0, r, 1.0), 0.0
        )
        return jnp.concatenate([z, points], axis=-1), jnp.concatenate([second, masses], axis=-1)

    def _kinks_at(self, scale: Scales) -> Array:
        r = scale[..., None]
        return jnp.clip(along_last(np.array(self.kinks), r.ndim) / jnp.where(r > 0, r, 1e-300), -_EDGE, _EDGE)


# Beyond 13 the square root of the Gaussian density, which bounds h_k times the density, is below 1e-18. Towards 0 the
# panels halve down to 2^-21, so that s(r z) is resolved for scales r from 0 to 1e6; elsewhere they are 1/2 wide, which
# resolves h_k up to k of several hundred.
_EDGE = 13.0
_SIDE = np.concatenate([2.0 ** np.arange(-21, -1), np.arange(1, 27) / 2])
_PANELS = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])


def _gaussian_rule(xp: ModuleType, edges: AnyArray, nodes: int) -> tuple[AnyArray, AnyArray]:
    """Gauss-Legendre on each panel, with the normal density in the weights; the last axis runs over all nodes."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, (edges[..., 1:] - edges[..., :-1]) / 2
    z = middle[..., None] + half[..., None] * along_last(points, half.ndim + 1)
    w = half[..., None] * along_last(weights, half.ndim + 1) * _bell(xp, z)
    return z.reshape(*z.shape[:-2], -1), w.reshape(*w.shape[:-2], -1)


def along_last(table: AnyArrayT, ndim: int) -> AnyArrayT:
    """A table for the last axes of arrays of `ndim` axes: NumPy would add the missing axes, JAX is asked not to."""
    return table.reshape((1,) * (ndim - table.ndim) + table.shape)


def _bell(xp: ModuleType, z: AnyArray) -> AnyArray:
    bell: AnyArray = xp.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return bell


def project(f: Float[Array, "*rows nodes"], z: AnyArray, count: int) -> Table:
    """`sum_i f_i h_k(z_i)` for `k < count`, by the three-term recurrence of the normalised Hermite polynomials.

    Fixed nodes (NumPy) make a table and one product of matrices; nodes that move with the scale go term by term.
    """
    if isinstance(z, np.ndarray):
        return f @ hermite_table(z.ravel(), count)

    def step(pair: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], Array]:
        last, this = pair
        following = (z * this - jnp.sqrt(k) * last) / jnp.sqrt(k + 1)
        return (this, following), jnp.sum(f * this, axis=-1)

    _, sums = jax.lax.scan(step, (jnp.zeros_like(z), jnp.ones_like(z)), jnp.arange(count, dtype=float))
    return jnp.moveaxis(sums, 0, -1)


def hermite_table(z: Float[np.ndarray, " nodes"], count: int) -> Float[np.ndarray, "nodes count"]:
    """`h_k(z_i)`, the normalised Hermite polynomials, one column for each `k < count`."""
    table = np.zeros((len(z), count + 1))
    table[:, 0] = 1.0
    for k in range(count - 1):
        table[:, k + 1] = (z * table[:, k] - math.sqrt(k) * table[:, k - 1]) / math.sqrt(k + 1)
    return table[:, :count]


def _delay(table: Table, by: int) -> Table:
    return jnp.concatenate([jnp.zeros_like(table[..., :by]), table[..., :-by]], axis=-1)[..., : table.shape[-1]]
