"""Slopes and exponents against NumPy's own least squares, and intervals over seeds that cover as often as they say."""

import numpy as np
import pytest

from tutelage.analysis import lines


def test_slope_is_that_of_least_squares_for_each_column():
    random = np.random.default_rng(0)
    x, y = random.uniform(5, 6, 12), random.standard_normal((12, 3)) + 100
    np.testing.assert_allclose(lines.slope(x, y), np.polyfit(x, y, 1)[0], rtol=1e-10)
    np.testing.assert_allclose(lines.exponent(x, y), np.polyfit(np.log(x), np.log(y), 1)[0], rtol=1e-9)
    assert lines.slope(x, y[:, 0]).shape == ()


def test_intervals_over_seeds_cover():
    """Of 200 true exponents a 95 % interval misses 10; more than 24, or none, one time in ten thousand."""
    dims, random = np.array([10.0, 100.0, 1000.0]), np.random.default_rng(1)
    missed = 0
    for _ in range(200):
        times = dims[:, None] * np.exp(random.standard_normal((3, 12)))
        found = lines.exponent_over_seeds(dims, lambda chosen, of=times: of[:, chosen].mean(1), 12, resamples=200)
        missed += 1.0 not in found.interval
    assert 0 < missed <= 24


def test_no_interval_where_many_draws_have_no_number():
    dims, times = np.array([1.0, 10.0]), np.array([[1.0, 1.0, 1.0], [10.0, 10.0, np.inf]])
    found = lines.exponent_over_seeds(dims, lambda chosen: np.median(times[:, chosen], axis=1), 3)
    assert found.value == pytest.approx(1) and f"{found:.1f}" == "1.0 [no interval]"
    assert np.isnan(lines.exponent_over_seeds(dims, lambda chosen: times[:, chosen].mean(1), 1).interval.high)
