"""Moments of two units: properties of the sigmoid, Lemma 1, and the expansions of Lemmas 5, 6 and 21, all exactly."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermeval

from tutelage.analysis import Claim, Finding, Kind, all_of, at_least, at_most, lines
from tutelage.papers.soft_moe.checks.units import WRONG, paper, papers_units, slip
from tutelage.papers.soft_moe.constants import (
    NEEDED,
    RATIO_NEEDED,
    SLOPE_BOUND,
    THEOREM_4,
    logistic_coefficients,
)
from tutelage.papers.soft_moe.evidence import Evidence
from tutelage.papers.soft_moe.graphs import hermite_moment
from tutelage.papers.soft_moe.lambdas import Lambdas, lambdas, seen
from tutelage.problem import Numbers

DELTAS = np.geomspace(1e-3, 1e-1, 9)
DRAWS = 6  # directions in which the small overlaps go to zero
SLACK = 0.05  # of a fitted exponent: the next term is smaller by delta^2, at most 1% at delta = 0.1
EXACT = 1e-12
QUADRATURE = 1e-9


# The sigmoid.


@papers_units
def router_sign(evidence: Evidence) -> Finding:
    rho = np.linspace(-1, 1, 2001)
    values, top = paper().correlation(1, 3, rho), paper().coefficient(1) * paper().coefficient(3)
    odd = logistic_coefficients(80)
    alternates = bool(np.all(np.sign(odd) == (-1.0) ** np.arange(len(odd))))
    text = f"On 2001 points G_13 lies between {values.min():.10f} and {values.max():.10f}; c_1 c_3 = {top:.10f}. "
    text += f"The odd c_k alternate in sign up to k = {2 * len(odd) - 1}: {alternates}."
    return all_of(
        [
            at_most(values, 0.0, detail=text),
            at_most(abs(values.max() - top), EXACT),
            at_least(float(alternates), 1.0),
        ]
    )


@papers_units
def curvature_ratio(evidence: Evidence) -> Finding:
    moments = paper().square / paper().slope_square
    text = f"C_S0 = {paper().c_s0:.9f}, C_S1 = {paper().c_s1:.9f}. E[pi^2]/E[pi'^2] = {moments:.4f}, where "
    text += f"{3 * NEEDED:.1f} is needed (the caption of Figure 3b has {NEEDED})."
    return at_least(paper().ratio, NEEDED, detail=text)


@papers_units
def theorem_4_ratio(evidence: Evidence) -> Finding:
    text = "With alpha = beta = 1, equal norms and Q* = 1, as in the proof of Theorem 3."
    return at_least(paper().ratio, THEOREM_4, detail=text)


@papers_units
def lemma_14_bounds(evidence: Evidence) -> Finding:
    rho = np.linspace(0.9, 1, 2001)
    ratio = paper().correlation(0, 0, rho) / paper().correlation(1, 1, rho)
    return all_of(
        [
            at_least(ratio, RATIO_NEEDED, detail=f"G_00/G_11 is at least {ratio.min():.4f} on [0.9, 1]."),
            at_most(paper().slope_square, SLOPE_BOUND, detail=f"E[pi'^2] = {paper().slope_square:.6f}."),
        ]
    )


# Lemma 1.

# Total degree at most 18, which ten nodes per variable integrate exactly.
ORDERS = tuple((k, n, 3, 3) for k in range(7) for n in range(7) if (k + n) % 2 == 0) + (
    (2, 3, 2, 3), (3, 2, 3, 2), (4, 1, 2, 3), (5, 5, 4, 4), (1, 1, 1, 1), (2, 2, 2, 0),
)  # fmt: skip


def graph_formula(printed: bool) -> Finding:
    """Largest deviation from quadrature with 10^4 nodes, relative to sqrt(prod k!)."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((4, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    covariance = rows @ rows.T
    nodes, weights = hermegauss(10)
    grid = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    mass = np.prod(np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij"), axis=0).ravel()
    x = grid @ np.linalg.cholesky(covariance).T
    worst = 0.0
    for orders in ORDERS:
        values = math.prod(hermeval(x[:, i], np.eye(k + 1)[k]) for i, k in enumerate(orders))
        size = math.sqrt(math.prod(math.factorial(k) for k in orders))
        worst = max(worst, abs(float(mass @ values) - hermite_moment(orders, covariance, printed)) / size)
    text = f"{len(ORDERS)} products of four polynomials against Gauss-Hermite quadrature with 10^4 nodes."
    return at_most(worst, EXACT, detail="The same, with the product over all i, j as printed." if printed else text)


# Expansions in small overlaps.


class Expansion(NamedTuple):
    """A moment (direction, delta), its leading term, and the power of delta that the rest is said to have."""

    name: str
    exact: Numbers
    leading: Numbers | float
    order: float

    @property
    def slope(self) -> float:
        """The exponent of the largest rest in any direction, by least squares in logarithms."""
        rest = np.max(np.abs(self.exact - self.leading), axis=0)
        return float(lines.exponent(DELTAS, rest))


def _judged(expansions: Iterator[Expansion]) -> Finding:
    """Every rest must vanish at least as fast as stated."""
    found = list(expansions)
    told = ", ".join(f"{one.name} {one.slope:.2f} (stated {one.order:g})" for one in found)
    margin = min(one.slope - one.order for one in found)
    return at_least(margin, -SLACK, detail=f"Exponents of the rest, delta from 1e-3 to 0.1: {told}.")


def _directions(tag: int, count: int) -> Numbers:
    """Overlaps (count, direction, delta) of largest size delta; fixed directions, so that the verdict is repeatable."""
    values = np.random.default_rng([21, tag]).uniform(-1, 1, (count, DRAWS, 1))
    return values / np.max(np.abs(values), axis=0) * DELTAS


def _correlations(rho: float) -> tuple[float, float, float]:
    """G_00, G_11 and G_20."""
    g00, g11, g20 = (float(paper().correlation(*order, rho)) for order in ((0, 0), (1, 1), (2, 0)))
    return g00, g11, g20


def _lemma_21() -> Iterator[Expansion]:
    """(26) to (28) with the gate's own coefficients; (26) and (27) also where sg = w1.w2 is small or zero."""
    rho, wide = 0.4, 0.6
    g00, g11, g20 = _correlations(rho)
    c13, c14, c23, c24 = _directions(21, 4)
    for name, sg, orders in (("0.6", wide, (2, 2)), ("delta", DELTAS, (4, 3)), ("0", 0.0, (4, 4))):
        found = lambdas(paper(), seen(rho, sg, (c13, c24), (c14, c23)))
        yield Expansion(f"(26) with sg = {name}", found.one, 6 * g11 * sg**3, orders[0])
        yield Expansion(f"(27) with sg = {name}", found.five, 2 * g00 * sg**2, orders[1])
    found = lambdas(paper(), seen(rho, wide, (c13, c24), (c14, c23)))
    yield Expansion("(28) for lambda_2", found.two, 6 * wide**2 * (g20 * c14 + g11 * c24), 3)
    yield Expansion("(28) for lambda_3", found.three, 6 * wide**2 * (g11 * c14 + g20 * c24), 3)


def _lemma_5() -> Iterator[Expansion]:
    """A student and a teacher: v*.w* = 0, and zeta1, zeta2, I3 small."""
    g1 = 0.4
    g00, g11, g20 = _correlations(g1)
    own, zeta1, zeta2 = _directions(5, 3)
    for g2, even in ((0.7, 2), (0.0, 4)):
        found = lambdas(paper(), seen(g1, g2, (own, 0.0), (zeta1, zeta2)))
        six = 6 * g2**2
        leading = (
            6 * g11 * g2**3, six * g20 * zeta1, six * g11 * zeta1, six * (g20 * own + g11 * zeta2), 2 * g00 * g2**2,
        )  # fmt: skip
        yield from _five(f"with gamma2 = {g2:g}", found, leading, (even, 3, 3, 3, even))


def _lemma_6() -> Iterator[Expansion]:
    """Two students with all overlaps small, and a student with itself."""
    rho, sg, c13, c14, c23, c24 = _directions(6, 6)
    apart = lambdas(paper(), seen(rho, sg, (c13, c24), (c14, c23)))
    yield from _five("with i != j", apart, (0.0,) * 5, (3, 3, 3, 3, 2))
    small = np.broadcast_to(DELTAS, rho.shape)
    itself, own = lambdas(paper(), seen(1.0, 1.0, (small, small), (small, small))), 6 * paper().c_s2 * DELTAS
    yield from _five("with i = j", itself, (paper().c_s1, own, own, own, paper().c_s0), (2, 3, 3, 3, 2))


def _five(case: str, found: Lambdas, leading: tuple[Any, ...], orders: tuple[float, ...]) -> Iterator[Expansion]:
    for number, (exact, first, order) in enumerate(zip(found, leading, orders, strict=True), start=1):
        yield Expansion(f"lambda_{number} {case}", exact, first, order)


# Eq. (10): the gradient from the lambdas.


DIM = 3
"""A plane for one teacher's router and expert, and an axis more: quadrature over all inputs."""
NODES = 64
"""Of each axis. The sigmoid has its poles at distance pi from the real line, so that rounding is what is left."""


def _state() -> Numbers:
    """Two students' rows with norms between 0.5 and 2."""
    rng = np.random.default_rng(10)
    rows = rng.standard_normal((4, DIM))
    return rows * (rng.uniform(0.5, 2.0, 4) / np.linalg.norm(rows, axis=1))[:, None]


def gradient_by_quadrature(first: Numbers, teacher: Numbers) -> Numbers:
    """The gradient of `1/2 E(f - f*)^2` as it is defined: no moment, no Hermite coefficient, no overlap."""
    nodes, weights = hermegauss(NODES)
    x = jnp.asarray(np.stack(np.meshgrid(*[nodes] * DIM, indexing="ij"), axis=-1).reshape(-1, DIM))
    mass = jnp.asarray(np.prod(np.meshgrid(*[weights / weights.sum()] * DIM, indexing="ij"), axis=0).ravel())

    def output(rows: jax.Array) -> jax.Array:
        router, expert = jnp.split(x @ (rows / jnp.linalg.norm(rows, axis=1, keepdims=True)).T, 2, axis=1)
        return jnp.sum(jax.nn.sigmoid(router) * (expert**3 - 3 * expert), axis=1)

    target = output(jnp.asarray(teacher))
    loss = lambda rows: 0.5 * mass @ (output(rows) - target) ** 2  # noqa: E731
    return np.asarray(jax.grad(loss)(jnp.asarray(first)))


def gradient_of_10(first: Numbers, teacher: Numbers, printed: bool = False) -> Numbers:
    """Eq. (10) by the lambdas, rows of routers and then of experts.

    `printed` divides the second line of the experts' gradient by the norm of the router.
    """
    norms = np.linalg.norm(first, axis=1, keepdims=True)
    (v, w), (v2, w2) = np.split(first / norms, 2), np.split(teacher, 2)
    a, b = np.split(norms, 2)
    v2, w2 = np.concatenate([v, v2]), np.concatenate([w, w2])
    own = np.sum(v * w, axis=1)[:, None], np.sum(v2 * w2, axis=1)[None]
    sign = np.where(np.arange(len(v2)) < len(v), 1.0, -1.0)
    pairs = seen(v @ v2.T, w @ w2.T, own, (v @ w2.T, w @ v2.T))
    one, two, three, four, five = (part * sign for part in lambdas(paper(), pairs))
    alone = two.sum(1, keepdims=True)
    routers = _across(one @ v2 + 3 * alone * w + 3 * four @ w2, v) / a
    experts = _across(3 * alone * v + 9 * five @ w2, w) / b + _across(3 * three @ v2, w) / (a if printed else b)
    return np.concatenate([routers, experts])


def _across(vectors: Numbers, axes: Numbers) -> Numbers:
    return vectors - np.sum(vectors * axes, axis=1, keepdims=True) * axes


def equation_10(printed: bool) -> Finding:
    teacher, rows = np.eye(2, DIM), _state()
    exact = gradient_by_quadrature(rows, teacher)
    worst = float(np.max(np.abs(gradient_of_10(rows, teacher, printed) - exact)) / np.max(np.abs(exact)))
    text = f"Relative to the gradient by Gauss-Hermite quadrature with {NODES}^{DIM} nodes."
    return at_most(worst, QUADRATURE, detail=text)


CLAIMS = (
    Claim(
        "SM-A3",
        "Assumption 3, Figure 3a",
        "E[pi'(z1) pi'''(z2)] is negative at every correlation; its maximum is c_1 c_3, at 0.",
        "sigmoid router, 2001 correlations",
        router_sign,
        must_hold=True,
        explanation="A consequence of the alternating signs of the Hermite coefficients, so a theorem about the "
        "sigmoid and no assumption.",
    ),
    Claim(
        "SM-C1",
        "Theorem 3, Appendix E",
        "C_S0 >= 1.1 C_S1.",
        "sigmoid router, experts He_3",
        curvature_ratio,
        must_hold=True,
        unconditional="It is itself the theorem's hypothesis on the router's function.",
    ),
    Claim(
        "SM-C1:theorem4",
        "Theorem 4",
        "C_S0 / C_S1 >= N_max^2 (1 + beta)^2 / (N_min^2 Q*^2 alpha^2), the hypothesis as printed.",
        "sigmoid router, experts He_3, unit norms",
        theorem_4_ratio,
        kind=Kind.READING,
        reading="alpha = beta = 1, equal norms and Q* = 1, as where Theorem 3 is proved with it. With a "
        "smaller beta it holds: up to beta = 0.47.",
        unconditional="It is itself the theorem's hypothesis.",
        **WRONG,
        explanation="The ratio is 2.18 and (1 + beta)^2 is 4 where the theorem is used. What Theorem 3 needs of it is "
        "true nevertheless (SM-H). The proof of Theorem 3 says that 1.05/Q*^2 is asked for, which 2.18 meets: so it "
        "would be with beta^2 in place of (1 + beta)^2. The proof of Theorem 4 does not derive the condition.",
    ),
    Claim(
        "SM-C2",
        "Lemma 14",
        "E[pi'^2] <= 0.05, and G_00 >= 4.12 G_11 on [0.9, 1].",
        "sigmoid router, 2001 correlations",
        lemma_14_bounds,
        must_hold=True,
    ),
    Claim(
        "SM-L1",
        "Lemma 1",
        "The mean of a product of Hermite polynomials is a sum over graphs, with a product over the edges i < j.",
        "four variables, total degree up to 18",
        lambda evidence: graph_formula(printed=False),
        must_hold=True,
    ),
    Claim(
        "SM-L1:printed",
        "Lemma 1",
        "The same with the product over all i, j.",
        "four variables, total degree up to 18",
        lambda evidence: graph_formula(printed=True),
        **slip("SM-L1"),
        explanation="M is symmetric: over all i, j every edge is counted twice. The proofs use i < j.",
    ),
    Claim(
        "SM-L21",
        "Lemma 21",
        "The three moments are their leading terms up to O(delta^2 sg^2 + delta^4), O(delta^2 |sg| + delta^4) and "
        "O(delta^3).",
        "the sigmoid's own coefficients, sg = w1.w2 of order 1, delta and 0",
        papers_units(lambda evidence: _judged(_lemma_21())),
    ),
    Claim(
        "SM-L5",
        "Lemma 5",
        "The moments of a student and a teacher are their leading terms up to the orders stated.",
        "sigmoid router, gamma2 = 0.7 and 0",
        papers_units(lambda evidence: _judged(_lemma_5())),
    ),
    Claim(
        "SM-L6",
        "Lemma 6",
        "The moments of two students, and of one with itself, are as stated up to the orders stated.",
        "sigmoid router",
        papers_units(lambda evidence: _judged(_lemma_6())),
    ),
    Claim(
        "SM-EQ10",
        "Eq. (10)",
        "The gradient of the loss is the stated combination of lambda_1 ... lambda_5, with each expert's part divided "
        "by the norm of the expert.",
        "two students of different norms, one teacher, d = 3",
        papers_units(lambda evidence: equation_10(printed=False)),
        must_hold=True,
        explanation="Against the gradient of the loss as an integral over inputs, by Gauss-Hermite quadrature.",
    ),
    Claim(
        "SM-EQ10:printed",
        "Eq. (10)",
        "The same with the second line of the experts' gradient divided by the norm of the router.",
        "two students of different norms, one teacher, d = 3",
        papers_units(lambda evidence: equation_10(printed=True)),
        **slip("SM-EQ10"),
        explanation="A slip: it is the norm of the expert, as in the next display of the paper.",
    ),
)
