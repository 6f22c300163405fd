"""Sums over many samples of a stream, of which only a chunk is in memory at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.dynamics.streams import Samples, Stream

Term = Callable[[Samples, Float[Array, "sample column"], Float[Array, " sample"]], Any]


def total(term: Term, stream: Stream, start: Array | int, count: Array | int, *, chunk: int, columns: int) -> Any:
    """The sum of `term(samples, uniforms, live)` over `count` samples from number `start` on; for compiled functions.

    `uniforms` has `columns` numbers a sample. `live` is 1, or 0 for rows beyond the last sample, which `term` has to
    leave out. Chunks are added one after the other, so that the same chunk size gives the same bits.
    """

    def part(number: Array) -> Any:
        done = number * chunk
        live = (done + jnp.arange(chunk) < count).astype(float)
        return term(stream.samples(start + done, chunk), stream.uniforms(start + done, chunk, columns), live)

    def add(number: Array, sums: Any) -> Any:
        return jax.tree.map(jnp.add, sums, part(number))

    shapes = jax.eval_shape(part, jnp.array(0))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.fori_loop(0, -(-jnp.asarray(count) // chunk), add, nothing)
