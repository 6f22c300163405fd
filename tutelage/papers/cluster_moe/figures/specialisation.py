"""Figure 1: what experts have learned after exploration (a), and what the router has made of it (b)."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import Field, Mark, Panel, Sheet, line
from tutelage.papers.cluster_moe.learned import cosines, exceeding
from tutelage.papers.cluster_moe.result import SHARP
from tutelage.papers.cluster_moe.runs import of_laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure

TASKS = {"w1": "$w_1^*$", "w2": "$w_2^*$", "wg": "$w_g^*$"}


def read_off(data: xr.Dataset, settings: ClusterMoeSettings) -> xr.Dataset:
    """Counts of Figure 1(a), cosines and probabilities of Figure 1(b)."""
    found = {
        "count": exceeding(data, settings.exponent).rename(row="task"),
        "cosine": cosines(data, settings.problem()),
        "routed": data["routed"].transpose("seed", "expert", "cluster"),
        "served": data["served"],
        "sharp": data["sharp"],
    }
    about = {name: getattr(settings, name) for name in ("dim", "radius", "experts", "explore_width")}
    about |= {"samples": settings.explore_samples, "router_samples": settings.router_samples}
    signed = {"absolute": int(settings.exponent % 2 == 0)}
    return xr.Dataset(found).assign_attrs(about | signed)


def explored(dataset: xr.Dataset) -> Sheet:
    """Figure 1(a)."""
    about, seeds = dataset.attrs, dataset.sizes["seed"]
    share = 100 * dataset["count"].mean(("seed", "expert")) / about["explore_width"]
    told = ", ".join(
        f"{float(value):.0f} % for {name.item()}" for name, value in zip(share["task"], share, strict=True)
    )
    caption = (
        f"After Phase I: d = {about['dim']}, rho = {about['radius']:g}, {about['experts']} experts of "
        f"{about['explore_width']} neurons, {about['samples']:,} samples, each for one expert drawn at random. Left: "
        "how many neurons of an expert have a larger overlap with a task than the expert's largest with a local task "
        f"at the start{' (absolute values)' if about['absolute'] else ''}, for one seed. Right: the same as part of "
        f"all neurons over {seeds} seeds, by the cluster that the router sends the expert most. Of all "
        f"neurons these are {told}."
    )
    return Sheet("Figure 1(a): experts after exploration", (counts(dataset), _shares(dataset)), caption=caption)


def counts(dataset: xr.Dataset, seed: int = 0) -> Panel:
    """Tasks by experts."""
    count = dataset["count"].isel(seed=seed)
    ends = (0.0, float(dataset.attrs["explore_width"]))
    table = cells(count.values, "neurons", task_names(dataset), _experts(dataset), ends=ends, written=".0f")
    return Panel(f"Neurons that know a task, seed {seed}", "expert $m$", "task", fields=(table,))


def _shares(dataset: xr.Dataset) -> Panel:
    count, served = dataset["count"], dataset["served"]
    clusters = dataset["cosine"].sizes["cluster"]
    part, names = [], []
    for c in range(1, clusters + 1):
        chosen = served == c
        number = int(chosen.sum())
        neurons = max(number, 1) * dataset.attrs["explore_width"]
        part.append(100 * count.where(chosen, 0).sum(("seed", "expert")).values / neurons)
        names.append(f"cluster {c} ({number} experts)")
    table = cells(np.stack(part, axis=1), "% of the neurons", task_names(dataset), tuple(names), (0.0, 100.0), ".0f")
    title = f"The same in {dataset.sizes['seed']} seeds"
    return Panel(title, "cluster that the expert sees most in Phase III", "task", fields=(table,))


def routing(dataset: xr.Dataset) -> Sheet:
    """Figure 1(b)."""
    about, seeds = dataset.attrs, dataset.sizes["seed"]
    sharp = dataset["sharp"].sum("expert").values.tolist()
    caption = (
        f"After Phase II, one step on {about['router_samples']:,} samples: d = {about['dim']}, rho = "
        f"{about['radius']:g}. Left: the cosine of the router's row and a cluster's mean; a star is on the cluster "
        "with the largest theta_m.v_c, the paper's highlighted cell. Middle: the probability that an expert's score is "
        f"positive on a sample of a cluster, for one seed. Right: the same for all experts of {seeds} seeds; "
        f"{', '.join(map(str, sharp))} of {about['experts']} experts are routed sharply (0.9 and more of one cluster, "
        "at most 0.1 of the others)."
    )
    panels = (alignment(dataset), probabilities(dataset), _every(dataset))
    return Sheet("Figure 1(b): the router after one step", panels, columns=3, caption=caption)


def alignment(dataset: xr.Dataset, seed: int = 0) -> Panel:
    """Experts by clusters: cosines, and a star on the largest of each expert."""
    cosine = dataset["cosine"].isel(seed=seed).values
    table = cells(cosine, r"$\cos(\theta_m, v_c)$", _experts(dataset), _means(dataset), written=".2f")
    expert = np.arange(len(cosine), dtype=float)[::-1]
    star = line(cosine.argmax(1) + 0.32, expert, kind="points", marker="*", colour=4)
    return Panel(f"Router and means, seed {seed}", "cluster", "expert $m$", (star,), fields=(table,))


def probabilities(dataset: xr.Dataset, seed: int = 0) -> Panel:
    """Experts by clusters: the map of routing probabilities."""
    seen = dataset["routed"].isel(seed=seed).values
    label = r"$P(h_m(x) \geq 0 \mid c)$"
    table = cells(seen, label, _experts(dataset), _means(dataset), (0.0, 1.0), ".2f")
    return Panel(f"Routing probabilities, seed {seed}", "cluster", "expert $m$", fields=(table,))


def _every(dataset: xr.Dataset) -> Panel:
    seen = dataset["routed"].isel(cluster=0).values
    sharp, series = dataset["sharp"].values.astype(bool), []
    seeds = np.repeat(np.arange(len(seen), dtype=float)[:, None], seen.shape[1], axis=1)
    beside = seeds + np.linspace(-0.25, 0.25, seen.shape[1])
    for colour, (name, some) in enumerate((("routed sharply", sharp), ("not sharply", ~sharp))):
        if some.any():
            style: dict[str, Any] = {"kind": "points", "colour": colour, "marker": "os"[colour]}
            series.append(line(beside[some], seen[some], name, **style))
    return Panel(
        "All seeds, every point an expert",
        "seed",
        r"$P(h_m(x) \geq 0 \mid c = 1)$",
        tuple(series),
        marks=(Mark("0.9", level=SHARP), Mark("0.1", level=1 - SHARP)),
        xlim=(-0.6, len(seen) - 0.4),
        ylim=(-0.03, 1.03),
        names=tuple(str(seed) for seed in dataset["seed"].values),
    )


def cells(
    table: np.ndarray,
    label: str,
    rows: tuple[Any, ...],
    columns: tuple[Any, ...],
    ends: tuple[float, float] | None = None,
    written: str = "",
) -> Field:
    """A table whose first row is on top."""
    down, across = (np.arange(size, dtype=float) for size in table.shape)
    return Field(across, down, np.asarray(table, float)[::-1], label, cells=True, columns=columns, rows=rows[::-1],
                 ends=ends, written=written)  # fmt: skip


def task_names(dataset: xr.Dataset) -> tuple[str, ...]:
    """As a table shows them."""
    return tuple(TASKS.get(str(name), str(name)) for name in dataset["task"].values)


def _experts(dataset: xr.Dataset) -> tuple[str, ...]:
    return tuple(str(m + 1) for m in range(dataset.sizes["expert"]))


def _means(dataset: xr.Dataset) -> tuple[str, ...]:
    return tuple(f"{c + 1}" for c in range(dataset["cosine"].sizes["cluster"]))


FIGURES = (
    Figure("fig1a", "Figure 1(a): experts after exploration", of_laboratory(read_off), explored),
    Figure("fig1b", "Figure 1(b): the router after one step", of_laboratory(read_off), routing),
)
