"""Losses on the plane or in space whose landscapes are known by hand."""

import re
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights
from tutelage.problem.trees import flatten, unflatten


class Toy(AbstractOracle):
    """A function of the flat vector of parameters as a loss, differentiated automatically."""

    fn: Callable = eqx.field(static=True)
    accuracy: str = eqx.field(static=True, default="exact")

    def loss(self, weights):
        return self.fn(flatten(weights))

    def gradient(self, weights):
        return unflatten(jax.grad(self.fn)(flatten(weights)), weights)

    def hessian(self, weights):
        return jax.hessian(self.fn)(flatten(weights))


class Plane(AbstractOracle):
    """The polynomial `sum_ij coefficients[i, j] x^i y^j`; one compiled function serves all of them."""

    coefficients: jax.Array
    accuracy: str = eqx.field(static=True, default="exact")

    def _value(self, z):
        return jnp.polyval(jax.vmap(lambda row: jnp.polyval(row[::-1], z[1]))(self.coefficients)[::-1], z[0])

    def loss(self, weights):
        return self._value(flatten(weights))

    def gradient(self, weights):
        return unflatten(jax.grad(self._value)(flatten(weights)), weights)

    def hessian(self, weights):
        return jax.hessian(self._value)(flatten(weights))


def plane(**terms: float) -> Plane:
    """`plane(x2=1, x1y1=-2)` is `x^2 - 2 x y`, up to the sixth power."""
    values = np.zeros((7, 7))
    for name, value in terms.items():
        powers = dict(re.findall(r"([xy])(\d)", name))
        values[int(powers.get("x", 0)), int(powers.get("y", 0))] = value
    return Plane(jnp.asarray(values))


def at(*coordinates: float) -> Weights:
    """One unit whose outgoing weight is the first coordinate and whose incoming weights are the others."""
    values = jnp.array(coordinates, float)
    return Weights(first=values[None, 1:], second=values[None, :1])


def ray(second, first) -> Weights:
    """Units with outgoing weights `second` along the first axis of space, at `first`."""
    rows = jnp.asarray(first, float)[:, None] * jnp.eye(3)[:1]
    return Weights(first=rows, second=jnp.asarray(second, float)[:, None])
