"""Teacher directions that are not orthogonal: any two of them at one angle."""

import xarray as xr

from tutelage.analysis import Panel, Sheet
from tutelage.papers.beyond_ntk.escapes import half_times
from tutelage.papers.beyond_ntk.figures.beyond.common import SHAPES, TIME, along, barred, curves, runs
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

COSINES: dict[Size, tuple[float, ...]] = {"quick": (0.0, 0.3, 0.6, 0.9), "full": (-0.04, 0.0, 0.1, 0.3, 0.5, 0.7, 0.9)}
SHOWN = (0.0, 0.3, 0.6, 0.7, 0.9)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Losses, and when orders above 2 have halved, cosine by cosine."""
    joined = along("cosine", COSINES[size], lambda cosine: _row(runs(size, cosine=cosine)))
    return joined.assign_attrs(SHAPES[size]._asdict())


def _row(data: xr.Dataset) -> xr.Dataset:
    return xr.Dataset({"L": data["L"], "escape": ("seed", half_times(data))})


def sheet(dataset: xr.Dataset) -> Sheet:
    cosines, end = dataset["cosine"].values, dataset["L"].isel(time=-1)
    top = 1.25 * float(dataset["escape"].max())
    panels = (
        Panel("loss", TIME, "L", curves(dataset["L"], "cosine", SHOWN, "cosine"), xscale="log", yscale="log"),
        Panel(
            "when orders above 2 have halved",
            "cosine of two teacher directions",
            TIME,
            (barred(cosines, dataset["escape"], colour=0),),
            ylim=(0.0, top),
        ),
        Panel(
            f"loss at time {float(dataset['time'][-1]):.0f}",
            "cosine of two teacher directions",
            "L",
            (barred(cosines, end, colour=0),),
            yscale="log",
            ylim=(0.3 * float(end.min()), 3 * float(end.max())),
        ),
    )
    return Sheet("Beyond the paper: overlapping teacher directions", panels, columns=3, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    told = "; ".join(
        f"{float(c):g}: {float(one['escape'].mean()):.0f}, {float(one['L'].isel(time=-1).median()):.2g}"
        for c, one in ((c, dataset.sel(cosine=c)) for c in dataset["cosine"].values)
    )
    return (
        f"d = {about['dim']} teachers, any two at one cosine; m = {about['width']}, uniform weights, population "
        f"gradient, {dataset.sizes['seed']} seeds. Mean time at which orders above 2 have halved since the lower ones "
        f"were learned, and median of the last L, by cosine: {told}. The larger the cosine, the more of the teacher is "
        "in its mean direction, which low orders learn at once: the plateau is lower, and less and less flat. At high "
        "cosines the halving is this slow fall, and the escape comes later."
    )


FIGURE = Figure("beyond_overlapping", "Overlapping teacher directions", compute, sheet, ours=True)
