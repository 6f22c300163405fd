"""Laws of motion in closed form: one pair of student and teacher, and the slow motions that follow recovery.

The time in which an expert alone finds its teacher is in `growth`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from tutelage import BadInput
from tutelage.papers.soft_moe.constants import Constants
from tutelage.problem import Numbers


class PairTimes(NamedTuple):
    """When an expert and its router reach a level of overlap with their teacher's."""

    expert: float
    router: float

    @property
    def lag(self) -> float:
        return self.router - self.expert


def pair_times(
    constants: Constants, g2: float, g1: float = 0.0, *, a: float = 1.0, b: float = 1.0, level: float = 0.9
) -> PairTimes:
    """Times of one student with overlaps `g1`, `g2` with its teacher, if no other overlap disturbs it.

        dg2/dt = p p! G_00(g1) g2^(p-1) (1 - g2^2) / b^2,    dg1/dt = p! G_11(g1) g2^p (1 - g1^2) / a^2

    Exact for m = m* = 1 when router and expert have no overlap with each other's counterparts. The lag tends to a
    number that does not depend on a small start, so not on dim.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.laws import pair_times
    >>> found = pair_times(Constants.of(), 1e-3)
    >>> print(f"{found.expert:.2f} {found.lag:.3f}")
    222.30 5.495

    ```
    """
    if not 0 < g2 < level < 1:
        raise BadInput(f"pair_times: g2 is {g2} and level {level}, but 0 < g2 < level < 1 was expected.")
    p, fact = constants.degree, math.factorial(constants.degree)

    def velocity(_: float, state: Numbers) -> list[float]:
        router, expert = state
        g00, g11 = (float(constants.correlation(k, k, router)) for k in (0, 1))
        return [
            fact * g11 * expert**p * (1 - router**2) / a**2,
            p * fact * g00 * expert ** (p - 1) * (1 - expert**2) / b**2,
        ]

    events = [lambda _, state: state[1] - level, lambda _, state: state[0] - level]
    events[1].terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(velocity, (0, 1e12), [g1, g2], "LSODA", events=events, rtol=1e-8, atol=1e-10)
    return PairTimes(float(found.t_events[0][0]), float(found.t_events[1][0]))


def slow_force(constants: Constants) -> float:
    """`p p! c_0^4 / E[gate^2]`: the factor of `x^3` in the drift of a pair that cancels, beside a teacher (p = 3).

    The teacher displaces both of the pair by the same small vector, against the stiffness `p p! E[gate^2]`; its pulls
    on the one and on the other then no longer balance.
    """
    if constants.degree != 3:
        raise BadInput(f"The slow laws are for experts of degree 3, but the degree is {constants.degree}.")
    return constants.force * constants.mean**4 / constants.square


def breaking_time(constants: Constants, x: ArrayLike) -> Numbers:
    """When two students with experts u, -u and one router part, with `x = u.w*` of a teacher not yet learned.

    `dx/dt = slow_force x^3`. The experts are of norm 1.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.laws import breaking_time, sharing_time
    >>> paper = Constants.of()
    >>> round(float(breaking_time(paper, 1.0)), 4), round(float(sharing_time(paper, 1.0)), 4)
    (0.1304, 0.0652)

    ```
    """
    return 1 / (2 * slow_force(constants) * np.asarray(x, float) ** 2)


def sharing_time(constants: Constants, x: ArrayLike) -> Numbers:
    """When an unused student with `x = w.w*` interferes with a recovered pair: `dx/dt = 2 slow_force x^3`.

    With x > 0 it comes to share the teacher with the student that has learned it, with x < 0 it falls onto `-w*`. So
    "recovered, the others orthogonal" is a degenerate saddle and no minimum.
    """
    return breaking_time(constants, x) / 2
