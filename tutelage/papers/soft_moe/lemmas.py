"""Lemma 1 as printed: a point, in fractions, at which its right side is not the mean."""

import math
from fractions import Fraction

from tutelage.papers.soft_moe.graphs import graphs
from tutelage.rigour import Proof, Provable, Settles, Standing, ball, enclosing, precision, text, texts

ORDERS = (2, 1, 2, 1)
COVARIANCE = [[Fraction(1) if i == j else Fraction(1, 2 + i + j) for j in range(4)] for i in range(4)]
BITS = 128


def _sum(edges_count: int) -> Fraction:
    """The sum over graphs, every edge counted so many times."""
    total = Fraction(0)
    for graph in graphs(ORDERS):
        weight = Fraction(1)
        for (i, j), edges in graph.items():
            weight *= COVARIANCE[i][j] ** edges / math.factorial(edges)
        total += weight**edges_count
    return math.prod(map(math.factorial, ORDERS)) * total


def lemma_1() -> Proof:
    """Counting every edge twice, as printed, is not the mean; counting it once is."""
    with precision(BITS):
        enclosed = enclosing({"mean": ball(_sum(1)), "printed": ball(_sum(2))})
    data = {"orders": list(ORDERS), "covariance": texts(COVARIANCE), "margin": text(Fraction(1, 10))}
    return Proof("SM-L1:printed", "a mean of Hermite polynomials that is another", data, enclosed, BITS)


PROOFS = (
    Provable(
        "SM-L1:printed",
        "Lemma 1",
        "The printed mean of a product of Hermite polynomials counts every edge twice.",
        lemma_1,
        0.1,
        (Settles("SM-L1:printed", Standing.REFUTED),),
    ),
)
