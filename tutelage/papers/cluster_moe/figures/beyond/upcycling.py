"""What does a dense checkpoint save? Routers of experts copied from one network, against experts that explored."""

import numpy as np
import xarray as xr

from tutelage.analysis.panels import Mark, Panel, Series, Sheet, line
from tutelage.papers.cluster_moe.beyond.exploring import reached, scratch
from tutelage.papers.cluster_moe.beyond.upcycling import SHAKEN, continued, copied
from tutelage.papers.cluster_moe.figures.beyond.exploration import named
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.papers.paper import Figure, Size

ENOUGH = 0.6
"""A router is good when its mean aim is at least this."""


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """How well experts are aimed, and router sizes, by samples used."""
    made = {"scratch": scratch(size), "copied": copied(size), "continued": continued(size)}
    names = {
        f"{name}_{kind}": data[kind].rename(time=f"{name}_time")
        for name, data in made.items()
        for kind in ("aim", "size")
    }
    about = made["scratch"].attrs
    return xr.Dataset(names, attrs={name: about[name] for name in ("dim", "experts", "explore_width", "vanilla_width")})


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = (
        _against(dataset, 0),
        _against(dataset, int(dataset["batch"].max())),
        _shaken(dataset),
        _work(dataset),
    )
    return Sheet("Beyond the paper: upcycling a dense network", panels, columns=2, caption=_caption(dataset))


def curves(dataset: xr.Dataset, batch: int) -> dict[str, xr.DataArray]:
    """Aims (seed, time) by how the experts came about."""
    chosen = dataset.sel(batch=batch)
    kept = {
        "scratch": chosen["scratch_aim"],
        "copied": chosen["copied_aim"].sel(shake=SHAKEN).mean("deal"),
        "continued": chosen["continued_aim"],
    }
    return {name: values.rename({f"{name}_time": "time"}) for name, values in kept.items()}


_MARKS = (Mark("chance", level=0.0),)
LABELS = {"scratch": "from scratch", "copied": "copied, then Phase II", "continued": "copied, then explored on"}


def _against(dataset: xr.Dataset, batch: int) -> Panel:
    series: list[Series] = []
    for colour, (name, values) in enumerate(curves(dataset, batch).items()):
        shown = values.isel(time=slice(1, None)) if name != "continued" else values
        low, high = shown.min("seed").values, shown.max("seed").values
        series.append(line(shown["time"], shown.mean("seed"), LABELS[name], colour=colour, low=low, high=high))
    title = "router in expectation" if batch == 0 else f"router on {named(batch)}"
    return Panel(title, "samples used before Phase II", "aim of the experts", tuple(series), xscale="log",
                 marks=_MARKS, ylim=(-0.3, 1.5))  # fmt: skip


def _shaken(dataset: xr.Dataset) -> Panel:
    later = dataset["copied_aim"].sel(batch=0).isel(copied_time=slice(1, None)).mean(["seed", "deal"])
    series = [
        line(later["copied_time"], later.sel(shake=shake), f"perturbation {shake:g}", colour=c)
        for c, shake in enumerate(later["shake"].values)
    ]
    return Panel("how much copies are perturbed", "samples of the dense network", "aim of the experts",
                 tuple(series), xscale="log", marks=_MARKS, ylim=(-0.3, 1.5))  # fmt: skip


def _work(dataset: xr.Dataset) -> Panel:
    """The same as the first panel, by updates of single neurons."""
    about, series = dataset.attrs, []
    each = {"scratch": about["explore_width"], "copied": about["vanilla_width"]}
    for colour, (name, values) in enumerate(curves(dataset, 0).items()):
        if name in each:
            shown = values.isel(time=slice(1, None)).mean("seed")
            series.append(line(each[name] * shown["time"], shown, LABELS[name], colour=colour))
    return Panel("the same by work", "updates of a neuron before Phase II", "aim of the experts", tuple(series),
                 xscale="log", marks=_MARKS, ylim=(-0.3, 1.5))  # fmt: skip


def savings(dataset: xr.Dataset) -> tuple[float, float]:
    """Samples after which routers in expectation stay good: from scratch, and with copies."""
    found = curves(dataset, 0)
    return tuple(  # type: ignore[return-value]
        reached(found[name]["time"].values, found[name].mean("seed").values, ENOUGH) for name in ("scratch", "copied")
    )


def _caption(dataset: xr.Dataset) -> str:
    about, (slow, quick) = dataset.attrs, savings(dataset)
    ratio = "" if np.isnan(slow + quick) else f", {slow / quick:.1f} times fewer"
    return (
        f"d = {about['dim']}, {dataset.sizes['seed']} seeds (mean and range). A dense network of "
        f"{about['vanilla_width']} neurons learns for a while; {about['experts']} experts get "
        f"{about['explore_width']} of its neurons each, at random, perturbed by {SHAKEN:g} of their length if not said "
        f"otherwise, mean over {dataset.sizes['deal']} deals; then the router is trained, or the copies explore on. "
        "Aim: the probability that an expert sees the cluster that it knows more of than others do, minus that of the "
        f"other; 0 by chance. It is {ENOUGH:g} or more, and stays so, from {_many(slow)} samples on from scratch, and "
        f"from {_many(quick)} samples on with copies{ratio}: a dense network's neurons see every sample, those of "
        f"an expert one in {about['experts']}. The saving is in samples. In updates of a neuron, "
        f"{about['vanilla_width']} a sample against {about['explore_width']}, there is {_gain(about, slow, quick)}. "
        "Experts that are all the same copy have a router of zero: they cannot be told apart."
    )


def _many(samples: float) -> str:
    return "no recorded number of" if np.isnan(samples) else f"{samples:,.0f}".replace(",", " ")


def _gain(about: dict, slow: float, quick: float) -> str:
    if np.isnan(slow + quick):
        return "none that could be measured"
    ratio = slow * about["explore_width"] / (quick * about["vanilla_width"])
    return f"a saving of {ratio:.1f} times too" if ratio > 1 else f"none: {1 / ratio:.1f} times as many"


FIGURE = Figure("beyond_upcycling", "Upcycling a dense network", compute, sheet, ours=True)
