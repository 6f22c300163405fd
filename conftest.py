"""For all tests, doctests included: annotations are checked, arrays are not promoted in silence, and compiled programs
are let go before they use up the process's memory maps."""

import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path

# Arrays of different numbers of axes, or of different types, meet only where the code says how: in every thread, and in
# the processes that tests start.
os.environ |= {"JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_NUMPY_DTYPE_PROMOTION": "strict"}

import jax  # noqa: E402
import pytest  # noqa: E402
import typechecking  # noqa: E402

CHECKED = (
    *("problem", "oracle", "dynamics", "verbs"),
    *(f"trajectory.{name}" for name in ("asked", "dataset", "findings", "joining", "observables", "result", "running")),
)
"""Where annotations are checked. Not in papers and `trajectory.measures`, whose functions are a part of the names of
runs and sweeps and must not be wrapped; not yet in analysis, where NumPy gives a number for an array without axes."""
typechecking.install(*(f"tutelage.{name}" for name in CHECKED))  # before anything imports tutelage

collect_ignore_glob = [] if find_spec("torch") else ["tutelage/bench/peers/by_torch*.py"]
"""What is compared with, where it is installed."""
ROOT = Path(__file__).parent
PROMOTING = (
    *("tests/papers", "tests/present", "tests/study", "tests/bench", "tutelage/papers", "tutelage/present"),
    *("tests/contracts/test_papers", "tests/test_docs", "tests/test_fuzz"),
)
"""What runs whole papers, in which arrays may still be made alike in silence; take one out when it is ready."""

MAPS = Path("/proc/self/maps")
MANY = 15_000  # Linux allows 65530 per process; beyond that it ends in a segmentation fault


@pytest.fixture(autouse=True, scope="module")
def promotion(request):
    if not request.path.relative_to(ROOT).as_posix().startswith(PROMOTING):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, strict, usual in (("rank", "raise", "allow"), ("dtype", "strict", "standard")):
            patch.delenv(f"JAX_NUMPY_{name.upper()}_PROMOTION")
            jax.config.update(f"jax_numpy_{name}_promotion", usual)
            request.addfinalizer(partial(jax.config.update, f"jax_numpy_{name}_promotion", strict))
        yield


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    yield
    if MAPS.exists() and MAPS.read_text().count("\n") > MANY:
        jax.clear_caches()
