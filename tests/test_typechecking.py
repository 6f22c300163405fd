"""Annotations are checked in all tests, and arrays are nowhere promoted in silence."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import tutelage as tt
from tutelage.dynamics.descent import step_size
from tutelage.dynamics.neuron_sgd import WalkedNeurons
from tutelage.trajectory.dataset import packed

WRONG = {
    "a function": lambda: step_size(jnp.ones(2), None, jnp.zeros(())),
    "a method": lambda: tt.Truncation((2.0,)).moving(jnp.ones(3), jnp.zeros(())),
    "another folder": lambda: packed(3),
}
"""Arguments of wrong shapes and kinds, for which nobody has a sentence."""


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_seen(wrong):
    with pytest.raises(jaxtyping.TypeCheckError):
        wrong()


def test_attributes_are_checked_in_the_end():
    """And not what they were made from: a number of NumPy becomes one of Python."""
    assert tt.Descent(step=np.float32(0.5), steps=np.int64(3)).steps == 3
    with pytest.raises(jaxtyping.TypeCheckError, match="WalkedNeurons"):
        WalkedNeurons(*[jnp.zeros(())] * 6)


@pytest.mark.parametrize("refused", [lambda: tt.Descent("a", 3), lambda: tt.Record(-3), lambda: tt.Top1("a")])
def test_a_sentence_of_the_package_comes_first(refused):
    with pytest.raises(tt.BadInput):
        refused()


def promote(kind: str) -> None:
    left, right = {"rank": (jnp.ones(2), jnp.ones((3, 2))), "dtype": (jnp.ones(2), jnp.arange(2))}[kind]
    left + right


@pytest.mark.parametrize("kind", ["rank", "dtype"])
def test_promotions_are_errors_in_every_thread(kind):
    with pytest.raises(ValueError, match="promotion"):
        promote(kind)
    with ThreadPoolExecutor() as pool, pytest.raises(ValueError, match="promotion"):
        pool.submit(promote, kind).result()


def test_promotions_are_errors_in_other_processes():
    code = "import jax.numpy as jnp; jnp.ones(2) + jnp.ones((3, 2))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "rank_promotion" in done.stderr
