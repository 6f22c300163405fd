"""The default solver of large flows: order five where steps are short, stabilised where they are long."""

from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from tutelage.dynamics.chebyshev import RKC2, Flag, Memory, Stepped, Terms, Time, Vector, measured

SHORT = 2.0
"""Up to this, in units of one over the largest curvature, a step is made by Tsit5, which is stable up to 3.3."""


class Stabilised(diffrax.AbstractAdaptiveSolver[Memory]):
    """`Tsit5` for a step that it is stable for, `RKC2` for a longer one; the memory is that of `RKC2`.

    While units race or turn, accuracy limits the step, and order five is worth most. On plateaus nothing but the
    largest curvature does, and the stages of `RKC2` carry a step as far as error control permits.
    """

    chebyshev: RKC2 = RKC2()

    term_structure: ClassVar = diffrax.ODETerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms: Terms) -> int:
        return self.chebyshev.order(terms)

    def error_order(self, terms: Terms) -> int:
        return self.chebyshev.error_order(terms)

    def error_order_of(self, terms: Terms, width: Float[Array, ""] | float, memory: Memory) -> Float[Array, ""]:
        """The order of the error of a step of this width."""
        short, long = float(diffrax.Tsit5().order(terms)), float(self.error_order(terms))
        return jnp.where(self._short(width, memory), short, long)

    def first(self, memory: Memory) -> Float[Array, ""]:
        """A first step that is short by all measures; error control makes the next ones longer."""
        return 0.01 * SHORT / jnp.maximum(memory.bound, 1e-300)

    def longest(self, memory: Memory) -> Float[Array, ""]:
        """The longest step there is."""
        return self.chebyshev.longest(memory.bound)

    def func(self, terms: Terms, t0: Time, y0: PyTree, args: PyTree) -> PyTree:
        return self.chebyshev.func(terms, t0, y0, args)

    def init(self, terms: Terms, t0: Time, t1: Time, y0: PyTree, args: PyTree) -> Memory:
        return self.chebyshev.init(terms, t0, t1, y0, args)

    def step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: PyTree,
        args: PyTree,
        solver_state: Memory,
        made_jump: Flag,
    ) -> Stepped:
        field = lambda t, y: terms.vf(t, y, args)  # noqa: E731

        def short() -> tuple[Vector, Vector, Vector]:
            begin = (jnp.array(False), solver_state.velocity)
            done: Any = diffrax.Tsit5().step(terms, t0, t1, y0, args, begin, jnp.asarray(made_jump))
            y1, error, _, (_, velocity), _ = done
            return y1, error, velocity

        def long() -> tuple[Vector, Vector, Vector]:
            move, error, velocity = self.chebyshev.move(field, t0, t1, terms.contr(t0, t1), y0, solver_state)
            return y0 + move, error, velocity

        y1, error, velocity = jax.lax.cond(self._short(t1 - t0, solver_state), short, long)
        memory = measured(field, t1, y1, solver_state._replace(velocity=velocity))
        return y1, error, {"y0": y0, "y1": y1}, memory, diffrax.RESULTS.successful

    def _short(self, width: Time, memory: Memory) -> Bool[Array, ""]:
        return jnp.asarray(width) * memory.bound <= SHORT
