"""A dearer computation, made only where it is needed; in a batch, only when some member needs it."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

Value = TypeVar("Value")
"""An array, or a tree of them."""


def compute_where(needed: Bool[Array, "..."], expensive: Callable[..., Value], default: Value, *args: object) -> Value:
    """`expensive(*args)` where `needed`, else the value `default`.

    Under `jax.vmap` a `lax.cond` computes both sides for every member. Here `expensive` runs, for the whole batch,
    only in those evaluations in which at least one member needs it. It may not close over values that are being traced.

    ```python
    >>> import jax, jax.numpy as jnp
    >>> from tutelage.oracle.batched_cond import compute_where
    >>> root = jax.vmap(lambda x: compute_where(x > 0, jnp.sqrt, x, x))
    >>> root(jnp.array([4.0, -1.0])).tolist()
    [2.0, -1.0]

    ```
    """

    @custom_vmap
    def choose(needed: Any, default: Any, args: Any) -> Any:
        def both() -> Any:
            return jax.tree.map(lambda a, b: jnp.where(_like(needed, a), a, b), expensive(*args), default)

        return jax.lax.cond(jnp.any(needed), both, lambda: default)

    @choose.def_vmap
    def _(size: int, batched: Any, needed: Any, default: Any, args: Any) -> Any:
        def spread(leaf: Any, has: bool) -> Any:
            return leaf if has else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf)))

        needed, default = jax.tree.map(spread, (needed, default), tuple(batched[:2]))
        axes = jax.tree.map(lambda has: 0 if has else None, tuple(batched[2]))
        result = compute_where(needed, jax.vmap(expensive, in_axes=axes), default, *args)
        return result, jax.tree.map(lambda _: True, result)

    chosen: Value = choose(needed, default, args)
    return chosen


def _like(mask: Array, leaf: Array) -> Array:
    return mask.reshape(mask.shape + (1,) * (leaf.ndim - mask.ndim))
