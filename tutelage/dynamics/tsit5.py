"""Tsit5 with its stages in one loop: the slope is compiled once and not six times."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike, NDArray

Vector = Float[Array, " parameters"]


_KNOWN = diffrax.Tsit5()
_ENDS = np.stack([_KNOWN.tableau.b_sol, _KNOWN.tableau.b_error])
STAGES = _ENDS.shape[1]
_LOWER = np.zeros((STAGES, STAGES))
for _stage, _row in enumerate(_KNOWN.tableau.a_lower, 1):
    _LOWER[_stage, : len(_row)] = _row


class Tsit5:
    """Diffrax's Tsit5, for one vector and a velocity that does not depend on time. It remembers the last velocity."""

    def func(self, terms: Any, t0: Any, y0: Vector, args: PyTree) -> Vector:
        velocity: Vector = terms.vf(t0, y0, args)
        return velocity

    def error_order(self, terms: Any) -> Any:
        return _KNOWN.error_order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Vector, args: PyTree) -> Vector:
        velocity: Vector = self.func(terms, t0, y0, args)
        return velocity

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Vector, args: PyTree, velocity: Vector, made_jump: Any
    ) -> tuple[Vector, Vector, dict[str, Any], Vector, Any]:
        del made_jump
        width, lower = t1 - t0, jnp.asarray(_LOWER)

        def stage(number: Array | int, slopes: Float[Array, "stage parameters"]) -> Float[Array, "stage parameters"]:
            slope = self.func(terms, t0, y0 + width * (lower[number] @ slopes), args)
            after: Array = jax.lax.dynamic_update_index_in_dim(slopes, slope, number, 0)
            return after

        begin = jnp.zeros((STAGES, len(y0))).at[0].set(velocity)
        slopes = jax.lax.fori_loop(1, STAGES, stage, begin)
        move, error = width * (jnp.asarray(_ENDS) @ slopes)
        return y0 + move, error, {"y0": y0, "k": width * slopes}, slopes[-1], diffrax.RESULTS.successful

    @staticmethod
    def inside(passed: tuple[Any, Any, Vector, Array], clock: Array) -> Vector:
        """Where the step from one time to another was at `clock`, by its polynomial."""
        begin, end, y0, k = passed
        found: Vector = _KNOWN.interpolation_cls(t0=begin, t1=end, y0=y0, y1=None, k=k).evaluate(clock)
        return found


def stiffness(width: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """How fast velocities change with position, by the last two stages of steps; 0 before the first.

    These are of one time. Where stability limits the step, they differ in the fastest direction. `k`: slopes times the
    width, with axes (..., stage, parameters).
    """
    moves = np.asarray(k)
    apart = np.linalg.norm((_LOWER[-1] - _LOWER[-2]) @ moves, axis=-1)
    change = np.linalg.norm(moves[..., -1, :] - moves[..., -2, :], axis=-1)
    rate: NDArray[np.float64] = np.divide(change, apart * width, out=np.zeros_like(change), where=apart > 0)
    return rate
