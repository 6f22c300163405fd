"""Families of stationary points of the population loss, with level and Hessian spectrum (Theorem 1, D.1, and more).

Outgoing weights are signed: the paper's (v_1, -v_2) is `second = (v_1, -v_2)`.
"""

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tutelage import BadInput
from tutelage.problem import Numbers


class Kind(enum.StrEnum):
    """What a point of the landscape is."""

    GLOBAL = "global minimum"
    ORIGIN = "origin"
    NONSTRICT = "non-strict saddle"
    SPURIOUS = "spurious local minimum"
    SADDLE = "saddle with a neuron at the origin"
    OTHER = "other stationary point"
    NONE = "not stationary"


@dataclass(frozen=True)
class StationaryPoint:
    """A stationary point with what is known of it.

    - `second` (k, r), `first` (k, d), `target` (r, d); `level` is the loss divided by |A|_F^2.
    - `spectrum`: Hessian eigenvalues with multiplicities, where known in closed form; `nullity` likewise.
    """

    kind: Kind
    second: Numbers
    first: Numbers
    target: Numbers
    level: float
    spectrum: tuple[tuple[float, int], ...] = ()
    nullity: int | None = None

    @property
    def eigenvalues(self) -> Numbers:
        """The spectrum written out and sorted."""
        return np.sort(np.concatenate([np.full(count, value) for value, count in self.spectrum]))


def two_neurons(target: ArrayLike, c: float, v1: float = 1.0, v2: float = 1.0) -> tuple[Numbers, Numbers]:
    """v_1 w_1 = (c+1) a, v_2 w_2 = c a for any c: stationary when c > 0 or c < -1 (Theorem 1), not between.

    ```python
    >>> from tutelage.papers.both_layers.landscape import two_neurons
    >>> second, first = two_neurons([1.0, 0.0], c=-0.5)
    >>> second.tolist(), first.tolist()
    ([[1.0], [-1.0]], [[0.5, 0.0], [-0.5, -0.0]])

    ```
    """
    target = np.asarray(target, float)
    return np.array([[v1], [-v2]]), np.array([(c + 1) / v1 * target, c / v2 * target])


def nonstrict_saddle(target: ArrayLike, c: float, v1: float = 1.0, v2: float = 1.0) -> StationaryPoint:
    """Theorem 1, item 2: both neurons on one side of the target line, with opposite signs.

    ```python
    >>> from tutelage.papers.both_layers.landscape import nonstrict_saddle
    >>> point = nonstrict_saddle([1.0, 0.0, 0.0], c=1.0)
    >>> point.first.tolist(), point.level, point.spectrum
    ([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]], 0.25, ((0.0, 5), (1.0, 2), (3.5, 1)))

    ```
    """
    if -1 <= c <= 0:
        raise BadInput(f"The family of saddles got c={c}, but it needs c > 0 or c < -1 (Theorem 1).")
    return one_sided(target, (v1, -v2), (c + 1, -c))


def on_the_line(target: ArrayLike, second: ArrayLike, shares: ArrayLike) -> tuple[Numbers, Numbers]:
    """Neurons on the target line with v_i w_i = share_i a; a positive share_i/v_i points w_i along +a.

    ```python
    >>> from tutelage.papers.both_layers.landscape import on_the_line
    >>> on_the_line([1.0, 0.0], second=(2.0, -1.0), shares=(1.0, 1.0))[1].tolist()
    [[0.5, 0.0], [-1.0, -0.0]]

    ```
    """
    target, second, shares = (np.asarray(x, float) for x in (target, second, shares))
    if second.shape != shares.shape or np.any(second == 0):
        raise BadInput(f"Neurons on the line got second={second} and shares={shares}: pass non-zero v, one share each.")
    return second[:, None], np.outer(shares / second, target)


def global_minimum(target: ArrayLike, second: ArrayLike, shares: ArrayLike) -> StationaryPoint:
    """A global minimum on the target line: on each side the shares sum to 1 (k = 2: v_1 w_1 = a, v_2 w_2 = -a).

    ```python
    >>> from tutelage.papers.both_layers.landscape import global_minimum
    >>> global_minimum([1.0, 0.0], second=(2.0, -1.0), shares=(1.0, 1.0)).spectrum
    ((0.0, 2), (2.0, 1), (2.125, 1), (0.5, 1), (1.0, 1))

    ```
    """
    v, first = on_the_line(target, second, shares)
    shares, side = np.asarray(shares, float), np.sign(np.asarray(shares) / np.asarray(second))
    sums = [float(np.sum(shares[side == s])) for s in (1, -1)]
    if not np.allclose(sums, 1.0, rtol=0, atol=1e-12):
        raise BadInput(f"A global minimum got shares summing to {sums} on the two sides, but each must sum to 1.")
    (width, dim), spectrum = first.shape, []
    for s in (1, -1):
        spectrum += _side_spectrum(v[side == s], first[side == s])
    zeros = width * dim + width - 2 * dim
    return StationaryPoint(Kind.GLOBAL, v, first, _row(target), 0.0, ((0.0, zeros), *spectrum), zeros)


def one_sided(target: ArrayLike, second: ArrayLike, shares: ArrayLike) -> StationaryPoint:
    """All neurons on one side of the target line, shares summing to 1: level 1/4.

    With a share of the wrong sign it is a non-strict saddle with cubic descent; with all v_i of one sign it is a local
    minimum, which Theorem 1 (signs fixed to +,-) does not meet.

    ```python
    >>> from tutelage.papers.both_layers.landscape import one_sided
    >>> one_sided([1.0, 0.0], second=(1.0, 2.0), shares=(0.3, 0.7)).kind.value
    'spurious local minimum'

    ```
    """
    v, first = on_the_line(target, second, shares)
    shares, side = np.asarray(shares, float), np.sign(np.asarray(shares) / np.asarray(second))
    if abs(shares.sum() - 1) > 1e-12 or np.any(side != side[0]):
        raise BadInput(f"A one-sided point got shares {shares}: all neurons must lie on one side, shares sum to 1.")
    width, dim = first.shape
    kind = Kind.SPURIOUS if np.all(shares > 0) else Kind.NONSTRICT
    zeros = width * dim + width - dim
    spectrum = ((0.0, zeros), *_side_spectrum(v, first))
    return StationaryPoint(kind, v, first, _row(target), 0.25, spectrum, zeros)


def paired_minimum(target: ArrayLike, basis: ArrayLike, scales: ArrayLike | None = None) -> StationaryPoint:
    """k = 2r neurons in r antiparallel pairs representing A (r, d): a global minimum with nullity r^2 + r.

    Row j of the invertible `basis` (r, r) is V_j of pair j; the partner has -`scales[j]` V_j and -w_j/`scales[j]`.

    ```python
    >>> import numpy as np
    >>> from tutelage.papers.both_layers.landscape import paired_minimum
    >>> point = paired_minimum(np.eye(2, 3), basis=[[1.0, 0.5], [0.0, 2.0]])
    >>> point.first.shape, point.nullity, bool(np.allclose(point.second.T @ point.first, 2 * np.eye(2, 3)))
    ((4, 3), 6, True)

    ```
    """
    target, basis = np.asarray(target, float), np.asarray(basis, float)
    outputs = len(target)
    if basis.shape != (outputs, outputs) or np.linalg.matrix_rank(basis) < outputs:
        raise BadInput(
            f"A paired minimum for {outputs} outputs got a basis of shape {basis.shape}: pass an invertible one."
        )
    scales = np.ones(outputs) if scales is None else np.asarray(scales, float)
    first = np.linalg.solve(basis.T, target)
    second = np.concatenate([basis, -scales[:, None] * basis])
    mirrored = np.concatenate([first, -first / scales[:, None]])
    return StationaryPoint(Kind.GLOBAL, second, mirrored, target, 0.0, nullity=outputs**2 + outputs)


def _side_spectrum(second: Numbers, first: Numbers) -> list[tuple[float, int]]:
    """The non-zero eigenvalues that neurons on one side contribute: H = K^T K / 2 with K = [w_i.. | v_i I..]."""
    size = float(np.sum(second**2))
    return [(size / 2, first.shape[1] - 1), ((size + float(np.sum(first**2))) / 2, 1)]


def _row(target: ArrayLike) -> Numbers:
    return np.asarray(target, float)[None]
