"""For all tests, doctests included: annotations are checked, arrays are not promoted in silence, and compiled programs
are let go before they use up the process's memory maps."""

import os
from importlib.util import find_spec
from pathlib import Path

# Arrays of different numbers of axes, or of different types, meet only where the code says how: in every thread, and in
# the processes that tests start.
os.environ |= {"JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_NUMPY_DTYPE_PROMOTION": "strict"}

import jax  # noqa: E402
import pytest  # noqa: E402
import typechecking  # noqa: E402

typechecking.install()  # before anything imports tutelage

collect_ignore_glob = [] if find_spec("torch") else ["tutelage/bench/peers/by_torch*.py"]
"""What is compared with, where it is installed."""
MAPS = Path("/proc/self/maps")
MANY = 15_000  # Linux allows 65530 per process; beyond that it ends in a segmentation fault


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    yield
    if MAPS.exists() and MAPS.read_text().count("\n") > MANY:
        jax.clear_caches()
