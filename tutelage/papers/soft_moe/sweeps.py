"""Numbers that a sweep may ask of a run by name: recovery of teachers, and students that cancelled; a phase diagram."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage.dynamics import Event, Snapshot
from tutelage.papers.soft_moe.events import expert_overlap
from tutelage.papers.soft_moe.predictions import recovered_law, recovery_law, success_law
from tutelage.study import Diagram
from tutelage.trajectory import Measure, Run

SURE = 0.95
"""Overlap at which a run may stop: past that of recovery, so that its time has been noted by then."""


def teacher_times(run: Run) -> NDArray[np.float64]:
    """When each teacher (seed, teacher) was first recovered by an expert; nan if it was not."""
    return np.fmin.reduce(run.dataset["expert_time"].values, axis=1)


def recovered(run: Run) -> NDArray[np.float64]:
    """How many teachers each seed recovered."""
    return np.isfinite(teacher_times(run)).sum(1).astype(float)


def success(run: Run) -> NDArray[np.float64]:
    """1 where all teachers were recovered, else 0."""
    return np.isfinite(teacher_times(run)).all(1).astype(float)


def pairs(run: Run) -> NDArray[np.float64]:
    """How many pairs of experts became opposite."""
    return np.isfinite(run.dataset["pair_time"].values).sum((1, 2)) / 2


def _first(run: Run) -> NDArray[np.float64]:
    return np.fmin.reduce(teacher_times(run), axis=1)


def _last(run: Run) -> NDArray[np.float64]:
    return teacher_times(run).max(1)  # nan while one is missing


def _best(view: Snapshot) -> Float[Array, " teacher"]:
    return jnp.max(expert_overlap(view), axis=0)


def _one_is_learnt(view: Snapshot) -> Float[Array, ""]:
    return jnp.max(_best(view)) - SURE


def _all_are_learnt(view: Snapshot) -> Float[Array, ""]:
    return jnp.min(_best(view)) - SURE


ONE, ALL = Event("one_learnt", _one_is_learnt), Event("all_learnt", _all_are_learnt)
# Everything is in the times of crossings, which need no records.
CHEAP: dict[str, Any] = {"observables": (), "records": 2}

MEASURES = (
    Measure(
        "recovery_time",
        "time of the first recovery of a teacher",
        _first,
        kind="time",
        law=recovery_law,
        stop=ONE,
        **CHEAP,
    ),
    Measure("full_recovery_time", "time at which all teachers are recovered", _last, kind="time", stop=ALL, **CHEAP),
    Measure("recovered", "number of teachers recovered", recovered, law=recovered_law, stop=ALL, **CHEAP),
    Measure("success", "all teachers recovered", success, kind="chance", law=success_law, stop=ALL, **CHEAP),
    Measure("pairs", "pairs of experts that cancelled each other", pairs, **CHEAP),
)

DIAGRAMS = (
    Diagram(
        "recovered",
        "Teachers recovered, over the number of students and the dimension",
        "recovered",
        over={
            "quick": {"students": (2, 4, 8), "dim": (10**3, 10**5, 10**7)},
            "full": {"students": (2, 4, 8, 16, 32), "dim": (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)},
        },
        seeds={"quick": 32, "full": 32},
        settings={"teachers": 2},
    ),
)
