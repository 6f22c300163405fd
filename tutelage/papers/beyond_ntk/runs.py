"""Runs that figures and claims share: both are made within a store, which has what the other has computed."""

from dataclasses import dataclass
from typing import Any

import xarray as xr

from tutelage.papers.beyond_ntk.observed import paper_loss, tensor_norms
from tutelage.papers.beyond_ntk.recipe import run
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings


def traces(settings: BeyondNtkSettings, seeds: int = 1, records: int = 200, slow: int = 0) -> xr.Dataset:
    """`norm` (the tensors' errors by order), the paper's `L`, the loss that is descended, and what else is recorded.

    `slow`: this many first updates have a tenth of the step, for starts so large that more would not be stable.
    """
    options: dict[str, Any] = {"schedule": _Slow(slow)} if slow else {}
    data = run(settings, seeds=seeds, record=records, **options).dataset
    return data.assign(norm=tensor_norms(data), L=paper_loss(data), trained=2 * data["loss"])


@dataclass(frozen=True)
class _Slow:
    """The factor of the step. Equal for equal counts, so that runs share a compilation."""

    count: int

    def __call__(self, update: Any) -> Any:
        return 1.0 - 0.9 * (update < self.count)
