"""What polynomials of the inputs can reach: the Hermite tail of a teacher."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.oracle.kernels import kernel
from tutelage.oracle.kernels.base import AbstractKernel
from tutelage.oracle.orders import order_losses
from tutelage.problem.activations import activation
from tutelage.problem.networks import Weights

ABS = kernel("abs", "abs")
"""Of |.|, the units of all teachers here."""


@eqx.filter_jit
def kernel_values(both: AbstractKernel, a: Float[Array, "p n"], b: Float[Array, "q n"]) -> Float[Array, "p q"]:
    """`E[s(a_i.x) t(b_j.x)]`, compiled."""
    return both.value(a, b)


def teacher_power(teacher: Weights) -> float:
    """`E f*^2` of a teacher with one output."""
    gram = kernel_values(ABS, teacher.first, teacher.first)
    return float(teacher.second[:, 0] @ gram @ teacher.second[:, 0])


def hermite_tail(teacher: Weights, degree: int) -> float:
    """`E(f - f*)^2` of the best polynomial of this degree: what the later Hermite orders of the teacher hold.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.analysis.kernels.hermite import hermite_tail
    >>> teacher = tt.Weights(first=jnp.eye(20), second=jnp.full((20, 1), 1 / 20))
    >>> [round(20 * hermite_tail(teacher, degree), 6) for degree in (0, 2, 4, 6)]
    [0.36338, 0.04507, 0.018545, 0.010587]

    ```
    """
    unit = activation("abs")
    silent = Weights(jnp.zeros_like(teacher.first[:1]), jnp.zeros_like(teacher.second[:1]))
    return teacher_power(teacher) - float(2 * jnp.sum(_orders(unit, unit, silent, teacher, degree + 1)))


_orders = eqx.filter_jit(order_losses)
