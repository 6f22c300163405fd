"""Runs of Phase II with planted experts, made once for claims and figures.

Every expert has one unit of overlap `KAPPA` with a local task, in turn; the others are as drawn.
"""

from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray

from tutelage.dynamics import Routed, Stream, route, stream
from tutelage.oracle import expected_router
from tutelage.papers.cluster_moe.planted import planted
from tutelage.problem import Numbers, Top1, Units, expert_outputs
from tutelage.study import Size

DIM, KAPPA = 30, 0.9
COUNTS: dict[Size, tuple[int, ...]] = {
    "quick": (2_500, 10_000, 40_000, 160_000),
    "full": (2_500, 10_000, 40_000, 160_000, 640_000),
}
"""Samples of the one step."""
BUDGET: dict[Size, int] = {"quick": 320_000, "full": 2_560_000}
"""Samples for each of these numbers together: the fewer a step has, the more steps are looked at."""
BATCH, STEPS, STEP, RECORDS = 1024, 300, 3.0, 100
"""Samples of each of many steps, their number (the paper's T_2), the learning rate, and how many are recorded."""
_PHASE = 2


@cache
def expected() -> Numbers:
    """The router after one step in expectation, (expert, dim)."""
    lab = planted(DIM, KAPPA)
    return expected_router(lab.problem, lab.units, lab.first)


@cache
def one_step(samples: int, rao_blackwell: bool, seed: int, block: int = 0) -> Numbers:
    """The router after one step on a stretch of a stream; `block` numbers the stretches."""
    lab = planted(DIM, KAPPA)
    data = stream(lab.problem, seed, _PHASE)
    return route(
        data, lab.units, lab.first, samples=samples, rao_blackwell=rao_blackwell, begin=block * samples, record=()
    ).theta


class Misses(NamedTuple):
    """The root mean square of `|theta - expected|` over stretches, its standard error, and the number of stretches."""

    value: Numbers
    error: Numbers
    runs: NDArray[np.int64]


def misses(size: Size, rao_blackwell: bool) -> Misses:
    """For each number of samples in `COUNTS`, each with a stream of its own."""
    squares = [
        np.array(
            [
                np.sum((one_step(samples, rao_blackwell, seed, block) - expected()) ** 2)
                for block in range(max(BUDGET[size] // samples, 2))
            ]
        )
        for seed, samples in enumerate(COUNTS[size])
    ]
    value = np.sqrt([each.mean() for each in squares])
    error = np.array([each.std(ddof=1) / np.sqrt(len(each)) for each in squares]) / (2 * value)
    return Misses(value, error, np.array([len(each) for each in squares]))


def batch(samples: int) -> tuple[Numbers, Numbers, Numbers]:
    """Inputs, labels, and what every expert says about them."""
    lab = planted(DIM, KAPPA)
    inputs, labels, said = _batch(stream(lab.problem, 0, _PHASE), lab.units, lab.first, samples)
    return np.asarray(inputs), np.asarray(labels), np.asarray(said)


@eqx.filter_jit
def _batch(data: Stream, units: Units, first: Numbers, samples: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    drawn = data.samples(0, samples)
    return drawn.inputs, drawn.labels, expert_outputs(units, first, drawn.inputs)


@cache
def many_steps(noise: float, balance: float) -> Routed:
    """A router trained far beyond one step, from zero, with two planted units per expert."""
    lab = planted(DIM, KAPPA, each=2)
    record = np.unique(np.linspace(0, STEPS, RECORDS).round().astype(int))
    return route(
        stream(lab.problem, 0, _PHASE), lab.units, lab.first, samples=BATCH, steps=STEPS, step=STEP,
        router=Top1(noise), balance=balance, chunk=BATCH, record=tuple(record.tolist()),
    )  # fmt: skip
