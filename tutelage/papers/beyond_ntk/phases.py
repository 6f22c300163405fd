"""The stages of the paper, as they are seen: orders 0 and 2 first, a plateau on the fourth, then convergence."""

import numpy as np
import xarray as xr

from tutelage.analysis import Milestone, detect, milestones
from tutelage.trajectory import Phase, Run

LEARNED = 0.2
"""Orders 0 to 2 are learned when they are this part of the loss of all others; on samples noise allows no less."""
ESCAPED = 0.5
"""The plateau is over when orders above 2 have fallen to this part of what they were on it."""
NEEDED = ("loss", "loss_order", "loss_beyond")


def low_orders(one: xr.Dataset) -> xr.DataArray:
    """The loss of orders 0 to 2."""
    return one["loss_order"].sel(tensor_order=slice(0, 2)).sum("tensor_order")


def high_orders(one: xr.Dataset) -> xr.DataArray:
    """The loss of all others."""
    return one["loss_order"].sel(tensor_order=slice(3, None)).sum("tensor_order") + one["loss_beyond"]


def _learned(one: xr.Dataset) -> xr.DataArray:
    return low_orders(one) <= LEARNED * high_orders(one)


def escaped(one: xr.Dataset) -> xr.DataArray:
    """Whether orders above 2 have fallen to half of what they were when they became the larger part of the loss."""
    larger = (low_orders(one) <= high_orders(one)).values
    level = high_orders(one).values[int(np.argmax(larger))] if larger.any() else np.nan
    return high_orders(one) <= ESCAPED * level


STAGES = milestones(
    (
        Milestone(
            "stage 1.1",
            _learned,
            f"until orders 0 to 2 are {LEARNED:.0%} of the loss of all others",
            stays=False,
        ),
        Milestone(
            "plateau (stage 1.2)",
            escaped,
            "until orders above 2 have fallen to half of what they were when they became the larger part",
            stays=False,
        ),
    ),
    "convergence (stage 2)",
    "units on teacher directions take over the rest",
)


def phases(run: Run) -> list[Phase]:
    """Stages 1.1, 1.2 and 2, seed by seed."""
    if any(name not in run.dataset for name in NEEDED):
        return []
    return detect(run.dataset, [STAGES])
