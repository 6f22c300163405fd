"""The parameters of the proof, one bound after the other (Appendix A, Theorems 6, 7 and 9), as base-10 logarithms.

The admissible sigma underflows a double for almost any choice: k = 1 and eps2 = 1e-22 already give less than 1e-390.
`o(.)` is read with the constant 1: the values here are the largest that could be meant.
"""

import math

from scipy.special import chdtr, chdtrc

from tutelage import BadInput

LOG_48PI = math.log10(48 * math.pi)
EPS2_CLOCK = 10**-LOG_48PI
"""Theorem 7: T2 - T1 = k/(2 eta m) ln(1/(48 pi eps2)) is positive for a smaller eps2."""
EPS2_GROWTH = 10 ** (-18 * math.log10(3) - math.log10(49 * math.pi))
"""Lemma 3 gets H <= nv/3 up to this eps2, from (49 pi eps2)^(1/18) <= 1/3."""


def first_phase_time(eps1: float, teachers: int, students: int) -> float:
    """T1 in flow time: eps1^2/(100 k m) (Theorem 6).

    ```python
    >>> from tutelage.papers.relu_teachers.chain import first_phase_time
    >>> first_phase_time(0.5, 1, 1)
    0.0025

    ```
    """
    return eps1**2 / (100 * teachers * students)


def second_phase_time(eps1: float, eps2: float, teachers: int, students: int) -> float:
    """T2 in flow time: T1 + k/(2m) ln(1/(48 pi eps2)) (Theorem 7); needs eps2 < 1/(48 pi).

    ```python
    >>> from tutelage.papers.relu_teachers.chain import second_phase_time
    >>> round(second_phase_time(0.1, 1e-3, 2, 5), 4)
    0.3784

    ```
    """
    if not 0 < eps2 < EPS2_CLOCK:
        raise BadInput(f"eps2 is {eps2}, but T2 > T1 needs 0 < eps2 < 1/(48 pi) = 0.00663; pass a smaller eps2.")
    growth = teachers / (2 * students) * math.log(1 / (48 * math.pi * eps2))
    return first_phase_time(eps1, teachers, students) + growth


def log10_eps1(log10_eps2: float, teachers: int, students: int, power: float = 1.0) -> float:
    """The largest eps1 for an eps2: eps1^2 <= (48 pi eps2)^(C* k) eps2^2 / (64 m) (proof of Theorem 7).

    `power` is the constant C*, which the paper leaves open.

    ```python
    >>> from tutelage.papers.relu_teachers.chain import log10_eps1, log10_sigma
    >>> log10_sigma(log10_eps1(-22.0, teachers=1, students=1, power=0.0), teachers=1, students=1, dim=50) < -390
    True

    ```
    """
    square = power * teachers * (LOG_48PI + log10_eps2) + 2 * log10_eps2
    return (square - math.log10(64 * students)) / 2


def log10_sigma(log10_eps1: float, teachers: int, students: int, dim: int, norm: float = 1.0) -> float:
    """The largest sigma of Theorem 6 for a free eps1: eps1^(16k+2) nv / (10000 m sqrt d).

    ```python
    >>> import math
    >>> from tutelage.papers.relu_teachers.chain import log10_sigma
    >>> round(10 ** log10_sigma(math.log10(0.15), 3, 6, 50) / 1e-47, 1)
    1.5

    ```
    """
    return (16 * teachers + 2) * log10_eps1 + math.log10(norm) - 4 - math.log10(students) - math.log10(dim) / 2


def log10_eta_first(log10_eps1: float, log10_sigma: float, teachers: int, dim: int, norm: float = 1.0) -> float:
    """The step of Theorem 6 alone: sigma sqrt(d) eps1^2/(100 k^2 nv)."""
    return log10_sigma + math.log10(dim) / 2 + 2 * log10_eps1 - 2 - 2 * math.log10(teachers) - math.log10(norm)


def norm_bounds(sigma: float, dim: int) -> tuple[float, float]:
    """s1 = sigma sqrt(d)/2 and s2 = 2 sigma sqrt(d) (Lemma 1)."""
    return sigma * math.sqrt(dim) / 2, 2 * sigma * math.sqrt(dim)


def norm_probability(dim: int, students: int = 1) -> float:
    """The exact chance that all of `students` Gaussian rows have norms in [s1, s2] (Lemma 1).

    ```python
    >>> from tutelage.papers.relu_teachers.chain import norm_probability
    >>> [round(norm_probability(d), 4) for d in (5, 10, 20)]
    [0.9387, 0.9909, 0.9997]

    ```
    """
    return math.exp(students * math.log1p(-_outside(dim)))


def _outside(dim: int) -> float:
    # Both tails are kept as such: their sum is far below the spacing of doubles at 1 for large dim.
    return float(chdtrc(dim, 4 * dim) + chdtr(dim, dim / 4))
