"""Lemma 1 of soft_moe: the mean of a product of Hermite polynomials as a sum over graphs.

The mean itself is found by Wick's rule, `E x_i p(x) = sum_j S_ij E dp/dx_j`, from the polynomials written out. All
numbers are fractions.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

from flint import arb

from tutelage.rigour.verify.parts import Data, Exact, ball, exact, need, table

Powers = tuple[int, ...]


def says(data: Data) -> str:
    return (
        f"Lemma 1 as printed is not the mean of He_k(x): for x ~ N(0, S) with S = {data['covariance']} and k = "
        f"{data['orders']} its right side, with the product over all i, j, differs from the mean by more than "
        f"{data['margin']}; with the product over i < j it is the mean."
    )


def check(data: Data) -> dict[str, arb]:
    covariance, orders = table(data["covariance"]), [int(exact(k)) for k in data["orders"]]
    margin, size = exact(data["margin"]), len(orders)
    need(0 < size <= 4 and 0 < sum(orders) <= 12 and min(orders) >= 0 and margin >= 0, "its numbers do not fit")
    need(len(covariance) == len(covariance[0]) == size, "the covariance is of another size")
    need(all(covariance[i][j] == covariance[j][i] for i in range(size) for j in range(size)), "it is not symmetric")
    need(all(covariance[i][i] == 1 for i in range(size)), "variances of 1 were expected")
    need(all(minor(covariance, n) > 0 for n in range(1, size + 1)), "there is no such covariance")
    means: dict[Powers, Fraction] = {}
    mean = sum((x * wick(powers, covariance, means) for powers, x in written_out(orders)), Fraction(0))
    sums = {times: graph_sum(orders, covariance, times) for times in (1, 2)}
    need(sums[1] == mean, "with the product over i < j it is not the mean")
    need(abs(sums[2] - mean) > margin, "the printed sum is not off by so much")
    return {"mean": ball(mean), "printed": ball(sums[2])}


def minor(rows: Exact, size: int) -> Fraction:
    """The determinant of the first rows and columns, by elimination."""
    left, found = [row[:size] for row in rows[:size]], Fraction(1)
    for n, row in enumerate(left):
        if row[n] <= 0:
            return Fraction(0)
        found *= row[n]
        for below in left[n + 1 :]:
            factor = below[n] / row[n]
            below[:] = [x - factor * y for x, y in zip(below, row, strict=True)]
    return found


def hermite(order: int) -> dict[int, int]:
    """Coefficients of He, by `He_(n+1) = x He_n - n He_(n-1)`."""
    before, now = {0: 0}, {0: 1}
    for n in range(order):
        after = {power + 1: value for power, value in now.items()}
        for power, value in before.items():
            after[power] = after.get(power, 0) - n * value
        before, now = now, after
    return now


def written_out(orders: list[int]) -> Iterator[tuple[Powers, Fraction]]:
    """The monomials of the product."""
    if not orders:
        yield (), Fraction(1)
        return
    for power, value in hermite(orders[0]).items():
        for rest, factor in written_out(orders[1:]):
            yield (power, *rest), value * factor


def wick(powers: Powers, covariance: Exact, means: dict[Powers, Fraction]) -> Fraction:
    """The mean of a monomial."""
    if not any(powers):
        return Fraction(1)
    if powers not in means:
        first = next(i for i, power in enumerate(powers) if power)
        rest = [power - (i == first) for i, power in enumerate(powers)]
        total = Fraction(0)
        for j, power in enumerate(rest):
            if power:
                less = tuple(x - (i == j) for i, x in enumerate(rest))
                total += covariance[first][j] * power * wick(less, covariance, means)
        means[powers] = total
    return means[powers]


def graph_sum(orders: list[int], covariance: Exact, times: int) -> Fraction:
    """The sum of the lemma, with every edge counted so many times."""
    total = sum((_weight(graph, covariance) ** times for graph in graphs(list(orders), 0, 1)), Fraction(0))
    return math.prod(map(math.factorial, orders)) * total


def graphs(left: list[int], i: int, j: int) -> Iterator[dict[tuple[int, int], int]]:
    """All ways to join nodes with so many ends left, from the pair i < j on."""
    if i >= len(left) - 1:
        if not any(left):
            yield {}
        return
    if j == len(left):
        if not left[i]:
            yield from graphs(left, i + 1, i + 2)
        return
    for edges in range(min(left[i], left[j]) + 1):
        rest = [x - edges * (n in (i, j)) for n, x in enumerate(left)]
        yield from ({(i, j): edges} | more for more in graphs(rest, i, j + 1))


def _weight(graph: dict[tuple[int, int], int], covariance: Exact) -> Fraction:
    return math.prod(
        (covariance[i][j] ** edges / math.factorial(edges) for (i, j), edges in graph.items()), start=Fraction(1)
    )
