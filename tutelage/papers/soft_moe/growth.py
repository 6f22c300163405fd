"""How fast one expert turns: the leading law of an overlap, and the time that it needs.

With small overlaps two gated units of degree p have the kernel `p! c_0^2 g^p`, where `g` is the overlap of their
experts and `c_0 = E[gate]`. So an overlap with a teacher of weight alpha moves as (Eq. 5, with its constants)

    dg/dt = p p! c_0^2 (alpha / b^2) g^(p-1) (1 - g^2),    b = ||w||: 4.5 g^2 (1 - g^2) for the paper's units.

Two students act on each other as a teacher of weight -1 would, and both move: `1/b_i^2 + 1/b_r^2` stands for `1/b^2`.
For an odd degree a negative overlap of two students therefore runs to -1, where they cancel each other.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.problem import Numbers, activation

ROUNDING = 1e-13  # an overlap below it is 0: that of orthonormal vectors, which has a sign by chance only


def travel(degree: int, start: ArrayLike) -> Numbers:
    """`int dg / (g^(p-1) (1 - g^2))` from `start` to where a teacher is recovered; infinite if it cannot grow.

    ```python
    >>> from tutelage.papers.soft_moe.growth import travel
    >>> travel(3, [0.1, -0.1]).round(3).tolist()
    [10.261, inf]

    ```
    """
    start = np.asarray(start, float)
    # The force of degree 1 does not vanish at 0: every overlap but -1 grows. Degree 0 does not see the experts at all.
    moves = (start > (-1 if degree == 1 else 0)) & (degree > 0)
    begin = np.minimum(np.where(moves, start, RECOVERED), RECOVERED)
    return np.where(moves, _primitive(degree, np.asarray(RECOVERED)) - _primitive(degree, begin), np.inf)


def _primitive(degree: int, g: Numbers) -> Numbers:
    """By `1/(g^n (1-g^2)) = 1/g^n + 1/(g^(n-2) (1-g^2))`, down to n = 0 or 1."""
    n = max(degree - 1, 0)
    last = np.arctanh(g) if n % 2 == 0 else np.log(g) - np.log1p(-(g**2)) / 2
    return last - sum(1 / ((k - 1) * g ** (k - 1)) for k in range(n, 1, -2))


@dataclass(frozen=True)
class Growth:
    """The leading law for experts of `degree` p under a gate with `mean` c_0: times until an overlap is 0.9.

    A gate of mean 0 has no force at this order, and every time is infinite.

    ```python
    >>> from tutelage.papers.soft_moe.growth import Growth
    >>> Growth().force
    4.5

    ```
    """

    degree: int = 3
    mean: float = 0.5

    @classmethod
    def of(cls, settings: SoftMoeSettings) -> "Growth":
        """The law of the settings' gate and degree."""
        return cls(settings.degree, float(activation(settings.gate).hermite(1).values[0]))

    @property
    def force(self) -> float:
        """`p p! c_0^2`."""
        return self.degree * math.factorial(self.degree) * self.mean**2

    def teacher_times(self, overlap: ArrayLike, norms: ArrayLike = 1.0, alphas: ArrayLike = 1.0) -> Numbers:
        """Times of students (..., m, m*) to their teachers; `norms` (..., m) of the experts, `alphas` (m*,)."""
        inverse = np.atleast_1d(np.asarray(norms, float))[..., None] ** -2
        return self._times(overlap, inverse, alphas)

    def student_times(self, between: ArrayLike, norms: ArrayLike = 1.0) -> Numbers:
        """Times (..., m, m) until two students cancel; infinite for those that relax, and on the diagonal."""
        between = np.asarray(between, float)
        inverse = np.broadcast_to(np.asarray(norms, float), between.shape[:-1]) ** -2
        times = self._times(between, inverse[..., :, None] + inverse[..., None, :], -1.0)
        return np.where(np.eye(between.shape[-1], dtype=bool), np.inf, times)

    def _toward(self, overlap: ArrayLike, alphas: ArrayLike) -> tuple[Numbers, Numbers]:
        """The overlap counted in the direction in which it can grow, and the strength of the pull."""
        overlap, alphas = np.asarray(overlap, float), np.asarray(alphas, float)
        overlap = np.where(np.abs(overlap) < ROUNDING, 0.0, overlap)
        if self.degree % 2:
            return np.sign(alphas) * overlap, np.abs(alphas)
        return np.abs(overlap), np.maximum(alphas, 0.0)

    def _times(self, overlap: ArrayLike, inverse: Numbers, alphas: ArrayLike) -> Numbers:
        toward, weight = self._toward(overlap, alphas)
        way, rate = np.broadcast_arrays(travel(self.degree, toward), self.force * weight * inverse)
        return np.divide(way, rate, out=np.full(way.shape, np.inf), where=rate > 0)


def predicted_time(
    g0: ArrayLike, b: ArrayLike = 1.0, *, degree: int = 3, mean: float = 0.5, alpha: ArrayLike = 1.0
) -> Numbers:
    """The time at which an expert of norm `b` with overlap `g0` recovers its teacher's, all else being small.

    For degree 3 it is `b^2/4.5 (1/g0 - 1/0.9 + atanh 0.9 - atanh g0)`.

    ```python
    >>> from tutelage.papers.soft_moe.growth import predicted_time
    >>> round(float(predicted_time(0.05)), 4)
    4.5136

    ```
    """
    return Growth(degree, mean)._times(g0, np.asarray(b, float) ** -2, alpha)
