"""Teachers that no few features can learn: the hardness distribution of Appendix C of Li, Ma and Zhang, repaired.

The d coordinates are parted into blocks of r; each block of the drawn partition carries the r columns of a Hadamard
matrix as teacher directions. (As printed, the directions do not depend on the partition.) On signs, x = |x| tau, such
a teacher has Fourier weight on the products of tau over its blocks, and on no other product of r signs. Teachers whose
partitions share no block have orthogonal parts there, and N features can hold N of them only.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import mpmath
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import hadamard

from tutelage._errors import BadInput
from tutelage._types import Numbers

Partition = tuple[tuple[int, ...], ...]

_MISSES = 200
"""Random partitions in a row that meet a block in use before the search lists them instead."""


@dataclass(frozen=True)
class HardTeacher:
    """A draw: its partition, orthonormal directions (d, d) and weights `a` (d,), both block by block."""

    partition: Partition
    directions: Numbers
    weights: Numbers

    @property
    def block_weight(self) -> float:
        """`E` of the squared Fourier coefficients on its blocks: the part that features must find."""
        return block_weight(self.weights, len(self.partition[0]))


def hard_teacher(partition: Partition, random: np.random.Generator) -> HardTeacher:
    """The teacher of a partition; its weights are `b_i ~ U[1, 2]`, scaled to add up to 1.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.kernels.hardness import hard_teacher, random_partition
    >>> random = np.random.default_rng(0)
    >>> teacher = hard_teacher(random_partition(16, 4, random), random)
    >>> bool(np.allclose(teacher.directions @ teacher.directions.T, np.eye(16)))
    True

    ```
    """
    size = len(partition[0])
    dim = size * len(partition)
    columns = hadamard(size) / math.sqrt(size)
    directions = np.zeros((dim, dim))
    for index, block in enumerate(partition):
        directions[index * size : (index + 1) * size, list(block)] = columns.T
    b = random.uniform(1, 2, dim)
    return HardTeacher(partition, directions, b / b.sum())


def random_partition(dim: int, size: int, random: np.random.Generator) -> Partition:
    """A uniform partition of the coordinates into blocks of `size`, a power of 2 whose square is at most `dim`."""
    _check(dim, size)
    blocks = np.sort(random.permutation(dim).reshape(-1, size), axis=1)
    return tuple(sorted(tuple(block) for block in blocks.tolist()))


def disjoint_partitions(dim: int, size: int, count: int, random: np.random.Generator) -> list[Partition]:
    """Up to `count` partitions of which no two share a block (Lemma C.1), greedily: fewer if no more are found.

    Random partitions are taken while they fit. Then those made of unused blocks are listed, and the search ends when
    there are none, or none within 10^4 trials of a block. At most `C(d-1, r-1)` can exist, since each has one of the
    blocks with coordinate 0, and so many do (Baranyai).

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.kernels.hardness import disjoint_partitions
    >>> len(disjoint_partitions(4, 2, 10, np.random.default_rng(0)))
    3

    ```
    """
    _check(dim, size)
    found: list[Partition] = []
    used: set[tuple[int, ...]] = set()
    for one in chain(_fitting(dim, size, used, random), _listed(dim, size, used)):
        if len(found) == count:
            break
        found.append(one)
        used.update(one)
    return found


def _fitting(dim: int, size: int, used: set[tuple[int, ...]], random: np.random.Generator) -> Iterator[Partition]:
    """Random partitions without a used block, until a row of them has one."""
    misses = 0
    while misses < _MISSES:
        one = random_partition(dim, size, random)
        misses = misses + 1 if used.intersection(one) else 0
        if misses == 0:
            yield one


def _listed(dim: int, size: int, used: set[tuple[int, ...]]) -> Iterator[Partition]:
    while one := next(_unused(tuple(range(dim)), size, used, iter(range(10**4))), None):
        yield one


def _unused(left: tuple[int, ...], size: int, used: set[tuple[int, ...]], trials: Iterator[int]) -> Iterator[Partition]:
    """Partitions of what is left into unused blocks, as long as there are trials."""
    if not left:
        yield ()
        return
    for others in combinations(left[1:], size - 1):
        block = (left[0], *others)
        if block in used:
            continue
        if next(trials, None) is None:
            return
        rest = tuple(item for item in left[1:] if item not in others)
        for blocks in _unused(rest, size, used, trials):
            yield (block, *blocks)


def collision_probability(dim: int, size: int) -> float:
    """`1/C(d, r)`: the probability that a block of one random partition is a given block of another.

    ```python
    >>> from tutelage.analysis.kernels.hardness import collision_probability
    >>> collision_probability(16, 4) == 1 / 1820, (4 / 16) ** 4
    (True, 0.00390625)

    ```
    """
    _check(dim, size)
    return 1 / math.comb(dim, size)


def block_constant(size: int) -> float:
    """`D_r = 2^-r sum_s (-1)^s C(r, s) kap(1 - 2s/r)`: the Fourier weight of one block whose weights add up to 1.

    The sum cancels to some `r^-r`, so it is taken in long arithmetic.

    ```python
    >>> from tutelage.analysis.kernels.hardness import block_constant
    >>> round(4 * block_constant(4), 5), round(8 * block_constant(8), 6)
    (0.01894, 0.000427)

    ```
    """
    _power_of_two(size)
    with mpmath.workdps(30 + 3 * size):
        total = mpmath.mpf(0)
        for flips in range(size + 1):
            rho = mpmath.mpf(size - 2 * flips) / size
            kernel = 2 / mpmath.pi * (mpmath.sqrt(1 - rho**2) + rho * mpmath.asin(rho))
            total += (-1) ** flips * math.comb(size, flips) * kernel
        return float(total / 2**size)


def block_weight(weights: ArrayLike, size: int) -> float:
    """`E_x sum_B (lambda*_B)^2` over the blocks of a teacher with these weights, block by block.

    From r = 4 on it is `D_r` times the sum of the squared weights of blocks. The two Hadamard columns of r = 2 have
    products of signs +1 and -1, so that the weights of a block count against each other; equal ones leave nothing.
    """
    blocks = np.asarray(weights, float).reshape(-1, _power_of_two(size))
    signs = np.prod(np.sign(hadamard(size)), axis=0)
    return block_constant(size) * float(np.sum((blocks @ signs) ** 2))


def sign_coefficient(mu: ArrayLike, weights: ArrayLike | None = None) -> Numbers:
    """`lambda_mu = |E_tau |mu.tau| prod tau|` for rows `mu` (..., r), by all 2^r signs (Lemma C.2).

    With `weights` (..., r), that of `sum_i q_i |<h_i o mu, tau>|` with the Hadamard columns `h_i` (Corollary C.4).

    ```python
    >>> from tutelage.analysis.kernels.hardness import sign_coefficient
    >>> float(sign_coefficient([3.0, -0.5]))     # for r = 2, the smaller of the two
    0.5

    ```
    """
    mu = np.asarray(mu, float)
    size = _power_of_two(mu.shape[-1])
    signs = 1.0 - 2.0 * ((np.arange(2**size)[:, None] >> np.arange(size)) & 1)
    products = np.prod(signs, axis=1) / 2**size
    if weights is None:
        return np.abs(np.abs(mu @ signs.T) @ products)
    columns = hadamard(size) / math.sqrt(size)
    each = np.stack([np.abs((mu * column) @ signs.T) @ products for column in columns.T], axis=-1)
    return np.abs(np.sum(np.asarray(weights, float) * each, axis=-1))


def hardness_bound(block_weights: ArrayLike, features: int) -> float:
    """No `features` functions allow a smaller mean loss over these teachers, whose partitions share no block.

    The parts of the teachers on their blocks are orthogonal functions of squared norms `block_weights`; a space of N
    dimensions holds at most the N largest of them. This is at least `mean - (N/H) max` of the H block weights.

    ```python
    >>> from tutelage.analysis.kernels.hardness import hardness_bound
    >>> hardness_bound([1.0, 1.0, 2.0, 4.0], 2)
    0.5

    ```
    """
    ordered = np.sort(np.asarray(block_weights, float))
    if features < 0 or ordered.ndim != 1 or len(ordered) == 0:
        raise BadInput(
            f"hardness_bound got {features} features and block weights of shape {ordered.shape}, but a number from 0 "
            "on and one weight per teacher were expected."
        )
    return float(np.sum(ordered[: max(0, len(ordered) - features)]) / len(ordered))


def _power_of_two(size: int) -> int:
    if size < 2 or size & (size - 1):
        raise BadInput(f"The block size is {size}, but Hadamard matrices of powers of 2 are used; take 2, 4, 8, ...")
    return size


def _check(dim: int, size: int) -> None:
    _power_of_two(size)
    if dim % size or dim < size**2:
        raise BadInput(
            f"dim is {dim} and the block size {size}, but a multiple of the block size, at least its square, was "
            "expected."
        )
