"""From settings to a problem and a run."""

import math

import numpy as np

from tutelage.dynamics import AbstractDynamics, Descent, Flow, Record, Sgd
from tutelage.papers.relu_teachers.phases import phases
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.problem import AbstractRows, Gaussian, GaussianRows, Problem, TwoLayer, WeakRecoveryRows, equicorrelated
from tutelage.study import Recipe


def teacher_rows(settings: ReluTeachersSettings) -> np.ndarray:
    """The teachers in their own span: on the coordinate axes when they are orthogonal."""
    return settings.teacher_norms[:, None] * equicorrelated(settings.teachers, settings.cosine)


def problem(settings: ReluTeachersSettings) -> Problem:
    """The problem of the paper: k orthogonal teachers, m students, all outer weights 1.

    ```python
    >>> from tutelage.papers.relu_teachers.recipe import problem
    >>> from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
    >>> problem(ReluTeachersSettings(dim=10**9, init="weak")).begin(seed=0).student.first.shape
    (20, 24)

    ```
    """
    teacher = TwoLayer(settings.activation, first=teacher_rows(settings))
    student = TwoLayer(
        settings.activation,
        first=settings.first if settings.first is not None else _rows(settings),
        width=settings.students,
        trains=("first", "second") if settings.trains == "both" else ("first",),
    )
    return Problem(inputs=Gaussian(settings.dim), teacher=teacher, student=student, noise=settings.noise)


def _rows(settings: ReluTeachersSettings) -> AbstractRows:
    if settings.init == "gaussian":
        return GaussianRows(settings.scale)
    toward = tuple(tuple(float(entry) for entry in row) for row in teacher_rows(settings))
    return WeakRecoveryRows(settings.scale, toward, settings.angle, settings.zeta, settings.counts)


def plan(settings: ReluTeachersSettings, dynamics: str, record: Record) -> AbstractDynamics:
    """Online SGD as in the paper's figures, descent as in its theorems, or flow."""
    data, step = settings.samples or None, settings.pace(dynamics)
    if dynamics == "flow":
        return Flow(until=step * settings.steps, data=data)
    if dynamics == "descent":
        return Descent(step, settings.steps, data)
    return Sgd(settings.steps, settings.batch, step)


def record(settings: ReluTeachersSettings, dynamics: str) -> Record:
    """Many: students that start small move at their own scale, so that the first records of a flow must be early."""
    if dynamics != "flow":
        return Record(1000)
    early = 0.1 * settings.scale * math.sqrt(settings.dim) / float(settings.teacher_norms.sum())
    return Record(400, first=min(0.01, settings.pace("flow") * settings.steps / 1e6, early))


RECIPE = Recipe("relu_teachers", ReluTeachersSettings, problem, plan, ("sgd", "descent", "flow"), record, phases)
run = RECIPE.run
