"""Kernel ridge regression on samples of a two-layer teacher, with the exact population loss of what it finds.

No test set is needed. For kernels `|x| |x'| g(cosine)` the averages over Gaussian inputs are Legendre series
(`zonal`), for the Gaussian kernel they are Gaussian integrals. Matrices of n^2 numbers are held twice (the kernel, and
its factor), and once beyond 8000 samples, where conjugate gradients take over; the others are made block by block. That
is 1.1 GB for n = 8000, and 2.1 GB for n = 16000.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import erf

from tutelage._errors import BadInput, unknown
from tutelage._types import Numbers
from tutelage.analysis.kernels.hermite import teacher_power
from tutelage.analysis.kernels.zonal import Profile, pair_series, target_series, zonal
from tutelage.problem.networks import Weights

_BLOCK = 2**18  # numbers in a block of a matrix: it stays in the cache while a series is summed
_DIRECT = 8000  # samples up to which the kernel is factored


class SampleKernel(ABC):
    """A kernel on inputs, with its averages over `x ~ N(0, I)`."""

    @abstractmethod
    def value(self, a: Numbers, b: Numbers) -> Numbers:
        """`K(a_i, b_j)`."""

    @abstractmethod
    def pair(self, a: Numbers, b: Numbers) -> Numbers:
        """`E[K(x, a_i) K(x, b_j)]`."""

    @abstractmethod
    def target(self, a: Numbers, first: Numbers) -> Numbers:
        """`E[K(x, a_i) |w_j.x|]` for rows `w` of `first`."""


@dataclass(frozen=True)
class ZonalKernel(SampleKernel):
    """`|x| |x'| g(cosine)`."""

    profile: Profile

    def value(self, a: Numbers, b: Numbers) -> Numbers:
        return zonal(self.profile, a, b)

    def pair(self, a: Numbers, b: Numbers) -> Numbers:
        return a.shape[1] * zonal(pair_series(self.profile, a.shape[1]), a, b)

    def target(self, a: Numbers, first: Numbers) -> Numbers:
        return a.shape[1] * zonal(target_series(self.profile, a.shape[1]), a, first)


@dataclass(frozen=True)
class GaussianKernel(SampleKernel):
    """`exp(-|x - x'|^2/(2 width^2))`; a width of None is sqrt(d)."""

    width: float | None = None

    def _square(self, dim: int) -> float:
        return float(dim) if self.width is None else self.width**2

    def value(self, a: Numbers, b: Numbers) -> Numbers:
        return np.exp(-_squares(a, b) / (2 * self._square(a.shape[1])))

    def pair(self, a: Numbers, b: Numbers) -> Numbers:
        # The product is a Gaussian of half the variance about the midpoint, times one of the distance.
        dim, square = a.shape[1], self._square(a.shape[1])
        log = -_squares(a, b) / (4 * square) - _squares(a, -b) / (4 * (square + 2))
        return (1 + 2 / square) ** (-dim / 2) * np.exp(log)

    def target(self, a: Numbers, first: Numbers) -> Numbers:
        # Under the weight K(x, a), x is Gaussian about a/(1 + width^2), so that w.x is a folded normal.
        dim, square = a.shape[1], self._square(a.shape[1])
        mean = a @ first.T / (1 + square)
        spread = np.linalg.norm(first, axis=1) * math.sqrt(square / (1 + square))
        folded = spread * math.sqrt(2 / math.pi) * np.exp(-(mean**2) / (2 * spread**2))
        folded = folded + mean * erf(mean / (math.sqrt(2) * spread))
        mass = (1 + 1 / square) ** (-dim / 2) * np.exp(-np.sum(a**2, axis=1) / (2 * (1 + square)))
        return mass[:, None] * folded


def _squares(a: Numbers, b: Numbers) -> Numbers:
    """Squared distances of rows."""
    return np.maximum(np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2 * a @ b.T, 0.0)


KERNELS: dict[str, SampleKernel] = {
    "ntk-abs": ZonalKernel(Profile(turn=1.0)),
    "ntk-relu": ZonalKernel(Profile(turn=0.25, linear=0.25)),
    "arc-abs": ZonalKernel(Profile(kink=1.0)),
    "arc-relu": ZonalKernel(Profile(kink=0.25, linear=0.25)),
    "rbf": GaussianKernel(),
}
"""By name: the tangent kernels `x.x' (2/pi) arcsin(rho)` and `x.x' (pi - arccos(rho))/(2 pi)`, the arc-cosine kernels
of |.| and ReLU (random features without end), and the Gaussian kernel of width sqrt(d)."""


def sample_kernel(which: str | SampleKernel) -> SampleKernel:
    """A kernel by its name in `KERNELS`, or itself."""
    if isinstance(which, SampleKernel):
        return which
    if which not in KERNELS:
        raise unknown("kernel", which, KERNELS)
    return KERNELS[which]


RIDGES = tuple(np.geomspace(1e-4, 10.0, 11).tolist())


def kernel_ridge(
    which: str | SampleKernel,
    x: ArrayLike,
    y: ArrayLike,
    teacher: Weights,
    ridges: Sequence[float] = RIDGES,
) -> Numbers:
    """Fit labels `y` at the samples `x` (n, dim) and give the exact `E(f - f*)^2` against the teacher, for each ridge.

    Ridges are lambda of `(K + lambda I) c = y`, as multiples of the mean of the diagonal of `K`.

    ```python
    >>> import jax.numpy as jnp, numpy as np, tutelage as tt
    >>> from tutelage.analysis.kernels.ridge import kernel_ridge
    >>> x = np.random.default_rng(0).standard_normal((200, 3))
    >>> teacher = tt.Weights(first=jnp.eye(3), second=jnp.full((3, 1), 1 / 3))
    >>> bool(kernel_ridge("arc-abs", x, np.abs(x).mean(axis=1), teacher).min() < 1e-3)     # of E f*^2 = 0.76
    True

    ```
    """
    x, y = _samples(x, y, teacher)
    chosen = sample_kernel(which)
    gram = _gram(chosen, x)
    scale = float(np.trace(gram)) / len(x)
    coefficients = np.stack([_fit(gram, y, scale * ridge) for ridge in ridges], axis=-1)
    return teacher_power(teacher) + _residue(chosen, x, coefficients, teacher)


def _gram(chosen: SampleKernel, x: Numbers) -> Numbers:
    gram, start = np.empty((len(x), len(x))), 0
    for block in _blocks(x):
        end = start + len(block)
        gram[start:end, start:] = chosen.value(block, x[start:])
        gram[end:, start:end] = gram[start:end, end:].T
        start = end
    return gram


def _fit(gram: Numbers, y: Numbers, ridge: float) -> Numbers:
    """The coefficients; the factor takes the place of a copy."""
    if len(gram) > _DIRECT:
        return _iterated(gram, y, ridge)
    shifted = gram.T.copy(order="F")  # symmetric: the transpose is laid out as LAPACK wants it
    shifted[np.diag_indices_from(shifted)] += ridge
    factor, failed = linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise BadInput(f"The kernel matrix with ridge {ridge:g} is singular to rounding; take a larger ridge.")
    coefficients: Numbers = linalg.lapack.dpotrs(factor, y, lower=1)[0]
    return coefficients


def _iterated(gram: Numbers, y: Numbers, ridge: float) -> Numbers:
    """Conjugate gradients, to 1e-8 of the labels: few iterations, since most eigenvalues are about equal."""
    shifted = LinearOperator(gram.shape, lambda vector: gram @ vector + ridge * vector, dtype=float)
    coefficients, failed = cg(shifted, y, rtol=1e-8, maxiter=2000)
    if failed:
        raise BadInput(f"The kernel matrix with ridge {ridge:g} is too ill-conditioned; take a larger ridge.")
    return coefficients


def _residue(chosen: SampleKernel, x: Numbers, coefficients: Numbers, teacher: Weights) -> Numbers:
    """`E f^2 - 2 E f f*` of each predictor, block by block."""
    first, second = np.asarray(teacher.first), np.asarray(teacher.second)[:, 0]
    total, start = np.zeros(coefficients.shape[1]), 0
    for block in _blocks(x):
        end = start + len(block)
        own, pairs = coefficients[start:end], chosen.pair(block, x[start:])
        # Pairs with a later block occur twice.
        ahead = pairs[:, : len(block)] @ own + 2 * pairs[:, len(block) :] @ coefficients[end:]
        ahead -= 2 * (chosen.target(block, first) @ second)[:, None]
        total, start = total + np.sum(own * ahead, axis=0), end
    return total


def _blocks(x: Numbers) -> Iterator[Numbers]:
    rows = max(1, _BLOCK // len(x))
    return (x[start : start + rows] for start in range(0, len(x), rows))


def _samples(x: ArrayLike, y: ArrayLike, teacher: Weights) -> tuple[Numbers, Numbers]:
    x, y = np.asarray(x, float), np.asarray(y, float)
    dim = teacher.first.shape[1]
    if x.ndim != 2 or x.shape[1] != dim or y.shape != (len(x),) or len(x) == 0:
        raise BadInput(
            f"x has shape {x.shape} and y {y.shape}, but (samples, {dim}) and (samples,) were expected, with at least "
            "one sample."
        )
    return x, y
