"""What first weights predict, over many starts: how many teachers are recovered, and when the first is."""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from tutelage.papers.soft_moe.draws import Draws
from tutelage.papers.soft_moe.growth import Growth
from tutelage.papers.soft_moe.matching import edges, removals
from tutelage.papers.soft_moe.settings import SoftMoeSettings

STARTS = 400  # of a law: a share of starts is then known to 0.025 (one standard deviation) or better
LASTING = 0.01  # of dim: two students that cancel part again after a time of order dim (`laws.breaking_time`)


def recovered_law(settings: SoftMoeSettings) -> float:
    """The mean number of teachers recovered before the horizon, by the race with students that cancel each other.

    ```python
    >>> from tutelage.papers.soft_moe.predictions import recovered_law
    >>> from tutelage.papers.soft_moe.settings import SoftMoeSettings
    >>> small = {"dim": 10**8, "students": 8, "teachers": 2}
    >>> [round(recovered_law(SoftMoeSettings(**small, init=init)), 2) for init in ("iid", "orthonormal")]
    [1.17, 1.92]

    ```
    """
    return float(np.mean(_counts(settings))) if _lasts(settings) else math.nan


def success_law(settings: SoftMoeSettings) -> float:
    """The share of starts that recover all teachers before the horizon."""
    return float(np.mean(_counts(settings) == settings.teachers)) if _lasts(settings) else math.nan


def recovery_law(settings: SoftMoeSettings) -> float:
    """The median over starts of the time of the first recovery; nan if half of the starts see none."""
    middle = float(np.median(times(settings).min(1))) if _applies(settings) else math.inf
    return middle if math.isfinite(middle) else math.nan


def _applies(settings: SoftMoeSettings) -> bool:
    """The race is a leading order in high dimension, for experts of degree 3 and orthogonal teachers."""
    return settings.degree == 3 and settings.cosine == 0


def _lasts(settings: SoftMoeSettings) -> bool:
    """Whether pairs that cancelled, if there can be any, stay so to the end."""
    return _applies(settings) and (settings.init == "orthonormal" or settings.horizon <= LASTING * settings.dim)


def _counts(settings: SoftMoeSettings) -> NDArray[np.int64]:
    return np.sum(times(settings) <= settings.horizon, axis=1)


@functools.lru_cache(maxsize=64)
def times(settings: SoftMoeSettings) -> NDArray[np.float64]:
    """Predicted times of recovery (start, step), in order; infinite at steps that are no recovery."""
    draws = Draws(settings, STARTS)
    cosines = draws.overlap_expert, draws.overlap_ss_expert
    cost = edges(*cosines, draws.norm_expert, settings.importance, Growth.of(settings))
    _, partner, time = removals(cost, settings.teachers)
    return np.where((partner >= 0) & (partner < settings.teachers), time, np.inf)
