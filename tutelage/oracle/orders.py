"""The population loss order by order: what each tensor of the Hermite expansion of `f - f*` adds to it.

With unit rows `u` and `A_k(r)` the k-th normalised Hermite coefficient of `s(r z)`, the k-th tensor is
`T_k = sum_u S_u A_k(|w_u|) u^(tensor k)` (students `+`, teachers `-`), and `L = 1/2 sum_k |T_k|^2`. No tensor beyond a
matrix is formed: the inner product of two powers is a power of the inner product.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tutelage.oracle.geometry import rows
from tutelage.problem.assorted import LayerUnits, coefficients
from tutelage.problem.networks import Weights, untied


def order_losses(
    student: LayerUnits, teacher: LayerUnits, weights: Weights, target: Weights, count: int
) -> Float[Array, " order"]:
    """`1/2 |T_k|^2` for `k < count`; with all later orders they sum to the population loss.

    Orders 0 to 2 are sums of squares, and have all their digits near an optimum. Later ones are differences of terms as
    large as the squared output, and are right to 1e-16 of these.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.oracle.orders import order_losses
    >>> axis = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> off = tt.Weights(first=jnp.array([[0.0, 1.0]]), second=jnp.ones((1, 1)))
    >>> order_losses(tt.activation("he2"), tt.activation("he2"), off, axis, 4).round(12)  # 1/2 (2 + 2)
    Array([0., 0., 2., 0.], dtype=float64)

    ```
    """
    own, taught = rows(weights.first), rows(target.first)
    sizes = jnp.concatenate([coefficients(student, own.norm, count), coefficients(teacher, taught.norm, count)])
    second = jnp.concatenate([weights.second, -target.second])
    unit = jnp.concatenate([own.unit, taught.unit])
    scaled = second[:, :, None] * sizes[:, None, :]  # (unit, output, order)
    return jnp.stack([_low(k, scaled[:, :, k], unit) for k in range(min(count, 3))] + _high(scaled, unit))


def order_gradients(
    student: LayerUnits, teacher: LayerUnits, weights: Weights, target: Weights, count: int, *, tied: bool = False
) -> Weights:
    """The gradient of each of `order_losses` in the student's weights, with the order as first axis.

    What the whole gradient has beyond their sum is that of all later orders. `tied`: of a student whose outgoing
    weights are tied to its norms (`problem.networks.untied`). At a zero row there is none.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.oracle.orders import order_gradients
    >>> axis = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> longer = tt.Weights(first=jnp.array([[2.0, 0.0]]), second=jnp.ones((1, 1)))
    >>> order_gradients(tt.activation("linear"), tt.activation("linear"), longer, axis, 3).first[:, 0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]

    ```
    """

    def losses(w: Weights) -> Float[Array, " order"]:
        return order_losses(student, teacher, untied(w) if tied else w, target, count)

    gradients: Weights = jax.jacrev(losses)(weights)
    return gradients


def _low(order: int, scaled: Float[Array, "unit output"], unit: Float[Array, "unit frame"]) -> Float[Array, ""]:
    """The tensor itself: a number, a vector or a matrix for each output."""
    indices = ("uo->o", "uo,ui->oi", "uo,ui,uj->oij")[order]
    return jnp.sum(jnp.einsum(indices, scaled, *[unit] * order) ** 2) / 2


def _high(scaled: Float[Array, "unit output order"], unit: Float[Array, "unit frame"]) -> list[Float[Array, ""]]:
    """Orders from 3 on, by the Gram matrix of the directions."""
    cosine = unit @ unit.T
    power, found = cosine**2, []
    for order in range(3, scaled.shape[-1]):
        power = power * cosine
        found.append(jnp.sum((scaled[:, :, order] @ scaled[:, :, order].T) * power) / 2)
    return found
