"""Sums of products without rounding error where the result is a small difference of large terms.

Near an optimum `sum_i v_i w_i - a` is 1e-12 or less, while its terms are of order one: plain arithmetic leaves
1e-16 of noise. Here each factor is cut in two halves whose products are exact, and sums carry their own rounding
error along (Knuth's two-sum), so that the result is right to about 1e-24 of its terms.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def split(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """`x = high + low` exactly; `high` has 24 bits, so that a product of two highs is exact."""
    high = x.astype(jnp.float32).astype(x.dtype)
    high = jnp.where(jnp.isfinite(high), high, 0.0)  # beyond the range of float32 nothing is gained: keep x whole
    return high, x - high


def two_sum(a: Float[Array, "..."], b: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """The rounded sum and its exact rounding error."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def outer_sums(
    left: Float[Array, "sum unit output"], right: Float[Array, "unit frame"]
) -> Float[Array, "sum output frame"]:
    """`sum_u left_su right_u^T` for each s, right to about 1e-24 of its largest term.

    The products of the high halves are exact and are summed by halving, with the rounding error of every level kept;
    the other products are 2^-24 of those, and plain sums serve.
    """
    (lh, ll), (rh, rl) = split(left[..., None]), split(right[None, :, None, :])
    return _halved(lh * rh, jnp.sum(lh * rl + ll * (rh + rl), axis=1))


def products(left: Float[Array, "p u"], right: Float[Array, "u n"]) -> Float[Array, "p n"]:
    """`left @ right`, right to about 1e-30 of its largest term.

    Each factor is cut in three: two parts of so few bits that their products and the sums of these are exact, and a
    rest. So most of the work is an ordinary product of matrices.
    """
    bits = (51 - max(right.shape[0] - 1, 1).bit_length()) // 2
    parts = jnp.concatenate(_slices(left, bits)) @ jnp.concatenate(_slices(right, bits), axis=1)
    table = parts.reshape(3, left.shape[0], 3, right.shape[1])
    total, lost = two_sum(table[0, :, 0], table[0, :, 1])
    total, more = two_sum(total, table[1, :, 0])
    small = table[0, :, 2] + table[1, :, 1] + table[1, :, 2] + table[2].sum(1)
    return total + (lost + more + small)


def _slices(x: Float[Array, "..."], bits: int) -> list[Float[Array, "..."]]:
    """Multiples of `2^-bits` of the largest entry, multiples of `2^-bits` of those, and the rest; they add up to x."""
    largest = jnp.max(jnp.abs(x))
    unit = jnp.exp2(jnp.ceil(jnp.log2(jnp.where(largest == 0, 1.0, largest))))
    cut = 1.5 * 2.0 ** (52 - bits) * unit
    cut = jnp.where(cut < 1e300, cut, 0.0)  # beyond that nothing is gained: keep x whole
    high = (x + cut) - cut
    fine = cut * 2.0**-bits
    middle = ((x - high) + fine) - fine
    return [high, middle, (x - high) - middle]


def remainders(x: Float[Array, "p n"], share: Float[Array, " p"], y: Float[Array, "p n"]) -> Float[Array, "p n"]:
    """`x - share y`, right to rounding of itself or 1e-31 of x: the product is taken with its rounding error."""
    (sh, sl), (yh, yl) = split(share[:, None]), split(y)
    product = share[:, None] * y
    error = ((sh * yh - product) + sh * yl + sl * yh) + sl * yl
    return (x - product) - error


def _halved(terms: Float[Array, "sum term output frame"], error: Float[Array, "sum output frame"]) -> Array:
    """The sum of the terms by halving, with the rounding error of every level added to `error`."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        total, lost = two_sum(terms[:, :half], terms[:, half : 2 * half])
        error = error + lost.sum(1)
        terms = jnp.concatenate([total, terms[:, 2 * half :]], axis=1)
    return terms[:, 0] + error
