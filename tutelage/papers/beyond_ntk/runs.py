"""Runs that figures and claims share: both are made within a store, which has what the other has computed."""

import math
from dataclasses import dataclass
from typing import Any

import xarray as xr

from tutelage.papers.beyond_ntk.observed import paper_loss, tensor_norms
from tutelage.papers.beyond_ntk.recipe import run
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings

CALM = (200, 400)
"""From N(0, I) the first updates have a hundredth of the step, and the next a tenth: of more they would overshoot."""
LARGE = 0.2


def traces(settings: BeyondNtkSettings, seeds: int = 1, records: int = 200, slow: tuple[int, ...] = ()) -> xr.Dataset:
    """`norm` (the tensors' errors by order), the paper's `L`, the loss that is descended, and what else is recorded.

    `slow`: until each of these updates the step is a tenth of what it is afterwards.
    """
    options: dict[str, Any] = {"schedule": _Slow(slow)} if slow else {}
    data = run(settings, seeds=seeds, record=records, **options).dataset
    return data.assign(norm=tensor_norms(data), L=paper_loss(data), trained=2 * data["loss"])


def from_large(settings: BeyondNtkSettings, seeds: int, records: int) -> xr.Dataset:
    """The same from `N(0, I)`, with steps of 0.002 until time 0.4, of 0.02 until 4.4, and of 0.2 until `until`."""
    spent = sum(float(_Slow(CALM)(update)) for update in range(CALM[-1]))
    until = settings.until + LARGE * (CALM[-1] - spent)
    values = {"scale": math.sqrt(settings.dim), "step": LARGE, "until": until}
    return traces(settings.model_copy(update=values), seeds, records, CALM)


@dataclass(frozen=True)
class _Slow:
    """The factor of the step. Equal for equal counts, so that runs share a compilation."""

    counts: tuple[int, ...]

    def __call__(self, update: Any) -> Any:
        return math.prod(1.0 - 0.9 * (update < count) for count in self.counts)
