"""What does a dense checkpoint save? Routers of experts copied from one network, against experts that explored."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, Mark, Panel, Series, Sheet, band, line
from tutelage.papers.cluster_moe.beyond.exploring import scratch
from tutelage.papers.cluster_moe.beyond.upcycling import SHAKEN, continued, copied
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

LABELS = {"scratch": "from scratch", "copied": "copied, then Phase II", "continued": "copied, then explored on"}
_CHANCE = (Mark("chance", level=0.0),)
_HEIGHT = (-0.3, 1.5)


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """How well experts are aimed by a router in expectation, and router sizes, by samples used before Phase II."""
    whole = scratch(size)
    made = {"scratch": whole.sel(batch=0, drop=True), "copied": copied(size), "continued": continued(size)}
    named = {
        f"{name}_{kind}": data[kind].rename(time=f"{name}_time")
        for name, data in made.items()
        for kind in ("aim", "size")
    }
    about = {name: whole.attrs[name] for name in ("dim", "experts", "explore_width", "vanilla_width")}
    return xr.Dataset(named, attrs=about)


def sheet(dataset: xr.Dataset) -> Sheet:
    panels = (_samples(dataset), _shaken(dataset), _work(dataset))
    return Sheet("Beyond the paper: upcycling a dense network", panels, columns=3, caption=_caption(dataset))


def curves(dataset: xr.Dataset, shake: float = SHAKEN) -> dict[str, xr.DataArray]:
    """Aims (seed, time) by how the experts came about, without time 0."""
    kept = {
        "scratch": dataset["scratch_aim"].isel(scratch_time=slice(1, None)),
        "copied": dataset["copied_aim"].sel(shake=shake).mean("deal").isel(copied_time=slice(1, None)),
        "continued": dataset["continued_aim"],
    }
    return {name: values.rename({f"{name}_time": "time"}) for name, values in kept.items()}


def saving(dataset: xr.Dataset, shake: float = SHAKEN) -> float:
    """How many times fewer samples copies need than experts from scratch, for the same aim.

    Aims are fitted by lines in the logarithm of time with one slope for both: the shift between these.
    """
    found = curves(dataset, shake)
    aims = [found[name].mean("seed") for name in ("scratch", "copied")]
    late = np.concatenate([np.full(aim.size, float(place)) for place, aim in enumerate(aims)])
    log = np.concatenate([np.log(aim["time"].values) for aim in aims])
    columns = np.stack([log, late, np.ones_like(log)], axis=1)
    slope, shift, _ = np.linalg.lstsq(columns, np.concatenate([aim.values for aim in aims]), rcond=None)[0]
    return float(np.exp(shift / slope))


def _samples(dataset: xr.Dataset) -> Panel:
    series: list[Series] = []
    for colour, (name, values) in enumerate(curves(dataset).items()):
        series.append(band(values["time"], values, LABELS[name], colour=colour))
    return Panel("by samples", "samples used before Phase II", "aim of the experts", tuple(series), marks=_CHANCE,
                 xscale="log", ylim=_HEIGHT)  # fmt: skip


def _shaken(dataset: xr.Dataset) -> Panel:
    series = []
    for colour, shake in enumerate(dataset["shake"].values):
        values = curves(dataset, shake)["copied"].median("seed")
        series.append(line(values["time"], values, f"perturbation {shake:g}", colour=colour + 3))
    return Panel("how much copies are perturbed", "samples of the dense network", "aim of the experts", tuple(series),
                 marks=_CHANCE, xscale="log", ylim=_HEIGHT)  # fmt: skip


def _work(dataset: xr.Dataset) -> Panel:
    """The first panel by updates of single neurons."""
    found = curves(dataset)
    each = {"scratch": dataset.attrs["explore_width"], "copied": dataset.attrs["vanilla_width"]}
    series = tuple(
        line(count * found[name]["time"], found[name].median("seed"), LABELS[name], colour=colour)
        for colour, (name, count) in enumerate(each.items())
    )
    return Panel("by work", "updates of a neuron before Phase II", "aim of the experts", series, marks=_CHANCE,
                 xscale="log", ylim=_HEIGHT)  # fmt: skip


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    factors = ", ".join(f"{saving(dataset, shake):.1f} (perturbation {shake:g})" for shake in dataset["shake"].values)
    work = about["vanilla_width"] / about["explore_width"]
    return (
        f"d = {about['dim']}, {dataset.sizes['seed']} seeds (median, {BAND}). A dense network of "
        f"{about['vanilla_width']} neurons learns for a while; {about['experts']} experts get "
        f"{about['explore_width']} of its neurons each, at random, perturbed by {SHAKEN:g} of their length if not said "
        f"otherwise, mean over {dataset.sizes['deal']} deals; then the router is trained in expectation, or the copies "
        "explore on. Aim: the probability that an expert sees the cluster that it knows more of than others do, less "
        "that of the other; 0 by chance. For the same aim (lines in log time, one slope) copies need fewer samples by "
        f"the factors {factors}. A dense network's neurons see every sample, those of an expert one in "
        f"{about['experts']}. The saving is in samples: a sample costs the dense network {work:.0f} times the updates. "
        "Experts that are all the same copy have a router of zero: they cannot be told apart."
    )


FIGURE = Figure("beyond_upcycling", "Upcycling a dense network", compute, sheet, ours=True)
