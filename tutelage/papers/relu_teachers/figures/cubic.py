"""The T^-3 law where it can be seen: longer SGD, and the population flow against the exact constant."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Mark, Panel, Series, Sheet, band, line
from tutelage.dynamics import Record, Stop
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.assumptions import nearest
from tutelage.papers.relu_teachers.local import measured_constant, rate
from tutelage.papers.relu_teachers.phases import NEEDED
from tutelage.papers.relu_teachers.recipe import run
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

LONG = {
    size: {"teachers": 4, "students": 20, "init": "weak", "step": step, "steps": steps}
    for size, step, steps in (("quick", 2e-2, 2500), ("full", 5e-3, 20_000))
}
SEEDS = {"quick": 1, "full": 5}
UNTIL, FIRST, RECORDS = 1e7, 1.0, 150  # beyond 3e7 the gradient is that of the rounding of the weights
DIM = 40


class Case(NamedTuple):
    """A flow: how many students lean to each teacher at the start, or a Gaussian start."""

    teachers: int
    students: int
    counts: tuple[int, ...] | None = None

    def name(self, end: tuple[int, ...]) -> str:
        """The groups at the start, and at the end if they are others."""
        start = _sum(self.counts) if self.counts else "Gaussian"
        return f"k = {self.teachers}: {start}" + ("" if end == self.counts else f", ends {_sum(end)}")


def _sum(counts: tuple[int, ...]) -> str:
    return "+".join(map(str, counts))


# One shape, so one compilation: the groups differ.
QUICK = (Case(2, 6, (3, 3)), Case(2, 6, (2, 4)), Case(2, 6, (1, 5)), Case(2, 6))
CASES = {"quick": QUICK, "full": (*QUICK, Case(1, 3, (3,)), Case(4, 8, (2, 2, 2, 2)))}


def compute(settings: ReluTeachersSettings, size: Size) -> xr.DataTree:
    """Many updates of SGD and of descent on the population loss; flows to a large time."""
    chosen = ReluTeachersSettings(dim=settings.dim, norm=settings.norm, batch=settings.batch, **LONG[size])
    # What Figures 2 and 3 record, so that the compiled program is theirs.
    sgd = run(chosen, seeds=SEEDS[size], dtype="float32", record=Record(250, observables=NEEDED)).dataset
    descent = run(
        chosen, seeds=1, dynamics="descent", record=Record(250, observables=("loss", "gradient_norm"))
    ).dataset
    flows = xr.concat([_flow(case) for case in CASES[size]], "case")
    about = LONG[size] | {"batch": settings.batch, "dim": settings.dim, "norm": settings.norm}
    trained = {"sgd": sgd[["loss", "gradient_norm"]], "descent": descent[["loss", "gradient_norm"]]}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=about), "flow": flows, **trained})


def _flow(case: Case) -> xr.Dataset:
    """L s^3 and c along the flow, with what the norms at its end predict."""
    chosen = ReluTeachersSettings(
        dim=DIM,
        teachers=case.teachers,
        students=case.students,
        norm=1.0,
        init="weak" if case.counts else "gaussian",
        counts=case.counts,
        scale=1e-3,
        step=UNTIL,
        steps=1,
    )
    # A loss of 1e-21 has a gradient of 1e-14: it is not yet the end.
    result = run(
        chosen,
        dynamics="flow",
        solver="stiff",
        record=Record(RECORDS, first=FIRST, observables=("loss", "gradient_norm")),
        stop=Stop(gradient=0.0),
    )
    data = result.dataset.isel(seed=0, drop=True)
    final = result.final.first[0]
    total = measured_constant(final, result.teacher.first)
    counts = np.bincount(nearest(final, result.teacher.first), minlength=case.teachers)
    return xr.Dataset(
        {
            "loss": data["loss"],
            "cubed": data["loss"] * data["time"] ** 3,
            "rate": measures.cubic_rate(data),
            "constant": total,
            "predicted": rate(total),
        }
    ).assign_coords(case=case.name(tuple(counts.tolist())))


def local_slope(step: np.ndarray, loss: np.ndarray, factor: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """-d ln L / d ln T over windows of this factor, and the middle of each window (in ln T)."""
    used = step > 0
    at, logs = np.log(step[used]), np.log(loss[used])
    half = math.log(factor) / 2
    middle = np.linspace(at[0] + half, at[-1] - half, 120)
    return np.exp(middle), -(np.interp(middle + half, at, logs) - np.interp(middle - half, at, logs)) / (2 * half)


def sheet(tree: xr.DataTree) -> Sheet:
    sgd, descent, flows = (tree[name].to_dataset() for name in ("sgd", "descent", "flow"))
    return Sheet(
        "The law $T^{-3}$, in SGD that is long enough and in the flow against its exact constant",
        (_losses(sgd, descent), _slopes(sgd, descent), _cubed(flows), _rates(flows)),
        caption=_caption(tree, sgd, descent, flows),
    )


def _curves(sgd: xr.Dataset, descent: xr.Dataset) -> list[tuple[str, int, np.ndarray, np.ndarray]]:
    """Name, colour, updates, and losses (seed, record)."""
    return [
        (name, colour, data["step"].values, data["loss"].transpose("seed", ...).values)
        for name, colour, data in (("SGD", 0, sgd), ("descent on the population loss", 1, descent))
    ]


def _losses(sgd: xr.Dataset, descent: xr.Dataset) -> Panel:
    series: list[Series] = []
    for name, colour, step, loss in _curves(sgd, descent):
        series.append(band(step[1:], loss[:, 1:], name, colour=colour))
    step, loss = sgd["step"].values, sgd["loss"].median("seed").values
    late = step[step >= step[-1] / 10]
    series.append(line(late, loss[-1] * (step[-1] / late) ** 3, "$T^{-3}$", dash="dashed", colour=GREY))
    return Panel("loss against updates", "updates T", "population loss", tuple(series), xscale="log", yscale="log")


def _slopes(sgd: xr.Dataset, descent: xr.Dataset) -> Panel:
    series = []
    for name, colour, step, loss in _curves(sgd, descent):
        slopes = np.array([local_slope(step, one)[1] for one in loss])
        series.append(band(local_slope(step, loss[0])[0], slopes, name, colour=colour))
    return Panel(
        "local exponent",
        "updates T",
        "-d ln L / d ln T",
        tuple(series),
        marks=(Mark("the law: 3", level=3.0),),
        xscale="log",
        xlim=(10, 1.1 * float(sgd["step"].values[-1])),
    )


def _cubed(flows: xr.Dataset) -> Panel:
    time = flows["time"].values[1:]
    curves = [line(time, one["cubed"].values[1:], str(one["case"].values), colour=i) for i, one in _each(flows)]
    series = (*curves, *_levels(flows, "constant", r"predicted, $\sum C_l$"))
    top = 1.25 * float(flows["constant"].max())
    return Panel("flow: $L s^3$", "flow time s", "$L s^3 / |v|^2$", series, xscale="log", ylim=(0, top))


def _rates(flows: xr.Dataset) -> Panel:
    time = flows["time"].values[1:]
    curves = [line(time, one["rate"].values[1:], colour=i) for i, one in _each(flows)]
    return Panel(
        "flow: the slope of $L^{-1/3}$",
        "flow time s",
        r"$\hat c = |\nabla L|^2 / (3 L^{4/3})$",
        (*curves, *_levels(flows, "predicted", r"predicted, $(\sum C_l)^{-1/3}$")),
        xscale="log",
        ylim=(0, 1.6 * float(flows["predicted"].max())),
        note="colours as on the left",
    )


def _levels(flows: xr.Dataset, name: str, label: str) -> list[Series]:
    ends = flows["time"].values[[1, -1]]
    return [
        line(ends, [float(one[name])] * 2, "" if i else label, dash="dashed", colour=GREY) for i, one in _each(flows)
    ]


def _each(flows: xr.Dataset) -> Iterator[tuple[int, xr.Dataset]]:
    return ((index, flows.isel(case=index)) for index in range(flows.sizes["case"]))


def _caption(tree: xr.DataTree, sgd: xr.Dataset, descent: xr.Dataset, flows: xr.Dataset) -> str:
    about = tree.attrs
    (_, _, step, noisy), (_, _, _, exact) = _curves(sgd, descent)
    costs = np.median(noisy, axis=0) / exact[0]
    ends = flows.isel(time=-1)
    off = np.abs(ends["cubed"].values / ends["constant"].values - 1)
    worst = int(np.argmax(off))
    return (
        f"Above: weak recovery, k = {about['teachers']}, m = {about['students']}, eta = {about['step']:g}, "
        f"{about['steps']} updates, batch {about['batch']}, {sgd.sizes['seed']} seed(s), band: {BAND}. SGD ends at "
        f"{np.median(noisy[:, -1]):.2g} with local exponent {_last_slope(step, noisy):.2f}, descent on the population "
        f"loss at {exact[0, -1]:.2g} with {_last_slope(step, exact):.2f}. The noise of the gradients costs SGD a "
        f"factor of up to {costs.max():.1f} on the way, {costs[-1]:.2f} at the end. Below: the flow, |v| = 1, "
        f"d = {DIM}; labels give the sizes of the groups. At s = "
        f"{float(flows['time'][-1]):.0e} (losses of {float(ends['loss'].min()):.1e} to "
        f"{float(ends['loss'].max()):.1e}), L s^3 is within {np.median(off):.0e} (median of the cases) and "
        f"{off[worst]:.0e} (worst, {ends['case'].values[worst]}) of the constant that the final norms predict."
    )


def _last_slope(step: np.ndarray, losses: np.ndarray) -> float:
    return float(np.median([local_slope(step, one)[1][-1] for one in losses]))


FIGURE = Figure("cubic", "The law T^-3 and its constant", compute, sheet, ours=True)
