"""Phases detected in a trajectory: crossings, plateaus, exponential growth, and the two kinds of tail.

The detectors take one-dimensional arrays, `time` and what was recorded at it, so that they serve any trajectory;
`detect` runs them over the seeds of a Dataset. Records that are not finite (a seed that ended early) are ignored.
A detected time is a recorded time: it is known to the spacing of the records before it, its `uncertainty`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from tutelage._types import Numbers
from tutelage.analysis.lines import Line, fitted_line, least_squares, slope
from tutelage.trajectory.findings import Phase as Phase


class Crossing(NamedTuple):
    """The record at which a condition came true: it did so at most `uncertainty` before `time`."""

    record: int
    time: float
    uncertainty: float


def crossing(
    time: ArrayLike, condition: ArrayLike, *, stays: bool = True, valid: ArrayLike | None = None, after: float = -np.inf
) -> Crossing | None:
    """The first record at or past `after` where `condition` is true (and, with `stays`, true ever after).

    `valid` marks the records to look at. None is returned when there is no such record.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.phases import crossing
    >>> angle = np.array([1.0, 0.1, 0.3, 0.1, 0.05])
    >>> crossing([0, 1, 2, 4, 8], angle < 0.2), crossing([0, 1, 2, 4, 8], angle < 0.2, stays=False)
    (Crossing(record=3, time=4.0, uncertainty=2.0), Crossing(record=1, time=1.0, uncertainty=1.0))

    ```
    """
    time, condition = np.asarray(time, float), np.asarray(condition, bool)
    looked = (time >= after) & (True if valid is None else np.asarray(valid, bool))
    met = condition[looked]
    if stays:
        met = np.logical_and.accumulate(met[::-1])[::-1]
    if not met.any():
        return None
    index = int(np.flatnonzero(looked)[np.argmax(met)])
    before = time[index - 1] if index else min(time[0], 0.0)
    return Crossing(index, float(time[index]), float(time[index] - before))


def plateaus(time: ArrayLike, loss: ArrayLike, *, decades: float = 0.3) -> list[Phase]:
    """The maximal intervals of log-time on which `|d ln loss / d ln time| < 0.1`, at least `decades` long.

    The slope is that of a least-squares line through 0.2 decades around each point of a log-time grid, which
    averages noise; an edge is therefore known to half a window or to the spacing of the records, the larger.
    Records at time zero, and losses at or below zero, cannot be shown in logarithms and are left out.
    """
    time, loss = _clean(time, loss, 0.0)
    time, loss = time[time > 0], loss[time > 0]
    if len(time) < 3:
        return []
    step = _WINDOW / 8
    grid = np.arange(np.log10(time[0]), np.log10(time[-1]) + step, step)
    log_time, log_loss = _binned(np.log10(time), np.log(loss), grid)
    slopes = np.array([_local_slope(log_time, log_loss, x) for x in log_time]) / np.log(10)
    found = []
    for first, last in _runs(np.abs(slopes) < _FLAT):
        start, end = 10 ** log_time[first], 10 ** log_time[last]
        if log_time[last] - log_time[first] >= decades:
            level = float(np.exp(np.median(log_loss[first : last + 1])))
            spread = max(_spacing(time, end), end * (1 - 10 ** (-_WINDOW / 2)))
            found.append(Phase("plateau", start, end, f"the loss stays near {level:.6g}", uncertainty=spread))
    return found


def growth(time: ArrayLike, values: ArrayLike) -> Phase | None:
    """The window of exponential growth: where `ln values` is straight and rises the most, with the rate fitted there.

    Straight means that the root mean square residual is at most 0.02 beyond the noise of the records, which
    is estimated from second differences. `fit.slope` is the rate per unit of time.
    """
    time, values = _clean(time, values, 0.0)
    window = _straightest(time, np.log(values))
    if window is None:
        return None
    fit = fitted_line(time[window], np.log(values[window]))
    return _fitted("exponential growth", f"grows as exp({fit.slope:.6g} t)", time, fit)


def exponential_tail(time: ArrayLike, loss: ArrayLike) -> Phase | None:
    """Linear convergence: the longest stretch of straight `ln loss` against time that lasts to the end.

    The end is the first record with `loss <= 1e-26 * max(loss)` (rounding begins there), or the last record.
    """
    time, loss = np.asarray(time, float), np.asarray(loss, float)
    low = 1e-26 * np.nanmax(loss)
    sunk = np.flatnonzero(loss <= low)
    x, loss = _clean(time[: sunk[0]] if len(sunk) else time, loss[: sunk[0]] if len(sunk) else loss, low)
    y = np.log(loss)
    if len(x) < _FEWEST:
        return None
    # Begin with all records and drop the oldest until the rest is straight.
    noise = _noise(y)
    for begin in range(0, len(x) - _FEWEST + 1, -(-len(x) // _MOST)):
        if least_squares(x[begin:], y[begin:])[2] ** 2 <= _allowed(noise, len(x) - begin):
            fit = fitted_line(x[begin:], y[begin:])
            return _fitted("linear convergence", f"loss ~ exp({fit.slope:.6g} t)", time, fit)
    return None


def stall(time: ArrayLike, loss: ArrayLike) -> Phase | None:
    """The end of a run where its loss stands still: the last tenth of the time or more, within 1 % of the last value.

    So `|d ln loss / d ln time|` is below 0.1 there. A loss below 1e-26 of its largest is rounding, and no stall.

    ```python
    >>> import numpy as np
    >>> from tutelage.analysis.phases import stall
    >>> time = np.linspace(0, 60, 601)
    >>> found = stall(time, np.exp(-time) + 6e-14)
    >>> round(found.start), found.description
    (35, 'the loss stands still near 6e-14')

    ```
    """
    time, loss = _clean(time, loss, -np.inf)
    if len(time) < _FEWEST or loss[-1] <= 1e-26 * loss.max():
        return None
    begin = int(np.flatnonzero(np.append(True, abs(loss / loss[-1] - 1) > 0.01))[-1])
    if begin >= len(time) or time[-1] - time[begin] < 0.1 * (time[-1] - time[0]):
        return None
    return Phase("stall", float(time[begin]), float(time[-1]), f"the loss stands still near {loss[-1]:.3g}")


@dataclass(frozen=True)
class Milestone:
    """The phase `name` ends when `condition` (a one-seed Dataset -> booleans over time) comes true.

    `predicted` is a time, or a function of the one-seed Dataset that gives it.
    """

    name: str
    condition: Callable[[xr.Dataset], ArrayLike]
    description: str = ""
    predicted: float | Callable[[xr.Dataset], float | None] | None = None
    stays: bool = True


def milestones(
    marks: Sequence[Milestone], last: str = "", description: str = ""
) -> Callable[[xr.Dataset], list[Phase]]:
    """A detector of consecutive phases, each from the end of the one before until its condition comes true.

    Two may end at the same record. The list stops at the first condition that never comes true; if all do and
    `last` is given, a phase of that name runs to the last record, or to where the loss stands still (`stall`).
    """

    def detector(one: xr.Dataset) -> list[Phase]:
        time, valid = one["time"].values, np.isfinite(one["loss"].values)
        found: list[Phase] = []
        start = float(time[0])
        for mark in marks:
            at = crossing(time, mark.condition(one), stays=mark.stays, valid=valid, after=start)
            if at is None:
                return found
            predicted = mark.predicted(one) if callable(mark.predicted) else mark.predicted
            found.append(Phase(mark.name, start, at.time, mark.description, predicted, at.uncertainty))
            start = at.time
        if not last:
            return found
        rest, end = stall(time, one["loss"].values), float(time[valid][-1])
        if rest is None or rest.start <= start:
            return [*found, Phase(last, start, end, description)]
        return [*found, Phase(last, start, rest.start, description, uncertainty=_spacing(time, rest.start)), rest]

    return detector


def loss_phases(one: xr.Dataset) -> list[Phase]:
    """The phases any trajectory may have: plateaus of its loss, its linear convergence if it has one, and its stall."""
    time, loss = one["time"].values, one["loss"].values
    flat, rest = plateaus(time, loss), stall(time, loss)
    # An end that is a plateau as well is told once, as a plateau.
    if rest and any(each.end > rest.start for each in flat):
        rest = None
    # Before a stall the loss bends towards its level.
    moving = slice(None) if rest is None else (time <= rest.start) & (loss > 100 * loss[np.isfinite(loss)][-1])
    tail = exponential_tail(time[moving], loss[moving])
    falls = tail and tail.fit and -tail.fit.slope * (tail.end - tail.start) > 1
    return flat + ([tail] if tail and falls else []) + ([rest] if rest else [])


def detect(
    dataset: xr.Dataset, detectors: Iterable[Callable[[xr.Dataset], Iterable[Phase]]] = (loss_phases,)
) -> list[Phase]:
    """Run detectors, functions of a one-seed Dataset, over all seeds.

    ```python
    >>> import numpy as np, xarray as xr
    >>> from tutelage.analysis.phases import detect
    >>> time = np.geomspace(0.01, 100, 400)
    >>> loss = xr.DataArray(0.5 * np.exp(-time)[None], dims=("seed", "time"))
    >>> [p.name for p in detect(xr.Dataset({"loss": loss}, {"time": time, "seed": [7]}))]
    ['plateau', 'linear convergence']

    ```
    """
    found = []
    for seed in dataset["seed"].values:
        one = dataset.sel(seed=seed)
        found += [replace(phase, seed=int(seed)) for detector in detectors for phase in detector(one)]
    return found


# A window has at least this many records, so that noise alone seldom looks bent; windows are searched on at most
# so many records (the search is quadratic in them), while fits use all.
_FEWEST, _MOST = 8, 600

# The slope below which a loss is flat, the decades over which it is taken, and how far from a line is straight.
_FLAT, _WINDOW, _STRAIGHT = 0.1, 0.2, 0.02


def _straightest(x: Numbers, y: Numbers) -> slice | None:
    """The window with the largest rise of its fitted line, among those that are straight."""
    stride = max(-(-len(x) // _MOST), 1)
    noise = _noise(y)
    x, y = x[::stride], y[::stride]
    if len(x) < _FEWEST or np.ptp(x) == 0:
        return None
    scale = np.ptp(x)
    x, y = (x - x.mean()) / scale, y - y.mean()
    count, sx, sy, sxx, sxy, syy = (_window_sums(v) for v in (np.ones_like(x), x, y, x * x, x * y, y * y))
    with np.errstate(divide="ignore", invalid="ignore"):
        vx, vxy, vy = sxx - sx**2 / count, sxy - sx * sy / count, syy - sy**2 / count
        rise = vxy / vx * (x[None, :] - x[:, None])
        straight = (count >= _FEWEST) & ((vy - vxy**2 / vx) / count <= _allowed(noise, count)) & (rise > 0)
    if not straight.any():
        return None
    i, j = np.unravel_index(np.argmax(np.where(straight, rise, -np.inf)), rise.shape)
    return slice(int(i) * stride, int(j) * stride + 1)


def _window_sums(values: Numbers) -> Numbers:
    """`out[i, j] = sum(values[i:j+1])` (meaningless for j < i)."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return total[None, 1:] - total[:-1, None]


def _allowed(noise: float, count: Any) -> Any:
    """The mean square residual up to which `count` records are straight: four standard deviations of pure noise."""
    return _STRAIGHT**2 + (noise * (1 + 4 / np.sqrt(2 * np.maximum(count, 1)))) ** 2


def _noise(y: Numbers) -> float:
    """The standard deviation of independent noise on a smooth curve, from the median of its second differences."""
    if len(y) < 5:
        return 0.0
    return float(1.4826 * np.median(np.abs(np.diff(y, 2))) / np.sqrt(6))


def _fitted(name: str, description: str, time: ArrayLike, fit: Line) -> Phase:
    spacing = _spacing(np.asarray(time, float), fit.end)
    return Phase(name, fit.start, fit.end, description, uncertainty=spacing, fit=fit)


def _clean(time: ArrayLike, values: ArrayLike, floor: float) -> tuple[Numbers, Numbers]:
    time, values = np.asarray(time, float), np.asarray(values, float)
    keep = np.isfinite(values) & (values > floor)
    return time[keep], values[keep]


def _spacing(time: Numbers, at: float) -> float:
    """The larger of the distances from `at` to the records around it."""
    right = int(np.clip(np.searchsorted(time, at), 1, len(time) - 1))
    return float(time[right] - time[right - 1])


def _binned(x: Numbers, y: Numbers, grid: Numbers) -> tuple[Numbers, Numbers]:
    """Means of the records by cell of the grid; cells without a record are filled by interpolation."""
    cell = np.digitize(x, grid)
    used = np.unique(cell)
    mean_x = np.array([x[cell == c].mean() for c in used])
    mean_y = np.array([y[cell == c].mean() for c in used])
    inside = np.concatenate([[mean_x[0]], grid[(grid > mean_x[0]) & (grid < mean_x[-1])], [mean_x[-1]]])
    return inside, np.interp(inside, mean_x, mean_y)


def _local_slope(x: Numbers, y: Numbers, at: float) -> float:
    near = np.abs(x - at) <= _WINDOW / 2 + 1e-12
    return float(slope(x[near], y[near]))


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The first and last index of every run of true flags."""
    padded = np.concatenate([[False], flags, [False]]).astype(int)
    edges = np.flatnonzero(np.diff(padded))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
