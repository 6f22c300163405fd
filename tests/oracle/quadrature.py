"""A second route to the same expectations, by integration in the plane of the two rows: slow, and independent.

`x` is written in polar coordinates of the plane of `a` and `b`, and the integral is split at every ray and circle
where an activation has a kink, with panels that shrink towards them, so that Gauss's rule sees smooth pieces only.
No kernel formula, Hermite coefficient or angle identity is used.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from tutelage.problem.activations import Activation, Spec, activation

Vector = NDArray[np.float64]
_RADIUS = 13.0  # the mass outside, exp(-13^2/2), is 2e-37


class Expectation(NamedTuple):
    """`E[s(a.x) t(b.x)]` for one pair of rows, and its derivatives."""

    value: float
    gradient: Float[np.ndarray, " n"]  # in a: E[s' t x]
    mixed: Float[np.ndarray, "n n"]  # in a and b: E[s' t' x x^T]
    curvature: Float[np.ndarray, "n n"]  # in a twice: E[s'' t x x^T]


class _Plane(NamedTuple):
    """Integration nodes in the plane spanned by two rows: `a.x`, `b.x`, the two coordinates of `x`, the weights."""

    along_a: Vector
    along_b: Vector
    x: Vector
    weight: Vector
    basis: Vector


def expectation(s: Spec, t: Spec, a: ArrayLike, b: ArrayLike) -> Expectation:
    """`E[s(a.x) t(b.x)]` and its derivatives, to about `1e-13 + 1e-16 norm` of their size, for rows of norm up to 1e6.

    `s` and `t` may have kinks anywhere; the curvature takes account of a kink of `s` at 0 only.

    ```python
    >>> import tutelage
    >>> from oracle.quadrature import expectation
    >>> round(expectation("relu", "relu", [1.0, 0.0], [1.0, 0.0]).value, 12)
    0.5

    ```
    """
    s, t = activation(s), activation(t)
    a, b = np.asarray(a, float), np.asarray(b, float)
    plane = _plane(s, t, a, b)
    s0, s1, s2 = (np.asarray(f(plane.along_a)) for f in (s, s.derivative, s.second_derivative))
    t0, t1 = (np.asarray(f(plane.along_b)) for f in (t, t.derivative))
    return Expectation(
        value=float(np.sum(plane.weight * s0 * t0)),
        gradient=(plane.weight * s1 * t0) @ plane.x @ plane.basis,
        mixed=_second(plane, s1 * t1),
        curvature=_second(plane, s2 * t0) + _on_kink(s, t, a, b, plane.basis),
    )


def expectation_mp(
    s: Callable[[mpmath.mpf], mpmath.mpf],
    t: Callable[[mpmath.mpf], mpmath.mpf],
    alpha: float | mpmath.mpf,
    beta: float | mpmath.mpf,
    theta: float | mpmath.mpf,
    digits: int = 30,
) -> mpmath.mpf:
    """`E[s(a.x) t(b.x)]` for rows of norms `alpha`, `beta` at the angle `theta`; mpmath functions, kinked at 0 at most.

    ```python
    >>> import mpmath
    >>> from oracle.quadrature import expectation_mp
    >>> mpmath.nstr(expectation_mp(abs, abs, 1, 1, 0, digits=20), 12)
    '1.0'

    ```
    """
    with mpmath.workdps(digits + 5):
        alpha, beta, theta = map(mpmath.mpf, (alpha, beta, theta))
        half = mpmath.pi / 2

        def integrand(phi: mpmath.mpf, r: mpmath.mpf) -> mpmath.mpf:
            u, v = alpha * r * mpmath.cos(phi), beta * r * mpmath.cos(phi - theta)
            return s(u) * t(v) * r * mpmath.exp(-(r**2) / 2)

        edges = sorted({-half, theta - half, half, theta + half, 3 * half})
        reach = mpmath.sqrt(2 * mpmath.log(10) * (digits + 2))
        plane = mpmath.quad(integrand, edges, [0, 2, reach], method="gauss-legendre")
        return plane / (2 * mpmath.pi)


def _second(plane: _Plane, f: Vector) -> Vector:
    """`E[f x x^T]`: in the plane by integration, across it `E[f]` times the identity."""
    density = plane.weight * f
    inside = plane.x.T @ (density[:, None] * plane.x)
    across = np.eye(plane.basis.shape[1]) - plane.basis.T @ plane.basis
    return np.asarray(plane.basis.T @ inside @ plane.basis + np.sum(density) * across)


def _on_kink(s: Activation, t: Activation, a: Vector, b: Vector, basis: Vector) -> Vector:
    """The point mass that a kink at 0 puts in `s''`: an expectation over the line `a.x = 0`, in its coordinate `y`."""
    jump = float(s.derivative(1e-300) - s.derivative(-1e-300))
    if jump == 0 or not a.any():
        return np.zeros((len(a), len(a)))
    side = np.concatenate([[0.0], 2.0 ** np.arange(-24, 0), np.arange(1.0, _RADIUS + 1)])
    y, weight = (v[0] for v in _gauss(np.concatenate([-side[:0:-1], side])[None], 20))
    density = weight * np.exp(-(y**2) / 2) / (2 * math.pi) * np.asarray(t(float(b @ basis[1]) * y))
    across = np.eye(len(a)) - basis.T @ basis
    line = np.sum(density * y**2) * np.outer(basis[1], basis[1]) + np.sum(density) * across
    return np.asarray(jump / np.linalg.norm(a) * line)


def _plane(s: Activation, t: Activation, a: Vector, b: Vector) -> _Plane:
    alpha, beta = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    basis, theta = _basis(a, b)
    halvings = 3 + int(math.log2(max(2.0, alpha, beta)))
    nodes = 11 if halvings < 6 else 14  # long rows fit a whole bell curve into one panel
    phi, weight_phi = (v[0] for v in _gauss(_angles(theta, halvings)[None], nodes))
    rays = [(s.kinks, alpha * np.cos(phi)), (t.kinks, beta * np.cos(phi - theta))]
    r, weight_r = _gauss(_radii(rays, len(phi), halvings), nodes)
    weight = weight_phi[:, None] * weight_r * r * np.exp(-(r**2) / 2) / (2 * math.pi)
    x = np.stack([r * np.cos(phi)[:, None], r * np.sin(phi)[:, None]], axis=-1).reshape(-1, 2)
    along_b = beta * (r * np.cos(phi - theta)[:, None]).ravel()
    return _Plane(alpha * x[:, 0], along_b, x, weight.ravel(), basis)


def _basis(a: Vector, b: Vector) -> tuple[Vector, float]:
    """Two orthonormal vectors, the first along `a`, and the angle of `b` in their plane."""
    across = np.zeros(max(len(a), 2))
    first, b = np.zeros_like(across), np.concatenate([b, np.zeros(len(across) - len(b))])
    first[: len(a)] = a
    if not first.any():
        first = b.copy() if b.any() else np.eye(len(across))[0]
    first /= np.linalg.norm(first)
    across = b - (b @ first) * first
    across -= (across @ first) * first
    if np.linalg.norm(across) <= 1e-15 * np.linalg.norm(b):  # parallel to rounding
        nearest = np.eye(len(first))[np.argmin(np.abs(first))]
        across = nearest - (nearest @ first) * first
    across /= np.linalg.norm(across)
    across -= (across @ first) * first
    return np.stack([first, across])[:, : len(a)], math.atan2(b @ across, b @ first)


def _angles(theta: float, halvings: int) -> Vector:
    """Edges in angle over a full turn: the rays `a.x = 0` and `b.x = 0`, and panels halving towards each."""
    rays = np.sort(np.mod([math.pi / 2, -math.pi / 2, theta + math.pi / 2, theta - math.pi / 2], 2 * math.pi))
    rays = np.append(rays, rays[0] + 2 * math.pi)
    steps = 2.0 ** np.arange(-halvings, 0)
    cuts = np.concatenate([[0.0], steps, 1 - steps[-2::-1]])
    return np.append((rays[:-1, None] + np.diff(rays)[:, None] * cuts).ravel(), rays[-1])


def _radii(rays: list[tuple[tuple[float, ...], Vector]], count: int, halvings: int) -> Vector:
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-halvings, 0), np.arange(1.0, _RADIUS + 1)])
    edges = np.broadcast_to(edges, (count, len(edges)))
    for kinks, reach in rays:
        for kink in (k for k in kinks if k != 0):
            with np.errstate(divide="ignore"):
                at = kink / reach
            edges = np.concatenate([edges, np.where((at > 0) & (at < _RADIUS), at, 0.0)[:, None]], axis=1)
    return np.sort(edges, axis=1)


def _gauss(edges: Vector, nodes: int) -> tuple[Vector, Vector]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges, axis=1) / 2
    z = middle[..., None] + half[..., None] * points
    w = half[..., None] * weights * np.ones_like(z)
    return z.reshape(len(edges), -1), w.reshape(len(edges), -1)
