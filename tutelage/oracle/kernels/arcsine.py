"""The arcsine kernel: `E[s(a.x) t(b.x)]` for mixtures of erf (erf, tanh, the sigmoid's odd part), to rounding.

For `s(z) = erf(f z)`, `t(z) = erf(g z)`: `K = (2/pi) arctan(2 f g a.b / R)`, `R^2 = 1 + 2x + 2y + 4 x y sin^2`, with
`x = f^2 |a|^2`, `y = g^2 |b|^2`. Writing `R` with the sine keeps it right for long parallel rows.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage.oracle.geometry import Angles, Rows
from tutelage.oracle.kernels.base import CurvatureParts, MixedParts, PolarKernel, Slopes
from tutelage.problem.atoms import ErfMixture

Pairs = Float[np.ndarray, " m"]


class _Nodes(NamedTuple):
    """Per pair of nodes (first axis) and pair of rows."""

    weight: Float[Array, "m 1 1"]
    f: Float[Array, "m 1 1"]
    g: Float[Array, "m 1 1"]
    alpha: Float[Array, "1 p 1"]
    beta: Float[Array, "1 1 q"]
    rho: Float[Array, "1 p q"]
    spread: Float[Array, "m p 1"]  # 1 + 2x
    spread_b: Float[Array, "m 1 q"]  # 1 + 2y
    root: Float[Array, "m p q"]  # R
    bent: Float[Array, "m p q"]  # 1 + 2 y sin^2


class ArcsineKernel(PolarKernel):
    """Two mixtures of erf: the double sum of the closed form over their nodes."""

    s: ErfMixture
    t: ErfMixture

    @property
    def accuracy(self) -> str:
        return "closed form (arcsine), to rounding"

    def _nodes(self, x: Rows, y: Rows, arc: Angles) -> _Nodes:
        weight, f, g = (jnp.asarray(v)[:, None, None] for v in _node_pairs(self.s, self.t))
        alpha, beta = x.norm[None, :, None], y.norm[None, None, :]
        xx, yy, sine = (f * alpha) ** 2, (g * beta) ** 2, arc.sin[None] ** 2
        return _Nodes(
            weight=weight,
            f=f,
            g=g,
            alpha=alpha,
            beta=beta,
            rho=(arc.sign * arc.cos)[None],
            spread=1 + 2 * xx,
            spread_b=1 + 2 * yy,
            root=jnp.sqrt(1 + 2 * xx + 2 * yy + 4 * xx * yy * sine),
            bent=1 + 2 * yy * sine,
        )

    def _value(self, x: Rows, y: Rows, arc: Angles) -> Float[Array, "p q"]:
        m = self._nodes(x, y, arc)
        angle = jnp.arctan2(2 * (m.f * m.alpha) * (m.g * m.beta) * m.rho, m.root)
        return 2 / math.pi * _total(m, angle)

    def _slopes(self, x: Rows, y: Rows, arc: Angles) -> Slopes:
        m = self._nodes(x, y, arc)
        base = 4 / math.pi * m.f * m.g / m.root
        return Slopes(along=_total(m, base / m.spread) * m.beta[0] * m.rho[0], across=_total(m, base) * m.beta[0])

    def _mixed_parts(self, x: Rows, y: Rows, arc: Angles) -> MixedParts:
        m = self._nodes(x, y, arc)
        base = 4 / math.pi * m.f * m.g / m.root
        cube = base / m.root**2
        return MixedParts(
            lengths=_total(m, cube) * m.rho[0],
            length_turn=_total(m, cube * m.spread_b),
            turn_length=_total(m, cube * m.spread),
            turns=_total(m, 4 * cube * (m.f * m.g * m.alpha * m.beta) ** 2) * m.rho[0],
            flat=_total(m, base),
        )

    def _curvature_parts(self, x: Rows, y: Rows, arc: Angles) -> CurvatureParts:
        m = self._nodes(x, y, arc)
        base = 4 / math.pi * m.f * m.g / m.root
        cube = base / m.root**2
        scale, rho = (m.alpha * m.beta)[0], m.rho[0]
        return CurvatureParts(
            length=_total(m, -2 * m.f**2 * (2 * base / m.spread + cube * m.bent) / m.spread) * scale * rho,
            shear=_total(m, -2 * m.f**2 * cube * m.bent) * scale,
            turn=_total(m, 4 * cube * (m.f * m.g * m.beta) ** 2) * scale * rho,
            flat=_total(m, -2 * m.f**2 * base / m.spread) * scale * rho,
        )


def _node_pairs(s: ErfMixture, t: ErfMixture) -> tuple[Pairs, Pairs, Pairs]:
    """Weights and slopes of all pairs of nodes, without those whose weight is lost in rounding."""
    weight = np.outer(s.weights, t.weights)
    i, j = np.nonzero(np.abs(weight) > 1e-19 * np.abs(weight).sum())
    return weight[i, j], np.array(s.slopes)[i], np.array(t.slopes)[j]


def _total(m: _Nodes, x: Float[Array, "m p q"]) -> Float[Array, "p q"]:
    return jnp.sum(m.weight * x, axis=0)
