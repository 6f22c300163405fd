"""Eq. (4) under the literal constants of Theorem 6: it holds for one teacher and fails for three."""

import math
from typing import NamedTuple

import numpy as np
import xarray as xr

from tutelage.analysis import Mark, Panel, Sheet, line
from tutelage.dynamics import Record
from tutelage.papers.relu_teachers import measures
from tutelage.papers.relu_teachers.assumptions import assumptions
from tutelage.papers.relu_teachers.chain import first_phase_time, log10_sigma, norm_bounds
from tutelage.papers.relu_teachers.figures.shelf import OBSERVED
from tutelage.papers.relu_teachers.recipe import run
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size


class Case(NamedTuple):
    """A start that Theorem 6 allows; `sigma` and `zeta` are as large as it allows."""

    teachers: int
    students: int
    dim: int
    eps1: float
    angle: float

    @property
    def sigma(self) -> float:
        return 10 ** log10_sigma(math.log10(self.eps1), self.teachers, self.students, self.dim)

    @property
    def zeta(self) -> float:
        return self.eps1**2 / (10 * self.teachers)

    @property
    def until(self) -> float:
        """T1 in flow time."""
        return first_phase_time(self.eps1, self.teachers, self.students)


CASES = {"one": Case(1, 6, 100, 0.15, math.radians(30)), "three": Case(3, 6, 100, 0.15, math.radians(30))}
RECORDS = 300


def compute(settings: ReluTeachersSettings, size: Size) -> xr.DataTree:
    """theta_i* along the flow to T1, beside what Eq. (4) allows, for one teacher and for three."""
    return xr.DataTree.from_dict({name: _case(case) for name, case in CASES.items()})


def _case(case: Case) -> xr.Dataset:
    chosen = ReluTeachersSettings(
        dim=case.dim,
        teachers=case.teachers,
        students=case.students,
        norm=1.0,
        init="weak",
        scale=case.sigma,
        angle=case.angle,
        zeta=case.zeta,
        step=case.until,
        steps=1,
    )
    result = run(chosen, dynamics="flow", solver="explicit", record=Record(RECORDS, observables=OBSERVED))
    data = result.dataset.isel(seed=0, drop=True)
    angle = measures.home_angles(data).transpose("time", "student")
    time = data["time"].values
    start = result.start.first[0], result.teacher.first
    found = assumptions(*start, dim=case.dim, sigma=case.sigma, eps1=case.eps1)
    allowed = bound(time, np.sin(angle.values[0] / 2) ** 2, case)
    left = np.sin(angle.values / 2) ** 2 - case.eps1**2
    return xr.Dataset(
        {
            "angle": (("time", "student"), angle.values, {"long_name": "theta_i*", "units": "rad"}),
            "bound": (("time", "student"), 2 * np.arcsin(np.sqrt(case.eps1**2 + allowed)), {"units": "rad"}),
            "ratio": (("time", "student"), left / allowed, {"long_name": "left side over right side of Eq. (4)"}),
            **{name: ((), getattr(case, name)) for name in ("teachers", "students", "dim", "eps1", "sigma", "zeta")},
            **{name: ((), float(getattr(found, name))) for name in ("zeta_own", "zeta_other", "crowding", "own_ratio")},
            **{name: ((), float(getattr(found, name))) for name in ("shortest", "longest", "s1", "s2")},
            "least_group": ((), min(found.counts)),
            "largest_group": ((), max(found.counts)),
            "hypotheses": ((), bool(found.all)),
        },
        {"time": time},
    )


def bound(time: np.ndarray, first: np.ndarray, case: Case) -> np.ndarray:
    """The right side of Eq. (4), (time, student): `first` is sin^2(theta_i*(0)/2), |v| is 1."""
    growth = 1 + case.teachers * time / norm_bounds(case.sigma, case.dim)[1]
    return growth[:, None] ** (-1 / (8 * case.teachers)) * (first - case.eps1**2)


def sheet(tree: xr.DataTree) -> Sheet:
    one, three = tree["one"].to_dataset(), tree["three"].to_dataset()
    return Sheet(
        "Eq. (4) with the theorem's own constants: true for one teacher, false for three",
        (_angles(one), _angles(three), _ratios(one, three)),
        columns=3,
        caption=_caption(three)
        + f" With one teacher the ratio stays below {float(one['ratio'][1:].max()):.3g} after the start.",
    )


def _angles(data: xr.Dataset) -> Panel:
    time, angle = data["time"].values, np.degrees(data["angle"].values)
    allowed = np.degrees(data["bound"].values.max(1))
    count = int(data["teachers"])
    marks = [Mark(f"end of phase 1 in Eq. (5): 4 eps1 = {math.degrees(4 * float(data['eps1'])):.3g} deg",
                  level=math.degrees(4 * float(data["eps1"])))]  # fmt: skip
    if count > 1:
        mean = math.degrees(math.acos(1 / math.sqrt(count)))
        marks.append(Mark(f"mean direction: {mean:.1f} deg", level=mean))
        broken = first_violation(data)
        marks += [Mark("Eq. (4) broken", at=broken)] if math.isfinite(broken) else []
    return Panel(
        f"k = {count}, m = {int(data['students'])}, sigma = {float(data['sigma']):.1e}",
        "flow time s",
        "angle to the own teacher (deg)",
        (
            line(time[1:], angle.mean(1)[1:], r"$\theta_i^*$ (band: all students)", colour=0,
                 low=angle.min(1)[1:], high=angle.max(1)[1:]),
            line(time[1:], allowed[1:], "Eq. (4) asks to be below", colour=1, dash="dashed"),
        ),
        marks=tuple(marks),
        xscale="log",
        ylim=(0, 65),
    )  # fmt: skip


def first_violation(data: xr.Dataset) -> float:
    """The first recorded time at which some student breaks Eq. (4) for good; nan if none does."""
    broken = (data["ratio"].max("student") > 1).values
    last = np.flatnonzero(~broken)
    return float("nan") if not broken[-1] else float(data["time"].values[last[-1] + 1])


def _ratios(*parts: xr.Dataset) -> Panel:
    series = [
        line(data["time"][1:], data["ratio"].max("student")[1:], f"k = {int(data['teachers'])}", colour=2 + index)
        for index, data in enumerate(parts)
    ]
    return Panel(
        "left side over right side of Eq. (4)",
        "flow time s",
        "largest ratio of all students",
        tuple(series),
        marks=(Mark("Eq. (4) asks to be below 1", level=1.0),),
        xscale="log",
        yscale="log",
        ylim=(0.1, 3 * max(float(data["ratio"].max()) for data in parts)),
        note="where the left side is negative, Eq. (4) holds and nothing is drawn",
    )


def _caption(data: xr.Dataset) -> str:
    ends = np.degrees(data["angle"].values)
    verdict = "All hypotheses of Theorem 6 hold" if bool(data["hypotheses"]) else "Not all hypotheses hold"
    return (
        f"Gradient flow to T1, {int(data['students'])} students, k = {int(data['teachers'])}, d = {int(data['dim'])}, "
        f"eps1 = {float(data['eps1']):g}, |v| = 1. {verdict}: min zeta_i = {float(data['zeta_own']):.4f}, "
        f"10 k zeta / eps1^2 = {float(data['crowding']):.3f} (at most 1), eps1^2 / min zeta_i^3 = "
        f"{float(data['own_ratio']):.3f} (asked to be o(1)), groups of {int(data['least_group'])} to "
        f"{int(data['largest_group'])}, norms of {float(data['shortest']):.2e} to {float(data['longest']):.2e} in "
        f"[{float(data['s1']):.2e}, {float(data['s2']):.2e}], sigma at its largest allowed value. The angle falls to "
        f"{ends.min():.1f} deg, then rises and ends at {ends[-1].max():.1f} deg, with the ratio "
        f"{float(data['ratio'].isel(time=-1).max()):.0f}: the linear part of the ReLU turns the students to the mean "
        "direction."
    )


FIGURE = Figure("refutation", "Eq. (4) with the theorem's own constants", compute, sheet, ours=True)
