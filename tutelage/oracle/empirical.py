"""The loss on a fixed data set, used again at every step."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from tutelage._errors import BadInput
from tutelage.oracle.base import AbstractOracle, assemble
from tutelage.oracle.mixture import EmpiricalMixture
from tutelage.oracle.penalised import penalised
from tutelage.oracle.tied import TiedOracle
from tutelage.problem.assorted import LayerSpec, LayerUnits, layer_units
from tutelage.problem.frame import stream
from tutelage.problem.mixture import Mixture
from tutelage.problem.networks import Weights
from tutelage.problem.problem import Problem

Inputs = Float[Array, "sample frame"]
Labels = Float[Array, "sample output"]
Total = TypeVar("Total", Array, Weights)

BLOCK = 2**14
"""Samples at once: 13 MB for each table of a hundred units."""


class EmpiricalOracle(AbstractOracle):
    """`L = 1/(2N) sum_i |f(x_i) - y_i|^2` with its gradient and (almost everywhere) its Hessian.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> oracle = tt.EmpiricalOracle(student="relu", x=jnp.array([[1.0], [-1.0]]), y=jnp.array([[1.0], [0.0]]))
    >>> float(oracle.loss(tt.Weights(first=jnp.array([[1.0]]), second=jnp.array([[1.0]]))))
    0.0

    ```
    """

    student: LayerUnits = eqx.field(static=True)
    x: Float[Array, "sample frame"]
    y: Float[Array, "sample output"]
    accuracy: str = eqx.field(static=True)

    def __init__(self, *, student: LayerSpec, x: ArrayLike, y: ArrayLike):
        self.student = layer_units(student)
        try:
            self.x, self.y = jnp.asarray(x, float), jnp.asarray(y, float)
        except (TypeError, ValueError):
            raise BadInput("EmpiricalOracle: x or y could not be read as numbers; pass arrays of them.") from None
        if self.y.ndim == 1:
            self.y = self.y[:, None]
        if self.x.ndim != 2 or self.y.ndim != 2 or len(self.x) != len(self.y) or not len(self.x):
            raise BadInput(
                f"EmpiricalOracle: x has shape {self.x.shape} and y {self.y.shape}, but (samples, dim) and "
                "(samples, outputs) with equal numbers of samples were expected."
            )
        self.accuracy = "exact on its data set, to rounding"

    def _forward(
        self, weights: Weights
    ) -> tuple[Float[Array, "unit sample"], Float[Array, "sample unit"], Float[Array, "sample output"]]:
        """What units see, what they say, and by how much the output is off."""
        pre = weights.first @ self.x.T
        hidden = self.student(pre).T
        return pre, hidden, hidden @ weights.second - self.y

    def loss(self, weights: Weights) -> Float[Array, ""]:
        def part(x: Inputs, y: Labels) -> Float[Array, ""]:
            return jnp.sum((weights.second.T @ self.student(weights.first @ x.T) - y.T) ** 2)

        return 0.5 * self._over_blocks(part) / len(self.x)

    def gradient(self, weights: Weights) -> Weights:
        def part(x: Inputs, y: Labels) -> Weights:
            # Samples along the last axis: elementwise work is then on long rows.
            pre = weights.first @ x.T
            hidden = self.student(pre)
            residual = weights.second.T @ hidden - y.T
            back = self.student.derivative(pre) * (weights.second @ residual)
            return Weights(back @ x, hidden @ residual.T)

        total = self._over_blocks(part)
        return Weights(total.first / len(self.x), total.second / len(self.x))

    def _over_blocks(self, part: Callable[[Array, Array], Total]) -> Total:
        """The sum of `part` over blocks of samples, so that a million of them need no more memory than one block."""
        whole = len(self.x) // BLOCK
        if whole == 0:
            return part(self.x, self.y)

        def add(number: Int[Array, ""], total: Total) -> Total:
            x, y = (jax.lax.dynamic_slice_in_dim(array, number * BLOCK, BLOCK) for array in (self.x, self.y))
            both: Total = jax.tree.map(jnp.add, total, part(x, y))
            return both

        start = part(self.x[whole * BLOCK :], self.y[whole * BLOCK :])
        summed: Total = jax.lax.fori_loop(0, whole, add, start)
        return summed

    def hessian(self, weights: Weights) -> Float[Array, "parameters parameters"]:
        x, out, size = self.x, weights.second, len(self.x)
        count, outputs = out.shape
        pre, hidden, residual = self._forward(weights)
        slope = self.student.derivative(pre).T
        moved = slope[:, :, None] * x[:, None, :]  # d hidden / d w
        diagonal = jnp.eye(count)
        outer = jnp.einsum("lm,rs->lrms", hidden.T @ hidden / size, jnp.eye(outputs))
        between = jnp.einsum("il,mr,imn->lrmn", hidden, out, moved) / size
        between = between + jnp.einsum("lm,ir,iln->lrmn", diagonal, residual, moved) / size
        inner = jnp.einsum("lm,ila,imb->lamb", out @ out.T, moved, moved) / size
        bend = self.student.second_derivative(pre).T * (residual @ out.T)
        inner = inner + jnp.einsum("lm,il,ia,ib->lamb", diagonal, bend, x, x) / size
        return assemble(outer, between, inner)


def empirical(problem: Problem, x: ArrayLike, y: ArrayLike) -> AbstractOracle:
    """The oracle of a problem's student on given examples, with the problem's penalty if it has one."""
    return penalised(_without_penalty(problem, x, y), problem.penalty)


def _without_penalty(problem: Problem, x: ArrayLike, y: ArrayLike) -> AbstractOracle:
    student = problem.student
    if isinstance(student, Mixture):
        plain = EmpiricalOracle(student="linear", x=x, y=y)  # reads and checks the arrays
        return EmpiricalMixture(student.hidden, plain.x, plain.y)
    student.check_samples()
    plain = EmpiricalOracle(student=student.activation, x=x, y=y)
    return TiedOracle(plain) if student.tied else plain


def draw(problem: Problem, target: Weights, samples: int, seed: int) -> AbstractOracle:
    """The empirical oracle of `samples` noisy examples of the problem, for teacher weights in all coordinates."""
    random = stream(seed, 1)
    x = problem.law.coloured(random.standard_normal((samples, target.first.shape[1])))
    seen = jnp.asarray(np.asarray(target.first) @ x.T)
    clean = problem.teacher.hidden(jnp.asarray(target.first), seen).T @ jnp.asarray(target.second)
    y = clean + problem.noise * random.standard_normal(clean.shape)
    return empirical(problem, x, y)
