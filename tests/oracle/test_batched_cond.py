"""The dear side runs when needed, and not otherwise, also in batches of batches."""

import jax
import jax.numpy as jnp
import numpy as np

from tutelage.oracle.batched_cond import compute_where


def test_values_in_batches_of_batches():
    def one(x, shift):
        return compute_where(x > 0, lambda y, s: {"a": jnp.sqrt(jnp.abs(y)) + s}, {"a": x}, x, shift)["a"]

    x = jnp.array([[4.0, -1.0, 9.0], [-2.0, -3.0, -4.0]])
    twice = jax.jit(jax.vmap(jax.vmap(one, in_axes=(0, None)), in_axes=(0, None)))
    expected = np.where(x > 0, np.sqrt(np.abs(x)) + 10.0, x)
    np.testing.assert_array_equal(twice(x, 10.0), expected)
    np.testing.assert_array_equal(jax.vmap(one)(x[0], jnp.arange(3.0)), [2.0, -1.0, 5.0])
    assert float(one(x[0, 0], 1.0)) == 3.0


def test_nothing_dear_is_computed_without_need():
    calls = []

    def dear(x):
        jax.debug.callback(lambda _: calls.append(1), x)
        return -x

    batch = jax.jit(jax.vmap(lambda x: compute_where(x > 0, dear, x, x)))
    jax.block_until_ready(batch(jnp.array([-1.0, -2.0])))
    jax.effects_barrier()
    assert not calls
    np.testing.assert_array_equal(batch(jnp.array([-1.0, 2.0])), [-1.0, -2.0])
    jax.effects_barrier()
    assert calls
