"""Loss, gradient and Hessian of many networks at once by the library's oracle: ReLU students of ReLU teachers."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from tutelage.oracle import PopulationOracle
from tutelage.problem import Weights


def relu_oracle(teacher: ArrayLike) -> PopulationOracle:
    """The population oracle of ReLU students for teachers (k, n), all outer weights 1.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.batch import relu_oracle
    >>> relu_oracle(np.eye(2, 3)).target.second.tolist()
    [[1.0], [1.0]]

    ```
    """
    rows = jnp.atleast_2d(jnp.asarray(teacher, float))
    return PopulationOracle(student="relu", teacher="relu", target=Weights(rows, jnp.ones((len(rows), 1))))


def _weights(first: Float[Array, "m n"]) -> Weights:
    return Weights(first, jnp.ones((len(first), 1)))


@eqx.filter_jit
def losses(teacher: Float[Array, "k n"], first: Float[Array, "batch m n"]) -> Float[Array, " batch"]:
    """The loss of each network of a batch.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.relu_teachers.batch import losses
    >>> losses(jnp.eye(1, 2), jnp.array([[[0.5, 0.0]]])).tolist()
    [0.0625]

    ```
    """
    oracle = relu_oracle(teacher)
    return jax.vmap(lambda one: oracle.loss(_weights(one)))(first)


@eqx.filter_jit
def gradients(teacher: Float[Array, "k n"], first: Float[Array, "batch m n"]) -> Float[Array, "batch m n"]:
    """The gradient in the first layer of each network of a batch."""
    oracle = relu_oracle(teacher)
    return jax.vmap(lambda one: oracle.gradient(_weights(one)).first)(first)


@eqx.filter_jit
def hessians(teacher: Float[Array, "k n"], first: Float[Array, "batch m n"]) -> Float[Array, "batch p p"]:
    """The Hessian in the first layer of each network of a batch, students one after the other."""
    oracle, size = relu_oracle(teacher), first.shape[-2] * first.shape[-1]
    whole = jax.vmap(lambda one: oracle.hessian(_weights(one)))(first)
    return whole[:, -size:, -size:]
