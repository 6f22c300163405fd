"""Spherical harmonics of functions `|x| g(x/|x|)`: how |w.x| spreads over degrees, and what N features can reach.

A teacher `f* = sum_r a_r |w_r.x|` with unit directions is `|x|` times a function on the sphere in d dimensions. Turned
at random, its covariance has one eigenvalue for each degree l, `E_l/N(d, l)`, as many times as there are harmonics of
that degree. No N features, chosen before the rotation, hold more on average than the N largest of them.

Everything goes from degree to degree by ratios, so that d = 10^6 and degrees in the thousands keep their digits.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tutelage._errors import BadInput
from tutelage._types import Numbers

# The part of the energy beyond the mean below which a bound is called 0. The sum is right to some 1e-15 of it.
_NOTHING = 1e-12


def harmonics(dim: int, degree: int) -> int:
    """`N(d, l)`: how many independent spherical harmonics of this degree there are.

    ```python
    >>> from tutelage.analysis.kernels.harmonics import harmonics
    >>> [harmonics(3, degree) for degree in range(4)], harmonics(20, 4)
    ([1, 3, 5, 7], 8645)

    ```
    """
    _at_least_two(dim)
    lower = math.comb(dim + degree - 3, degree - 2) if degree >= 2 else 0
    return math.comb(dim + degree - 1, degree) - lower


def legendre(dim: int, t: ArrayLike) -> Iterator[Numbers]:
    """`P_0(t), P_1(t), ...` in d dimensions, without end.

    ```python
    >>> from itertools import islice
    >>> from tutelage.analysis.kernels.harmonics import legendre
    >>> [round(float(value), 4) for value in islice(legendre(3, 0.5), 4)]
    [1.0, 0.5, -0.125, -0.4375]

    ```
    """
    _at_least_two(dim)
    t = np.asarray(t, float)
    before, now, degree = np.ones_like(t), t, 1
    yield before
    while True:
        yield now
        # For d = 2 both sides of the recurrence have the factor degree; P_l is then cos(l arccos t).
        step = (2 * degree + dim - 2) * t * now - degree * before
        before, now, degree = now, step / (degree + dim - 2), degree + 1


def mean_abs(dim: int) -> float:
    """`mu_0 = E|theta_1|` of a uniform direction.

    ```python
    >>> from tutelage.analysis.kernels.harmonics import mean_abs
    >>> round(mean_abs(3), 12), round(mean_abs(10**12) * 10**6, 6)     # 1/2, and sqrt(2/pi) for large d
    (0.5, 0.797885)

    ```
    """
    return math.sqrt(isotropic(dim) / dim)


def isotropic(dim: int) -> float:
    """`d mu_0^2`: the share of the degree 0 in `E|w.x|^2 = 1`."""
    return 2 / math.pi + isotropic_excess(dim)


def isotropic_excess(dim: int) -> float:
    """`d mu_0^2 - 2/pi`, about `1/(pi d)`, with all its digits."""
    _at_least_two(dim)
    half = dim / 2
    if dim < 40:
        return dim / math.pi * (math.gamma(half) / math.gamma(half + 0.5)) ** 2 - 2 / math.pi
    # ln of (Gamma(x + 1/2)/Gamma(x))^2/x; the next term is 31/(9216 x^9), below 1e-14.
    log = -1 / (4 * half) + 1 / (96 * half**3) - 1 / (320 * half**5) + 17 / (7168 * half**7)
    return 2 / math.pi * math.expm1(-log)


class Degree(NamedTuple):
    """An even degree of |w.x|.

    - `harmonics`: N(d, l); `coefficient`: mu_l; `share`: `d N mu_l^2`, which sum to 1 over degrees.
    """

    degree: int
    harmonics: int
    coefficient: float
    share: float


def even_degrees(dim: int) -> Iterator[Degree]:
    """The even degrees of |w.x|, without end, each from the one before."""
    yield Degree(0, 1, mean_abs(dim), isotropic(dim))
    degree, count = 2, harmonics(dim, 2)
    coefficient = mean_abs(dim) / (dim + 1)
    share = dim * count * coefficient**2
    while True:
        yield Degree(degree, count, coefficient, share)
        up, over = (2 * degree + dim + 2) * (degree + dim - 1) * (degree + dim - 2), 2 * degree + dim - 2
        down = over * (degree + 1) * (degree + 2)
        ratio = -(degree - 1) / (degree + dim + 1)
        count, share = count * up // down, share * ratio**2 * (up / down)
        degree, coefficient = degree + 2, coefficient * ratio


def energies(dim: int, weights: ArrayLike) -> Iterator[tuple[Degree, float]]:
    """The even degrees with `E_l`, the part of `E f*^2` in each, without end, for orthonormal directions.

    ```python
    >>> from itertools import islice
    >>> from tutelage.analysis.kernels.harmonics import energies
    >>> [round(energy, 6) for _, energy in islice(energies(20, [1 / 20] * 20), 4)]
    [0.652729, 0.0, 0.001382, 0.000328]

    ```
    """
    forms = _forms(dim, _teacher(dim, weights))
    # Forms are variances, so that a negative value is rounding.
    return ((one, one.share * max(form, 0.0)) for one, form in zip(even_degrees(dim), forms, strict=False))


def _forms(dim: int, a: Numbers) -> Iterator[float]:
    """`sum_rs a_r a_s P_l(<w_r, w_s>)` for even l and orthonormal directions."""
    square, total = float(np.sum(a**2)), float(np.sum(a)) ** 2
    right, degree = 1.0, 0
    while True:
        yield square + (total - square) * right
        right, degree = -right * (degree + 1) / (degree + dim - 1), degree + 2


def power(weights: ArrayLike) -> float:
    """`E f*^2` of `f* = sum_r a_r |w_r.x|` with orthonormal directions."""
    a = np.asarray(weights, float)
    return float(2 / math.pi * np.sum(a) ** 2 + (1 - 2 / math.pi) * np.sum(a**2))


def feature_bound(dim: int, weights: ArrayLike, features: float) -> float:
    """No `features` functions, chosen before the teacher is turned at random, allow a smaller mean loss than this.

    The loss is `E(f - f*)^2` of the best combination, its mean over rotations. It is `E f*^2` less the largest
    eigenvalues of the covariance of the turned teacher (Theorem 1.2 of Li, Ma and Zhang, with its constant), and is
    reached by the harmonics themselves. Kernel methods with N samples count as N features.

    ```python
    >>> from tutelage.analysis.kernels.harmonics import feature_bound
    >>> [round(20 * feature_bound(20, [1 / 20] * 20, count), 4) for count in (1000, 4000)]
    [0.038, 0.0284]

    ```
    """
    if not features >= 0:
        raise BadInput(f"feature_bound: features is {features}, but a number from 0 on was expected.")
    a = _teacher(dim, weights)
    if features < 1:
        return power(a)
    if math.isinf(features):
        return 0.0
    # Without the mean at once: for large d it is nearly everything, and a difference would keep few digits.
    rest = (1 - 2 / math.pi) * float(np.sum(a**2)) - isotropic_excess(dim) * float(np.sum(a)) ** 2
    return _without_largest(dim, a, rest, math.floor(features) - 1)


def _without_largest(dim: int, a: Numbers, rest: float, left: int) -> float:
    """`rest`, the energy of degrees from 2 on, less the `left` largest eigenvalues among them.

    Eigenvalues need not fall with the degree: uniform weights have none at degree 2. So degrees are read until those
    that were read have harmonics enough, and no later one can be larger than the least of these.
    """
    small, most = _NOTHING * rest, float(np.sum(np.abs(a))) ** 2
    found: list[tuple[float, int]] = []
    unread, held = rest, 0
    for one, energy in energies(dim, a):
        if one.degree == 0:
            continue
        # An eigenvalue of this degree or of a later one is at most share/N times the squared sum of the weights.
        ceiling = dim * one.coefficient**2 * most
        if held >= left and min(_taken(found, left)) >= ceiling or unread <= small:
            break
        if energy > 0:
            found.append((dim * one.coefficient**2 * energy / one.share, one.harmonics))
            held, unread = held + one.harmonics, unread - energy
    remaining = rest
    for value, count in sorted(found, reverse=True):
        remaining -= value * min(count, left)
        left -= min(count, left)
    return remaining if remaining > small else 0.0


def _taken(found: list[tuple[float, int]], left: int) -> Iterator[float]:
    """The eigenvalues of which at least one harmonic is among the `left` largest."""
    yield math.inf
    for value, count in sorted(found, reverse=True):
        if left <= 0:
            return
        yield value
        left -= count


def _teacher(dim: int, weights: ArrayLike) -> Numbers:
    _at_least_two(dim)
    a = np.asarray(weights, float)
    if a.ndim != 1 or not np.all(np.isfinite(a)):
        raise BadInput(f"The weights have shape {a.shape}, but one finite number per teacher direction was expected.")
    if len(a) > dim:
        raise BadInput(
            f"There are {len(a)} teacher directions in {dim} dimensions, which cannot be orthonormal; take fewer."
        )
    return a


def _at_least_two(dim: int) -> None:
    if dim < 2:
        raise BadInput(f"dim is {dim}, but spherical harmonics need at least 2 dimensions.")
