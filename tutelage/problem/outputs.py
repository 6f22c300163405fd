"""What experts say about samples: the values of their units, and their outputs."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tutelage._errors import BadInput
from tutelage.problem.units import Units

First = Float[Array, "expert unit dim"] | Float[np.ndarray, "expert unit dim"]


def unit_values(units: Units, first: First, inputs: Float[Array, "sample dim"]) -> Float[Array, "sample expert unit"]:
    """`s_mj(w_mj.x + b_mj)`, in double precision."""
    first = jnp.asarray(first, float)
    flat = inputs.astype(float) @ first.reshape(-1, first.shape[-1]).T
    return units.value(flat.reshape(len(inputs), *first.shape[:-1]))


def expert_outputs(units: Units, first: First, inputs: Float[Array, "sample dim"]) -> Float[Array, "sample expert"]:
    """`f_m(x) = 1/J sum_j a_mj s_mj(w_mj.x + b_mj)`."""
    return jnp.mean(units.outgoing[None] * unit_values(units, first, inputs), axis=-1)


def checked(owner: str, units: Units, first: First, dim: int) -> First:
    """The incoming weights, if they belong to these units and to inputs of `dim` dimensions."""
    shape, wanted = jnp.shape(first), (*jnp.shape(units.outgoing), dim)
    if len(shape) != 3 or shape != wanted:
        raise BadInput(f"{owner}: first has shape {shape}, but (experts, units, dim) = {wanted} was expected.")
    return jnp.asarray(first, float)
