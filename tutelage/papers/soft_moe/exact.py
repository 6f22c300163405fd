"""Gradient and Hessian of the exact loss at given vectors, compiled once a shape; teachers are orthonormal."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from tutelage.oracle import MixtureOracle
from tutelage.papers.soft_moe.constants import Constants
from tutelage.problem import GatedHidden, Numbers, Weights


class Exact:
    """The loss of students of `constants`' kind, for `teachers` on the first axes, routers and then experts.

    `taught` are the teachers' output weights, 1 if not given.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.soft_moe.constants import Constants
    >>> from tutelage.papers.soft_moe.exact import Exact
    >>> exact = Exact(Constants.of(), teachers=1, frame=3)
    >>> bool(np.abs(exact.gradient(np.eye(2, 3))).max() < 1e-14)  # at the minimum
    True

    ```
    """

    def __init__(self, constants: Constants, teachers: int, frame: int, taught: Sequence[float] | None = None):
        hidden = GatedHidden(constants.gate, constants.degree)
        self.teacher = np.eye(2 * teachers, frame)
        weights = np.ones(teachers) if taught is None else np.asarray(taught, float)
        self.oracle = MixtureOracle(hidden, hidden, _weights(self.teacher, weights))

    def gradient(self, first: Numbers, second: Sequence[float] | None = None) -> Numbers:
        """In the rows `first` (2m, frame), for output weights `second`, 1 if not given."""
        out = np.ones(len(first) // 2) if second is None else np.asarray(second, float)
        return np.asarray(gradient_of(self.oracle, _weights(first, out)))

    def hessian(self, first: Numbers) -> Numbers:
        """In the rows, flattened: (2m frame, 2m frame)."""
        return np.asarray(_hessian(self.oracle, _weights(first, np.ones(len(first) // 2))))


def _weights(first: Numbers, second: Numbers) -> Weights:
    return Weights(jnp.asarray(first), jnp.asarray(second)[:, None])


@eqx.filter_jit
def gradient_of(oracle: MixtureOracle, weights: Weights) -> jax.Array:
    """In the rows of routers and experts."""
    return oracle.gradient(weights).first


@eqx.filter_jit
def _hessian(oracle: MixtureOracle, weights: Weights) -> jax.Array:
    cut = weights.second.size  # output weights come first
    return oracle.hessian(weights)[cut:, cut:]
