"""The exact reduction to two variables: balanced groups of identical students.

Each of `k` groups has `n = m/k` students with component alpha on their own teacher and beta on every other one, and
nothing outside the span of the teachers. Flow and descent keep this form, so a plane shows the whole story: growth
along the mean direction, the saddle, and the minimum.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from tutelage import BadInput
from tutelage.papers.relu_teachers.hessian import hessian
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.problem import Numbers


@dataclass(frozen=True)
class FixedPoint:
    """A resting point of the plane; `rates` are the eigenvalues of the flow there (nan at the origin, a kink)."""

    name: str
    alpha: float
    beta: float
    loss: float
    rates: tuple[float, ...]

    @property
    def kind(self) -> str:
        """source, saddle or sink."""
        if self.name == "origin":
            return "source"  # every direction with G(u) > 0 grows, and the kernel is positive but at the opposite
        return "sink" if max(self.rates) < 0 else "saddle" if min(self.rates) < 0 else "source"


@dataclass(frozen=True)
class Symmetric:
    """The plane of symmetric states of `teachers` orthogonal teachers, each with `copies` students.

    With one teacher beta has no meaning and stays where it is.

    ```python
    >>> from tutelage.papers.relu_teachers.symmetric import Symmetric
    >>> plane = Symmetric(teachers=2, copies=3)
    >>> [(point.name, point.kind, round(point.loss, 5)) for point in plane.fixed_points]
    [('origin', 'source', 0.65915), ('plateau', 'saddle', 0.08851), ('minimum', 'sink', 0.0)]

    ```
    """

    teachers: int
    copies: int = 1
    norm: float = 1.0

    def __post_init__(self) -> None:
        if self.teachers < 1 or self.copies < 1 or not self.norm > 0:
            raise BadInput(
                f"Symmetric: {self.teachers} teachers of norm {self.norm} with {self.copies} students each; "
                "pass at least one of each and a positive norm."
            )

    @property
    def plateau(self) -> Plateau:
        """The closed forms of the saddle of this plane."""
        return Plateau(self.teachers, self.teachers * self.copies, self.norm)

    def _angles(self, alpha: Numbers, beta: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """|w|, and the angles to the own teacher, to another one, and to a student of another group."""
        k = self.teachers
        size = np.sqrt(alpha**2 + (k - 1) * beta**2)
        own = np.arctan2(math.sqrt(k - 1) * np.abs(beta), alpha)
        # alpha^2 + (k-2) beta^2, without a negative term for one teacher.
        other = np.arctan2(np.sqrt(alpha**2 + max(k - 2, 0) * beta**2), beta)
        half = np.abs(alpha - beta) / math.sqrt(2)
        between = 2 * np.arctan2(half, np.sqrt(np.maximum(size**2 - half**2, 0.0)))
        return size, own, other, between

    def field(self, alpha: ArrayLike, beta: ArrayLike) -> tuple[Numbers, Numbers]:
        """(d alpha/ds, d beta/ds) of the flow, any shape; not defined at the origin."""
        alpha, beta = np.asarray(alpha, float), np.asarray(beta, float)
        k, n, nv = self.teachers, self.copies, self.norm
        size, own, other, between = self._angles(alpha, beta)
        if np.any(size == 0):
            raise BadInput(
                "Symmetric.field: alpha and beta are both 0, where the loss has a kink; move off the origin."
            )
        radial = n * (k - 1) * size * np.sin(between) - nv * (np.sin(own) + (k - 1) * np.sin(other))
        common = (n * (alpha + (k - 1) * beta) - nv) / 2
        in_alpha = (alpha / size * radial - between * n * (k - 1) * beta + own * nv) / (2 * np.pi)
        in_beta = (beta / size * radial - between * n * (alpha + (k - 2) * beta) + other * nv) / (2 * np.pi)
        return -(common + in_alpha), -(common + in_beta) if k > 1 else np.zeros_like(common)

    def loss(self, alpha: ArrayLike, beta: ArrayLike) -> Numbers:
        """The loss of a symmetric state (Eq. 14), any shape."""
        alpha, beta = np.asarray(alpha, float), np.asarray(beta, float)
        k, n, nv = self.teachers, self.copies, self.norm
        size, own, other, between = self._angles(alpha, beta)
        students = n**2 * k * size**2 * (0.5 + (k - 1) * _shape(between))
        met = n * k * size * nv * (_shape(own) + (k - 1) * _shape(other))
        return students / 2 + self.plateau.loss_start - met

    def weights(self, alpha: float, beta: float) -> Numbers:
        """The students (m, k) of a state, in coordinates along the teachers `norm * I`."""
        rows = beta * np.ones((self.teachers, self.teachers)) + (alpha - beta) * np.eye(self.teachers)
        return np.repeat(rows, self.copies, axis=0)

    def flow(self, alpha: float, beta: float, times: ArrayLike, *, rtol: float = 1e-10) -> tuple[Numbers, Numbers]:
        """alpha and beta of the flow at increasing `times`, the start being at time 0.

        The start may be as small as 1e-40: until the norm is a hundredth of that at the end, errors are held relative
        to the start; then relative to the end, since rounding in the field makes more impossible.
        """
        times = np.asarray(times, float)
        full = self.norm / self.copies
        grown = max(full / 100, 2 * math.hypot(alpha, beta))

        def reached(_: float, state: Numbers) -> float:
            return math.hypot(*state) - grown

        reached.terminal = True  # type: ignore[attr-defined]
        small = 1e-3 * rtol * math.hypot(alpha, beta)
        first = self._integrate((0.0, float(times[-1])), [alpha, beta], rtol, small, reached)
        turn = float(first.t[-1])
        values = first.sol(np.minimum(times, turn))
        if np.any(times > turn):
            second = self._integrate((turn, float(times[-1])), first.y[:, -1], rtol, 1e-3 * rtol * full)
            values = np.where(times > turn, second.sol(np.maximum(times, turn)), values)
        return values[0], values[1]

    def _integrate(self, span: tuple[float, float], start: Any, rtol: float, atol: float, event: Any = None) -> Any:
        def rates(_: float, state: Any) -> list[float]:
            return [float(rate) for rate in self.field(*state)]

        done = solve_ivp(rates, span, start, method="LSODA", rtol=rtol, atol=atol, events=event, dense_output=True)
        if not done.success:
            raise BadInput(f"Symmetric.flow: the solver stopped ({done.message}); try a shorter time or a larger rtol.")
        return done

    def jacobian(self, alpha: float, beta: float) -> Numbers:
        """The derivative of the field, (2, 2): minus the Hessian on the directions of the plane."""
        k, n = self.teachers, self.copies
        own, other = self.weights(1.0, 0.0).ravel(), self.weights(0.0, 1.0).ravel()
        plane = np.stack([own, other])
        inner = plane @ hessian(self.weights(alpha, beta), self.norm * np.eye(k)) @ plane.T
        return -inner / np.array([[n * k], [n * k * max(k - 1, 1)]])

    @cached_property
    def fixed_points(self) -> tuple[FixedPoint, ...]:
        """The origin, the plateau and the minimum; for one teacher the last two are one."""
        origin = FixedPoint("origin", 0.0, 0.0, self.plateau.loss_start, (math.nan, math.nan))
        part = self.plateau.student_norm / math.sqrt(self.teachers)
        plateau = (self._point("plateau", part, part),) if self.teachers > 1 else ()
        return origin, *plateau, self._point("minimum", self.norm / self.copies, 0.0)

    def _point(self, name: str, alpha: float, beta: float) -> FixedPoint:
        matrix = self.jacobian(alpha, beta)
        rates = np.linalg.eigvals(matrix).real if self.teachers > 1 else matrix[0, :1]
        # At the minimum the plain sum is rounding noise: the loss is zero by construction.
        loss = 0.0 if name == "minimum" else float(self.loss(alpha, beta))
        return FixedPoint(name, alpha, beta, loss, tuple(sorted(float(rate) for rate in rates)))


def _shape(t: Numbers) -> Numbers:
    """g(a, b) / (|a||b|) as a function of the angle."""
    return (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)
