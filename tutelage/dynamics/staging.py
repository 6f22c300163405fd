"""Where all seeds of a run begin, and the loss that they descend: on the population, or on samples."""

from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from tutelage._checks import refused, table, whole
from tutelage._errors import BadInput
from tutelage.dynamics.base import AbstractStep, Prepared
from tutelage.dynamics.random import keys_of
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.empirical import draw, empirical
from tutelage.oracle.population import population_oracle
from tutelage.problem.problem import Problem, Start
from tutelage.problem.trees import Tree

Data = int | tuple[ArrayLike, ArrayLike] | None
"""None for the exact population loss; a number of samples to draw for each seed; or arrays `(x, y)`."""


def given_data(data: Any) -> Data:
    """Data as they are kept, from NumPy or Python; what cannot be data is refused."""
    if data is None:
        return None
    if isinstance(data, (tuple, list)) and len(data) == 2:
        x = table("data: x", data[0], "a matrix of finite numbers (samples, dim)", axes=(2,))
        y = table("data: y", data[1], "an array of finite numbers (samples, outputs)", axes=(1, 2))
        if not len(x) or len(x) != len(y):
            raise BadInput(f"data: x has {len(x)} rows and y {len(y)}, but one of each for every sample was expected.")
        return x, y
    if np.ndim(data) or isinstance(data, (str, bytes, dict)):
        raise refused("data", data, "a number of samples or a pair of arrays (x, y)")
    return whole("data", data, least=1)


def staged(
    step: AbstractStep,
    problem: Problem,
    seeds: list[int],
    data: Data = None,
    start: Start | None = None,
    *,
    full: bool = False,
) -> Prepared:
    """The step on the population or on samples, from the problem's own starts or from a given one.

    `full`: with all `dim` coordinates, which samples have anyway.
    """
    full = full or data is not None
    if start is not None and full and start.teacher.first.shape[-1] != problem.law.dim:
        raise BadInput(
            f"A stage {'in full space' if data is None else 'on samples'} needs weights with all their dim entries, "
            f"but the stage before it ran in a frame of {start.teacher.first.shape[-1]} coordinates; give that one "
            "data as well, or run it in full space."
        )
    begin = begun([problem.drawn(seed, full=full) for seed in seeds]) if start is None else start
    oracle, batched = loss_of(problem, begin, seeds, data)
    return Prepared(step, oracle, batched, begin.teacher, begin.student, keys_of(seeds))


def begun(starts: list[Start]) -> Start:
    """Starts of single seeds as one, students with a leading seed axis; the teacher is the same for all."""
    return Start(jax.device_put(starts[0].teacher), stacked([start.student for start in starts]))


def loss_of(problem: Problem, start: Start, seeds: list[int], data: Data) -> tuple[AbstractOracle, bool]:
    """The oracle, and whether each seed has its own."""
    if data is None:
        return population_oracle(problem, start.teacher), False
    if isinstance(data, int):
        return stacked([draw(problem, start.teacher, data, seed) for seed in seeds]), True
    x, y = (np.asarray(part, float) for part in data)
    wanted, columns = (problem.inputs.dim, problem.student.outputs), (x.shape[1], y.size // len(y))
    if columns != wanted:
        raise BadInput(
            f"data: x has shape {x.shape} and y {y.shape}, but (samples, {wanted[0]}) and (samples, {wanted[1]}) were "
            "expected."
        )
    if problem.biased:  # the constant that their biases are weights of
        x = np.pad(x, ((0, 0), (1, 0)), constant_values=1.0)
    return empirical(problem, x, y), False


def stacked(trees: list[Tree]) -> Tree:
    """Equal trees to one with a leading seed axis."""
    together: Tree = jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *trees))
    return together


def unstacked(tree: Tree, count: int) -> list[Tree]:
    """One tree for each seed, cut by NumPy: JAX would compile a program for every shape, and take ten times as long."""
    kept = jax.tree.map(np.asarray, tree)
    return [jax.device_put(jax.tree.map(lambda leaf, n=n: leaf[n], kept)) for n in range(count)]


def samples_of(data: Data) -> int:
    """How many samples there are; 0 for the population."""
    if data is None:
        return 0
    return data if isinstance(data, int) else len(np.asarray(data[1]))
