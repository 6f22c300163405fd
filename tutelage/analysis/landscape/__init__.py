"""The landscape around a point: its Hessian's spectrum, what kind of point it is, and which kinds there are.

Everything works on any oracle with a loss, a gradient and a Hessian. Verdicts about degenerate points rest on a search
and say so. The solver is in `stationary`, the search in `valleys`.
"""

import enum
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tutelage._checks import instance, whole
from tutelage._errors import BadInput
from tutelage.analysis.landscape.local import BOTH, Chart, bend, chart, look, slope_changes
from tutelage.analysis.landscape.stationary import batch_of_one, member, solve
from tutelage.analysis.landscape.valleys import Descent, Search
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.penalised import PenalisedOracle
from tutelage.oracle.population import PopulationOracle
from tutelage.problem.networks import Weights
from tutelage.problem.trees import flatten


class Kind(enum.StrEnum):
    """What a point of the landscape is; `sentence` says it in words."""

    MINIMUM = "minimum"
    STRICT_SADDLE = "strict saddle"
    NON_STRICT_SADDLE = "non-strict saddle"
    NOT_STATIONARY = "not stationary"
    NOT_SMOOTH = "not smooth here"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Kind.MINIMUM: "The gradient vanishes and no descent was found around the point.",
    Kind.STRICT_SADDLE: "The gradient vanishes and the Hessian has a negative eigenvalue.",
    Kind.NON_STRICT_SADDLE: "The gradient vanishes, the Hessian has no negative eigenvalue, and yet the loss falls "
    "along its kernel, faster than the square of the distance.",
    Kind.NOT_STATIONARY: "The gradient does not vanish.",
    Kind.NOT_SMOOTH: "The loss has no second derivative at the point.",
}


@dataclass(frozen=True, repr=False)
class Spectrum:
    """Eigenvalues of the Hessian, ascending. Those within `tolerance` of zero make the `nullity`."""

    eigenvalues: NDArray[np.floating]
    tolerance: float
    route: str = "the oracle's Hessian"

    @property
    def nullity(self) -> int:
        return int(np.sum(np.abs(self.eigenvalues) <= self.tolerance))

    @property
    def negative(self) -> int:
        return int(np.sum(self.eigenvalues < -self.tolerance))

    @property
    def smooth(self) -> bool:
        return bool(np.all(np.isfinite(self.eigenvalues)))

    def __repr__(self) -> str:
        low, high = float(self.eigenvalues[0]), float(self.eigenvalues[-1])
        told = f"{self.negative} negative, {self.nullity} zero within {self.tolerance:.2g}"
        return f"<Spectrum: {len(self.eigenvalues)} eigenvalues from {low:.4g} to {high:.4g}; {told}>"


def spectrum(
    oracle: PopulationOracle | PenalisedOracle,
    weights: Weights,
    *,
    dim: int | None = None,
    tolerance: float = 1e-8,
    trains: tuple[str, ...] = BOTH,
) -> Spectrum:
    """The spectrum of the population loss at any point, in the frame or, with `dim`, in all input dimensions.

    Every direction outside the frame sees the same matrix, with one row for each unit. Its eigenvalues are found once
    and counted as often as there are such directions. `tolerance` is relative to the largest eigenvalue.

    ```python
    >>> import jax.numpy as jnp, tutelage as tt
    >>> from tutelage.analysis.landscape import spectrum
    >>> there = tt.Weights(first=jnp.array([[1.0], [0.5]]), second=jnp.ones((2, 1)))
    >>> oracle = tt.PopulationOracle(student="relu", teacher="relu", target=there)
    >>> spectrum(oracle, there, dim=3, trains=("first",)).eigenvalues.round(6).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]

    ```
    """
    plain = oracle.plain if isinstance(oracle, PenalisedOracle) else oracle
    plain = instance("spectrum: oracle", plain, PopulationOracle, "a tt.PopulationOracle, or one with a penalty,")
    columns = weights.first.shape[1]
    outside = 0 if dim is None else whole("spectrum: dim", dim, least=columns) - columns
    if outside:  # one direction stands for all of them
        weights, target = (Weights(jnp.pad(w.first, ((0, 0), (0, 1))), w.second) for w in (weights, plain.target))
        wide = PopulationOracle(student=plain.student, teacher=plain.teacher, target=target, means=plain.means)
        oracle = PenalisedOracle(wide, oracle.strengths) if isinstance(oracle, PenalisedOracle) else wide
    here = chart(oracle, weights, trains)
    matrix = np.asarray(bend(here))
    column = jnp.broadcast_to(jnp.arange(weights.first.shape[1], dtype=float), weights.first.shape)
    out = np.asarray(flatten(Weights(column, jnp.zeros_like(weights.second)))[here.span()]) == columns
    own, others = (np.linalg.eigvalsh(matrix[np.ix_(part, part)]) for part in (~out, out))
    values = np.sort(np.concatenate([own, np.repeat(others, outside)]))
    return Spectrum(values, tolerance * max(1.0, float(np.max(np.abs(values)))))


@dataclass(frozen=True)
class Classification:
    """A verdict with its evidence."""

    kind: Kind
    loss: float
    gradient_norm: float
    spectrum: Spectrum | None = None
    descent: Descent | None = None
    moved: float = 0.0

    @property
    def sentence(self) -> str:
        return " ".join([self.kind.sentence] + ([self.descent.sentence] if self.descent else []))


def classify(
    oracle: AbstractOracle,
    weights: Weights,
    *,
    tolerance: float = 1e-8,
    polish: bool = True,
    trains: tuple[str, ...] = BOTH,
) -> Classification:
    """Minimum, strict saddle, non-strict saddle, not stationary, or not smooth.

    - Stationary means `|gradient| <= tolerance`; with `polish` the point is first brought closer to the exact one.
    - Strict saddle: an eigenvalue below zero by more than its tolerance, `max(tolerance * largest, 4 sqrt|gradient|)`:
      a point that misses a cubic saddle so as to have the gradient `g` shows an eigenvalue of about `-sqrt(12 c g)`.
      The loss must also fall as that eigenvalue says; beside a kink (a unit of length 1e-16, say) it does not, and
      the verdict is "not smooth here".
    - Without a negative eigenvalue and without a kernel: minimum. With a kernel, the loss is minimised over spheres
      around the point, from 24 starting directions (half in the kernel, half anywhere); radii are relative
      to the norms of the units' rows, layer by layer. A fall on every sphere makes a non-strict saddle, otherwise
      it is a minimum: both are numerical evidence, and `.descent` holds it.
    """
    if not tolerance > 0:
        raise BadInput(f"classify: tolerance is {tolerance}, but a positive number such as 1e-8 was expected.")
    start = chart(oracle, weights, trains)
    here = _polished(start) if polish else start
    loss, slope, raw = look(here)
    matrix, route = _curvature(here, raw)
    around = Search(here, float(slope))
    moved = float(jnp.linalg.norm(here.vector() - start.vector()))

    def verdict(kind: Kind, found: Spectrum | None = None, descent: Descent | None = None) -> Classification:
        return Classification(kind, float(loss), float(slope), found, descent, moved)

    def rough() -> Classification:
        nothing = Spectrum(np.full(len(matrix), np.nan), tolerance, "neither formula nor differences")
        return verdict(Kind.NOT_SMOOTH, nothing, around.descent(np.eye(len(matrix)), 0.0))

    if not np.all(np.isfinite(matrix)):
        return rough()
    if not slope <= tolerance:
        return verdict(Kind.NOT_STATIONARY)
    values, vectors = np.linalg.eigh(matrix)
    found = Spectrum(values, max(tolerance * max(1.0, float(np.max(np.abs(values)))), 4 * float(slope) ** 0.5), route)
    if found.negative:
        return verdict(Kind.STRICT_SADDLE, found) if around.confirms(values[0], vectors[:, 0]) else rough()
    if not found.nullity:
        return verdict(Kind.MINIMUM, found)
    descent = around.descent(vectors[:, np.abs(values) <= found.tolerance], min(float(values[0]), 0.0))
    return verdict(Kind.NON_STRICT_SADDLE if descent.everywhere else Kind.MINIMUM, found, descent)


@dataclass(frozen=True)
class Level:
    """The stationary points of one kind found at one loss level."""

    level: float
    kind: Kind
    count: int


@dataclass(frozen=True, repr=False)
class Levels:
    """What a search found, lowest level first; `starts - found` of the solves did not end at a stationary point."""

    rows: tuple[Level, ...]
    starts: int
    found: int
    points: tuple[Classification, ...] = ()

    def __repr__(self) -> str:
        lines = (f"{row.level:12.6g}  {row.count:5d}  {row.kind.value}" for row in self.rows)
        head = f"{self.found} of {self.starts} starts ended at a stationary point:"
        return "\n".join((head, f"{'loss':>12}  {'count':>5}  kind", *lines))


def search(
    oracle: AbstractOracle,
    starts: Weights,
    *,
    tolerance: float = 1e-10,
    resolution: float = 1e-6,
    trains: tuple[str, ...] = BOTH,
) -> Levels:
    """Stationary points from many starts at once, sorted into levels of the loss and classified.

    `starts` is a batch of weights (a leading axis). Two losses belong to one level when they differ by less than
    `resolution`.
    """
    if starts.first.ndim != 3:
        raise BadInput(f"search: starts.first has shape {starts.first.shape}, but (starts, units, frame) was expected.")
    ends, _, sizes = solve(oracle, starts, chart(oracle, member(starts, 0), trains).trains)
    places = [member(ends, int(i)) for i in np.flatnonzero(np.asarray(sizes) <= tolerance)]
    points = tuple(classify(oracle, place, polish=False, trains=trains) for place in places)
    return Levels(_grouped(points, resolution), len(starts.first), len(places), points)


def _grouped(points: tuple[Classification, ...], resolution: float) -> tuple[Level, ...]:
    groups: dict[tuple[int, Kind], list[float]] = {}
    level, last = 0, float("-inf")
    for point in sorted(points, key=lambda point: point.loss):
        level += point.loss - last > resolution
        last = point.loss
        groups.setdefault((level, point.kind), []).append(point.loss)
    return tuple(Level(float(np.median(losses)), kind, len(losses)) for (_, kind), losses in groups.items())


def _polished(here: Chart) -> Chart:
    """At the stationary point the solver reaches from here, if it is close by and better."""
    _, before, hessian = look(here)
    if not before > 1e-14 or not jnp.all(jnp.isfinite(hessian)):
        return here
    ends, _, after = solve(here.oracle, batch_of_one(here.base), here.trains)
    end = chart(here.oracle, member(ends, 0), here.trains)
    near = jnp.linalg.norm(end.vector() - here.vector()) <= 0.01 * here.scale()
    return end if near and after[0] < before else here


# The two steps of the differenced Hessian. What is left of the gradient after its linear part, over the step, falls
# in proportion to the step where the Hessian exists and is Lipschitz, and stays where it does not exist.
_COARSE, _FINE = 1e-3, 1e-4


def _curvature(here: Chart, matrix: Any) -> tuple[NDArray[np.floating], str]:
    """The symmetric Hessian and how it was found: by formula if that is finite, else by differences, else nan."""
    matrix = np.asarray(matrix)
    if np.all(np.isfinite(matrix)):
        return (matrix + matrix.T) / 2, "the oracle's Hessian"
    scale = float(here.scale())
    (_, rough), (matrix, left) = (_differenced(here, step * scale) for step in (_COARSE, _FINE))
    if not left <= max(rough / 3, 1e-6 * float(np.linalg.norm(matrix))):
        return np.full_like(matrix, np.nan), "neither formula nor differences"
    return (matrix + matrix.T) / 2, "differences of the gradient"


def _differenced(here: Chart, step: float) -> tuple[NDArray[np.floating], float]:
    """The linear part of the gradient at distance `step` in random directions, and what it leaves, over the step.

    The differences are one-sided: central ones would not see a kink that is even around the point.
    """
    size = len(here.vector())
    moves = step * np.random.default_rng(0).standard_normal((3 * size, size))
    change = np.asarray(slope_changes(here, jnp.asarray(moves)))
    if not np.all(np.isfinite(change)):
        return np.full((size, size), np.nan), np.nan
    matrix = np.linalg.lstsq(moves, change, rcond=None)[0]
    return matrix, float(np.linalg.norm(change - moves @ matrix)) / step
