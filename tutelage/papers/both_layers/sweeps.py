"""Numbers that a sweep may ask of a run by name: success from a random start, times of the phases; a phase diagram."""

import math

import numpy as np
from numpy.typing import NDArray

from tutelage.papers.both_layers.laws import planted_law, success_law
from tutelage.papers.both_layers.settings import BothLayersSettings
from tutelage.study import Diagram
from tutelage.trajectory import Measure, Run, phase_times

SMALL = 1e-2
"""The scale of a start, over sqrt|a|, up to which only the growing modes decide."""

LEARNT = 1e-2
"""Loss over |a|^2 below which there is no stationary level but 0: 1/4 is the lowest of one output."""

STUCK = 1e-4
"""Gradient over |a|^(3/2) of a run that has come to rest."""


def success(run: Run) -> NDArray[np.float64]:
    """1 where the run ends on its way to a global minimum, 0 where it rests at another level, nan if it still moves.

    Wide networks approach the minimum slowly, so that the loss itself says little about where a run will end, unless
    it is below all other levels.
    """
    size = float(np.linalg.svd(np.asarray(run.teacher.first), compute_uv=False).min())
    loss, slope = run.last("loss").values / size**2, run.last("gradient_norm").values / size**1.5
    zero = float(np.sum(np.asarray(run.teacher.first) ** 2)) / 2 / size**2
    # Near the origin the gradient is small as well, but a run only passes by there.
    rests = (slope <= STUCK) & (loss < 0.99 * zero)
    return np.where(loss < LEARNT, 1.0, np.where(rests, 0.0, np.nan))


def success_chance(settings: BothLayersSettings) -> float:
    """1 - 2^(1-k) from a small start with fair signs, the t-law from Theorem 2's; nan where there is no law.

    ```python
    >>> from tutelage.papers.both_layers.settings import BothLayersSettings
    >>> from tutelage.papers.both_layers.sweeps import success_chance
    >>> success_chance(BothLayersSettings(width=3, init="xavier"))
    0.75

    ```
    """
    if not _small(settings) or settings.samples:
        return math.nan
    return planted_law(settings.dim, settings.width) if settings.init == "paper_chi" else success_law(settings.width)


def _small(settings: BothLayersSettings) -> bool:
    drawn = settings.first is None and settings.second is None and not settings.offset
    plain = settings.outputs == 1 and settings.trains == "both" and settings.activation == "relu"
    size = settings.singular_values[0] if settings.singular_values else settings.target
    return drawn and plain and settings.scale <= SMALL * math.sqrt(size)


PHASES = ("loss", "second", "overlap_angle")

MEASURES = (
    Measure(
        "success",
        "the run ends at a global minimum",
        success,
        kind="chance",
        law=success_chance,
        observables=("loss", "gradient_norm"),
        records=64,
    ),
    Measure(
        "alignment_time",
        "time from which every unit is near its side of the target line",
        lambda run: phase_times(run, "alignment"),
        kind="time",
        observables=PHASES,
    ),
    Measure(
        "growth_time",
        "time at which every outgoing weight has reached sqrt|a|/4",
        lambda run: phase_times(run, "growth"),
        kind="time",
        observables=PHASES,
    ),
)

DIAGRAMS = (
    Diagram(
        "success",
        "Success from a random start, over the number of units and the scale of the start",
        "success",
        over={
            "quick": {"width": (2, 3, 4, 6), "scale": (1e-8, 1e-4, 1e-2, 1e-1, 1.0)},
            "full": {"width": (2, 3, 4, 5, 6, 8, 10), "scale": (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0)},
        },
        seeds={"quick": 200, "full": 600},
        settings={"init": "xavier", "steps": 6000},
    ),
)
