"""The cases in which Theorem 4.3 is exact, and the sign condition of Appendix A.3."""

from enum import StrEnum

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage.oracle import shifted_coefficients
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers, activation

EXACT = 1e-12  # what rounding may leave of an equality
SHIFTS = np.linspace(0.1, 4.0, 40)  # where coefficients are asked to be even functions of the shift


class Protection(StrEnum):
    """Why nothing drives neurons of a vanilla network to the global task, whatever their start; or that something does.

    - `DEGREE`: the activation is a polynomial of degree k, so that `alpha_k` does not depend on the shift, and the
      contributions of the clusters cancel: `sum_c P_c s_c = 0`.
    - `EVEN`: two antipodal clusters with `s_2 = -s_1`, no biases, and coefficients that are even functions of the shift
      for all orders of g (ReLU, and g of even orders).
    """

    DEGREE = "degree"
    EVEN = "even"
    NONE = "none"


def protection(settings: ClusterMoeSettings) -> Protection:
    """Which exactly protected case of Theorem 4.3 the settings are in.

    ```python
    >>> from tutelage.papers.cluster_moe.assumptions import protection
    >>> from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
    >>> str(protection(ClusterMoeSettings())), str(protection(ClusterMoeSettings(bias=1.0)))
    ('even', 'none')

    ```
    """
    problem = settings.problem()
    balance = float(np.sum(problem.inputs.weights * np.asarray(problem.teacher.interference)))
    if abs(balance) > EXACT:
        return Protection.NONE
    if settings.activation == "polynomial" and settings.kind == (settings.exponent, settings.exponent):
        return Protection.DEGREE
    if settings.means == "antipodal" and settings.bias == 0 and _even(settings):
        return Protection.EVEN
    return Protection.NONE


def _even(settings: ClusterMoeSettings) -> bool:
    if settings.activation == "polynomial":  # of several orders, which give odd powers of the shift
        return False
    orders = np.flatnonzero(np.asarray(settings.problem().teacher.shared))
    kind, count = activation(settings.activation), int(orders.max(initial=0)) + 1
    right, left = (
        np.asarray(shifted_coefficients(kind, jnp.asarray(sign * SHIFTS), count))[:, orders] for sign in (1, -1)
    )
    return bool(np.all(np.abs(right - left) <= 1e-9))


def compatible(alpha: Numbers, task: Numbers, exponent: int) -> NDArray[np.bool_]:
    """A.3: `alpha_i task_i >= 0` at the lowest order k and `> 0` above, wherever the task has an order."""
    orders = np.flatnonzero(task)
    product = alpha[..., orders] * task[orders]
    return np.all(np.where(orders == exponent, product >= 0, product > 0), axis=-1)
