"""Shared by all tests: hypothesis without a clock and with fixed draws, so that a failure repeats."""

import hypothesis
import matplotlib
import pytest

import tutelage.problem  # noqa: F401  (switches float64 on before any test makes an array)

hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No test may leave global matplotlib settings changed."""
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
