"""Network, kernels and the lower bound, on the same samples: against the dimension and against their number."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, hermite_tail, line
from tutelage.papers.beyond_ntk import rivals, theorem
from tutelage.papers.beyond_ntk.rivals import Contest
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

NETWORK, BOUND = "network", "bound for any features"
LABELS = {
    NETWORK: "network, Algorithm 1",
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
NOTE = "colours as on the left"
# The two units of a kernel share a colour; those of ReLU are squares on dashes, so that lines that meet are told apart.
COLOURS = dict(zip(LABELS, (0, 1, 1, 2, 2, 3, 4, 5, GREY), strict=True))
SQUARES = ("ntk-relu", "arc-relu")
DASHED = (*SQUARES, BOUND)


def compute(settings: BeyondNtkSettings, size: Size) -> xr.DataTree:
    """The paper's loss of every method at each dimension, and at each number of samples."""
    tails = [hermite_tail(rivals.teacher(10), degree) * 10 for degree in DEGREES]
    dims, counts = (_table(contests, size) for contests in (rivals.DIMENSIONS[size], rivals.SAMPLES[size]))
    about = xr.Dataset(attrs={"tails": tails, "seeds": theorem.PLANS[size].seeds})
    return xr.DataTree.from_dict({"/": about, "dims": dims, "counts": counts})


def _table(contests: Sequence[Contest], size: Size) -> xr.Dataset:
    values = []
    for contest in contests:
        ours = float(np.mean(rivals.network_levels(contest, theorem.PLANS[size].seeds)))
        found = rivals.levels(contest) | {NETWORK: ours, BOUND: rivals.bound(*contest)}
        values.append([found[name] for name in LABELS])
    about = {name: ("contest", [getattr(one, name) for one in contests]) for name in Contest._fields}
    return xr.Dataset({"loss": (("contest", "learner"), values), **about}, {"learner": list(LABELS)})


def sheet(tree: xr.DataTree) -> Sheet:
    dims, counts = tree["dims"].to_dataset(), tree["counts"].to_dataset()
    dim = int(counts["dim"][0])
    marks = tuple(
        Mark(f"polynomials of degree {degree}", level=float(tail))
        for degree, tail in zip(DEGREES, np.atleast_1d(tree.attrs["tails"]), strict=True)
    )
    weights = Mark("m d weights", at=float(dim * theorem.algorithm(dim, 0).width))
    return Sheet(
        "The network, kernel methods and the lower bound, on the same samples",
        (
            _panel(dims, "dim", "$N = d^3$ samples", "dimension d", marks, named=True),
            _panel(
                counts, "samples", f"d = {dim}", "samples N", (*marks, weights), xscale="log", note="colours as left"
            ),
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
    marker = "s" if name in SQUARES else "o"
    return drawn if name == BOUND else [*drawn, line(x, y, kind="points", colour=colour, marker=marker)]


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
    return (
        "The network is that of Theorem 1.1 (figure theorem): ReLU units, Algorithm 1, one recipe for all d, mean over "
        f"{tree.attrs['seeds']} seeds; right: the same with other numbers of samples. "
        "Teacher with |z| units and equal weights; kernel methods have the samples of the first seed. Ridges "
        "are the best for the population, and all losses are exact. d L of the network, of the best kernel method and "
        f"of the bound: {'; '.join(rows)}. With no more samples than weights the network stays at the level of the "
        "kernels."
    )


FIGURE = Figure("kernels", "Network, kernels, lower bound", compute, sheet, ours=True)
