"""Figure 1: what experts have learned after exploration (a), and what the router has made of it (b)."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import Field, Mark, Panel, Sheet, line
from tutelage.papers.cluster_moe.learned import cosines, exceeding
from tutelage.papers.cluster_moe.presets import units_of
from tutelage.papers.cluster_moe.result import SHARP
from tutelage.papers.cluster_moe.runs import configured, laboratory, of_laboratory
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

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


RUNS = {"paper_fig1": "as stated", "paper_fig1_mended": "mended"}


def compute_explored(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Counts of Figure 1(a) for the paper's experiment as stated, and mended."""
    about: dict[str, Any] = {}
    parts = []
    for name, label in RUNS.items():
        chosen = configured(name, size)
        found = read_off(laboratory(name, size), chosen)
        parts.append(found[["count"]].assign_coords(run=label))
        about |= {f"{label} units": units_of(chosen), f"{label} step": chosen.explore_step} | found.attrs
    return xr.concat(parts, "run").assign_attrs(about)


def explored(dataset: xr.Dataset) -> Sheet:
    """Figure 1(a)."""
    about = dataset.attrs
    told = "; ".join(
        f"{name}: {about[f'{name} units']}, effective step {about[f'{name} step']:.2g}"
        for name in map(str, dataset["run"].values)
    )
    caption = (
        f"After Phase I of the paper's experiment by SGD: d = {about['dim']}, {about['experts']} experts of "
        f"{about['explore_width']} neurons with random starts, {about['samples']:,} samples, each for one expert drawn "
        f"at random, one seed. {told[0].upper()}{told[1:]}. Entries: how many neurons of an expert have a larger "
        "overlap with a task (signed, as k = 3 is odd) than the expert's largest with a local task at the start. "
        "The paper's figure shows experts that each prefer one local task, and a row of w_g near zero."
    )
    panels = tuple(counts(dataset.sel(run=name), title=f"Neurons that know a task: {name}") for name in RUNS.values())
    return Sheet("Figure 1(a): experts after exploration", panels, columns=1, caption=caption)


def counts(dataset: xr.Dataset, seed: int = 0, title: str = "") -> Panel:
    """Tasks by experts."""
    count = dataset["count"].isel(seed=seed).transpose("task", "expert")
    ends = (0.0, float(dataset.attrs["explore_width"]))
    table = cells(count.values, "neurons", task_names(dataset), _experts(dataset), ends=ends, written=".0f")
    return Panel(title or f"Neurons that know a task, seed {seed}", "expert $m$", "task", fields=(table,))


def routing(dataset: xr.Dataset) -> Sheet:
    """Figure 1(b)."""
    about, seeds = dataset.attrs, dataset.sizes["seed"]
    sharp = dataset["sharp"].sum("expert").values.tolist()
    caption = (
        f"Laboratory B after Phase II, one step from zero on {about['router_samples']:,} samples with averaged ties: "
        f"d = {about['dim']}, rho = {about['radius']:g}, {about['explore_width']} neurons per expert. Left: the "
        "cosine of the router's row and a cluster's mean; a star is on the cluster "
        "with the largest theta_m.v_c, the paper's highlighted cell. Middle: the probability that an expert's score is "
        f"positive on a sample of a cluster, for one seed. Right: the same for all experts of {seeds} seeds; "
        f"{', '.join(map(str, sharp))} of {about['experts']} experts are routed sharply (0.9 and more of one cluster, "
        "at most 0.1 of the others: the dashed lines)."
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
    Figure("fig1a", "Figure 1(a): experts after exploration", compute_explored, explored),
    Figure("fig1b", "Figure 1(b): the router after one step", of_laboratory(read_off), routing),
)
