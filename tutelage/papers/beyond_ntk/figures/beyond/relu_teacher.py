"""A teacher of ReLUs: its linear part breaks the symmetry of the paper's, and may be regressed away first."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Panel, Series, Sheet, line, seed_lines
from tutelage.papers.beyond_ntk.escapes import first_below
from tutelage.papers.beyond_ntk.figures.beyond.common import SHAPES, TIME, runs
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

LABELS = {"relu2": "2 ReLU", "relu": "ReLU, at half its time", "abs": "|z|, the linear part regressed away"}
CLOCKS = {"relu2": 1.0, "relu": 0.5, "abs": 2.0}
"""A ReLU student is a 2 ReLU student of twice the size at half the speed, up to its start. Without its linear part the
teacher is half of the paper's: a |z| student of it is one of the paper's, with weights divided by sqrt 2, a quarter of
the loss, and half the speed."""
ORDERS = (0, 1, 2, 4)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """L and the losses of its orders, for three students, at times of the 2 ReLU student."""
    until = SHAPES[size].until
    data = {
        "relu2": runs(size, variant="relu2", teacher="relu"),
        "relu": runs(size, variant="relu", teacher="relu", until=2 * until),
        "abs": runs(size, until=until / 2),
    }
    end = min(CLOCKS[name] * float(one["time"][-1]) for name, one in data.items())
    times = np.geomspace(0.4, end, 100)
    rows = [_on_clock(one, times, CLOCKS[name], 0.25 if name == "abs" else 1.0) for name, one in data.items()]
    return xr.concat(rows, "student").assign_coords(student=list(data)).assign_attrs(SHAPES[size]._asdict())


def _on_clock(data: xr.Dataset, times: np.ndarray, clock: float, share: float) -> xr.Dataset:
    orders = 2 * data["loss_order"].sel(tensor_order=list(ORDERS))
    found = xr.Dataset({"L": data["L"], "order": orders}).drop_vars("step") * share
    return found.assign_coords(time=clock * data["time"]).interp(time=times)


def sheet(dataset: xr.Dataset) -> Sheet:
    times = dataset["time"].values

    def curves(values: xr.DataArray) -> tuple[Series, ...]:
        rows = (seed_lines(times, values.sel(student=s), t, colour=c) for c, (s, t) in enumerate(LABELS.items()))
        return tuple(each for row in rows for each in row)

    second = dataset["order"].sel(student="relu2").median("seed")
    orders = [line(times, second.sel(tensor_order=k), f"order {k}", colour=c) for c, k in enumerate(ORDERS)]
    total = line(times, dataset["L"].sel(student="relu2").median("seed"), "all", dash="dashed", colour=GREY)
    panels = (
        Panel("loss", TIME, "L", curves(dataset["L"]), xscale="log", yscale="log"),
        Panel(
            "2 ReLU student, order by order", TIME, "part of L, median", (*orders, total), xscale="log", yscale="log"
        ),
        Panel(
            "fourth order",
            TIME,
            "part of L",
            curves(dataset["order"].sel(tensor_order=4)),
            xscale="log",
            yscale="log",
        ),
    )
    return Sheet("Beyond the paper: a teacher of ReLUs", panels, columns=3, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    fourth = dataset["order"].sel(tensor_order=4)
    level = 0.5 * float(fourth.sel(student="abs").isel(time=slice(0, 20)).median())
    told = "; ".join(f"{t}: {np.mean(first_below(fourth.sel(student=s), level)):.0f}" for s, t in LABELS.items())
    return (
        f"f* = sum a_i ReLU(z_i), d = {about['dim']}, m = {about['width']}, uniform weights, the population gradient, "
        f"{dataset.sizes['seed']} seeds, times in those of the 2 ReLU student. Order 1, which symmetry forbids in the "
        "paper, is the largest part once order 0 is learned; it is learned before order 2, and then the same plateau "
        f"on the fourth order follows. Mean times at which the fourth order is half of what it was there: {told}. "
        "Regressing the linear part away first leaves half of the paper's teacher: the paper's own run shows it."
    )


FIGURE = Figure("beyond_relu_teacher", "A teacher of ReLUs", compute, sheet, ours=True)
