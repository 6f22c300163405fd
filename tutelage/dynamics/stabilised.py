"""The default solver of large flows: order five where steps are short, stabilised where they are long."""

from functools import partial
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from tutelage.dynamics.chebyshev import RKC2, Memory, Taken, Terms, Time, Vector

SHORT = 2.0
"""Up to this, in units of one over the largest curvature, a step is made by Tsit5, which is stable up to 3.3."""


class Stabilised(RKC2):
    """`Tsit5` for a step that it is stable for, `RKC2` for a longer one.

    While units race or turn, accuracy limits the step, and order five is worth most. On plateaus nothing but the
    largest curvature does, and the stages of `RKC2` carry a step as far as error control permits.
    """

    def error_order_of(self, terms: Terms, width: Float[Array, ""] | float, memory: Memory) -> Float[Array, ""]:
        """The order of the error of a step of this width."""
        short, long = float(diffrax.Tsit5().order(terms)), float(self.error_order(terms))
        return jnp.where(self._short(width, memory), short, long)

    def first(self, memory: Memory) -> Float[Array, ""]:
        """A first step that is short by all measures; error control makes the next ones longer."""
        return 0.01 * SHORT / jnp.maximum(memory.bound, 1e-300)

    def taken(self, terms: Terms, t0: Time, t1: Time, y: Vector, args: PyTree, memory: Memory) -> Taken:
        def short() -> Taken:
            begin = (jnp.array(False), memory.velocity)
            done: Any = diffrax.Tsit5().step(terms, t0, t1, y, args, begin, jnp.array(False))
            y1, error, _, (_, velocity), _ = done
            return y1, error, velocity

        long = partial(super().taken, terms, t0, t1, y, args, memory)
        taken: Taken = jax.lax.cond(self._short(t1 - t0, memory), short, long)
        return taken

    def _short(self, width: Time, memory: Memory) -> Bool[Array, ""]:
        return jnp.asarray(width) * memory.bound <= SHORT
