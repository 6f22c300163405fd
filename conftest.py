"""For all tests, doctests included: compiled programs are let go before they use up the process's memory maps."""

from pathlib import Path

import jax
import pytest

MAPS = Path("/proc/self/maps")
MANY = 15_000  # Linux allows 65530 a process; beyond that it ends in a segmentation fault


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    yield
    if MAPS.exists() and MAPS.read_text().count("\n") > MANY:
        jax.clear_caches()
