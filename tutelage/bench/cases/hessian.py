"""The spectrum of the Hessian of 20 ReLU students of 20 teachers in 100 dimensions: all 2000 eigenvalues."""

from collections.abc import Sequence
from functools import cache, partial

import jax.numpy as jnp
import numpy as np

import tutelage as tt
from tutelage.analysis import spectrum
from tutelage.bench.contest import Case, Contest, Entry
from tutelage.bench.relu import PEER, TORCH, Numbers, problem, starts

OWN = ("tutelage.analysis.landscape",)


@cache
def _start(units: int, dim: int) -> tuple[Numbers, Numbers]:
    first, teacher = starts(problem(units, units, dim, dim**-0.5), 1)
    return first[0], teacher


def ours(units: int, dim: int) -> Numbers:
    """All eigenvalues, ascending."""
    begin = problem(units, units, dim, dim**-0.5).begin(0)
    oracle = tt.PopulationOracle(student="relu", teacher="relu", target=begin.teacher)
    return np.asarray(spectrum(oracle, begin.student, dim=dim, trains=("first",)).eigenvalues)


def plain(units: int, dim: int) -> Numbers:
    from tutelage.bench.peers import plain_jax

    return np.asarray(plain_jax.spectrum(*map(jnp.asarray, _start(units, dim))))


def torch(units: int, dim: int) -> Numbers:
    from tutelage.bench.peers import by_torch

    return by_torch.spectrum(*_start(units, dim))


def contests(quick: bool) -> Sequence[Contest]:
    sizes = (4, 12) if quick else (20, 100)
    entries = (
        Entry("tutelage", partial(ours, *sizes), needs=OWN),
        Entry("jax.hessian", partial(plain, *sizes), needs=PEER),
        Entry("torch.autograd.functional.hessian", partial(torch, *sizes), needs=TORCH),
    )
    return [
        Contest(
            f"k=m={sizes[0]}, d={sizes[1]}", entries, 1e-8, "all eigenvalues", first={"jax.hessian": None},
            goals={"jax.hessian": 3.0, "torch.autograd.functional.hessian": 10.0}, headline=True,
            given=partial(_start, *sizes),
        )
    ]  # fmt: skip


CASE = Case("The spectrum of a Hessian, with its eigenvalues", contests)
