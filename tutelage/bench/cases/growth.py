"""How cost grows with each size: exponents fitted to times, beside the expected ones. Nobody else is asked."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import tutelage as tt
from tutelage.analysis.lines import exponent
from tutelage.bench.contest import Case, Entry
from tutelage.bench.process import tell
from tutelage.bench.relu import problem
from tutelage.bench.timing import Plan, interleaved, spread

LOSS = tt.Record(2, observables=("loss",))
ON = tt.Stop(gradient=-1.0)


def descend(*, students: int = 20, teachers: int = 4, dim: int = 1000, seeds: int = 1, steps: int = 1000) -> None:
    what = problem(teachers, students, dim, 0.01)
    tt.descend(what, step=1e-3, steps=steps, seeds=seeds, record=LOSS, stop=ON)


def flow(*, dim: int) -> None:
    tt.flow(problem(4, 8, dim, 0.1 / dim**0.5), until=20.0, record=tt.Record(20, observables=("loss",)), stop=ON)


def sgd(*, batch: int = 64, dim: int = 1000, steps: int = 1000) -> None:
    what = problem(4, 20, dim, 1 / dim**0.5)
    tt.sgd(what, step=1e-3 / dim, steps=steps, batch=batch, dtype="float32", record=LOSS)


def on_samples(*, samples: int) -> None:
    x = np.random.default_rng(0).standard_normal((samples, 30))
    data = x, np.abs(x).mean(1)
    tt.descend(problem(4, 100, 30, 0.1), step=1e-3, steps=50, data=data, record=LOSS, stop=ON)


class Growth(NamedTuple):
    """A size that is varied, of which run, and the exponents between which its cost should grow."""

    name: str
    run: Callable[..., None]
    size: str
    values: Sequence[int]
    expected: tuple[float, float]


FULL = (
    Growth("students m, descent", descend, "students", (16, 32, 64, 128), (2, 3)),
    Growth("teachers k, descent", descend, "teachers", (16, 32, 64, 128), (1, 2)),
    Growth("seeds, descent", descend, "seeds", (8, 16, 32, 64), (1, 1)),
    Growth("updates, descent", descend, "steps", (4000, 16_000, 64_000), (1, 1)),
    Growth("batch, online SGD", sgd, "batch", (256, 512, 1024, 2048), (1, 1)),
    Growth("updates, online SGD", sgd, "steps", (2000, 8000, 32_000), (1, 1)),
    Growth("examples N, descent on samples", on_samples, "samples", (4000, 16_000, 64_000), (1, 1)),
    Growth("dimension d, descent", descend, "dim", (100, 10**5, 10**9), (0, 0)),
    Growth("dimension d, flow", flow, "dim", (100, 10**5, 10**9), (0, 0)),
    Growth("dimension d, online SGD", sgd, "dim", (100, 10**5, 10**9), (0, 0)),
)
QUICK = (
    Growth("updates, descent", descend, "steps", (2000, 8000), (1, 1)),
    Growth("dimension d, descent", descend, "dim", (100, 10**9), (0, 0)),
)


def table(quick: bool) -> Mapping[str, Any]:
    """Each size, its times and exponent: the slope of log time over log size."""
    rows = []
    for growth in QUICK if quick else FULL:
        tell(f"growth: {growth.name}")
        entries = [Entry(str(value), partial(growth.run, **{growth.size: value})) for value in growth.values]
        for entry in entries:
            entry.call()  # compiled before anything is timed
        taken = {name: spread(seconds) for name, seconds in interleaved(entries, Plan(quick, 3, 3.0)).items()}
        grown = float(exponent(growth.values, [each["median"] for each in taken.values()]))
        rows.append({"name": growth.name, "seconds": taken, "exponent": grown, "expected": growth.expected})
    return {"growth": rows}


CASE = Case("How cost grows", tables=table)
