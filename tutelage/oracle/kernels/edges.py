"""Kernels of units that see a mean: `E[s(a.x + m) t(b.x + n)]` where both are smoothed signs, or their integrals.

`erf(f z)` is the mean of `sign(z + g)` over a Gaussian `g` of variance `1/(2 f^2)`, so that erf, the sign and |z| are
of one family: `s_0 = sign`, `s_1 = |z|`, `s_-1 = 2 delta`, and on by derivatives. With `U` and `V` of unit variance,
means `h` and `k` and correlation `r`, all moments `R(i, j) = E[s_i(U) s_j(V)]` follow from four of them, because
`E[U f] = h E f + E f_U + r E f_V` for every `f(U, V)`, and `U s_i = (i + 1) s_(i+1)`:

    (i + 1) R(i+1, j) = h R(i, j) + R(i-1, j) + r R(i, j-1)

Three of the four are elementary, and `R(0, 0)` is a probability of quadrants. The derivatives of a kernel are again
such moments (Price): with `F_ij = E[s^(i) t^(j)]` they are written so that nothing cancels for parallel rows.
"""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float

from tutelage.oracle.geometry import Angles, Rows
from tutelage.oracle.kernels.base import CurvatureParts, MixedParts, PolarKernel, Slopes
from tutelage.problem.atoms import along_last

SHARP = 1e-120
"""The variance that smooths a kink or a jump: none, but a row of length 0 has a variance to divide by."""


class Edge(NamedTuple):
    """`sum_q weights[q] s_level`, each smoothed by a Gaussian of variance `spreads[q]`."""

    level: int
    weights: tuple[float, ...]
    spreads: tuple[float, ...]

    def derivative(self, order: int) -> "Edge":
        return self._replace(level=self.level - order)


class Corner:
    """`R(i, j)` of the means `h` and `k`, the correlation and its sine; each moment is computed once."""

    def __init__(self, h: Array, k: Array, correlation: Array, sine: Array):
        flat = (h == 0) & (k == 0)  # quadrants are found by directions: any in which both tend to 0 will do
        h, k = (jnp.where(flat, 1e-150, each) for each in (h, k))
        self.h, self.k, self.correlation, self.sine = h, k, correlation, sine
        # k - r h and h - r k from one difference: for parallel units they are the same number with opposite signs, and
        # what rounding does to it is one small change of the means.
        sign = jnp.where(correlation < 0, -1.0, 1.0)
        gap, rest = k - sign * h, sign * sine**2 / (1 + jnp.abs(correlation))
        self.over_h, self.over_k = gap + h * rest, k * rest - sign * gap
        self.left, self.right = self.over_h / sine, self.over_k / sine
        self.known: dict[tuple[int, int], Array] = {}

    def __call__(self, i: int, j: int) -> Array:
        if (i, j) not in self.known:
            self.known[i, j] = self._moment(i, j)
        return self.known[i, j]

    def _moment(self, i: int, j: int) -> Array:
        if max(i, j) < 0:
            return self._density(-1 - i, -1 - j)
        if (i, j) == (0, 0):
            return quadrants(self.h, self.k, self.left, self.right)
        if (i, j) == (-1, 0):
            return 2 * bell(self.h) * signed(self.left)
        if (i, j) == (-1, 1):
            return 2 * bell(self.h) * (self.over_h * signed(self.left) + 2 * self.sine * bell(self.left))
        if i < -1:
            higher = (i + 2) * self(i + 2, j) if i < -2 else 0.0
            return higher - self.h * self(i + 1, j) - self.correlation * self(i + 1, j - 1)
        if i == 1 and j > -1:
            return self.h * self(0, j) + self(-1, j) + self.correlation * self(0, j - 1)
        return self._swapped(j, i)

    @functools.cached_property
    def _swapped(self) -> "Corner":
        other = Corner(self.k, self.h, self.correlation, self.sine)
        other.known[0, 0] = self(0, 0)
        return other

    def _density(self, i: int, j: int) -> Array:
        """`4 d^i/dh^i d^j/dk^j` of the joint density at 0, for `i, j <= 1`."""
        assert max(i, j) <= 1
        density = 4 * bell(self.h) * bell(self.left) / self.sine
        by_h, by_k = self.right / self.sine, self.left / self.sine
        if (i, j) == (1, 1):
            return (by_h * by_k + self.correlation / self.sine**2) * density
        return density * (-by_h if i else -by_k if j else 1.0)


_NODES, _WEIGHTS = (0.5 * each for each in np.polynomial.legendre.leggauss(20))
_NODES = _NODES + 0.5


def quadrants(h: Array, k: Array, left: Array, right: Array) -> Array:
    """`E[sign(U) sign(V)]` by Owen's T function, `1 - 4 T(h, left/h) - 4 T(k, right/k)` up to signs, to 1e-15.

    `left = (k - r h)/sqrt(1 - r^2)`, and `right` with `h` and `k` exchanged.
    """
    signs = [jnp.where(each < 0, -1.0, 1.0) for each in (h, k)]
    apart = jnp.where(signs[0] != signs[1], 2.0, 0.0)
    return 1 - apart - signs[0] * _owen(jnp.abs(h), left) - signs[1] * _owen(jnp.abs(k), right)


def _owen(h: Array, across: Array) -> Array:
    """`4 T(h, across/h)` for `h >= 0`: Gauss-Legendre of 20 nodes where the ratio is at most 1, else its reflection."""
    size = jnp.abs(across)
    low, high = jnp.minimum(h, size), jnp.maximum(h, size)
    ratio = low / jnp.where(high == 0, 1.0, high)
    square = 1 + (ratio[..., None] * along_last(_NODES, ratio.ndim + 1)) ** 2
    inside = jnp.exp(-0.5 * high[..., None] ** 2 * square) / square
    wedge = 2 / math.pi * ratio * (inside @ _WEIGHTS)
    found = jnp.where(size <= h, wedge, 1 - signed(h) * signed(size) - wedge)
    return jnp.where(across < 0, -found, found)


def bell(z: Array) -> Array:
    """The normal density."""
    return jnp.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def signed(z: Array) -> Array:
    """`E[sign(Z + z)]`."""
    return erf(z * math.sqrt(0.5))


class _Seen(NamedTuple):
    """Lengths, means and spreads, per pair of nodes (first axis) and pair of rows."""

    alpha: Float[Array, "1 p 1"]
    beta: Float[Array, "1 1 q"]
    m: Float[Array, "1 p 1"]
    n: Float[Array, "1 1 q"]
    cos: Float[Array, "1 p q"]
    sin: Float[Array, "1 p q"]
    root: Float[Array, "k p 1"]  # of the variance |a|^2 + spread
    root_b: Float[Array, "k 1 q"]
    share: Float[Array, "k p 1"]  # of |a|^2 in the variance
    share_b: Float[Array, "k 1 q"]
    blur: Float[Array, "k p 1"]  # of the spread, 1 - share
    blur_b: Float[Array, "k 1 q"]


class EdgeKernel(PolarKernel):
    """Two mixtures of smoothed edges, each row with a mean: the double sum over their nodes."""

    s: Edge = eqx.field(static=True)
    t: Edge = eqx.field(static=True)
    m: Float[Array, " p"]
    n: Float[Array, " q"]

    @property
    def accuracy(self) -> str:
        return "closed form (quadrants of a normal law), to 1e-15 of the largest term"

    def _seen(self, x: Rows, y: Rows, arc: Angles) -> _Seen:
        _, one, two = (jnp.asarray(each)[:, None, None] for each in _node_pairs(self.s, self.t))
        alpha, beta = x.norm[None, :, None], y.norm[None, None, :]
        variance, variance_b = alpha**2 + one, beta**2 + two
        return _Seen(
            alpha=alpha,
            beta=beta,
            m=self.m[None, :, None],
            n=self.n[None, None, :],
            cos=(arc.sign * arc.cos)[None],
            sin=arc.sin[None],
            root=jnp.sqrt(variance),
            root_b=jnp.sqrt(variance_b),
            share=alpha**2 / variance,
            share_b=beta**2 / variance_b,
            blur=one / variance,
            blur_b=two / variance_b,
        )

    def _moments(self, c: _Seen) -> "_Moments":
        square = c.share * c.share_b * c.sin**2 + c.share * c.blur_b + c.blur * c.share_b + c.blur * c.blur_b
        correlation = c.alpha / c.root * (c.beta / c.root_b) * c.cos
        corner = Corner(c.m / c.root + 0 * square, c.n / c.root_b + 0 * square, correlation, jnp.sqrt(square))
        weight = jnp.asarray(_node_pairs(self.s, self.t)[0])[:, None, None]
        return _Moments(corner, weight, (self.s.level, self.t.level), c.root, c.root_b)

    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]:
        return _total(self._moments(self._seen(x, y, arc))(0, 0))

    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes:
        c = self._seen(x, y, arc)
        f, level = self._moments(c), self.s.level
        if level == 1:
            along = f(1, 1) * c.beta * c.cos + f(2, 0) * c.alpha
        else:
            along = f(1, 1) * c.beta * c.cos * c.blur + c.alpha / c.root**2 * (level * f(0, 0) - c.m * f(1, 0))
        return Slopes(_total(along), _total(f(1, 1) * c.beta))

    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts:
        c = self._seen(x, y, arc)
        f, area = self._moments(c), c.alpha * c.beta
        pull = c.share * ((self.s.level - 1) * f(1, 1) - c.m * f(2, 1))
        pull_b = c.share_b * ((self.t.level - 1) * f(1, 1) - c.n * f(1, 2))
        bent = area * f(2, 2)
        return MixedParts(
            lengths=_total(
                c.cos * (f(1, 1) + pull + pull_b) + bent * (c.sin**2 + c.cos**2 * (c.blur + c.blur_b)),
            ),
            length_turn=_total(f(1, 1) + pull + bent * c.cos * c.blur),
            turn_length=_total(f(1, 1) + pull_b + bent * c.cos * c.blur_b),
            turns=_total(bent),
            flat=_total(f(1, 1)),
        )

    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts:
        c = self._seen(x, y, arc)
        f, level = self._moments(c), self.s.level
        pull = ((level - 1) * f(1, 1) - c.m * f(2, 1)) / c.root**2 * c.alpha * c.beta
        bent = c.beta**2 * f(2, 2)
        length = (
            f(2, 0) * (1 + (level - 2) * c.share)
            - c.share * c.m * f(3, 0)
            + c.cos * pull * (c.share + 2 * c.blur)
            + bent * (c.cos * c.blur) ** 2
        )
        return CurvatureParts(
            length=_total(length),
            shear=_total(pull + bent * c.cos * c.blur),
            turn=_total(bent),
            flat=_total(f(2, 0)),
        )


class _Moments(NamedTuple):
    """`F_ij = E[s^(i) t^(j)]` of each pair of nodes, with their weights."""

    corner: Corner
    weight: Array
    levels: tuple[int, int]
    root: Array
    root_b: Array

    def __call__(self, i: int, j: int) -> Array:
        one, two = self.levels[0] - i, self.levels[1] - j
        return self.weight * self.root**one * self.root_b**two * self.corner(one, two)


def _total(x: Float[Array, "k p q"]) -> Float[Array, "p q"]:
    return jnp.sum(x, axis=0)


@functools.cache
def _node_pairs(s: Edge, t: Edge) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Weights and spreads of all pairs of nodes, without those whose weight is lost in rounding."""
    weight = np.outer(s.weights, t.weights)
    i, j = np.nonzero(np.abs(weight) > 1e-19 * np.abs(weight).sum())
    return weight[i, j], np.array(s.spreads)[i], np.array(t.spreads)[j]
