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

from tutelage.problem.activations import Activation, activation

Function = str | Activation | Callable
_RADIUS = 13.0  # the mass outside, exp(-13^2/2), is 2e-37


class _Plane(NamedTuple):
    """Integration nodes in the plane spanned by two rows: `a.x`, `b.x`, the two coordinates of `x`, the weights."""

    along_a: np.ndarray
    along_b: np.ndarray
    x: np.ndarray
    weight: np.ndarray
    basis: np.ndarray


def expectation(s: Function, t: Function, a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> float:
    """`E[s(a.x) t(b.x)]` for one pair of rows, to about 1e-13 of its size for rows of norm up to 1e6.

    ```python
    >>> import tutelage
    >>> from tutelage.oracle.quadrature import expectation
    >>> round(expectation("relu", "relu", [1.0, 0.0], [1.0, 0.0]), 12)
    0.5

    ```
    """
    s, t = activation(s), activation(t)
    plane = _plane(s, t, np.asarray(a, float), np.asarray(b, float))
    return float(np.sum(plane.weight * np.asarray(s(plane.along_a)) * np.asarray(t(plane.along_b))))


def expectation_gradient(
    s: Function, t: Function, a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """`E[s'(a.x) t(b.x) x]`, the gradient of `expectation` in `a`."""
    s, t = activation(s), activation(t)
    plane = _plane(s, t, np.asarray(a, float), np.asarray(b, float))
    density = plane.weight * np.asarray(s.derivative(plane.along_a)) * np.asarray(t(plane.along_b))
    return np.einsum("ij,ijk->k", density, plane.x) @ plane.basis


def expectation_mixed(
    s: Function, t: Function, a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n n"]:
    """`E[s'(a.x) t'(b.x) x x^T]`, the derivative of `expectation` in `a` and `b`."""
    s, t = activation(s), activation(t)
    plane = _plane(s, t, np.asarray(a, float), np.asarray(b, float))
    return _second(plane, np.asarray(s.derivative(plane.along_a)) * np.asarray(t.derivative(plane.along_b)))


def expectation_curvature(
    s: Function, t: Function, a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n n"]:
    """`E[s''(a.x) t(b.x) x x^T]`, the second derivative of `expectation` in `a`, for `s` with a kink at 0 at most."""
    s, t = activation(s), activation(t)
    a, b = np.asarray(a, float), np.asarray(b, float)
    plane = _plane(s, t, a, b)
    smooth = _second(plane, np.asarray(s.second_derivative(plane.along_a)) * np.asarray(t(plane.along_b)))
    jump = float(s.derivative(1e-300) - s.derivative(-1e-300))
    if jump == 0:
        return smooth
    # The slope's jump at 0 is a point mass: the expectation over the line a.x = 0, in its coordinate y.
    side = np.concatenate([[0.0], 2.0 ** np.arange(-24, 0), np.arange(1.0, _RADIUS + 1)])
    y, weight = (v[0] for v in _gauss(np.concatenate([-side[:0:-1], side])[None], 20))
    on_line = weight * np.exp(-(y**2) / 2) / (2 * math.pi) * np.asarray(t(float(b @ plane.basis[1]) * y))
    rest = np.eye(len(a)) - plane.basis.T @ plane.basis
    line = np.sum(on_line * y**2) * np.outer(plane.basis[1], plane.basis[1]) + np.sum(on_line) * rest
    return smooth + jump / np.linalg.norm(a) * line


def expectation_mp(s: Callable, t: Callable, alpha: float, beta: float, theta: float, digits: int = 30) -> mpmath.mpf:
    """`E[s(a.x) t(b.x)]` for rows of norms `alpha`, `beta` at the angle `theta`; mpmath functions, kinked at 0 at most.

    ```python
    >>> import mpmath
    >>> from tutelage.oracle.quadrature import expectation_mp
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
        reach = mpmath.sqrt(2 * mpmath.log(10) * (digits + 5))
        return mpmath.quad(integrand, edges, [0, 1, 3, reach]) / (2 * mpmath.pi)


def _second(plane: _Plane, f: np.ndarray) -> np.ndarray:
    """`E[f x x^T]`: in the plane by integration, across it `E[f]` times the identity."""
    inside = np.einsum("ij,ijk,ijl->kl", plane.weight * f, plane.x, plane.x)
    across = np.eye(plane.basis.shape[1]) - plane.basis.T @ plane.basis
    return plane.basis.T @ inside @ plane.basis + np.sum(plane.weight * f) * across


def _plane(s: Activation, t: Activation, a: np.ndarray, b: np.ndarray) -> _Plane:
    alpha, beta = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    basis, theta = _basis(a, b)
    halvings = 3 + int(math.log2(max(2.0, alpha, beta)))
    phi, weight_phi = _gauss(_angles(theta, halvings)[None], 14)
    phi, weight_phi = phi[0], weight_phi[0]
    rays = [(s.kinks, alpha * np.cos(phi)), (t.kinks, beta * np.cos(phi - theta))]
    r, weight_r = _gauss(_radii(rays, len(phi), halvings), 14)
    weight = weight_phi[:, None] * weight_r * r * np.exp(-(r**2) / 2) / (2 * math.pi)
    x = r[..., None] * np.stack([np.cos(phi), np.sin(phi)], axis=-1)[:, None, :]
    along_b = beta * r * np.cos(phi - theta)[:, None]
    return _Plane(alpha * x[..., 0], along_b, x, weight, basis)


def _basis(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Two orthonormal vectors, the first along `a`, and the angle of `b` in their plane."""
    across = np.zeros(max(len(a), 2))
    first, b = np.zeros_like(across), np.concatenate([b, np.zeros(len(across) - len(b))])
    first[: len(a)] = a
    if not first.any():
        first = b.copy() if b.any() else np.eye(len(across))[0]
    first /= np.linalg.norm(first)
    across = b - (b @ first) * first
    across -= (across @ first) * first
    if np.linalg.norm(across) <= 1e-300:
        nearest = np.eye(len(first))[np.argmin(np.abs(first))]
        across = nearest - (nearest @ first) * first
    across /= np.linalg.norm(across)
    return np.stack([first, across])[:, : len(a)], math.atan2(b @ across, b @ first)


def _angles(theta: float, halvings: int) -> np.ndarray:
    """Edges in angle over a full turn: the rays `a.x = 0` and `b.x = 0`, and panels halving towards each."""
    rays = np.sort(np.mod([math.pi / 2, -math.pi / 2, theta + math.pi / 2, theta - math.pi / 2], 2 * math.pi))
    rays = np.append(rays, rays[0] + 2 * math.pi)
    steps = 2.0 ** np.arange(-halvings, 0)
    cuts = np.concatenate([[0.0], steps, 1 - steps[-2::-1]])
    return np.append((rays[:-1, None] + np.diff(rays)[:, None] * cuts).ravel(), rays[-1])


def _radii(rays: list[tuple[tuple[float, ...], np.ndarray]], count: int, halvings: int) -> np.ndarray:
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-halvings, 0), np.arange(1.0, _RADIUS + 1)])
    edges = np.broadcast_to(edges, (count, len(edges)))
    for kinks, reach in rays:
        for kink in (k for k in kinks if k != 0):
            with np.errstate(divide="ignore"):
                at = kink / reach
            edges = np.concatenate([edges, np.where((at > 0) & (at < _RADIUS), at, 0.0)[:, None]], axis=1)
    return np.sort(edges, axis=1)


def _gauss(edges: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges, axis=1) / 2
    z = middle[..., None] + half[..., None] * points
    w = half[..., None] * weights * np.ones_like(z)
    return z.reshape(len(edges), -1), w.reshape(len(edges), -1)
