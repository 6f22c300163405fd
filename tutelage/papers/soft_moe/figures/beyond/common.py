"""How the runs of this gallery are made, and how their seeds are drawn."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage import flow
from tutelage.analysis import GREY, Series, line
from tutelage.dynamics import Crossings, Event, Record, Snapshot
from tutelage.oracle import units
from tutelage.papers.soft_moe.events import ANNIHILATED, RECOVERED
from tutelage.papers.soft_moe.matching import Matching
from tutelage.papers.soft_moe.races import Start
from tutelage.papers.soft_moe.recipe import problem
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Size
from tutelage.trajectory import Run

UNITS: dict[Size, dict[str, int]] = {"quick": {"teachers": 2, "students": 6}, "full": {"teachers": 3, "students": 15}}
OBSERVED = (
    "loss",
    "second",
    "norm_router",
    "norm_expert",
    "overlap_router",
    "overlap_expert",
    "overlap_ss_expert",
)


def _either_sign(view: Snapshot) -> Float[Array, "student teacher"]:
    overlap = units(view.weights.first).expert @ units(view.teacher.first).expert.T
    return jnp.abs(overlap) - RECOVERED


MET = Crossings("met_time", _either_sign, ("student", "teacher"), "time at which an expert is along a teacher's line")
"""With an even degree, an odd gate, or output weights that learn, -w* may be as good as w*."""
FIRST_MET = Event("first_met", lambda view: jnp.max(_either_sign(view)), stop=True)


def changed(settings: SoftMoeSettings, **values: Any) -> SoftMoeSettings:
    """The settings with some values changed, checked again."""
    return SoftMoeSettings(**settings.model_dump() | values)


def flows(
    settings: SoftMoeSettings, seeds: int, until: float, at: ArrayLike, events: tuple[Event, ...] | None = None
) -> Run:
    """Flows with what this gallery looks at, and no more: a lean program compiles sooner."""
    record = Record(at, observables=OBSERVED, crossings=(MET,), events=events)
    return flow(problem(settings), until=until, seeds=seeds, record=record)


def starts(settings: SoftMoeSettings, seeds: int) -> list[Start]:
    """The first overlaps of each seed, without a run."""
    begun = [problem(settings).begin(seed) for seed in range(seeds)]
    return [Start(settings, np.asarray(one.student.first), np.asarray(one.teacher.first)) for one in begun]


def predicted(settings: SoftMoeSettings, seeds: int) -> NDArray[np.float64]:
    """Times (seed, teacher) of the race, in which norms, the teachers' weights, the gate and the degree count."""
    return np.array([by_teacher(start.race, settings.teachers) for start in starts(settings, seeds)])


def by_teacher(matching: Matching, teachers: int) -> NDArray[np.float64]:
    """The time at which each teacher is matched; nan if never."""
    times = np.full(teachers, np.nan)
    for pair in matching.pairs:
        times[pair.teacher] = pair.time
    return times


def first_met(run: Run) -> NDArray[np.float64]:
    """When each teacher (seed, teacher) is first met; nan if never."""
    return np.fmin.reduce(run.dataset["met_time"].values, axis=1)


def cancelled(data: xr.Dataset) -> xr.DataArray:
    """How many pairs of experts are opposite, at each record."""
    return (data["overlap_ss_expert"] <= ANNIHILATED).sum(("student", "student_b")) / 2


def diagonal(*values: ArrayLike) -> Series:
    """Where the observed is the predicted, over the range of all values."""
    finite = np.concatenate([np.ravel(np.asarray(v, float)) for v in values])
    ends = np.array([np.nanmin(finite), np.nanmax(finite)])
    return line(ends, ends, "observed = predicted", dash="dashed", colour=GREY)
