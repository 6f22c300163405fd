"""Optimisers: what a few coordinates of input space permit, and which parts of a state turn with them.

In law, examples are drawn in a few coordinates whose columns turn and come and go. An optimiser may be used there if it
commutes with rotations of input space and does not count its dimensions. Then all that it keeps of the shape of the
incoming weights, such as a momentum, consists of vectors in input space, and these turn with the weights.
"""

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from tutelage._errors import BadInput

if TYPE_CHECKING:
    from optax import GradientTransformation

Layers = dict[str, Array]

# Sizes of the trial gradients: an optimiser may do something else with small or large ones.
_SCALES = 10.0 ** np.arange(-8, 9, 2)
_TURNS, _TEACHERS, _OTHERS = 3, 2, 5


def updated(optimiser: "GradientTransformation", gradient: Layers, state: Any, weights: Layers) -> tuple[Layers, Any]:
    """What an optimiser adds to the weights, and its new state. optax relies on implicit promotion."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        moves, state = optimiser.update(gradient, state, weights)
    return moves, state


def vectors(optimiser: "GradientTransformation", layers: Layers) -> tuple[bool, ...]:
    """For each leaf of the optimiser's state, whether it gets a column when the incoming weights do."""
    narrow, wide = (jax.tree.leaves(jax.eval_shape(optimiser.init, widened(layers, extra))) for extra in (0, 1))
    return tuple(a.shape != b.shape for a, b in zip(narrow, wide, strict=True))


def widened(layers: Layers, extra: int) -> Layers:
    """The layers, the incoming one with `extra` columns of zeros more."""
    return {name: widen(leaf, extra) if name == "first" else leaf for name, leaf in layers.items()}


def widen(rows: Array, extra: int) -> Array:
    """Rows with `extra` zeros more."""
    return jnp.pad(rows, ((0, 0), (0, extra)))


def check_optimiser(optimiser: Any) -> None:
    """Refuse what is no optimiser."""
    if not all(callable(getattr(optimiser, part, None)) for part in ("init", "update")):
        raise BadInput(f"optimiser is {optimiser!r}, but one of optax was expected, such as optax.sgd(0.1).")


def check_lawful(optimiser: "GradientTransformation", layers: dict[str, tuple[int, int]], way_out: str) -> None:
    """Refuse an optimiser that depends on the axes of input space or on their number, by trying it.

    `layers`: the shapes of the layers that train; `way_out`: what to do instead.
    """
    if not _lawful(optimiser, tuple(layers.items())):
        raise BadInput(
            "The optimiser depends on the axes of input space or on their number, as Adam does, so that a few "
            f"coordinates do not tell what it does; {way_out}."
        )


@functools.lru_cache(maxsize=64)
def _lawful(optimiser: "GradientTransformation", layers: tuple[tuple[str, tuple[int, int]], ...]) -> bool:
    """Tried once for each optimiser: the trial has to be compiled."""
    return _keeps_rows(optimiser, dict(layers)) and _commutes(optimiser, dict(layers))


def _keeps_rows(optimiser: "GradientTransformation", layers: dict[str, tuple[int, int]]) -> bool:
    """What grows with the incoming weights must have their shape, so that it can be turned as they are."""
    start = {name: jnp.zeros(shape) for name, shape in layers.items()}
    leaves = jax.tree.leaves(jax.eval_shape(optimiser.init, start))
    moving = zip(leaves, vectors(optimiser, start), strict=True)
    return all(leaf.shape == layers["first"] for leaf, moves in moving if moves)


def _commutes(optimiser: "GradientTransformation", layers: dict[str, tuple[int, int]]) -> bool:
    """Whether turning, or adding empty dimensions, before or after updates of random weights gives the same."""
    draw = np.random.default_rng(0)
    sizes = {name: (shape[0], _TEACHERS + _OTHERS if name == "first" else shape[1]) for name, shape in layers.items()}
    tried = {name: jnp.asarray(draw.standard_normal((_TURNS + 1, *size))) for name, size in sizes.items()}
    rotation = np.eye(_TEACHERS + _OTHERS)
    rotation[_TEACHERS:, _TEACHERS:] = np.linalg.qr(draw.standard_normal((_OTHERS, _OTHERS)))[0]

    def turn(layers: Layers) -> Layers:
        return {name: leaf @ rotation if name == "first" else leaf for name, leaf in layers.items()}

    def lift(layers: Layers) -> Layers:
        return widened(layers, _OTHERS)

    @jax.jit
    @jax.vmap
    def same(scale: Array) -> Bool[Array, ""]:
        plain = _updates(optimiser, tried, scale, lambda layers: layers)
        other = [_updates(optimiser, tried, scale, change) for change in (turn, lift)]
        wanted = [[change(layers) for layers in plain] for change in (turn, lift)]
        return jnp.all(jnp.stack(jax.tree.leaves(jax.tree.map(_close, other, wanted))))

    return bool(np.all(same(jnp.asarray(_SCALES))))


def _updates(optimiser: "GradientTransformation", tried: Layers, scale: Array, change: Any) -> list[Layers]:
    """The updates that the optimiser makes of random gradients from random weights, all of them changed beforehand."""
    start, *gradients = [change({name: scale * leaf[i] for name, leaf in tried.items()}) for i in range(_TURNS + 1)]
    weights, state, made = start, optimiser.init(start), []
    for gradient in gradients:
        update, state = updated(optimiser, gradient, state, weights)
        weights = {name: leaf + update[name] for name, leaf in weights.items()}
        made.append(update)
    return made


def _close(left: Array, right: Array) -> Bool[Array, ""]:
    # Rounding gives 1e-15; an update that is different differs by a good part of itself.
    return jnp.max(jnp.abs(left - right)) <= 1e-6 * jnp.max(jnp.abs(right))
