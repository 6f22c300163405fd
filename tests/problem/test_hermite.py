"""Normalised Hermite polynomials: against SciPy's, and shifts of the argument against their expectations."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_hermitenorm

from tutelage.problem.hermite import moved, normalised, tabulated


def plain(order, z):
    return eval_hermitenorm(order, z) / math.sqrt(math.factorial(order))


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_table_is_scipys(count):
    z = np.linspace(-6, 6, 25).reshape(5, 5)
    table = np.asarray(tabulated(jnp.asarray(z), count))
    assert table.shape == (5, 5, count)
    # Each step of the recurrence rounds by 1e-16 of the largest value; near a zero only that is left.
    for i in range(count):
        np.testing.assert_allclose(table[..., i], plain(i, z), rtol=0, atol=1e-14 * np.max(np.abs(plain(i, z))))


def test_table_keeps_single_precision():
    table = tabulated(jnp.linspace(-3, 3, 7, dtype=jnp.float32), 6)
    assert table.dtype == jnp.float32
    # A dozen roundings of 6e-8 each, of values up to h_5(3) = 1.6.
    np.testing.assert_allclose(table, tabulated(jnp.linspace(-3.0, 3.0, 7), 6), rtol=0, atol=5e-6)


def test_table_is_orthonormal():
    z, weight = np.polynomial.hermite_e.hermegauss(16)
    table = np.asarray(tabulated(jnp.asarray(z), 12))
    gram = table.T @ (table * (weight / math.sqrt(2 * math.pi))[:, None])
    # 16 nodes are exact up to degree 31.
    np.testing.assert_allclose(gram, np.eye(12), atol=1e-12)


def test_roots_of_factorials():
    np.testing.assert_allclose(normalised(6), np.sqrt([1, 1, 2, 6, 24, 120]), rtol=1e-15)


@pytest.mark.parametrize("shift", [-3.0, -0.4, 0.0, 2.5])
def test_moved_has_the_expectations_of_products(shift):
    """`T[l, i] = E[h_i(Z + shift) h_l(Z)]`, by quadrature that is exact for these degrees."""
    count = 8
    z, weight = np.polynomial.hermite_e.hermegauss(12)
    weight = weight / math.sqrt(2 * math.pi)
    wanted = [[np.sum(weight * plain(i, z + shift) * plain(k, z)) for i in range(count)] for k in range(count)]
    found = np.asarray(moved(jnp.asarray(shift), count))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * np.max(np.abs(wanted)))
    assert np.all(np.tril(found, -1) == 0)


def test_shifts_add_up():
    one, two = (np.asarray(moved(jnp.asarray(s), 9)) for s in (0.7, -1.9))
    np.testing.assert_allclose(one @ two, moved(jnp.asarray(-1.2), 9), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(moved(jnp.asarray(0.0), 9), np.eye(9))


def test_moved_in_batches():
    shifts = jnp.asarray([[0.5, -1.0, 2.0]])
    found = moved(shifts, 5)
    assert found.shape == (1, 3, 5, 5)
    np.testing.assert_array_equal(found[0, 2], moved(jnp.asarray(2.0), 5))
