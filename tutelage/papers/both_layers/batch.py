"""Population loss, gradient and Hessian of many networks at once, for a linear target A (r, n)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from tutelage.oracle import EmpiricalOracle, PopulationOracle
from tutelage.problem import Weights


def linear_target(target: ArrayLike) -> PopulationOracle:
    """The population oracle of ReLU students for x -> Ax, A (r, n) or a vector a (n,).

    ```python
    >>> from tutelage.papers.both_layers.batch import linear_target
    >>> linear_target([1.0, 0.0]).target.first.shape
    (1, 2)

    ```
    """
    rows = jnp.atleast_2d(jnp.asarray(target, float))
    return PopulationOracle(student="relu", teacher="linear", target=Weights(rows, jnp.eye(len(rows))))


def network(second: ArrayLike, first: ArrayLike) -> Weights:
    """Weights from signed outgoing weights (..., k, r), or (..., k) for one output, and incoming rows (..., k, n).

    ```python
    >>> from tutelage.papers.both_layers.batch import network
    >>> network([1.0, -1.0], [[1.0, 0.0], [0.0, 1.0]]).second.shape
    (2, 1)

    ```
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if second.ndim == first.ndim - 1:
        second = second[..., None]
    return Weights(jnp.asarray(first), jnp.asarray(second))


@eqx.filter_jit
def losses(target: Float[Array, "r n"], weights: Weights) -> Float[Array, " batch"]:
    """The loss of each network of a batch.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.both_layers.batch import losses, network
    >>> pair = network([[1.0, -1.0]], [[[2.0, 0.0], [1.0, 0.0]]])
    >>> losses(jnp.array([[1.0, 0.0]]), pair).tolist()
    [0.25]

    ```
    """
    return jax.vmap(linear_target(target).loss)(weights)


@eqx.filter_jit
def gradients(target: Float[Array, "r n"], weights: Weights) -> Weights:
    """The gradient of each network of a batch."""
    return jax.vmap(linear_target(target).gradient)(weights)


@eqx.filter_jit
def hessians(target: Float[Array, "r n"], weights: Weights) -> Float[Array, "batch parameters parameters"]:
    """The Hessian of each network of a batch, parameters ordered as `problem.trees.flatten` does."""
    return jax.vmap(linear_target(target).hessian)(weights)


@eqx.filter_jit
def sample_gradients(x: Float[Array, "sample n"], y: Float[Array, "sample r"], weights: Weights) -> Weights:
    """The gradient of the empirical loss on one data set, for each network of a batch."""
    return jax.vmap(EmpiricalOracle(student="relu", x=x, y=y).gradient)(weights)
