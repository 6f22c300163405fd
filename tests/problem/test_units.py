"""Units with biases: values and slopes written out, the laws that experts are drawn from, and what is refused.

Statistical tests have a false-alarm rate of `LEVEL` each, shared out among their quantities; seeds are fixed.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import eval_hermitenorm

import tutelage as tt

LEVEL = 1e-4


def test_values_and_slopes_of_one_activation():
    units = tt.Units(jnp.ones(3), jnp.asarray([0.0, 0.5, -1.0]), kind=tt.activation("relu"))
    pre = np.random.default_rng(0).normal(size=(20, 3))
    z = pre + np.array([0.0, 0.5, -1.0])
    np.testing.assert_allclose(units.value(jnp.asarray(pre)), np.maximum(z, 0), atol=1e-15)
    np.testing.assert_array_equal(units.slope(jnp.asarray(pre)), (z > 0).astype(float))


def test_units_that_jump_have_no_slope_to_follow():
    units = tt.Units(jnp.ones(1), jnp.zeros(1), kind=tt.activation("step"))
    assert units.value(jnp.array([0.3]))[0] == 1
    with pytest.raises(tt.BadInput, match="slope of 0"):
        units.slope(jnp.array([0.3]))


@pytest.mark.parametrize("lowest", [0, 1, 3])
def test_values_and_slopes_of_random_polynomials(lowest):
    draw = np.random.default_rng(1)
    signs, bias = draw.choice([-1.0, 1.0], (2, 3, 4)), draw.normal(size=(2, 3))
    units = tt.Units(jnp.ones((2, 3)), jnp.asarray(bias), jnp.asarray(signs), lowest=lowest)
    pre = draw.normal(size=(5, 2, 3))
    z, orders = pre + bias, range(lowest, lowest + 4)
    wanted = sum(signs[..., n] * eval_hermitenorm(i, z) / math.sqrt(math.factorial(i)) for n, i in enumerate(orders))
    # Values of up to a hundred, a dozen roundings.
    np.testing.assert_allclose(units.value(jnp.asarray(pre)), wanted, rtol=1e-12, atol=1e-12)
    h = 1e-4
    low, high = (np.asarray(units.value(jnp.asarray(pre + sign * h))) for sign in (-1, 1))
    # Central differences: h^2/6 of the third derivative, at most 1e4 here, and rounding 1e-14/h.
    np.testing.assert_allclose(units.slope(jnp.asarray(pre)), (high - low) / (2 * h), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", ["relu", (2, 4)])
def test_single_precision_stays_single(kind):
    units = tt.Experts(2, 3, kind, bias=1.0).units(np.random.default_rng(0))
    pre = jnp.ones((4, 2, 3), jnp.float32)
    assert units.value(pre).dtype == units.slope(pre).dtype == jnp.float32
    np.testing.assert_allclose(units.value(pre), units.value(pre.astype(float)), rtol=0, atol=1e-4)


def test_experts_as_drawn():
    law = tt.Experts(40, 50, (2, 5), bias=0.7)
    units, first = law.draw(np.random.default_rng(2), dim=6)
    assert first.shape == (40, 50, 6) and units.signs.shape == (40, 50, 4)
    # A norm is right to a few roundings.
    np.testing.assert_allclose(np.linalg.norm(first, axis=-1), 1.0, rtol=1e-15, atol=1e-15)
    for signs in (np.asarray(units.outgoing), np.asarray(units.signs)):
        assert set(np.unique(signs)) == {-1.0, 1.0}
        assert stats.binomtest(int(np.sum(signs > 0)), signs.size).pvalue > LEVEL / 3
    assert stats.kstest(np.ravel(units.bias), stats.uniform(-0.7, 1.4).cdf).pvalue > LEVEL / 3


def test_draws_repeat_and_biases_may_be_off():
    law = tt.Experts(2, 3, "relu")
    (one, first), (two, again) = (law.draw(np.random.default_rng(5), dim=4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(one.outgoing, two.outgoing)
    np.testing.assert_array_equal(one.bias, np.zeros((2, 3)))


@pytest.mark.parametrize(("dim", "size"), [(4, 3), (4, 1), (9, 5), (3, 3)])
def test_overlaps_have_the_law_of_the_first_entries(dim, size):
    """An entry squared is Beta(1/2, (dim-1)/2), and the first `size` of them add up to Beta(size/2, (dim-size)/2)."""
    found = tt.Experts(100, 40).overlaps(np.random.default_rng(3), dim, size).reshape(-1, size)
    level = LEVEL / (2 * size + 1)
    entry = stats.beta(0.5, (dim - 1) / 2)
    for column in found.T:
        assert stats.kstest(column**2, entry.cdf).pvalue > level
        assert stats.binomtest(int(np.sum(column > 0)), len(column)).pvalue > level
    total = np.sum(found**2, axis=1)
    if dim == size:
        np.testing.assert_allclose(total, 1.0, rtol=1e-14)
    else:
        assert stats.kstest(total, stats.beta(size / 2, (dim - size) / 2).cdf).pvalue > level


def test_overlaps_in_a_huge_dimension_are_normal():
    found = tt.Experts(100, 40).overlaps(np.random.default_rng(4), 10**12, 2)
    assert stats.kstest(1e6 * found.ravel(), stats.norm.cdf).pvalue > LEVEL


REFUSED = {
    "no experts": (lambda: tt.Experts(0, 3), "count is 0"),
    "half a unit": (lambda: tt.Experts(2, 1.5), "width is 1.5"),
    "a bias below 0": (lambda: tt.Experts(2, 3, bias=-1.0), "bias is -1.0"),
    "an infinite bias": (lambda: tt.Experts(2, 3, bias=np.inf), "bias is inf"),
    "orders upside down": (lambda: tt.Experts(2, 3, (4, 2)), "0 <= k <= p"),
    "half an order": (lambda: tt.Experts(2, 3, (1.5, 3)), "polynomials is 1.5"),
    "one order": (lambda: tt.Experts(2, 3, (4,)), "0 <= k <= p"),
    "an unknown name": (lambda: tt.Experts(2, 3, "none").units(np.random.default_rng(0)), "Unknown activation"),
    "more directions than dimensions": (
        lambda: tt.Experts(2, 3).overlaps(np.random.default_rng(0), 4, 5), "5 directions were asked for",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused(case):
    make, words = REFUSED[case]
    with pytest.raises(tt.BadInput, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")
