"""Appendix C's and D's lemmas: Stein's identity, Hermite coefficients, and moments of units that overlap little."""

import itertools
import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval
from numpy.polynomial.polynomial import polyval

from tutelage.analysis import Claim, Finding, Kind, all_of, at_least, at_most, lines
from tutelage.oracle import Moments, Overlaps
from tutelage.papers.soft_moe.checks.units import WRONG, paper, papers_units
from tutelage.papers.soft_moe.constants import logistic_coefficients
from tutelage.papers.soft_moe.evidence import Evidence
from tutelage.problem import Numbers

EXACT = 1e-12
SLACK = 0.05  # of an exponent: the next term is smaller by the square root of eps, or more
EPSILONS = np.geomspace(1e-5, 1e-2, 7)
DRAWS = 4  # directions in which overlaps go to zero
ORDERS = range(3)  # of derivatives of the gate


# The sigmoid by its own formula: a second route to its derivatives.


def sigmoid(order: int, z: Numbers) -> Numbers:
    """`sigmoid^(order)(z)`, a polynomial in the sigmoid: `f' = f - f^2`."""
    value = 1 / (1 + np.exp(-z))
    powers = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        powers = powers.deriv() * np.polynomial.Polynomial([0.0, 1.0, -1.0])
    return np.asarray(polyval(value, powers.coef))


def expert(order: int, z: Numbers) -> Numbers:
    """`sigma^(order)(z)` of `sigma = He_3`: `3!/(3 - order)! He_(3 - order)`."""
    if order > 3:
        return np.zeros_like(z)
    return math.perm(3, order) * hermeval(z, np.eye(4)[3 - order])


def nodes(count: int) -> tuple[Numbers, Numbers]:
    """Gauss-Hermite nodes and weights of the standard normal law."""
    places, weights = hermegauss(count)
    return places, weights / weights.sum()


# Lemma 18.


@papers_units
def lemma_18(evidence: Evidence) -> Finding:
    def average(a: int, b: int) -> float:
        return float(mass @ (gates[a] * experts[b]))

    rng, (places, weights) = np.random.default_rng(18), nodes(80)
    x = np.stack([part.ravel() for part in np.meshgrid(places, places, indexing="ij")], axis=1)
    mass, worst = np.outer(weights, weights).ravel(), 0.0
    for g, h in ((0, 0), (1, 1), (2, 0)):
        v, w = 0.7 * rng.standard_normal((2, 2))
        gates = [sigmoid(g + more, x @ v) for more in range(3)]
        experts = [expert(h + more, x @ w) for more in range(3)]
        left = np.einsum("n,ni,nj->ij", mass * gates[0] * experts[0], x, x)
        right = stein(average, v, w)
        worst = max(worst, float(np.max(np.abs(left - right)) / np.max(np.abs(left))))
    return at_most(worst, 1e-9, detail="Three pairs g, h of derivatives of sigmoid and He_3, in the plane of v and w; "
                   "both sides by Gauss-Hermite quadrature with 80^2 nodes, relative.")  # fmt: skip


def stein(moment: Callable[[int, int], float], v: Numbers, w: Numbers) -> Numbers:
    """The right side of Lemma 18, from `E[g^(a) h^(b)]`."""
    mixed = np.outer(v, w) + np.outer(w, v)
    own = moment(2, 0) * np.outer(v, v) + moment(0, 2) * np.outer(w, w)
    return moment(0, 0) * np.eye(len(v)) + moment(1, 1) * mixed + own


# Lemmas 20, 27, 29, 30, 31: the sigmoid's coefficients.


@papers_units
def lemma_20(evidence: Evidence) -> Finding:
    places, weights = nodes(200)
    found = [_over_bound(order, float(weights @ sigmoid(order, places) ** 2)) for order in range(4)]
    text = "Largest c_(k+l)^2 / (E[(f^(l))^2] k!) of the sigmoid, k <= 60, for l = 0, 1, 2, 3: "
    return at_most(found, 1.0, detail=text + ", ".join(f"{worst:.4f}" for worst in found) + ".")


def _over_bound(order: int, square: float) -> float:
    logs = [_log_square(k + order) - math.lgamma(k + 1) for k in range(61)]
    return math.exp(max(logs)) / square


def _log_square(k: int) -> float:
    """`log c_k^2`: the k-th coefficient is `a_k sqrt(k!)`; even ones vanish but for c_0 = 1/2."""
    if k == 0:
        return 2 * math.log(0.5)
    if k % 2 == 0:
        return -math.inf
    return 2 * math.log(abs(float(logistic_coefficients(k // 2 + 1)[-1]))) + math.lgamma(k + 1)


@papers_units
def lemma_27(evidence: Evidence) -> Finding:
    z, (places, weights) = np.linspace(-40, 40, 80001), nodes(200)
    third = float(np.max(sigmoid(3, z) ** 2))
    means = [abs(float(weights @ sigmoid(2 * k, places))) for k in range(1, 5)]
    text = f"f'''^2 is at most {third:.6f} (1/64); E[f] - 1/2 and E[f^(2k)], k = 1 to 4, by 200 nodes."
    return all_of(
        [
            at_most(third, 1.0, detail=text),
            at_most(abs(float(weights @ sigmoid(0, places)) - 0.5), EXACT),
            at_most(means, EXACT),
        ]
    )


def bent(rho: Numbers) -> Numbers:
    """`E[pi(z1) pi''(z2)]` for correlations rho, by quadrature in two variables."""
    places, weights = nodes(60)
    mass = np.outer(weights, weights)
    first, other = places[:, None], places[None]
    return np.array(
        [np.sum(mass * sigmoid(0, first) * sigmoid(2, r * first + math.sqrt(1 - r * r) * other)) for r in rho]
    )


@papers_units
def lemma_29(evidence: Evidence) -> Finding:
    gamma = np.linspace(0.01, 1, 100)
    series, apart = paper().correlation(0, 2, gamma), 0.0
    apart = float(np.max(np.abs(series - bent(gamma))))
    text = f"On 100 points of (0, 1] the sum lies in [{series.min():.6f}, {series.max():.2g}]; quadrature of "
    text += f"E[pi pi''] agrees to {apart:.0e}. The series is an average only for gamma up to 1."
    return all_of([at_most(series, 0.0, detail=text), at_most(apart, 1e-7)])


def lemma_30(printed: bool) -> Finding:
    """Sequences at the edge of what is assumed, `c_k = sqrt(B k!)`, with signs and without; and the sigmoid's own."""
    x, k = np.linspace(-0.95, 0.95, 191), np.arange(2000)
    worst = []
    for size in (0.25, 1.0, 4.0):
        total = size * np.sum(x[:, None] ** k, axis=1)
        allowed = (1.0 if printed else size) * np.abs(x) / (1 - np.abs(x))
        worst.append(float(np.max(np.abs(total - size) - allowed)))
    own = np.abs(paper().correlation(0, 0, x) - 0.25) - np.abs(x) / (1 - np.abs(x))
    text = "Largest excess over the bound for c_k = sqrt(B k!), B = 1/4, 1, 4: "
    text += ", ".join(f"{value:.3g}" for value in worst) + f"; for the sigmoid {own.max():.3g}."
    return at_most([*worst, float(own.max())], 1e-10, detail=text)


@papers_units
def lemma_31(evidence: Evidence) -> Finding:
    ends = np.linspace(-0.95, 0.0, 20)
    excess = [float(np.max(paper().correlation(0, 2, np.linspace(b, 1, 200)))) - abs(b) / (1 - abs(b)) for b in ends]
    edge = [float(paper().correlation(0, 2, b)) / max(abs(b) / (1 - abs(b)), 1e-300) for b in ends[:-1]]
    text = f"b from -0.95 to 0, 200 gammas each; the sum is at most {max(edge):.4f} of |b| / (1 - |b|)."
    return at_most(excess, EXACT, detail=text)


# Lemmas 22 to 25: units that overlap little.


def moments(seen: Overlaps) -> Callable[[int, int, int, int], Numbers]:
    """`E[pi^(a) sigma^(b) pi^(a') sigma^(b')]` of pairs of units, for (a, b, a', b')."""
    tables = [Moments((paper().gate,) * 2, (3, 3 - parity), seen, 14) for parity in (0, 1)]

    def moment(a: int, b: int, other_a: int, other_b: int) -> Numbers:
        if max(b, other_b) > 3:
            return np.zeros(seen.routers.shape)
        left, right = 3 - b, 3 - other_b
        table = tables[(a + other_a + left + right) % 2]
        return np.asarray(math.perm(3, b) * math.perm(3, other_b) * table(a, other_a, left, right))

    return moment


def pairs(routers: Numbers, experts: Numbers, own: tuple[Numbers, Numbers], cross: tuple[Numbers, Numbers]) -> Overlaps:
    """Overlaps of as many pairs as there are entries, in a row each."""
    parts = (routers, experts, own[0], cross[0], cross[1], own[1])
    return Overlaps(*(jnp.asarray(part, float).reshape(-1, 1) for part in np.broadcast_arrays(*parts)))


def _small(tag: int, count: int) -> Numbers:
    """Overlaps (count, direction, epsilon), the largest of size epsilon."""
    values = np.random.default_rng([22, tag]).uniform(-1, 1, (count, DRAWS, 1))
    return values / np.max(np.abs(values), axis=0) * EPSILONS


def _slope(values: Numbers) -> float:
    """The exponent in epsilon of the largest of (direction, epsilon); infinite of what vanishes by symmetry."""
    largest = np.max(np.abs(values), axis=0)
    return float(lines.exponent(EPSILONS, largest)) if largest.any() else math.inf


def _exponents(found: dict[str, tuple[float, float]]) -> Finding:
    """Each (exponent, stated one): all must be as large as stated."""
    text = ", ".join(f"{name} {slope:.2f} (stated {stated:g})" for name, (slope, stated) in found.items())
    margin = min(slope - stated for slope, stated in found.values())
    return at_least(margin, -SLACK, detail=f"Exponents in eps from 1e-5 to 1e-2: {text}.")


def _of_two(tag: int) -> tuple[Numbers, Numbers, Numbers]:
    """`E[h_i^2]`, `E[h_i h_j]` of units far apart and of units close together, as (direction, epsilon)."""
    rho, sg, c13, c14, c23, c24 = _small(tag, 6)
    shape, alone = rho.shape, np.ones_like(rho)
    own = moments(pairs(alone, alone, (c13, c13), (c13, c13)))(0, 0, 0, 0).reshape(shape)
    apart = moments(pairs(rho, sg, (c13, c24), (c14, c23)))(0, 0, 0, 0).reshape(shape)
    near = moments(pairs(1 - np.abs(rho), 1 - np.abs(sg), (c13, c24), (c14, c23)))(0, 0, 0, 0).reshape(shape)
    return own, apart, near


@papers_units
def lemma_22(evidence: Evidence) -> Finding:
    own, apart, near = _of_two(0)
    square = 6 * paper().square
    return _exponents(
        {
            "E[h_i^2] - 6 E[pi^2]": (_slope(own - square), 2),
            "E[h_i h_j] apart": (_slope(apart), 3),
            "E[h_i h_j] - E[h_i^2] close": (_slope(near - own), 1),
        }
    )


@papers_units
def lemma_22_printed(evidence: Evidence) -> Finding:
    own, apart, _ = _of_two(0)
    slope = _slope(apart - 6 * own)
    off = float(np.mean((apart - 6 * own)[:, 0]))
    text = f"With |w_i.w_j| <= eps the difference E[h_i h_j] - 6 E[h_i^2] goes to {off:.3f}"
    return at_least(slope, 1 - SLACK, detail=f"{text}: exponent {slope:.2f} (stated 1).")


@papers_units
def fourth_power(evidence: Evidence) -> Finding:
    slope = _slope(_of_two(0)[1])
    return at_least(
        slope, 4 - SLACK, detail=f"E[h_i h_j] of units far apart has the exponent {slope:.2f}, 6 c_0^2 I2^3."
    )


@papers_units
def lemma_25(evidence: Evidence) -> Finding:
    rho, sg, c13, c14, c23, c24 = _small(25, 6)
    moment = moments(pairs(rho, sg, (c13, c24), (c14, c23)))
    orders = [b for b in itertools.product(range(4), range(4)) if sum(b) <= 5]
    slopes = {
        (a, b): _slope(moment(a[0], b[0], a[1], b[1]).reshape(rho.shape))
        for a in itertools.product(ORDERS, ORDERS)
        for b in orders
    }
    least = min(slopes, key=lambda key: slopes[key])
    text = f"{len(slopes)} products of derivatives, orders of pi up to 2 each, b_1 + b_2 <= 5; least exponent in eps "
    return at_least(slopes[least], 1 - SLACK, detail=text + f"{slopes[least]:.3f}, at a, b = {least}.")


@papers_units
def lemma_24(evidence: Evidence) -> Finding:
    found = {
        f"a = {a}, b = {b}": (_slope(matrices(a, b)), 1.0)
        for a in itertools.product((1, 2), (1, 2))
        for b in ((1, 1), (2, 1), (1, 2))
    }
    return _exponents(found)


def matrices(a: tuple[int, int], b: tuple[int, int]) -> Numbers:
    """The largest norm of the four averages of Lemma 24, as (direction, epsilon)."""
    parts = _small(24, 6)
    moment = moments(pairs(parts[0], parts[1], (parts[2], parts[5]), (parts[3], parts[4])))
    rows = np.array([_rows(*part) for part in parts.reshape(6, -1).T])
    one, two = (rows[:, 0], rows[:, 2]), (rows[:, 1], rows[:, 3])
    orders = (a[0], b[0]), (a[1], b[1])
    found = [size(averaged(moment, one, two, orders, *ranks)) for ranks in ((0, 0), (2, 0), (0, 2), (1, 1))]
    return np.max(found, axis=0).reshape(parts[0].shape)


def _rows(rho: float, sg: float, c13: float, c14: float, c23: float, c24: float) -> Numbers:
    """Unit vectors v1, v2, w1, w2 with these overlaps."""
    gram = np.array([[1, rho, c13, c14], [rho, 1, c23, c24], [c13, c23, 1, sg], [c14, c24, sg, 1]])
    return np.linalg.cholesky(gram)


Axes = tuple[Numbers, Numbers]
"""The vectors (pair, dim) of a unit's router and expert."""
Orders = tuple[int, int]
"""How often the gate and the expert of a unit are differentiated."""


def averaged(
    moment: Callable[..., Numbers], one: Axes, two: Axes, orders: tuple[Orders, Orders], left: int, right: int
) -> Numbers:
    """`E[grad^left F_1 x grad^right F_2]` of `F = pi^(a)(v.x) sigma^(b)(w.x)`: tensors (pair, dim, ...) of rank <= 2.

    A gradient raises a with the router's vector or b with the expert's, and all ways are added up.
    """
    total: Numbers = np.zeros(())
    for kinds in itertools.product((0, 1), repeat=left + right):
        raised = [list(orders[0]), list(orders[1])]
        product = np.ones(len(one[0]))
        for place, kind in enumerate(kinds):
            unit = 0 if place < left else 1
            raised[unit][kind] += 1
            product = np.einsum("n...,ni->n...i", product, (one, two)[unit][kind])
        weight = moment(raised[0][0], raised[0][1], raised[1][0], raised[1][1]).ravel()
        total = total + weight.reshape(-1, *[1] * (left + right)) * product
    return total


def size(tensors: Numbers) -> Numbers:
    """Absolute values, lengths or spectral norms of (pair, ...)."""
    if tensors.ndim == 3:
        return np.linalg.norm(tensors, ord=2, axis=(1, 2))
    return np.linalg.norm(tensors, axis=1) if tensors.ndim == 2 else np.abs(tensors)


# Lemma 23.

RANKS = ((0, 0), (2, 0), (0, 2), (1, 1), (0, 1), (1, 0))
"""How often f - f* and the unit's function are differentiated, in the order of the lemma's six averages."""
DERIVATIVES = ((0, 0), (1, 0), (0, 1), (1, 1))
"""The lemma's (a, b)."""


def state(epsilon: float, distance: float) -> Numbers:
    """Rows v_1, v_2, w_1, w_2, then the teachers': students at this distance, other overlaps of size epsilon."""
    taught, rng = np.eye(4, 8), np.random.default_rng(23)
    turn = 2 * math.asin(distance / 2)
    rows = math.cos(turn) * taught + math.sin(turn) * np.eye(8)[4:]
    rows = rows + 0.1 * epsilon * rng.uniform(-1, 1, rows.shape)
    return np.concatenate([rows / np.linalg.norm(rows, axis=1, keepdims=True), taught])


def averages(rows: Numbers, orders: Orders) -> list[float]:
    """The six averages of the lemma for the first student and `pi^(a) sigma^(b)` of these orders."""
    routers, experts = rows[[0, 1, 4, 5]], rows[[2, 3, 6, 7]]
    v, w = (np.broadcast_to(part, routers.shape) for part in (routers[0], experts[0]))
    dots = [np.sum(x * y, axis=1) for x, y in ((routers, v), (experts, w), (routers, experts), (v, w))]
    cross = np.sum(routers * w, axis=1), np.sum(experts * v, axis=1)
    moment = moments(pairs(dots[0], dots[1], (dots[2], dots[3]), cross))
    sign = np.array([1.0, 1.0, -1.0, -1.0])
    found = []
    for left, right in RANKS:
        tensors = averaged(moment, (routers, experts), (v, w), ((0, 0), orders), left, right)
        found.append(float(size(np.tensordot(sign, tensors, 1)[None])[0]))
    return found


def lemma_23(printed: bool) -> Finding:
    """Exponents of the six averages in epsilon; printed with `|v - v*|^2 <= eps`, used with `|v - v*| <= eps`."""
    states = [state(epsilon, math.sqrt(epsilon) if printed else epsilon) for epsilon in EPSILONS]
    table = np.array([np.max([averages(rows, orders) for orders in DERIVATIVES], axis=0) for rows in states])
    slopes = lines.exponent(EPSILONS, table)
    text = "Exponents in eps of the six averages, the largest of four orders (a, b): "
    return at_least(float(np.min(slopes)), 1 - SLACK, detail=text + ", ".join(f"{slope:.2f}" for slope in slopes) + ".")


_ORDER = "An O(eps^p) is read as an exponent of at least p - 0.05 in eps from 1e-5 to 1e-2; no constant is asked for."

CLAIMS = (
    Claim(
        "SM-L18",
        "Lemma 18",
        "E[g(v.x) h(w.x) x x^T] is a sum of four averages of derivatives of g and h (Stein, twice).",
        "derivatives of sigmoid and He_3, v and w of any length",
        lemma_18,
        must_hold=True,
    ),
    Claim(
        "SM-L20",
        "Lemma 20",
        "c_(k+l)^2 <= B k! whenever E[(f^(l))^2] <= B.",
        "the sigmoid, l up to 3, k up to 60; B = E[(f^(l))^2] by quadrature, c_k by a positive integral",
        lemma_20,
        must_hold=True,
    ),
    Claim(
        "SM-L22",
        "Lemma 22",
        "E[h_i^2] = 6 E[pi^2] + O(eps^2); E[h_i h_j] = O(eps^3) for experts that overlap by eps at most, and "
        "E[h_i^2] + O(eps) for routers and experts with overlaps of at least 1 - eps.",
        "sigmoid router, cross overlaps of at most eps",
        lemma_22,
        kind=Kind.READING,
        reading=_ORDER + " The third statement is read as its proof has it.",
    ),
    Claim(
        "SM-L22:printed",
        "Lemma 22",
        "E[h_i h_j] = 6 E[h_i^2] + O(eps) for |w_i.w_j| <= eps.",
        "the same",
        lemma_22_printed,
        kind=Kind.SLIP,
        mended="SM-L22",
        **WRONG,
        explanation="The hypothesis should be w_i.w_j >= 1 - eps, and v_i.v_j too; and the factor 6 is in E[h_i^2].",
    ),
    Claim(
        "SM-EQ24:printed",
        "Appendix B, Eqs. (21) and (24)",
        "E[h_i h_j] = O(eps^4) for units that overlap by eps at most.",
        "the same",
        fourth_power,
        kind=Kind.SLIP,
        mended="SM-L22",
        **WRONG,
        explanation="It is 6 c_0^2 (w_i.w_j)^3: of order eps^3, as Lemma 22 says. Theorem 2 is not touched.",
    ),
    Claim(
        "SM-L23",
        "Lemma 23",
        "Six averages of f - f* and its gradients with those of a unit are O(m* eps) near the minimum.",
        "two teachers, |v - v*| and |w - w*| at most eps, other overlaps of order eps; a, b up to 1",
        papers_units(lambda evidence: lemma_23(printed=False)),
        kind=Kind.READING,
        reading=_ORDER + " Distances, not their squares, are at most eps, as in Theorem 4.",
    ),
    Claim(
        "SM-L23:printed",
        "Lemma 23",
        "The same for |v - v*|^2 and |w - w*|^2 at most eps.",
        "the same, at the distance sqrt(eps)",
        papers_units(lambda evidence: lemma_23(printed=True)),
        kind=Kind.SLIP,
        mended="SM-L23",
        **WRONG,
        explanation="Averages that are vectors or matrices contain v - v* itself, of size sqrt(eps). Theorem 4 applies "
        "the lemma with distances of at most eps.",
    ),
    Claim(
        "SM-L24",
        "Lemma 24",
        "Four averages of products of derivatives of two units, and of their gradients, are O(eps).",
        "units whose overlaps are at most eps; a_1, a_2 = 1, 2, b_1 + b_2 <= 3",
        lemma_24,
        kind=Kind.READING,
        reading=_ORDER,
    ),
    Claim(
        "SM-L25",
        "Lemma 25",
        "|E[pi^(a_1) pi^(a_2) sigma^(b_1) sigma^(b_2)]| = O(eps) for b_1 + b_2 <= 5.",
        "units whose overlaps are at most eps; a_1, a_2 up to 2",
        lemma_25,
        kind=Kind.READING,
        reading=_ORDER,
    ),
    Claim(
        "SM-L27",
        "Lemma 27",
        "The third derivative of the sigmoid f is at most 1 in size, E[f] = 1/2, and E[f^(2k)] = 0 for k >= 1.",
        "80001 points; quadrature with 200 nodes, k up to 4",
        lemma_27,
        must_hold=True,
    ),
    Claim(
        "SM-L29",
        "Lemma 29",
        "sum_k c_k c_(k+2) gamma^k / k! <= 0 for gamma in (0, 1].",
        "the sigmoid; printed for all gamma > 0, where the series diverges beyond 1",
        lemma_29,
        must_hold=True,
    ),
    Claim(
        "SM-L30",
        "Lemma 30",
        "|sum_k c_k^2 x^k / k! - c_0^2| <= B |x| / (1 - |x|) if c_k^2 <= B k!.",
        "sequences at the edge of the assumption, B = 1/4, 1 and 4, and the sigmoid's",
        papers_units(lambda evidence: lemma_30(printed=False)),
        must_hold=True,
    ),
    Claim(
        "SM-L30:printed",
        "Lemma 30",
        "The same without B in the bound.",
        "the same",
        papers_units(lambda evidence: lemma_30(printed=True)),
        kind=Kind.SLIP,
        mended="SM-L30",
        **WRONG,
        explanation="The statement has lost the B of its proof. The sigmoid has B < 1, so that nothing depends on it.",
    ),
    Claim(
        "SM-L31",
        "Lemma 31",
        "sum_k c_k c_(k+2) gamma^k / k! <= |b| / (1 - |b|) for gamma in (b, 1].",
        "the sigmoid, b from -0.95 to 0",
        lemma_31,
        must_hold=True,
        explanation="Its constant B is lost as in Lemma 30; for the sigmoid the sum is below a fiftieth of the bound.",
    ),
)
