"""Theorem 1.1's own model: ReLU units, samples, Algorithm 1, and d times the loss against d by one recipe for all d."""

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line
from tutelage.papers.beyond_ntk import rivals, theorem
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.study import Figure, Size

DATA = {"enough": theorem.ENOUGH, "few": theorem.FEW, "exact": None}
LABELS = {"enough": r"$N = d^3$ samples", "few": r"$N = d^{5/2}$ samples", "exact": "population gradient"}
COLOURS = {"enough": 0, "few": 3, "exact": 2}
SCALED = r"$d\,L$"


def compute(settings: BeyondNtkSettings, size: Size) -> xr.DataTree:
    """Final losses for each amount of data, those of the kernel methods, and the runs on enough samples in time.

    The powers are the recipe's; nothing of `settings` enters.
    """
    del settings
    plan = theorem.PLANS[size]
    found = {name: theorem.ends(plan.exact if p is None else plan.dims, p, plan.seeds) for name, p in DATA.items()}
    fits = {f"{name}_exponent": f"{theorem.power(losses):.2f}" for name, losses in found.items()}
    fits["last_exponent"] = f"{theorem.power(found['enough'][-2:]):.2f}"
    kernels = [min(rivals.levels(one).values()) for one in rivals.DIMENSIONS[size]]
    bounds = [rivals.bound(*one) for one in rivals.DIMENSIONS[size]]
    about = {"kernels": ("dim", kernels), "bound": ("dim", bounds)}
    parts = {name: xr.Dataset({"L": losses} | (about if name == "enough" else {})) for name, losses in found.items()}
    times = {f"run_{dim}": _in_time(dim, plan.seeds) for dim in plan.dims}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=fits), **parts, **times})


def _in_time(dim: int, seeds: int) -> xr.Dataset:
    """d L, and the part of the units that stand still, against time over d^2/log d."""
    run, asked = theorem.trained(dim, theorem.samples(dim), seeds), theorem.algorithm(dim, theorem.samples(dim))
    assert asked.stage is not None  # Algorithm 1 has two
    early = run["time"].values <= asked.stage + asked.step / 2  # a stage is a whole number of steps
    frozen = xr.where(xr.DataArray(early, dims="time"), run["frozen"].isel(stage=0), run["frozen"].isel(stage=1))
    kept = xr.Dataset({"scaled": dim * run["L"], "still": frozen / asked.width}).drop_vars("step", errors="ignore")
    kept = kept.isel(time=slice(1, None)).transpose("seed", "time")
    return kept.assign_coords(time=kept["time"] / theorem.unit_of_time(dim)).assign_attrs(dim=dim)


def sheet(tree: xr.DataTree) -> Sheet:
    runs = [tree[name].to_dataset() for name in tree.children if name.startswith("run_")]
    return Sheet(
        "Theorem 1.1: ReLU units, samples, and Algorithm 1 with both its stages",
        (_against_dimension(tree), _against_time(runs), _still(runs)),
        columns=3,
        caption=_caption(tree),
    )


def _against_dimension(tree: xr.DataTree) -> Panel:
    """Lines through geometric means over seeds, with a point for each seed."""
    curves: list[Series] = []
    for name, label in LABELS.items():
        losses, colour = tree[name].to_dataset()["L"], COLOURS[name]
        scaled = losses * losses["dim"]
        curves.append(line(losses["dim"], _mean(scaled), label, colour=colour))
        each = np.repeat(losses["dim"].values, losses.sizes["seed"])
        points = scaled.transpose("dim", "seed").values.ravel()
        curves.append(line(each, points, kind="points", colour=colour, faint=True))
    data = tree["enough"].to_dataset()
    dims = data["dim"].values
    curves.append(line(dims, dims * data["kernels"].values, "best kernel method, $N = d^3$", colour=1))
    curves.append(line(dims, dims * data["bound"].values, "no $d^3$ features go below", colour=5, dash="dashed"))
    top = float(_mean(data["L"])[0] * dims[0])
    law = top * (dims / dims[0]) ** -theorem.Q
    curves.append(line(dims, law, rf"$d^{{-{theorem.Q:g}}}$", colour=GREY, dash="dotted"))
    return Panel("at the end", "dimension d", SCALED, tuple(curves), xscale="log", yscale="log")


def _mean(values: xr.DataArray) -> np.ndarray:
    """The geometric mean over seeds."""
    return np.exp(np.mean(np.log(values.transpose("seed", ...).values), axis=0))


def _against_time(runs: list[xr.Dataset]) -> Panel:
    curves = [
        line(run["time"], _mean(run["scaled"]), f"d = {run.attrs['dim']}", colour=colour)
        for colour, run in enumerate(runs)
    ]
    return Panel(
        "on $N = d^3$ samples", r"time over $d^2/\log d$", SCALED, tuple(curves),
        marks=(Mark("stage 2", at=theorem.FIRST),), xscale="log", yscale="log",
    )  # fmt: skip


def _still(runs: list[xr.Dataset]) -> Panel:
    curves = [line(run["time"], 100 * run["still"].mean("seed"), colour=colour) for colour, run in enumerate(runs)]
    return Panel(
        "truncated units", r"time over $d^2/\log d$", "% of the units", tuple(curves),
        marks=(Mark("stage 2", at=theorem.FIRST),), note="colours as in the middle",
    )  # fmt: skip


def _caption(tree: xr.DataTree) -> str:
    data = tree["enough"].to_dataset()
    told = {name: tree.attrs[f"{name}_exponent"] for name in DATA}
    rows = []
    for one in (data.isel(dim=index) for index in range(data.sizes["dim"])):
        dim, mean = int(one["dim"]), float(one["L"].mean())
        best, bound = float(one["kernels"]), float(one["bound"])
        rows.append(f"d = {dim}: {dim * mean:.2g}, {dim * best:.3g}, {dim * bound:.3g}")
    return (
        "Algorithm 1 with the ReLU network of Eq. (1.2) on samples of the teacher with equal weights, by one recipe: "
        "m = d^(3/2), N = d^3, 1/lambda_0 = d^(1/2), 1/lambda_1 = d, "
        f"{theorem.FIRST:g} d^2/log d of time for stage 1 and {theorem.SECOND:g} d^1.1 for stage 2, steps eta_inf = "
        f"{theorem.STEP:g}; {data.sizes['seed']} seeds, each with its own start and samples. Time is steps x eta_inf. "
        f"Left: each seed, and geometric means. L falls as d to the power {told['enough']} (95 %, over seeds), and "
        f"{tree.attrs['last_exponent']} between the last two d, where Theorem 1.1 says at most -1 - Q; with the "
        f"population gradient {told['exact']}, and with as many samples as weights, m d = d^(5/2), {told['few']}. d L "
        "of the network (mean), of the best kernel method on the samples of the first seed, and of the bound: "
        f"{'; '.join(rows)}. Middle: geometric means over seeds; right: units above the cap of the stage, which stand "
        "still."
    )


FIGURE = Figure("theorem", "Theorem 1.1: the loss against the dimension", compute, sheet, ours=True)
