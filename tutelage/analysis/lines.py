"""Straight lines by least squares: through points, through the records of one trajectory, and of a number over seeds.

Points without noise, or one number per place, take `slope` and `exponent`. A stretch of a trajectory takes
`fitted_line`, whose error knows that a trajectory bends. A number over seeds takes `exponent_over_seeds`; where each
seed has a value of its own at each place, and some may be censored, take `tutelage.analysis.scaling.fit`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from tutelage._types import Numbers
from tutelage.analysis.claims import Interval
from tutelage.analysis.scaling.bootstrap import percentile_ends
from tutelage.trajectory.findings import Line as Line


def slope(x: ArrayLike, y: ArrayLike) -> Numbers:
    """The least-squares slope of `y` (point, ...) against `x` (point), for each of its columns.

    ```python
    >>> from tutelage.analysis.lines import slope
    >>> float(slope([1, 2, 3], [2, 4, 6]))
    2.0

    ```
    """
    places, values = np.asarray(x, float), np.asarray(y, float)
    centred = places - places.mean()
    return np.tensordot(centred, values - values.mean(0), 1) / (centred @ centred)


def exponent(x: ArrayLike, y: ArrayLike) -> Numbers:
    """The power of `x` that `y` (point, ...) goes as: the slope of its logarithm, for each of its columns."""
    return slope(np.log(x), np.log(y))


def fitted_line(x: ArrayLike, y: ArrayLike, *, level: float = 0.99) -> Line:
    """Least squares of `y` against `x`, with a Student interval for the slope (see `Line` for the standard error)."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    found, white, residual = least_squares(x, y)
    bend = 0.0
    if len(x) >= 9:
        thirds = [float(slope(*part)) for part in zip(np.array_split(x, 3), np.array_split(y, 3), strict=True)]
        # Independent noise gives each third's slope a standard deviation of sqrt(27) * white; half their range
        # passes 9 * white one time in 25.
        bend = max(np.ptp(thirds) / 2 - 9 * white, 0.0)
    error = float(np.hypot(white, bend))
    half = float(stdtrit(max(len(x) - 2, 1), 0.5 + level / 2)) * error
    interval = Interval(found - half, found + half, level)
    return Line(found, error, interval, float(x[0]), float(x[-1]), len(x), residual)


def least_squares(x: NDArray[np.floating], y: NDArray[np.floating]) -> tuple[float, float, float]:
    """Slope, its standard error for independent noise, and the root mean square residual."""
    found, centred = float(slope(x, y)), x - x.mean()
    left = y - y.mean() - found * centred
    square = float(left @ left)
    error = np.sqrt(square / max(len(x) - 2, 1) / (centred @ centred))
    return found, float(error), float(np.sqrt(square / len(x)))


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, nan if there is none. Formatted it is `0.497 [0.49, 0.51]`."""

    value: float
    interval: Interval

    def __format__(self, spec: str) -> str:
        ends = f"{self.interval.low:{spec}}, {self.interval.high:{spec}}"
        return f"{self.value:{spec}} [{'no interval' if np.isnan(self.interval.low) else ends}]"


def exponent_over_seeds(
    x: ArrayLike,
    values: Callable[[NDArray[np.intp]], ArrayLike],
    seeds: int,
    *,
    level: float = 0.95,
    resamples: int = 1000,
) -> Estimate:
    """The exponent in `x` of a number over seeds, such as a median, with a bootstrap interval over whole seeds.

    `values` takes the indices of seeds, some perhaps twice, and gives the number of these at each x. Draws without a
    finite number are left out; if they are more than lie beyond an end, there is no interval.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.lines import exponent_over_seeds
    >>> dim = np.array([10.0, 100.0, 1000.0])
    >>> times = dim[:, None] ** 2 * np.exp(np.random.default_rng(0).normal(size=(3, 50)))
    >>> found = exponent_over_seeds(dim, lambda chosen: np.median(times[:, chosen], axis=1), seeds=50)
    >>> f"{found:.2f}"
    '2.04 [1.93, 2.12]'

    ```
    """
    centre = float(exponent(x, values(np.arange(seeds))))
    draws = np.random.default_rng(0).integers(seeds, size=(resamples, seeds))
    with np.errstate(invalid="ignore"):  # where some draw is infinite
        drawn = np.array([exponent(x, values(chosen)) for chosen in draws])
    known = drawn[np.isfinite(drawn)]
    if seeds < 2 or resamples - known.size > resamples * (1 - level) / 2:
        return Estimate(centre, Interval(np.nan, np.nan, level))
    low, high = percentile_ends(centre, known, level, seeds)
    return Estimate(centre, Interval(float(low), float(high), level))
