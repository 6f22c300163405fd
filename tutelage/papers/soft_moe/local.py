"""Around a recovered pair: the linear system of Lemma 14, the curvature of the minimum, the rate of fine-tuning.

All for any gate and degree p: the paper's 6 and 18 are `p!` and `p p!`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tutelage.papers.soft_moe.constants import Constants
from tutelage.problem import Numbers


class _Terms(NamedTuple):
    """Arguments of Lemma 14's coefficients as arrays: overlaps g1, g2, inverse squared norms, and its Q_0, Q_1, Q_2."""

    g1: Numbers
    g2: Numbers
    router: Numbers
    expert: Numbers
    q0: Numbers
    q1: Numbers
    q2: Numbers


def _terms(constants: Constants, g1: ArrayLike, g2: ArrayLike, a: ArrayLike, b: ArrayLike) -> _Terms:
    g1, g2, a, b = np.broadcast_arrays(*(np.asarray(x, float) for x in (g1, g2, a, b)))
    power = g2 ** (constants.degree - 1)
    q0, q1, q2 = (power * constants.correlation(*order, g1) for order in ((0, 0), (1, 1), (0, 2)))
    return _Terms(g1, g2, a**-2.0, b**-2.0, q0, q1, q2)


def linearisation(
    constants: Constants, g1: ArrayLike = 1.0, g2: ArrayLike = 1.0, a: ArrayLike = 1.0, b: ArrayLike = 1.0
) -> Numbers:
    """`d(I3, zeta1, zeta2)/dt` of a student and its teacher, linear in these three: matrices (..., 3, 3).

    `g1`, `g2` are their overlaps gamma1, gamma2; `a`, `b` the norms of router and expert. Lemma 14 with its slips
    mended; see `printed_linearisation`.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.local import linearisation
    >>> np.sort(np.linalg.eigvals(linearisation(Constants.of())).real).round(5).tolist()
    [-6.47267, -5.54984, -1.81441]

    ```
    """
    g1, g2, router, expert, q0, q1, q2 = _terms(constants, g1, g2, a, b)
    light, heavy = math.factorial(constants.degree), constants.force
    self_pull = 2 * heavy * constants.c_s2
    alpha1 = self_pull * (router + expert) + light * g1 * g2 * q1 * router
    alpha1 = alpha1 + heavy * g2 * (q0 * expert - q2 * router)
    iota1 = heavy * (q0 + g1 * q1) * expert + heavy * q2 * (router + expert)
    rows: list[list[Numbers]] = [
        [-alpha1, iota1, (light + heavy) * g2 * q1 * router],
        [-(self_pull * g2 - heavy * q2) * router, -g2 * (light * g1 * q1 - heavy * q2) * router, heavy * q1 * router],
        [-self_pull * g1 * expert, heavy * (q1 + g1 * q2) * expert, -heavy * g2 * q0 * expert],
    ]
    return _matrix(rows)


def printed_linearisation(
    constants: Constants, g1: ArrayLike = 1.0, g2: ArrayLike = 1.0, a: ArrayLike = 1.0, b: ArrayLike = 1.0
) -> Numbers:
    """The same with the coefficients as printed in Lemma 14, for experts of degree 3.

    alpha_1 has `g1 Q1` for `g2 Q0`; iota_2 has lost a factor 3 before Q2; rho_1 has g1 for g2, alpha_3 g2 for g1; the
    third equation has `+rho_3`, which makes it unstable.
    """
    g1, g2, router, expert, q0, q1, q2 = _terms(constants, g1, g2, a, b)
    c_s2 = constants.c_s2
    alpha1 = 36 * c_s2 * (router + expert) + 6 * g1 * g2 * q1 * router + 18 * g1 * q1 * expert - 18 * g2 * q2 * router
    iota1 = 18 * (q0 + g1 * q1) * expert + 18 * q2 * (router + expert)
    rows: list[list[Numbers]] = [
        [-alpha1, iota1, 24 * g1 * q1 * router],
        [-(36 * c_s2 * g2 - 18 * q2) * router, -6 * g2 * (g1 * q1 - q2) * router, 18 * q1 * router],
        [-36 * c_s2 * g2 * expert, 18 * (q1 + g1 * q2) * expert, 18 * g2 * q0 * expert],
    ]
    return _matrix(rows)


def _matrix(rows: list[list[Numbers]]) -> Numbers:
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def growth_rate(matrices: Numbers) -> Numbers:
    """The largest real part of the eigenvalues."""
    return np.max(np.linalg.eigvals(matrices).real, axis=-1)


def mixed_block(constants: Constants, a: float = 1.0, b: float = 1.0) -> Numbers:
    """The Hessian at the minimum for a router that turns to its expert and the expert to its router, (2, 2)."""
    p, fact = constants.degree, math.factorial(constants.degree)
    router = (2 * p + 1) * fact * constants.slope_square / a**2
    expert = p * fact * (constants.square + 2 * constants.c_s2) / b**2
    both = p * fact * constants.c_s2 / (a * b)
    return np.array([[router, both], [both, expert]])


def spectrum(constants: Constants, dim: int, a: ArrayLike = 1.0, b: ArrayLike = 1.0) -> Numbers:
    """All 2 m* dim eigenvalues of the Hessian at the minimum, sorted; `a`, `b` are the norms, one per unit.

    Units do not mix. Each has 0 twice (lengths), `C_S1 / a^2` and `p^2 C_S0 / b^2` dim - 2 times (directions outside
    the plane of its router and expert), and the two of `mixed_block`.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.local import spectrum
    >>> spectrum(Constants.of(), dim=3).round(9).tolist()
    [0.0, 0.0, 0.269017448, 1.814409726, 5.280822645, 6.472671767]

    ```
    """
    found = []
    for one, two in zip(*np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b)), strict=True):
        router = np.full(dim - 2, constants.c_s1 / one**2)
        expert = np.full(dim - 2, constants.degree**2 * constants.c_s0 / two**2)
        found += [np.zeros(2), router, expert, np.linalg.eigvalsh(mixed_block(constants, one, two))]
    return np.sort(np.concatenate(found))


def tuning_rate(constants: Constants, a: ArrayLike = 1.0, b: ArrayLike = 1.0) -> float:
    """The rate at which the squared distance to the minimum ends up decaying: twice the least curvature that is not 0.

    `2 C_S1 / max a^2` unless the experts are much longer than the routers.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.local import tuning_rate
    >>> round(tuning_rate(Constants.of()), 6)
    0.538035

    ```
    """
    found = spectrum(constants, 3, a, b)
    return float(2 * np.min(found[2 * len(np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b))[0]) :]))


def projection_jacobian(v: Numbers, g: Numbers, printed: bool = False) -> Numbers:
    """The derivative in `v` of `(I - v v^T / |v|^2) g / |v|` (Lemma 26): that of a gradient by its unit vector.

    Printed with `I - v v^T / |v|^2` where `I - 3 v v^T / |v|^2` is right.
    """
    norm, factor = np.linalg.norm(v), 1 if printed else 3
    middle = np.eye(len(v)) - factor * np.outer(v, v) / norm**2
    return -(v @ g) / norm**3 * middle - (np.outer(v, g) + np.outer(g, v)) / norm**3
