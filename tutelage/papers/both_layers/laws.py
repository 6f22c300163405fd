"""Probabilities of success from a small start, and levels of the loss, in closed form."""

import math

from scipy.stats import t as student_t


def success_law(width: int) -> float:
    """1 - 2^(1-k): the chance that k independent fair signs are not all equal.

    ```python
    >>> from tutelage.papers.both_layers.laws import success_law
    >>> [success_law(k) for k in (2, 3, 4)]
    [0.5, 0.75, 0.875]

    ```
    """
    return 1 - 2.0 ** (1 - width)


def failure_law(dim: int) -> float:
    """2p(1-p), p = P(t_d < -sqrt d): the chance that one of the two neurons of Theorem 2's start turns round.

    There v_i(0) = (sigma/sqrt d) chi_d is positive, so v_i + a.w_i/|a| < 0 says that a t-variable lies below -sqrt d.

    ```python
    >>> from tutelage.papers.both_layers.laws import failure_law
    >>> [round(failure_law(d), 3) for d in (2, 3, 5, 8)]
    [0.25, 0.165, 0.073, 0.022]

    ```
    """
    p = _turns(dim)
    return 2 * p * (1 - p)


def planted_law(dim: int, width: int) -> float:
    """The chance that both signs occur among k neurons of Theorem 2's start, planted as +, -, +, ...

    1 - `failure_law` for k = 2.

    ```python
    >>> from tutelage.papers.both_layers.laws import planted_law
    >>> [round(planted_law(3, k), 3) for k in (1, 2, 3, 4)]
    [0.0, 0.835, 0.917, 0.986]

    ```
    """
    p, negative = _turns(dim), width // 2
    positive = width - negative
    return 1 - (1 - p) ** positive * p**negative - p**positive * (1 - p) ** negative


def _turns(dim: int) -> float:
    return float(student_t.cdf(-math.sqrt(dim), dim))


def initial_event_law(dim: int, slack: float) -> float:
    """P(a.w_i(0) >= -slack v_i(0)) under Theorem 2's start: a t-probability, near 1/2 for a small slack (C.4).

    ```python
    >>> from tutelage.papers.both_layers.constants import CHAT4
    >>> from tutelage.papers.both_layers.laws import initial_event_law
    >>> round(initial_event_law(100, CHAT4), 3)
    0.505

    ```
    """
    return float(student_t.cdf(slack * math.sqrt(dim), dim))


def plateau_level() -> float:
    """The loss of three neurons at 120 degrees in a plane of two unit outputs: where k = 2r - 1 neurons end.

    ```python
    >>> from tutelage.papers.both_layers.laws import plateau_level
    >>> round(plateau_level(), 5)
    0.15825

    ```
    """
    even = (3 - 6 / math.pi * (math.sqrt(3) / 2 + math.pi / 12)) / 4
    size = 3 / (9 / 4 + 2 * even)
    return (2 * (3 * size / 4 - 1) ** 2 + even * size**2) / 2
