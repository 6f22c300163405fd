"""Where a function of one number, or its slope, jumps: found by looking, so that none goes unnoticed."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from tutelage._errors import BadInput

Function = Callable[[Array], Array]
"""Of one number, traced by JAX."""

REACH, PLACES = 8.0, 12
"""How far from 0 jumps are looked for, and to how many decimals they are found."""


def one_sided(fn: Function, point: float, side: int) -> float:
    """The limit of `fn` at `point` from one side, by cubic extrapolation: right to 6e-14 of the fourth derivative."""
    step = side * max(1.0, abs(point)) / 2048
    values = jax.vmap(fn)(point + step * jnp.arange(1.0, 5.0))
    return float(values @ jnp.array([4.0, -6.0, 4.0, -1.0]))


def jump(fn: Function, point: float) -> float:
    """By how much `fn` rises at `point`."""
    return one_sided(fn, point, +1) - one_sided(fn, point, -1)


def refuse_jumps(fn: Function, name: str, kinks: tuple[float, ...]) -> None:
    """Refuse a function that jumps elsewhere than at a known 0, or whose slope jumps at a point that was not stated."""
    whole = jax.jit(jax.vmap(fn))
    if places := find_jumps(whole, tuple(k for k in kinks if k == 0)):
        raise BadInput(f"The activation {name!r} jumps near {_listed(places)}; {_advice(name, places, kinks)}")
    if places := find_jumps(jax.jit(jax.vmap(jax.grad(fn))), kinks):
        stated = sorted({*kinks, *places})
        raise BadInput(
            f"The slope of the activation {name!r} jumps near {_listed(places)}; pass all such points, as "
            f"tt.activation({name}, kinks=({_listed(stated)}{',' if len(stated) == 1 else ''}))."
        )


def _advice(name: str, places: list[float], kinks: tuple[float, ...]) -> str:
    if places == [0.0] and 0.0 not in kinks:
        return f"say so, as tt.activation({name}, kinks=(0,))."
    return "only functions that are continuous but at 0 can be used."


def _listed(places: list[float]) -> str:
    return ", ".join(f"{place:.12g}" for place in places)


def find_jumps(values: Function, known: tuple[float, ...] = ()) -> list[float]:
    """Points of [-8, 8] where a function seems to jump: the steepest cells of a grid, halved 40 times."""
    grid = np.linspace(-REACH, REACH, 1024)
    low, high = grid[:-1], grid[1:]
    away = np.all([(low > k) | (high < k) for k in known], axis=0) if known else np.full(len(low), True)
    f = np.asarray(values(jnp.asarray(grid)))
    if not np.all(np.isfinite(f)):
        return [float(grid[~np.isfinite(f)][0])]
    steepest = np.argsort(-np.abs(np.diff(f)) * away)[:16]
    steepest = steepest[away[steepest]]
    low, high = low[steepest], high[steepest]
    for _ in range(40):
        middle = (low + high) / 2
        ends = np.asarray(values(jnp.asarray(np.concatenate([low, middle, high])))).reshape(3, -1)
        left = np.abs(ends[1] - ends[0]) >= np.abs(ends[2] - ends[1])
        low, high = np.where(left, low, middle), np.where(left, middle, high)
    rise = np.abs(np.asarray(values(jnp.asarray(high))) - np.asarray(values(jnp.asarray(low))))
    found = rise > 1e-6 * (1 + np.max(np.abs(f)))
    # A cell is 1e-14 wide now, and 0 is nowhere in the grid: the last digits are not those of the point.
    return sorted({float(place) for place in np.round(high[found], PLACES) + 0.0})
