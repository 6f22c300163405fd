"""Pruning along the flow, and fine-tuning of what it keeps."""

from typing import Any

import numpy as np
import xarray as xr

from tutelage import BadInput
from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line
from tutelage.papers.soft_moe import recipe
from tutelage.papers.soft_moe.pruned import (
    TOLERANCE,
    along,
    longest,
    tuned_iid,
    tuned_orthonormal,
)
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.tuning import WINDOW, Tuning
from tutelage.study import Figure, Size
from tutelage.trajectory import Run

POINTS = {"quick": 106, "full": 421}
RULES = {1: "one at a time (Eqs. 7, 8)", 2: "pairs too"}
CASES: dict[str, dict[str, Any]] = {
    "iid": {"init": "iid"},
    "orthonormal": {"init": "orthonormal", "dim": 10**6, "until": 700.0},
}


def compute(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Pruning at every recorded time of two runs, iid at the size of the settings and orthonormal in large dim."""
    return xr.concat([_case(_run(settings, case, POINTS[size]), case) for case in CASES], "case")


def _run(settings: SoftMoeSettings, case: str, points: int) -> Run:
    chosen = SoftMoeSettings(**settings.model_dump() | CASES[case])
    return recipe.run(chosen, seeds=1, record=np.linspace(0, chosen.horizon, points))


def _case(run: Run, case: str) -> xr.Dataset:
    swept = [along(run), along(run, order=2, tolerance=TOLERANCE)]
    times = run.expert_time.isel(seed=0).min("student")
    # The two runs may end at different times: records are numbered, and each case has its own times.
    parts = {
        name: (("order", "record"), np.stack([one[name].values[0] for one in swept]))
        for name in ("kept", "exact", "risk")
    }
    return xr.Dataset(
        parts
        | {
            "recovered": ("record", (times <= run.time).sum("teacher").values),
            "unpruned": ("record", 2 * run.loss.values[0]),
            "time": ("record", run.time.values),
            "dim": run.problem.inputs.dim,
        },
        {"order": list(RULES), "case": case},
    )


def sheet(dataset: xr.Dataset) -> Sheet:
    cases = [dataset.sel(case=case) for case in CASES]
    return Sheet(
        "Pruning along the flow: the rule has a window of time from orthonormal students, none from iid ones",
        (*(_kept(one, 1.3 * float(dataset["kept"].max())) for one in cases), *(_risks(one) for one in cases)),
        caption=_caption(dataset),
    )


def _name(one: xr.Dataset) -> str:
    return f"{str(one['case'].values)} start, d = {_power(int(one['dim']))}"


def _power(dim: int) -> str:
    exponent = round(np.log10(dim))
    return f"$10^{{{exponent}}}$" if dim == 10**exponent and exponent > 3 else str(dim)


def _window(one: xr.Dataset, order: int) -> tuple[float, float] | None:
    return longest(one["time"].values, one["exact"].sel(order=order).values)


def _marks(one: xr.Dataset) -> tuple[Mark, ...]:
    """The window in which pruning is exact, by the paper's rule if there is one."""
    for order, rule in RULES.items():
        window = _window(one, order)
        if window:
            return (Mark(f"exact: {rule.split(' (')[0]}", span=window),)
    return ()


def _kept(one: xr.Dataset, top: float) -> Panel:
    time = one["time"].values
    series = [
        line(time, one["kept"].sel(order=order), rule, kind="steps", colour=n, dash="solid" if n == 0 else "dashed")
        for n, (order, rule) in enumerate(RULES.items())
    ]
    series.append(line(time, one["recovered"], "teachers recovered", kind="steps", colour=GREY, dash="dotted"))
    return Panel(_name(one), "flow time t", "experts kept", tuple(series), marks=_marks(one), ylim=(0, top))


def _risks(one: xr.Dataset) -> Panel:
    time = one["time"].values
    series: list[Series] = [line(time, one["unpruned"], "not pruned", colour=GREY, dash="dotted")]
    for n, (order, rule) in enumerate(RULES.items()):
        risk = one["risk"].sel(order=order)
        series.append(line(time, risk, rule, colour=n, dash="solid" if n == 0 else "dashed"))
    return Panel(
        f"what is left, {_name(one)}",
        "flow time t",
        r"risk $\mathrm{E}(f_S - f^*)^2$",
        tuple(series),
        marks=_marks(one),
        yscale="log",
    )


def _caption(dataset: xr.Dataset) -> str:
    iid, orthonormal = (dataset.sel(case=case) for case in CASES)
    window, pairs = _window(orthonormal, 1), _window(iid, 2)
    count = int((iid["kept"].sel(order=1).values == int(iid["recovered"].max())).sum())
    text = "Pruning by the population loss, exact, at every recorded time of exact flows, seed 0 of both starts; exact "
    text += (
        "means that just the experts that recovered the teachers are kept and leave less than a tenth of the risk of "
    )
    text += "a lone one. "
    if window:
        ends = "; then unused students that share teachers have taken one over" if _closes(orthonormal, window) else ""
        text += (
            f"From orthonormal students the paper's rule returns exactly the experts that recovered the teachers for t "
            f"from {window[0]:.0f} to {window[1]:.0f}{ends}. The least risk in it is "
            f"{float(orthonormal['risk'].sel(order=1).min()):.1e}. "
        )
    text += f"From an iid start it returns as many experts as teachers at {count} of {iid.sizes['record']} times: "
    text += "unused students annihilate in pairs, and to remove one of a pair raises the risk. "
    if pairs:
        text += (
            f"With removal of pairs (tolerance {TOLERANCE:g}) it is exact from t = {pairs[0]:.0f} on; this seed is "
            "drawn because it is one of the few for which that works (SM-T2:pairs). "
        )
    return text + "At the start everything is removed: no student is worth keeping."


def _closes(one: xr.Dataset, window: tuple[float, float]) -> bool:
    return window[1] < float(one["time"].max())


def compute_tuning(settings: SoftMoeSettings, size: Size) -> xr.Dataset:
    """Fine-tuning from orthonormal students pruned by the paper's rule, and from iid ones pruned by pairs."""
    del size  # it takes seconds
    iid = recipe.run(SoftMoeSettings(**settings.model_dump() | CASES["iid"]), seeds=1, record=[0.0])
    found = {"orthonormal": tuned_orthonormal(settings), "iid": tuned_iid(iid)}
    rows = {name: _tuned(tuning) for name, tuning in found.items() if tuning}
    if not rows:
        raise BadInput("finetuning: pruning left no state with one expert for each teacher; try more students.")
    return xr.concat(rows.values(), "case").assign_coords(case=list(rows))


def _tuned(tuning: Tuning) -> xr.Dataset:
    return xr.Dataset(
        {
            "distance": ("time", tuning.distance),
            "distances": (("teacher", "time"), tuning.distances),
            "loss": ("time", tuning.loss),
            "loss_sum": ("time", tuning.run.loss.values[0]),
            "rate": -tuning.fit.slope,
            "rate_low": -tuning.fit.interval.high,
            "rate_high": -tuning.fit.interval.low,
            "sharp": tuning.sharp,
            "rates": ("teacher", [-fit.slope for fit in tuning.fits]),
            "sharps": ("teacher", tuning.sharp_each),
            "dim": tuning.dim,
        },
        {"time": tuning.time},
    )


def sheet_tuning(dataset: xr.Dataset) -> Sheet:
    return Sheet(
        "Fine-tuning of the kept experts: linear convergence, at the rate of the curvature along routers",
        (_distances(dataset), _by_expert(dataset), _losses(dataset), _local_rates(dataset)),
        caption=_tuning_caption(dataset),
    )


def _distances(dataset: xr.Dataset) -> Panel:
    series = []
    for n, case in enumerate(dataset["case"].values):
        one = dataset.sel(case=case)
        series.append(line(one["time"], one["distance"], _name(one), colour=n))
        # Anchored where the window of the fit begins, and set a little above the curve to be seen.
        time, begin = one["time"].values, float(one["distance"].sel(time=WINDOW[0]))
        law = 3 * begin * np.exp(-float(one["sharp"]) * (time - WINDOW[0]))
        series.append(line(time, law, rf"$\exp(-{float(one['sharp']):.4f}\,t)$, sharp", dash="dashed", colour=n))
    return Panel(
        "squared distance to the teacher",
        "time t of fine-tuning",
        r"$\|\bar\theta - \theta^*\|^2$",
        tuple(series),
        marks=(Mark("fitted", span=WINDOW),),
        yscale="log",
    )


def _by_expert(dataset: xr.Dataset) -> Panel:
    """The case with the most different norms: every expert has its own rate."""
    one = dataset.isel(case=-1)
    series = []
    for j in range(one.sizes["teacher"]):
        rate, sharp = float(one["rates"][j]), float(one["sharps"][j])
        label = f"{rate:.4f} (sharp {sharp:.4f})"
        series.append(line(one["time"], one["distances"].isel(teacher=j), label, colour=j))
    return Panel(
        f"expert by expert, {_name(one)}",
        "time t of fine-tuning",
        r"$\|\bar v_i - v_i^*\|^2 + \|\bar w_i - w_i^*\|^2$",
        tuple(series),
        yscale="log",
        note=f"fitted rates on t in [{WINDOW[0]:g}, {WINDOW[1]:g}]",
    )


def _losses(dataset: xr.Dataset) -> Panel:
    series = []
    for n, case in enumerate(dataset["case"].values):
        one = dataset.sel(case=case)
        series.append(line(one["time"], one["loss"], str(case), colour=n))
    lost = dataset.isel(case=-1)
    label = "iid, as a sum of kernels" if len(dataset["case"]) > 1 else "as a sum of kernels"
    series.append(line(lost["time"], np.abs(lost["loss_sum"]), label, dash="dotted", colour=GREY))
    return Panel("loss", "time t of fine-tuning", "population loss", tuple(series), yscale="log")


def _local_rates(dataset: xr.Dataset) -> Panel:
    series, marks = [], []
    for n, case in enumerate(dataset["case"].values):
        one = dataset.sel(case=case)
        rate = -np.gradient(np.log(one["distance"].values), one["time"].values)
        series.append(line(one["time"], rate, str(case), colour=n))
        marks.append(Mark(f"sharp: {float(one['sharp']):.4f}", level=float(one["sharp"])))
    return Panel(
        "rate at each moment",
        "time t of fine-tuning",
        r"$-\mathrm{d}\,\ln \|\bar\theta - \theta^*\|^2 / \mathrm{d}t$",
        tuple(series),
        marks=tuple(marks),
        ylim=(0.45, 0.65),
    )


def _tuning_caption(dataset: xr.Dataset) -> str:
    text = "Gradient flow from the kept experts, with their norms; dashed lines are set a little above the curves. "
    for case in dataset["case"].values:
        one = dataset.sel(case=case)
        text += (
            f"{_name(one)}: fitted rate {float(one['rate']):.5f} [{float(one['rate_low']):.5f}, "
            f"{float(one['rate_high']):.5f}] on t in [{WINDOW[0]:g}, {WINDOW[1]:g}], sharp {float(one['sharp']):.5f}. "
        )
    off = float(np.max(np.abs(dataset["rates"] / dataset["sharps"] - 1)))
    return (
        f"{text}The sharp rate 2 C_S1 / max |v_i|^2 is that of the longest router; with unequal norms it is reached "
        f"only when the others have died out; expert by expert the rates 2 C_S1 / |v_i|^2 agree to {off:.0e}. Below "
        "1e-12 the loss is its quadratic form at the teacher: the sum of kernels ends in rounding noise."
    )


FIGURES = (
    Figure("pruning", "Pruning along the flow", compute, sheet, ours=True),
    Figure("finetuning", "Fine-tuning of the kept experts", compute_tuning, sheet_tuning, ours=True),
)
