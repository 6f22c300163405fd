"""What nobody can do without, measured on this machine: random numbers, matrix products, the arithmetic of pairs."""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tutelage.dynamics.random import key_of, normals
from tutelage.oracle.geometry import from_chords
from tutelage.oracle.population import population_oracle
from tutelage.problem.problem import Problem
from tutelage.problem.trees import chosen_parts

ROUNDS = 5


def best(call: Callable[[], Any]) -> float:
    """The least seconds of a few calls after a first one."""
    call()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@cache
def normal(dtype: str) -> float:
    """Seconds for one normal number inside a compiled loop, with the generator of tutelage."""
    shape, turns, key = (24, 512), 400, jnp.asarray(key_of(0))

    @jax.jit
    def loop() -> jax.Array:
        def body(turn: jax.Array, seen: jax.Array) -> jax.Array:
            return seen + normals(key, turn.astype(float), 0, shape, dtype)

        return jax.lax.fori_loop(0, turns, body, jnp.zeros(shape, dtype))

    return best(lambda: jax.block_until_ready(loop())) / (shape[0] * shape[1] * turns)


@cache
def pair() -> float:
    """Seconds on one core for one pair of a ReLU gradient: angle and sine from a cosine, by tutelage's formula."""
    count, turns = 4096, 200
    cosines = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, count))

    @jax.jit
    def loop() -> jax.Array:
        def body(turn: jax.Array, seen: jax.Array) -> jax.Array:
            cosine = 0.5 * (seen + cosines)
            arc = from_chords(jnp.sign(cosine), 2 - 2 * jnp.abs(cosine))
            return 0.3 * arc.near - 0.3 * arc.sin

        return jax.lax.fori_loop(0, turns, body, cosines)

    return best(lambda: jax.block_until_ready(loop())) / (count * turns)


def gradient(problem: Problem) -> float:
    """Seconds for one gradient of a problem by its plain form, inside a compiled loop that does nothing else."""
    turns, start = 2000, problem.begin(0)
    oracle = population_oracle(problem, start.teacher).forms()[0]

    @jax.jit
    def loop(weights: Any) -> Any:
        def body(_: Any, weights: Any) -> Any:
            slope = oracle.gradient(weights)
            return chosen_parts(("first",), jax.tree.map(lambda w, g: w - 1e-9 * g, weights, slope), weights)

        return jax.lax.fori_loop(0, turns, body, weights)

    return best(lambda: jax.block_until_ready(loop(start.student))) / turns


def products(samples: int, dim: int, width: int) -> float:
    """Seconds for the two matrix products of a gradient on samples, on all cores."""
    draw = np.random.default_rng(0)
    x, w, back = (jnp.asarray(draw.standard_normal(s)) for s in ((samples, dim), (dim, width), (width, samples)))
    both = jax.jit(lambda x, w, back: (x @ w, back @ x))
    return best(lambda: jax.block_until_ready(both(x, w, back)))
