"""Online SGD of 20 ReLU students of 4 teachers in single precision: in law, at any dimension, against whole examples.

The two are equal in law, not number by number. All begin at the same weights; how far the loss falls until it has
halved (or in half a second of the others), by one run of the others, must be within five standard deviations of the
mean over 32 seeds of tutelage. A step that is twice too long is 9 to 100 of them away. Tutelage does more updates when
it is timed, and the others so many that they take about half a second; times are for one update.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry, Limit
from tutelage.bench.limits import normal
from tutelage.bench.relu import OWN, PEER, TORCH, Numbers, problem, starts

TEACHERS, STUDENTS, SEEDS = 4, 20, 32
NUMBERS = 5e7
"""Random numbers of a call of the others: half a second."""


class Task(NamedTuple):
    """`most`: updates of the others."""

    dim: int
    batch: int
    most: int = 2000

    @property
    def problem(self) -> tt.Problem:
        return problem(TEACHERS, STUDENTS, self.dim, 1 / self.dim**0.5)

    @property
    def step(self) -> float:
        """A fifth of the largest stable one: noise grows with the dimension over the batch."""
        return 0.2 / STUDENTS * self.batch / (self.batch + self.dim)

    @property
    def steps(self) -> int:
        """Of the others."""
        return max(3, min(self.most, int(NUMBERS / (self.dim * self.batch))))

    @property
    def compared(self) -> int:
        """Updates after which results are compared: at most those that halve the loss."""
        return max(3, min(self.steps, int(0.1 / self.step)))

    @property
    def normals(self) -> int:
        """Random numbers that tutelage needs for an update: inputs in the frame, and a triangle outside of it."""
        inside = min(self.dim, TEACHERS + STUDENTS)
        outside = min(STUDENTS, self.batch, self.dim - inside)
        return self.batch * inside + outside * (outside + 1) // 2


def ours(task: Task, steps: int, seeds: int = 1) -> Numbers:
    """How far the loss falls from the same weights, for each seed."""
    start = task.problem.begin(0)
    students = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (seeds, *leaf.shape)), start.student)
    run = tt.run(
        task.problem,
        tt.Sgd(steps, task.batch, task.step, dtype="float32"),
        seeds=seeds,
        record=tt.Record(2, observables=("loss",)),
        start=tt.Start(start.teacher, students),
    )
    loss = run.loss.transpose("seed", "time").values
    return np.asarray(loss[:, 0] - loss[:, -1])


@cache
def _start(task: Task) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    first, teacher = starts(task.problem, 1)
    return first[0].astype(np.float32), teacher.astype(np.float32)


def plain(task: Task, steps: int) -> NDArray[np.floating]:
    from tutelage.bench.peers import plain_jax

    first, teacher = map(jnp.asarray, _start(task))
    return np.asarray(plain_jax.sgd(jax.random.key(0), first, teacher, task.step, steps, task.batch))


def torch(task: Task, steps: int) -> NDArray[np.floating]:
    from tutelage.bench.peers import by_torch

    return by_torch.sgd(0, *_start(task), task.step, steps, task.batch)


def fall(task: Task, weights: Any) -> float:
    """How far the loss fell from the start to these weights."""
    first, teacher = _start(task)
    target = tt.Weights(jnp.asarray(teacher, float), jnp.ones((TEACHERS, 1)))
    loss = tt.PopulationOracle(student="relu", teacher="relu", target=target).loss
    before, after = (loss(tt.Weights(jnp.asarray(each, float), jnp.ones((STUDENTS, 1)))) for each in (first, weights))
    return float(before - after)


def deviations(ours: Numbers, theirs: float) -> float:
    """How far a value is from the mean of ours, in standard deviations of ours."""
    return float(abs(theirs - np.mean(ours)) / np.std(ours, ddof=1))


def _contest(task: Task, steps: int, *, first: bool) -> Contest:
    def other(name: str, call: Callable[[Task, int], NDArray[np.floating]], needs: tuple[str, ...]) -> Entry:
        return Entry(
            name, lambda: call(task, task.steps), task.steps, lambda: fall(task, call(task, task.compared)), needs
        )

    own = Entry("tutelage", partial(ours, task, steps), steps, partial(ours, task, task.compared, SEEDS), OWN)
    return Contest(
        f"batch {task.batch}, d={task.dim:g}",
        (own, other("plain JAX", plain, PEER), other("PyTorch", torch, TORCH)), 5.0,
        f"fall of the loss in {task.compared} updates, in standard deviations over {SEEDS} seeds", deviations, "update",
        goals={"plain JAX": 1.0, "PyTorch": 1.0}, first={"plain JAX": None} if first else {}, headline=first,
        given=partial(_start, task),
        limit=Limit("random numbers", lambda: task.normals * normal("float32"), 0.5 if task.batch > 8 else None),
    )  # fmt: skip


def contests(quick: bool) -> Sequence[Contest]:
    batches, dims = ((1, 64), (10, 100)) if quick else ((1, 8, 512), (10, 100, 1000, 10_000, 100_000))
    most = 100 if quick else 2000
    return [
        _contest(Task(dim, batch, most), 200 if quick else 10_000 if batch < 100 else 2000,
                 first=dim in (100, 10_000) and batch > 8)
        for batch in batches
        for dim in dims
    ]  # fmt: skip


REASON = (
    "At d = 10, where samples are drawn as anybody would, what is left beside random numbers is what any SGD has to "
    "do: two products with the samples, and the activations of 24 units. Beyond the frame there is also the Gram "
    "matrix of what the samples are outside of it."
)
CASE = Case("Online SGD, 4 ReLU teachers, 20 ReLU students, float32", contests, reason=REASON)
