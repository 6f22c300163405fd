"""Algorithm 1's truncation, three ways: none, in two stages, and for ever."""

from typing import NamedTuple

import xarray as xr

from tutelage.papers.beyond_ntk import tails
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Size

NONE, STAGES, EVER = "none", "two stages", "for ever"
LOW, HIGH = 2.0, 50.0
"""1/lambda_0 and 1/lambda_1."""


class Plan(NamedTuple):
    """Dimension and width, when the second stage begins, when all ends, and how many seeds."""

    dim: int
    width: int
    stage: float
    until: float
    seeds: int


PLANS: dict[Size, Plan] = {"quick": Plan(10, 40, 90.0, 240.0, 3), "full": Plan(30, 100, 600.0, 4000.0, 1)}


def truncated_run(plan: Plan, way: str) -> xr.Dataset:
    """Population descent with uniform weights."""
    caps, stage = {NONE: ((), None), STAGES: ((LOW, HIGH), plan.stage), EVER: ((LOW,), None)}[way]
    settings = BeyondNtkSettings(dim=plan.dim, width=plan.width, until=plan.until, truncate=caps, stage=stage)
    return traces(settings, plan.seeds, tails.RECORDS)


def standing(dataset: xr.Dataset, plan: Plan) -> xr.DataArray:
    """How many units stand still at each record."""
    frozen = dataset["frozen"]
    if frozen.sizes["stage"] == 1:
        return frozen.isel(stage=0)
    return xr.where(frozen["time"] < plan.stage, frozen.isel(stage=0), frozen.isel(stage=1))
