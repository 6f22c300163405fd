"""The paper's assumptions, each with what is measured of its violation, and the cases in which Theorem 4.3 is exact."""

import math
from dataclasses import dataclass
from enum import StrEnum

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage.oracle import shifted_coefficients
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.cluster_moe.vanilla import begun, coefficients, race
from tutelage.problem import Numbers, activation

EXACT = 1e-12  # what rounding may leave of an equality
SHIFTS = np.linspace(0.1, 4.0, 40)  # where coefficients are asked to be even functions of the shift


@dataclass(frozen=True)
class Assumption:
    """One condition: does it hold, by how much is it violated, and what that means."""

    name: str
    holds: bool
    violation: float
    sentence: str


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


def assumptions(settings: ClusterMoeSettings, *, neurons: int = 800, seed: int = 0) -> tuple[Assumption, ...]:
    """Assumptions 3.2 to 3.4 and the sign condition of A.3, for these settings.

    What depends on the start is measured on `neurons` of them; signs along training by the exact population flow of a
    network without a router, which Phase I is up to a factor of time.

    ```python
    >>> from tutelage.papers.cluster_moe.assumptions import teacher_assumptions
    >>> from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
    >>> [each.name for each in teacher_assumptions(ClusterMoeSettings(local=({3: 1.0}, {4: 1.0}))) if not each.holds]
    ['3.2 even exponent', '3.2 equal lowest coefficients']

    ```
    """
    return (
        *teacher_assumptions(settings),
        *direction_assumptions(settings),
        *activation_assumptions(settings, neurons, seed),
        *sign_conditions(settings, neurons, seed),
    )


def teacher_assumptions(settings: ClusterMoeSettings) -> tuple[Assumption, ...]:
    """Assumption 3.2: the clusters and what is to be learned in them."""
    problem, k = settings.problem(), settings.exponent
    local, shared = np.asarray(problem.teacher.local), np.asarray(problem.teacher.shared)
    weights, interference = problem.inputs.weights, np.asarray(problem.teacher.interference)
    total = float(abs(interference.sum()))
    uneven = float(np.abs(weights * len(weights) - 1).max())
    lowest = np.abs(np.append(local[:, k], shared[k]))
    apart = float(lowest.max() - lowest.min())
    squares = np.append((local**2).sum(1), (shared**2).sum())
    off = float(np.abs(squares - 1).max())
    return (
        Assumption("3.2 equal clusters", uneven <= EXACT, uneven, f"Clusters' weights are within {uneven:.3g} of 1/C."),
        Assumption("3.2 balance", total <= EXACT, total, f"The interference weights s_c add up to {total:.3g}."),
        Assumption(
            "3.2 exponent", k > 2, float(max(0, 3 - k)), f"The information exponent k is {k}; above 2 is asked."
        ),
        Assumption(
            "3.2 even exponent",
            k % 2 == 0,
            float(k % 2),
            f"k is {k}; for odd k half of the starts lie on the wrong side of the saddle and cross it by noise alone.",
        ),
        Assumption(
            "3.2 equal lowest coefficients",
            apart <= EXACT,
            apart,
            f"|beta_(c,k)| and |gamma_k| lie between {lowest.min():.3g} and {lowest.max():.3g}.",
        ),
        Assumption(
            "3.2 unit variance",
            off <= EXACT,
            off,
            f"E f_c^2 and E g^2 lie in [{squares.min():.3g}, {squares.max():.3g}].",
        ),
    )


def direction_assumptions(settings: ClusterMoeSettings) -> tuple[Assumption, ...]:
    """Assumption 3.3: tasks are nearly orthogonal to each other, and exactly to the means."""
    problem = settings.problem()
    frame, tasks = problem.frame, settings.clusters + 1
    gram = np.abs(frame @ frame.T)
    among = float(np.max(gram[:tasks, :tasks] - np.eye(tasks))) * math.sqrt(settings.dim)
    across = float(np.max(gram[:tasks, tasks:]))
    bound = math.log(settings.dim)
    return (
        Assumption(
            "3.3 tasks", among <= bound, among, f"The largest |w_i.w_i'| sqrt(d) is {among:.3g}, log d is {bound:.3g}."
        ),
        Assumption("3.3 means", across <= EXACT, across, f"The largest |v_c.w_i| is {across:.3g}."),
    )


def activation_assumptions(settings: ClusterMoeSettings, neurons: int, seed: int = 0) -> tuple[Assumption, ...]:
    """Assumption 3.4: coefficients of order 1 that keep their signs while the network is trained."""
    orders = _orders(settings)
    oracle, units, start = begun(settings, neurons, seed)
    alpha = np.abs(coefficients(oracle, units, start, max(orders) + 2))[..., orders]
    small = float(np.mean(alpha.min((-2, -1)) < 0.01))
    ran = race(settings, neurons, seed)
    flipped = np.isfinite(ran.flow.flipped[..., orders]).any((-2, -1))
    share = float(flipped.mean())
    return (
        Assumption(
            "3.4 coefficients",
            small == 0,
            small,
            f"{small:.1%} of {neurons} neurons have an |alpha_i(b + rho nu_c)| below 0.01; the median of these is "
            f"{np.median(alpha.min((-2, -1))):.3g}.",
        ),
        Assumption(
            "3.4 signs",
            share == 0,
            share,
            f"For {share:.1%} of {neurons} neurons an alpha_i(b + rho nu_c) changes its sign in the population flow.",
        ),
    )


def sign_conditions(settings: ClusterMoeSettings, neurons: int, seed: int = 0) -> tuple[Assumption, ...]:
    """Appendix A.3: for each task, a fraction of the neurons has coefficients of the task's own signs."""
    oracle, units, start = begun(settings, neurons, seed)
    k = settings.exponent
    # The condition is one on alpha_i(b), before any shift by a mean.
    alpha = coefficients(oracle, units, np.zeros(start.shape), oracle.local.shape[1] + 1)[:, 0]
    found = []
    for c in range(settings.clusters):
        for name, task in ((f"local {c + 1}", oracle.local[c]), (f"global in {c + 1}", oracle.shared[c])):
            share = float(np.mean(compatible(alpha, np.asarray(task), k)))
            text = f"{share:.1%} of {neurons} neurons have coefficients of this task's signs."
            found.append(Assumption(f"A.3 {name}", share > 0, 1 - share, text))
    return tuple(found)


def compatible(alpha: Numbers, task: Numbers, exponent: int) -> NDArray[np.bool_]:
    """A.3: `alpha_i task_i >= 0` at the lowest order k and `> 0` above, wherever the task has an order."""
    orders = np.flatnonzero(task)
    product = alpha[..., orders] * task[orders]
    return np.all(np.where(orders == exponent, product >= 0, product > 0), axis=-1)


def _orders(settings: ClusterMoeSettings) -> list[int]:
    teacher = settings.problem().teacher
    used = np.abs(np.asarray(teacher.local)).sum(0) + np.abs(np.asarray(teacher.shared))
    return [int(i) for i in np.flatnonzero(used) if i > 0]
