"""The Hessian of the loss by blocks: Lemma 7 as printed, and as it must read."""

import numpy as np
from numpy.typing import ArrayLike

from tutelage.analysis import angles_between
from tutelage.papers.relu_teachers.kernel import rows
from tutelage.problem import Numbers


def normals(first: ArrayLike, other: ArrayLike) -> Numbers:
    """nhat_{a,b}: the unit vector of bbar - cos(t) abar, as (a, b, n); zero where the rows are parallel."""
    first, other = rows("first", first), rows("other", other)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, other))
    # The chord bbar - abar has no rounding error of order one for nearly parallel rows, bbar itself has.
    chord = b[None, :, :] - np.where((a @ b.T) < 0, -1.0, 1.0)[:, :, None] * a[:, None, :]
    across = chord - np.einsum("abn,an->ab", chord, a)[:, :, None] * a[:, None, :]
    size = np.linalg.norm(across, axis=-1, keepdims=True)
    return np.divide(across, size, out=np.zeros_like(across), where=size > 0)


def curvature(first: ArrayLike, other: ArrayLike) -> Numbers:
    """K(a, b) = d2 g / d a2 = sin t |b| / (2 pi |a|) (I - abar abar^T + nhat nhat^T), as (a, b, n, n)."""
    first, other = rows("first", first), rows("other", other)
    t, nhat = angles_between(first, other), normals(first, other)
    size = np.linalg.norm(first, axis=1)
    unit = first / size[:, None]
    flat = np.eye(first.shape[1]) - np.einsum("an,ap->anp", unit, unit)
    scale = np.sin(t) * np.linalg.norm(other, axis=1) / (2 * np.pi * size[:, None])
    return scale[:, :, None, None] * (flat[:, None] + np.einsum("abn,abp->abnp", nhat, nhat))


def mixed(first: ArrayLike, other: ArrayLike, *, printed: bool = False) -> Numbers:
    """d2 g / da db = E[1[a.x > 0] 1[b.x > 0] x x^T], as (a, b, n, n): the off-diagonal block.

    It is ((pi - t) I + nhat_{b,a} bbar^T + nhat_{a,b} abar^T) / (2 pi); I/2 at t = 0 and 0 at t = pi. Lemma 7 as
    `printed` exchanges the two normals, against the paper's definition.
    """
    first, other = rows("first", first), rows("other", other)
    t = angles_between(first, other)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, other))
    of_a, of_b = normals(first, other), np.swapaxes(normals(other, first), 0, 1)
    if printed:
        of_a, of_b = of_b, of_a
    block = np.einsum("abn,bp->abnp", of_b, b) + np.einsum("abn,ap->abnp", of_a, a)
    return ((np.pi - t)[:, :, None, None] * np.eye(first.shape[1]) + block) / (2 * np.pi)


def hessian(first: ArrayLike, teacher: ArrayLike, *, printed: bool = False) -> Numbers:
    """The whole Hessian, (m n, m n), students one after the other; `printed` takes the blocks of Lemma 7 as they stand.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.relu_teachers.hessian import hessian
    >>> np.linalg.eigvalsh(hessian([[0.5, 0.0], [0.5, 0.0]], [[1.0, 0.0]])).round(6).tolist()
    [0.0, 0.0, 1.0, 1.0]

    ```
    """
    first = rows("first", first)
    students, columns = first.shape
    blocks = mixed(first, first, printed=printed)
    own = np.arange(students)
    met = curvature(first, first).sum(1) - curvature(first, teacher).sum(1)
    blocks[own, own] = np.eye(columns) / 2 + met
    return np.swapaxes(blocks, 1, 2).reshape(students * columns, students * columns)
