"""Network, kernels and the lower bound, on the same samples: against the dimension and against their number."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Series, Sheet, hermite_tail, line
from tutelage.papers.beyond_ntk import rivals
from tutelage.papers.beyond_ntk.rivals import Contest
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

NETWORK, BOUND = "network", "bound for any features"
LABELS = {
    NETWORK: "network, full-batch gradient",
    "ntk-abs": "ridge, tangent kernel of |z|",
    "ntk-relu": "ridge, tangent kernel of ReLU",
    "arc-abs": "ridge, arc-cosine kernel of |z|",
    "arc-relu": "ridge, arc-cosine kernel of ReLU",
    "rbf": "ridge, Gaussian kernel",
    "random features": "random features |u.x|, N of them (at most 8000)",
    "tangent features": "tangent features, m d of them",
    BOUND: "no N features go below (on average)",
}
DEGREES = (2, 4, 6)
# The two units of a kernel share a colour.
COLOURS = dict(zip(LABELS, (0, 1, 1, 2, 2, 3, 4, 5, 6), strict=True))
DASHED = ("ntk-relu", "arc-relu", BOUND)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.DataTree:
    """The paper's loss of every method at each dimension, and at each number of samples."""
    tails = [hermite_tail(rivals.teacher(10), degree) * 10 for degree in DEGREES]
    dims, counts = (_table(contests) for contests in (rivals.DIMENSIONS[size], rivals.SAMPLES[size]))
    about = xr.Dataset(attrs={"tails": tails, "step": rivals.STEP})
    return xr.DataTree.from_dict({"/": about, "dims": dims, "counts": counts})


def _table(contests: Sequence[Contest]) -> xr.Dataset:
    values = []
    for contest in contests:
        found = rivals.levels(contest) | {NETWORK: rivals.network_level(contest)}
        found[BOUND] = rivals.bound(contest.dim, contest.samples)
        values.append([found[name] for name in LABELS])
    about = {name: ("contest", [getattr(one, name) for one in contests]) for name in Contest._fields}
    return xr.Dataset({"loss": (("contest", "learner"), values), **about}, {"learner": list(LABELS)})


def sheet(tree: xr.DataTree) -> Sheet:
    dims, counts = tree["dims"].to_dataset(), tree["counts"].to_dataset()
    sizes = ", ".join(f"{int(n)}" for n in dims["samples"])
    dim = int(counts["dim"][0])
    marks = tuple(
        Mark(f"polynomials of degree {degree}", level=float(tail))
        for degree, tail in zip(DEGREES, np.atleast_1d(tree.attrs["tails"]), strict=True)
    )
    return Sheet(
        "The network, kernel methods and the lower bound, on the same samples",
        (
            _panel(dims, "dim", f"N = {sizes} samples", "dimension d", marks, named=True),
            _panel(counts, "samples", f"d = {dim}", "samples N", marks, xscale="log", note="colours as on the left"),
        ),
        caption=_caption(tree, dims, counts),
    )


def _panel(
    data: xr.Dataset, over: str, title: str, xlabel: str, marks: tuple[Mark, ...], named: bool = False, **style
) -> Panel:
    """`d L` of each method."""
    x, series = data[over].values, []
    for name in LABELS:
        y = (data["loss"].sel(learner=name) * data["dim"]).values
        label = LABELS[name] if named else ""
        series += _curve(x, y, label, name)
    return Panel(title, xlabel, r"$d\,E(f - f^*)^2$", tuple(series), marks=marks, yscale="log", **style)


def _curve(x: np.ndarray, y: np.ndarray, label: str, name: str) -> list[Series]:
    colour = COLOURS[name]
    drawn = [line(x, y, label, dash="dashed" if name in DASHED else "solid", colour=colour)]
    return drawn if name == BOUND else [*drawn, line(x, y, kind="points", colour=colour)]


def _caption(tree: xr.DataTree, dims: xr.Dataset, counts: xr.Dataset) -> str:
    rows = []
    for index in range(dims.sizes["contest"]):
        one = dims.isel(contest=index)
        scaled = one["loss"] * int(one["dim"])
        others = scaled.sel(learner=[name for name in LABELS if name not in (NETWORK, BOUND)])
        rows.append(
            f"d = {int(one['dim'])}: {float(scaled.sel(learner=NETWORK)):.2g}, {float(others.min()):.3g}, "
            f"{float(scaled.sel(learner=BOUND)):.3g}"
        )
    width, until = (", ".join(f"{value:g}" for value in dims[name].values) for name in ("width", "until"))
    flows = [str(dim) for dim, how in zip(dims["dim"].values, dims["dynamics"].values, strict=True) if how == "flow"]
    followed = f" (at d = {', '.join(flows)} the flow that it follows)" if flows else ""
    return (
        f"d L of the network, of the best kernel method and of the bound: {'; '.join(rows)}. Uniform teacher of |z| "
        f"units, full-batch descent with eta_inf = {tree.attrs['step']:g}{followed}, m = {width} units to the time "
        f"{until} "
        f"(right: m = {int(counts['width'][0])}, time {float(counts['until'][0]):g}). Ridges are the best for the "
        "population, and all losses are exact. With few samples the network stays at the level of the kernels."
    )


FIGURE = Figure("kernels", "Network, kernels, lower bound", compute, sheet, ours=True)
