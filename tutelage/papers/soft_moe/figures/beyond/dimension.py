"""As many dimensions as students, or fewer: how many teachers are recovered, and what the loss comes to."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, Panel, Series, Sheet, band, line
from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.figures.beyond.common import UNITS, cancelled, changed, flows
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

DIMS: dict[Size, tuple[int, ...]] = {
    "quick": (16, 300),
    "full": (6, 8, 12, 20, 36, 100, 300, 1000, 10000),
}
SEEDS: dict[Size, int] = {"quick": 3, "full": 10}
UNTIL: dict[Size, float] = {"quick": 20.0, "full": 150.0}
FLOOR = 1e-8  # of losses in the figure
INITS = {"iid": "iid start", "orthonormal": "orthonormal start"}


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Flows to one time in every dimension; orthonormal students where there is room for them."""
    base = changed(settings, **UNITS[size], alphas=None, dim=max(DIMS[size]), until=UNTIL[size])
    rows = [_row(base, size, init) for init in INITS]
    return xr.concat(rows, "init").assign_coords(init=list(INITS)).assign_attrs(UNITS[size] | {"until": UNTIL[size]})


def _row(base: SoftMoeSettings, size: Size, init: str) -> xr.Dataset:
    room = [dim for dim in DIMS[size] if init != "orthonormal" or dim >= 2 * base.students]
    until, seeds = UNTIL[size], SEEDS[size]
    ends = [_end(flows(changed(base, dim=dim, init=init), seeds, until, [0.0, until]).dataset) for dim in room]
    return xr.concat(ends, "dim").assign_coords(dim=room).reindex(dim=list(DIMS[size]))


def _end(data: xr.Dataset) -> xr.Dataset:
    end = data.isel(time=-1, drop=True)
    good = (end["overlap_expert"] >= RECOVERED) & (end["overlap_router"] >= RECOVERED)
    return xr.Dataset(
        {
            "recovered": good.any("student").sum("teacher"),
            "alone": (good.sum("student") == 1).sum("teacher"),
            "pairs": cancelled(end),
            "loss": end["loss"],
        }
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    teachers, students = dataset.attrs["teachers"], dataset.attrs["students"]
    ratio = dataset["dim"].values / students

    def curves(name: str) -> list[Series]:
        return [band(ratio, dataset[name].sel(init=i), t, colour=c) for c, (i, t) in enumerate(INITS.items())]

    shown = dataset["loss"].clip(min=FLOOR)
    losses = [
        line(ratio, shown.sel(init=i).isel(seed=s), "" if s else t, kind="points", colour=c, faint=bool(s))
        for c, (i, t) in enumerate(INITS.items())
        for s in range(dataset.sizes["seed"])
    ]
    panels = (
        Panel(
            "teachers recovered by router and expert",
            "d / m",
            f"number of {teachers}, median",
            tuple(curves("recovered")),
            xscale="log",
            ylim=(-0.1, teachers * 1.15),
        ),
        Panel(
            "pairs of opposite experts",
            "d / m",
            f"number at time {dataset.attrs['until']:g}, median",
            tuple(curves("pairs")),
            xscale="log",
        ),
        Panel(
            "loss",
            "d / m",
            f"loss at time {dataset.attrs['until']:g}",
            tuple(losses),
            xscale="log",
            yscale="log",
            note=f"Losses below {FLOOR:g} are shown there.",
        ),
    )
    return Sheet("Beyond the paper: dimension against width", panels, columns=3, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    about, parts = dataset.attrs, []
    for init, name in INITS.items():
        for dim in dataset["dim"].values:
            one = dataset.sel(init=init, dim=dim)
            if np.isfinite(one["loss"]).all():
                parts.append(
                    f"{name}, d = {dim}: {float(one['recovered'].mean()):.2f} recovered "
                    f"({float(one['alone'].mean()):.2f} by one student only), {float(one['pairs'].mean()):.1f} pairs, "
                    f"loss {float(one['loss'].median()):.2g}"
                )
    return (
        f"{dataset.sizes['seed']} seeds, m* = {about['teachers']}, m = {about['students']}, time {about['until']:g}; "
        f"bands: {BAND}. Means (loss: median): {'; '.join(parts)}."
    )


FIGURE = Figure("beyond_dimension", "As many dimensions as students, or fewer", compute, sheet, ours=True)
