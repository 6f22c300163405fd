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


def finer_outer_sums(
    left: Float[Array, "sum unit output"], right: Float[Array, "unit frame"]
) -> Float[Array, "sum output frame"]:
    """`outer_sums` right to about 1e-31 of its largest term, at twice the cost or more.

    Products with one high half are exact too (24 bits by 29), and are summed with the others.
    """
    (lh, ll), (rh, rl) = split(left[..., None]), split(right[None, :, None, :])
    return _halved(jnp.concatenate([lh * rh, lh * rl, ll * rh], axis=1), jnp.sum(ll * rl, axis=1))


def _halved(terms: Float[Array, "sum term output frame"], error: Float[Array, "sum output frame"]) -> Array:
    """The sum of the terms by halving, with the rounding error of every level added to `error`."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        total, lost = two_sum(terms[:, :half], terms[:, half : 2 * half])
        error = error + lost.sum(1)
        terms = jnp.concatenate([total, terms[:, 2 * half :]], axis=1)
    return terms[:, 0] + error
