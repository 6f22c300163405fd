"""What the claims look at: a few shared runs, each made once, when first asked for.

All teachers have norm 1: trajectories for other norms are rescalings (the claim SCALE). Flows choose their solver: the
stiff one, from a start of 1e-29, takes a million steps where an angle is below 1e-7 and rounding leaves it no Jacobian.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage import descend, flow
from tutelage.dynamics import Record, Stop
from tutelage.papers.evidence import PlainEvidence
from tutelage.papers.relu_teachers import batch, kernel, near, recipe, section4
from tutelage.papers.relu_teachers.chain import (
    EPS2_GROWTH,
    first_phase_time,
    log10_eps1,
    log10_eta_first,
    log10_sigma,
    second_phase_time,
)
from tutelage.papers.relu_teachers.hessian import hessian
from tutelage.papers.relu_teachers.late import Chain
from tutelage.papers.relu_teachers.phases import NEEDED
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.papers.relu_teachers.slow import slow_state
from tutelage.papers.relu_teachers.steps import Step
from tutelage.papers.relu_teachers.track import NORM, Track
from tutelage.problem import Numbers
from tutelage.trajectory import Run

STUDENTS = {1: 3, 2: 6, 3: 6, 4: 8}
"""Students by number of teachers: groups of three, of two for more."""

EPS1, EPS2 = 0.1, 1e-3
EPS2_SMALL = 1e-30
"""So small that Eq. 9 asks for a loss below the plateau of two teachers."""
# Starts by their length sigma sqrt(d), so that settings.dim does not change what they are.
SMALL = 1e-5
LONG = 1e-2  # of long runs: angles that start smaller need longer than s = 1e6 to forget it


ENOUGH = 1e-12
GROUPS = (2, 3, 4, 6, 8, 12)  # students of a group whose constant is looked at


@dataclass(frozen=True)
class Sizes:
    """How much is run: `QUICK` for a minute, `FULL` for the sizes that a report should quote."""

    literal: tuple[tuple[int, float], ...]
    sweep: tuple[float, ...]
    swept: tuple[int, ...]
    until: float
    mono_teachers: tuple[int, ...]
    mono_steps: int
    loads: tuple[float, ...]
    starts: int
    start_dims: tuple[int, ...]
    networks: int
    widths: tuple[int, ...]
    path_steps: int
    near: int
    section4: tuple[int, int, int]


# `literal` holds (k, eps1); `loads` are values of eta m; `sweep` are lengths sigma sqrt(d) of long plateaus, all taken
# with k = 2 and the ends with the k of `swept`, too; `section4` has its updates, batch and dimension. Up to 1024
# records are compiled alike: 1000 steps of which each is recorded cost no compilation of their own.
QUICK = Sizes(
    literal=((1, 0.2), (1, 0.05), (2, 0.1)), sweep=(1e-8, 1e-14, 1e-25), swept=(1,), until=1e6,
    mono_teachers=(2,), mono_steps=1000, loads=(0.6, 2.4), starts=300, start_dims=(10, 20, 50), networks=6,
    widths=(2, 3, 5, 10, 20, 40), path_steps=1000, near=3, section4=(2500, 256, 20),
)  # fmt: skip
FULL = Sizes(
    literal=((1, 0.2), (1, 0.05), (2, 0.1), (3, 0.15)), sweep=(1e-6, 1e-8, 1e-10, 1e-15, 1e-20, 1e-25),
    swept=(1, 3, 4), until=1e8,
    mono_teachers=(1, 2, 4), mono_steps=1000, loads=(0.6, 1.2, 2.4), starts=3000, start_dims=(5, 10, 20, 50),
    networks=40, widths=(2, 3, 4, 5, 6, 8, 10, 20, 40), path_steps=3000, near=25, section4=(5000, 512, 100),
)  # fmt: skip


class ByDimension(dict[int, Numbers]):
    """Samples by dimension, each made when first asked for."""

    def __init__(self, make: Callable[[int], Numbers]):
        super().__init__()
        self.make = make

    def __missing__(self, dim: int) -> Numbers:
        self[dim] = self.make(dim)
        return self[dim]


@dataclass(frozen=True)
class Lifted:
    """The same descent in all `dim` coordinates and in the frame: start (m, d), teacher (k, d), ends."""

    start: Numbers
    teacher: Numbers
    final: Numbers
    frame_final: Numbers
    frame_teacher: Numbers


@dataclass(frozen=True)
class Tilted:
    """A group with one student at angle `theta` from the teacher (the others so that the sum is right), and its loss.

    With `theta` 0 all students are on the teacher, but too short.
    """

    students: int
    theta: float
    loss: float


@dataclass(frozen=True)
class Exponential:
    """A descent with as many students as teachers: losses at some steps, and the lowest curvature of the minimum."""

    steps: NDArray[np.integer]
    loss: Numbers
    step: float
    curvature: float


class Evidence(PlainEvidence):
    """Runs and samples behind the claims, made when first asked for.

    `settings.dim` is the dimension of the runs; scales, steps and numbers of units are those of the claims.

    ```python
    >>> from tutelage.papers.relu_teachers.evidence import Evidence
    >>> evidence = Evidence(size="quick", seeds=2)
    >>> evidence.sizes.starts, evidence.starts[20].shape
    (300, (300, 6, 8))

    ```
    """

    defaults = ReluTeachersSettings
    stream = 2025
    settings: ReluTeachersSettings

    @cached_property
    def sizes(self) -> Sizes:
        return FULL if self.full else QUICK

    # Values at single networks.

    def losses(self, first: Numbers, teacher: Numbers) -> Numbers:
        """Losses of networks (N, m, n) by the library's oracle."""
        return np.asarray(batch.losses(jnp.asarray(teacher), jnp.asarray(first)))

    def gradients(self, first: Numbers, teacher: Numbers) -> Numbers:
        """Their gradients, (N, m, n)."""
        return np.asarray(batch.gradients(jnp.asarray(teacher), jnp.asarray(first)))

    def hessians(self, first: Numbers, teacher: Numbers) -> Numbers:
        """Their Hessians, (N, m n, m n)."""
        return np.asarray(batch.hessians(jnp.asarray(teacher), jnp.asarray(first)))

    def step(self, first: Numbers, teacher: Numbers, eta: float, tau: NDArray[np.intp] | None = None) -> Step:
        """One step of descent with the quantities of the proof."""
        return Step(first, teacher, eta, tau)

    def networks(self, tag: int, students: int = 5, teachers: int = 3, columns: int = 8) -> tuple[Numbers, Numbers]:
        """Random students (N, m, n), and orthogonal teachers of norm 1 on the first axes, (k, n)."""
        first = self.random(tag).standard_normal((self.sizes.networks, students, columns))
        return 0.5 * first, np.eye(teachers, columns)

    def kernels(self, angles: Numbers) -> Numbers:
        """g(a, b) of unit vectors at these angles."""
        units = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(-1, 2)
        return kernel.kernel(np.eye(1, 2), units).reshape(angles.shape)

    # Flows.

    def start(self, teachers: int, length: float = SMALL, **values: Any) -> ReluTeachersSettings:
        """Settings of a run with teachers of norm 1; weak recovery at 45 degrees unless told otherwise."""
        dim = max(self.settings.dim, teachers + 1)
        usual = {"dim": dim, "teachers": teachers, "students": STUDENTS[teachers], "scale": length / math.sqrt(dim)}
        usual["zeta"] = most_other(EPS1, teachers)
        return ReluTeachersSettings(**{**usual, "norm": NORM, "init": "weak", **values})

    def flow(self, chosen: ReluTeachersSettings, times: Numbers, eps1: float = EPS1) -> Track:
        """The flow from `seeds` starts, recorded at `times`; it is not called converged at a saddle."""
        run = flow(
            recipe.problem(chosen),
            until=float(times[-1]),
            seeds=self.seeds,
            rtol=1e-7,
            record=Record(times, observables=NEEDED, weights=True),
            stop=Stop(gradient=0.0),
        )
        return _track(run, chosen, eps1)

    @cached_property
    def literal(self) -> dict[tuple[int, float], Track]:
        """Phase 1 with the literal constants of Theorem 6, to T1, by (k, eps1)."""
        return {(k, eps1): self._literal(k, eps1) for k, eps1 in self.sizes.literal}

    def _literal(self, teachers: int, eps1: float) -> Track:
        dim, students = max(self.settings.dim, teachers + 1), STUDENTS[teachers]
        sigma = 10 ** log10_sigma(math.log10(eps1), teachers, students, dim)
        chosen = self.start(teachers, scale=sigma, angle=math.pi / 6, zeta=most_other(eps1, teachers))
        end = first_phase_time(eps1, teachers, students)
        early = np.geomspace(0.01 * sigma * math.sqrt(dim), end / 50, 60)
        return self.flow(chosen, np.concatenate([early, np.linspace(end / 50, end, 20)]), eps1)

    @cached_property
    def weak(self) -> dict[int, Track]:
        """Weak recovery with sigma sqrt(d) = 0.01, from the start to the end of the local phase, by k."""
        return {k: self.flow(self.start(k, LONG), self._long_times(k)) for k in (1, 2)}

    @cached_property
    def gaussian(self) -> Track:
        """A Gaussian start with k = 2: no weak recovery."""
        return self.flow(self.start(2, LONG, init="gaussian"), self._long_times(2))

    @cached_property
    def uneven(self) -> Track:
        """Weak recovery of k = 2 with one student on one side and five on the other, as Assumption 3 allows."""
        times = np.concatenate([np.geomspace(1e-5, 0.05, 20), np.linspace(0.1, 30, 60), np.geomspace(31, 1e4, 20)])
        return self.flow(self.start(2, LONG, counts=(1, 5)), times)

    def _long_times(self, teachers: int) -> Numbers:
        """Dense in s to 10, where H and the plateau are seen, then 32 times per decade."""
        decades = round(32 * (math.log10(self.sizes.until) - 1))
        small, late = np.geomspace(1e-7, 0.05, 25), np.geomspace(10, self.sizes.until, decades + 1)[1:]
        return np.concatenate([small, np.linspace(0.1, 10, 100), clock(teachers), late])

    @cached_property
    def sweep(self) -> dict[float, Track]:
        """k = 2, weak recovery with smaller and smaller sigma sqrt(d): long plateaus."""
        return {length: self._swept(2, length) for length in self.sizes.sweep}

    @cached_property
    def swept(self) -> dict[tuple[int, float], Track]:
        """The largest and the smallest sigma sqrt(d) of `sweep` with other numbers of teachers, by (k, length)."""
        ends = self.sizes.sweep[0], self.sizes.sweep[-1]
        return {(k, length): self._swept(k, length) for k in self.sizes.swept for length in ends}

    def _swept(self, teachers: int, length: float) -> Track:
        """Dense while students part, which takes to s = 17 for the smallest start, then to s = 1e4."""
        clocks = *clock(teachers), clock(teachers, EPS2_SMALL)[1]
        early, late = np.geomspace(0.1 * length, 0.05, 60), np.geomspace(20.5, 1e4, 80)
        return self.flow(
            self.start(teachers, length), np.unique(np.concatenate([early, np.linspace(0.05, 20, 400), clocks, late]))
        )

    @property
    def of_small_starts(self) -> list[Track]:
        """All runs from weak recovery with small sigma and groups of one size, more than one student each."""
        return [*self.sweep.values(), *self.swept.values()]

    @cached_property
    def aligned(self) -> dict[int, Track]:
        """Phase 2 from angles 4 eps1 and no component along other teachers, eps1 from eps2 = 1e-3, by k."""
        found = {}
        for k in (1, 2):
            eps1 = 10 ** log10_eps1(math.log10(EPS2), k, STUDENTS[k])
            end = second_phase_time(eps1, EPS2, k, STUDENTS[k])
            chosen = self.start(k, angle=4 * eps1, zeta=0.0)
            times = np.concatenate([np.geomspace(1e-8, 1e-2, 20), np.linspace(1e-2, end, 30)])
            found[k] = self.flow(chosen, times, eps1)
        return found

    # What is known in closed form of the plateau.

    @cached_property
    def mean_rates(self) -> dict[int, float]:
        """d h_i*/ds on the mean direction, by the number of teachers."""
        return {k: Plateau(k, k, NORM).projection_rate for k in (3, 4, 8)}

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """Appendix A for several teachers."""
        return tuple(Chain(k, m) for k, m in ((2, 6), (3, 6), (4, 8)))

    # Descents.

    def descent(
        self, chosen: ReluTeachersSettings, step: float, steps: int, stride: int = 1, eps1: float = EPS1
    ) -> Track:
        """Gradient descent from `seeds` starts, every `stride`-th step recorded."""
        run = descend(
            recipe.problem(chosen),
            step=step,
            steps=steps,
            seeds=self.seeds,
            record=Record(np.arange(0, steps + 1, stride), observables=NEEDED, weights=True),
            stop=Stop(gradient=-1.0),
        )
        return _track(run, chosen, eps1)

    @cached_property
    def literal_descent(self) -> Track:
        """The first steps of Theorem 6 for k = 2 with its literal sigma and eta; T1 is 1e28 steps away.

        Students start at 25 degrees; the angle falls to 20 and rises from there.
        """
        eps1, students, dim = 0.2, STUDENTS[2], max(self.settings.dim, 3)
        log10_scale = log10_sigma(math.log10(eps1), 2, students, dim)
        chosen = self.start(2, scale=10**log10_scale, angle=math.radians(25), zeta=most_other(eps1, 2))
        eta = 10 ** log10_eta_first(math.log10(eps1), log10_scale, 2, dim)
        return self.descent(chosen, eta, 100_000, 2000, eps1)

    @cached_property
    def parallel(self) -> dict[tuple[int, ...], Track]:
        """Students exactly on their teachers, as Phase 2 has them at best, by group sizes: to T2, eta = 0.01.

        One teacher by flow (three students), two by descent.
        """
        one, two = (second - first for first, second in (clock(1), clock(2)))
        found: dict[tuple[int, ...], Track] = {(3,): self.flow(self.start(1, angle=0.0), np.linspace(0.0, one, 60))}
        steps = math.ceil(two / 0.01)
        for counts in ((3, 3), (4, 2), (5, 1)):
            found[counts] = self.descent(self.start(2, angle=0.0, zeta=0.0, counts=counts), 0.01, steps)
        return found

    @cached_property
    def descents(self) -> dict[tuple[int, float], Track]:
        """Every step of descent from sigma sqrt(d) = 1e-5, by (k, eta m)."""
        return {
            (k, load): self.descent(self.start(k), load / STUDENTS[k], self.sizes.mono_steps)
            for k in self.sizes.mono_teachers
            for load in self.sizes.loads
        }

    @cached_property
    def rescaled(self) -> dict[float, Track]:
        """The same descent for teachers of norm 1 and 5, sigma in proportion."""
        chosen = self.start(2, 0.1)
        settings = {nv: chosen.model_copy(update={"norm": nv, "scale": nv * chosen.scale}) for nv in (1.0, 5.0)}
        return {nv: self.descent(one, 0.1, 300) for nv, one in settings.items()}

    @cached_property
    def lifted(self) -> Lifted:
        """Descent by the paper's formula in all coordinates, turned at random, and by the library in its frame."""
        chosen, steps, eta = self.start(2, 0.2), self.sizes.path_steps, 0.1
        track = self.descent(chosen, eta, steps, stride=steps)
        turn = np.linalg.qr(self.random(6).standard_normal((chosen.dim, track.teacher.shape[1])))[0].T
        start, teacher = track.weights[0, 0] @ turn, track.teacher @ turn
        first = start.copy()
        for _ in range(steps):
            first = first - eta * kernel.gradient(first, teacher)
        return Lifted(start, teacher, first, track.weights[0, -1], track.teacher)

    @cached_property
    def single(self) -> Exponential:
        """m = k = 2: descent by the paper's formula, from weak recovery."""
        begun = recipe.problem(self.start(2, 0.1, students=2)).begin(seed=0)
        first, teacher, eta = np.asarray(begun.student.first), np.asarray(begun.teacher.first), 0.2
        states, every = [], 10
        for number in range(1600):
            if number % every == 0:
                states.append(first)
            first = first - eta * kernel.gradient(first, teacher)
        low = float(np.linalg.eigvalsh(hessian(teacher, teacher))[0])
        return Exponential(every * np.arange(len(states)), self.losses(np.stack(states), teacher), eta, low)

    @cached_property
    def curvatures(self) -> dict[tuple[int, int], float]:
        """The largest Hessian eigenvalue at the balanced aligned minimum, by (k, m)."""
        found = {}
        for k, m in ((k, k * n) for k in (1, 2, 4) for n in (1, 2, 5, 10)):
            teacher = np.eye(k)
            found[k, m] = float(np.linalg.eigvalsh(hessian(np.repeat(teacher, m // k, 0) * k / m, teacher))[-1])
        return found

    @cached_property
    def trained(self) -> dict[section4.Case, xr.Dataset]:
        """The runs of Section 4 from weak recovery; quick ones have half the updates, twice as long, in a dimension
        in which the noise of a batch is that of the paper's settings."""
        steps, batch, dim = self.sizes.section4
        settings = self.settings.model_copy(update={"steps": steps, "batch": batch, "dim": dim})
        found = {}
        for case in dict.fromkeys((*section4.FIGURE_2, *section4.FIGURE_3)):
            taken = case if self.full else case._replace(eta=2 * case.eta)
            run = section4.trained(settings, taken, "weak", 5 if self.full else 8)
            found[case] = section4.traces(run, taken, settings.norm)
        return found

    # Starts and constructed states.

    @cached_property
    def starts(self) -> ByDimension:
        """Gaussian starts (N, 6, n) of six students of two teachers, sigma = 1, by dimension, when asked for."""
        return ByDimension(self._starts)

    def _starts(self, dim: int) -> Numbers:
        problem = recipe.problem(ReluTeachersSettings(dim=dim, teachers=2, students=6, norm=NORM, scale=1.0))
        return np.stack([problem.begin(seed).student.first for seed in range(self.sizes.starts)])

    @cached_property
    def tilted(self) -> tuple[Tilted, ...]:
        """States of one teacher for Lemma 5: one student off, by number of students, and one state with theta = 0."""
        theta, found = 0.02, []
        for m in self.sizes.widths:
            slopes = np.full(m, -math.tan(theta) / (m - 1))
            slopes[0] = math.tan(theta)
            first = np.stack([np.ones(m), slopes], axis=1) / m
            found.append(Tilted(m, theta, kernel.loss(first, np.eye(1, 2))))
        short = kernel.loss(0.45 * np.eye(1, 2).repeat(2, 0), np.eye(1, 2))
        return (*found, Tilted(2, 0.0, short))

    @cached_property
    def near_states(self) -> tuple[tuple[float, Step], ...]:
        """States near a minimum with any angles, shares and sums, in the box of Lemma 5, and their losses.

        Losses are plain sums of terms of order one: from `ENOUGH` on relative errors of 1e-3 are left.
        """
        drawn = (
            (kernel.loss(each.first, each.teacher), each) for each in near.states(self.random(21), self.sizes.near)
        )
        return tuple((loss, step) for loss, step in drawn if loss > ENOUGH)

    @cached_property
    def aligned_states(self) -> tuple[tuple[float, Step], ...]:
        """States as phase 2 is said to have them, each with its eps2: angles up to it, and heights within Eq. 34."""
        return tuple(near.aligned(self.random(22), self.sizes.near, 1e-3))

    @cached_property
    def boxes(self) -> tuple[near.Box, ...]:
        """States anywhere in the box of Lemma 7."""
        return tuple(near.boxes(self.random(23), self.sizes.near))

    @cached_property
    def box_hessians(self) -> tuple[Numbers, ...]:
        """Their Hessians by the corrected blocks (HESS:corrected)."""
        return tuple(hessian(box.first, box.teacher) for box in self.boxes)

    @cached_property
    def shares(self) -> dict[int, float]:
        """C(n) of n equal students, from the state that a random start reaches, by n."""
        rows = {n: self.random(24 + n).standard_normal((n, n - 1)) for n in GROUPS}
        return {n: slow_state(np.ones(n), start).constant for n, start in rows.items()}


def most_other(eps1: float, teachers: int) -> float:
    """The zeta of Theorem 6, eps1^2/(10 k), but for rounding: how far angles to other teachers are from pi/2."""
    return (1 - 1e-9) * eps1**2 / (10 * teachers)


def clock(teachers: int, eps2: float = EPS2_GROWTH) -> tuple[float, float]:
    """T1 and T2 in flow time for eps1 = 0.1 and, unless told otherwise, the largest eps2 of Lemma 3."""
    students = STUDENTS[teachers]
    first = first_phase_time(EPS1, teachers, students)
    return first, second_phase_time(EPS1, eps2, teachers, students)


def _track(run: Run, chosen: ReluTeachersSettings, eps1: float) -> Track:
    return Track(run.dataset, np.asarray(run.teacher.first), chosen.dim, chosen.scale, eps1)
