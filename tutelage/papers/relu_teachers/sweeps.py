"""Numbers that a sweep may ask of a run by name: the plateau, teachers left over, times of phases; a phase diagram."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage import BadInput
from tutelage.dynamics import Event, Snapshot
from tutelage.papers.relu_teachers.lasting import plateau_time
from tutelage.papers.relu_teachers.phases import NEAR_PLATEAU, NEEDED, SEPARATED
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Diagram
from tutelage.trajectory import Measure, Measured, Run, phase_times


def _filled(view: Snapshot) -> Float[Array, ""]:
    """The sum of the students' norms, over that of the saddle on the mean direction of orthogonal teachers."""
    students, teachers = (jnp.linalg.norm(weights.first, axis=1) for weights in (view.weights, view.teacher))
    return jnp.sum(students) / (Plateau(len(teachers), len(students)).sum_of_norms * jnp.mean(teachers))


def _arrives(view: Snapshot) -> Float[Array, ""]:
    return _filled(view) - (1 - NEAR_PLATEAU)


def _leaves(view: Snapshot) -> Float[Array, ""]:
    return _filled(view) - (1 + NEAR_PLATEAU)


ARRIVES, LEAVES = Event("plateau_begins", _arrives), Event("plateau_ends", _leaves)


def plateau_length(run: Run) -> Measured:
    """The time in which the sum of norms goes from 3 % below that of the plateau to 3 % above it."""
    if "event" not in run.dataset.coords or ARRIVES.name not in run.dataset["event"].values:
        raise BadInput("plateau_length needs the events of the plateau, but the run did not watch for them; sweep it.")
    begin, end = (run.dataset["event_time"].sel(event=event.name).values for event in (ARRIVES, LEAVES))
    lasts = np.isfinite(begin) & np.isnan(end)
    return Measured(end - begin, np.where(lasts, run.dataset["stop_time"].values - begin, np.inf))


def plateau_law(settings: ReluTeachersSettings) -> float:
    """How long the plateau lasts from a small Gaussian start; nan where there is no law, or no plateau.

    ```python
    >>> from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
    >>> from tutelage.papers.relu_teachers.sweeps import plateau_law
    >>> [round(plateau_law(ReluTeachersSettings(teachers=2, scale=scale)), 3) for scale in (1e-12, 1e-9, 1e-3)]
    [1.472, 1.003, nan]

    ```
    """
    if not settings.plain or not 2 <= settings.teachers <= settings.students or settings.first:
        return math.nan
    if settings.init != "gaussian" or settings.samples:
        return math.nan
    level = Plateau(settings.teachers, settings.students, float(settings.teacher_norms[0]))
    return plateau_time(level, scale=settings.scale, dim=settings.dim, near=NEAR_PLATEAU)


def unmatched(run: Run) -> np.ndarray:
    """How many teachers end without a student within 20 degrees."""
    return (run.last("overlap_angle").min("student") > SEPARATED).sum("teacher").values


def small_norm_time(settings: ReluTeachersSettings) -> float:
    """2 pi/(3 m F), from near zero (Eq. 21); nan outside the paper's setting."""
    if not settings.plain or settings.students < settings.teachers:
        return math.nan
    return Plateau(settings.teachers, settings.students, float(settings.teacher_norms[0])).small_norm_time


def _phase(name: str, phase: str, long_name: str, law=None) -> Measure:
    return Measure(name, long_name, lambda run: phase_times(run, phase), kind="time", law=law, observables=NEEDED)


MEASURES = (
    Measure(
        "plateau_length",
        "length of the plateau on the mean direction",
        plateau_length,
        kind="time",
        law=plateau_law,
        observables=(),
        records=64,
        events=(ARRIVES, LEAVES),
        stop=LEAVES,
    ),
    Measure(
        "unmatched", "number of teachers without a student near", unmatched, observables=("overlap_angle",), records=64
    ),
    _phase("small_norm_time", "small norms", "time at which a norm passes |v|/(3m)", small_norm_time),
    _phase("alignment_time", "alignment (T1)", "time from which students are near their first nearest teacher"),
    _phase("growth_time", "growth (T2)", "time from which every |H_l| is below |v|/3"),
    _phase("escape_time", "escape", "time at which directions have parted half way"),
    _phase("separation_time", "separation", "time from which every student is near a teacher"),
)

DIAGRAMS = (
    Diagram(
        "plateau",
        "Length of the plateau on the mean direction, over the number of teachers and the scale of the start",
        "plateau_length",
        over={
            "quick": {"teachers": (2, 3, 4), "scale": (1e-12, 1e-9, 1e-6, 1e-3)},
            "full": {"teachers": (2, 3, 4, 5, 6, 8), "scale": (1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2)},
        },
        seeds={"quick": 16, "full": 64},
        settings={"students": 8, "norm": 1.0, "step": 0.01, "steps": 4000},
        dynamics="flow",
    ),
)
