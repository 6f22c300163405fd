"""The slow motion within a group: students that add up to their teacher and turn towards it.

Components across the teacher, `z_i = h_i y_i` with slopes y_i, follow the flow of a cubic loss at fixed shares h_i and
`sum_i z_i = 0`. It has self-similar solutions `z = Z/s`; found here for any shares and any dimension.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tutelage import BadInput
from tutelage.problem import Numbers, reduce_rows


@dataclass(frozen=True)
class SlowState:
    """A self-similar state: `across` are the rows Z_i = s z_i of a teacher of norm 1."""

    shares: Numbers
    across: Numbers

    @cached_property
    def constant(self) -> float:
        """C_l = L s^3 of this state."""
        return energy(self.across, self.shares)


def energy(across: ArrayLike, shares: ArrayLike) -> float:
    """The cubic loss 1/(12 pi) sum_ab S_a S_b h_a h_b |y_a - y_b|^3 of one group, the teacher at slope 0."""
    across, shares = np.asarray(across, float), np.asarray(shares, float)
    slopes = across / shares[:, None]
    gaps = np.linalg.norm(slopes[:, None] - slopes[None], axis=-1)
    own = shares @ gaps**3 @ shares
    met = shares.sum() * shares @ np.linalg.norm(slopes, axis=1) ** 3
    return float((own - 2 * met) / (12 * math.pi))


def force(across: ArrayLike, shares: ArrayLike) -> Numbers:
    """The gradient of the cubic loss in z_i = h_i y_i, within sum_i z_i = 0: the slow flow is dz/ds = -force."""
    across, shares = np.asarray(across, float), np.asarray(shares, float)
    slopes = across / shares[:, None]
    steps = slopes[:, None] - slopes[None]
    pulled = np.einsum("j,ij,ijn->in", shares, np.linalg.norm(steps, axis=-1), steps)
    held = shares.sum() * np.linalg.norm(slopes, axis=1, keepdims=True) * slopes
    free = (pulled - held) / (2 * math.pi)
    return free - free.mean(0)


def slow_state(shares: ArrayLike, start: ArrayLike, *, time: float = 60.0) -> SlowState:
    """The self-similar solution that the slow flow of a group reaches, for students with any shares h_i.

    `Z = s z` obeys dZ/d(ln s) = Z - force(Z); it is followed for `time` in ln s from `start` (rows across the teacher)
    and then polished by Newton's method.

    ```python
    >>> from tutelage.papers.relu_teachers.local import pair_constant
    >>> from tutelage.papers.relu_teachers.slow import slow_state
    >>> round(slow_state([0.3, 0.7], start=[[1.0], [-1.0]]).constant, 6), round(pair_constant(0.3), 6)
    (1.160665, 1.160665)

    ```
    """
    from scipy.integrate import solve_ivp
    from scipy.optimize import root

    shares = shares_of(shares)
    # In their own span: n students need no more than n coordinates.
    rows = reduce_rows(np.asarray(start, float))
    begin = _unit(rows - rows.mean(0), shares)

    def drift(_: float, flat: Numbers) -> Numbers:
        return _drift(flat.reshape(rows.shape), shares).ravel()

    # The attractor is a sink of this flow: the error of the last steps is all that is left, and Newton removes it.
    flown = solve_ivp(drift, (0.0, time), begin.ravel(), method="LSODA", rtol=1e-8, atol=1e-10)
    polished = root(lambda flat: drift(0.0, flat), flown.y[:, -1], method="lm", tol=1e-14)
    across = polished.x.reshape(rows.shape)
    return SlowState(shares, across - across.mean(0))


def slow_levels(shares: ArrayLike, across: ArrayLike, times: ArrayLike) -> Numbers:
    """The cubic loss of a group at increasing `times` after it was at `across` (n, columns), for a teacher of norm 1.

    The state may be far from self-similar: this says what L is before C_l is reached. Shares are divided by their sum.
    """
    from scipy.integrate import solve_ivp

    shares, across, times = shares_of(shares), np.asarray(across, float), np.asarray(times, float)

    def drift(_: float, flat: Numbers) -> Numbers:
        return -force(flat.reshape(across.shape), shares).ravel()

    begin = across - across.mean(0)
    tiny = 1e-12 * float(np.abs(begin).max())
    span = (0.0, float(times[-1]))
    flown = solve_ivp(drift, span, begin.ravel(), method="LSODA", t_eval=times, rtol=1e-9, atol=tiny)
    return np.array([energy(flat.reshape(across.shape), shares) for flat in flown.y.T])


def _drift(across: Numbers, shares: Numbers) -> Numbers:
    """dZ/d(ln s). The constraint sum_i Z_i = 0 is imposed again: left alone, its rounding error would grow like s."""
    inside = across - across.mean(0)
    return inside - force(inside, shares)


def _unit(across: Numbers, shares: Numbers) -> Numbers:
    """Scaled so that the growth of |Z| stops, 3 E = |Z|^2: a start of any size takes no time to grow."""
    size, level = float(np.sum(across**2)), energy(across, shares)
    if not size > 0:
        raise BadInput("slow_state: start has all students on one line with their teacher; pass different rows.")
    return across * size / (3 * level) if level > 0 else across / math.sqrt(size)


def shares_of(shares: ArrayLike) -> Numbers:
    """Positive numbers, one per student, divided by their sum."""
    shares = np.asarray(shares, float)
    if shares.ndim != 1 or not shares.size or not np.all(shares > 0):
        raise BadInput(f"The shares of a group are {shares.tolist()}; pass one positive number per student.")
    return shares / shares.sum()
