"""The numbers of a gate and a degree in which the paper's theory is written, from the gate's Hermite coefficients.

`gate(z) = sum_k c_k He_k(z) / k!` with `c_k = E[gate^(k)(z)]`, and `G_ab(rho) = E[gate^(a)(z1) gate^(b)(z2)]` for
normal `z1, z2` of correlation rho. For the paper's sigmoid `c_0 = 1/2`, `c_2 = c_4 = ... = 0`, and the odd ones
alternate in sign: hence `G_13 < 0` at every rho, which is Assumption 3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike
from scipy.special import gammaln

from tutelage.oracle import series
from tutelage.problem import Activation, Numbers, activation

NEEDED = 1.1
"""Theorem 3 asks for `C_S0 >= 1.1 C_S1`."""
THEOREM_4 = 4.0
"""Theorem 4 asks for `C_S0 / C_S1 >= (1 + beta)^2 / alpha^2` up to factors near 1, with alpha = beta = 1."""
SLOPE_BOUND, RATIO_NEEDED = 0.05, 4.12
"""Lemma 14 uses `E[gate'^2] <= 0.05`, and needs `G_00 >= 4.12 G_11` on [0.9, 1]."""


@dataclass(frozen=True)
class Constants:
    """Moments of a gate, and what they make of experts of `degree` p; `square` is E[gate^2], and so on.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> paper = Constants.of("sigmoid", 3)
    >>> print(f"{paper.square:.15f} {paper.slope_square:.16f} {paper.bend:.16f}")
    0.293379035858093 0.0448362413501944 -0.0136379993705648
    >>> print(f"{paper.c_s0:.15f} {paper.c_s1:.15f} {paper.c_s2:.16f} {paper.quantum:.15f}")
    0.586758071716186 0.269017448101166 0.0311982419796296 0.880137107574279

    ```
    """

    gate: Activation = field(repr=False)
    degree: int
    mean: float
    square: float
    slope_square: float
    bend: float

    @classmethod
    def of(cls, gate: str | Activation | Callable[[Any], Any] = "sigmoid", degree: int = 3) -> "Constants":
        """The constants of a gate (a name, an `Activation` or a function) and experts `He_degree`."""
        found = activation(gate)
        at_one = [float(correlation(found, a, b, 1.0)) for a, b in ((0, 0), (1, 1), (0, 2))]
        return cls(found, degree, float(found.hermite(1).values[0]), *at_one)

    @property
    def c_s0(self) -> float:
        """`(p-1)! E[gate^2]`: 2 E[gate^2] for the paper's degree."""
        return math.factorial(self.degree - 1) * self.square if self.degree else 0.0

    @property
    def c_s1(self) -> float:
        """`p! E[gate'^2]`: the smallest curvature of the minimum, along routers."""
        return math.factorial(self.degree) * self.slope_square

    @property
    def c_s2(self) -> float:
        """`E[gate'^2 + gate gate''] = E[z gate gate']`."""
        return self.slope_square + self.bend

    @property
    def quantum(self) -> float:
        """`p! E[gate^2] / 2`: the loss of one unit that overlaps with no other. Plateaus are multiples of it."""
        return math.factorial(self.degree) * self.square / 2

    @property
    def ratio(self) -> float:
        """`C_S0 / C_S1`, infinite for a constant gate."""
        return self.c_s0 / self.c_s1 if self.c_s1 else math.inf

    @property
    def force(self) -> float:
        """`p p!`: the factor of `G_00 g^(p-1)` in the pull on an expert."""
        return float(self.degree * math.factorial(self.degree))

    def coefficient(self, k: int) -> float:
        """`c_k = E[gate^(k)]`; it grows like a factorial.

        ```python
        >>> from tutelage.papers.soft_moe.constants import Constants
        >>> paper = Constants.of()
        >>> print(*(f"{paper.coefficient(k):.13f}" for k in (1, 3, 5, 7)))
        0.2066209641419 -0.0623964839593 0.0643799732490 -0.1225804362629

        ```
        """
        return float(self.gate.hermite(k + 1).values[k]) * math.exp(math.lgamma(k + 1) / 2)

    def correlation(self, a: int, b: int, rho: ArrayLike) -> Numbers:
        """`G_ab(rho)`."""
        return correlation(self.gate, a, b, rho)


def correlation(gate: Activation, a: int, b: int, rho: ArrayLike) -> Numbers:
    """`G_ab(rho) = E[gate^(a)(z1) gate^(b)(z2)]`, an exact power series, also at rho = 1 and -1.

    ```python
    >>> from tutelage.papers.soft_moe.constants import correlation
    >>> from tutelage.problem.activations import sigmoid
    >>> correlation(sigmoid, 1, 3, [-1.0, 0.0, 1.0]).round(13).tolist()
    [-0.0153060711305, -0.0128924216747, -0.0153060711305]

    ```
    """
    table, rho = series(gate, gate, a + b, (a + b) % 2), np.asarray(rho, float)
    even, odd = (part[table.places[a, b]] for part in (table.even, table.odd))
    return polyval(rho**2, even) + rho * polyval(rho**2, odd)


def logistic_coefficients(count: int) -> Numbers:
    """Odd normalised coefficients `c_k / sqrt(k!)` of the sigmoid, k = 1, 3, ..., all digits right however small.

    `c_(2j+1) = (-1)^j / (2 pi) int w^2j (pi w / sinh(pi w)) exp(-w^2 / 2) dw`: the integrand is positive, nothing
    cancels. This proves the signs; the midpoint rule converges faster than any power of its step.

    ```python
    >>> from tutelage.papers.soft_moe.constants import logistic_coefficients
    >>> [f"{a:.11e}" for a in logistic_coefficients(51)[[0, 1, 15, 50]]]
    ['2.06620964142e-01', '-2.54732579073e-02', '-1.91450909729e-07', '1.30656571640e-13']

    ```
    """
    step, j = 0.05, np.arange(count)[:, None]
    w = step * (np.arange(800) + 0.5)
    size = np.exp(2 * j * np.log(w) - w**2 / 2 - gammaln(2 * j + 2) / 2)
    # pi w / sinh(pi w), without overflow.
    damping = 2 * math.pi * w * np.exp(-math.pi * w) / -np.expm1(-2 * math.pi * w)
    return (-1.0) ** np.arange(count) * step / math.pi * (size @ damping)
