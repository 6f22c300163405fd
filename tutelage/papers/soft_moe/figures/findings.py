"""What the flow does besides the theorem: pairs that cancel, order by start, times against dim, plateaus."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.races import SEEDS, Race, large, swept
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

WHOLE = 0.01  # of a quantum
FIRST = 10  # seeds of a large run that a figure shows


def annihilation(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Overlaps of the pairs that cancel, for seed 0; predicted and observed times, for all seeds."""
    race = Race(settings, SEEDS[size], settings.horizon, 300)
    data = race.run.dataset
    first, second = np.nonzero(np.triu(np.isfinite(data["pair_time"].values[0]), 1))
    order = np.argsort(data["pair_time"].values[0][first, second])[:6]
    first, second = first[order], second[order]
    times = [_pair_times(race, seed) for seed in range(race.count)]
    return xr.Dataset(
        {
            "experts": (("pair", "time"), data["overlap_ss_expert"].values[0][:, first, second].T),
            "routers": (("pair", "time"), data["overlap_ss_router"].values[0][:, first, second].T),
            "name": ("pair", [f"{a + 1}, {b + 1}" for a, b in zip(first, second, strict=True)]),
            "predicted": ("event", np.concatenate([p for p, _ in times])),
            "observed": ("event", np.concatenate([o for _, o in times])),
            "loss": ("time", data["loss"].values[0]),
        },
        {"time": data["time"].values},
        {"dim": race.settings.dim, "init": race.settings.init, "seeds": race.count},
    )


def _pair_times(race: Race, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of the generalised matching's pairs of students, and when they really were opposite (nan if never)."""
    found = race.starts[seed].generalised.annihilations
    seen = race.run.pair_time.values[seed]
    return np.array([a.time for a in found]), np.array([seen[a.first, a.second] for a in found])


def pairs_sheet(dataset: xr.Dataset) -> Sheet:
    time, until = dataset["time"].values, 0.4 * math.sqrt(dataset.attrs["dim"])
    curves: list[Series] = []
    for number, name in enumerate(dataset["name"].values):
        curves.append(line(time, dataset["experts"].values[number], f"students {name}", colour=number))
        curves.append(line(time, dataset["routers"].values[number], dash="dashed", colour=number))
    predicted, observed = dataset["predicted"].values, dataset["observed"].values
    top = float(np.nanmax(np.where(np.isfinite(observed), observed, np.nan), initial=1.0))
    kept = np.isfinite(observed)
    return Sheet(
        "Students cancel each other in pairs",
        (
            Panel(
                "The first pairs", "time", "overlap of two students", tuple(curves), xlim=(0, max(2 * until, 4.0)),
                ylim=(-1.08, 1.25), note="solid: experts, dashed: routers",
            ),
            Panel(
                "Predicted against observed", "predicted time", "time at which the overlap is -0.9",
                (
                    line(predicted[kept], observed[kept], "pairs", kind="points"),
                    line([1, top], [1, top], "equal", dash="dotted", colour=GREY),
                ),
                xscale="log", yscale="log",
            ),
        ),
        caption=f"Left: overlaps of two students' experts (solid) and routers (dashed), seed 0, "
        f"{dataset.attrs['init']} start, d = {dataset.attrs['dim']}, exact flow: the experts run to -1, then the "
        "routers to +1, and such a pair adds nothing to the output. Some come apart again later. Right: when two "
        "students are predicted to be opposite, by the matching with edges between students, and when they were; "
        f"{int(kept.sum())} of {len(kept)} predicted pairs came, of {dataset.attrs['seeds']} seeds.",
    )  # fmt: skip


def order(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """The same seeds from iid and from orthonormal starts."""
    parts: dict[str, xr.Dataset] = {}
    for init in ("iid", "orthonormal"):
        race = large(settings, size, init)
        pairs = [
            [(p.time, race.times[s, p.teacher], race.winners[s, p.teacher] == p.student) for p in one.race.pairs]
            for s, one in enumerate(race.starts)
        ]
        best = race.run.overlap_expert.values[0].max(1)
        parts[init] = xr.Dataset(
            {
                "predicted": (("seed", "pair"), [[p for p, _, _ in row] for row in pairs]),
                "observed": (("seed", "pair"), [[o for _, o, _ in row] for row in pairs]),
                "right": (("seed", "pair"), [[int(r) for _, _, r in row] for row in pairs]),
                "best": (("time", "teacher"), best),
            },
            {"time": race.run.dataset["time"].values},
            {"dim": race.settings.dim, "seeds": race.count},
        )
    return xr.DataTree.from_dict(parts)


def order_sheet(tree: xr.DataTree) -> Sheet:
    panels = [_best(tree[init].to_dataset(), init) for init in ("iid", "orthonormal")]
    panels.append(_agreement(tree))
    words = []
    for init in ("iid", "orthonormal"):
        right = tree[init].to_dataset()["right"].values
        seeds, dim = (int(tree[init].to_dataset().attrs[name]) for name in ("seeds", "dim"))
        words.append(
            f"{init} (d = {dim:.0e}, {seeds} seeds): {int(right.sum())} of {right.size} teachers go to the student "
            "that is predicted without students that cancel"
        )
    return Sheet(
        "Who recovers whom: iid starts against orthonormal ones",
        tuple(panels),
        columns=3,
        caption="Exact flows. Left and middle: the best expert's overlap with each teacher, seed 0; vertical lines are "
        "the times of the greedy matching, by the leading law, which knows nothing of students that cancel. Right: "
        f"predicted against observed times of the teachers that were recovered, all seeds. {'; '.join(words)}.",
    )


def _best(one: xr.Dataset, init: str) -> Panel:
    time = one["time"].values
    series = [
        line(time, one["best"].values[:, j], f"teacher {j + 1}", colour=j % 6) for j in range(one.sizes["teacher"])
    ]
    times = one["predicted"].values[0]
    marks = tuple(Mark("" if n else "predicted", at=float(t)) for n, t in enumerate(times) if t <= time[-1])
    return Panel(
        f"{init} start, d = {one.attrs['dim']:.0e}",
        "time",
        "largest overlap with a teacher",
        tuple(series),
        marks=marks,
        ylim=(-0.02, 1.05),
        note="dashed: predicted times of the greedy matching (6)",
    )


def _agreement(tree: xr.DataTree) -> Panel:
    series = []
    for colour, init in enumerate(("iid", "orthonormal")):
        one = tree[init].to_dataset()
        x, y = one["predicted"].values.ravel(), one["observed"].values.ravel()
        seen = np.isfinite(y)
        series.append(line(x[seen], y[seen], f"{init}, {int(seen.sum())} of {seen.size}", kind="points", colour=colour))
    limits = [min(float(s.x.min()) for s in series if len(s.x)), max(float(s.y.max()) for s in series if len(s.y))]
    series.append(line(limits, limits, "equal", dash="dotted", colour=GREY))
    return Panel("Times of recovery", "predicted time", "observed time", tuple(series), xscale="log", yscale="log")


def dimension(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """The first recovery from the same seeds in all dims, from orthonormal starts."""
    sweep = swept(settings, size)
    exponent = sweep.exponent
    return xr.Dataset(
        {"times": (("dim", "seed"), sweep.times), "predicted": (("dim", "seed"), sweep.predicted)},
        {"dim": list(sweep.dims)},
        {"exponent": exponent.value, "low": exponent.interval.low, "high": exponent.interval.high},
    )


def dimension_sheet(dataset: xr.Dataset) -> Sheet:
    dims, times = dataset["dim"].values.astype(float), dataset["times"].values
    about = dataset.attrs
    seeds = times.shape[1]
    series = [
        line(dims, times[:, s], "first recovery" if s == 0 else "", kind="points", colour=0) for s in range(seeds)
    ]
    series += [
        line(dims, dataset["predicted"].values[:, s], "predicted" if s == 0 else "", dash="dotted", colour=1)
        for s in range(seeds)
    ]
    level = math.exp(float(np.mean(np.log(times) - about["exponent"] * np.log(dims)[:, None])))
    fitted = f"$d^{{{about['exponent']:.3f}}}$"
    series.append(
        line(dims, level * dims ** about["exponent"], f"mean, fitted as {fitted}", colour=GREY, dash="dashed")
    )
    ratio = [line(dims, times[:, s] / dims**0.5, f"seed {s}" if seeds <= 5 else "", colour=None if seeds <= 5 else 0)
             for s in range(seeds)]  # fmt: skip
    interval = f"{about['exponent']:.4f} [{about['low']:.4f}, {about['high']:.4f}]"
    return Sheet(
        r"The first recovery takes a time of order $\sqrt{d}$",
        (
            Panel(
                "Against dimension",
                "dimension d",
                "time of the first recovery",
                tuple(series),
                xscale="log",
                yscale="log",
            ),
            Panel(r"Over $\sqrt{d}$", "dimension d", r"time over $\sqrt{d}$", tuple(ratio), xscale="log"),
        ),
        caption=f"Orthonormal starts, {seeds} seeds, the same in all dims. Exponent {interval} at level 0.99, over "
        "seeds. In low dimension an overlap has less far to go, which bends the line.",
    )


def plateaus(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """The loss in units of the quantum."""
    race = large(settings, size, "iid")
    quantum = Constants.of(settings.gate, settings.degree).quantum
    level = race.run.loss.values[:FIRST] / quantum
    return xr.Dataset(
        {"level": (("seed", "time"), level)},
        {"time": race.run.dataset["time"].values},
        {"quantum": quantum, "dim": race.settings.dim},
    )


def plateau_sheet(dataset: xr.Dataset) -> Sheet:
    time, level = dataset["time"].values, dataset["level"].values
    series = tuple(line(time, one, f"seed {s}", colour=None) for s, one in enumerate(level[:6]))
    last = ", ".join(f"{x:.3f}" for x in level[:, -1])
    whole = int(np.sum(np.abs(level[:, -1] - np.round(level[:, -1])) < WHOLE))
    top = min(10.0, float(np.ceil(level[:, len(time) // 4 :].max() + 1)))
    marks = tuple(Mark("", level=float(k)) for k in range(int(top) + 1))
    name = "loss / quantum"
    return Sheet(
        "The loss rests on whole quanta, and between them where a teacher is shared",
        (
            Panel("All of the run", "time", name, series),
            Panel("The last steps", "time", name, series, marks=marks, ylim=(-0.3, top)),
        ),
        caption=f"Exact flows from iid starts, d = {dataset.attrs['dim']:.0e}, {min(len(level), 6)} of {len(level)} "
        "seeds drawn; horizontal lines are whole numbers. Each unit without a partner costs one quantum 3 E[pi^2] = "
        f"{dataset.attrs['quantum']:.7f}, a teacher or a student; two students that cancel cost nothing, and two that "
        f"share a teacher about half of one. At the end {whole} of {len(level)} seeds are within {WHOLE:g} of a whole "
        f"number: {last}.",
    )


FIGURES = (
    Figure("annihilation", "Students cancel each other", annihilation, pairs_sheet, ours=True),
    Figure("order", "iid against orthonormal starts", order, order_sheet, ours=True),
    Figure("dimension", "Time of recovery against dimension", dimension, dimension_sheet, ours=True),
    Figure("plateaus", "Quanta of the loss", plateaus, plateau_sheet, ours=True),
)
