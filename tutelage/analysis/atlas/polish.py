"""Newton's method for many points at once: from the end of a descent to the stationary point itself."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import NDArray

from tutelage.analysis.landscape.local import Chart, Free, loss, slope
from tutelage.dynamics.batch import one_factorisation
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights

STEPS = 16
"""The most of Newton, from a gradient of 1e-5: two or three suffice where the Hessian is regular, a degenerate point
halves its distance with each."""
ENOUGH = 1e-15
"""A gradient, over the length of the weights, below which steps move nothing but rounding."""
NEGLIGIBLE = 1e-10
"""Eigenvalues below this part of the largest are rounding: along them a point stays where it is."""
LANE = 64
"""Points of one batch."""
NEAR = 0.1
"""How far Newton may go, as a part of the length of the largest unit: beyond, it has found another point."""


class _Going(NamedTuple):
    """A point on its way, how many steps were made, and whether the last one made the gradient smaller."""

    vector: Free
    size: Float[Array, ""]
    made: Int[Array, ""]
    better: Bool[Array, ""]


class Polished(NamedTuple):
    """Points after Newton's steps, along a first axis: weights, losses, gradient norms, eigenvalues of the Hessian in
    the frame (ascending), and whether the point is near the one that it began from and not above it. Arrays of NumPy
    once they are all there."""

    weights: Weights
    loss: Any
    slope: Any
    eigenvalues: Any
    near: Any

    def at(self, chosen: NDArray[np.intp] | NDArray[np.bool_] | int) -> "Polished":
        """Some of them."""
        return jax.tree.map(lambda leaf: leaf[chosen], self)


def polish(oracle: AbstractOracle, ends: Weights, trains: tuple[str, ...]) -> Polished:
    """Stationary points beside a batch of weights."""
    count = len(ends.first)
    lanes = -(-count // LANE)
    padded = jax.tree.map(lambda leaf: np.resize(np.asarray(leaf), (lanes * LANE, *leaf.shape[1:])), ends)
    parts = []
    with one_factorisation:
        for lane in range(lanes):
            some = jax.tree.map(lambda leaf, lane=lane: leaf[lane * LANE : (lane + 1) * LANE], padded)
            parts.append(jax.device_get(_newton(oracle, jax.device_put(some), trains)))
    whole: Polished = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)
    return whole


@eqx.filter_jit
def _newton(oracle: AbstractOracle, starts: Weights, trains: tuple[str, ...]) -> Polished:
    def one(start: Weights) -> Polished:
        here = Chart(oracle, start, trains)
        begin = here.vector()
        end = _ended(here, begin)
        low, before = loss(end, here), loss(begin, here)
        near = jnp.linalg.norm(end - begin) <= NEAR * here.scale()
        rounding = 1e-13 * (1 + jnp.abs(before))
        values = jnp.linalg.eigvalsh(_symmetric(here, end))
        return Polished(here.place(end), low, _size(here, end), values, near & (low <= before + rounding))

    return jax.vmap(one)(starts)


def _ended(here: Chart, begin: Free) -> Free:
    """Where the steps end. One that was refused would be refused again, so that it is the last."""
    start = _Going(begin, _size(here, begin), jnp.zeros((), jnp.int32), jnp.array(True))
    least = ENOUGH * jnp.maximum(1.0, jnp.linalg.norm(begin))

    def goes_on(now: _Going) -> Bool[Array, ""]:
        return now.better & (now.made < STEPS) & (now.size > least)

    end: _Going = jax.lax.while_loop(goes_on, lambda now: _step(here, now), start)
    return end.vector


def _step(here: Chart, now: _Going) -> _Going:
    """One step, if it makes the gradient smaller."""
    values, axes = jnp.linalg.eigh(_symmetric(here, now.vector))
    kept = jnp.abs(values) > NEGLIGIBLE * jnp.max(jnp.abs(values))
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    moved = now.vector - axes @ (inverse * (axes.T @ slope(now.vector, here)))
    size = _size(here, moved)
    better = size < now.size
    return _Going(jnp.where(better, moved, now.vector), jnp.where(better, size, now.size), now.made + 1, better)


def _symmetric(here: Chart, vector: Free) -> Float[Array, "free free"]:
    matrix = here.hessian(vector)
    return (matrix + matrix.T) / 2


def _size(here: Chart, vector: Free) -> Float[Array, ""]:
    return jnp.linalg.norm(slope(vector, here))
