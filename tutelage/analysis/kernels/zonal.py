"""Kernels `|x| |x'| g(cosine)`: what they are on data, and their averages over Gaussian inputs as Legendre series.

With `ghat_l = E[g(t) P_l(t)]`, `t` a coordinate of a uniform direction (Funk and Hecke),
`E[K(x, y) K(x, z)] = d |y| |z| sum_l ghat_l^2 N(d, l) P_l` and
`E[K(x, y) s(w.x)] = d |y| |w| sum_l ghat_l shat_l N(d, l) P_l`, each at the cosine of the two vectors. All coefficients
are positive or of one sign and come from ratios, so that nothing cancels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tutelage._types import Numbers
from tutelage.analysis.kernels.harmonics import even_degrees, legendre, mean_abs

DEGREES = 400
"""Degrees kept at most. Series end before when nothing is left; only the smallest d need them all."""


@dataclass(frozen=True)
class Profile:
    """A kernel `|x| |x'| g(rho)`: `g`, and how the series of `g` is made of those of |.|, of sgn, and of rho.

    `g = kink kap(rho) + turn rho (2/pi) arcsin(rho) + linear rho`, where `kap` is that of |.|.
    """

    kink: float = 0.0
    turn: float = 0.0
    linear: float = 0.0

    def __call__(self, rho: Numbers) -> Numbers:
        arc = (2 / math.pi) * np.arcsin(rho)
        found = (self.kink + self.turn) * rho * arc + self.linear * rho
        return found + self.kink * (2 / math.pi) * np.sqrt(1 - rho**2) if self.kink else found

    def weights(self, dim: int) -> Numbers:
        """`ghat_l N(d, l)` for l = 0, 1, ...: the coefficients of `g` itself in Legendre polynomials."""
        total = self.kink * _abs_weights(dim) + self.turn * _turn_weights(dim)
        total[1] += self.linear
        return total


def _abs_weights(dim: int) -> Numbers:
    """`d mu_l^2 N(d, l)`: the kernel of |.|, by degree."""
    found = np.zeros(DEGREES)
    found[::2] = [one.share for one in islice(even_degrees(dim), DEGREES // 2)]
    return found


def _sign_weights(dim: int) -> Numbers:
    """`eta_l^2 N(d, l)`, `eta_l = E[sgn(t) P_l(t)]`: the kernel `(2/pi) arcsin(rho)`, by degree."""
    found = np.zeros(DEGREES + 1)
    found[1] = dim * mean_abs(dim) ** 2
    for low in range(1, DEGREES - 1, 2):
        more = (2 * low + dim + 2) * (low + dim - 1) * (low + dim - 2)
        fewer = (2 * low + dim - 2) * (low + 1) * (low + 2)
        found[low + 2] = found[low] * (low / (low + dim)) ** 2 * (more / fewer)
    return found


def _turn_weights(dim: int) -> Numbers:
    """`rho (2/pi) arcsin(rho)`: a factor rho moves each degree one up and one down."""
    signs, degree = _sign_weights(dim), np.arange(DEGREES)
    found = signs[1:] * (degree + 1) / (2 * degree + dim)
    # At degree 1 for d = 2 the factor is 0/0; nothing comes from degree 0 there, where sgn has no part.
    found[1:] += signs[:-2] * (degree[1:] + dim - 3) / np.maximum(2 * degree[1:] + dim - 4, 1)
    return found


def _counts(dim: int) -> Numbers:
    """`N(d, l)` as floats; infinite beyond their range, where the terms they divide have long vanished."""
    found = np.ones(DEGREES)
    found[1] = dim
    for degree in range(1, DEGREES - 1):
        ratio = (2 * degree + dim) * (degree + dim - 2) / ((2 * degree + dim - 2) * (degree + 1))
        found[degree + 1] = found[degree] * ratio
    return found


@dataclass(frozen=True)
class Series:
    """`sum_l coefficients_l P_l`, in d dimensions."""

    dim: int
    coefficients: Numbers

    @classmethod
    def of(cls, dim: int, coefficients: Numbers) -> "Series":
        """Without the end that is below rounding: all `|P_l| <= 1`."""
        later = np.cumsum(np.abs(coefficients)[::-1])[::-1]
        return cls(dim, coefficients[: max(1, int(np.sum(later > 1e-16 * later[0])))])

    def __call__(self, rho: Numbers) -> Numbers:
        total = np.zeros_like(rho)
        for coefficient, values in zip(self.coefficients, legendre(self.dim, rho), strict=False):
            if coefficient:
                total += coefficient * values
        return total


def pair_series(profile: Profile, dim: int) -> Series:
    """`sum_l ghat_l^2 N P_l`: with `d |y| |z|`, the average of `K(x, y) K(x, z)`."""
    with np.errstate(over="ignore"):
        return Series.of(dim, profile.weights(dim) ** 2 / _counts(dim))


def target_series(profile: Profile, dim: int) -> Series:
    """`sum_l ghat_l shat_l N P_l` for `s = |z|`: with `d |y| |w|`, the average of `K(x, y) |w.x|`."""
    unit = np.zeros(DEGREES)
    unit[::2] = [one.coefficient for one in islice(even_degrees(dim), DEGREES // 2)]
    return Series.of(dim, profile.weights(dim) * unit)


def zonal(profile: Callable[[Numbers], Numbers], a: Numbers, b: Numbers) -> Numbers:
    """`|a_i| |b_j| g(cosine)` for rows `a` and `b`; 0 for a zero row."""
    left, right = (np.linalg.norm(rows, axis=1) for rows in (a, b))
    lengths = np.outer(left, right)
    rho = np.divide(a @ b.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return lengths * profile(np.clip(rho, -1, 1, out=rho))
