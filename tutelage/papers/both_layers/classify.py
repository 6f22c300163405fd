"""Name a stationary point found by a run (one output)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage import BadInput
from tutelage.papers.both_layers.landscape import Kind
from tutelage.problem import Numbers

GRADIENT = 1e-8
LOSS = 1e-12
ANGLE = 1e-5
LEVEL = 1e-9
ACTIVE = 1e-6  # a smaller neuron, in units of sqrt|a|, is at the origin: it moves the loss by less than rounding
ACROSS = 1e-7  # what a neuron keeps across the target from a small start, however small it ends


def classify(second: ArrayLike, first: ArrayLike, target: ArrayLike, *, loss: float, gradient_norm: float) -> Kind:
    """The kind of the point (second (k,) or (k, 1), first (k, n)) with this loss and full gradient norm.

    A small gradient alone says little: next to a non-strict saddle it is of the order of the squared distance.

    ```python
    >>> from tutelage.papers.both_layers.classify import classify
    >>> classify([1.0, -1.0], [[2.0, 0.0], [1.0, 0.0]], [1.0, 0.0], loss=0.25, gradient_norm=0.0).value
    'non-strict saddle'

    ```
    """
    first, target = np.asarray(first, float), np.asarray(target, float).reshape(-1)
    second = np.asarray(second, float)
    if second.size != len(first):
        raise BadInput(f"classify got {second.size} outgoing weights for {len(first)} neurons; it is for one output.")
    second, size = second.reshape(-1), float(np.linalg.norm(target))
    if not gradient_norm / size**1.5 <= GRADIENT:
        return Kind.NONE
    if loss < LOSS * size**2:
        return Kind.GLOBAL
    reach = np.maximum(np.abs(second), np.linalg.norm(first, axis=1)) / np.sqrt(size)
    if np.max(reach) < 1e-3:
        return Kind.ORIGIN
    if abs(loss / size**2 - 0.25) >= LEVEL:
        return Kind.OTHER
    return _one_sided(second / np.sqrt(size), first / np.sqrt(size), target / size, reach >= ACTIVE)


def _one_sided(second: Numbers, first: Numbers, direction: Numbers, active: NDArray[np.bool_]) -> Kind:
    along = first[active] @ direction
    across = np.linalg.norm(first[active] - np.outer(along, direction), axis=1)
    side = np.sign(along)
    if np.any(across > np.maximum(ANGLE * np.abs(along), ACROSS)) or np.any(side != side[0]):
        return Kind.OTHER
    if np.any(np.sign(second[active]) != side[0]):
        return Kind.NONSTRICT
    return Kind.SPURIOUS if np.all(active) else Kind.SADDLE


def nullity(hessian: ArrayLike, tolerance: float = 1e-9) -> int:
    """The dimension of the kernel: eigenvalues below `tolerance` times the largest count as zero.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.classify import nullity
    >>> nullity(np.diag([2.0, 0.0, 1e-12]))
    2

    ```
    """
    sizes = np.abs(np.linalg.eigvalsh(np.asarray(hessian, float)))
    return int(np.sum(sizes <= tolerance * np.max(sizes)))
