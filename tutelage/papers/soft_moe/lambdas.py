"""The paper's lambda_1 ... lambda_5 (App. A.3): the five moments of two units that make up every gradient."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from tutelage.oracle import Moments, Overlaps
from tutelage.papers.soft_moe.constants import Constants
from tutelage.problem import Activation, Numbers

Two = tuple[ArrayLike, ArrayLike]


class Lambdas(NamedTuple):
    """`K_11^pp, K_10^(p-1,p), K_01^(p-1,p), K_10^(p,p-1), K_00^(p-1,p-1)`, in the paper's order."""

    one: Numbers
    two: Numbers
    three: Numbers
    four: Numbers
    five: Numbers


def seen(routers: ArrayLike, experts: ArrayLike, own: Two, cross: Two) -> Overlaps:
    """Overlaps of pairs of units, as arrays of one shape: `own` is (v1.w1, v2.w2), `cross` (v1.w2, v2.w1)."""
    parts = (routers, experts, own[0], cross[0], cross[1], own[1])
    return Overlaps(*map(jnp.asarray, np.broadcast_arrays(*(np.asarray(part, float) for part in parts))))


def lambdas(constants: Constants, pairs: Overlaps) -> Lambdas:
    """All five, exactly, for any number of pairs.

    ```python
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.lambdas import lambdas, seen
    >>> apart = lambdas(Constants.of(), seen(0.0, 0.1, (0.0, 0.0), (0.0, 0.0)))
    >>> round(float(apart.five), 12)  # 2 c_0^2 I2^2
    0.005

    ```
    """
    flat = Overlaps(*(jnp.ravel(part) for part in pairs))
    found = _lambdas((constants.gate, constants.gate), constants.degree, flat)
    return Lambdas(*(np.asarray(part).reshape(pairs.routers.shape) for part in found))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _lambdas(gates: tuple[Activation, Activation], p: int, pairs: Overlaps) -> list[jax.Array]:
    orders = ((1, 1, p, p), (1, 0, p - 1, p), (0, 1, p - 1, p), (1, 0, p, p - 1), (0, 0, p - 1, p - 1))

    def one(pair: Overlaps) -> list[jax.Array]:
        moments = Moments(gates, (p, p), Overlaps(*(part.reshape(1, 1) for part in pair)))
        return [moments(*order)[0, 0] for order in orders]

    return jax.vmap(one)(pairs)
