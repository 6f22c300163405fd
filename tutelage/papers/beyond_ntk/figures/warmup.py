"""Stage 1.1 with unequal weights: orders 0 and 2 are learned, and every neuron is stretched along the axes."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Mark, Panel, Series, Sheet, line, spread
from tutelage.papers.beyond_ntk import races
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.beyond_ntk.warmup import excess, flow
from tutelage.study import Figure, Size

EVERY = 3  # records from point to point
NAMES = {"zero": r"$|\Delta|$", "plus": r"$\delta_+$", "minus": r"$\delta_-$"}


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Moments of a population and of the warm-up equation, and how its neurons have grown."""
    run = races.warmup()
    times = np.linspace(0, run.times[-1], 401)
    dim = len(run.weights)
    law, seen = flow(1 / dim, run.weights, times), run.moments
    low, growth, high = spread(run.base[-1] ** 2 / run.base[0] ** 2)
    chosen = [0, dim // 2, dim - 1]
    found: dict[str, Any] = {}
    for name, q in (("law", law), ("seen", seen)):
        parts = excess(q, run.weights)
        found |= {f"{name}_{part}": (f"{name}_time", np.abs(getattr(parts, part))) for part in NAMES}
        found[f"{name}_moment"] = ((f"{name}_time", "coordinate"), dim * q[:, chosen])
    found |= {
        "factor": ("axis", dim * run.weights),
        "growth": ("axis", growth),
        "low": ("axis", low),
        "high": ("axis", high),
    }
    about = {"dim": dim, "ratio": 2.0, "count": run.base.shape[1], "end": float(run.times[-1])}
    return xr.Dataset(found, {"law_time": times, "seen_time": run.times, "coordinate": chosen}, about)


def sheet(dataset: xr.Dataset) -> Sheet:
    about = dataset.attrs
    factor = dataset["factor"].values
    caption = (
        f"d = {about['dim']}, teacher weights of ratio {about['ratio']:g}, start N(0, I/d). Lines: the warm-up "
        f"equation, with orders 0 and 2 alone. Points: a sign-symmetric population of {about['count']} neurons with "
        "orders 0 to 8; time is steps x eta_inf. Right: the squares of the neurons' coordinates at time "
        f"{about['end']:.0f} over those at the start, median over neurons, bars: {BAND}. They take the factor a_i "
        "d, where Claim A.2 prints its square."
    )
    return Sheet(
        "Stage 1.1: orders 0 and 2 with unequal weights",
        (
            Panel("Second moments", "time", r"$d\, E\, w_i^2$", _moments(dataset)),
            Panel("What is left to learn", "time", "excess", _excess(dataset), yscale="log", ylim=(1e-6, 0.1),
                  marks=(Mark("$1/d^2$", level=about["dim"] ** -2.0),)),
            Panel(
                "Every neuron is stretched",
                "$a_i d$",
                "$v_i(T_1)^2 / v_i(0)^2$",
                (
                    line(factor, dataset["growth"].values, "population", kind="points",
                         low=dataset["low"].values, high=dataset["high"].values),
                    line(factor, factor, "$a_i d$", colour=1),
                    line(factor, factor**2, "$(a_i d)^2$, Claim A.2", colour=GREY, dash="dashed"),
                ),
            ),
        ),
        columns=3,
        caption=caption,
    )  # fmt: skip


def _moments(dataset: xr.Dataset) -> tuple[Series, ...]:
    series = []
    for colour, axis in enumerate(dataset["coordinate"].values):
        one = dataset.sel(coordinate=axis)
        name = f"$a_i d = {float(dataset['factor'].values[axis]):.2f}$"
        series.append(line(one["law_time"].values, one["law_moment"].values, name, colour=colour))
        few = one.isel(seen_time=slice(None, None, EVERY))
        series.append(line(few["seen_time"].values, few["seen_moment"].values, kind="points", colour=colour))
    return tuple(series)


def _excess(dataset: xr.Dataset) -> tuple[Series, ...]:
    series = []
    for colour, (part, name) in enumerate(NAMES.items()):
        series.append(line(dataset["law_time"].values, dataset[f"law_{part}"].values, name, colour=colour))
        few = dataset.isel(seen_time=slice(None, None, EVERY))
        series.append(line(few["seen_time"].values, few[f"seen_{part}"].values, kind="points", colour=colour))
    return tuple(series)


FIGURE = Figure("warmup", "Stage 1.1 with unequal weights", compute, sheet, ours=True)
