"""Theorem 1 when d goes to infinity, over numbers of students and teachers; and from starts that may save it."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage.analysis import Mark, Panel, Sheet, binomial_interval, line
from tutelage.papers.soft_moe.limit import STARTS, Limit, Limits
from tutelage.papers.soft_moe.races import large
from tutelage.papers.soft_moe.repairs import Repairs, paired
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

LAW = 6 / 7
LEVEL = 0.99


def _chance(good: NDArray[np.bool_]) -> tuple[float, float, float]:
    """A share with its Clopper-Pearson interval."""
    interval = binomial_interval(int(good.sum()), len(good), LEVEL)
    return float(good.mean()), interval.low, interval.high


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Chances in the limit over the grid of students and teachers; it is the paper's, whatever the settings say."""
    del settings
    grid = Limits(size).grid
    parts = {
        name: (("cell", "part"), [_chance(np.asarray(getattr(one, name))) for one in grid])
        for name in ("matched", "as_greedy")
    }
    sizes = {"students": ("cell", [one.students for one in grid]), "teachers": ("cell", [one.teachers for one in grid])}
    return xr.Dataset(
        parts | sizes, {"part": ["share", "low", "high"]}, {"draws": [min(_draws(grid)), max(_draws(grid))]}
    )


def _draws(grid: list[Limit]) -> list[int]:
    return [one.draws for one in grid]


def sheet(dataset: xr.Dataset) -> Sheet:
    few, many = (int(count) for count in dataset.attrs["draws"])
    return Sheet(
        "Theorem 1 for iid students when d goes to infinity",
        (
            _panel(dataset, "matched", "Every teacher gets some student"),
            _panel(dataset, "as_greedy", "Students and order of Eq. (6)"),
        ),
        caption="Chances in the race of leading order, in which no dimension is left: d goes to infinity at fixed "
        "numbers of students m and teachers m*. iid Gaussian starts, no time limit on the scale sqrt(d). Bars: "
        f"Clopper-Pearson intervals, level {LEVEL:g}, of {few} to {many} draws each. Dashed: 6/7, which the proof "
        "promises (1 - 7 delta_P) with delta_P = 1/49. Lines join sizes with the same number of teachers.",
    )


def _panel(dataset: xr.Dataset, name: str, title: str) -> Panel:
    series = []
    for colour, teachers in enumerate(np.unique(dataset["teachers"].values)):
        one = dataset.isel(cell=np.flatnonzero(dataset["teachers"].values == teachers))
        x, (share, low, high) = one["students"].values.astype(float), one[name].transpose("part", "cell").values
        label = f"m* = {teachers}"
        series.append(line(x, share, label, kind="points", colour=colour, low=low, high=high))
        series.append(line(x, share, colour=colour, faint=True))
    return Panel(
        title,
        "students m",
        "probability",
        tuple(series),
        marks=(Mark("6/7", level=LAW),),
        xscale="log",
        ylim=(-0.03, 1.03),
    )


def compute_starts(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Chances of every start in the limit, and in exact flows where there are any."""
    limits, repairs = Limits(size), Repairs(settings, size)
    m, k = settings.students, settings.teachers
    found = [limits.at(m, k, start) for start in STARTS]
    races = {
        "iid": large(settings, size, "iid"),
        "orthonormal": large(settings, size, "orthonormal"),
        "flipped": repairs.flipped,
        "even": repairs.even,
    }
    flows = [_chance(paired(races[start])) if start in races else (np.nan,) * 3 for start in STARTS]
    about = [
        f"d = {races[start].settings.dim:.0e}, {races[start].count} seeds" if start in races else "" for start in STARTS
    ]
    return xr.Dataset(
        {
            "matched": (("start", "part"), [_chance(one.matched) for one in found]),
            "as_greedy": (("start", "part"), [_chance(one.as_greedy) for one in found]),
            "flows": (("start", "part"), flows),
            "about": ("start", about),
        },
        {"start": list(STARTS), "part": ["share", "low", "high"]},
        {"draws": found[0].draws, "students": m, "teachers": k},
    )


def starts_sheet(dataset: xr.Dataset) -> Sheet:
    at = np.arange(dataset.sizes["start"], dtype=float)
    names = (
        ("matched", "limit: every teacher gets some student", -0.15),
        ("as_greedy", "limit: students and order of Eq. (6)", 0.0),
        ("flows", "exact flows: every teacher gets some student", 0.15),
    )
    series = []
    for colour, (name, label, aside) in enumerate(names):
        share, low, high = dataset[name].transpose("part", "start").values
        kept = np.isfinite(share)
        series.append(
            line(at[kept] + aside, share[kept], label, kind="points", colour=colour, low=low[kept], high=high[kept])
        )
    panel = Panel(
        "",
        "",
        "probability",
        tuple(series),
        marks=(Mark("6/7", level=LAW),),
        names=tuple(dataset["start"].values.tolist()),
        xlim=(-0.5, len(at) - 0.5),
        ylim=(-0.03, 1.35),
    )
    told = "; ".join(f"{name}: {STARTS[str(name)].words}" for name in dataset["start"].values)
    where = "; ".join(f"{s} {a}" for s, a in zip(dataset["start"].values, dataset["about"].values, strict=True) if a)
    return Sheet(
        "Which starts save Theorem 1",
        (panel,),
        columns=1,
        caption=f"m = {dataset.attrs['students']}, m* = {dataset.attrs['teachers']}. {told}. Limit: "
        f"{dataset.attrs['draws']} draws of the race of leading order, no time limit. Flows ({where}): by 0.4 sqrt(d), "
        "of an even degree by 0.04 d and up to the sign of the expert; output signs need none, since they are flips of "
        "the experts. A teacher that two students share has none of its own. Bars: Clopper-Pearson intervals, level "
        f"{LEVEL:g}. Dashed: 6/7.",
    )


FIGURES = (
    Figure("limit", "Theorem 1 in the limit of many dimensions", compute, sheet, ours=True),
    Figure("starts", "Starts that may save Theorem 1", compute_starts, starts_sheet, ours=True),
)
