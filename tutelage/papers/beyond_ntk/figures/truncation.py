"""What Algorithm 1's truncation does: none, in two stages, and for ever."""

import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk.figures.beyond.common import TIME
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.papers.beyond_ntk.stops import EVER, HIGH, LOW, NONE, PLANS, STAGES, standing, truncated_run
from tutelage.study import Figure, Size

WAYS = (NONE, STAGES, EVER)
LABELS = {NONE: "none", STAGES: rf"$1/\lambda$ = {LOW:g}, then {HIGH:g}", EVER: rf"$1/\lambda$ = {LOW:g} for ever"}


def compute(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """Losses, units that stand still, and the largest squared norm, for each way."""
    plan = PLANS[size]
    rows = []
    for way in WAYS:
        data = truncated_run(plan, way)
        still = standing(data, plan) if way != NONE else xr.zeros_like(data["L"])
        largest = (data["first_norm"] ** 2).max("student")
        rows.append(xr.Dataset({"L": data["L"], "frozen": still, "largest": largest}).drop_vars("step"))
    joined = xr.concat(rows, "way", join="outer").assign_coords(way=list(WAYS))
    return joined.assign_attrs(plan._asdict())


def sheet(dataset: xr.Dataset) -> Sheet:
    later, about = dataset.isel(time=slice(1, None)), dataset.attrs
    median = later.median("seed")

    def curves(name: str):
        # Each at its own times: those of a second stage are sums, and differ from the others by rounding.
        own = [median[name].sel(way=w).dropna("time") for w in WAYS]
        return tuple(
            line(each["time"].values, each, LABELS[w], colour=c)
            for c, (w, each) in enumerate(zip(WAYS, own, strict=True))
        )

    stage = Mark("second stage", at=about["stage"])
    panels = (
        Panel("loss", TIME, "L", curves("L"), marks=(stage,), xscale="log", yscale="log"),
        Panel(
            "units that stand still",
            TIME,
            f"number of {about['width']}",
            curves("frozen"),
            marks=(stage,),
            xscale="log",
            ylim=(-0.5, 1.3 * float(median["frozen"].max()) + 1),
        ),
        Panel(
            "largest unit",
            TIME,
            r"$\max |w|^2$",
            curves("largest"),
            marks=(stage, Mark("first cap", level=LOW)),
            xscale="log",
            ylim=(0.0, 1.2 * float(median["largest"].max())),
        ),
    )
    return Sheet("Truncation, as in Algorithm 1 and otherwise", panels, columns=3, caption=_caption(dataset))


def _caption(dataset: xr.Dataset) -> str:
    about, end = dataset.attrs, dataset.isel(time=-1).median("seed")
    told = "; ".join(
        f"{w}: L = {float(end['L'].sel(way=w)):.2g}, {float(end['frozen'].sel(way=w)):.0f} stand still" for w in WAYS
    )
    return (
        f"d = {about['dim']}, m = {about['width']}, population gradient, uniform weights, eta_inf = 0.2; median of "
        f"{about['seeds']} seed(s). At time {float(dataset['time'][-1]):g}: {told}. A unit alone on a direction needs "
        f"|w|^2 = m/d = {about['width'] / about['dim']:.3g}: the cap of the first stage is below that, and only a "
        "second stage with a looser one lets the loss go on."
    )


FIGURE = Figure("truncation", "Algorithm 1's truncation", compute, sheet, ours=True)
