"""Normalised Hermite polynomials `h_i = He_i / sqrt(i!)`: values, and what a shift of the argument does to them."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tutelage.problem.atoms import along_last


@functools.cache
def normalised(count: int) -> NDArray[np.float64]:
    """`sqrt(i!)` for `i < count`: the coefficient of `h_i` in `He_i`."""
    return np.array([math.sqrt(math.factorial(i)) for i in range(count)])


def tabulated(z: Float[Array, "..."], count: int) -> Float[Array, "... count"]:
    """`h_0(z) ... h_{count-1}(z)` along a new last axis, by the three-term recurrence, in the precision of `z`."""
    rows = [jnp.ones_like(z), z]
    for i in range(1, count - 1):
        rows.append((z * rows[i] - math.sqrt(i) * rows[i - 1]) / math.sqrt(i + 1))
    return jnp.stack(rows[:count], axis=-1)


def moved(shift: Float[Array, "..."], count: int) -> Float[Array, "... count count"]:
    """The matrix `T` with `h_i(z + shift) = sum_l T[l, i] h_l(z)`, for `i, l < count`.

    `T[l, i] = binom(i, l) sqrt(l!/i!) shift^(i-l)`.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.problem.hermite import moved, tabulated
    >>> left = tabulated(jnp.array(0.3) + 2.0, 5)
    >>> right = tabulated(jnp.array(0.3), 5) @ moved(jnp.array(2.0), 5)
    >>> bool(jnp.allclose(left, right, rtol=1e-12))
    True

    ```
    """
    matrix: Array = _moved(shift, count)
    return matrix


@functools.partial(jax.jit, static_argnames="count")
def _moved(shift: Float[Array, "..."], count: int) -> Float[Array, "... count count"]:
    powers = jnp.stack([shift**j for j in range(count)], axis=-1)
    binomials = along_last(_binomials(count), shift.ndim + 2)
    return powers[..., _degrees(count)] * jnp.asarray(binomials, shift.dtype)


@functools.cache
def _degrees(count: int) -> NDArray[np.intp]:
    i = np.arange(count)
    return np.asarray(np.maximum(i[None, :] - i[:, None], 0))


@functools.cache
def _binomials(count: int) -> NDArray[np.float64]:
    roots = normalised(count)
    return np.array([[math.comb(i, k) * roots[k] / roots[i] for i in range(count)] for k in range(count)])
