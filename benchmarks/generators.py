"""Normal numbers inside a compiled loop: the generator of online SGD against those of JAX, NumPy and PyTorch.

Nanoseconds a number, one thread each. Within a loop the numbers are used up in a product with a small matrix, as SGD
does; the same loop without random numbers is subtracted. NumPy and PyTorch fill an array of the same shape.
"""

# isort: off
from _measure import interleaved, write  # first, because it fixes the number of threads

import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch

import tutelage.problem  # noqa: F401  (double precision is switched on)
from tutelage.dynamics.random import key_of, normals
# isort: on

SHAPE, TURNS = (24, 512), 400
NUMBERS = SHAPE[0] * SHAPE[1] * TURNS


def looped(draw, dtype: str):
    """A compiled loop that draws and multiplies."""
    matrix = jnp.asarray(np.random.default_rng(0).standard_normal((SHAPE[0],) * 2), dtype)

    @jax.jit
    def loop(total):
        return jax.lax.fori_loop(0, TURNS, lambda turn, seen: 0.5 * seen + matrix @ draw(turn, seen), total)

    start = jnp.zeros(SHAPE, dtype)
    return lambda: jax.block_until_ready(loop(start))


def compiled(dtype: str) -> dict[str, object]:
    own, key = jnp.asarray(key_of(0)), jax.random.key(0)
    hardware = jax.random.key(0, impl="rbg")
    return {
        "nothing": looped(lambda turn, seen: seen * seen + turn, dtype),
        "tutelage": looped(lambda turn, seen: normals(own, turn.astype(float), 0, SHAPE, dtype), dtype),
        "jax threefry": looped(
            lambda turn, seen: jax.random.normal(jax.random.fold_in(key, turn), SHAPE, dtype), dtype
        ),
        "jax rbg": looped(
            lambda turn, seen: jax.random.normal(jax.random.fold_in(hardware, turn), SHAPE, dtype), dtype
        ),
    }


def filled(dtype: str) -> dict[str, object]:
    """Outside a compiled loop."""
    host = np.random.Generator(np.random.SFC64(0))
    kind = getattr(torch, dtype)
    return {
        "numpy sfc64": lambda: [host.standard_normal(SHAPE, dtype) for _ in range(TURNS)],
        "torch": lambda: [torch.randn(SHAPE, dtype=kind) for _ in range(TURNS)],
    }


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    result = {}
    for dtype in ("float32", "float64"):
        seconds = interleaved(compiled(dtype) | filled(dtype), rounds)
        empty = seconds.pop("nothing")
        spent = {name: value - (0 if name in filled(dtype) else empty) for name, value in seconds.items()}
        result[dtype] = {name: value / NUMBERS * 1e9 for name, value in spent.items()}
    write("generators", {"shape": list(SHAPE), "nanoseconds_per_normal": result})


if __name__ == "__main__":
    main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 7)
