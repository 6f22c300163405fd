"""The inequalities of the refinement phase as functions of (theta, rho), with their sharp constants.

theta is the angle between w_1 and w_2, rho = |v_1 w_1| / |v_2 w_2|; signs are (+,-) throughout, as in Theorem 2.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from tutelage.papers.both_layers.constants import C_MAX_SQUARED, C_MIN_SQUARED, LOSS_LOWER, PL, smoothness
from tutelage.problem import Numbers


def pl_slack(theta: ArrayLike, rho: ArrayLike = 1.0, alpha: float = PL) -> Numbers:
    """min over a of (|grad_W L|^2 - alpha L) / |w_2|^2 at v = (1,-1): the function of Figure 4 (B.2).

    Lemma 8 says that it is not negative for theta >= pi/2. (The caption divides by |w_2|; it must be |w_2|^2.)

    ```python
    >>> import math
    >>> from tutelage.papers.both_layers.inequalities import pl_slack
    >>> round(float(pl_slack(math.pi / 2)), 6)
    0.003276

    ```
    """
    theta, rho = np.asarray(theta, float), np.asarray(rho, float)
    even, cross = _pl_coefficients(theta, alpha)
    return even * (rho**2 + 1) + cross * rho


def pl_curvature(theta: ArrayLike, alpha: float = PL) -> Numbers:
    """The coefficient of rho^2 + 1 in `pl_slack`: where it is positive, rho = 1 is the worst case.

    ```python
    >>> import math
    >>> from tutelage.papers.both_layers.inequalities import pl_curvature
    >>> round(float(pl_curvature(math.pi / 2)), 4)
    0.0354

    ```
    """
    return _pl_coefficients(np.asarray(theta, float), alpha)[0]


def _pl_coefficients(theta: Numbers, alpha: float) -> tuple[Numbers, Numbers]:
    rest, sine, cosine = math.pi - theta, np.sin(theta), np.cos(theta)
    # |grad|^2 - alpha L is (1-alpha)/2 |a|^2 + b.a + c: completing the square in a leaves c - |b|^2 / (2(1-alpha)).
    own, other = rest / math.pi + 1 - alpha, sine / math.pi
    squares = (rest**2 + 2 * rest * sine * cosine + sine**2) / math.pi**2
    even = (1 - alpha + squares) / 4 - (own**2 + other**2 + 2 * own * other * cosine) / (8 * (1 - alpha))
    mixed = 2 * own * other + (own**2 + other**2) * cosine
    cross = -(1 - alpha / 2) * (rest * cosine + sine) / math.pi + mixed / (4 * (1 - alpha))
    return even, cross


def worst_target(theta: ArrayLike, rho: ArrayLike, alpha: float = PL) -> Numbers:
    """The target at which `pl_slack` is attained, (..., 2), for w_1 = (rho, 0) and w_2 = (cos theta, sin theta).

    ```python
    >>> import math
    >>> from tutelage.papers.both_layers.inequalities import worst_target
    >>> worst_target(math.pi / 2, 1.0).round(4).tolist()
    [0.5956, -0.5956]

    ```
    """
    theta, rho = np.broadcast_arrays(np.asarray(theta, float), np.asarray(rho, float))
    own, other = (math.pi - theta) / math.pi + 1 - alpha, np.sin(theta) / math.pi
    one, two = (own * rho - other) / 2, (own - other * rho) / 2
    unit = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    return (one[..., None] * np.array([1.0, 0.0]) - two[..., None] * unit) / (1 - alpha)


def pl_root(alpha: float = PL) -> float:
    """The angle beyond which the PL inequality with this constant holds at rho = 1.

    ```python
    >>> from tutelage.papers.both_layers.inequalities import pl_root
    >>> round(pl_root(), 5)
    1.39792

    ```
    """
    return float(brentq(lambda theta: pl_slack(theta, 1.0, alpha), 1.0, 2.0, xtol=1e-14))


def sharp_pl() -> float:
    """The largest PL constant that holds for all theta >= pi/2 (the paper's is 0.05): `pl_slack` vanishes at pi/2.

    ```python
    >>> from tutelage.papers.both_layers.inequalities import sharp_pl
    >>> round(sharp_pl(), 6)
    0.082659

    ```
    """
    return float(brentq(lambda alpha: pl_slack(math.pi / 2, 1.0, alpha), 0.01, 0.5, xtol=1e-15))


def loss_slack(theta: ArrayLike, constant: float = LOSS_LOWER) -> Numbers:
    """min over a of (L - constant |h|^2) / |w_2|^2 at rho = 1: the function of Figure 5 (B.4, Lemma 13).

    ```python
    >>> from tutelage.papers.both_layers.inequalities import loss_slack
    >>> round(float(loss_slack(2.0)), 6)
    0.047661

    ```
    """
    theta = np.asarray(theta, float)
    bracket = (math.pi * (0.5 + 2 * constant) - theta) * np.cos(theta) + np.sin(theta)
    return 0.25 - constant - bracket / (2 * math.pi)


def loss_root(constant: float = LOSS_LOWER) -> float:
    """Where `loss_slack` changes sign.

    ```python
    >>> from tutelage.papers.both_layers.inequalities import loss_root
    >>> round(loss_root(), 5)
    1.08666

    ```
    """
    return float(brentq(lambda theta: loss_slack(theta, constant), 0.5, math.pi / 2, xtol=1e-14))


def sharp_loss_lower(theta: ArrayLike) -> Numbers:
    """The largest c with c |h|^2 <= L at angle theta < pi; it increases from 0.09085 at pi/2 to 1/4 at pi.

    ```python
    >>> import math
    >>> from tutelage.papers.both_layers.inequalities import sharp_loss_lower
    >>> round(1 / float(sharp_loss_lower(math.pi / 2)), 3)
    11.008

    ```
    """
    theta = np.asarray(theta, float)
    top = math.pi / 2 - (math.pi / 2 - theta) * np.cos(theta) - np.sin(theta)
    return top / (2 * math.pi * (1 + np.cos(theta)))


def stationarity_gap(first: ArrayLike) -> Numbers:
    """(theta - sin theta)/(2 pi) |w~_1 + w~_2| for w~_i = |v_i| w_i (..., 2, n), from the last display of D.1.

    A lower bound of the norm of the sum of the gradients in w~_1 and w~_2. It is positive unless theta = 0 or
    w~_1 = -w~_2, so no other stationary points exist.

    ```python
    >>> from tutelage.papers.both_layers.inequalities import stationarity_gap
    >>> round(float(stationarity_gap([[1.0, 0.0], [0.0, 1.0]])), 4)
    0.1285

    ```
    """
    first = np.asarray(first, float)
    unit = first / np.linalg.norm(first, axis=-1, keepdims=True)
    apart, together = (np.linalg.norm(unit[..., 0, :] + s * unit[..., 1, :], axis=-1) for s in (-1, 1))
    theta = 2 * np.arctan2(apart, together)
    return (theta - np.sin(theta)) / (2 * math.pi) * np.linalg.norm(first.sum(axis=-2), axis=-1)


@dataclass(frozen=True)
class Contraction:
    """The loss factor 1 - a mubar + b mubar^2 per step of D.2, corrected.

    Step (e) must cite Lemma 11 and loses a factor 2, and mu/eta is 4 mu for eta = 1/4. `deviation` is delta of
    Lemma 10; `low`, `high` bound v_i^2 and |w_i|^2 in units of |a|.

    ```python
    >>> from tutelage.papers.both_layers.inequalities import Contraction
    >>> bound = Contraction()
    >>> round(bound.largest_deviation, 5), round(bound.rate, 5), bound.factor(bound.largest_step) < 1
    (0.00077, 0.0008, True)

    ```
    """

    deviation: float = 0.0
    low: float = C_MIN_SQUARED
    high: float = C_MAX_SQUARED
    alpha: float = PL

    @property
    def linear(self) -> float:
        return 3 * self.alpha * self.low / 4 - 640 * self.high * self.deviation**2

    @property
    def quadratic(self) -> float:
        smooth = smoothness(math.sqrt(self.low), math.sqrt(self.high))
        return (self.alpha * self.low + 160 * self.high * self.deviation**2) * smooth

    @property
    def largest_deviation(self) -> float:
        """Below this delta the bound contracts for small steps."""
        return math.sqrt(3 * self.alpha * self.low / (2560 * self.high))

    @property
    def largest_step(self) -> float:
        """a/(2b): up to here the factor is at most 1 - rate * mubar."""
        return self.linear / (2 * self.quadratic)

    @property
    def rate(self) -> float:
        return self.linear / 2

    def factor(self, step: float) -> float:
        return 1 - self.linear * step + self.quadratic * step**2
