"""Gaussian expectations by quadrature, which know nothing of Hermite coefficients: the other route of many claims."""

import math

import jax.numpy as jnp
import numpy as np

from tutelage.problem import Clustered, Numbers, Units, normalised

ORDERS = 9
REACH = 14.0  # beyond this many standard deviations a Gaussian is below the last bit
_GAUSS = np.polynomial.hermite_e.hermegauss(40)
_LEGENDRE = np.polynomial.legendre.leggauss(16)


def gaussian() -> tuple[Numbers, Numbers]:
    """Nodes and weights of a standard Gaussian, exact for polynomials up to degree 79."""
    return _GAUSS[0], _GAUSS[1] / math.sqrt(2 * math.pi)


def panels(ends: Numbers) -> tuple[Numbers, Numbers]:
    """Nodes and weights (..., node) of Gauss-Legendre panels between `ends` (..., end), for the standard Gaussian."""
    middle, half = (ends[..., 1:] + ends[..., :-1]) / 2, np.diff(ends) / 2
    z = (middle[..., None] + half[..., None] * _LEGENDRE[0]).reshape(*ends.shape[:-1], -1)
    weight = (half[..., None] * _LEGENDRE[1]).reshape(z.shape) * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return z, weight


def kinked(kink: float) -> tuple[Numbers, Numbers]:
    """The same for functions that are smooth on both sides of a kink: 16-point panels of width below 1."""
    return panels(np.concatenate([np.linspace(-12, kink, 21), np.linspace(kink, 12, 21)[1:]]))


def hermite(z: Numbers, count: int = ORDERS) -> Numbers:
    """`h_i(z)` for `i < count`."""
    return np.polynomial.hermite_e.hermevander(z, count - 1) / normalised(count)


def relu(shift: Numbers, count: int = ORDERS) -> Numbers:
    """`E[ReLU(Z + m) h_i(Z)]` (..., order) for orders from 2 on, those below left at 0.

    By the smaller side of the kink alone: what is added to `ReLU(Z + m)` to have `ReLU(-Z - m)` is a straight line,
    which has no orders from 2 on. So a coefficient of 1e-20 has all its digits.
    """
    far = np.abs(shift)
    z, weight = panels(far[..., None] + np.linspace(0, REACH, 25))
    table = np.einsum("...z,...z,...zi->...i", weight, z - far[..., None], hermite(z, count))
    sides = np.where(shift[..., None] > 0, (-1.0) ** np.arange(count), 1.0)
    return np.where(np.arange(count) >= 2, sides * table, 0.0)


def moment(units: Units, w: Numbers, problem: Clustered) -> Numbers:
    """`E[y a s'(w.x + b) x]` of one unit, in `w.z` and in what a task's direction has beside it."""
    inputs, teacher = problem.inputs, problem.teacher
    rest, rest_weight = gaussian()
    total = np.zeros(inputs.dim)
    for c, probability in enumerate(inputs.weights):
        mean = np.pad(inputs.radius * inputs.means[c], (0, inputs.dim - inputs.means.shape[1]))
        shift = float(w @ mean)
        z, weight = kinked(-shift - float(units.bias[0]))
        slope = np.asarray(units.slope(jnp.asarray(z + shift)[:, None]))[:, 0] * float(units.outgoing[0])
        both = ((c, np.asarray(teacher.local[c])), (-1, teacher.interference[c] * np.asarray(teacher.shared)))
        for row, task in both:
            direction = np.asarray(teacher.directions[row])
            direction = np.pad(direction, (0, inputs.dim - len(direction)))
            kappa = float(direction @ w)
            beside = direction - kappa * w
            size = float(np.linalg.norm(beside))
            label = hermite(kappa * z[:, None] + size * rest, len(task)) @ task
            first = np.einsum("a,b,a,ab->ab", weight, rest_weight, slope, label)
            along = mean * first.sum() + w * (first.sum(1) @ z) + beside / size * (first.sum(0) @ rest)
            total += probability * along
    return total
