"""What `benchmarks/compilations.py` counts."""

import sys

from benchmarks.compilations import Counted, twice

TWO_PROGRAMS = """
import jax, tutelage.problem
import jax.numpy as jnp

@jax.jit
def twice(x):
    return 2 * x

twice(1.0), twice(2.0), twice(jnp.ones(3))
"""


def test_programs_are_counted_and_then_loaded():
    runs = twice([sys.executable, "-c", TWO_PROGRAMS])
    cold, warm = runs["cold"], runs["warm"]
    assert (cold.compiled["twice"], cold.loaded["twice"]) == (2, 0)  # one for each shape
    assert (warm.compiled["twice"], warm.loaded["twice"]) == (0, 2)
    assert 0 < warm.cpu and 0 < cold.seconds["twice"]["compile"] < cold.cpu and cold.cache == warm.cache > 0


def test_other_lines_are_not_counted():
    found = Counted()
    assert not found.read("tutelage: descent (16/601, 6 s)\n") and not found.record()["compiled"]
