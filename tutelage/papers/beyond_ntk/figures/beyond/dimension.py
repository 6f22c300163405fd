"""A fixed number of teachers in ever more dimensions: the plateau grows with log d only, and the cost not at all."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Sheet, line, lines
from tutelage.papers.beyond_ntk.constants import B2
from tutelage.papers.beyond_ntk.escapes import RECORDS, first_below
from tutelage.papers.beyond_ntk.figures.beyond.common import SEEDS, TIME, along, barred, curves
from tutelage.papers.beyond_ntk.runs import traces
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

TEACHERS, WIDTH, UNTIL = 4, 8, 70.0
DIMS: dict[Size, tuple[int, ...]] = {
    "quick": (10**2, 10**3, 10**6, 10**9),
    "full": (30, 10**2, 10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
}
SHOWN = (10**2, 10**3, 10**6, 10**9)
FALLEN = 0.5


def rate(weight: float, step: float) -> float:
    """How fast a unit turns to a teacher of this weight while it is nearly orthogonal to it.

    The gradient along the teacher is `b_2 a` times the coordinate, `b_2 = 4/pi`; the norm is at rest, and a network of
    fewer units than dimensions has no bulk that would oppose it. A step multiplies by `1 + eta b_2 a`.

    ```python
    >>> from tutelage.papers.beyond_ntk.figures.beyond.dimension import rate
    >>> round(rate(0.25, step=1e-9), 4), round(rate(0.25, step=0.2), 4)
    (0.3183, 0.3086)

    ```
    """
    return math.log1p(step * B2 * weight) / step


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Losses in each dimension, and when they have halved and left the plateau on the fourth order."""
    base = {"teachers": TEACHERS, "width": WIDTH, "until": UNTIL}
    dims = [float(dim) for dim in DIMS[size]]
    joined = along("dim", dims, lambda dim: _row(traces(BeyondNtkSettings(dim=int(dim), **base), SEEDS, RECORDS)))
    return joined.assign_attrs(teachers=TEACHERS, width=WIDTH, rate=rate(1 / TEACHERS, BeyondNtkSettings().step))


def _row(data: xr.Dataset) -> xr.Dataset:
    # By time 2 the norms are at rest, and in high dimension nothing else has moved.
    level = FALLEN * float(data["L"].sel(time=2.0, method="nearest").median())
    covered = (data["caught"] > 0).sum("teacher").isel(time=-1, drop=True)
    fourth = data["norm"].sel(tensor_order=4, drop=True)
    found = {"L": data["L"], "half": ("seed", first_below(data["L"], level)), "covered": covered}
    found["fourth"] = ("seed", first_below(fourth, FALLEN / math.sqrt(TEACHERS)))
    return xr.Dataset(found)


def sheet(dataset: xr.Dataset) -> Sheet:
    dims = dataset["dim"].values
    start = float(dataset["half"].isel(dim=-1).mean())
    law = line(
        dims, start + np.log(dims / dims[-1]) / (2 * dataset.attrs["rate"]), _law(dataset), dash="dashed", colour=GREY
    )
    panels = (
        Panel("loss", TIME, "L", curves(dataset["L"], "dim", SHOWN, "d ="), yscale="log"),
        Panel(
            "escape",
            "dimension d",
            TIME,
            (
                barred(dims, dataset["half"], "loss has halved", colour=0),
                barred(dims, dataset["fourth"], "fourth order has halved", colour=1, marker="^"),
                law,
            ),
            xscale="log",
            ylim=(0.0, 1.4 * float(dataset["fourth"].max())),
        ),
        Panel(
            "directions with a unit on them",
            "dimension d",
            f"number of {dataset.attrs['teachers']}",
            (barred(dims, dataset["covered"], colour=0),),
            marks=(Mark("all", level=float(dataset.attrs["teachers"])),),
            xscale="log",
            ylim=(0.0, dataset.attrs["teachers"] + 1.0),
        ),
    )
    return Sheet("Beyond the paper: few teachers in many dimensions", panels, columns=3, caption=_caption(dataset))


def _law(dataset: xr.Dataset) -> str:
    return rf"slope {1 / (2 * dataset.attrs['rate']):.3f} in $\log d$"


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    high = dataset.where(dataset["dim"] >= 1000, drop=True)
    slopes = [lines.slope(np.log(high["dim"].values), high[name].mean("seed").values) for name in ("half", "fourth")]
    growth = 1 / (2 * about["rate"])
    return (
        f"{about['teachers']} orthogonal teachers of equal weight, m = {about['width']}, starts N(0, I/d), population "
        f"gradient, {dataset.sizes['seed']} seeds; a run has a frame of {about['teachers'] + about['width']} "
        f"coordinates whatever d. Overlaps begin at 1/sqrt d and grow at the rate {about['rate']:.4f}, from order 2: "
        f"the time must grow by {growth:.3f} per unit of log d. Seen from d = 1000 on: {slopes[0]:.3f} for the loss, "
        f"{slopes[1]:.3f} for the fourth order, which follows at a fixed distance. With d teachers it grows nearly as "
        "d^2 (see the figure of the plateau)."
    )


FIGURE = Figure("beyond_dimension", "Few teachers in many dimensions", compute, sheet, ours=True)
