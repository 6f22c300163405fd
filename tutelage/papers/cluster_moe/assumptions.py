"""The cases in which Theorem 4.3 is exact, and the sign condition of Appendix A.3."""

from enum import StrEnum

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage.analysis import Hypothesis
from tutelage.oracle import shifted_coefficients
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Numbers, activation

EXACT = 1e-12  # what rounding may leave of an equality
LEAST = 1.0  # what the sufficiently large constant, of whose order rho is, is taken for: the paper names none
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


def far_enough(radius: float) -> Hypothesis:
    """Assumption 3.2 on rho: of the order of a sufficiently large constant. What it is taken for is ours."""
    return Hypothesis(
        f"rho is sufficiently large (read as {LEAST:g} or more: no constant is named)",
        radius >= LEAST,
        radius,
        LEAST,
        ">=",
    )


def assumed(settings: ClusterMoeSettings) -> tuple[Hypothesis, ...]:
    """Assumptions 3.2 and 3.3: distant clusters, tasks of one size that cancel, and means beside them.

    Assumption 3.4 speaks of a run: see `signs`.
    """
    problem = settings.problem()
    teacher, k, count = problem.teacher, settings.exponent, settings.clusters
    local, shared = np.asarray(teacher.local), np.asarray(teacher.shared)
    gram = problem.frame @ problem.frame.T
    lengths = np.sum(np.vstack([local, shared]) ** 2, axis=1)
    sums = abs(float(np.sum(np.asarray(teacher.interference))))
    unequal = float(np.max(np.abs(np.abs(local[:, k]) - abs(shared[k]))))
    uneven = float(np.max(np.abs(lengths - 1)))
    between = float(np.max(np.abs(gram[: count + 1, : count + 1] - np.eye(count + 1)))) * settings.dim**0.5
    along = float(np.max(np.abs(gram[: count + 1, count + 1 :])))
    return (
        far_enough(settings.radius),
        Hypothesis("k is even and above 2", k % 2 == 0 and k > 2, float(k), 4.0, ">="),
        Hypothesis("sum of s_c = 0", sums <= EXACT, sums, EXACT),
        Hypothesis("| |beta_(c,k)| - |gamma_k| | = 0", unequal <= EXACT, unequal, EXACT),
        Hypothesis("| E f^2 - 1 | = 0", uneven <= EXACT, uneven, EXACT),
        Hypothesis("|w_i.w_j| sqrt(d) of order one", between <= 1, between, 1.0),
        Hypothesis("v_c.w_i = 0", along <= EXACT, along, EXACT),
    )


def example_4_1(settings: ClusterMoeSettings) -> tuple[Hypothesis, ...]:
    """What Theorem 4.3 asks for besides (Example 4.1, Definition B.1)."""
    problem = settings.problem()
    local, k, count = np.asarray(problem.teacher.local), settings.exponent, settings.clusters
    gram = (problem.frame @ problem.frame.T)[: count + 1, : count + 1]
    off = float(np.max(np.abs(gram - np.eye(count + 1))))
    return (
        Hypothesis("k is even and at least 5", k % 2 == 0 and k >= 5, float(k), 5.0, ">="),
        Hypothesis("tasks are orthogonal", off <= EXACT, off, EXACT),
        Hypothesis("two local tasks have opposite signs", len(set(np.sign(local[:, k]))) > 1),
    )
