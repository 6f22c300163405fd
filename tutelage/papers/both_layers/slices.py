"""The loss on slices through its flat saddles, and how gradient descent leaves them."""

import math

import numpy as np
from numpy.typing import ArrayLike

from tutelage.problem import Numbers


def line_slice(alpha1: ArrayLike, alpha2: ArrayLike) -> Numbers:
    """L/|a|^2 for v = (1,-1), w_i = alpha_i a: the surface of Figure 1(c).

    ```python
    >>> from tutelage.papers.both_layers.slices import line_slice
    >>> float(line_slice(1.0, -1.0)), float(line_slice(2.0, 1.0)), float(line_slice(1.0, 2.0))
    (0.0, 0.25, 1.25)

    ```
    """
    x, y = np.asarray(alpha1, float), np.asarray(alpha2, float)
    apart = ((x - 1) ** 2 + (y + 1) ** 2) / 4
    together = (1 + (x - y - 1) ** 2) / 4
    return np.where(x * y <= 0, apart, together)


def g(psi: ArrayLike) -> Numbers:
    """sin psi - psi cos psi, without cancellation (psi^3/3 for small psi).

    ```python
    >>> from tutelage.papers.both_layers.slices import g
    >>> f"{g(1e-6):.6e}"
    '3.333333e-19'

    ```
    """
    psi = np.asarray(psi, float)
    s = psi**2
    series = 1 - s / 10 * (1 - s / 28 * (1 - s / 54 * (1 - s / 88 * (1 - s / 130))))
    return np.where(np.abs(psi) < 0.5, psi**3 / 3 * series, np.sin(psi) - psi * np.cos(psi))


def valley_loss(first: ArrayLike, target: ArrayLike, *, same_sign: bool = False) -> Numbers:
    """The loss where effective weights w~_i = |v_i| w_i (..., 2, n) satisfy w~_1 - w~_2 = a, or w~_1 + w~_2 = a.

    Opposite signs of v: |a|^2/4 - |w~_1||w~_2| g(theta)/(2 pi), downhill from the saddles. Same signs: with +, uphill.

    ```python
    >>> from tutelage.papers.both_layers.slices import valley_loss
    >>> round(float(valley_loss([[2.0, 0.1], [1.0, 0.1]], [1.0, 0.0])), 6)
    0.249987

    ```
    """
    first, target = np.asarray(first, float), np.asarray(target, float)
    norms = np.linalg.norm(first, axis=-1)
    unit = first / norms[..., None]
    apart, together = (np.linalg.norm(unit[..., 0, :] + s * unit[..., 1, :], axis=-1) for s in (-1, 1))
    pull = norms[..., 0] * norms[..., 1] * g(2 * np.arctan2(apart, together)) / (2 * math.pi)
    return np.sum(target**2) / 4 + (pull if same_sign else -pull)


def descent_coefficient(c: float, target: float = 1.0) -> float:
    """L - |a|^2/4 = -coefficient * eps^3 when both effective weights of the saddle c move by eps across the target.

    ```python
    >>> from tutelage.papers.both_layers.slices import descent_coefficient
    >>> round(descent_coefficient(1.0), 6)
    0.013263

    ```
    """
    return 1 / (6 * math.pi * c**2 * (c + 1) ** 2 * target)


def escape_rate(c: float, v1: float = 1.0, v2: float = 1.0, target: float = 1.0) -> float:
    """K in d eps/dt = K eps^2, flow time: the saddle c is left algebraically, 1/eps(t) = 1/eps(0) - K t.

    `eps` is the common shift of the effective weights across the target. Training or fixing the second layer makes no
    difference to leading order: the shift moves only the incoming weights.

    ```python
    >>> from tutelage.papers.both_layers.slices import escape_rate
    >>> round(1 / escape_rate(1.0), 3)
    50.265

    ```
    """
    # The slope -3 coefficient eps^2, in the metric of incoming weights that move by eps/v_i.
    return 3 * descent_coefficient(c, target) / (1 / v1**2 + 1 / v2**2)


def escape_correction(c: float, v1: float = 1.0, v2: float = 1.0, target: float = 1.0) -> float:
    """kappa in d eps/dt = K eps^2 (1 + kappa eps + O(eps^2)).

    The pull that moves the common shift also holds the two effective weights apart, across the target, by an amount of
    order eps^2; that widens their angle by a relative order eps. Moves along the target come in at eps^2.

    ```python
    >>> from tutelage.papers.both_layers.slices import escape_correction
    >>> round(escape_correction(1.0), 4)
    0.3581

    ```
    """
    share = v2**2 / (v1**2 + v2**2)
    return 2 * ((1 - share) * c + share * (c + 1)) ** 2 / (math.pi * c**2 * (c + 1) ** 2 * target)


def escape_time(eps: ArrayLike, c: float, v1: float = 1.0, v2: float = 1.0, target: float = 1.0) -> Numbers:
    """The flow time in which a shift `eps` off the saddle grows beyond all bounds: int deps/(K eps^2 (1 + kappa eps)).

    The leading 1/(K eps) is late by a relative order eps ln(1/eps), this by a relative order eps.

    ```python
    >>> from tutelage.papers.both_layers.slices import escape_time
    >>> escape_time([0.1, 0.01], 1.0).round(1).tolist()  # the flow: 437.7, 4915.6; 1/(K eps): 502.7, 5026.5
    [442.1, 4925.1]

    ```
    """
    eps, kappa = np.asarray(eps, float), escape_correction(c, v1, v2, target)
    return (1 / eps - kappa * np.log1p(1 / (kappa * eps))) / escape_rate(c, v1, v2, target)


def escape_steps(eps: float, c: float, *, step: float, **saddle) -> float:
    """Steps of gradient descent until a shift `eps` off the saddle has grown to order one.

    ```python
    >>> from tutelage.papers.both_layers.slices import escape_steps
    >>> round(escape_steps(0.25, 1.0, step=0.01))
    15608

    ```
    """
    return float(escape_time(eps, c, **saddle)) / step
