"""Gradient flow by diffrax, with the plain loss of `plain_jax` and its autodiff."""

from functools import partial
from typing import Literal

import diffrax
import jax
from jaxtyping import Array, Float

from tutelage.bench.peers.plain_jax import Rows, loss

SOLVERS = {"Tsit5": diffrax.Tsit5, "Kvaerno5": diffrax.Kvaerno5}


@partial(jax.jit, static_argnames="solver")
def solve(
    first: Rows, teacher: Rows, times: Float[Array, " time"], rtol: float, solver: Literal["Tsit5", "Kvaerno5"]
) -> diffrax.Solution:
    """The flow, kept at these times; the last of them is the end."""
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, w, args: -jax.grad(loss)(w, teacher)),
        SOLVERS[solver](),
        0.0,
        times[-1],
        None,
        first,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
        max_steps=10**6,
    )
