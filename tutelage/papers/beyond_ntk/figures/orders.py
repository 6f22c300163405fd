"""Which order moves in which phase: the same decomposition for a soft committee and for ReLU students of ReLU."""

import numpy as np
import xarray as xr

from tutelage import flow
from tutelage.analysis import GREY, Panel, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.relu_teachers import recipe as relu_teachers
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.problem import Gaussian, GaussianRows, Problem, TwoLayer
from tutelage.study import Figure, Size

DIM, TEACHERS, RECORDS = 500, 3, 200
OBSERVED = ("loss", "loss_order", "loss_beyond")
SHOWN = {"committee": (1, 3, 5), "relu": (0, 1, 2, 4)}


def committee() -> Problem:
    """A soft committee: three erf units learn from three."""
    student = TwoLayer("erf", first=GaussianRows(1e-3), width=TEACHERS, trains=("first",))
    return Problem(Gaussian(DIM), TwoLayer("erf", first=np.eye(TEACHERS)), student)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Both flows; nothing of `settings` enters."""
    del settings, size
    units = flow(committee(), until=1000.0, record=Record(RECORDS, first=0.05, observables=OBSERVED))
    chosen = ReluTeachersSettings(teachers=2, students=4, norm=1.0, dim=50, scale=1e-6, step=0.01, steps=4000)
    relu = relu_teachers.run(
        chosen, dynamics="flow", record=Record(RECORDS, first=0.01, observables=(*OBSERVED, *_NEEDED))
    )
    return xr.merge([_renamed(units.dataset, "committee"), _renamed(relu.dataset, "relu")])


_NEEDED = ("gradient_norm", "first_norm", "overlap", "overlap_cos", "overlap_angle")


def _renamed(data: xr.Dataset, name: str) -> xr.Dataset:
    kept = data[list(OBSERVED)].isel(seed=0, drop=True).drop_vars("step", errors="ignore")
    return kept.rename({each: f"{name}_{each}" for each in (*OBSERVED, "time")})


def sheet(dataset: xr.Dataset) -> Sheet:
    """One panel per problem."""
    panels = (
        _panel(dataset, "committee", f"soft committee: {TEACHERS} erf units, d = {DIM}"),
        _panel(dataset, "relu", "ReLU: 2 teachers, 4 students, d = 50"),
    )
    caption = (
        "Two problems other than the paper's, whose orders are in Figure 1. The population loss by Hermite order, "
        "along a gradient flow from a small start (`loss_order`). Left: erf is "
        "odd. Order 1, a linear map, is learned first, by all units alike; the plateau of unspecialised units is the "
        "third order's, and higher ones fall with it. Right: order 1, and most of order 0, is learned while the "
        "students collapse onto the mean direction; what is left on the plateau there is order 2 above all."
    )
    return Sheet("The orders of the loss in two other problems", panels, caption=caption)


def _panel(dataset: xr.Dataset, name: str, title: str) -> Panel:
    time, losses = dataset[f"{name}_time"].values[1:], dataset[f"{name}_loss_order"].values[1:]
    orders = list(dataset["tensor_order"].values)
    curves = [line(time, _shown(dataset[f"{name}_loss"].values[1:]), "all orders", colour=GREY, dash="dashed")]
    curves += [
        line(time, _shown(losses[:, orders.index(k)]), f"order {k}", colour=i) for i, k in enumerate(SHOWN[name])
    ]
    return Panel(title, "time", "loss of an order (with 1/2)", tuple(curves), xscale="log", yscale="log")


def _shown(values: np.ndarray) -> np.ndarray:
    """Single orders are right to 1e-16 of the squared output; what is below is not drawn."""
    return np.where(values > 1e-15, values, np.nan)


FIGURE = Figure("orders", "The orders of the loss in two other problems", compute, sheet, ours=True)
