"""The best predictor in random features and in neural tangent features, its population loss in closed form.

Both are linear in features that are fixed by unit directions `u_i`: `s(u_i.x)`, and `s'(u_i.x) x` whose span holds the
gradient of every two-layer network with these units, and the network itself. With Gaussian inputs all inner products
are kernels of the library. Units and teachers are |.|.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage._errors import BadInput
from tutelage.analysis.kernels.hermite import ABS, kernel_values, teacher_power
from tutelage.analysis.kernels.solve import explained
from tutelage.oracle.kernels.base import AbstractKernel
from tutelage.problem.networks import Weights


def random_directions(count: int, dim: int, random: np.random.Generator) -> NDArray[np.floating]:
    """Unit rows, uniform on the sphere."""
    rows = random.standard_normal((count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_features_loss(directions: ArrayLike, teacher: Weights) -> float:
    """`E(f - f*)^2` of the best combination of `s(u_i.x)`, for directions (features, dim) of any length.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.analysis.kernels.features import random_features_loss
    >>> teacher = tt.Weights(first=jnp.eye(2), second=jnp.full((2, 1), 0.5))
    >>> round(random_features_loss(jnp.zeros((0, 2)), teacher), 6)     # no features: all of E f*^2
    0.81831
    >>> round(abs(random_features_loss(jnp.eye(2), teacher)), 12)
    0.0

    ```
    """
    first, teacher = _directions(directions, teacher), _one_output(teacher)
    power = teacher_power(teacher)
    if len(first) == 0:
        return power
    gram, cross = (kernel_values(ABS, first, others) for others in (first, teacher.first))
    return power - explained(np.asarray(gram), np.asarray(cross @ teacher.second[:, 0]))


def tangent_features_loss(directions: ArrayLike, teacher: Weights) -> float:
    """`E(f - f*)^2` of the best combination of the features `s'(u_i.x) x_k`, dim of them per direction.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.analysis.kernels.features import tangent_features_loss
    >>> teacher = tt.Weights(first=jnp.eye(2), second=jnp.full((2, 1), 0.5))
    >>> round(tangent_features_loss(jnp.eye(2)[:1], teacher), 6)     # |x_1| is known, |x_2| only by it
    0.148679

    ```
    """
    first, teacher = _directions(directions, teacher), _one_output(teacher)
    power = teacher_power(teacher)
    if len(first) == 0:
        return power
    size = first.size
    gram = _mixed(ABS, first).reshape(size, size)
    masses = jnp.broadcast_to(teacher.second[:, 0], (len(first), len(teacher.second)))
    cross = _pull(ABS, masses, first, teacher.first)
    return power - explained(np.asarray(gram), np.asarray(cross).ravel())


@eqx.filter_jit
def _mixed(both: AbstractKernel, a: Float[Array, "p n"]) -> Float[Array, "p n p n"]:
    """`E[s'(a_i.x) s'(a_j.x) x x']`, as the matrix of all features."""
    return jnp.transpose(both.mixed(a, a), (0, 2, 1, 3))


@eqx.filter_jit
def _pull(
    both: AbstractKernel, masses: Float[Array, "p q"], a: Float[Array, "p n"], b: Float[Array, "q n"]
) -> Float[Array, "p n"]:
    """`E[s'(a_i.x) x f*(x)]`: the kernel with the teacher, derived in the direction."""
    return both.pull(masses, a, b)


def _directions(directions: ArrayLike, teacher: Weights) -> Float[Array, "p n"]:
    first = jnp.asarray(directions, float)
    if first.ndim != 2 or first.shape[1] != teacher.first.shape[1]:
        raise BadInput(
            f"directions has shape {first.shape}, but (features, {teacher.first.shape[1]}) was expected: one row per "
            "feature, as long as the teacher's."
        )
    if not bool(jnp.all(jnp.any(first != 0, axis=1))):
        raise BadInput("A direction is the zero vector, which gives no feature; leave it out.")
    return first


def _one_output(teacher: Weights) -> Weights:
    if teacher.second.shape != (len(teacher.first), 1):
        raise BadInput(
            f"The teacher's second layer has shape {teacher.second.shape}, but ({len(teacher.first)}, 1) was expected: "
            "features are compared on one output."
        )
    return teacher
