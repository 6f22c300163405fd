"""Figures 1 and 2: who has recovered whom, and when; by the exact flow and by online SGD."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Field, Panel, Series, Sheet, line
from tutelage.papers.soft_moe.races import SEEDS, Race
from tutelage.papers.soft_moe.recipe import run
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

KEPT = ["loss", "overlap_expert", "overlap_router", "norm_expert", "expert_time", "router_time"]
# B/eta sets the noise of SGD. The paper gives neither; the flow is followed where B/eta is far above 2e6.
SGD = {"quick": {"step": 0.02, "batch": 4096, "until": 15.0}, "full": {"step": 0.002, "batch": 4096, "until": 150.0}}


def compute(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """Seed 0 by flow, to the settings' time, and by SGD from the same start."""
    flow = Race(settings, SEEDS[size], settings.horizon, 300).run.dataset
    sampled = SoftMoeSettings(**settings.model_dump() | SGD[size])
    sgd = run(sampled, dynamics="sgd", dtype="float32").dataset
    parts = {"flow": flow[KEPT].isel(seed=0, drop=True), "sgd": sgd[KEPT].isel(seed=0, drop=True)}
    about = {k: sampled.model_dump()[k] for k in ("step", "batch", "dim")}
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
        caption=f"Cosines of each student's router (left) and expert (right) with each teacher's, seed 0, d = "
        f"{tree.attrs['dim']}. Top: the exact flow. Bottom: online SGD from the same start, step "
        f"{tree.attrs['step']:g}, batch {tree.attrs['batch']}. {_bright(tree['flow'].to_dataset())}",
    )


def _table(one: xr.Dataset, role: str, title: str) -> Panel:
    values = one[f"overlap_{role}"].isel(time=-1).values
    students, teachers = values.shape
    field = Field(np.arange(1, teachers + 1), np.arange(1, students + 1), values, "cosine", cells=True)
    return Panel(title, "teacher", "student", fields=(field,))


def _bright(one: xr.Dataset) -> str:
    experts, routers = (one[f"overlap_{role}"].isel(time=-1).values for role in ("expert", "router"))
    single = [
        (np.sum(e > 0.9) == 1 and np.sum(r[e > 0.9] > 0.9) == 1) for e, r in zip(experts.T, routers.T, strict=True)
    ]
    return f"In the flow {sum(single)} of {len(single)} teachers have exactly one bright cell, the same in both tables."


def curves(tree: xr.DataTree) -> Sheet:
    shown = (("flow", "exact flow"), ("sgd", "online SGD"))
    panels = tuple(_curves(tree[name].to_dataset(), how) for name, how in shown)
    return Sheet(
        "Figure 2: teachers are recovered one after another, experts first",
        panels,
        columns=1,
        caption="Overlap of each teacher with the student that recovers it first (the best one if none does): dashed "
        f"the expert, solid the router. Grey, on the right: the loss. Seed 0, d = {tree.attrs['dim']}; SGD with "
        f"step {tree.attrs['step']:g}, batch {tree.attrs['batch']}. {_lags(tree['flow'].to_dataset())}",
    )


def _curves(one: xr.Dataset, how: str) -> Panel:
    time, series = one["time"].values, []
    for teacher, student in enumerate(_winners(one)):
        expert, router = (one[f"overlap_{role}"].values[:, student, teacher] for role in ("expert", "router"))
        name = f"teacher {teacher + 1}"
        series.append(line(time, router, name, colour=teacher % 6))
        series.append(line(time, expert, dash="dashed", colour=teacher % 6))
    loss = Series(time, one["loss"].values, "loss", colour=GREY, right=True)
    return Panel(
        how[0].upper() + how[1:],
        "time",
        "overlap with the teacher",
        (*series, loss),
        right_label="loss",
        ylim=(-0.25, 1.05),
        xlim=(0, min(100.0, float(time[-1]))),
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


FIGURES = (
    Figure("fig1", "Overlaps at the end", compute, tables),
    Figure("fig2", "Recovery one after another", compute, curves),
)
