"""Overlaps through all phases, of experts and of the vanilla network, on one axis of samples."""

import xarray as xr

from tutelage.analysis import BAND, Mark, Panel, Series, Sheet, band
from tutelage.papers.cluster_moe.learned import grown, tasks
from tutelage.papers.cluster_moe.runs import of_laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure

KINDS = {"own": "own local task", "shared": "global task", "other": "other local task"}


def read_off(data: xr.Dataset, settings: ClusterMoeSettings) -> xr.Dataset:
    """The largest |overlap| of each expert's neurons by kind of task, and of the vanilla neurons by task."""
    one, two = grown(data, "explore_"), grown(data)
    best = abs(data["vanilla_overlap"].sel(row=tasks(data))).max("vanilla_unit")
    found = {f"explore_{name}": one[name] for name in KINDS} | {f"expert_{name}": two[name] for name in KINDS}
    found |= {"vanilla": best, "sharp": data["sharp"]}
    about = {name: getattr(settings, name) for name in ("dim", "radius", "width", "explore_width", "vanilla_width")}
    about |= {"begin": settings.explore_samples, "drop": settings.explore_samples + settings.samples}
    return xr.Dataset(found).assign_attrs(about | {"end": about["drop"] + settings.late_samples})


def sheet(dataset: xr.Dataset) -> Sheet:
    about, sharp = dataset.attrs, int(dataset["sharp"].sum())
    last = dataset["vanilla"].isel(vanilla_time=-1).sel(row="wg").values
    own, other = (float(dataset[f"explore_{kind}"].isel(explore_time=-1).median()) for kind in ("own", "other"))
    caption = (
        f"Laboratory B by SGD from random starts: d = {about['dim']}, rho = {about['radius']:g}, "
        f"{dataset.sizes['seed']} seeds, {about['end']:,} samples for each network. Left: the largest |overlap| of an "
        f"expert's neurons ({about['explore_width']} in Phase I, {about['width']} drawn anew in Phase III) with the "
        "task of the cluster that it sees most after Phase II, with the global task and with the other local one; "
        f"median (band: {BAND}) of the {sharp} experts that are routed sharply. Right: the largest |overlap| of the "
        f"{about['vanilla_width']} neurons of a network without a router on the same samples, median and band over "
        "seeds. Vertical dashed lines are where Phase III begins, before which the router is learned, and where its "
        "step falls. After Phase I an expert has neurons on both local tasks (medians of the best over all experts "
        f"{own:.2f} and {other:.2f}): the router goes by which of them is known to more neurons. The vanilla network "
        f"ends with at most {last.max():.2f} on the global task; on the way its largest overlap is "
        f"{float(dataset['vanilla'].sel(row='wg').max()):.2f}."
    )
    return Sheet("Training through the phases", (_experts(dataset), _vanilla(dataset)), caption=caption)


def _marks(dataset: xr.Dataset) -> tuple[Mark, ...]:
    return (Mark("Phase III", at=dataset.attrs["begin"] / 1e6), Mark("smaller step", at=dataset.attrs["drop"] / 1e6))


def _experts(dataset: xr.Dataset) -> Panel:
    sharp, series = dataset["sharp"].values.astype(bool), []
    for colour, (kind, name) in enumerate(KINDS.items()):
        for phase, before in (("explore", 0.0), ("expert", dataset.attrs["begin"])):
            seen = dataset[f"{phase}_{kind}"].transpose("seed", "expert", f"{phase}_time").values[sharp]
            times = before + dataset[f"{phase}_time"].values
            series.append(band(times / 1e6, seen, name if phase == "explore" else "", colour=colour))
    return _panel("Mixture: experts that are routed sharply", series, dataset)


def _vanilla(dataset: xr.Dataset) -> Panel:
    times, series = dataset["vanilla_time"].values, []
    for name, label, colour in (("w1", "local task 1", 0), ("w2", "local task 2", 5), ("wg", "global task", 1)):
        seen = dataset["vanilla"].sel(row=name).transpose("seed", "vanilla_time").values
        series.append(band(times / 1e6, seen, label, colour=colour))
    return _panel("Network without a router", series, dataset)


def _panel(title: str, series: list[Series], dataset: xr.Dataset) -> Panel:
    return Panel(
        title,
        "samples (millions)",
        "largest |overlap|",
        tuple(series),
        marks=_marks(dataset),
        xlim=(0.0, dataset.attrs["end"] / 1e6),
        ylim=(0.0, 1.12),
    )


FIGURE = Figure("training", "Overlaps through the phases", of_laboratory(read_off), sheet, ours=True)
