"""Gradient descent of 20 ReLU students of 4 teachers, far from the optimum and near it, one seed and many.

Where ten lines of JAX would take minutes they do a part of the updates, all of which cost the same; results are
compared after that part, and times are for one update of one seed.
"""

import os
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry, Limit
from tutelage.bench.limits import pair
from tutelage.bench.relu import OWN, PEER, TORCH, Numbers, padded, problem, starts

TEACHERS, STUDENTS, STEP = 4, 20, 0.01
PAIRS = STUDENTS * (STUDENTS + TEACHERS)


class Task(NamedTuple):
    """A descent, and after how many updates the others end, if not after all."""

    dim: int
    seeds: int
    steps: int
    part: int
    near: bool = False

    @property
    def problem(self) -> tt.Problem:
        return problem(TEACHERS, STUDENTS, self.dim, 0.01)


@cache
def near(seeds: int) -> tt.Start:
    """Students that share their teachers' work, up to 1e-4: a loss of about 1e-8, in frame coordinates."""
    columns = TEACHERS + STUDENTS
    teacher = np.eye(TEACHERS, columns)
    shares = np.random.default_rng(1).dirichlet(np.full(STUDENTS // TEACHERS, 5.0), TEACHERS).reshape(-1, 1)
    noise = np.random.default_rng(2).standard_normal((seeds, STUDENTS, columns))
    first = shares * np.repeat(teacher, STUDENTS // TEACHERS, axis=0) + 1e-4 * noise
    one = np.ones((TEACHERS, 1))
    student = tt.Weights(jnp.asarray(first), jnp.ones((seeds, STUDENTS, 1)))
    return tt.Start(tt.Weights(jnp.asarray(teacher), jnp.asarray(one)), student)


@cache
def _start(task: Task) -> tuple[Numbers, Numbers]:
    """Students (seed, unit, dim) and teachers, in all coordinates."""
    if not task.near:
        return starts(task.problem, task.seeds)
    start = near(task.seeds)
    return padded(start.student.first, task.dim), padded(start.teacher.first, task.dim)


def ours(task: Task) -> Numbers:
    """Overlaps (seed, student, teacher) after the part that all do."""
    run = tt.run(
        task.problem,
        tt.Descent(STEP, task.steps),
        seeds=task.seeds,
        record=tt.Record([task.part], observables=("loss", "overlap")),
        stop=tt.Stop(gradient=-1.0),
        start=near(task.seeds) if task.near else None,
    )
    after = run.dataset.swap_dims(time="step").sel(step=task.part)
    return np.asarray(after["overlap"].transpose("seed", "student", "teacher").values)


def plain(task: Task) -> Numbers:
    from tutelage.bench.peers import plain_jax

    first, teacher = _start(task)
    if task.seeds == 1:
        moved = plain_jax.descend(jnp.asarray(first[0]), jnp.asarray(teacher), STEP, task.part)[None]
    else:
        moved = plain_jax.descend_all(jnp.asarray(first), jnp.asarray(teacher), STEP, task.part)
    return np.asarray(jax.block_until_ready(moved)) @ teacher.T


def torch(task: Task, steps: int) -> Numbers:
    from tutelage.bench.peers import by_torch

    first, teacher = _start(task)
    return by_torch.descend(first[0], teacher, STEP, steps)[None] @ teacher.T


def _contest(task: Task, name: str, goal: float, *, first: bool = False, with_torch: bool = False) -> Contest:
    entries = [
        Entry("tutelage", partial(ours, task), task.steps * task.seeds, needs=OWN),
        Entry("plain JAX", partial(plain, task), task.part * task.seeds, needs=PEER),
    ]
    if with_torch:
        some = task.steps // 10
        entries.append(Entry("PyTorch", partial(torch, task, some), some, partial(torch, task, task.part), TORCH))
    return Contest(
        name, tuple(entries), 1e-6, "overlaps, relative to the largest", unit="update", goals={"plain JAX": goal},
        first={"plain JAX": 2.0} if first else {}, headline=first, given=partial(_start, task),
        limit=Limit("angle and sine of 480 pairs", lambda: PAIRS * pair() / min(task.seeds, os.cpu_count() or 1)),
    )  # fmt: skip


def contests(quick: bool) -> Sequence[Contest]:
    far, long, many, dims = (200, 2000, 4, (30, 60)) if quick else (2000, 100_000, 64, (100, 1000))
    small, large = dims
    rows = [
        (Task(small, 1, far, far), "", 5.0),
        (Task(large, 1, far, far), "", 5.0),
        (Task(small, many, far, far // 4), "", 5.0),
        (Task(large, many, far, far // 20), "", 5.0),
        (Task(small, 1, long, long), " to a loss of 1e-9", 3.0),
        (Task(large, 1, long, long // 20), " to a loss of 1e-9", 3.0),
        (Task(small, many, far, far // 4, near=True), " near the optimum", 3.0),
        (Task(large, many, far, far // 20, near=True), " near the optimum", 3.0),
    ]
    found = []
    for task, where, goal in rows:
        many_seeds = f", {task.seeds} seeds" if task.seeds > 1 else ""
        name = f"{task.steps} updates{where}, d={task.dim}{many_seeds}"
        lone = task.dim == small and task.seeds == 1
        found.append(_contest(task, name, goal, first=lone, with_torch=lone and task.steps == far))
    return found


REASON = (
    "A call of 2000 updates is short enough for the host to be seen: a start is drawn, records become a Dataset. "
    "Calls of 100,000 updates show what the loop itself can do."
)
CASE = Case("Gradient descent, 4 ReLU teachers, 20 ReLU students", contests, reason=REASON)
