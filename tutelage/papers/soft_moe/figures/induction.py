"""Where the induction ends: Definition 1's errors over their bound, from iid and from orthonormal starts."""

import math

import numpy as np
import xarray as xr

from tutelage.analysis import GREY, Mark, Panel, Series, Sheet, line
from tutelage.papers.soft_moe.induction import BETA_6, DIMS, SEEDS, Course, Init, courses, largest
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.study import Figure, Size

STARTS: tuple[Init, ...] = ("iid", "orthonormal")
NAMES = {
    "i2": "two experts, I2",
    "i1": "two routers, I1",
    "three": "expert and teacher, eps_3",
    "one": "router and teacher, eps_1",
    "zeta": "crosswise, zeta",
}
POINTS = 401


def compute(settings: SoftMoeSettings, size: Size) -> xr.DataTree:
    """The errors of level 1 of the first start; T_c and the predicted recovery of all starts."""
    dim, count = DIMS[size][-1], SEEDS[size]
    parts: dict[str, xr.Dataset] = {init: _errors(courses(init, dim, count)) for init in STARTS}
    about = {"dim": dim, "seeds": min(one.sizes["seed"] for one in parts.values())}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=about), **parts})


def _errors(found: tuple[Course, ...]) -> xr.Dataset:
    one, scale = found[0], math.sqrt(found[0].settings.dim)
    time = np.linspace(0, 0.3, POINTS)
    rows = {name: (("time"), np.interp(time, one.time / scale, part)) for name, part in _parts(one).items()}
    predicted = [each.start.race.pairs[0].time / scale for each in found]
    return xr.Dataset(
        rows
        | {
            "predicted": ("seed", predicted),
            "t_c": ("seed", [min(each.t_c(1) / scale, 1.0) for each in found]),
            "recovery": ("seed", [each.recovery(1) / scale for each in found]),
        },
        {"time": time},
        {"bound": one.bound, "students": one.settings.students, "teachers": one.settings.teachers},
    )


def _parts(one: Course) -> dict[str, np.ndarray]:
    """Errors over m^2 / (delta_P sqrt(d))."""
    seen, errors, apart = one.seen, one.errors(1), ~np.eye(one.settings.students, dtype=bool)
    zeta = np.maximum(largest(seen.zeta1), largest(seen.zeta2))
    parts = {"i2": largest(seen.i2[:, apart]), "i1": largest(seen.i1[:, apart]), "zeta": zeta}
    parts |= {"three": errors.three, "one": errors.one}
    return {name: np.maximum(parts[name] / one.bound, 1e-6) for name in NAMES}


def sheet(tree: xr.DataTree) -> Sheet:
    parts: dict[str, xr.Dataset] = {init: tree[init].to_dataset() for init in STARTS}
    return Sheet(
        "Where the induction ends: from iid starts two experts run apart before a teacher is learned",
        (*(_over_bound(parts[init], init) for init in STARTS), _ends(parts)),
        columns=3,
        caption=_caption(tree, parts),
    )


def _over_bound(one: xr.Dataset, init: str) -> Panel:
    time = one["time"].values
    series = [
        line(time, one[name].values, label if init == "iid" else "", colour=n)
        for n, (name, label) in enumerate(NAMES.items())
    ]
    t_c, met = float(one["t_c"][0]), float(one["recovery"][0])
    marks = [Mark("", level=BETA_6)]
    marks += [Mark(word, at=at) for word, at in (("T_c", t_c), ("recovery", met)) if at < time[-1]]
    return Panel(
        f"{init} start",
        "time / sqrt(d)",
        "error over m^2 / (delta_P sqrt(d))",
        tuple(series),
        marks=tuple(marks),
        yscale="log",
        ylim=(1e-4, 2e2),
    )


def _ends(parts: dict[str, xr.Dataset]) -> Panel:
    series: list[Series] = []
    for colour, (init, one) in enumerate(parts.items()):
        series.append(line(one["predicted"], np.minimum(one["t_c"], 0.4), init, kind="points", colour=colour))
    ends = [0.0, 0.32]
    series.append(line(ends, ends, "equal", dash="dashed", colour=GREY))
    return Panel(
        "all starts",
        "predicted recovery of the first pair / sqrt(d)",
        "T_c / sqrt(d)",
        tuple(series),
        note="T_c above 0.4 is shown there.",
    )


def _caption(tree: xr.DataTree, parts: dict[str, xr.Dataset]) -> str:
    about, first = tree.attrs, parts["iid"].attrs
    early = {init: int(np.sum(one["t_c"] < one["predicted"])) for init, one in parts.items()}
    never = int(np.sum(~np.isfinite(parts["iid"]["recovery"])))
    return (
        f"Exact flows, m = {first['students']}, m* = {first['teachers']}, d = {about['dim']:.0e}, {about['seeds']} "
        "starts of each kind that meet Condition 1. Left and middle: the largest sizes of Definition 1 at level 1 over "
        f"m^2 / (delta_P sqrt(d)) = {first['bound']:.3g}, delta_P = 1/7, for the first start; the dashed level is "
        f"beta_6 = {BETA_6:g}, T_c of (14) the first time at which an error is above it. Right: T_c against the "
        f"predicted recovery of the first pair of Eq. (6); dashed: equal. T_c comes first in {early['iid']} iid "
        f"starts, of which {never} never recover that pair, and in {early['orthonormal']} orthonormal "
        "ones, where it comes with the second recovery."
    )


FIGURE = Figure("induction", "Where the induction ends", compute, sheet, ours=True)
