"""Normalised SGD, one sample at a time, of the vanilla network of *cluster_moe*: 500 ReLU units, 200 inputs.

Everybody meets the same samples in the same order. Tutelage draws them on the way; the others are given them.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry
from tutelage.bench.relu import OWN, PEER, TORCH, Numbers
from tutelage.dynamics.streams import stream
from tutelage.problem.clusters import antipodal

STEP, PART = 1e-4, 512
"""The others learn from so many samples."""
Precision = Literal["float64", "float32"]
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}


def _problem(dim: int, width: int) -> tt.Clustered:
    tasks = tt.Tasks(local=[{3: 1.0, 5: 1.0}, {3: 1.0, 4: 1.0}], shared={3: 1.0}, interference=(1.0, -1.0))
    return tt.Clustered(antipodal(dim, 3.0), tasks).taught_to(tt.Experts(1, width, "relu", 1.0))


def ours(dim: int, width: int, precision: Precision, samples: int) -> Numbers:
    """The weights (unit, dim) at the end."""
    move = tt.Spherical(samples, STEP, precision=precision)
    run = tt.run(_problem(dim, width), move, record=tt.Record([samples]))
    return np.asarray(run.final.first[0, 0])


@cache
def _given(dim: int, width: int, precision: Precision) -> tuple[NDArray[np.floating], ...]:
    """The start, what else the units are, and the samples."""
    problem = _problem(dim, width)
    start = tt.Spherical(PART, STEP, precision=precision).prepare(problem, [0]).start
    drawn = jax.jit(lambda: stream(problem, 0, 1, precision).samples(0, PART))()
    given = start.first[0, 0], start.units.outgoing[0, 0], start.units.bias[0, 0], drawn.inputs, drawn.labels
    return tuple(np.asarray(each, precision) for each in given)


def plain(dim: int, width: int, precision: Precision) -> Numbers:
    from tutelage.bench.peers import plain_jax

    first, out, bias, x, y = map(jnp.asarray, _given(dim, width, precision))
    return np.asarray(plain_jax.on_sphere(first, out, bias, x, y, STEP))


def torch(dim: int, width: int, precision: Precision) -> Numbers:
    from tutelage.bench.peers import by_torch

    first, out, bias, x, y = _given(dim, width, precision)
    return by_torch.on_sphere(first, out, bias, x, y, STEP)


def contests(quick: bool) -> Sequence[Contest]:
    dim, width, samples = (20, 30, 1024) if quick else (200, 500, 8 * 8192)
    found = []
    precisions: tuple[Precision, ...] = ("float64", "float32")
    for precision in precisions:
        sizes = dim, width, precision
        entries = (
            Entry("tutelage", partial(ours, *sizes, samples), samples, partial(ours, *sizes, PART), OWN),
            Entry("plain JAX", partial(plain, *sizes), PART, needs=PEER),
            Entry("PyTorch", partial(torch, *sizes), PART, needs=TORCH),
        )
        found.append(
            Contest(f"{width} units, d={dim}, {precision}", entries, TOLERANCE[precision],
                    f"weights after {PART} samples", unit="sample", headline=precision == "float32")
        )  # fmt: skip
    return found


CASE = Case("Spherical SGD of the vanilla network", contests)
