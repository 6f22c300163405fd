"""Spurious minima of 20 ReLU students of 20 teachers: many starts, each to a gradient of 1e-12."""

import os
from collections.abc import Sequence
from functools import cache, partial

import numpy as np

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry, Limit
from tutelage.bench.limits import pair
from tutelage.bench.relu import OWN, Numbers, problem, starts

STEP, SMALL = 0.1, 1e-12
CHOSEN, MOST = 2000, 100_000
"""Updates of plain descent, which choose the minimum; and the most with momentum, which end in it. Some minima have a
direction in which plain descent has not come to an end in 200,000 updates."""


def _problem(units: int) -> tt.Problem:
    return problem(units, units, units, units**-0.5)


@cache
def _start(units: int, count: int) -> tuple[Numbers, Numbers]:
    return starts(_problem(units), count)


def ours(units: int, count: int, compared: int) -> Numbers:
    """Overlaps (start, student, teacher) of the first few; nan if a gradient is not small enough."""
    run = tt.run(
        _problem(units),
        [
            tt.Stage("choose", tt.Descent(STEP, CHOSEN)),
            tt.Stage("settle", tt.HeavyBall(2 * STEP, MOST, momentum=0.9)),
        ],
        seeds=count,
        record=tt.Record(60, observables=("gradient_norm", "overlap")),
        stop=tt.Stop(gradient=SMALL / (2 * units**0.5)),  # times the norm of all weights, which is about sqrt(units)
    ).stages["settle"]
    done = bool((run.last("gradient_norm") <= SMALL).all())
    found = run.last("overlap").transpose("seed", "student", "teacher").values[:compared]
    return np.asarray(found) if done else np.full_like(found, np.nan)


def numpy(units: int, count: int) -> Numbers:
    """The same from the first few starts, one after the other, by plain descent."""
    from tutelage.bench.peers import plain_numpy

    first, teacher = _start(units, count)
    return np.stack([plain_numpy.settle(each, teacher, STEP, SMALL) for each in first]) @ teacher.T


def contests(quick: bool) -> Sequence[Contest]:
    units, count, some = (4, 6, 2) if quick else (20, 500, 3)
    entries = (
        Entry("tutelage", partial(ours, units, count, some), count, needs=OWN),
        Entry("NumPy", partial(numpy, units, some), some, needs=("tutelage.bench.peers.plain_numpy",)),
    )
    name = f"k=m=d={units}, {count} starts to a gradient of 1e-12, in one call"
    limit = Limit(
        f"angle and sine of {2 * units**2} pairs in the first {CHOSEN} updates",
        lambda: 2 * units**2 * CHOSEN * pair() / min(count, os.cpu_count() or 1),
    )
    goals = {"NumPy": 30.0}
    return [Contest(name, entries, 1e-6, "overlaps at the end", unit="start", goals=goals, limit=limit, headline=True)]


REASON = (
    "Plain descent chooses the minimum; then it takes thousands of updates with momentum to a gradient of 1e-12, and "
    "a batch waits for the slowest of its starts, some of which have a direction of small curvature."
)
CASE = Case("Minima of ReLU networks", contests, reason=REASON)
