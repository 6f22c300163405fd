"""A mixture of 25 experts that learns 5, to flow time 150: the exact flow against online SGD in as many updates.

Online SGD draws a fresh batch of 4096 examples at every update, in single precision. Its step of 0.05 is about the
largest that is stable, so that this is the least it can take; its picture is the flow's only at steps below 0.002.
Times are for one unit of flow time. That both do the same is checked at a smaller size, where a short run by
SGD with small steps, from near the teachers, must come out at the flow's experts.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry
from tutelage.bench.relu import OWN, PEER, TORCH, Numbers, padded

Both = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Routers and experts."""


class Task(NamedTuple):
    teachers: int
    students: int
    dim: int
    until: float
    step: float
    batch: int
    near: bool = False

    @property
    def problem(self) -> tt.Problem:
        """Students with the law of the paper or, where noise is not to decide a race, near their teachers."""
        axes = np.eye(2 * self.teachers, self.dim)
        routers, experts = axes[: self.teachers], axes[self.teachers :]
        student = tt.Mixture(start=tt.MixtureRows("iid"), width=self.students)
        if self.near:
            moved = axes + 0.3 * np.random.default_rng(0).standard_normal(axes.shape)
            student = tt.Mixture(routers=moved[: self.teachers], experts=moved[self.teachers :])
        return tt.Problem(tt.Gaussian(self.dim), tt.Mixture(routers=routers, experts=experts), student)


FULL = Task(5, 25, 1000, 150.0, 0.05, 4096)
QUICK = FULL._replace(dim=100, until=5.0, batch=256)
SMALL = Task(2, 2, 8, 0.2, 0.002, 4096, near=True)
UPDATES = 5
"""Of SGD, when it is timed."""


@cache
def _start(task: Task) -> tuple[Both, Both]:
    """Students and teachers in all coordinates, in single precision."""
    begin = task.problem.begin(0)
    rows = [padded(each.first, task.dim).astype(np.float32) for each in (begin.student, begin.teacher)]
    student, teacher = (np.split(each, 2) for each in rows)
    return (student[0], student[1]), (teacher[0], teacher[1])


def ours(task: Task) -> Numbers:
    """Cosines (student, teacher) of the experts at the end."""
    record = tt.Record(np.linspace(0, task.until, 51), observables=("loss", "overlap_expert"))
    run = tt.flow(task.problem, until=task.until, record=record)
    return np.asarray(run.last("overlap_expert").transpose("seed", "student", "teacher").values[0])


def plain(task: Task, updates: int) -> Numbers:
    from tutelage.bench.peers import plain_jax

    student, teacher = jax.tree.map(jnp.asarray, _start(task))
    moved = plain_jax.mixture_sgd(jax.random.key(0), student, teacher, task.step, updates, task.batch)
    return _cosines(np.asarray(moved[1]), task)


def torch(task: Task, updates: int) -> Numbers:
    from tutelage.bench.peers import by_torch

    student, teacher = _start(task)
    return _cosines(by_torch.mixture_sgd(0, student, teacher, task.step, updates, task.batch)[1], task)


def _cosines(experts: NDArray[np.floating], task: Task) -> Numbers:
    return experts / np.linalg.norm(experts, axis=1, keepdims=True) @ _start(task)[1][1].T


def contests(quick: bool) -> Sequence[Contest]:
    task = QUICK if quick else FULL
    time, all_of_it = UPDATES * task.step, round(SMALL.until / SMALL.step)
    entries = (
        Entry("tutelage", partial(ours, task), task.until, partial(ours, SMALL), OWN),
        Entry("plain JAX, SGD", partial(plain, task, UPDATES), time, partial(plain, SMALL, all_of_it), PEER),
        Entry("PyTorch, SGD", partial(torch, task, UPDATES), time, partial(torch, SMALL, all_of_it), TORCH),
    )
    return [
        Contest(
            f"{task.students} experts of {task.teachers}, d={task.dim}, to time {task.until:g}", entries, 0.01,
            f"experts' cosines at d={SMALL.dim} at time {SMALL.until:g}, which SGD has up to its noise",
            unit="unit of time", goals={"plain JAX, SGD": 100.0, "PyTorch, SGD": 100.0}, headline=True,
        )
    ]  # fmt: skip


CASE = Case("Soft mixture of experts, flow against online SGD", contests)
