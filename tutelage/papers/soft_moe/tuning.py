"""Fine-tuning (Section 5.2): gradient flow from the experts that pruning kept, and how fast it comes to the teacher."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput, go_on
from tutelage.analysis import Line, fitted_line
from tutelage.dynamics import Flow, Record, Snapshot, Stop
from tutelage.oracle import units
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.local import tuning_rate
from tutelage.problem import Gaussian, Mixture, Problem, TwoLayer, Weights, of_kind
from tutelage.trajectory import Handover, Observable, Run, Stage

Values = NDArray[np.float64]

WINDOW = (10.0, 20.0)
UNTIL, RECORDS = 40.0, 161
CANCELLED = 1e-12
"""Below this the loss, a difference of numbers of order 1, has lost its digits; its quadratic form has not."""


def _gap(view: Snapshot) -> Float[Array, "row frame"]:
    """`thetabar - theta*` by differences of vectors: `1 - cosine` would lose half of the digits."""
    return jnp.concatenate(units(view.weights.first)) - jnp.concatenate(units(view.teacher.first))


def _distance(view: Snapshot) -> Float[Array, " student"]:
    return sum(jnp.split(jnp.sum(_gap(view) ** 2, axis=1), 2), jnp.zeros(()))


def _quadratic(view: Snapshot) -> Float[Array, ""]:
    """`1/2 d^T H d` at the teacher, with `d = thetabar - theta*`."""
    gap = Weights(_gap(view), jnp.zeros_like(view.teacher.second))
    _, bent = jax.jvp(view.oracle.gradient, (view.teacher,), (gap,))
    return 0.5 * jnp.sum(gap.first * bent.first)


OBSERVE = (
    Observable("distance", _distance, ("student",), "squared distance of an expert's and its router's directions"),
    Observable("loss_quadratic", _quadratic, (), "loss by its curvature at the teacher", "squared output"),
)


@dataclass(frozen=True)
class Tuning:
    """A fine-tuning run: `students[j]` is the expert, by its number before pruning, that has learned teacher j."""

    run: Run
    students: tuple[int, ...]
    constants: Constants

    @property
    def dim(self) -> int:
        """The input dimension."""
        return self.run.problem.inputs.dim

    @property
    def time(self) -> Values:
        return self.run.time.values

    @property
    def distances(self) -> Values:
        """`||vbar_i - v*_i||^2 + ||wbar_i - w*_i||^2`, (student, time)."""
        return self.run.distance.transpose("seed", "student", "time").values[0]

    @property
    def distance(self) -> Values:
        """`||thetabar - theta*||^2`."""
        return self.distances.sum(0)

    @property
    def loss(self) -> Values:
        """The loss, by its curvature where the plain sum has cancelled."""
        plain, bent = self.run.loss.values[0], self.run.loss_quadratic.values[0]
        return np.where(plain < CANCELLED, bent, plain)

    @cached_property
    def norms(self) -> tuple[Values, Values]:
        """`a_i = |v_i|` and `b_i = |w_i|`, which stay as they are."""
        return self.run.norm_router.values[0, 0], self.run.norm_expert.values[0, 0]

    @property
    def sharp(self) -> float:
        """The rate at which the squared distance falls in the end: `2 C_S1 / max_i a_i^2`, from the Hessian."""
        return tuning_rate(self.constants, *self.norms)

    @property
    def sharp_each(self) -> Values:
        """The same of each expert: near the teacher they do not feel each other."""
        return np.array([tuning_rate(self.constants, a, b) for a, b in zip(*self.norms, strict=True)])

    @cached_property
    def fit(self) -> Line:
        """The line through the logarithm of the squared distance, on the window; its slope is minus the rate."""
        return self._line(self.distance)

    @cached_property
    def fits(self) -> tuple[Line, ...]:
        """The same of each expert."""
        return tuple(self._line(values) for values in self.distances)

    def _line(self, values: Values) -> Line:
        inside = (self.time >= WINDOW[0]) & (self.time <= WINDOW[1])
        return fitted_line(self.time[inside], np.log(values[inside]))

    def within(self, close: float) -> "Stretch":
        """From the first record at which every expert and router is within `close` of its teacher's."""
        far = np.sqrt(self.distances.max(0))
        first = int(np.argmax(far <= close)) if np.any(far <= close) else 0
        return Stretch(self.time[first:], self.distances[:, first:])

    @property
    def whole(self) -> "Stretch":
        """All of the run."""
        return Stretch(self.time, self.distances)


@dataclass(frozen=True)
class Stretch:
    """Squared distances (student, time) on a stretch of a run."""

    time: Values
    distances: Values

    @property
    def distance(self) -> Values:
        """`||thetabar - theta*||^2`."""
        return self.distances.sum(0)

    @property
    def kappa(self) -> float:
        """The largest kappa for which the bound of Theorem 3, `exp(-kappa t / 2)`, holds all along."""
        fallen = np.log(self.distance[0] / self.distance[1:])
        return 2 * float(np.min(fallen / (self.time[1:] - self.time[0])))

    @property
    def rise(self) -> float:
        """The largest factor of the squared distance from one record to the next: below 1 if it only falls."""
        return float(np.max(self.distance[1:] / self.distance[:-1]))


def tune(learned: Run, kept: Sequence[int], *, seed: int | None = None, until: float = UNTIL) -> Tuning:
    """Flow again from the kept experts of the end of a run, with the norms that they have (Section 5.2)."""
    pruned = Pruned(tuple(kept), 0 if seed is None else list(learned.dataset["seed"].values).index(seed))
    record = Record(np.linspace(0, until, RECORDS), own=OBSERVE)
    # The distance shrinks by many decades: far smaller errors than a usual run's are asked for, and cheap at this size.
    run = go_on(learned, Stage("tune", Flow(until, rtol=1e-10), pruned, record, Stop(gradient=0)))
    learner = of_kind(learned.problem, Problem, "tune").student
    assert isinstance(learner, Mixture)
    return Tuning(run, pruned.students(learned.handover), Constants.of(learner.hidden.gate, learner.hidden.degree))


@dataclass(frozen=True)
class Pruned:
    """What changes between learning and fine-tuning: one seed goes on, with the kept experts only."""

    kept: tuple[int, ...]
    which: int

    def __call__(self, handover: Handover) -> Handover:
        weights, teacher = self._ends(handover)
        chosen = restart(handover.problem, weights, teacher, self.students(handover))
        return handover.changed(problem=chosen, start=None, seeds=(0,))

    def students(self, handover: Handover) -> tuple[int, ...]:
        """The kept experts in the order of their teachers."""
        return _in_order(*self._ends(handover), self.kept)

    def _ends(self, handover: Handover) -> tuple[Weights, Weights]:
        assert handover.start is not None
        weights = jax.tree.map(lambda leaf: np.asarray(leaf)[self.which], handover.start.student)
        return weights, handover.start.teacher


def restart(problem: Any, weights: Weights, teacher: Weights, students: Sequence[int]) -> Problem:
    """The problem with these students only, which start where they are; all vectors in frame coordinates."""
    kept = list(students)
    routers, experts = np.split(np.asarray(weights.first), 2)
    taught_routers, taught_experts = np.split(np.asarray(teacher.first), 2)
    student = _mixture(problem.student, routers[kept], experts[kept], np.asarray(weights.second)[kept])
    taught = _mixture(problem.teacher, taught_routers, taught_experts, teacher.second)
    return Problem(Gaussian(problem.inputs.dim), taught, student)


def _mixture(like: TwoLayer | Mixture, routers: Values, experts: Values, second: ArrayLike) -> Mixture:
    assert isinstance(like, Mixture)
    hidden = like.hidden
    return Mixture(
        hidden.gate, degree=hidden.degree, routers=routers, experts=experts, second=second, trains=like.trains
    )


def _in_order(weights: Weights, teacher: Weights, kept: Sequence[int]) -> tuple[int, ...]:
    """The kept experts, each at the place of the teacher that it is nearest to."""
    overlap = np.asarray(units(jnp.asarray(weights.first)).expert @ units(teacher.first).expert.T)[list(kept)]
    found = np.argmax(overlap, axis=0)
    if len(kept) != overlap.shape[1] or len(set(found)) != len(kept):
        raise BadInput(
            f"tune: {len(kept)} experts were kept for {overlap.shape[1]} teachers, but one for each was expected; "
            "prune at another time, or with order=2."
        )
    return tuple(int(kept[place]) for place in found)
