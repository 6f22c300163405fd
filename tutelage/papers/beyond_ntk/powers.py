"""Infinite width by power sums: each order of the conditionally symmetric field, exactly (Eq. 3.2 and 3.3, corrected).

With `p_k = w_k v_k` and independent signs e, `M_2n = E_e (sum_k e_k p_k)^2n` is a polynomial of the power sums
`S_2k = sum_i p_i^2k`. Its cumulants are those of one sign times the power sums, so that
`M_2n = sum_k C(2n-1, 2k-1) kappa_2k S_2k M_(2n-2k)` and `dM_2n/dS_2k = C(2n, 2k) kappa_2k M_(2n-2k)`: for example
`M_4 = 3 S_2^2 - 2 S_4` and `M_6 = 15 S_2^3 - 30 S_2 S_4 + 16 S_6`. Eq. (3.3) as printed has `S_2^j` for `M_2j`.
"""

from collections.abc import Sequence
from functools import cache, partial
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage import BadInput
from tutelage.oracle import rows
from tutelage.papers.beyond_ntk.constants import B0, gradient_rates
from tutelage.papers.beyond_ntk.field import PerRow, Vectors

Pairs = Float[Array, "_ _"]
LARGEST = 16
"""Beyond this order the alternating terms of `M` lose more than half the digits (cumulants grow like factorials)."""


@cache
def cumulant(order: int) -> int:
    """The cumulant of a random sign.

    ```python
    >>> from tutelage.papers.beyond_ntk.powers import cumulant
    >>> [cumulant(k) for k in (2, 4, 6, 8)]
    [1, -2, 16, -272]

    ```
    """
    # A sign has all even moments 1, so the recursion for them gives the last cumulant.
    return 1 - sum(comb(order - 1, k - 1) * cumulant(k) for k in range(2, order, 2))


def sign_moments(w: Vectors, v: Vectors, order: int) -> tuple[Pairs, ...]:
    """`M_0, M_2, ..., M_order` for each row of `v` with each row of `w`."""
    sums = {k: v**k @ (w**k).T for k in range(2, order + 1, 2)}
    found = [jnp.ones((len(v), len(w)))]
    for n in range(2, order + 1, 2):
        terms = (comb(n - 1, k - 1) * cumulant(k) * sums[k] * found[(n - k) // 2] for k in range(2, n + 1, 2))
        found.append(sum(terms, jnp.zeros(())))
    return tuple(found)


@partial(jax.jit, static_argnames="order")
def order_field(v: Vectors, base: Vectors, masses: PerRow, teacher_weights: PerRow, order: int) -> Vectors:
    """One order of `G(v; P)`, where P is the base population with all signs of all coordinates made equally likely.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.papers.beyond_ntk.powers import order_field
    >>> half = jnp.full(2, 0.5)
    >>> float(jnp.max(jnp.abs(order_field(jnp.ones((1, 2)), jnp.eye(2), half, half, 4)))) < 1e-15  # learned
    True

    ```
    """
    _checked(order)
    a, w = _axes(teacher_weights, v), rows(base)
    weights = masses * w.norm**2
    if order == 0:
        return B0 * (jnp.sum(weights) - jnp.sum(a)) * v  # Eq. (3.2)
    x = rows(v)
    moments = sign_moments(w.unit, x.unit, order)
    # (1/2j) dM/dv_i, with dS_2k/dv_i = 2k w_i^2k v_i^(2k-1).
    force = jnp.zeros_like(v)
    for k in range(2, order + 1, 2):
        rate = comb(order - 1, k - 1) * cumulant(k) * moments[(order - k) // 2]
        force = force + x.unit ** (k - 1) * ((rate * weights[None]) @ w.unit**k)
    force = x.norm[:, None] * (force - a[None] * x.unit ** (order - 1))
    along, radial = gradient_rates(order)
    return along * force - radial * jnp.sum(force * x.unit, axis=1, keepdims=True) * x.unit


@partial(jax.jit, static_argnames="order")
def order_loss(base: Vectors, masses: PerRow, teacher_weights: PerRow, order: int) -> Float[Array, ""]:
    """`|T_k|^2` of the symmetrised population; `L` is the sum of `c_k |T_k|^2`."""
    _checked(order)
    a, w = _axes(teacher_weights, base), rows(base)
    weights = masses * w.norm**2
    if order == 0:
        return (jnp.sum(weights) - jnp.sum(a)) ** 2
    if order == 2:  # a sum of squares, which keeps its digits near the optimum
        return jnp.sum((weights @ w.unit**2 - a) ** 2)
    own = weights @ sign_moments(w.unit, w.unit, order)[-1] @ weights
    return own - 2 * weights @ (w.unit**order @ a) + jnp.sum(a**2)


@partial(jax.jit, static_argnames="orders")
def _advance(base, masses, a, step, count, orders):
    def once(_, base):
        return base - step * sum(order_field(base, base, masses, a, order) for order in orders)

    return jax.lax.fori_loop(0, count, once, base)


def simulate(
    base: Vectors,
    masses: PerRow,
    teacher_weights: PerRow,
    *,
    step: float,
    times: Sequence[float],
    orders: tuple[int, ...] = (0, 2, 4, 6, 8),
) -> NDArray[np.floating]:
    """Descent on these orders of the loss at infinite width: the base neurons (time, M, d) at `times`."""
    for order in orders:
        _checked(order)
    found = []
    for count in segments(times, step):
        base = _advance(base, masses, teacher_weights, step, count, orders)
        found.append(np.asarray(base))
    return np.stack(found)


def segments(times: Sequence[float], step: float) -> NDArray[np.integer]:
    """How many steps lie between each of `times` and the one before it, beginning at 0.

    ```python
    >>> from tutelage.papers.beyond_ntk.powers import segments
    >>> segments((0.0, 1.0, 3.0), 0.5).tolist()
    [0, 2, 4]

    ```
    """
    counts = np.diff(np.rint(np.asarray(times, float) / step).astype(int), prepend=0)
    if not len(counts) or np.any(counts < 0):
        raise BadInput(f"times are {list(times)}, but at least one was expected, none below 0, in increasing order.")
    return counts


def _axes(weights: PerRow, like: Vectors) -> PerRow:
    """The teacher's weights, 0 for axes without a teacher."""
    return jnp.zeros(like.shape[1]).at[: len(weights)].set(weights)


def _checked(order: int) -> None:
    if order % 2 or not 0 <= order <= LARGEST:
        raise BadInput(f"order is {order}, but an even one from 0 to {LARGEST} was expected.")
