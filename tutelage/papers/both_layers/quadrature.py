"""A second route to the population loss and gradient: exact angular integration in the plane.

For planar inputs x = radius * u(phi) the loss is homogeneous in the radius, and between the kinks of the neurons its
integrand is a trigonometric polynomial of degree two in phi, so Gauss-Legendre nodes on each arc are exact to rounding.
"""

import numpy as np
from numpy.typing import ArrayLike

from tutelage.problem import Numbers

NODES = 20


def planar_nodes(first: ArrayLike) -> tuple[Numbers, Numbers]:
    """Directions (N, 2) and weights (N,): `sum weights * h(u) = E[h(x)]` for h of degree two with kinks of `first`.

    ```python
    >>> from tutelage.papers.both_layers.quadrature import planar_nodes
    >>> nodes, weights = planar_nodes([[1.0, 0.0]])
    >>> round(float(weights @ nodes[:, 0] ** 2), 12)
    1.0

    ```
    """
    first = np.asarray(first, float)
    kinks = (np.arctan2(first[:, 1], first[:, 0])[:, None] + np.array([-0.5, 0.5]) * np.pi) % (2 * np.pi)
    cuts = np.unique(np.concatenate([kinks.ravel(), np.linspace(0, 2 * np.pi, 5)]))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    middle, half = (cuts[1:] + cuts[:-1]) / 2, (cuts[1:] - cuts[:-1]) / 2
    phi = (middle[:, None] + half[:, None] * nodes).ravel()
    # E[radius^2] = 2 and the density of phi is 1/(2 pi).
    return np.stack([np.cos(phi), np.sin(phi)], axis=1), (half[:, None] * weights).ravel() / np.pi


def planar_loss(second: ArrayLike, first: ArrayLike, target: ArrayLike) -> float:
    """1/2 E|V^T phi(Wx) - Ax|^2 for second (k, r), first (k, 2), target (r, 2), Eq. (2).

    ```python
    >>> from tutelage.papers.both_layers.quadrature import planar_loss
    >>> round(planar_loss([[1.0]], [[1.0, 0.0]], [[1.0, 0.0]]), 12)
    0.25

    ```
    """
    residual, _, weights = _residual(second, first, target)
    return float(np.sum(weights * np.sum(residual**2, axis=1)) / 2)


def planar_gradient(second: ArrayLike, first: ArrayLike, target: ArrayLike) -> tuple[Numbers, Numbers]:
    """Its gradient in `second` and in `first`, Eqs. (11) and (12).

    ```python
    >>> from tutelage.papers.both_layers.quadrature import planar_gradient
    >>> [(part.round(12) + 0.0).tolist() for part in planar_gradient([[1.0]], [[1.0, 0.0]], [[3.0, 0.0]])]
    [[[-1.0]], [[-1.0, 0.0]]]

    ```
    """
    residual, nodes, weights = _residual(second, first, target)
    inner = nodes @ np.asarray(first, float).T
    by_second = np.maximum(inner, 0).T @ (weights[:, None] * residual)
    pulled = (inner > 0) * (residual @ np.asarray(second, float).T) * weights[:, None]
    return by_second, pulled.T @ nodes


def _residual(second: ArrayLike, first: ArrayLike, target: ArrayLike) -> tuple[Numbers, Numbers, Numbers]:
    nodes, weights = planar_nodes(first)
    output = np.maximum(nodes @ np.asarray(first, float).T, 0) @ np.asarray(second, float)
    return output - nodes @ np.asarray(target, float).T, nodes, weights
