"""What an observable or an event may look at."""

from functools import cached_property

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from tutelage.oracle.base import AbstractOracle
from tutelage.problem.trees import square_norm


class Snapshot:
    """One moment of a run: the student's `weights`, the `teacher`, the `start`, and the `oracle` that is descended."""

    def __init__(self, weights: PyTree, teacher: PyTree, start: PyTree, oracle: AbstractOracle):
        self.weights, self.teacher, self.start, self.oracle = weights, teacher, start, oracle

    @cached_property
    def loss(self) -> Float[Array, ""]:
        """Without a penalty on the weights, if the problem has one."""
        return self.oracle.unpenalised.loss(self.weights)

    @cached_property
    def objective(self) -> Float[Array, ""]:
        """What is descended: the loss and the penalty."""
        return self.loss + self.oracle.penalty(self.weights)

    @cached_property
    def gradient(self) -> PyTree:
        return self.oracle.gradient(self.weights)

    @cached_property
    def gradient_norm(self) -> Float[Array, ""]:
        return jnp.sqrt(square_norm(self.gradient))
