"""Outer weights that learn too: what is conserved, which signs survive, and whether the tail is still cubic."""

import math

import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, band
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.figures.beyond.common import STUDENTS, TEACHERS, trained
from tutelage.papers.relu_teachers.local import rate, simplex_constant
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

TRAINS = {"first": "outer weights fixed at 1", "both": "outer weights learn"}
PACE = 0.4
UPDATES: dict[Size, int] = {"quick": 2500, "full": 8000}


def compute(
    settings: ReluTeachersSettings, size: Size, *, updates: int | None = None, trains: tuple[str, ...] = tuple(TRAINS)
) -> xr.Dataset:
    """Weak-recovery starts, with outer weights that stay at 1 and with outer weights that start there."""
    updates = updates or UPDATES[size]
    rows = [_traces(trained(size, updates, pace=PACE, dim=settings.dim, init="weak", trains=t).dataset) for t in trains]
    return xr.concat(rows, "trains").assign_coords(trains=list(trains))


def _traces(data: xr.Dataset) -> xr.Dataset:
    outer = data["second"].isel(output=0, drop=True)
    balance = data["first_norm"] ** 2 - outer**2
    return xr.Dataset(
        {
            "loss": data["loss"],
            "exponent": data["time"] * data["gradient_norm"] ** 2 / data["loss"],
            "rate": measures.cubic_rate(data),
            "drift": abs(balance - balance.isel(time=0)).max("student"),
            "lowest": outer.min("student"),
            "length": data["first_norm"].max("student"),
        }
    )


def predicted_rates() -> dict[str, float]:
    """c of loss = (c s)^-3 at the balanced minimum, with outer weights fixed and learned.

    A learned unit moves its product a_i w_i across the teacher a_i^2 times as fast. At the end a_i |w_i| = k/m, and
    a_i^2 = 1 + |w_i|^2 because |w_i|^2 - a_i^2 is conserved.
    """
    copies = STUDENTS // TEACHERS
    fixed = rate(TEACHERS * simplex_constant(copies))
    return {"first": fixed, "both": fixed * (1 + math.sqrt(1 + 4 / copies**2)) / 2}


def sheet(dataset: xr.Dataset) -> Sheet:
    time = dataset["time"]
    names = [str(name) for name in dataset["trains"].values]

    def all_of(what: str):
        return tuple(band(time, dataset[what].sel(trains=n), TRAINS[n], colour=i) for i, n in enumerate(names))

    both = dataset.sel(trains="both")
    weights = (
        band(time, both["lowest"], "smallest outer weight a_i", colour=1),
        band(time, both["length"], "largest |w_i|", colour=3),
        band(time, both["drift"], "drift of |w_i|^2 - a_i^2", colour=4),
    )
    late = (1.0, float(time[-1]))
    panels = (
        Panel("loss", "time", "population loss", all_of("loss"), xscale="log", yscale="log", xlim=(0.01, late[1])),
        Panel(
            "the cubic law: d(loss^(-1/3))/d time",
            "time",
            "rate c",
            all_of("rate"),
            marks=tuple(Mark(f"predicted {rate:.4f}", level=rate) for rate in predicted_rates().values()),
            xscale="log",
            xlim=late,
            ylim=(0, 1.5),
        ),
        Panel("weights", "time", "value", weights, xscale="log", yscale="log", xlim=(0.01, late[1]), ylim=(1e-6, 4)),
    )
    return Sheet("Beyond the paper: learned outer weights", panels, columns=3, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    both, end = dataset.sel(trains="both"), dataset.isel(time=-1).median("seed")
    tails = [
        f"{TRAINS[str(n)]}: loss {float(end['loss'].sel(trains=n)):.2e}, exponent "
        f"{float(end['exponent'].sel(trains=n)):.3f}, c = {float(end['rate'].sel(trains=n)):.4f} "
        f"({predicted_rates()[str(n)]:.4f} predicted)"
        for n in dataset["trains"].values
    ]
    return (
        f"{dataset.sizes['seed']} weak-recovery seeds, k = {TEACHERS}, m = {STUDENTS}, a_i = 1 at the start. The flow "
        f"conserves |w_i|^2 - a_i^2, so a_i^2 = 1 + |w_i|^2 - |w_i(0)|^2 and no sign can change; descent lets it "
        f"drift by {float(both['drift'].max()):.1e} at most, and a_i stays above {float(both['lowest'].min()):.4f}. "
        f"At time {float(dataset['time'][-1]):.0f} (medians): {'; '.join(tails)}."
    )


FIGURE = Figure("beyond_outer", "Learned outer weights", compute, sheet, ours=True)
