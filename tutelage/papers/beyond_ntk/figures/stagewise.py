"""Figure 1: one moment tensor after the other is learned."""

import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.beyond_ntk.phases import STAGES
from tutelage.papers.beyond_ntk.runs import from_large
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

ORDERS = {0: "0th", 2: "2nd", 4: "4th", 6: "6th"}
SAMPLES, UNTIL, RECORDS = 10_000, 2000.0, 300
SEEDS: dict[Size, int] = {"quick": 1, "full": 3}
TIME = r"time $\eta_\infty T$ (T steps)"
KEPT = ("norm", "L", "trained", "loss", "loss_order", "loss_beyond")


def population(settings: BeyondNtkSettings) -> xr.Dataset:
    """The network of the figure from `N(0, I)`, where the orders begin as the text says they do; no sampling noise."""
    return from_large(_plain(settings, 0, UNTIL), 1, RECORDS)


def sampled(settings: BeyondNtkSettings, size: Size) -> xr.Dataset:
    """The paper's own setting: 10^4 samples as well; quick stops long before the plateau ends."""
    until = 2 * UNTIL if size == "full" else UNTIL / 40
    return from_large(_plain(settings, SAMPLES, until), SEEDS[size], RECORDS)


def _plain(settings: BeyondNtkSettings, samples: int, until: float) -> BeyondNtkSettings:
    return settings.model_copy(update={"samples": samples, "until": until, "truncate": (), "stage": None})


def compute(settings: BeyondNtkSettings, size: Size) -> xr.DataTree:
    """The first seed on samples, and with the population gradient, each at its own records."""
    runs = {"samples": sampled(settings, size), "population": population(settings)}
    about = {"dim": settings.dim, "width": settings.width, "samples": SAMPLES}
    parts = {name: run[list(KEPT)].isel(seed=0, drop=True).isel(time=slice(1, None)) for name, run in runs.items()}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=about), **parts})


def sheet(tree: xr.DataTree) -> Sheet:
    """Tensor losses in time for both gradients, then both losses on samples."""
    about = tree.attrs
    some, exact = (tree[name].to_dataset() for name in ("samples", "population"))
    caption = (
        f"d = {about['dim']}, m = {about['width']}, student and teacher with |z|, equal teacher weights. Left: the "
        f"paper's setting, {about['samples']} samples and the start N(0, I), first of "
        "the seeds; middle: the same start with the population gradient; right: the losses of the run on the left. "
        "Time is the sum of the steps eta_inf, which are 0.002 until time 0.4, 0.02 until 4.4, and 0.2 from there on. "
        "Tensor losses are the unsquared norms |T_k|. Orders 0 and 2 are learned at once, orders 4 and 6 wait on a "
        "plateau and are then learned together; dips of order 0 are changes of its sign. On samples the plateau lasts "
        "longer, and on it the network overfits."
    )
    panels = (
        _orders(some, f"{about['samples']} samples, start N(0, I)"),
        _orders(exact, "population gradient, start N(0, I)"),
        _overfit(some, about["samples"]),
    )
    return Sheet("Figure 1: one moment tensor after the other", panels, caption=caption, columns=3)


def _orders(run: xr.Dataset, title: str) -> Panel:
    time = run["time"].values
    curves = [line(time, run["norm"].sel(tensor_order=k), name, colour=i) for i, (k, name) in enumerate(ORDERS.items())]
    stages = [phase for phase in STAGES(run) if phase.name != "convergence (stage 2)"]
    marks = tuple(Mark(f"end of {phase.name.partition(' (')[0]}", at=phase.end) for phase in stages)
    return Panel(title, TIME, "tensor loss $|T_k|$", tuple(curves), marks=marks, xscale="log", yscale="log")


def _overfit(run: xr.Dataset, samples: int) -> Panel:
    time = run["time"].values
    curves = (line(time, run["L"], "population", colour=0), line(time, run["trained"], "samples", colour=1))
    return Panel(f"loss on {samples} samples", TIME, "$L$", curves, xscale="log", yscale="log")


FIGURE = Figure("fig1", "Figure 1: one moment tensor after the other is learned", compute, sheet)
