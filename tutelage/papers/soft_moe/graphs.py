"""Lemma 1: the mean of a product of Hermite polynomials of correlated normal variables, as a sum over graphs."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

Graph = dict[tuple[int, int], int]


def graphs(degrees: Sequence[int]) -> Iterator[Graph]:
    """All graphs with multiple edges and no loops whose nodes have these degrees: edges (i, j), i < j, and how often.

    ```python
    >>> from tutelage.papers.soft_moe.graphs import graphs
    >>> list(graphs((2, 1, 1)))
    [{(0, 1): 1, (0, 2): 1, (1, 2): 0}]

    ```
    """
    yield from _from(list(degrees), [(i, j) for i in range(len(degrees)) for j in range(i + 1, len(degrees))])


def _from(left: list[int], edges: list[tuple[int, int]]) -> Iterator[Graph]:
    if not edges:
        if not any(left):
            yield {}
        return
    (i, j), rest = edges[0], edges[1:]
    if left[i] > sum(left[k] for k in range(i + 1, len(left))) or any(left[:i]):
        return  # no partners are left for the ends at i, or a node before it was not finished
    for count in range(min(left[i], left[j]) + 1):
        after = list(left)
        after[i] -= count
        after[j] -= count
        for graph in _from(after, rest):
            yield {(i, j): count} | graph


def hermite_moment(orders: Sequence[int], covariance: ArrayLike, printed: bool = False) -> float:
    """`E[prod_i He_(k_i)(x_i)]` for normal x with this covariance, of unit variances.

    `printed` takes the product over all i, j as Lemma 1 writes it, so that every edge counts twice; it must be over
    i < j.

    ```python
    >>> from tutelage.papers.soft_moe.graphs import hermite_moment
    >>> hermite_moment((3, 3), [[1.0, 0.5], [0.5, 1.0]])  # 3! rho^3
    0.75

    ```
    """
    sigma, total = np.asarray(covariance, float), 0.0
    for graph in graphs(orders):
        factors = [sigma[edge] ** count / math.factorial(count) for edge, count in graph.items()]
        total += math.prod(factors) ** (2 if printed else 1)
    return math.prod(math.factorial(k) for k in orders) * float(total)
