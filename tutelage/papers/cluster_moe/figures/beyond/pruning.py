"""How many experts are needed? Experts go one by one after Phase III, and the second layer is fitted again."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Field, Mark, Panel, Series, Sheet, band, line
from tutelage.papers.cluster_moe.beyond.pruning import NEAR, enough, pruned
from tutelage.study import Figure

ORDERS = {"redundancy": "most alike first", "fit": "least cost to the fit first", "random": "at random, all sets"}
KEPT = "experts kept"


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = (_likeness(dataset), _ratios(dataset), _errors(dataset))
    return Sheet("Beyond the paper: pruning experts", panels, columns=3, caption=_caption(dataset))


def least(dataset: xr.Dataset) -> dict[str, list[int]]:
    """The least number of experts that is near the whole mixture, by order, for each seed."""
    return {name: [enough(row) for row in dataset[name].values] for name in (*ORDERS, "best")}


def _likeness(dataset: xr.Dataset) -> Panel:
    one = dataset.isel(seed=0)
    order = np.argsort(one["served"].values, kind="stable")
    names = tuple(f"{m + 1}" for m in order)
    values = one["likeness"].values[np.ix_(order, order)]
    place = np.arange(len(order), dtype=float)
    field = Field(place, place, values, "likeness", cells=True, columns=names, rows=names, ends=(0.0, 1.0))
    return Panel(
        "how alike two experts are", "expert", "expert", fields=(field,), note="one seed, by cluster seen most"
    )


def _curve(dataset: xr.Dataset, name: str, label: str, colour: int) -> Series:
    return band(dataset["kept"], dataset[name], label, colour=colour)


def _ratios(dataset: xr.Dataset) -> Panel:
    whole = dataset["random"].isel(kept=-1, drop=True)
    ratios = dataset[[*ORDERS, "best"]] / whole
    series = [_curve(ratios, name, label, colour) for colour, (name, label) in enumerate(ORDERS.items())]
    best = line(dataset["kept"], ratios["best"].median("seed"), "best set", colour=GREY, dash="dashed")
    return Panel("error over that of all experts", KEPT, "ratio", (*series, best),
                 marks=(Mark(f"{100 * (NEAR - 1):.0f} % more", level=NEAR),), ylim=(0.9, 3.4))  # fmt: skip


def _errors(dataset: xr.Dataset) -> Panel:
    kept, mean = dataset["kept"], dataset.mean("seed")
    series = (
        line(kept, mean["random"], "all sets, from best to worst", colour=2, low=mean["best"].values,
             high=mean["worst"].values),
        line(kept, mean["redundancy"], ORDERS["redundancy"], colour=0),
    )  # fmt: skip
    marks = (Mark("vanilla network", level=float(mean["vanilla"])),)
    return Panel("error", KEPT, "mean absolute error", series, marks=marks, ylim=(0.0, 1.25))


def _caption(dataset: xr.Dataset) -> str:
    about, counts = dataset.attrs, least(dataset)
    half = about["experts"] // 2
    at = {name: float((dataset[name].sel(kept=half) / dataset[name].isel(kept=-1)).mean()) for name in counts}
    told = ", ".join(f"{_listed(counts[name])} ({label})" for name, label in (ORDERS | {"best": "best set"}).items())
    return (
        f"d = {about['dim']}, {about['experts']} experts of {about['width']} neurons, {dataset.sizes['seed']} seeds "
        f"(median, {BAND}; right: means). The ridge is fitted again for each of the {2 ** about['experts'] - 1} sets "
        "of experts. Likeness: the cosine of how probably two experts see each cluster, times that of their largest "
        f"overlaps with each task. Experts that keep the error within {100 * (NEAR - 1):.0f} % of that of all, by "
        f"seed: {told}. With {half} experts the error is {at['redundancy']:.2f} times that of all if the most alike go "
        f"first, {at['fit']:.2f} if those go first that cost the fit least, {at['random']:.2f} at random and "
        f"{at['best']:.2f} with the best set. Experts of one cluster know the same tasks, but their neurons' biases "
        "differ, and the second layer uses them all; and likeness spares the odd ones out, which may be odd because "
        "they learned little."
    )


def _listed(values: list[int]) -> str:
    return " and ".join(map(str, values)) if len(values) == 2 else ", ".join(map(str, values))


FIGURE = Figure("beyond_pruning", "Pruning redundant experts", lambda settings, size: pruned(size), sheet, ours=True)
