"""For all tests, doctests included: annotations are checked, arrays are not promoted in silence, and compiled programs
are let go before they use up the process's memory maps."""

from importlib.util import find_spec
from pathlib import Path

import jax
import jaxtyping
import pytest

# Before anything imports tutelage.
CHECKED = (
    *("problem", "oracle", "trajectory.observables"),
    *(f"dynamics.{name}" for name in ("batch", "chebyshev", "equivariance", "events", "loop", "random", "stabilised")),
    *(f"dynamics.{name}" for name in ("snapshot", "streams")),
)
"""What takes arrays. A module that refuses bad arguments with a sentence of its own must get to see them first."""
jaxtyping.install_import_hook([f"tutelage.{name}" for name in CHECKED], "typechecking.check")

ROOT = Path(__file__).parent
collect_ignore_glob = [] if find_spec("torch") else ["tutelage/bench/peers/by_torch*.py"]
"""What is compared with, where it is installed."""
CAREFUL = ("problem", "oracle", "trajectory", *(f"dynamics/test_{name}" for name in ("blocks", "router", "streams")))
"""Folders and tests whose arrays are not silently made alike. Elsewhere in the package some still are; add one when
it is ready."""

MAPS = Path("/proc/self/maps")
MANY = 15_000  # Linux allows 65530 per process; beyond that it ends in a segmentation fault


@pytest.fixture(autouse=True)
def nothing_is_promoted(request):
    """Arrays of different numbers of axes, or of different types, meet only where the code says how."""
    place = request.path.relative_to(ROOT).as_posix().partition("/")[2]
    if not place.startswith(CAREFUL):
        yield
        return
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    yield
    if MAPS.exists() and MAPS.read_text().count("\n") > MANY:
        jax.clear_caches()
