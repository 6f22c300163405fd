"""The mean-direction plateau: what students of small norm do before they part, in closed form.

While norms are small every student climbs `G(u) = sum_l g(u, v_l)` on the sphere. The ReLU has a linear part, so a
single teacher is no resting direction: the maximiser is the mean direction `vm`. All students on it, with norms that
add up to `2 G(vm)`, are a strict saddle of the loss; that is the shelf which a run shows before the groups separate.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tutelage import BadInput
from tutelage.papers.relu_teachers.hessian import curvature
from tutelage.papers.relu_teachers.kernel import kernel, rows, slope
from tutelage.problem import Numbers


@dataclass(frozen=True)
class Plateau:
    """The plateau of `teachers` orthogonal teachers of one norm and `students` students.

    Rates are per unit of flow time. With one teacher it is no saddle but the minimum itself.

    ```python
    >>> from tutelage.papers.relu_teachers.plateau import Plateau
    >>> two = Plateau(teachers=2, students=6)
    >>> round(two.force, 4), round(two.loss, 5), round(two.gamma_inside, 4)
    (4.7464, 0.08851, 1.7877)

    ```
    """

    teachers: int
    students: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        if self.teachers < 1 or self.students < 1 or not self.norm > 0:
            raise BadInput(
                f"Plateau: {self.teachers} teachers of norm {self.norm} and {self.students} students; "
                "pass at least one of each and a positive norm."
            )

    @property
    def theta_m(self) -> float:
        """The angle of the mean direction to each teacher: cos = 1/sqrt k."""
        return math.atan(math.sqrt(self.teachers - 1))

    @property
    def lam(self) -> float:
        """lam = (pi - theta_m) sqrt k."""
        return (math.pi - self.theta_m) * math.sqrt(self.teachers)

    @property
    def force(self) -> float:
        """F = lam + sqrt(k(k-1)): a student on the mean direction grows at the rate F nv/(2 pi)."""
        return self.lam + math.sqrt(self.teachers * (self.teachers - 1))

    @property
    def loss_start(self) -> float:
        """L(0) = nv^2/2 (k/2 + k(k-1)/(2 pi)), the loss of the zero network."""
        k = self.teachers
        return self.norm**2 / 2 * (k / 2 + k * (k - 1) / (2 * math.pi))

    @property
    def loss(self) -> float:
        """The level of the plateau, L(0) - (F nv/(2 pi))^2; zero for one teacher."""
        return self.loss_start - (self.force * self.norm / (2 * math.pi)) ** 2 if self.teachers > 1 else 0.0

    @property
    def sum_of_norms(self) -> float:
        """sum_i |w_i| = F nv/pi."""
        return self.force * self.norm / math.pi

    @property
    def student_norm(self) -> float:
        """|w_i| if all students are equal."""
        return self.sum_of_norms / self.students

    @property
    def decay_inside(self) -> float:
        """p_V: deviations from the mean direction within span V shrink like |w|^-p_V; nan for one teacher."""
        return 1 - self._bend_inside / self.force if self.teachers > 1 else math.nan

    @property
    def decay_outside(self) -> float:
        """p_perp = lam/F: the same for deviations out of span V."""
        return self.lam / self.force

    @property
    def gamma_inside(self) -> float:
        """gam_V: the rate of escape within span V, minus the lowest eigenvalue of the Hessian; nan for one teacher."""
        return self.students / (2 * self.force) * self._bend_inside if self.teachers > 1 else math.nan

    @property
    def _bend_inside(self) -> float:
        k = self.teachers
        return math.sqrt(k * (k - 1)) + math.sqrt(k / (k - 1))

    @property
    def small_norm_time(self) -> float:
        """2 pi/(3 m F): when norms that start near zero reach nv/(3m), the end of the regime of Eq. 21."""
        return 2 * math.pi / (3 * self.students * self.force)

    @property
    def norm_rate(self) -> float:
        """d|w_i|/ds = F nv/(2 pi) on the mean direction while norms are small."""
        return self.force * self.norm / (2 * math.pi)

    @property
    def projection_rate(self) -> float:
        """d h_i*/ds = F nv/(2 pi sqrt k), the growth along one teacher."""
        return self.norm_rate / math.sqrt(self.teachers)

    @property
    def lmax(self) -> float:
        """The largest Hessian eigenvalue at the balanced aligned minimum; descent is stable for steps below 2/lmax."""
        k = self.teachers
        turn = 1 / (2 * math.pi)
        matrix = np.array([[0.5 + (k - 1) * turn, (k - 1) / 4], [0.25, k / 4 + turn]])
        return self.students / k * float(np.max(np.linalg.eigvals(matrix).real))

    def escape_time(self, deviation: float) -> float:
        """ln(1/deviation)/gam_V: about how long students at this angle from the mean direction stay on the plateau."""
        return math.log(1 / deviation) / self.gamma_inside

    def lengthening(self, ratio: float) -> float:
        """How much longer the plateau gets when the initial norms are divided by `ratio`: (p_V/gam_V) ln(ratio).

        ```python
        >>> from tutelage.papers.relu_teachers.plateau import Plateau
        >>> round(Plateau(teachers=2, students=6).lengthening(1e3), 3)
        1.561

        ```
        """
        return self.decay_inside / self.gamma_inside * math.log(ratio)


@dataclass(frozen=True)
class MeanDirection:
    """The plateau of any teachers, orthogonal and of one norm or not: built on the maximiser of G, found numerically.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.plateau import MeanDirection
    >>> at = MeanDirection(np.eye(2))
    >>> at.direction.round(6).tolist(), round(at.loss, 5), at.bends.round(4).tolist()
    ([0.707107, 0.707107], 0.08851, [0.5959])

    ```
    """

    teacher: Numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "teacher", rows("teacher", self.teacher))

    @cached_property
    def direction(self) -> Numbers:
        """vm: the unit vector that maximises G(u) = sum_l g(u, v_l)."""
        return mean_direction(self.teacher)

    @cached_property
    def strength(self) -> float:
        """G(vm): the rate of growth d|w|/ds of a student on vm; F nv/(2 pi) for orthogonal teachers."""
        return float(kernel(self.direction[None], self.teacher).sum())

    @property
    def loss_start(self) -> float:
        """The loss of the zero network."""
        return float(kernel(self.teacher, self.teacher).sum() / 2)

    @property
    def loss(self) -> float:
        """L(0) - G(vm)^2, the least loss of students that all point to vm."""
        return self.loss_start - self.strength**2

    @property
    def sum_of_norms(self) -> float:
        """2 G(vm)."""
        return 2 * self.strength

    @cached_property
    def bends(self) -> Numbers:
        """b/G for the curvatures b of G across vm, in rising order; one for each direction of the frame but vm.

        Deviations from vm shrink like |w|^-(1 - b/G) while norms are small.
        """
        matrix = curvature(self.direction[None], self.teacher).sum((0, 1)) / self.strength
        basis = np.linalg.svd(self.direction[None])[2][1:]
        return np.linalg.eigvalsh(basis @ matrix @ basis.T)

    def escape_rates(self, students: int) -> Numbers:
        """Rates m b/(2 G) at which equal students leave the plateau, in rising order."""
        return students / 2 * self.bends


def mean_direction(teacher: ArrayLike, *, tolerance: float = 1e-15, tries: int = 100_000) -> Numbers:
    """The unit vector that maximises sum_l g(u, v_l).

    `u <- grad G / |grad G|` never lowers G, which is convex and of degree one. It is started from the sum of the
    teachers and from each of them, and the best end is kept.
    """
    teacher = rows("teacher", teacher)
    total = teacher.sum(0)
    starts = teacher if np.linalg.norm(total) < 1e-12 * np.linalg.norm(teacher) else np.vstack([total, teacher])
    ends = [_climb(start / np.linalg.norm(start), teacher, tolerance, tries) for start in starts]
    return max(ends, key=lambda end: float(kernel(end[None], teacher).sum()))


def _climb(at: Numbers, teacher: Numbers, tolerance: float, tries: int) -> Numbers:
    for _ in range(tries):
        pull = slope(at[None], teacher).sum((0, 1))
        new = pull / np.linalg.norm(pull)
        if np.linalg.norm(new - at) <= tolerance:
            return new
        at = new
    return at
