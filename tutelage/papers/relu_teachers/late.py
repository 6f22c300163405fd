"""When the loss begins to fall for good: the time that Theorems 2 and 5 leave out, and Appendix A's clock beside it.

From weak recovery with groups of one size, students of small norm wait on the plateau until about
`(p_V/gam_V) ln(nv/(sigma sqrt d))`; that of one teacher is no saddle, and nothing waits. The time T* that the corrected
theorem begins with is a fixed multiple of 1/m after that. All lengths here are logarithms: those of Appendix A are far
below what a double can hold.
"""

import math
from dataclasses import dataclass

from tutelage.papers.relu_teachers.chain import LOG_48PI, log10_eps1, log10_sigma
from tutelage.papers.relu_teachers.plateau import Plateau

AFTER, BEFORE = 24.0, 40.0
"""In units of 1/m: T* is so long after the students part, and so long before T* the plateau still holds all of them."""
HELD = 0.99  # of the level of the plateau


def parting_time(level: Plateau, log10_length: float) -> float:
    """(p_V/gam_V) ln(nv/(sigma sqrt d)), from log10 of sigma sqrt(d)/nv; 0 for one teacher.

    ```python
    >>> from tutelage.papers.relu_teachers.late import parting_time
    >>> from tutelage.papers.relu_teachers.plateau import Plateau
    >>> round(parting_time(Plateau(2, 6), -25.0), 3), parting_time(Plateau(1, 3), -25.0)
    (13.011, 0.0)

    ```
    """
    if level.teachers == 1:
        return 0.0
    return -level.decay_inside / level.gamma_inside * math.log(10) * log10_length


def settled_time(level: Plateau, log10_length: float) -> float:
    """T* of the corrected theorem: (p_V/gam_V) ln(nv/(sigma sqrt d)) + 24/m."""
    return parting_time(level, log10_length) + AFTER / level.students


@dataclass(frozen=True)
class Chain:
    """The parameters of Appendix A, with its `o(.)` read as the constant 1 and its C* as `power`, as logarithms.

    ```python
    >>> from tutelage.papers.relu_teachers.late import Chain
    >>> chain = Chain(2, 6)
    >>> round(chain.log10_eps2), round(chain.log10_length), round(chain.second), round(chain.settled)
    (-77, -5197, 29, 2709)

    ```
    """

    teachers: int
    students: int
    power: float = 1.0

    @property
    def level(self) -> Plateau:
        return Plateau(self.teachers, self.students)

    @property
    def log10_eps2(self) -> float:
        """eps2 = m^-60 k^-100."""
        return -60 * math.log10(self.students) - 100 * math.log10(self.teachers)

    @property
    def log10_length(self) -> float:
        """sigma sqrt(d)/nv, the largest of Theorem 6."""
        return log10_sigma(
            log10_eps1(self.log10_eps2, self.teachers, self.students, self.power), self.teachers, self.students, 1
        )

    @property
    def second(self) -> float:
        """T2 in flow time; T1 is less than 1e-70 of it."""
        return -self.teachers / (2 * self.students) * math.log(10) * (LOG_48PI + self.log10_eps2)

    @property
    def settled(self) -> float:
        """T* of the corrected theorem."""
        return settled_time(self.level, self.log10_length)

    @property
    def waits_until(self) -> float:
        """Until then the loss is at least `HELD` of the plateau's."""
        return self.settled - BEFORE / self.students

    @property
    def loss_allowed(self) -> float:
        """k^2 eps2^0.05 nv^2/2 (Corollary 2)."""
        return self.teachers**2 * 10 ** (0.05 * self.log10_eps2) / 2

    @property
    def largest_constant(self) -> float:
        """The largest c of Eq. 10 that T2 allows: long after it the loss still is `HELD` of the plateau's."""
        rise = (HELD ** (-1 / 3) - 1) * self.level.loss ** (-1 / 3)
        return self.teachers**4 * rise / (self.waits_until - self.second)
