"""What a band shows: quantiles over seeds, with gaps and with what has not come."""

import numpy as np
import pytest
import xarray as xr

from tutelage.analysis.panels import band, spread


@pytest.mark.parametrize("seeds", [1, 2, 5, 10, 31])
def test_spread_is_numpys_quantiles(seeds):
    values = np.random.default_rng(seeds).standard_normal((seeds, 4))
    np.testing.assert_allclose(spread(values), np.quantile(values, [0.1, 0.5, 0.9], axis=0), atol=1e-12)
    np.testing.assert_allclose(spread(values.T, axis=1), spread(values))


def test_gaps_are_left_out_and_what_has_not_come_is_late():
    values = np.array([[1.0, 1.0, np.nan], [2.0, 2.0, np.nan], [3.0, np.inf, np.nan], [np.nan, np.inf, np.nan]])
    low, middle, high = spread(values)
    np.testing.assert_allclose(low, [1.2, 1.3, np.nan])
    np.testing.assert_array_equal(middle, [2.0, np.inf, np.nan])
    np.testing.assert_allclose(high, [2.8, np.inf, np.nan])
    np.testing.assert_array_equal(band([0, 1, 2], values).y, [2.0, np.nan, np.nan])


def test_thirty_one_seeds_of_which_the_last_are_late():
    """A tenth of thirty is no more than three, though 0.1 * 30 is."""
    values = np.append(np.arange(4.0), np.full(27, np.inf))
    assert spread(values)[0] == 3.0


def test_a_band_finds_the_seeds_by_name():
    values = xr.DataArray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dims=("time", "seed"))
    np.testing.assert_array_equal(band([0, 1], values, "loss").y, [2.0, 5.0])
