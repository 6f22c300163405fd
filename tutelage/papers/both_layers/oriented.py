"""Loss and gradient for any orientation of the neurons' lines: new here, and exact for every choice of signs.

ReLU(z) = z/2 + |z|/2, and the even and odd parts decouple. With signs o_i, P and Q the sums of V_i w_i^T over o_i = +1
and o_i = -1, psi_ij the angle of o_i w_i and o_j w_j, and g(psi) = sin psi - psi cos psi,

    L = (|P - A|^2 + |Q - A|^2)/4 + (1/4 pi) sum_ij V_i.V_j |w_i||w_j| g(psi_ij).

With o_i = sign(w_i.a) nothing cancels near a minimum on the target line. A second route, written apart from the oracle.
"""

import numpy as np
from numpy.typing import ArrayLike

from tutelage.papers.both_layers.slices import g
from tutelage.problem import Numbers


def oriented_loss(second: ArrayLike, first: ArrayLike, target: ArrayLike, sides: ArrayLike) -> float:
    """The loss of second (k, r), first (k, n) for target (r, n), computed with orientation `sides` (k,) of +-1.

    ```python
    >>> from tutelage.papers.both_layers.oriented import oriented_loss
    >>> w, v, a = [[1.0, 0.0], [0.0, -1.0]], [[1.0], [-1.0]], [[1.0, 0.0]]
    >>> [round(oriented_loss(v, w, a, sides), 12) for sides in ([1, -1], [1, 1], [-1, 1])]
    [0.340845056908, 0.340845056908, 0.340845056908]

    ```
    """
    second, first, target, sides = (np.asarray(x, float) for x in (second, first, target, sides))
    norms, _, psi = _oriented(first, sides)
    plus, minus = _sums(second, first, sides)
    pairs = np.sum((second @ second.T) * np.outer(norms, norms) * g(psi))
    return float((np.sum((plus - target) ** 2) + np.sum((minus - target) ** 2)) / 4 + pairs / (4 * np.pi))


def oriented_gradient(
    second: ArrayLike, first: ArrayLike, target: ArrayLike, sides: ArrayLike
) -> tuple[Numbers, Numbers]:
    """Its gradient in `second` and `first`, from G_i = (P or Q - A + (1/pi) sum_j |w_j| V_j e_ij^T)/2.

    ```python
    >>> from tutelage.papers.both_layers.oriented import oriented_gradient
    >>> gradient = oriented_gradient([[1.0], [-1.0]], [[2.0, 0.0], [1.0, 0.0]], [[1.0, 0.0]], [1, 1])
    >>> [float(abs(part).max()) for part in gradient]
    [0.0, 0.0]

    ```
    """
    second, first, target, sides = (np.asarray(x, float) for x in (second, first, target, sides))
    norms, unit, psi = _oriented(first, sides)
    sums = _sums(second, first, sides)
    in_second, in_first = np.empty_like(second), np.empty_like(first)
    for i, side in enumerate(sides):
        swing = np.sin(psi[i])[:, None] * unit[i] - (psi[i] * side * sides)[:, None] * unit
        moment = (sums[0 if side > 0 else 1] - target + (second * norms[:, None]).T @ swing / np.pi) / 2
        in_first[i], in_second[i] = second[i] @ moment, moment @ first[i]
    return in_second, in_first


def _oriented(first: Numbers, sides: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    norms = np.linalg.norm(first, axis=1)
    unit = first / norms[:, None]
    turned = unit * sides[:, None]
    apart, together = (np.linalg.norm(turned[:, None] + s * turned[None], axis=-1) for s in (-1, 1))
    return norms, unit, 2 * np.arctan2(apart, together)


def _sums(second: Numbers, first: Numbers, sides: Numbers) -> tuple[Numbers, Numbers]:
    return second[sides > 0].T @ first[sides > 0], second[sides < 0].T @ first[sides < 0]
