"""64 seeds of 8 ReLU students of 8 teachers, with all defaults: some seeds end in a spurious minimum."""

from collections.abc import Sequence
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry
from tutelage.bench.relu import OWN, PEER, Numbers, problem, starts

UNITS, STEP = 8, 0.1
SCALE = UNITS**-0.5


@cache
def _start(seeds: int) -> tuple[Numbers, Numbers]:
    return starts(problem(UNITS, UNITS, UNITS, SCALE), seeds)


def ours(seeds: int, steps: int) -> Numbers:
    """Overlaps (seed, student, teacher) at the end."""
    run = tt.descend(problem(UNITS, UNITS, UNITS, SCALE), step=STEP, steps=steps, seeds=seeds)
    return np.asarray(run.last("overlap").transpose("seed", "student", "teacher").values)


def numpy(seeds: int, steps: int) -> Numbers:
    from tutelage.bench.peers import plain_numpy

    first, teacher = _start(seeds)
    return plain_numpy.descend(first, teacher, STEP, steps) @ teacher.T


def plain(seeds: int, steps: int) -> Numbers:
    from tutelage.bench.peers import plain_jax

    first, teacher = map(jnp.asarray, _start(seeds))
    return np.asarray(jax.block_until_ready(plain_jax.descend_all(first, teacher, STEP, steps)) @ teacher.T)


def contests(quick: bool) -> Sequence[Contest]:
    seeds, steps = (4, 200) if quick else (64, 15_000)
    entries = (
        Entry("tutelage", partial(ours, seeds, steps), needs=OWN),
        Entry("NumPy", partial(numpy, seeds, steps), needs=("tutelage.bench.peers.plain_numpy",)),
        Entry("plain JAX", partial(plain, seeds, steps), needs=PEER),
    )
    name = f"{seeds} seeds, k=m=d={UNITS}, {steps} updates"
    return [Contest(name, entries, 1e-5, "overlaps at the end", goals={"NumPy": 1.0}, headline=True)]  # fmt: skip


CASE = Case("A batch of seeds with all defaults", contests)
