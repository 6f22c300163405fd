"""Functions of one seed applied to all seeds."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from tutelage.oracle.base import AbstractOracle

T = TypeVar("T")

one_factorisation = threading.RLock()
"""Held while a program runs that factorises a batch of matrices: one of these at a time in a process.

jaxlib 0.10 gives the members of such a batch to the pool of threads that the program itself runs on, and waits for
them. As many of these programs at once as the pool has threads, two on two cores, wait for ever.
"""


def each_seed(function: Callable[..., T], oracle: AbstractOracle, batched: bool, *per_seed: Any) -> T:
    """`function(oracle, *per_seed)` for all seeds at once; the oracle is each seed's own only if `batched`."""
    arrays, static = eqx.partition(oracle, eqx.is_array)
    if len(jax.tree.leaves(per_seed)[0]) == 1:
        # Without a batch axis the compiler does better: by a sixth in online SGD.
        own, rest = jax.tree.map(lambda leaf: leaf[0], (arrays if batched else None, per_seed))
        done = function(eqx.combine(own if batched else arrays, static), *rest)
        lone: T = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], done)
        return lone
    axes = (0 if batched else None, *(0 for _ in per_seed))
    return jax.vmap(lambda own, *rest: function(eqx.combine(own, static), *rest), in_axes=axes)(arrays, *per_seed)
