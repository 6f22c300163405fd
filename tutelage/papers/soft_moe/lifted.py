"""The same flow in the frame, by the library, and in all `dim` coordinates, by another integrator."""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from tutelage import flow
from tutelage.dynamics import Record
from tutelage.oracle import MixtureOracle
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.exact import gradient_of
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.single import WATCHED
from tutelage.problem import Numbers, Weights
from tutelage.trajectory import Run


@dataclass(frozen=True)
class Lifted:
    """A small problem, m = 2 and m* = 1 in dim 60, to a time at which it has learned something."""

    settings: SoftMoeSettings = SoftMoeSettings(students=2, teachers=1, dim=60)
    until: float = 12.0

    @cached_property
    def frame(self) -> Run:
        """In the frame of 6 coordinates, followed closely; by the program that `single` has compiled."""
        problem = recipe.problem(self.settings)
        return flow(problem, until=self.until, rtol=1e-11, record=Record([0.0, self.until], crossings=WATCHED))

    @cached_property
    def drift(self) -> float:
        """The largest relative change of a norm of a router or expert."""
        norms = (np.linalg.norm(np.asarray(w.first)[0], axis=1) for w in (self.frame.start, self.frame.final))
        first, last = norms
        return float(np.max(np.abs(last / first - 1)))

    @cached_property
    def whole(self) -> tuple[Numbers, Numbers]:
        """First and last vectors, of the students and then of the teachers, in all coordinates."""
        turn = np.linalg.qr(np.random.default_rng(0).standard_normal((self.settings.dim,) * 2))[0]
        size = self.frame.start.first.shape[-1]
        start, target = (
            np.asarray(rows) @ turn[:size] for rows in (self.frame.start.first[0], self.frame.teacher.first)
        )
        oracle = MixtureOracle(
            self.frame.oracle.student,  # type: ignore[attr-defined]
            self.frame.oracle.teacher,  # type: ignore[attr-defined]
            Weights(jnp.asarray(target), self.frame.teacher.second),
        )
        second = jnp.ones((self.settings.students, 1))

        def field(_: float, flat: Numbers) -> Numbers:
            rows = jnp.asarray(flat.reshape(start.shape))
            return -np.asarray(gradient_of(oracle, Weights(rows, second))).ravel()

        done = solve_ivp(field, (0, self.until), start.ravel(), method="DOP853", rtol=1e-10, atol=1e-12)
        return np.concatenate([start, target]), np.concatenate([done.y[:, -1].reshape(start.shape), target])

    @cached_property
    def gap(self) -> float:
        """The largest difference of an inner product at the end, between the two routes."""
        frame = np.concatenate([self.frame.final.first[0], self.frame.teacher.first])
        whole = self.whole[1]
        return float(np.max(np.abs(frame @ frame.T - whole @ whole.T)))

    @cached_property
    def escaped(self) -> float:
        """How far the whole flow has left the span of its first vectors and the teachers."""
        begin, end = self.whole
        basis = np.linalg.qr(begin.T)[0]
        return float(np.max(np.abs(end - end @ basis @ basis.T)))
