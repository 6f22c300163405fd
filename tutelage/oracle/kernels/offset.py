"""Hermite coefficients of an atom whose argument has a mean, at every scale: `A_k = E[s(m + r z) h_k(z)]`.

All that a `ScaleJet` holds follows from the coefficients of `s` and of its first two derivatives.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from tutelage.oracle.kernels.edges import Corner, Edge, bell, signed
from tutelage.problem.atoms import Atom, Polynomial, ScaleJet, Scales, Smooth, Table, along_last, project
from tutelage.problem.hermite import tabulated

Piece = Edge | Polynomial | Smooth

FAR = 40.0
"""Standard deviations from 0 beyond which an edge is not seen: the normal density is 0 in double precision."""


class Offset(Atom):
    """The derivative of some order of a piece of an activation, one row after the other at its own mean."""

    piece: Piece
    mean: Float[Array, " row"]
    order: int = eqx.field(static=True, default=0)

    @property
    def degree(self) -> float:
        return degree(self.piece)

    def derivative(self, z: Array, order: int = 0) -> Array:
        assert not isinstance(self.piece, Edge)
        return self.piece.derivative(z + along_last(self.mean[:, None], z.ndim), self.order + order)

    def scale_jet(self, scale: Scales, count: int) -> ScaleJet:
        value, first, second = (self._coefficients(scale, count + order, order) for order in range(3))
        k, r = np.arange(float(count))[None], scale[:, None]
        root = np.sqrt(np.maximum(k, 1))
        over = _delayed(first, 1, count) / root
        over_twice = _delayed(second, 2, count) / np.sqrt(np.maximum(k * (k - 1), 1))
        lift = second[:, :count]
        return ScaleJet(
            value=value,
            slope=r * lift + k * over,
            second=_times_square(second, count),
            over=over,
            over_twice=over_twice,
            turn=(lift + (k - 1) * over_twice) * (1.0 * (k >= 1)),
            lift=lift,
        )

    def second_moment(self, scale: Scales) -> Scales:
        if isinstance(self.piece, Edge):
            return _edge_square(self.piece.derivative(self.order), self.mean, scale)
        z, weight = self._rule(scale, 2)
        return jnp.sum(weight * self.derivative(scale[:, None] * z) ** 2, axis=-1)

    def _coefficients(self, scale: Scales, count: int, order: int) -> Table:
        if isinstance(self.piece, Edge):
            return _of_edge(self.piece.derivative(self.order + order), self.mean, scale, count)
        z, weight = self._rule(scale, count)
        return project(self.derivative(scale[:, None] * z, order) * weight, z, count)

    def _rule(self, scale: Scales, count: int) -> tuple[Float[np.ndarray, "1 node"], Float[np.ndarray, "1 node"]]:
        """Nodes and weights of `E[f(z)]`: exact for a polynomial times itself, or times `count` Hermite polynomials."""
        if not isinstance(self.piece, Polynomial):
            assert isinstance(self.piece, Smooth)
            z, weight = self.piece._rule(scale)
            return np.asarray(z), np.asarray(weight)
        nodes, weights = np.polynomial.hermite_e.hermegauss(len(self.piece.coefficients) + count)
        return nodes[None], weights[None] / math.sqrt(2 * math.pi)


def degree(piece: Piece) -> float:
    """The last Hermite coefficient that is not zero."""
    return math.inf if isinstance(piece, Edge) else piece.degree


def _delayed(table: Float[Array, "row more"], by: int, count: int) -> Float[Array, "row some"]:
    return jnp.pad(table, ((0, 0), (by, 0)))[:, :count]


def _times_square(table: Float[Array, "row more"], count: int) -> Float[Array, "row some"]:
    """Coefficients of `z^2 f` from those of `f`, of which there are two more."""
    k = np.arange(float(count))[None]
    up = jnp.asarray(np.sqrt((k + 1) * (k + 2))) * table[:, 2 : count + 2]
    down = jnp.asarray(np.sqrt(k * np.maximum(k - 1, 0))) * _delayed(table, 2, count)
    return up + jnp.asarray(2 * k + 1) * table[:, :count] + down


def _of_edge(edge: Edge, mean: Float[Array, " row"], scale: Scales, count: int) -> Table:
    """`sum_q w_q (r/R)^k R^level E[s_(level - k)(Z + mean/R)] / sqrt(k!)`, with the variance `R^2 = r^2 + spread`."""
    weight, spread = (np.array(each)[None, :, None] for each in (edge.weights, edge.spreads))
    r = scale[:, None, None]
    root = jnp.sqrt(r**2 + spread)
    k = np.arange(count)
    terms = _standard(edge.level, mean[:, None] / root[..., 0], count)
    powers = (r / root) ** jnp.asarray(k, float)[None, None]
    return jnp.sum(weight * powers * root**edge.level * terms, axis=1)


def _standard(level: int, h: Float[Array, "row node"], count: int) -> Float[Array, "row node count"]:
    """`E[s_(level - k)(Z + h)] / sqrt(k!)` for `k < count`: two special ones, then `2 (-1)^j He_j(h) bell(h)`."""
    near = jnp.clip(h, -FAR, FAR)
    heads = [h * signed(h) + 2 * bell(h), signed(h)][1 - level :] if level >= 0 else []
    first = max(-1 - level, 0)  # the order of the first Hermite polynomial
    orders = np.arange(first, first + max(count - len(heads), 1))
    k = orders - first + len(heads)
    factors = 2 * (-1.0) ** orders * np.exp((gammaln(orders + 1) - gammaln(k + 1)) / 2)
    tail = tabulated(near, max(int(orders[-1]) + 1, 2))[..., orders] * bell(near)[..., None]
    tail = tail * along_last(factors, tail.ndim)
    return jnp.concatenate([*(each[..., None] for each in heads), tail], axis=-1)[..., :count]


def _edge_square(edge: Edge, mean: Float[Array, " row"], scale: Scales) -> Scales:
    """`E[s(mean + scale z)^2]`."""
    if edge.level == 1:
        return edge.weights[0] ** 2 * (mean**2 + scale**2)
    weight, spread = (np.array(each) for each in (edge.weights, edge.spreads))
    r, one, two = scale[:, None, None], spread[None, :, None], spread[None, None, :]
    roots = [jnp.sqrt(r**2 + each) for each in (one, two)]
    both = roots[0] * roots[1]
    sine = jnp.sqrt(r**2 * (one + two) + one * two) / both
    h, k = (mean[:, None, None] / root + 0 * both for root in roots)
    return jnp.einsum("rij,i,j->r", Corner(h, k, r**2 / both, sine)(edge.level, edge.level), weight, weight)
