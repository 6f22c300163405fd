"""Tsit5 with its stages in one loop: the slope is compiled once and not six times."""

from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from tutelage.oracle.geometry import over

Vector = Float[Array, " parameters"]


class Memory(NamedTuple):
    """The velocity at the end of the last step, and how fast velocities change with position, by its last two stages.

    These are of one time. Where stability limits the step, they differ in the fastest direction.
    """

    velocity: Vector
    rate: Float[Array, ""]


_KNOWN = diffrax.Tsit5()
_WEIGHTS, _ERROR = (np.asarray(row) for row in (_KNOWN.tableau.b_sol, _KNOWN.tableau.b_error))
STAGES = len(_WEIGHTS)
_LOWER = np.zeros((STAGES, STAGES))
for _stage, _row in enumerate(_KNOWN.tableau.a_lower, 1):
    _LOWER[_stage, : len(_row)] = _row


class Tsit5:
    """Diffrax's Tsit5, for one vector and a velocity that does not depend on time."""

    def func(self, terms: Any, t0: Any, y0: Vector, args: PyTree) -> Vector:
        velocity: Vector = terms.vf(t0, y0, args)
        return velocity

    def error_order(self, terms: Any) -> Any:
        return _KNOWN.error_order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Vector, args: PyTree) -> Memory:
        return Memory(self.func(terms, t0, y0, args), jnp.zeros(()))

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Vector, args: PyTree, memory: Memory, made_jump: Any
    ) -> tuple[Vector, Vector, dict[str, Any], Memory, Any]:
        del made_jump
        width, lower = t1 - t0, jnp.asarray(_LOWER)

        def stage(number: Array | int, slopes: Float[Array, "stage parameters"]) -> Float[Array, "stage parameters"]:
            return slopes.at[number].set(self.func(terms, t0, y0 + width * (lower[number] @ slopes), args))

        begin = jnp.zeros((STAGES, len(y0))).at[0].set(memory.velocity)
        slopes = jax.lax.fori_loop(1, STAGES, stage, begin)
        y1 = y0 + width * (jnp.asarray(_WEIGHTS) @ slopes)
        error = width * (jnp.asarray(_ERROR) @ slopes)
        apart = width * jnp.linalg.norm((lower[-1] - lower[-2]) @ slopes)
        rate = over(jnp.linalg.norm(slopes[-1] - slopes[-2]), apart)
        dense = {"y0": y0, "k": width * slopes}
        return y1, error, dense, Memory(slopes[-1], rate), diffrax.RESULTS.successful

    @staticmethod
    def inside(passed: tuple[Any, Any, Vector, Array], clock: Array) -> Vector:
        """Where the step from one time to another was at `clock`, by its polynomial."""
        begin, end, y0, k = passed
        found: Vector = _KNOWN.interpolation_cls(t0=begin, t1=end, y0=y0, y1=None, k=k).evaluate(clock)
        return found
