"""Assumptions 1 to 3 and Lemma 1, measured on the starting weights."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage.analysis import Hypothesis, angles_between
from tutelage.papers.relu_teachers.chain import norm_bounds
from tutelage.papers.relu_teachers.kernel import rows

# Rounding in a cosine or a relative norm of vectors that were made orthogonal and equal by QR and scaling.
ROUNDING = 1e-12


def nearest(first: ArrayLike, teacher: ArrayLike) -> NDArray[np.intp]:
    """tau_i: the teacher at the least angle from each student; the paper freezes it at t = 0.

    ```python
    >>> from tutelage.papers.relu_teachers.assumptions import nearest
    >>> nearest([[0.9, 0.1], [0.2, 0.3]], [[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0, 1]

    ```
    """
    return np.argmin(angles_between(rows("first", first), rows("teacher", teacher)), axis=1)


@dataclass(frozen=True)
class Assumptions:
    """What Assumptions 1 to 3 and Lemma 1 ask of a start, as measured.

    - `zeta_own`: min_i zeta_i = pi/2 - theta_i*(0); `zeta_other`: zeta, the largest deviation from pi/2 of all others.
    - `eps1`: the free parameter of Theorem 6; 10 k zeta <= eps1^2 and eps1^2 = o(zeta_i^3) are judged with it.
    - `cosine`, `spread`: largest |cosine| of two teachers, and (max - min)/max of their norms (Assumption 2).
    - `counts`: m_l (Assumption 3); `shortest`, `longest`: norms of the students beside `s1`, `s2` (Lemma 1).
    """

    students: int
    teachers: int
    eps1: float
    zeta_own: float
    zeta_other: float
    cosine: float
    spread: float
    counts: tuple[int, ...]
    shortest: float
    longest: float
    s1: float
    s2: float

    @property
    def crowding(self) -> float:
        """10 k zeta / eps1^2, at most 1 in Theorem 6."""
        return 10 * self.teachers * self.zeta_other / self.eps1**2

    @property
    def own_ratio(self) -> float:
        """eps1^2 / min_i zeta_i^3, `o(1)` in Theorem 6; infinite if a student leans away from all teachers."""
        return self.eps1**2 / self.zeta_own**3 if self.zeta_own > 0 else math.inf

    @property
    def weak_recovery(self) -> bool:
        """Assumption 1 in the form of Theorem 6.

        Every student has an angle below pi/2 to its teacher, 10 k zeta <= eps1^2, and eps1^2 = o(zeta_i^3) is read as
        smaller than zeta_i^3.
        """
        return self.zeta_own > 0 and self.crowding <= 1 and self.own_ratio < 1

    @property
    def orthogonal(self) -> bool:
        """Assumption 2: teachers orthogonal and of one norm."""
        return max(self.cosine, self.spread) <= ROUNDING

    @property
    def count_bounds(self) -> tuple[float, float]:
        """m/(3k) and 3m/k."""
        return self.students / (3 * self.teachers), 3 * self.students / self.teachers

    @property
    def balanced(self) -> bool:
        """Assumption 3."""
        low, high = self.count_bounds
        return low <= min(self.counts) and max(self.counts) <= high

    @property
    def norms(self) -> bool:
        """Lemma 1: s1 <= |w_i(0)| <= s2."""
        return self.s1 <= self.shortest and self.longest <= self.s2

    @property
    def all(self) -> bool:
        return self.weak_recovery and self.orthogonal and self.balanced and self.norms

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What `all` asks for, one by one."""
        few, many = min(self.counts), max(self.counts)
        share = max(many * self.teachers / self.students, self.students / (self.teachers * few) if few else math.inf)
        length = max(self.longest / self.s2, self.s1 / self.shortest)
        apart = max(self.cosine, self.spread)
        return (
            Hypothesis("10 k zeta <= eps1^2, over eps1^2 (Assumption 1)", self.crowding <= 1, self.crowding, 1.0),
            Hypothesis("eps1^2 < min zeta_i^3, over the latter", self.own_ratio < 1, self.own_ratio, 1.0, "<"),
            Hypothesis("teachers orthogonal and of one norm (Assumption 2)", self.orthogonal, apart, ROUNDING),
            Hypothesis("m_l k/m and its inverse at most 3 (Assumption 3)", self.balanced, share, 3.0),
            Hypothesis("s1 <= |w_i(0)| <= s2, relative (Lemma 1)", self.norms, length, 1.0),
        )

    def sentences(self) -> list[str]:
        """One sentence an assumption: what was measured, and whether it holds."""
        low, high = self.count_bounds
        return [
            f"Assumption 1 (weak recovery) {_verdict(self.weak_recovery)}: the least zeta_i is {self.zeta_own:.3g}, "
            f"the largest deviation of the other angles from pi/2 is {self.zeta_other:.3g}; with eps1 = {self.eps1:g}, "
            f"10 k zeta is {self.crowding:.3g} eps1^2 and eps1^2 is {self.own_ratio:.3g} min zeta_i^3.",
            f"Assumption 2 (orthogonal teachers of one norm) {_verdict(self.orthogonal)}: the largest cosine is "
            f"{self.cosine:.2g}, the norms differ by {self.spread:.2g}.",
            f"Assumption 3 (balance) {_verdict(self.balanced)}: the groups have {', '.join(map(str, self.counts))} "
            f"students, and {low:.3g} to {high:.3g} are allowed.",
            f"Lemma 1 (initial norms) {_verdict(self.norms)}: the norms lie in [{self.shortest:.3g}, "
            f"{self.longest:.3g}], and [s1, s2] is [{self.s1:.3g}, {self.s2:.3g}].",
        ]


def assumptions(first: ArrayLike, teacher: ArrayLike, *, dim: int, sigma: float, eps1: float = 0.1) -> Assumptions:
    """Assumptions 1 to 3 and Lemma 1 on starting students `first` (m, n) and teachers (k, n) in one frame.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.assumptions import assumptions
    >>> start = 0.01 * np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    >>> assumptions(start, np.eye(2, 3), dim=50, sigma=0.002).sentences()[2]
    'Assumption 3 (balance) holds: the groups have 1, 1 students, and 0.333 to 3 are allowed.'

    ```
    """
    first, teacher = rows("first", first), rows("teacher", teacher)
    tau = nearest(first, teacher)
    tilt = np.pi / 2 - angles_between(first, teacher)
    own = np.arange(len(first)), tau
    others = np.abs(tilt)
    others[own] = 0.0
    sizes, lengths = np.linalg.norm(teacher, axis=1), np.linalg.norm(first, axis=1)
    unit = teacher / sizes[:, None]
    s1, s2 = norm_bounds(sigma, dim)
    return Assumptions(
        students=len(first),
        teachers=len(teacher),
        eps1=eps1,
        zeta_own=float(tilt[own].min()),
        zeta_other=float(others.max()),
        cosine=float(np.max(np.abs(unit @ unit.T - np.diag(np.diag(unit @ unit.T))))),
        spread=float(np.ptp(sizes) / sizes.max()),
        counts=tuple(int(count) for count in np.bincount(tau, minlength=len(teacher))),
        shortest=float(lengths.min()),
        longest=float(lengths.max()),
        s1=s1,
        s2=s2,
    )


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"
