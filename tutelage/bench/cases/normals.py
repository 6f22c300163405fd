"""Normal numbers, as many at a time as an update of online SGD needs: inside a compiled loop, or array by array.

Nobody's numbers are anybody else's: everybody's must have the first four moments of a standard normal.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from tutelage.bench.contest import Case, Contest, Entry
from tutelage.bench.relu import OWN, TORCH, Numbers
from tutelage.dynamics.random import key_of, normals

SHAPE = 24, 512
"""Of the numbers of one update."""
MOMENTS, SPREAD = np.array([0.0, 1.0, 0.0, 3.0]), np.sqrt([1.0, 2.0, 15.0, 96.0])
"""Means of the first four powers of a normal number, and their standard deviations."""
Precision = Literal["float32", "float64"]
Draw = Callable[[jax.Array], jax.Array]


def own(dtype: Precision) -> Draw:
    key = jnp.asarray(key_of(0))
    return lambda turn: normals(key, turn.astype(float), 0, SHAPE, dtype)


def by_jax(dtype: Precision, kind: str) -> Draw:
    key = jax.random.key(0, impl=kind)
    return lambda turn: jax.random.normal(jax.random.fold_in(key, turn), SHAPE, dtype)


def by_numpy(dtype: Precision) -> Callable[[], Any]:
    draw = np.random.Generator(np.random.SFC64(0))
    return lambda: draw.standard_normal(SHAPE, dtype)


def by_torch(dtype: Precision) -> Callable[[], Any]:
    import torch

    draw, kind = torch.Generator().manual_seed(0), getattr(torch, dtype)
    return lambda: torch.randn(SHAPE, dtype=kind, generator=draw)


def deviations(numbers: Any) -> Numbers:
    """How far each moment is from what it should be, in its standard deviations."""
    z = np.asarray(numbers, float)
    means = np.array([np.mean(z**power) for power in (1, 2, 3, 4)])
    return np.asarray((means - MOMENTS) / SPREAD * z.size**0.5)


@cache
def _added(draw: Callable[[], Draw], turns: int) -> Callable[[], jax.Array]:
    """Numbers drawn in a compiled loop, and added up."""
    drawn = draw()
    like = jax.eval_shape(drawn, jnp.array(0))
    add = lambda turn, seen: seen + drawn(turn)  # noqa: E731
    return jax.jit(lambda: jax.lax.fori_loop(0, turns, add, jnp.zeros(like.shape, like.dtype)))


def _looped(name: str, draw: Callable[[], Draw], turns: int, needs: tuple[str, ...]) -> Entry:
    """Drawn in a compiled loop."""

    def shown() -> Numbers:
        return deviations(jax.jit(lambda: jax.lax.map(draw(), jnp.arange(turns)))())

    return Entry(name, lambda: np.asarray(_added(draw, turns)()), turns * SHAPE[0] * SHAPE[1], shown, needs)


def _filled(name: str, draw: Callable[[], Callable[[], Any]], turns: int, needs: tuple[str, ...]) -> Entry:
    """Drawn array by array."""

    def call() -> list[Any]:
        one = draw()
        return [one() for _ in range(turns)]

    return Entry(name, call, turns * SHAPE[0] * SHAPE[1], lambda: deviations(np.stack(call())), needs)


def worst(ours: Numbers, theirs: Numbers) -> float:
    return float(np.max(np.abs([ours, theirs])))


def contests(quick: bool) -> Sequence[Contest]:
    turns = 20 if quick else 200
    precisions: tuple[Precision, ...] = ("float32", "float64")
    return [
        Contest(
            f"{dtype}, arrays of {SHAPE[0]} by {SHAPE[1]}",
            (
                _looped("tutelage", partial(own, dtype), turns, OWN),
                _looped("JAX threefry", partial(by_jax, dtype, "threefry2x32"), turns, ("jax",)),
                _looped("JAX rbg", partial(by_jax, dtype, "rbg"), turns, ("jax",)),
                _filled("NumPy SFC64", partial(by_numpy, dtype), turns, ("numpy",)),
                _filled("PyTorch", partial(by_torch, dtype), turns, TORCH),
            ),
            5.0, "four moments of the numbers, in standard deviations", worst, "number",
        )
        for dtype in precisions
    ]  # fmt: skip


CASE = Case("Normal random numbers", contests)
