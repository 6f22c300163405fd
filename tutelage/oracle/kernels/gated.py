"""Gated units `p(v.x) He_P(w.x)`: exact Gaussian moments of two of them, finite sums in their overlaps.

For unit vectors, with `z1 = v1.x`, `z2 = v2.x`, `z3 = w1.x`, `z4 = w2.x` and gates `p` and `q`,

    K_ab^{PQ} = E[p^(a)(z1) q^(b)(z2) He_P(z3) He_Q(z4)]
              = sum_k k! C(P,k) C(Q,k) (w1.w2)^k (c13 D1 + c23 D2)^(P-k) (c14 D1 + c24 D2)^(Q-k) G_ab(v1.v2),

where `c_ij` is the covariance of `z_i` and `z_j`, `D1` raises `a`, `D2` raises `b`, and
`G_ab(rho) = E[p^(a)(z1) q^(b)(z2)]` is a power series in `rho` from the Hermite coefficients of the gates (Mehler). The
derivative with respect to an overlap is again such a moment (Price), so that gradients are as exact as values.
"""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy.special import gammaln

from tutelage._errors import BadInput
from tutelage.problem.activations import Activation

Pairs = Float[Array, "p q"]
Orders = tuple[int, int]

MOST_TERMS, MOST_ORDERS = 600, 44
"""Of the series in `rho`, and of derivatives of a gate. A sigmoid needs 100 terms; tanh, twice as steep, 370."""


class Units(NamedTuple):
    """Unit vectors of gated units: `router` v and `expert` w."""

    router: Float[Array, "unit frame"]
    expert: Float[Array, "unit frame"]


class Overlaps(NamedTuple):
    """Covariances of the four projections, for each pair of a left and a right unit."""

    routers: Pairs
    experts: Pairs
    own_left: Float[Array, "p 1"]  # c13 = v1.w1
    cross_left: Pairs  # c14 = v1.w2
    cross_right: Pairs  # c23 = v2.w1
    own_right: Float[Array, "1 q"]  # c24 = v2.w2


def overlaps(left: Units, right: Units) -> Overlaps:
    """All inner products of two sets of units."""
    return Overlaps(
        routers=left.router @ right.router.T,
        experts=left.expert @ right.expert.T,
        own_left=jnp.sum(left.router * left.expert, axis=1)[:, None],
        cross_left=left.router @ right.expert.T,
        cross_right=left.expert @ right.router.T,
        own_right=jnp.sum(right.router * right.expert, axis=1)[None, :],
    )


class Series(NamedTuple):
    """`G_ab(rho) = sum_j even[f, j] rho^2j + rho sum_j odd[f, j] rho^2j`, with `f = places[a, b]`.

    Most gates are odd up to a constant. Each of their `G_ab` has powers of one parity only: half of the terms vanish.
    """

    places: dict[Orders, int]
    even: NDArray[np.float64]
    odd: NDArray[np.float64]

    def __call__(self, rho: Pairs) -> Float[Array, "f p q"]:
        """All functions of the table at once."""
        square = jnp.ravel(rho**2)
        powers = _powers(square, self.even.shape[1])
        values = _product(self.even, powers) + jnp.ravel(rho)[None] * _product(self.odd, powers)
        return values.reshape(len(self.even), *rho.shape)


def _powers(x: Float[Array, " pair"], count: int) -> Float[Array, "count pair"]:
    """`x^0` to `x^(count - 1)`, by doubling: few wide products are quicker than many narrow ones."""
    table, factor = jnp.stack([jnp.ones_like(x), x]), x * x
    while len(table) < count:
        table, factor = jnp.concatenate([table, table * factor[None]]), factor * factor
    return table[:count]


def _product(table: NDArray[np.float64], powers: Float[Array, "count pair"]) -> Float[Array, "f pair"]:
    """`table @ powers`, without the rows that vanish."""
    used = np.flatnonzero(np.any(table, axis=1))
    if not len(used):
        return jnp.zeros((len(table), powers.shape[1]))
    product = jnp.asarray(table[used]) @ powers
    if len(used) == len(table):
        return product
    back = np.full(len(table), len(used))
    back[used] = np.arange(len(used))
    return jnp.concatenate([product, jnp.zeros((1, powers.shape[1]))])[back]


@functools.cache
def series(left: Activation, right: Activation, reach: int, parity: int) -> Series:
    """`G_ab` for `a + b <= reach` with `a + b` of the given parity (equal gates: `G_ab = G_ba` is kept once)."""
    orders = [(a, b) for a in range(reach + 1) for b in range(reach + 1 - a) if (a + b) % 2 == parity]
    kept = [(a, b) for a, b in orders if left != right or a >= b]
    table = _coefficients(left, right, kept)
    if (count := _enough(table)) >= MOST_TERMS:
        steep = " and ".join(sorted({left.name, right.name}))
        raise BadInput(f"The gate {steep} is too steep for its series of {MOST_TERMS} terms; use a less steep one.")
    table = table[:, :count]
    table = np.pad(table, ((0, 0), (0, table.shape[1] % 2)))
    places = {pair: place for place, pair in enumerate(kept)}
    places |= {(a, b): places[max(a, b), min(a, b)] for a, b in orders if (a, b) not in places}
    return Series(places, table[:, ::2], table[:, 1::2])


def _coefficients(left: Activation, right: Activation, orders: list[Orders]) -> NDArray[np.float64]:
    """`T_ab[k] = c_{k+a} c_{k+b} / k!` from normalised Hermite coefficients, which do not overflow."""
    a, b = _hermite(left), _hermite(right)
    k = np.arange(MOST_TERMS)
    return np.stack(
        [
            a[k + i] * b[k + j] * np.exp((gammaln(k + i + 1) + gammaln(k + j + 1)) / 2 - gammaln(k + 1))
            for i, j in orders
        ]
    )


@functools.cache
def _hermite(gate: Activation) -> NDArray[np.float64]:
    """Normalised Hermite coefficients, 0 where they are rounding noise: the factorials would blow that up."""
    with jax.ensure_compile_time_eval():
        found = gate.hermite(MOST_TERMS + MOST_ORDERS)
    values = np.asarray(found.values)
    return np.where(np.abs(values) > found.error, values, 0.0)


def _enough(table: NDArray[np.float64]) -> int:
    """How many terms leave a rest below rounding, relative to the largest value, also at `|rho| = 1`."""
    size = np.abs(table)
    rest = np.cumsum(size[:, ::-1], axis=1)[:, ::-1]
    needed = np.any(rest > 1e-16 * (rest[:, :1] + 1e-300), axis=0)
    return int(np.flatnonzero(needed).max(initial=0)) + 1


class Moments:
    """`K_ab^{PQ}` of pairs of units, for all orders that loss and gradient need, from one evaluation of the series."""

    def __init__(self, gates: tuple[Activation, Activation], degrees: Orders, seen: Overlaps, reach: int | None = None):
        self.seen = seen
        table = series(*gates, sum(degrees) + 2 if reach is None else reach, sum(degrees) % 2)
        self.places, self.functions = table.places, table(seen.routers)
        self._raising: dict[Orders, list[Array]] = {}

    def __call__(self, a: int, b: int, left: int, right: int) -> Pairs:
        """`K_ab^{left right}`."""
        total = jnp.zeros_like(self.seen.routers)
        for k in reversed(range(min(left, right) + 1)):  # Horner in w1.w2
            weight = math.factorial(k) * math.comb(left, k) * math.comb(right, k)
            total = total * self.seen.experts + weight * self._raised(a, b, left - k, right - k)
        return total

    def _raised(self, a: int, b: int, left: int, right: int) -> Pairs:
        """`(c13 D1 + c23 D2)^left (c14 D1 + c24 D2)^right G_ab`."""
        terms = self._operator(left, right)
        places = [self.places[a + i, b + left + right - i] for i in range(len(terms))]
        return sum((term * self.functions[place] for term, place in zip(terms, places, strict=True)), jnp.zeros(()))

    def _operator(self, left: int, right: int) -> list[Array]:
        """Coefficients of `D1^i D2^(left + right - i)`, one factor at a time."""
        if (left, right) not in self._raising:
            if left + right == 0:
                found: list[Array] = [jnp.ones((1, 1))]
            elif left > right:
                found = _times(self._operator(left - 1, right), self.seen.own_left, self.seen.cross_right)
            else:
                found = _times(self._operator(left, right - 1), self.seen.cross_left, self.seen.own_right)
            self._raising[left, right] = found
        return self._raising[left, right]


def _times(terms: list[Array], one: Array, two: Array) -> list[Array]:
    """The product of an operator with `one D1 + two D2`."""
    raised = [two * terms[0]]
    raised += [one * low + two * high for low, high in zip(terms, terms[1:], strict=False)]
    return [*raised, one * terms[-1]]


class GatedKernel(eqx.Module):
    """`K(i, j) = E[p(v_i.x) He_P(w_i.x) q(v_j.x) He_Q(w_j.x)]` for unit vectors.

    ```python
    >>> import jax.numpy as jnp
    >>> from tutelage.oracle.kernels.gated import GatedKernel, Units
    >>> from tutelage.problem.activations import sigmoid
    >>> one = Units(router=jnp.eye(4)[:1], expert=jnp.eye(4)[1:2])
    >>> round(float(GatedKernel((sigmoid, sigmoid), (3, 3)).value(one, one)[0, 0]), 9)  # 6 E[sigmoid^2]
    1.760274215

    ```
    """

    gates: tuple[Activation, Activation]
    degrees: Orders = eqx.field(static=True)

    def value(self, left: Units, right: Units) -> Pairs:
        return Moments(self.gates, self.degrees, overlaps(left, right), sum(self.degrees))(0, 0, *self.degrees)

    def pull(self, c: Pairs, left: Units, right: Units) -> Units:
        """`sum_j c_ij dK(i, j)/d(unit i)`, as if the left vectors were free to change their length."""
        p, q = self.degrees
        moment = Moments(self.gates, self.degrees, overlaps(left, right))
        by_routers = c * moment(1, 1, p, q)
        by_experts = c * p * q * moment(0, 0, p - 1, q - 1) if p and q else 0 * c
        by_own = jnp.sum(c * p * moment(1, 0, p - 1, q), axis=1, keepdims=True) if p else 0 * c[:, :1]
        by_cross_left = c * q * moment(1, 0, p, q - 1) if q else 0 * c
        by_cross_right = c * p * moment(0, 1, p - 1, q) if p else 0 * c
        return Units(
            router=by_routers @ right.router + by_own * left.expert + by_cross_left @ right.expert,
            expert=by_experts @ right.expert + by_own * left.router + by_cross_right @ right.router,
        )
