"""Stage 2: masses on the teacher's axes against those of dense neurons (Claim A.10, with the constants it leaves open).

`gamma_i` is the mass of the neurons that have become `+-e_i`, `beta_i = E v_i^2` of the dense ones. With
`Delta = 2 b_0 (sum(beta + gamma) - 1)`, `C_1 = 2 b_2 = 8/pi` and `C_2 = 8 (1 - 3/pi)`,

    gamma_i' = gamma_i [-Delta + C_1 (a_i - beta_i - gamma_i) + C_2 (a_i - gamma_i)],
    beta_i'  = beta_i  [-Delta + C_1 (a_i - beta_i - gamma_i)],

up to terms of order 1/d^2 in the brackets. A neuron's own coordinate grows at half of these rates; Eq. (A.45) prints
the whole of C_2. Orders 0 and 2 relax first. What is left, `beta' = -C_2 beta gamma (a - gamma)/(beta + gamma)` in each
coordinate, gives `beta ~ 1/(C_2 t)`: the loss falls only as a power of time, with exponent -2.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from tutelage import BadInput
from tutelage.papers.beyond_ntk.constants import B0, C0, C2, RATE1, RATE2, TAIL
from tutelage.papers.beyond_ntk.directions import signal
from tutelage.problem import Numbers

RTOL, ATOL = 1e-10, 1e-13
"""Of the solver, on the logarithms of the masses."""


class Masses(NamedTuple):
    """`beta` of the dense neurons and `gamma` on the axes, each (..., d)."""

    beta: Numbers
    gamma: Numbers

    @property
    def total(self) -> Numbers:
        """`E v_i^2` of both."""
        return self.beta + self.gamma


def imbalance(masses: Masses, weights: ArrayLike) -> Numbers:
    """Delta of Stage 2, which has `2 b_0` where that of Stage 1 has `b_0`."""
    return 2 * B0 * (masses.total.sum(-1) - np.sum(weights))


def rates(masses: Masses, weights: ArrayLike) -> Masses:
    """The logarithmic rates of both masses: the brackets of Claim A.10."""
    a = np.asarray(weights, float)
    return _rates(masses, a, np.ones_like(a))


def _rates(masses: Masses, a: Numbers, counts: ArrayLike) -> Masses:
    """The same where coordinate i stands for `counts[i]` equal ones."""
    over = masses.total - a
    dense = -2 * B0 * np.sum(np.asarray(counts) * over, axis=-1, keepdims=True) - RATE1 * over
    return Masses(dense, dense + RATE2 * (a - masses.gamma))


def flow(start: Masses, weights: ArrayLike, times: ArrayLike) -> Masses:
    """Masses (time, d) from `start` at time 0, by an implicit solver on their logarithms.

    Coordinates that start equal stay so, and only one of each kind is solved for.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.beyond_ntk.masses import Masses, flow, law
    >>> a = np.full(4, 0.25)
    >>> end = flow(Masses(0.9 * a, 0.1 * a), a, [0.0, 1e5])
    >>> (end.beta[-1] / law(1e5, dim=4)).round(3).tolist()
    [1.001, 1.001, 1.001, 1.001]

    ```
    """
    a = np.asarray(weights, float)
    each = np.stack([a, *(np.broadcast_to(part, a.shape) for part in start)])
    if np.any(each <= 0):
        raise BadInput("flow: the start has a mass that is not positive, which would stay so; pass positive masses.")
    (a, *first), kind, counts = np.unique(each, axis=1, return_inverse=True, return_counts=True)
    times, size = np.asarray(times, float), len(a)

    def velocity(_: float, logs: Numbers) -> Numbers:
        return np.concatenate(_rates(Masses(*np.split(np.exp(logs), 2)), a, counts))

    def slope(_: float, logs: Numbers) -> Numbers:
        both = np.exp(logs)
        here = np.arange(2 * size)
        other = (here + size) % (2 * size)
        matrix = np.tile(-2 * B0 * np.tile(counts, 2) * both, (2 * size, 1))
        matrix[here, here] -= RATE1 * both
        matrix[here, other] -= RATE1 * both[other]
        matrix[here[size:], here[size:]] -= RATE2 * both[size:]
        return matrix

    begin = np.log(np.concatenate(first))
    found = solve_ivp(velocity, (0.0, times[-1]), begin, "LSODA", times, jac=slope, rtol=RTOL, atol=ATOL)
    return Masses(*(part[:, kind] for part in np.split(np.exp(found.y.T), 2, axis=1)))


def descent(start: Masses, weights: ArrayLike, step: float, steps: int) -> Masses:
    """Masses (steps + 1, d) of the recursion of Claim A.10, without its error terms."""
    a = np.asarray(weights, float)
    now = Masses(*(np.broadcast_to(part, a.shape).astype(float) for part in start))
    path = [now]
    for _ in range(steps):
        rate = rates(now, a)
        now = Masses(now.beta * (1 + step * rate.beta), now.gamma * (1 + step * rate.gamma))
        path.append(now)
    return Masses(*(np.stack(column) for column in zip(*path, strict=True)))


def neuron_rates(neurons: ArrayLike, masses: Masses, weights: ArrayLike) -> Numbers:
    """`(v_i^2)'/v_i^2` of any neurons (n, d) in Stage 2 (Eq. A.57): dense, on an axis, or between."""
    v, a = np.asarray(neurons, float), np.asarray(weights, float)
    unit = v / np.linalg.norm(v, axis=-1, keepdims=True)
    return rates(masses, a).beta + 2 * signal(unit, a - masses.gamma)


def tau(masses: Masses, weights: ArrayLike) -> Numbers:
    """`tau_i` of Lemma A.6: `(beta_i + gamma_i)' = (beta_i + gamma_i)(tau_i - Delta)`."""
    a = np.asarray(weights, float)
    return RATE1 * (a - masses.total) + RATE2 * masses.gamma / masses.total * (a - masses.gamma)


def potential(
    masses: Masses, weights: ArrayLike, *, share: float = 4.0, lead: float = 1.1, net: bool = False
) -> Numbers:
    """`Phi` of Lemma A.6 for masses (..., d): `share` is the paper's C, `lead` its `1 + 1/poly(kappa)`.

    The paper adds up excess and lack apart, `Delta_+ = b_0 sum [beta_i + gamma_i - a_i]^+`. They cancel in the rates,
    which only have the sum of both; `net` puts the positive and the negative part of that sum in their place.
    """
    a = np.asarray(weights, float)
    each, over = tau(masses, a), masses.total - a
    if net:
        over = over.sum(-1, keepdims=True)
    parts = (
        np.maximum(np.max(-each, axis=-1), 0.0),
        np.maximum(np.max(each, axis=-1), 0.0),
        lead * B0 * np.sum(np.maximum(over, 0.0), axis=-1),
        lead * B0 * np.sum(np.maximum(-over, 0.0), axis=-1),
        np.max(masses.beta, axis=-1) / share,
    )
    return np.max(np.stack(parts), axis=0)


def loss(masses: Masses, weights: ArrayLike) -> Numbers:
    """The paper's L of these masses, up to terms of order 1/d^2: of the orders from 4 on, dense neurons have none."""
    a = np.asarray(weights, float)
    zero, second = masses.total.sum(-1) - a.sum(), np.sum((masses.total - a) ** 2, axis=-1)
    return C0 * zero**2 + C2 * second + TAIL * np.sum((masses.gamma - a) ** 2, axis=-1)


def loss_share(share: float = 4.0, lead: float = 1.1) -> float:
    """A constant with `loss <= constant d Phi^2` (Eq. A.11), for `Phi` with these parameters, from d = 1 on.

    From `|tau_i| <= Phi`: `|beta_i + gamma_i - a_i| <= (1 + C_2 C)/(C_1 - C_2) Phi`, and `beta_i <= C Phi`.

    ```python
    >>> from tutelage.papers.beyond_ntk.masses import loss_share
    >>> round(loss_share(), 3)
    1.659

    ```
    """
    excess = (1 + RATE2 * share) / (RATE1 - RATE2)
    return C0 / (lead * B0) ** 2 + C2 * excess**2 + TAIL * (excess + share) ** 2


def law(times: ArrayLike, dim: float = np.inf) -> Numbers:
    """`1/(C_2 t)`, to which every beta_i tends, whatever `a` and the start.

    For finite d the rate is `C_2 (1 - C_2/(C_1 + 2 b_0 d))`: the axes carry a little more than `a - beta`.
    """
    return 1 / (RATE2 * (1 - RATE2 / (RATE1 + 2 * B0 * dim)) * np.asarray(times, float))


def law_loss(times: ArrayLike, dim: int) -> Numbers:
    """`(1 - 3/pi) d/(C_2 t)^2`, to which the loss tends."""
    return TAIL * dim * law(times) ** 2
