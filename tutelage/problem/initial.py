"""Laws of initial weights, drawn in the frame so that `dim` can be anything."""

import abc
import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tutelage._checks import one_of, put, real, table, whole
from tutelage._errors import BadInput
from tutelage.problem.frame import Matrix, orthonormalise

Mean = tuple[tuple[float, ...], ...]
"""Rows, as tuples, so that laws can be compared; matrices are taken too."""


class AbstractRows(abc.ABC):
    """A law of incoming weight vectors: a function of jointly Gaussian rows, and of given `mean` rows."""

    mean: Mean = ()

    @abc.abstractmethod
    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        """Turn standard Gaussian rows, in a frame of `dim`-dimensional space, into rows of this law."""


@dataclass(frozen=True)
class GaussianRows(AbstractRows):
    """`w_i = mean_i + std * N(0, I)`, independent; `mean` is one row for all or one per unit.

    ```python
    >>> import tutelage as tt
    >>> tt.GaussianRows(0.1, mean=((1.5,),))
    GaussianRows(std=0.1, mean=((1.5,),))

    ```
    """

    std: float
    mean: Mean = ()

    def __post_init__(self) -> None:
        mean = _given_rows("GaussianRows: mean", self.mean) if np.size(self.mean) else ()
        put(self, std=real("GaussianRows: std", self.std, least=0), mean=mean)

    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        if len(self.mean) not in (0, 1, len(gaussian)):
            raise BadInput(
                f"GaussianRows: mean has {len(self.mean)} rows, but one for all of the {len(gaussian)} units or one "
                "for each was expected."
            )
        return self.std * gaussian + (mean if len(self.mean) else 0.0)


@dataclass(frozen=True)
class SphereRows(AbstractRows):
    """Independent uniform directions of a given norm."""

    norm: float = 1.0

    def __post_init__(self) -> None:
        put(self, norm=real("SphereRows: norm", self.norm, above=0))

    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        return np.asarray(self.norm * gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True))


@dataclass(frozen=True)
class HalfSphereRows(AbstractRows):
    """Independent directions of a given norm, uniform among those that lean to a target: their overlap with it is not
    negative, and of the order `norm / sqrt(dim)`.

    - `toward`: the targets, one row for all units or one for each, such as `((1.0,),)` for the first coordinate.

    ```python
    >>> import tutelage as tt
    >>> student = tt.TwoLayer("he3", first=tt.HalfSphereRows(((1.0,),)), width=5)
    >>> start = tt.Problem(tt.Gaussian(10**9), tt.TwoLayer("he3", first=[[1.0]]), student).begin(seed=0)
    >>> bool((start.student.first @ start.teacher.first.T > 0).all())
    True

    ```
    """

    toward: Mean
    norm: float = 1.0

    def __post_init__(self) -> None:
        put(
            self, toward=_given_rows("HalfSphereRows: toward", self.toward),
            norm=real("HalfSphereRows: norm", self.norm, above=0),
        )  # fmt: skip
        if not np.all(np.any(np.asarray(self.toward), axis=1)):
            raise BadInput("HalfSphereRows: a target in toward is zero, to which nothing leans; give it a direction.")

    @property
    def mean(self) -> Mean:  # type: ignore[override]
        """The targets are given rows of the frame."""
        return self.toward

    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        if len(mean) not in (1, len(gaussian)):
            raise BadInput(
                f"HalfSphereRows: toward has {len(mean)} rows, but one for all of the {len(gaussian)} units or one for "
                "each was expected."
            )
        leans = np.sum(gaussian * mean, axis=1, keepdims=True) >= 0
        units = gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True)
        return np.asarray(self.norm * np.where(leans, units, -units))


@dataclass(frozen=True)
class OrthonormalRows(AbstractRows):
    """Uniformly random mutually orthogonal directions of a given norm; there can be at most `dim` of them."""

    norm: float = 1.0

    def __post_init__(self) -> None:
        put(self, norm=real("OrthonormalRows: norm", self.norm, above=0))

    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        if gaussian.shape[0] > gaussian.shape[1]:
            raise BadInput(
                f"OrthonormalRows: {gaussian.shape[0]} rows cannot be orthogonal in dim {gaussian.shape[1]}."
            )
        return self.norm * orthonormalise(gaussian)


@dataclass(frozen=True)
class WeakRecoveryRows(AbstractRows):
    """Directions that already lean towards a target each: unit i is at `angle` to target i mod k, and nearly orthogonal
    (within `zeta`) to the others.

    - `std`: the norms are those of `N(0, std^2 I)` vectors, kept between half and twice `std sqrt(dim)`.
    - `toward`: the targets, one row each, linearly independent; usually the teacher's rows.
    - `angle`: in radians, one for all units, or the ends of an interval to draw from uniformly.
    - `counts`: how many units lean to each target, when not equally many.

    The cosine to each other target is uniform in [-sin zeta, sin zeta]; what is left of the unit vector points in a
    uniformly random direction orthogonal to all targets, so `dim` must be larger than their number.

    ```python
    >>> import math, numpy as np, tutelage as tt
    >>> law = tt.WeakRecoveryRows(1e-3, toward=((1.0, 0.0), (0.0, 1.0)), angle=math.pi / 3)
    >>> teacher = tt.TwoLayer("relu", first=np.eye(2))
    >>> start = tt.Problem(tt.Gaussian(10**8), teacher, tt.TwoLayer("relu", first=law, width=4)).begin(seed=0)
    >>> first = start.student.first
    >>> np.abs(np.round(first[:, :2] / np.linalg.norm(first, axis=1, keepdims=True), 1)).tolist()
    [[0.5, 0.0], [0.0, 0.5], [0.5, 0.0], [0.0, 0.5]]

    ```
    """

    std: float
    toward: Mean
    angle: float | tuple[float, float] = math.pi / 4
    zeta: float = 0.01
    counts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        given = self.angle if isinstance(self.angle, (tuple, list)) and len(self.angle) == 2 else None
        angles = [real("WeakRecoveryRows: angle", each) for each in given or [self.angle]]
        put(
            self, std=real("WeakRecoveryRows: std", self.std, above=0), angle=tuple(angles) if given else angles[0],
            toward=_given_rows("WeakRecoveryRows: toward", self.toward),
            zeta=real("WeakRecoveryRows: zeta", self.zeta),
        )  # fmt: skip
        if np.linalg.matrix_rank(np.asarray(self.toward)) < len(self.toward):
            raise BadInput("WeakRecoveryRows: the targets in toward are linearly dependent; leave out those too many.")
        self._check()

    def _check(self) -> None:
        low, high = self._angles
        if not 0 <= low <= high < math.pi / 2:
            raise BadInput(f"WeakRecoveryRows: angle is {self.angle}, but angles from 0 to below pi/2 were expected.")
        if not 0 <= self.zeta < math.pi / 2:
            raise BadInput(f"WeakRecoveryRows: zeta is {self.zeta}, but an angle from 0 to below pi/2 was expected.")
        if self.counts is None:
            return
        counts = table("WeakRecoveryRows: counts", self.counts, "a number of units for each target", axes=(1,))
        put(self, counts=tuple(whole("WeakRecoveryRows: counts", each) for each in counts))
        if len(counts) != len(self.toward):
            raise BadInput(
                f"WeakRecoveryRows: counts has {len(counts)} entries but there are {len(self.toward)} targets."
            )

    @property
    def mean(self) -> Mean:  # type: ignore[override]
        """The targets are given rows of the frame."""
        return self.toward

    @property
    def _angles(self) -> tuple[float, float]:
        return self.angle if isinstance(self.angle, tuple) else (self.angle, self.angle)

    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        from scipy.special import ndtr

        basis = np.linalg.qr(mean.T)[0]
        inside = gaussian @ basis
        outside = gaussian - inside @ basis.T
        beyond = dim - len(mean)
        if beyond < 1:
            raise BadInput(f"WeakRecoveryRows: dim is {dim}, but more than the {len(mean)} targets was expected.")
        cosines = self._cosines(ndtr(inside))
        axes = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        lean = np.linalg.solve(axes @ axes.T, cosines.T).T @ axes
        rest = 1 - np.sum(lean**2, axis=1, keepdims=True)
        if np.any(rest < 0):
            raise BadInput(
                f"WeakRecoveryRows: no unit vector has these angles to all targets; lower zeta = {self.zeta}."
            )
        length = np.linalg.norm(outside, axis=1, keepdims=True)
        size = self.std * _chi_between(length, beyond, dim)
        return np.asarray(size * (lean + np.sqrt(rest) * outside / length))

    def _cosines(self, uniform: Matrix) -> Matrix:
        """The cosine of each unit to each target, from independent uniform numbers."""
        units, targets = uniform.shape
        own = np.arange(units) % targets if self.counts is None else np.repeat(np.arange(targets), self.counts)
        if len(own) != units:
            raise BadInput(f"WeakRecoveryRows: counts add up to {len(own)}, but there are {units} units.")
        low, high = self._angles
        cosines = math.sin(self.zeta) * (2 * uniform - 1)
        leaning = np.arange(units), own
        cosines[leaning] = np.cos(low + (high - low) * uniform[leaning])
        return cosines


@dataclass(frozen=True)
class MixtureRows(AbstractRows):
    """First weights of a mixture of experts: the routers' rows, then the experts'.

    - "iid": experts `w_i ~ N(0, I/dim)`, routers the same and then made orthogonal to their own expert.
    - "unit": the same with all norms 1.
    - "orthonormal": the same, then made orthonormal all together with the least change (Loewdin), which leaves their
      overlaps with anything else as they are to leading order in `dim`. There can be at most `dim` rows.
    - "flipped": "iid" with signs of experts flipped, one by one, while that makes the sum of their overlaps larger:
      few experts are left that point away from each other.

    ```python
    >>> import tutelage as tt
    >>> tt.MixtureRows("orthonormal")
    MixtureRows(kind='orthonormal')

    ```
    """

    kind: str = "iid"

    def __post_init__(self) -> None:
        one_of("kind of MixtureRows", self.kind, ["iid", "unit", "orthonormal", "flipped"])

    def rows(self, gaussian: Matrix, mean: Matrix, dim: int) -> Matrix:
        if dim < 3:
            raise BadInput(f"MixtureRows: dim is {dim}, but at least 3 was expected: routers avoid their experts.")
        if len(gaussian) % 2:
            raise BadInput(f"MixtureRows: {len(gaussian)} rows cannot be as many routers as experts; use a Mixture.")
        experts, routers = np.split(gaussian / math.sqrt(dim), 2)
        axes = experts / np.linalg.norm(experts, axis=1, keepdims=True)
        routers = routers - np.sum(routers * axes, axis=1, keepdims=True) * axes
        if self.kind == "flipped":
            experts = agreeing_signs(experts @ experts.T)[:, None] * experts
        together = np.concatenate([routers, experts])
        if self.kind == "unit":
            return np.asarray(together / np.linalg.norm(together, axis=1, keepdims=True))
        return _loewdin(together) if self.kind == "orthonormal" else together


def _given_rows(name: str, rows: object) -> Mean:
    """Rows that were given, as tuples."""
    found = table(name, rows, "one row of finite numbers for each vector, such as ((1.0, 0.0),),", axes=(2,))
    return tuple(tuple(row) for row in found.tolist())


def _loewdin(rows: Matrix) -> Matrix:
    """The orthonormal rows nearest to the given ones."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    if len(sizes) < len(rows) or sizes[-1] < 1e-8 * sizes[0]:
        raise BadInput(f"MixtureRows: {len(rows)} rows cannot be orthogonal in dim {rows.shape[1]}; raise dim.")
    return np.asarray(left @ right)


def agreeing_signs(gram: Matrix) -> Matrix:
    """Signs with a large `sum s_i s_j gram_ij`: the worst one is flipped until none is bad."""
    signs, pull = np.ones(len(gram)), gram - np.diag(np.diag(gram))
    while (gain := signs * (pull @ signs)).min() < 0:
        signs[gain.argmin()] *= -1
    return signs


def _chi_between(length: Matrix, degrees: int, dim: int) -> Matrix:
    """From lengths with the law chi_degrees to the law chi_dim, kept between half and twice sqrt(dim)."""
    from scipy.special import chdtr, chdtri

    low, high = chdtr(dim, dim / 4), chdtr(dim, 4 * dim)
    share = low + (high - low) * chdtr(degrees, length**2)
    return np.asarray(np.sqrt(np.clip(chdtri(dim, 1 - share), dim / 4, 4 * dim)))


class AbstractEntries(abc.ABC):
    """A law of outgoing weights."""

    @abc.abstractmethod
    def entries(self, draw: Generator, shape: tuple[int, int]) -> Matrix:
        """Draw a (units, outputs) matrix."""


@dataclass(frozen=True)
class GaussianEntries(AbstractEntries):
    """Independent `N(0, std^2)` outgoing weights."""

    std: float

    def __post_init__(self) -> None:
        put(self, std=real("GaussianEntries: std", self.std, least=0))

    def entries(self, draw: Generator, shape: tuple[int, int]) -> Matrix:
        return self.std * draw.standard_normal(shape)


@dataclass(frozen=True)
class ChiEntries(AbstractEntries):
    """`sign_i * scale * chi_degrees`: the norm of a Gaussian vector, with chosen signs."""

    scale: float
    degrees: float
    signs: tuple[float, ...]

    def __post_init__(self) -> None:
        signs = table("ChiEntries: signs", self.signs, "one number for each unit", axes=(1,))
        put(
            self, scale=real("ChiEntries: scale", self.scale, least=0),
            degrees=real("ChiEntries: degrees", self.degrees, above=0), signs=tuple(signs.tolist()),
        )  # fmt: skip

    def entries(self, draw: Generator, shape: tuple[int, int]) -> Matrix:
        if len(self.signs) != shape[0]:
            raise BadInput(f"ChiEntries: there are {len(self.signs)} signs and {shape[0]} units; give one for each.")
        return np.asarray(self.signs)[:, None] * self.scale * np.sqrt(draw.chisquare(self.degrees, shape))
