"""Full-batch descent on samples, as in Figure 1 of *Beyond NTK*: d = 30, m = 100, 10,000 examples."""

from collections.abc import Sequence
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

import tutelage as tt
from tutelage.bench.contest import Case, Contest, Entry, Limit
from tutelage.bench.limits import products
from tutelage.bench.relu import OWN, PEER, TORCH, Numbers

STEP = 0.2
Sizes = tuple[int, int, int, int]
"""Dimension, width, examples, updates."""


@cache
def _data(sizes: Sizes) -> tuple[Numbers, Numbers, Numbers]:
    """The start, and examples of the teacher `mean |z_i|`."""
    dim, width, samples, _ = sizes
    draw = np.random.default_rng(0)
    x = draw.standard_normal((samples, dim))
    return draw.standard_normal((width, dim)) / dim**0.5, x, np.abs(x).mean(1)


def ours(sizes: Sizes) -> Numbers:
    """The weights at the end."""
    dim, width, _, steps = sizes
    first, x, y = _data(sizes)
    student = tt.TwoLayer("abs", first=first, second=np.full(width, 1 / width), trains=("first",), tied=True)
    teacher = tt.TwoLayer("abs", first=np.eye(dim), second=np.full(dim, 1 / dim))
    run = tt.descend(
        tt.Problem(tt.Gaussian(dim), teacher, student),
        step=STEP,
        steps=steps,
        data=(x, y),
        rates={"first": 2.0 * width},
        record=tt.Record(2, observables=("loss",)),
        stop=tt.Stop(gradient=-1.0),
    )
    return np.asarray(run.final.first[0])


def plain(sizes: Sizes) -> Numbers:
    from tutelage.bench.peers import plain_jax

    first, x, y = map(jnp.asarray, _data(sizes))
    return np.asarray(jax.block_until_ready(plain_jax.on_samples(first, x, y, STEP * 2 * sizes[1], sizes[3])))


def torch(sizes: Sizes) -> Numbers:
    from tutelage.bench.peers import by_torch

    return by_torch.on_samples(*_data(sizes), STEP * 2 * sizes[1], sizes[3])


def contests(quick: bool) -> Sequence[Contest]:
    sizes = (10, 20, 500, 50) if quick else (30, 100, 10_000, 200)
    dim, width, samples, steps = sizes
    entries = (
        Entry("tutelage", partial(ours, sizes), steps, needs=OWN),
        Entry("plain JAX", partial(plain, sizes), steps, needs=PEER),
        Entry("PyTorch", partial(torch, sizes), steps, needs=TORCH),
    )
    return [
        Contest(
            f"d={dim}, m={width}, {samples} examples, {steps} updates", entries, 1e-8, "weights at the end",
            unit="update", goals={"plain JAX": 2.0, "PyTorch": 2.0}, first={"plain JAX": None}, headline=True,
            given=partial(_data, sizes),
            limit=Limit("two matrix products", partial(products, samples, dim, width)),
        )
    ]  # fmt: skip


REASON = "Most of an update are two matrix products (*limit*), which plain JAX makes by the same library."
CASE = Case("Full-batch descent on samples", contests, reason=REASON)
