"""Figure 2: what the neurons of two experts have learned after Phase III."""

import numpy as np
import xarray as xr

from tutelage.analysis import Panel, Sheet
from tutelage.papers.cluster_moe.figures.specialisation import cells, task_names
from tutelage.papers.cluster_moe.learned import RECOVERED, sharpest, tasks
from tutelage.papers.cluster_moe.runs import of_laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure


def read_off(data: xr.Dataset, settings: ClusterMoeSettings, seed: int = 0) -> xr.Dataset:
    """Final overlaps (cluster, task, neuron) of the expert that is routed most sharply to each cluster."""
    expert = sharpest(data)[seed]
    last = data["overlap"].isel(seed=seed, expert_time=-1).sel(row=tasks(data))
    about = {name: getattr(settings, name) for name in ("dim", "radius", "samples", "late_samples", "width")}
    return xr.Dataset(
        {
            "overlap": (("cluster", "task", "unit"), last.transpose("expert", "row", "unit").values[expert]),
            "shown": ("cluster", expert + 1),
            "recovering": (("task", "expert"), _recovering(data, seed)),
            "shown_routed": ("cluster", data["routed"].isel(seed=seed).values[np.arange(len(expert)), expert]),
        },
        {"task": tasks(data), "cluster": data["cluster"].values},
        about | {"seed": int(data["seed"].values[seed])},
    )


def _recovering(data: xr.Dataset, seed: int) -> np.ndarray:
    """How many neurons of each expert recover each task."""
    last = abs(data["overlap"].isel(seed=seed, expert_time=-1).sel(row=tasks(data)))
    return (last > RECOVERED).sum("unit").transpose("row", "expert").values


def sheet(dataset: xr.Dataset) -> Sheet:
    about = dataset.attrs
    words = " ".join(in_words(dataset, c) for c in range(dataset.sizes["cluster"]))
    caption = (
        f"Laboratory B after Phase III, by SGD from random starts: d = {about['dim']}, rho = {about['radius']:g}, "
        f"{about['width']} neurons, {about['samples']:,} samples and {about['late_samples']:,} with a "
        f"smaller step, seed {about['seed']}. For each cluster the expert that is routed most sharply to it. {words}"
    )
    panels = [panel(dataset, c, absolute) for absolute in (False, True) for c in range(dataset.sizes["cluster"])]
    return Sheet("Figure 2: what experts recover", tuple(panels), columns=2, caption=caption)


def in_words(dataset: xr.Dataset, c: int) -> str:
    """The expert of a cluster in words."""
    best = abs(dataset["overlap"].isel(cluster=c)).max("unit").values
    found = ", ".join(f"{value:.2f} with {name}" for name, value in zip(dataset["task"].values, best, strict=True))
    return (
        f"Expert {int(dataset['shown'][c])} gets a sample of cluster {c + 1} with probability "
        f"{float(dataset['shown_routed'][c]):.3f}; its largest |overlaps| are {found}."
    )


def panel(dataset: xr.Dataset, c: int, absolute: bool) -> Panel:
    """Tasks by neurons, of the expert of a cluster."""
    overlap = dataset["overlap"].isel(cluster=c).values
    neurons = tuple(str(j + 1) for j in range(overlap.shape[1]))
    shown = np.abs(overlap) if absolute else overlap
    label = r"$|w_{mj} \cdot w_i^*|$" if absolute else r"$w_{mj} \cdot w_i^*$"
    table = cells(shown, label, task_names(dataset), neurons, ends=(0.0, 1.0) if absolute else None)
    title = f"Expert {int(dataset['shown'][c])}, of cluster {c + 1}{': absolute values' if absolute else ''}"
    return Panel(title, "neuron $j$", "task", fields=(table,))


def recovering(dataset: xr.Dataset) -> Panel:
    """Tasks by experts: how many neurons recover a task."""
    count = dataset["recovering"].values
    experts = tuple(str(m + 1) for m in range(count.shape[1]))
    table = cells(count, "neurons", task_names(dataset), experts, ends=(0.0, float(max(count.max(), 1))), written=".0f")
    return Panel("Neurons that recover a task", "expert $m$", "task", fields=(table,))


FIGURE = Figure("fig2", "Figure 2: what experts recover", of_laboratory(read_off), sheet)
