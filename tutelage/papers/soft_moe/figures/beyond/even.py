"""Experts of even degree: students push each other apart, none cancel, and a teacher is learned with either sign."""

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, Mark, Panel, Series, Sheet, band, binomial_interval, line, prune_run
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.figures.beyond.common import (
    UNITS,
    cancelled,
    changed,
    diagonal,
    first_met,
    flows,
    predicted,
)
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

DIM = 1000
DEGREES: dict[Size, tuple[int, ...]] = {"quick": (3, 4), "full": (2, 3, 4)}
SEEDS: dict[Size, int] = {"quick": 4, "full": 16}
CLOSE = 0.05
RECORDS: dict[Size, int] = {"quick": 20, "full": 60}
UNTIL: dict[Size, float] = {"quick": 20.0, "full": 60.0}


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """iid starts, the same for each degree."""
    base = changed(settings, **UNITS[size], alphas=None, dim=DIM, until=UNTIL[size], init="iid")
    rows = [_traces(changed(base, degree=degree), size) for degree in DEGREES[size]]
    return xr.concat(rows, "degree").assign_coords(degree=list(DEGREES[size])).assign_attrs(UNITS[size])


def _traces(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    record = np.concatenate([[0.0], np.geomspace(0.1, UNTIL[size], RECORDS[size])])
    run = flows(settings, SEEDS[size], UNTIL[size], record)
    data, degree = run.dataset, settings.degree
    overlap = data["overlap_expert"]
    towards = overlap if degree % 2 else abs(overlap)
    best = towards.argmax("student")
    signs = overlap.isel(student=best).isel(time=-1, drop=True)
    kept = [prune_run(run, seed=int(seed)).kept for seed in data["seed"].values]
    return xr.Dataset(
        {
            "recovered": (towards >= RECOVERED).any("student").sum("teacher"),
            "pairs": cancelled(data),
            "quanta": data["loss"] / Constants.of(settings.gate, degree).quantum,
            "sign": xr.ufuncs.sign(signs).where(abs(signs) >= RECOVERED),
            "observed": (("seed", "teacher"), first_met(run)),
            "predicted": (("seed", "teacher"), predicted(settings, SEEDS[size])),
            "kept": ("seed", [len(one) for one in kept]),
        }
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    time = dataset["time"].values[1:]
    degrees = [int(p) for p in dataset["degree"].values]

    def curves(name: str) -> tuple[Series, ...]:
        rows = dataset[name].isel(time=slice(1, None))
        return tuple(band(time, rows.sel(degree=p), f"degree {p}", colour=c) for c, p in enumerate(degrees))

    times = {p: (dataset["predicted"].sel(degree=p), dataset["observed"].sel(degree=p)) for p in degrees}
    points = [
        line(seen[0].values.ravel(), seen[1].values.ravel(), f"degree {p}", kind="points", colour=c)
        for c, (p, seen) in enumerate(times.items())
        if np.isfinite(seen[1]).any()
    ]
    teachers = dataset.attrs["teachers"]
    unused = dataset.attrs["students"] - teachers
    panels = (
        Panel(
            "teachers recovered by an expert", "time", f"number of {teachers}, median", curves("recovered"),
            xscale="log", ylim=(-0.1, teachers * 1.25), note="Even degrees: with either sign.",
        ),
        Panel("pairs of opposite experts", "time", "number, median", curves("pairs"), xscale="log"),
        Panel(
            "loss, in quanta of one unit", "time", "loss / (p! E[gate^2] / 2)", curves("quanta"),
            marks=(Mark(f"m - m* = {unused}", level=float(unused)),), xscale="log",
        ),
        Panel(
            "times of recovery", "predicted time", "observed time",
            (*points, diagonal(dataset["predicted"], dataset["observed"])), xscale="log", yscale="log",
            note="When an overlap, of either sign, is first 0.9 in size.",
        ),
    )  # fmt: skip
    return Sheet("Beyond the paper: experts of even degree", panels, columns=2, caption=_caption(dataset, degrees))


def _caption(dataset: xr.Dataset, degrees: list[int]) -> str:
    about, texts = dataset.attrs, []
    for p in degrees:
        one, end = dataset.sel(degree=p), dataset.sel(degree=p).isel(time=-1)
        plus, minus = int((one["sign"] > 0).sum()), int((one["sign"] < 0).sum())
        text = (
            f"degree {p}: {float(end['recovered'].mean()):.2f} teachers recovered, "
            f"{float(one['pairs'].max('time').mean()):.1f} pairs opposite at most, "
            f"{float(end['quanta'].median()):.3f} quanta in the end, pruning keeps "
            f"{int(one['kept'].min())} to {int(one['kept'].max())} students"
        )
        close = abs(one["observed"] / one["predicted"] - 1) < CLOSE
        text += f", {int(close.sum())} of {close.size} times within {100 * CLOSE:.0f} % of the predicted"
        if p % 2 == 0 and plus + minus:
            share = binomial_interval(plus, plus + minus)
            text += f", signs {plus} + and {minus} - (99 % interval of the share {share.low:.2f} to {share.high:.2f})"
        texts.append(text)
    return (
        f"{dataset.sizes['seed']} iid starts, m* = {about['teachers']}, m = {about['students']}, d = {DIM}, to "
        f"time {float(dataset['time'][-1]):g}; curves are medians, bands: {BAND}. {'; '.join(texts)}."
    )


FIGURE = Figure("beyond_even", "Experts of even degree do not cancel", compute, sheet, ours=True)
