"""The loss on a fixed data set, used again at every step."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage._errors import BadInput
from tutelage.oracle.base import AbstractOracle, assemble
from tutelage.oracle.mixture import EmpiricalMixture
from tutelage.problem.activations import Activation, activation
from tutelage.problem.frame import stream
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import Weights
from tutelage.problem.problem import Problem


class EmpiricalOracle(AbstractOracle):
    """`L = 1/(2N) sum_i |f(x_i) - y_i|^2` with its gradient and (almost everywhere) its Hessian.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> oracle = tt.EmpiricalOracle(student="relu", x=jnp.array([[1.0], [-1.0]]), y=jnp.array([[1.0], [0.0]]))
    >>> float(oracle.loss(tt.Weights(first=jnp.array([[1.0]]), second=jnp.array([[1.0]]))))
    0.0

    ```
    """

    student: Activation = eqx.field(static=True)
    x: Float[Array, "sample frame"]
    y: Float[Array, "sample output"]
    accuracy: str = eqx.field(static=True)

    def __init__(self, *, student: Any, x: Any, y: Any):
        self.student = activation(student)
        self.x, self.y = jnp.asarray(x, float), jnp.asarray(y, float)
        if self.y.ndim == 1:
            self.y = self.y[:, None]
        if self.x.ndim != 2 or self.y.ndim != 2 or len(self.x) != len(self.y):
            raise BadInput(
                f"EmpiricalOracle: x has shape {self.x.shape} and y {self.y.shape}, but (samples, dim) and "
                "(samples, outputs) with equal numbers of samples were expected."
            )
        self.accuracy = "exact on its data set, to rounding"

    def _forward(self, weights: Weights):
        pre = self.x @ weights.first.T
        hidden = self.student(pre)
        return pre, hidden, hidden @ weights.second - self.y

    def loss(self, weights: Weights) -> Float[Array, ""]:
        return 0.5 * jnp.sum(self._forward(weights)[2] ** 2) / len(self.x)

    def gradient(self, weights: Weights) -> Weights:
        pre, hidden, residual = self._forward(weights)
        back = self.student.derivative(pre) * (residual @ weights.second.T)
        return Weights(back.T @ self.x / len(self.x), hidden.T @ residual / len(self.x))

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        x, out, size = self.x, weights.second, len(self.x)
        count, outputs = out.shape
        pre, hidden, residual = self._forward(weights)
        slope = self.student.derivative(pre)
        moved = slope[:, :, None] * x[:, None, :]  # d hidden / d w
        diagonal = jnp.eye(count)
        outer = jnp.einsum("lm,rs->lrms", hidden.T @ hidden / size, jnp.eye(outputs))
        between = jnp.einsum("il,mr,imn->lrmn", hidden, out, moved) / size
        between = between + jnp.einsum("lm,ir,iln->lrmn", diagonal, residual, moved) / size
        inner = jnp.einsum("lm,ila,imb->lamb", out @ out.T, moved, moved) / size
        bend = self.student.second_derivative(pre) * (residual @ out.T)
        inner = inner + jnp.einsum("lm,il,ia,ib->lamb", diagonal, bend, x, x) / size
        return assemble(outer, between, inner)


def empirical(problem: Problem, x: Any, y: Any) -> EmpiricalOracle | EmpiricalMixture:
    """The oracle of a problem's student on given examples."""
    student = problem.student
    if isinstance(student, Mixture):
        plain = EmpiricalOracle(student="linear", x=x, y=y)  # reads and checks the arrays
        return EmpiricalMixture(student.hidden, plain.x, plain.y)
    return EmpiricalOracle(student=student.activation, x=x, y=y)


def draw(problem: Problem, target: Weights, samples: int, seed: int) -> EmpiricalOracle | EmpiricalMixture:
    """The empirical oracle of `samples` noisy examples of the problem, for teacher weights in all coordinates."""
    random = stream(seed, 1)
    x = random.standard_normal((samples, target.first.shape[1]))
    clean = problem.teacher.hidden(jnp.asarray(target.first), jnp.asarray(target.first @ x.T)).T @ target.second
    y = clean + problem.noise * random.standard_normal(clean.shape)
    return empirical(problem, x, y)
