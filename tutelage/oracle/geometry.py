"""Norms, unit rows and the angles between rows, right for rows that are parallel, opposite, equal or zero."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Rows(NamedTuple):
    """Rows as lengths and directions; the direction of a zero row is the zero vector."""

    norm: Float[Array, " p"]
    unit: Float[Array, "p n"]


class Angles(NamedTuple):
    """The angle from each row `a` to the nearer of `b` and `-b`: in [0, pi/2], with `sign = -1` where it is `-b`.

    A pair with a zero row counts as orthogonal. `rest = 1 - cos`, without the cancellation.
    """

    sign: Float[Array, "p q"]
    near: Float[Array, "p q"]
    cos: Float[Array, "p q"]
    sin: Float[Array, "p q"]
    rest: Float[Array, "p q"]


def rows(a: Float[Array, "p n"]) -> Rows:
    """Norms and unit rows. Scaling by the largest entry keeps 1e-200 and 1e200 from under- and overflowing."""
    largest = jnp.max(jnp.abs(a), axis=-1, keepdims=True)
    scaled = a / jnp.where(largest == 0, 1.0, largest)
    length = jnp.sqrt(jnp.sum(scaled**2, axis=-1, keepdims=True))
    return Rows((largest * length)[..., 0], scaled / jnp.where(length == 0, 1.0, length))


def angles(a: Rows, b: Rows) -> Angles:
    """Angles from the chords `|a - b|` or `|a + b|` of unit rows: arccos of a dot product loses half the digits."""
    sign = jnp.where(a.unit @ b.unit.T < 0, -1.0, 1.0)
    zero = (a.norm == 0)[:, None] | (b.norm == 0)[None, :]
    return from_chords(sign, jnp.where(zero, 2.0, square_chords(sign, a.unit, b.unit)))


def rough_angles(a: Rows, b: Rows) -> Angles:
    """Angles from the dot products: nearly parallel rows lose half of their digits, but angle and sine agree."""
    cos = a.unit @ b.unit.T
    square = jnp.maximum(2 - 2 * jnp.abs(cos), 0.0)
    return from_chords(jnp.where(cos < 0, -1.0, 1.0), square)


def from_chords(sign: Float[Array, "p q"], square: Float[Array, "p q"]) -> Angles:
    """The angles whose squared chords are given: `|a - sign b|^2` of unit rows, at most 2."""
    half = jnp.sqrt(square) / 2
    return Angles(
        sign=sign,
        near=2 * _arcsin(half),
        cos=1 - square / 2,
        sin=2 * half * jnp.sqrt(1 - half**2),
        rest=square / 2,
    )


def gaps(a: Rows, b: Rows, sign: Float[Array, "p q"]) -> Float[Array, "p q n"]:
    """`a - sign b` for unit rows: small, with all its digits, where the rows are nearly parallel or opposite."""
    return a.unit[:, None, :] - sign[:, :, None] * b.unit[None, :, :]


# Measured at p = 20, q = n = 24 on one thread: 7.5 us for the whole of a pull when unrolled, 12 us as one reduction.
_UNROLLED = 64


def square_chords(sign: Float[Array, "p q"], u: Float[Array, "p n"], v: Float[Array, "q n"]) -> Float[Array, "p q"]:
    """`|u - sign v|^2`, from the differences."""
    n = u.shape[-1]
    if n > _UNROLLED:
        # Row by row: all differences at once would take n times as much memory as anything else, several times.
        apart = lambda row: jnp.sum((row[0] - row[1][:, None] * v) ** 2, axis=-1)  # noqa: E731
        square: Float[Array, "p q"] = jax.lax.map(apart, (u[:, None, :], sign))
        return square
    total = jnp.zeros_like(sign)
    for i in range(n):
        total = total + (u[:, i, None] - sign * v[None, :, i]) ** 2
    return total


def _arcsin_over_argument() -> Float[np.ndarray, " power"]:
    """`arcsin(h)/h` as a polynomial of degree 19 in `4 h^2 - 1`, `h^2 <= 1/2`: relative error below 5e-16."""
    chebyshev = np.polynomial.chebyshev

    def f(x: Any) -> Any:  # NumPy takes it for a function of one number
        h = np.sqrt((x + 1) / 4)
        return np.arcsin(h) / h

    return chebyshev.cheb2poly(chebyshev.chebinterpolate(f, 19))


_ARCSIN = tuple(_arcsin_over_argument())


def _arcsin(h: Array) -> Array:
    """arcsin for `0 <= h <= sqrt(1/2)`. The compiled library arcsin is not vectorised and costs ten times as much."""
    x = 4 * h**2 - 1
    total = jnp.full_like(x, _ARCSIN[-1])
    for coefficient in _ARCSIN[-2::-1]:
        total = total * x + coefficient
    return h * total


def direction(x: Array, y: Array) -> Array:
    """The angle of the point (x, y), from -pi to pi: `arctan2`, which the compiler does not vectorise."""
    length = jnp.sqrt(x**2 + y**2)
    near = 2 * _arcsin(over(jnp.abs(y), jnp.sqrt(2 * length * (length + jnp.abs(x)))))
    return jnp.where(y < 0, -1.0, 1.0) * jnp.where(x < 0, jnp.pi - near, near)


def wedge(arc: Angles) -> Array:
    """`sin - angle cos`; where the two nearly cancel, by seven terms of its series (the next is below 1e-17 of it)."""
    angle, square = arc.near, arc.near**2
    series = jnp.ones_like(square)
    for divisor in (180, 130, 88, 54, 28, 10):
        series = 1 - square / divisor * series
    return jnp.where(angle < 0.5, angle * square / 3 * series, arc.sin - angle * arc.cos)


def over(x: Array, y: Array) -> Array:
    """`x / y`, and 0 where y is."""
    return jnp.where(y == 0, 0.0, x / jnp.where(y == 0, 1.0, y))
