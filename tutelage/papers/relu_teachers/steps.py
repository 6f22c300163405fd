"""What one step of gradient descent does to the quantities of the proof, exactly (Eq. 24, 37, 51; Lemma 4).

The paper's tau_i is frozen at the start of a run: pass it as `tau` when the weights are later ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.analysis import angles_between
from tutelage.papers.relu_teachers.assumptions import nearest
from tutelage.papers.relu_teachers.hessian import mixed
from tutelage.papers.relu_teachers.kernel import gradient, loss, rows, slope
from tutelage.problem import Numbers


@dataclass(frozen=True)
class Step:
    """One step `w - eta grad` from students `first` (m, n) under teachers (k, n), orthogonal and of one norm.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.steps import Step
    >>> step = Step([[0.3, 0.1, 0.2], [0.1, 0.4, -0.1]], np.eye(2, 3), eta=0.1)
    >>> bool(np.allclose(step.rise, step.predicted_rise, atol=1e-15))
    True

    ```
    """

    first: Numbers
    teacher: Numbers
    eta: float
    tau: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        first, teacher = rows("first", self.first), rows("teacher", self.teacher)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "teacher", teacher)
        tau = nearest(first, teacher) if self.tau is None else np.asarray(self.tau, int)
        if tau.shape != (len(first),) or tau.min() < 0 or tau.max() >= len(teacher):
            raise BadInput(f"Step: tau has shape {tau.shape}; pass one index of a teacher for each student.")
        object.__setattr__(self, "tau", tau)

    # The state -----------------------------------------------------------------------------------------------------

    @cached_property
    def norm(self) -> float:
        """nv, the norm of the teachers."""
        return float(np.mean(np.linalg.norm(self.teacher, axis=1)))

    @cached_property
    def axes(self) -> Numbers:
        """e_l = v_l/|v_l|."""
        return self.teacher / np.linalg.norm(self.teacher, axis=1, keepdims=True)

    @cached_property
    def lengths(self) -> Numbers:
        """|w_i|."""
        return np.linalg.norm(self.first, axis=1)

    @cached_property
    def theta(self) -> Numbers:
        """theta_il, (m, k)."""
        return angles_between(self.first, self.teacher)

    @cached_property
    def phi(self) -> Numbers:
        """phi_ij, (m, m)."""
        return angles_between(self.first, self.first)

    @cached_property
    def theta_own(self) -> Numbers:
        """theta_i*."""
        return self.theta[self._own]

    @cached_property
    def h(self) -> Numbers:
        """h_il = <w_i, e_l>, (m, k)."""
        return self.first @ self.axes.T

    @cached_property
    def h_own(self) -> Numbers:
        """h_i*."""
        return self.h[self._own]

    @cached_property
    def member(self) -> Numbers:
        """1[tau_i = l], (m, k)."""
        return np.eye(len(self.teacher))[self.tau]

    @property
    def _own(self) -> tuple[Numbers, Numbers]:
        return np.arange(len(self.first)), self.tau  # type: ignore[return-value]

    @cached_property
    def residuals(self) -> Numbers:
        """r_l = sum_{tau_i = l} w_i - v_l, (k, n)."""
        return self.member.T @ self.first - self.teacher

    @cached_property
    def H(self) -> Numbers:
        """H_l = nv - sum_{tau_i = l} h_i*."""
        return self.norm - self.member.T @ self.h_own

    @cached_property
    def gradient(self) -> Numbers:
        """The gradient (m, n) by Eq. 15."""
        return gradient(self.first, self.teacher)

    @cached_property
    def after(self) -> "Step":
        """The state after the step, with the same tau."""
        return Step(self.first - self.eta * self.gradient, self.teacher, self.eta, self.tau)

    # Eq. 37 --------------------------------------------------------------------------------------------------------

    @cached_property
    def rise(self) -> Numbers:
        """h_i*(t+1) - h_i*(t), from the gradient."""
        return -self.eta * np.sum(self.gradient * self.axes[self.tau], axis=1)

    def Q(self, *, printed: bool = False) -> Numbers:
        """Q_i of Eq. 37, with the sign of theta_i* nv corrected; as `printed`, with + theta_i* nv."""
        sign = 1.0 if printed else -1.0
        turn = self.eta / (2 * np.pi)
        other = 1 - self.member  # 1[tau_i != l]
        same = self.member @ self.member.T  # 1[tau_i = tau_j]
        cos, sin = np.cos(self.theta_own), np.sin(self.theta)
        to_mine = self.h[:, self.tau].T  # h_{j tau_i} at [i, j]
        cos_own, sin_across = np.cos(self.theta_own), sin[:, self.tau]  # cos theta_jl and sin theta_il with l = tau_j
        leak = -self.eta / 2 * np.sum((1 - same) * to_mine, axis=1)
        coupling = turn * np.sum(other * (cos[:, None] * sin - 1) * self.H, axis=1)
        gap = np.sin(self.phi) - cos_own[None, :] * sin_across
        across = -turn * cos * np.sum((1 - same) * self.lengths * gap, axis=1)
        within = np.sum(same * self.lengths * np.sin(self.phi), axis=1) - self.norm * np.sin(self.theta_own)
        tilt = np.sum(self.phi * to_mine, axis=1) + sign * self.theta_own * self.norm
        return leak + coupling + across - turn * cos * within + turn * tilt

    @cached_property
    def predicted_rise(self) -> Numbers:
        """The right side of Eq. 37: eta/2 H_{tau_i} + eta/(2 pi) sum_{l != tau_i} H_l + Q_i."""
        return self._rise_of(self.Q())

    @cached_property
    def printed_rise(self) -> Numbers:
        """The same with the printed Q_i."""
        return self._rise_of(self.Q(printed=True))

    def _rise_of(self, q: Numbers) -> Numbers:
        own = self.H[self.tau]
        return self.eta / 2 * own + self.eta / (2 * np.pi) * (self.H.sum() - own) + q

    @cached_property
    def predicted_H(self) -> Numbers:
        """H(t+1) = (I - eta/(2 pi) Diag(m_l)(1 1^T + (pi - 1) I)) H - Qvec; the paper prints + Qvec."""
        return linear_matrix(self.member.sum(0), self.eta) @ self.H - self.member.T @ self.Q()

    @cached_property
    def printed_H(self) -> Numbers:
        """The recursion with the printed sign of Qvec (and the corrected Q_i)."""
        return linear_matrix(self.member.sum(0), self.eta) @ self.H + self.member.T @ self.Q()

    # Eq. 24 --------------------------------------------------------------------------------------------------------

    @cached_property
    def cosine_rise(self) -> Numbers:
        """cos theta_i*(t+1) - cos theta_i*(t), without cancellation: -2 sin(mean) sin(half difference)."""
        new, old = self.after.theta_own, self.theta_own
        return -2 * np.sin((new + old) / 2) * np.sin((new - old) / 2)

    @cached_property
    def I2(self) -> Numbers:
        """The first-order term of Eq. 24, by angles (Eq. 25)."""
        cos, own = np.cos(self.theta_own), self.theta_own
        to_mine = np.cos(self.theta)[:, self.tau].T  # cos theta_{j tau_i} at [i, j]
        students = np.sum(self.lengths * (np.pi - self.phi) * (cos[:, None] * np.cos(self.phi) - to_mine), axis=1)
        others = (1 - self.member) * (np.pi - self.theta) * cos[:, None] * np.cos(self.theta)
        teachers = self.norm * ((np.pi - own) * np.sin(own) ** 2 - others.sum(1))
        return self.eta / (2 * np.pi * self.after.lengths) * (students + teachers)

    @cached_property
    def I3(self) -> Numbers:
        """The second-order term of Eq. 24."""
        new, old = self.after.lengths, self.lengths
        along = np.sum(self.first * self.gradient, axis=1) / old
        square = np.sum(self.gradient**2, axis=1)
        return self.eta * np.cos(self.theta_own) / new * (along * (old - new) - self.eta * square) / (new + old)

    # Lemma 4 and Eq. 51 --------------------------------------------------------------------------------------------

    @cached_property
    def targets(self) -> Numbers:
        """w_i^* = (h_i* / sum_{tau_j = tau_i} h_j*) v_{tau_i}, (m, n) (Lemma 4)."""
        total = self.member.T @ self.h_own
        return (self.h_own / total[self.tau])[:, None] * self.teacher[self.tau]

    @cached_property
    def descent_inner(self) -> float:
        """sum_i <grad_i, w_i - w_i^*>, at least L near the minimum and 3 L in the limit (Lemma 4)."""
        return float(np.sum(self.gradient * (self.first - self.targets)))

    def split(self, inputs: ArrayLike) -> tuple[Numbers, Numbers]:
        """R1(x) >= 0 and R2(x), whose sum is f - f*, at each input (rows) (Eq. 51)."""
        inputs = np.asarray(inputs, float)
        drive, open_ = inputs @ self.first.T, (inputs @ self.teacher.T > 0).astype(float)
        first = np.sum(drive * ((drive > 0) - open_[:, self.tau]), axis=1)
        return first, np.sum((inputs @ self.residuals.T) * open_, axis=1)

    @cached_property
    def split_moments(self) -> tuple[float, float, float]:
        """E R1^2, E R2^2 and E R1 R2 exactly; their sum with the last one twice is 2 L.

        R2 is linear on half-spaces of the teachers, so its products with itself and with R are kernels. Plain sums:
        below a loss of 1e-14 they are rounding noise.
        """
        second = float(np.einsum("an,abnp,bp->", self.residuals, mixed(self.teacher, self.teacher), self.residuals))
        whole = slope(self.teacher, self.first).sum(1) - slope(self.teacher, self.teacher).sum(1)
        both = float(np.sum(self.residuals * whole))  # E R R2
        return 2 * loss(self.first, self.teacher) - 2 * both + second, second, both - second


def linear_matrix(counts: ArrayLike, eta: float) -> Numbers:
    """I - eta/(2 pi) Diag(m_l)(1 1^T + (pi - 1) I): the step of H when all students are aligned (Appendix E).

    ```python
    >>> from tutelage.papers.relu_teachers.steps import linear_matrix
    >>> linear_matrix([4], 0.01).tolist()
    [[0.98]]

    ```
    """
    return np.eye(len(np.asarray(counts))) - eta * linear_rates(counts)


def linear_rates(counts: ArrayLike) -> Numbers:
    """The matrix of H' = -M H, M = Diag(m_l)(1 1^T + (pi - 1) I)/(2 pi), for aligned students (Appendix E)."""
    counts = np.asarray(counts, float)
    size = len(counts)
    return counts[:, None] * (np.ones((size, size)) + (np.pi - 1) * np.eye(size)) / (2 * np.pi)
