"""How the runs of this gallery are made: many seeds of descent in one batch, with steps that grow with the students."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.analysis import Series, line
from tutelage.dynamics import Record, Stop
from tutelage.papers.relu_teachers.recipe import run
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Size
from tutelage.trajectory import Run

SEEDS: dict[Size, int] = {"quick": 16, "full": 64}
TEACHERS, STUDENTS = 4, 12
OBSERVED = ("loss", "gradient_norm", "first_norm", "second", "overlap", "overlap_cos", "overlap_angle")
RECOVERED = 1e-3  # a loss below this is on its way to zero: the known local minima lie above
FIRST, GROWTH = 1e-12, 1.02
WARM = math.ceil(math.log(1 / FIRST) / math.log(GROWTH))


def growing(update: Any) -> Any:
    """The factor of the step at an update: 2 % more each time, up to 1.

    Norms grow in proportion to time, so every step is 2 % of the students' length, however short they begin. It is
    gradient flow on a logarithmic clock, at the price of descent.
    """
    return jnp.minimum(1.0, FIRST * GROWTH**update)


def trained(
    size: Size, updates: int, *, pace: float = 0.6, seeds: int | None = None, decided: bool = False, **values: Any
) -> Run:
    """Descent with steps that grow up to `pace`/m, for `updates` after that; unit teachers unless said otherwise.

    `decided` ends a run once it is clear where it goes: its loss or its gradient is small.
    """
    students = values.setdefault("students", STUDENTS)
    common = {"teachers": TEACHERS, "norm": 1.0, "scale": 1e-6, "step": pace / students, "steps": WARM + updates}
    return run(
        ReluTeachersSettings(**common | values),
        seeds=seeds or SEEDS[size],
        dynamics="descent",
        schedule=growing,
        record=Record(_updates(updates), observables=OBSERVED),
        stop=Stop(loss=1e-5 if decided else 0.0, gradient=1e-6 if decided else 1e-14),
    )


def _updates(updates: int) -> NDArray[np.floating]:
    """When to record: evenly in log time at first, later both evenly and log-spaced."""
    late = np.concatenate([np.linspace(0, updates, 120), np.geomspace(1, updates, 80)])
    return np.unique(np.round(np.concatenate([np.linspace(0, WARM, 80), WARM + late])))


def moment(values: xr.DataArray, record: Any) -> xr.DataArray:
    """The values at a record, which may be another one for each seed; without the clock."""
    return values.isel(time=record).drop_vars(("time", "step"), errors="ignore")


def last(data: xr.Dataset, name: str) -> xr.DataArray:
    """The last recorded value, seed by seed."""
    return moment(data[name], data["recorded"] - 1)


def histogram(values: NDArray[np.floating], edges: NDArray[np.floating], label: str, **style: Any) -> Series:
    """Shares of the values by bin, as steps."""
    counts = np.histogram(values, edges)[0] / max(values.size, 1)
    return line(edges, np.append(counts, counts[-1]), label, kind="steps", **style)
