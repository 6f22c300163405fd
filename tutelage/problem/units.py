"""Units with biases: what a neuron of an expert computes, one activation for all or a random polynomial for each."""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage._checks import instance, put, real, refused, whole
from tutelage._errors import BadInput
from tutelage._limits import fits
from tutelage.problem.activations import Activation, Spec, activation
from tutelage.problem.atoms import along_last


class Units(eqx.Module):
    """Neurons `outgoing_j s_j(w_j.x + bias_j)`; a leading axis for experts is allowed everywhere.

    `kind` is an activation that all share. Or it is None, and the neurons are `sum_n signs[j, n] h_{lowest+n}`.
    """

    outgoing: Float[Array, "*expert unit"]
    bias: Float[Array, "*expert unit"]
    signs: Float[Array, "*expert unit term"] | None = None
    kind: Activation | None = eqx.field(static=True, default=None)
    lowest: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        if self.kind is not None:
            instance("Units: kind", self.kind, Activation, "a tt.Activation, such as tt.activation('relu'),")
        elif self.signs is None:
            raise BadInput("Units: there is neither a kind nor signs; give an activation, or signs of polynomials.")
        if jnp.shape(self.outgoing) != jnp.shape(self.bias):
            shapes = f"{jnp.shape(self.outgoing)} and bias {jnp.shape(self.bias)}"
            raise BadInput(f"Units: outgoing has shape {shapes}, but equal shapes were expected.")

    def value(self, pre: Float[Array, "*batch unit"]) -> Float[Array, "*batch unit"]:
        """`s(pre + bias)`; `pre` is `w.x`."""
        z = pre + along_last(self.bias, pre.ndim).astype(pre.dtype)
        return self.kind(z) if self.kind is not None else self._polynomial(z, 0)

    def slope(self, pre: Float[Array, "*batch unit"]) -> Float[Array, "*batch unit"]:
        """`s'(pre + bias)`; refused for units that jump, whose slope of 0 would teach nothing."""
        if self.kind is not None and self.kind.jumps:
            raise BadInput(
                f"On samples a {self.kind.name} has a slope of 0 almost everywhere, so that its units would not move; "
                "use the flow of the population, or a smooth activation."
            )
        z = pre + along_last(self.bias, pre.ndim).astype(pre.dtype)
        return self.kind.derivative(z) if self.kind is not None else self._polynomial(z, 1)

    def expert(self, m: int) -> "Units":
        """The units of one expert."""
        chosen: Units = jax.tree.map(lambda leaf: leaf[m], self)
        return chosen

    def _polynomial(self, z: Array, order: int) -> Array:
        """`sum_n signs_n h_{lowest+n}`, or its derivative by `h_i' = sqrt(i) h_{i-1}`, in one pass of a recurrence."""
        assert self.signs is not None
        signs, count = along_last(self.signs, z.ndim + 1).astype(z.dtype), self.signs.shape[-1]
        before, here, total = jnp.zeros_like(z), jnp.ones_like(z), jnp.zeros_like(z)
        for i in range(self.lowest + count - order):  # `here` is h_i
            place = i + order - self.lowest
            if place >= 0:
                total = total + (math.sqrt(i + 1) if order else 1.0) * signs[..., place] * here
            before, here = here, (z * here - math.sqrt(i) * before) / math.sqrt(i + 1)
        return total


@dataclass(frozen=True)
class Experts:
    """How experts are drawn: `count` networks `1/width sum_j a_j s_j(w_j.x + b_j)`.

    Incoming weights are uniform on the sphere, outgoing ones are signs, biases uniform on `[-bias, bias]`.

    - `activation`: a name, an `Activation` or a function; or a pair (k, p) for random polynomials of these orders,
      `sum_{i=k..p} e_i h_i` with signs `e_i` of its own for each neuron.

    ```python
    >>> import numpy as np, tutelage as tt
    >>> units, first = tt.Experts(8, 4, "relu").draw(np.random.default_rng(0), dim=30)
    >>> first.shape, units.outgoing.shape
    ((8, 4, 30), (8, 4))

    ```
    """

    count: int
    width: int
    activation: Spec | tuple[int, int] = "relu"
    bias: float = 0.0

    def __post_init__(self) -> None:
        count, width = (whole(f"Experts: {name}", getattr(self, name), least=1) for name in ("count", "width"))
        put(self, count=count, width=width, bias=real("Experts: bias", self.bias, least=0))
        if isinstance(self.activation, (tuple, list)):
            orders = tuple(whole("Experts: an order of random polynomials", each) for each in self.activation)
            if not (len(orders) == 2 and orders[0] <= orders[1] <= 30):
                raise BadInput(f"Experts: orders {orders} of random polynomials need 0 <= k <= p <= 30.")
            put(self, activation=orders)
        elif not (isinstance(self.activation, (str, Activation)) or callable(self.activation)):
            raise refused("Experts: activation", self.activation, "a name, an Activation, a function or a pair (k, p)")

    def units(self, draw: np.random.Generator) -> Units:
        """Everything but the incoming weights."""
        shape = (self.count, self.width)
        terms = self.activation[1] if isinstance(self.activation, tuple) else 1
        fits(f"A draw of {self.count} x {self.width} units", 8.0 * math.prod(shape) * (terms + 3), "use fewer units")
        outgoing = draw.choice([-1.0, 1.0], shape)
        bias = draw.uniform(-1, 1, shape) * self.bias
        if not isinstance(self.activation, tuple):
            return Units(jax.device_put(outgoing), jax.device_put(bias), kind=activation(self.activation))
        low, high = self.activation
        signs = draw.choice([-1.0, 1.0], (*shape, high - low + 1))
        return Units(jax.device_put(outgoing), jax.device_put(bias), jax.device_put(signs), lowest=low)

    def draw(self, draw: np.random.Generator, dim: int) -> tuple[Units, Float[np.ndarray, "expert unit dim"]]:
        """Units, and incoming weights on the unit sphere of `dim` dimensions."""
        units, dim = self.units(draw), whole("dim", dim, least=1)
        size = 16.0 * self.count * self.width * dim
        fits(f"A draw of {self.count} x {self.width} units in dim {dim}", size, "use fewer units or dimensions")
        rows = draw.standard_normal((self.count, self.width, dim))
        return units, rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    def overlaps(self, draw: np.random.Generator, dim: int, size: int) -> Float[np.ndarray, "expert unit size"]:
        """The first `size` entries of such weights, in law, without the others: any `dim` costs the same."""
        if not 0 < size <= dim:
            raise BadInput(f"Experts: overlaps with {size} directions were asked for, but dim is {dim}.")
        inside = draw.standard_normal((self.count, self.width, size))
        beyond = draw.chisquare(dim - size, inside.shape[:2]) if dim > size else np.zeros(inside.shape[:2])
        return np.asarray(inside / np.sqrt(np.sum(inside**2, axis=-1) + beyond)[..., None])
