"""From settings to a problem and a run."""

import math
from typing import Any, Literal

import numpy as np

from tutelage.experiment import descend, flow, sgd
from tutelage.papers.paper import with_phases
from tutelage.papers.relu_teachers.phases import phases
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.problem.initial import AbstractRows, GaussianRows, WeakRecoveryRows
from tutelage.problem.inputs import Gaussian
from tutelage.problem.networks import TwoLayer
from tutelage.problem.problem import Problem
from tutelage.problem.rows import equicorrelated
from tutelage.trajectory.result import Run


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


def run(
    settings: ReluTeachersSettings | None = None,
    *,
    seeds: Any = 1,
    dynamics: Literal["sgd", "descent", "flow"] = "sgd",
    certify: bool = False,
    progress: Any = None,
    **options: Any,
) -> Run:
    """Run the paper's experiment: online SGD as in its figures, descent as in its theorems, or flow.

    `options` go to `tutelage.sgd`, `descend` or `flow`.

    ```python
    >>> import tutelage as tt
    >>> result = tt.papers.relu_teachers.run(tt.papers.relu_teachers.configure({"steps": 20}), seeds=2)
    >>> bool((result.last("loss") < result.loss[:, 0]).all())
    True

    ```
    """
    settings = settings or ReluTeachersSettings()
    common = {"seeds": seeds, "certify": certify, "progress": progress} | options
    result = _dynamics(settings, dynamics, common)
    return with_phases(result, "relu_teachers", settings, phases(result, settings))


def _dynamics(settings: ReluTeachersSettings, dynamics: str, options: dict[str, Any]) -> Run:
    chosen, data, step = problem(settings), settings.samples or None, settings.pace(dynamics)
    if dynamics == "flow":
        # Small students move at their own scale: the first records must be that early.
        early = 0.1 * settings.scale * math.sqrt(settings.dim) / float(settings.teacher_norms.sum())
        until = step * settings.steps
        return flow(chosen, until=until, data=data, **{"first": min(0.01, until / 1e6, early), "record": 400} | options)
    options = {"record": 1000} | options
    if dynamics == "descent":
        return descend(chosen, step=step, steps=settings.steps, data=data, **options)
    return sgd(chosen, step=step, steps=settings.steps, batch=settings.batch, **options)
