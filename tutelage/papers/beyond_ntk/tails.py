"""How the loss ends, width by width: as a power of time if there are more units than directions, else exponentially."""

from typing import NamedTuple

import numpy as np

from tutelage.papers.beyond_ntk.late import slope
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.problem import Numbers
from tutelage.study import Size

RECORDS = 120
FLOOR = 1e-22
"""Below this a loss has reached the rounding of the weights."""


class Plan(NamedTuple):
    """Which runs show the tail."""

    dim: int
    widths: tuple[int, ...]
    until: float
    seeds: int


BEGIN = 1e-5
"""Rates of decay are read below this."""
PLANS: dict[Size, Plan] = {"quick": Plan(10, (10, 40), 260.0, 3), "full": Plan(30, (30, 40, 60, 100), 4000.0, 1)}


def losses(plan: Plan, width: int) -> tuple[Numbers, Numbers]:
    """Times above 0, and the median over seeds of L at them, as far as it is above rounding.

    Population descent with uniform weights, far beyond the plateau.
    """
    whole = traces(BeyondNtkSettings(dim=plan.dim, width=width, until=plan.until), plan.seeds, RECORDS)
    # A seed whose gradient is at rounding level has stopped: nan from there on.
    data = whole.isel(time=slice(1, None))
    median = np.median(np.fmax(data["L"].values, FLOOR), axis=0)
    return data["time"].values, median


def local_slopes(times: Numbers, values: Numbers) -> Numbers:
    """`d log L/d log t`, over windows of a quarter of a decade."""
    grid = np.geomspace(times[0], times[-1], max(8, round(8 * np.log10(times[-1] / times[0]))))
    logs = np.interp(np.log(grid), np.log(times), np.log(values))
    return np.interp(np.log(times), np.log(grid), slope(grid, np.exp(logs)))


def final_exponent(times: Numbers, values: Numbers) -> float:
    """`d log L/d log t` over the last third of the time."""
    end = times[-1]
    before, after = np.interp(np.log([end / 1.5, end]), np.log(times), np.log(values))
    return float((after - before) / np.log(1.5))


def decay_rates(times: Numbers, values: Numbers) -> tuple[float, float]:
    """`-d log L/dt` from `BEGIN` to the end or to rounding, in two parts that fall by equal factors.

    Exponential decay has equal rates in both; a power law, an ever smaller one. nan if L does not fall a decade.
    """
    last = max(float(values[-1]), 10 * FLOOR)
    if last > BEGIN / 10:
        return np.nan, np.nan
    logs = np.linspace(np.log(BEGIN), np.log(last), 3)
    # L falls all the way, so that time is a function of it.
    at = np.interp(-logs, -np.log(values), times)
    early, late = -np.diff(logs) / np.diff(at)
    return float(early), float(late)
