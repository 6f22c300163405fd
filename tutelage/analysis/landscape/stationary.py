"""Zeros of the gradient, by Levenberg-Marquardt and Newton."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jaxtyping import Array, Float

from tutelage.analysis.landscape.local import Chart, Free, loss, slope
from tutelage.dynamics.batch import one_factorisation
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights

STEPS = 300
"""The most of Levenberg-Marquardt."""


Solved = tuple[Weights, Float[Array, " start"], Float[Array, " start"]]


def solve(oracle: AbstractOracle, starts: Weights, trains: tuple[str, ...]) -> Solved:
    """Zeros of the gradient near a batch of starts: where the solver ended, and the loss and gradient norm there.

    Levenberg-Marquardt minimises the squared gradient, which finds its way from afar and through degenerate valleys;
    then come Newton steps, by the pseudo-inverse of the Hessian, so that a point is not moved along a flat valley.
    Layers not named in `trains` stay fixed.
    """
    with one_factorisation:
        solved: Solved = jax.block_until_ready(_solve(oracle, starts, trains))
    return solved


@eqx.filter_jit
def _solve(oracle: AbstractOracle, starts: Weights, trains: tuple[str, ...]) -> Solved:
    def one(start: Weights) -> tuple[Weights, Float[Array, ""], Float[Array, ""]]:
        here = Chart(oracle, start, trains)
        end = _levenberg(here)
        return here.place(end), loss(end, here), jnp.linalg.norm(slope(end, here))

    return jax.vmap(one)(starts)


# Newton steps leave out eigenvalues below this part of the largest, which are rounding: along them the point stays.
_NEGLIGIBLE = 1e-12


def _levenberg(here: Chart) -> Free:
    solver: Any = optx.LevenbergMarquardt(1e-15, 1e-15)
    found = optx.least_squares(slope, solver, here.vector(), here, max_steps=STEPS, throw=False).value
    # The damping shrinks more slowly than the Hessian does in a degenerate valley, where Newton halves the distance
    # at each step. Its end is kept if it is better and still the same place.
    newton: Any = optx.Newton(1e-15, 1e-15, linear_solver=lx.SVD(rcond=_NEGLIGIBLE))
    final = optx.root_find(slope, newton, found, here, max_steps=50, throw=False).value
    better = jnp.linalg.norm(slope(final, here)) < jnp.linalg.norm(slope(found, here))
    near = jnp.linalg.norm(final - found) < 0.1 * here.scale()
    return jnp.where(better & near, final, found)


def member(batch: Weights, index: int) -> Weights:
    """One set of weights out of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], batch)


def batch_of_one(weights: Weights) -> Weights:
    return jax.tree.map(lambda leaf: leaf[None], weights)
