"""Shared by all tests: hypothesis without a clock and with fixed draws, so that a failure repeats."""

import itertools

import hypothesis
import jax
import matplotlib
import pytest

import tutelage.problem  # noqa: F401  (switches float64 on before any test makes an array)

hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile("fixed")


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Names of stores that do not exist yet, one after the other."""
    root = tmp_path_factory.mktemp("stores")
    return (root / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_store(monkeypatch, stores):
    """Every test has a store of its own; none writes into the working directory."""
    monkeypatch.setenv("TUTELAGE_STORE", str(next(stores)))


@pytest.fixture(scope="module")
def quickly_compiled():
    """Code that runs once is compiled without optimisation, in half the time; its numbers differ by roundings."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No test may leave global matplotlib settings changed."""
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
