"""What the hidden units of a network compute on samples, and how an error in it comes back to their weights."""

import abc
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage.problem.activations import Activation, hermite
from tutelage.problem.assorted import LayerUnits

Rows = Float[Array, "row frame"]
Seen = Float[Array, "row sample"]
Hidden = Float[Array, "unit sample"]


class AbstractHidden(eqx.Module):
    """A layer of hidden units as a function of `seen = first @ inputs`, one row of `first` after the other."""

    @abc.abstractmethod
    def __call__(self, first: Rows, seen: Seen) -> Hidden:
        """The units' values."""

    @abc.abstractmethod
    def back(self, first: Rows, seen: Seen, errors: Hidden) -> tuple[Seen, Float[Array, " row"] | None]:
        """From derivatives in the values to those in `first`, which are `inside @ inputs.T + along[:, None] * first`.

        `along` is None if the values do not depend on `first` but through `seen`.
        """


class PlainHidden(AbstractHidden):
    """`s(w_i.x)`: one row per unit."""

    activation: LayerUnits

    def __call__(self, first: Rows, seen: Seen) -> Hidden:
        return self.activation(seen).astype(seen.dtype)

    def back(self, first: Rows, seen: Seen, errors: Hidden) -> tuple[Seen, Float[Array, " row"] | None]:
        return self.activation.derivative(seen).astype(seen.dtype) * errors, None


class TiedHidden(AbstractHidden):
    """`|w_i| s(w_i.x)`: one row per unit, whose size counts twice."""

    activation: LayerUnits

    def __call__(self, first: Rows, seen: Seen) -> Hidden:
        norm: Array = jnp.linalg.norm(first, axis=1, keepdims=True)
        return norm * self.activation(seen).astype(seen.dtype)

    def back(self, first: Rows, seen: Seen, errors: Hidden) -> tuple[Seen, Float[Array, " row"] | None]:
        norm = jnp.linalg.norm(first, axis=1)
        inside = norm[:, None] * self.activation.derivative(seen).astype(seen.dtype) * errors
        along = jnp.sum(errors * self.activation(seen).astype(seen.dtype), axis=1)
        return inside, jnp.where(norm == 0, 0.0, along / jnp.where(norm == 0, 1.0, norm))


class GatedHidden(AbstractHidden):
    """`gate(v_i.x / |v_i|) He_p(w_i.x / |w_i|)`: all routers `v`, then all experts `w`."""

    gate: Activation
    degree: int = eqx.field(static=True)

    def _parts(self, first: Rows, seen: Seen) -> tuple[Float[Array, "row 1"], Hidden, Hidden, Hidden]:
        """The rows' norms; what routers and experts see along their unit vectors, and the experts' polynomial."""
        norm = jnp.linalg.norm(first, axis=1, keepdims=True)
        router, expert = jnp.split(seen / norm, 2)
        return norm, router, expert, hermite(self.degree)(expert).astype(seen.dtype)

    def __call__(self, first: Rows, seen: Seen) -> Hidden:
        _, router, _, bump = self._parts(first, seen)
        return self.gate(router).astype(seen.dtype) * bump

    def back(self, first: Rows, seen: Seen, errors: Hidden) -> tuple[Seen, Float[Array, " row"] | None]:
        norm, router, expert, bump = self._parts(first, seen)
        slope = hermite(self.degree).derivative(expert).astype(seen.dtype)
        by_router = errors * self.gate.derivative(router).astype(seen.dtype) * bump
        by_expert = errors * self.gate(router).astype(seen.dtype) * slope
        inside = jnp.concatenate([by_router, by_expert]) / norm
        # A unit vector does not change along itself: what the samples pull along a row is taken off again.
        return inside, -jnp.sum(inside * seen, axis=1) / norm[:, 0] ** 2

    @property
    def weight(self) -> float:
        """`E[unit^2]` of a unit whose router and expert are orthogonal: `p! E[gate^2]`."""
        square = sum((float(x) ** 2 for x in np.asarray(self.gate.hermite(400).values)), 0.0)
        return math.factorial(self.degree) * square
