"""Figures 1 and 2: who has recovered whom, and when; by the exact flow and by online SGD."""

import numpy as np
import xarray as xr

from tutelage.analysis import Field, Panel, Series, Sheet, line
from tutelage.papers.soft_moe.events import RECOVERED
from tutelage.papers.soft_moe.races import SEEDS, Race, single
from tutelage.papers.soft_moe.recipe import run
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

GREEN = 2
COLOURS = (0, 1, 3, 4, 5)  # of teachers; the loss is green, as in the paper
KEPT = ["loss", "overlap_expert", "overlap_router", "norm_expert", "expert_time", "router_time"]
# B/eta sets the noise of SGD. The paper gives neither; the flow is followed where B/eta is far above 2e6.
SGD = {"quick": {"step": 0.02, "batch": 4096, "until": 15.0}, "full": {"step": 0.002, "batch": 4096, "until": 150.0}}


def compute(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """Seed 0 by flow, to the settings' time, and by SGD from the same start."""
    race = Race(settings, SEEDS[size], settings.horizon, 300)
    flow = race.run.dataset
    sampled = SoftMoeSettings(**settings.model_dump() | SGD[size])
    sgd = run(sampled, dynamics="sgd", dtype="float32").dataset
    parts = {"flow": flow[KEPT].isel(seed=0, drop=True), "sgd": sgd[KEPT].isel(seed=0, drop=True)}
    about = {k: sampled.model_dump()[k] for k in ("step", "batch", "dim", "init")}
    about |= {"seeds": race.count, "all_single": int(np.sum(race.singles == settings.teachers))}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=about), **parts})


def tables(tree: xr.DataTree) -> Sheet:
    panels = []
    for name, how in (("flow", "exact flow"), ("sgd", "online SGD")):
        one = tree[name].to_dataset()
        for role in ("router", "expert"):
            panels.append(_table(one, role, f"{role.capitalize()}s, {how}, t = {float(one['time'][-1]):.4g}"))
    return Sheet(
        "Figure 1: overlaps of students and teachers at the end",
        tuple(panels),
        caption=f"Cosines of each student's router (left) and expert (right) with each teacher's, seed 0, "
        f"{tree.attrs['init']} start, d = {tree.attrs['dim']}. Top: the exact flow. Bottom: online SGD from the same "
        f"start, step {tree.attrs['step']:g}, batch {tree.attrs['batch']}. One and only one expert and router above "
        f"0.9, of the same student: {_told(tree['flow'].to_dataset())} in this flow, "
        f"{_told(tree['sgd'].to_dataset())} in this run of SGD; all teachers in {tree.attrs['all_single']} of the "
        f"flows from {tree.attrs['seeds']} seeds. The paper's pictures have light for 1.",
    )


def _table(one: xr.Dataset, role: str, title: str) -> Panel:
    values = one[f"overlap_{role}"].isel(time=-1).values
    students, teachers = values.shape
    field = Field(np.arange(1, teachers + 1), np.arange(1, students + 1), values, "cosine", cells=True)
    return Panel(title, "teacher", "student", fields=(field,))


def _told(one: xr.Dataset) -> str:
    """For how many teachers the paper's property holds, and how many students are near each."""
    experts, routers = (one[f"overlap_{role}"].isel(time=-1).values for role in ("expert", "router"))
    found = single(experts, routers)
    near = [", ".join(str(count) for count in np.sum(role > RECOVERED, axis=0)) for role in (experts, routers)]
    return f"{found.sum()} of {len(found)} teachers (experts above 0.9: {near[0]}; routers: {near[1]})"


def curves(tree: xr.DataTree) -> Sheet:
    shown = (("flow", "exact flow"), ("sgd", "online SGD"))
    panels = tuple(_curves(tree[name].to_dataset(), how) for name, how in shown)
    return Sheet(
        "Figure 2: each teacher's first student, routers after experts",
        panels,
        columns=1,
        caption="Overlap of each teacher with the student that recovers it first (or the best one at the end), "
        "dashed the expert, solid the router, as in the paper. Green, on the right: the loss. Seed 0, "
        f"{tree.attrs['init']} start, d = {tree.attrs['dim']}. Top: exact flow. Bottom: online SGD from the same "
        f"start, step {tree.attrs['step']:g}, batch {tree.attrs['batch']}. {_lags(tree['flow'].to_dataset())} "
        f"{_ends(tree['sgd'].to_dataset())}",
    )


def _curves(one: xr.Dataset, how: str) -> Panel:
    time, series = one["time"].values, []
    for teacher, student in enumerate(_winners(one)):
        expert, router = (one[f"overlap_{role}"].values[:, student, teacher] for role in ("expert", "router"))
        name = f"teacher {teacher + 1}"
        colour = COLOURS[teacher % len(COLOURS)]
        series.append(line(time, router, name, colour=colour))
        series.append(line(time, expert, dash="dashed", colour=colour))
    loss = Series(time, one["loss"].values, "loss", colour=GREEN, right=True)
    return Panel(
        how[0].upper() + how[1:],
        "time",
        "overlap with the teacher",
        (*series, loss),
        right_label="loss",
        ylim=(-0.25, 1.05),
        xlim=(0, min(100.0, float(time[-1]))),
        note="solid: routers, dashed: experts",
    )


def _winners(one: xr.Dataset) -> list[int]:
    times, last = one["expert_time"].values, one["overlap_expert"].values[-1]
    found = np.nan_to_num(times, nan=np.inf)
    return [
        int(found[:, j].argmin() if np.isfinite(found[:, j]).any() else last[:, j].argmax())
        for j in range(last.shape[1])
    ]


def _lags(one: xr.Dataset) -> str:
    lag = []
    for teacher, student in enumerate(_winners(one)):
        lag.append(float(one["router_time"].values[student, teacher] - one["expert_time"].values[student, teacher]))
    seen = ", ".join(f"{x:.1f}" for x in sorted(lag) if np.isfinite(x))
    return f"In the flow the routers come {seen} after their experts." if seen else ""


def _ends(one: xr.Dataset) -> str:
    """What the best students of SGD have come to."""
    best = one["overlap_expert"].isel(time=-1).values.max(0)
    return f"The best experts of SGD end at {', '.join(f'{x:.2f}' for x in best)}, teacher by teacher."


FIGURES = (
    Figure("fig1", "Overlaps at the end", compute, tables),
    Figure("fig2", "Recovery one after another", compute, curves),
)
