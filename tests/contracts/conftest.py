"""Shared by the contracts."""

import jax
import pytest


@pytest.fixture(scope="module")
def quickly_compiled():
    """Code that runs once is compiled without optimisation, in half the time; its numbers differ by roundings."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
