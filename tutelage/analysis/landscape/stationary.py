"""Zeros of the gradient, by Levenberg-Marquardt and Newton."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jaxtyping import Array, Float

from tutelage._errors import unknown
from tutelage.analysis.landscape.local import BOTH, Chart, Free, chart, loss, slope
from tutelage.dynamics.batch import one_factorisation
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights
from tutelage.problem.trees import flatten


@dataclass(frozen=True)
class Stationary:
    """Where a solver for `gradient = 0` ended; `found` says whether the gradient is below the tolerance there."""

    weights: Weights
    loss: float
    gradient_norm: float
    moved: float
    found: bool


def stationary_point(
    oracle: AbstractOracle,
    weights: Weights,
    *,
    method: str = "levenberg",
    tolerance: float = 1e-10,
    steps: int = 300,
    trains: tuple[str, ...] = BOTH,
) -> Stationary:
    """A zero of the gradient near `weights`.

    "levenberg" (the default) minimises the squared gradient by Levenberg-Marquardt, which finds its way from afar and
    through degenerate valleys, and ends with Newton steps; "newton" takes those only. Newton steps use the
    pseudo-inverse of the Hessian, so that a point is not moved along a flat valley. Layers not named in `trains`
    stay fixed.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.analysis import landscape
    >>> target = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> oracle = tt.PopulationOracle(student="relu", teacher="linear", target=target)
    >>> near = tt.Weights(first=jnp.array([[1.1, 0.1], [-0.9, 0.2]]), second=jnp.array([[0.8], [-1.0]]))
    >>> landscape.stationary_point(oracle, near).found
    True

    ```
    """
    if method not in ("levenberg", "newton"):
        raise unknown("method", method, ("levenberg", "newton"))
    here = chart(oracle, weights, trains)
    ends, losses, sizes = solve(oracle, batch_of_one(here.base), here.trains, method, steps)
    end = member(ends, 0)
    moved = float(jnp.linalg.norm(flatten(end) - flatten(here.base)))
    return Stationary(end, float(losses[0]), float(sizes[0]), moved, bool(sizes[0] <= tolerance))


Solved = tuple[Weights, Float[Array, " start"], Float[Array, " start"]]


def solve(oracle: AbstractOracle, starts: Weights, trains: tuple[str, ...], method: str, steps: int) -> Solved:
    """For a batch of starts: the weights where the solver ended, and the loss and gradient norm there."""
    with one_factorisation:
        solved: Solved = jax.block_until_ready(_solve(oracle, starts, trains, method, steps))
    return solved


@eqx.filter_jit
def _solve(oracle: AbstractOracle, starts: Weights, trains: tuple[str, ...], method: str, steps: int) -> Solved:

    def one(start: Weights) -> tuple[Weights, Float[Array, ""], Float[Array, ""]]:
        here = Chart(oracle, start, trains)
        end = _newton(here, here.vector(), steps) if method == "newton" else _levenberg(here, steps)
        return here.place(end), loss(end, here), jnp.linalg.norm(slope(end, here))

    return jax.vmap(one)(starts)


# Newton steps leave out eigenvalues below this part of the largest, which are rounding: along them the point stays.
_NEGLIGIBLE = 1e-12


def _newton(here: Chart, start: Free, steps: int) -> Free:
    solver: Any = optx.Newton(1e-15, 1e-15, linear_solver=lx.SVD(rcond=_NEGLIGIBLE))
    return optx.root_find(slope, solver, start, here, max_steps=steps, throw=False).value


def _levenberg(here: Chart, steps: int) -> Free:
    solver: Any = optx.LevenbergMarquardt(1e-15, 1e-15)
    found = optx.least_squares(slope, solver, here.vector(), here, max_steps=steps, throw=False).value
    # The damping shrinks more slowly than the Hessian does in a degenerate valley, where Newton halves the distance
    # at each step. Its end is kept if it is better and still the same place.
    final = _newton(here, found, 50)
    better = jnp.linalg.norm(slope(final, here)) < jnp.linalg.norm(slope(found, here))
    near = jnp.linalg.norm(final - found) < 0.1 * here.scale()
    return jnp.where(better & near, final, found)


def member(batch: Weights, index: int) -> Weights:
    """One set of weights out of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], batch)


def batch_of_one(weights: Weights) -> Weights:
    return jax.tree.map(lambda leaf: leaf[None], weights)
