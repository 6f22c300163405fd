"""Lottery tickets: when a neuron wins a coordinate, from its start alone, and what becomes of the paper's sets."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Field, Panel, Series, Sheet, line
from tutelage.papers.beyond_ntk.directions import blow_up_time
from tutelage.papers.beyond_ntk.lottery import FATES, KINDS, bars
from tutelage.papers.beyond_ntk.races import PLANS, by_direction_equation, network, race, tables
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

SHOWN = 1500  # starts of the direction equation in the first panel


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Starts, times and kinds of the neurons of a population, beside what the direction equation says."""
    run, net = race(PLANS[size]), network(PLANS[size])
    start, _, hits = by_direction_equation(run.plan.dim, SHOWN)
    level = float(bars(run.weights, run.plan.horizon * run.plan.dim**2).level[0])
    return xr.Dataset(
        {
            "start": ("neuron", _largest(run.neurons[0])),
            "observed": ("neuron", run.hits.time),
            "foretold": ("neuron", run.foretold.time),
            "massive": ("neuron", np.arange(run.neurons.shape[1]) < run.plan.width),
            "network_observed": ("unit", net.hits.time),
            "network_foretold": ("unit", net.foretold.time),
            "law_start": ("draw", _largest(start)),
            "law_time": ("draw", hits.time),
        }
        | {name: (("kind", "fate"), table) for name, table in tables(size).items()},
        {"kind": list(KINDS), "fate": list(FATES)},
        {"dim": run.plan.dim, "count": run.plan.width, "level": level, "end": float(run.times[-1])}
        | {"horizon": run.plan.horizon * run.plan.dim**2},
    )


def _largest(start: np.ndarray) -> np.ndarray:
    """The largest `vbar_i^2`."""
    return np.max(start**2, axis=1) / np.sum(start**2, axis=1)


def sheet(dataset: xr.Dataset) -> Sheet:
    about = dataset.attrs
    won = np.isfinite(dataset["observed"].values)
    caption = (
        f"d = {about['dim']}, equal weights. A population on the plateau: {about['count']} neurons and their images "
        "under a group of signs, and neurons without mass of each kind of start; time is steps x eta_inf, up to "
        f"{about['end']:.0f}. Left: when one coordinate has half of a neuron's square, which {int(won.sum())} of "
        f"{len(won)} neurons come to. Right: the paper's sets, with Gamma = {about['level']:.2f} by the horizon T_2' = "
        f"{about['horizon']:.0f} and rho = Gamma/4, and what their neurons had won by the end. All of S_good win; so "
        "do many that the cubic law leaves out, since the sets go by v and the race by its direction."
    )
    observed, foretold = dataset["observed"].values, dataset["foretold"].values
    massive = dataset["massive"].values.astype(bool)
    groups = (("neurons with mass", massive, 0, "o"), ("without mass", ~massive, 3, "s"))
    points = [
        line(foretold[won & some], observed[won & some], name, kind="points", colour=colour, marker=marker)
        for name, some, colour, marker in groups
    ]
    came = np.isfinite(dataset["network_observed"].values)
    told, seen = (dataset[f"network_{name}"].values[came] for name in ("foretold", "observed"))
    return Sheet(
        "Lottery tickets: a neuron's start decides when it wins",
        (
            _starts(dataset, won),
            _table(dataset, "law", "Sets: direction equation"),
            _times("Population", points),
            _table(dataset, "population", "Sets: population"),
            _times(f"Network of {len(came)} neurons", [line(told, seen, "neurons", kind="points", colour=0)]),
            _table(dataset, "network", "Sets: network"),
        ),
        columns=2,
        caption=caption,
    )


def _starts(dataset: xr.Dataset, won: np.ndarray) -> Panel:
    dim, start, observed = dataset.attrs["dim"], dataset["start"].values, dataset["observed"].values
    drawn = np.isfinite(dataset["law_time"].values)
    grid = np.linspace(max(float(start[won].min()) * 0.9, 0.05), 0.5, 200)
    return Panel(
        "Hitting time against the start",
        r"largest $\bar v_i^2$ at the start",
        r"time of $\bar v_i^2 = 1/2$",
        (
            line(dataset["law_start"].values[drawn], dataset["law_time"].values[drawn], "direction equation",
                 kind="points", colour=2, marker=".", faint=True),
            line(start[won], observed[won], "population", kind="points", colour=0),
            line(grid, blow_up_time(grid, 1 / dim), r"blow-up of $B_{14} a x^3$", colour=1, dash="dashed"),
        ),
        ylim=(0, 1.15 * dataset.attrs["end"]),
    )  # fmt: skip


def _times(title: str, points: list[Series]) -> Panel:
    seen = [values[np.isfinite(values)] for series in points for values in (series.x, series.y)]
    ends = [0.0, float(max(values.max(initial=0.0) for values in seen))]
    return Panel(
        title,
        "time by the direction equation",
        "time observed",
        (*points, line(ends, ends, "equal", dash="dotted", colour=GREY)),
    )


def _table(dataset: xr.Dataset, name: str, title: str) -> Panel:
    table = dataset[name].values[::-1]  # the first row on top
    count = table.sum(1)
    share = 100 * table / np.maximum(count, 1)[:, None]
    rows = tuple(f"{kind} ({number})" for kind, number in zip(dataset["kind"].values[::-1], count, strict=True))
    return Panel(
        title,
        "coordinate won",
        "set of the start (neurons)",
        fields=(
            Field(
                np.arange(table.shape[1], dtype=float), np.arange(table.shape[0], dtype=float), share,
                "% of the neurons in the set", cells=True, columns=tuple(map(str, dataset["fate"].values)), rows=rows,
                ends=(0.0, 100.0),
            ),
        ),
    )  # fmt: skip


FIGURE = Figure("lottery", "Lottery tickets", compute, sheet, ours=True)
