"""When, inside a step, did each entry of an array first become zero or more."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class End(NamedTuple):
    """Values at one end of a step, and their rates of change (None if they jump)."""

    clock: Float[Array, ""]
    values: Float[Array, "..."]
    rates: Float[Array, "..."] | None


def cross(times: Float[Array, "..."], before: End, after: End, now: Float[Array, ""]) -> Float[Array, "..."]:
    """`times` with those filled in that were nan and whose value has become zero or more; `now` if values jump."""
    new = jnp.isnan(times) & (after.values >= 0)
    return jnp.where(new, now if after.rates is None else _root(before, after, new), times)


def _root(before: End, after: End, new: Bool[Array, "..."]) -> Float[Array, "..."]:
    """Where the cubic through values and rates at both ends is zero, by bisection."""
    leaving, arriving, width = before.rates, after.rates, after.clock - before.clock
    assert leaving is not None and arriving is not None
    # An entry that starts at zero or more, or that has not crossed, must not disturb the others.
    low_value = jnp.where(new, jnp.minimum(before.values, 0.0), -1.0)
    high_value = jnp.where(new, after.values, 1.0)

    def cubic(u: Float[Array, "..."]) -> Float[Array, "..."]:
        near, far = (1 + 2 * u) * (1 - u) ** 2 * low_value, u**2 * (3 - 2 * u) * high_value
        return near + far + width * u * (1 - u) * ((1 - u) * leaving - u * arriving)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        passed = cubic(middle) >= 0
        return jnp.where(passed, ends[0], middle), jnp.where(passed, middle, ends[1])

    start = jnp.zeros_like(low_value), jnp.ones_like(low_value)
    return before.clock + width * jax.lax.fori_loop(0, 30, halve, start)[1]
