"""Many router steps: load and routing entropy in time, and the collapse, with and without noise and penalty."""

import math
from typing import Literal

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.papers.cluster_moe.phase_two import BATCH, DIM, KAPPA, STEP, STEPS, many_steps
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.study import Figure, Size

NOISE, BALANCE = 1.0, 0.1
DASHES: tuple[Literal["solid", "dashed"], ...] = ("solid", "dashed")
"""Of the first four experts, and of the next four."""
CASES = {
    "plain": (0.0, 0.0),
    "noise": (NOISE, 0.0),
    "penalty": (0.0, BALANCE),
    "noise and penalty": (NOISE, BALANCE),
}


def compute(settings: ClusterMoeSettings, size: Size) -> xr.Dataset:
    """Load (expert, step) and entropies of four routers on one stream."""
    runs = {name: many_steps(*case) for name, case in CASES.items()}
    steps = next(iter(runs.values())).steps
    met = [run.collapse() for run in runs.values()]
    return xr.Dataset(
        {
            "load": (("case", "step", "expert"), np.stack([run.load for run in runs.values()])),
            "load_entropy": (("case", "step"), np.stack([run.load_entropy for run in runs.values()])),
            "softmax_entropy": (("case", "step"), np.stack([run.entropy for run in runs.values()])),
            "collapse": ("case", [math.nan if each is None else float(each) for each in met]),
        },
        {"case": list(CASES), "step": steps},
        {"dim": DIM, "kappa": KAPPA, "batch": BATCH, "rate": STEP, "noise": NOISE, "balance": BALANCE},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    about, experts = dataset.attrs, dataset.sizes["expert"]
    loads = dataset["load"].isel(step=-1)
    told = " ".join(
        f"{name.capitalize()}: {_when(float(dataset['collapse'].sel(case=name)))}; in the end two experts have "
        f"{100 * float(np.sort(loads.sel(case=name).values)[-2:].sum()):.0f} % of the load."
        for name in map(str, dataset["case"].values)
    )
    caption = (
        f"{experts} experts that stand still, two units of each planted with overlap {about['kappa']:g} with a local "
        f"task, d = {about['dim']}; top-1 router from zero, {int(dataset['step'][-1])} steps of rate "
        f"{about['rate']:g} on {about['batch']} fresh samples each. Noise: a number from [0, {about['noise']:g}] is "
        f"added to each score before the highest is taken. Penalty: {about['balance']:g} times M sum f_m P_m. A "
        "collapse is when the entropy of the load falls for good below half of log M, that of "
        f"{math.sqrt(experts):.1f} equal experts (the dashed line). Each expert's load: solid for experts 1 to 4, "
        f"dashed for 5 to 8; one seed. The paper has {STEPS} steps. {told}"
    )
    panels = [
        _entropies(dataset, "load_entropy", "Entropy of the load", experts),
        _entropies(dataset, "softmax_entropy", "Softmax entropy of a sample", experts),
        *(_loads(dataset, name) for name in map(str, dataset["case"].values)),
    ]
    return Sheet("More than one step: winner takes all", tuple(panels), columns=3, caption=caption)


def _when(step: float) -> str:
    return "no collapse" if math.isnan(step) else f"collapse at step {step:.0f}"


def _entropies(dataset: xr.Dataset, what: str, title: str, experts: int) -> Panel:
    marks = (Mark("half of log M", level=0.5 * math.log(experts)),) if what == "load_entropy" else ()
    return Panel(
        title,
        "router steps",
        "entropy (nats)",
        tuple(
            line(dataset["step"].values, dataset[what].sel(case=name).values, str(name), colour=colour)
            for colour, name in enumerate(dataset["case"].values)
        ),
        marks=marks,
        ylim=(0.0, 1.05 * math.log(experts)),
    )


def _loads(dataset: xr.Dataset, name: str) -> Panel:
    load, met = dataset["load"].sel(case=name), float(dataset["collapse"].sel(case=name))
    return Panel(
        f"Load of each expert: {name}",
        "router steps",
        "part of the samples",
        tuple(
            line(
                dataset["step"].values,
                load.isel(expert=expert).values,
                "",
                colour=expert % 4,
                dash=DASHES[expert // 4 % 2],
            )
            for expert in range(dataset.sizes["expert"])
        ),
        marks=() if math.isnan(met) else (Mark("collapse", at=met),),
        ylim=(0.0, 0.75),
    )


FIGURE = Figure("collapse", "Winner-take-all collapse of the router", compute, sheet, ours=True)
