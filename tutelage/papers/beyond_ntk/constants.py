"""Hermite coefficients of |z|, its kernel, and the levels that they give.

The paper's loss `L = E(f - f*)^2` has no factor 1/2. What is called `L` in this folder, and every level here, is in its
convention; the library's `loss` is half of it.
"""

import math
from functools import cache

import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from tutelage.analysis import isotropic, isotropic_excess

C0, C2 = 2 / math.pi, 1 / math.pi
B0, B2 = 4 * C0, 4 * C2
"""Rates of the gradients of orders 0 and 2 (Eq. 2.5): `b_0 T_0 v` and `b_2 T_2 v`."""
TAIL = 1 - 3 / math.pi
"""`sum_{k >= 4} c_k`."""
RATE1, RATE2 = 2 * B2, 8 * TAIL
"""`C_1` and `C_2` of Claim A.10, which the paper leaves open."""


@cache
def coefficient(order: int) -> float:
    """`c_k`, the squared normalised Hermite coefficient of |z|; 0 for odd `k`, which the printed formula is not for.

    ```python
    >>> from tutelage.papers.beyond_ntk.constants import coefficient
    >>> [round(coefficient(k), 6) for k in (0, 1, 2, 4, 6)]
    [0.63662, 0.0, 0.31831, 0.026526, 0.007958]

    ```
    """
    if order % 2:
        return 0.0
    if order == 0:
        return C0
    return coefficient(order - 2) * (order - 3) ** 2 / (order * (order - 1))


def tail(above: int) -> float:
    """`sum_{k > above} c_k`, since all of them add up to 1."""
    return 1.0 - math.fsum(coefficient(k) for k in range(above + 1))


def gradient_rates(order: int) -> tuple[float, float]:
    """`B_1` and `B_2` of an even order from 4 on: its gradient is `B_1 X - B_2 <X, vbar> vbar`.

    The paper prints `b_2j = 4j c_2j` for what is `4 c_2j`, and so counts a part twice.
    """
    half = order // 2
    return 4 * half * coefficient(order), (4 * half - 4) * coefficient(order)


def kernel(cosine: Float[Array, "..."] | ArrayLike) -> Float[Array, "..."]:
    """`kap(rho) = E |z||z'|` for standard Gaussians with correlation rho."""
    rho = jnp.clip(jnp.asarray(cosine), -1.0, 1.0)
    return C0 * (jnp.sqrt(1 - rho**2) + rho * jnp.arcsin(rho))


_SERIES = tuple(range(4, 32, 2))


def kernel_from_four(cosine: Float[Array, "..."] | ArrayLike) -> Float[Array, "..."]:
    """`kap(rho)` without orders 0 and 2: all orders from 4 on, with all digits where rho is small."""
    rho = jnp.asarray(cosine)
    square = rho**2
    series = jnp.zeros_like(square)
    for order in reversed(_SERIES):
        series = coefficient(order) + square * series
    return jnp.where(jnp.abs(rho) < 0.3, square**2 * series, kernel(rho) - C0 - C2 * square)


def plateau(dim: int, width: float = math.inf) -> float:
    """The paper's loss on the plateau, uniform teacher weights: orders 0 and 2 are learned and nothing else is.

    Exact for infinite width; each finite one adds about `(1 - 3/pi)/m`.

    ```python
    >>> from tutelage.papers.beyond_ntk.constants import plateau
    >>> round(30 * plateau(30), 5)
    0.04246

    ```
    """
    return (1 - C0) / dim - isotropic_excess(dim) + TAIL / width


def start_loss(dim: int, width: float) -> float:
    """`E L` of a Gaussian start `N(0, I/d)`, uniform teacher weights, the student with |z|."""
    return plateau(dim) + ((1 + 2 / dim) - isotropic(dim)) / width
