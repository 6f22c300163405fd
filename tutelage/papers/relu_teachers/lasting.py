"""How long the plateau on the mean direction lasts from a small Gaussian start in a high dimension.

Three stretches, each in the limit of a small start. Of a student, r is the norm and y, over r, the part across the mean
direction within the span of the teachers; q = 1 - p_V; and s is the root mean square of how y differs among students.

- Turning: while norms are small, each student goes from orthogonal to all teachers to the mean direction. Then
  `dln(r y)/dln r = f_yy/G`, which is q at the end of the turn only; the rest adds up to `turning`.
- Filling: `r = r_inf (1 - exp(-m t/2))`, and `dln(r y)/dt = gam_V r_inf/r`. Together
  `s = s_0 (r_inf/r_0)^-p_V exp(turning + gam_V t)`, as if the plateau had begun at once.
- Parting: `dln s/dt = gam_V (1 - crowding s)`, since the kernel of two students has a cubic term in their angle; and
  spread students need more norm: the sum of norms is `1 + s^2/2 (1+q)/(1+2q)` times that of the plateau.
"""

import math

from scipy.integrate import quad
from scipy.special import digamma, gamma

from tutelage.papers.relu_teachers.plateau import Plateau


def turning(teachers: int) -> float:
    """The logarithm of what the turn to the mean direction adds to a deviation, beyond its power law.

    ```python
    >>> from tutelage.papers.relu_teachers.lasting import turning
    >>> [round(turning(k), 4) for k in (2, 4)]
    [0.5135, 0.5594]

    ```
    """
    kept = 1 - Plateau(teachers, teachers).decay_inside

    def excess(angle: float) -> float:
        """`(f_yy/G - q) dln r/dangle`, `angle` that to the mean direction."""
        theta = math.acos(math.cos(angle) / math.sqrt(teachers))
        pull = math.sin(theta) + (math.pi - theta) * math.cos(theta)
        bend = math.sin(theta) + 1 / (teachers * math.sin(theta))
        turn = (math.pi - theta) * math.sin(angle) / math.sqrt(teachers)
        return (bend - kept * pull) / turn

    return float(quad(excess, 0, math.pi / 2)[0])


def crowding(teachers: int) -> float:
    """`E|y_i - y_j|^3 / (2 pi q s^3)` for y Gaussian in k - 1 dimensions: how students of a spread hinder each other.

    ```python
    >>> from tutelage.papers.relu_teachers.lasting import crowding
    >>> [round(crowding(k), 3) for k in (2, 4)]
    [1.205, 0.916]

    ```
    """
    axes, kept = teachers - 1, 1 - Plateau(teachers, teachers).decay_inside
    third = (4 / axes) ** 1.5 * gamma((axes + 3) / 2) / gamma(axes / 2)
    return float(third / (2 * math.pi * kept))


def plateau_time(level: Plateau, *, scale: float, dim: int, near: float) -> float:
    """The time in which the sum of norms goes from `1 - near` to `1 + near` times that of the plateau, in the mean.

    Students start as N(0, scale^2 I) in `dim` dimensions. It is nan when parting would begin before the norms are
    there: where the plateau would last less than filling it did.

    ```python
    >>> from tutelage.papers.relu_teachers.lasting import plateau_time
    >>> from tutelage.papers.relu_teachers.plateau import Plateau
    >>> round(plateau_time(Plateau(2, 20), scale=1e-12, dim=100, near=0.03), 3)
    1.363

    ```
    """
    kept = 1 - level.decay_inside
    last = math.sqrt(2 * near * (1 + 2 * kept) / (1 + kept))
    parting = math.log(last / (1 - crowding(level.teachers) * last))
    norms = math.log(level.student_norm / (scale * math.sqrt(dim)))
    grown = parting - _first_spread(level, dim) + level.decay_inside * norms - turning(level.teachers)
    filling = 2 / level.students * math.log(1 / near)
    lasts = grown / level.gamma_inside - filling
    return lasts if lasts > filling else math.nan


def _first_spread(level: Plateau, dim: int) -> float:
    """The mean of ln s at the start: `dim m s^2` is chi-squared with (k-1)(m-1) degrees of freedom."""
    half = (level.teachers - 1) * (level.students - 1) / 2
    return float(digamma(half) + math.log(2 / (level.students * dim))) / 2
