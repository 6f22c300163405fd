"""Figures 2 and 3: SGD at the paper's settings, from a Gaussian start and from one with weak recovery."""

import functools
import math
from typing import Any

import numpy as np
import xarray as xr

from tutelage.analysis import BAND, GREY, Mark, Panel, Series, Sheet, band, line
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.section4 import (
    ALIGNED,
    FIGURE_2,
    FIGURE_3,
    SETTLED,
    Case,
    Init,
    late_slopes,
    traces,
    trained,
)
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.study import Figure, Size

INITS: tuple[Init, ...] = ("gaussian", "weak")
NAMES = {"gaussian": "Gaussian start", "weak": "weak recovery"}
SEEDS = {"quick": 1, "full": 5}
SYMBOLS = {"teachers": "k", "students": "m", "scale": "sigma", "eta": "eta"}


FIGURE_2_CASES: dict[Size, tuple[Case, ...]] = {
    "quick": (Case(2, 20, 1e-6, 1e-3), Case(4, 20, 1e-6, 1e-3)),
    "full": FIGURE_2,
}
FIGURE_3_CASES: dict[Size, tuple[Case, ...]] = {
    "quick": (Case(4, 20, 1e-4, 1e-3), Case(4, 20, 1e-6, 1e-3), Case(4, 20, 1e-6, 2e-3)),
    "full": FIGURE_3,
}
"""Quick ones have two shapes, and a case in common. Steps are twice as long, and no more: in fewer of them the noise of
the batches would not average out before norms have grown, and students would not collapse."""
UPDATES = {"quick": 0.3, "full": 1.0}  # of those in the settings; growth is over by then


def compute(settings: ReluTeachersSettings, size: Size, *, cases: dict[Size, tuple[Case, ...]]) -> xr.Dataset:
    """Runs of all cases from both starts; dimension, norm, batch and (in full) steps are those of `settings`."""
    settings = settings.model_copy(update={"steps": max(1, round(UPDATES[size] * settings.steps))})
    return _joined(settings, size, cases[size])


def _joined(settings: ReluTeachersSettings, size: Size, cases: tuple[Case, ...]) -> xr.Dataset:
    rows = [xr.concat([_traces(settings, case, init, size) for init in INITS], "init") for case in cases]
    about: dict[str, Any] = {name: ("case", [getattr(case, name) for case in cases]) for name in Case._fields}
    levels = [Plateau(case.teachers, case.students, settings.norm) for case in cases]
    about["plateau_loss"] = ("case", [level.loss for level in levels])
    about["plateau_norms"] = ("case", [level.sum_of_norms / (level.teachers * level.norm) for level in levels])
    attrs: dict[str, Any] = {name: getattr(settings, name) for name in ("dim", "norm", "batch", "steps")}
    attrs["varied"] = [name for name in Case._fields if len({getattr(case, name) for case in cases}) > 1]
    joined = xr.concat(rows, "case").assign_coords(init=list(INITS))
    return joined.assign(about).assign_attrs(attrs)


def _traces(settings: ReluTeachersSettings, case: Case, init: Init, size: Size) -> xr.Dataset:
    return traces(trained(settings, case, init, SEEDS[size]), case, settings.norm)


def sheet(dataset: xr.Dataset, *, title: str) -> Sheet:
    """Rows: cosines, norms, loss; columns: the cases."""
    cases = [dataset.isel(case=index) for index in range(dataset.sizes["case"])]
    rows = [[panel(one, first=not index) for index, one in enumerate(cases)] for panel in (_cosines, _norms, _losses)]
    panels = tuple(panel for row in rows for panel in row)
    return Sheet(title, panels, columns=len(cases), caption=_caption(dataset))


def _name(one: xr.Dataset, what: str) -> str:
    """The row, and what tells the case from its neighbours."""
    values = {symbol: one[field] for field, symbol in SYMBOLS.items() if field in one.attrs["varied"]}
    return f"{what}: " + ", ".join(f"{symbol} = {_short(value)}" for symbol, value in values.items())


def _short(value: xr.DataArray) -> str:
    return f"{float(value):g}" if value >= 1 else f"{float(value):.0e}".replace("e-0", "e-")


def _over_students(one: xr.Dataset, name: str, first: bool) -> tuple[Series, ...]:
    """The mean over students, with a band from the least to the largest; medians over seeds."""
    middle = one.median("seed")
    return tuple(
        line(
            one["step"],
            middle[f"{name}_mean"].sel(init=init),
            NAMES[init] if first else "",
            colour=colour,
            low=middle[f"{name}_least"].sel(init=init).values,
            high=middle[f"{name}_most"].sel(init=init).values,
        )
        for colour, init in enumerate(INITS)
    )


def _marks(one: xr.Dataset, *wanted: tuple[str, Init, str]) -> tuple[Mark, ...]:
    """The median over seeds of t1 or t2 from a start, where every seed has it."""
    found = [(label, float(np.median(one[name].sel(init=init).values))) for name, init, label in wanted]
    return tuple(Mark(label, at=time) for label, time in found if math.isfinite(time))


def _cosines(one: xr.Dataset, *, first: bool) -> Panel:
    level = 1 / math.sqrt(int(one.teachers))
    return Panel(
        _name(one, "cosine"),
        "updates T",
        "cosine to the nearest teacher",
        _over_students(one, "cosine", first),
        marks=(Mark(f"mean direction, {level:.3g}", level=level), *_marks(one, ("t1", "weak", "$t_1$"))),
        xscale="symlog",
        ylim=(-0.25, 1.05),
    )


def _norms(one: xr.Dataset, *, first: bool) -> Panel:
    level = float(one.plateau_norms)
    return Panel(
        _name(one, "norms"),
        "updates T",
        "|w| m / (k |v|)",
        _over_students(one, "norm", first),
        marks=(Mark(f"plateau, {level:.3g}", level=level), *_marks(one, ("t2", "weak", "$t_2$"))),
        xscale="symlog",
    )


def _losses(one: xr.Dataset, *, first: bool) -> Panel:
    step = one["step"].values
    curves = [
        band(step[1:], one["loss"].sel(init=init)[:, 1:], NAMES[init] if first else "", colour=colour)
        for colour, init in enumerate(INITS)
    ]
    late = step[step >= step[-1] / 5]
    end = float(one["loss"].sel(init="weak").isel(step=-1).median())
    cubic = line(late, end * (step[-1] / late) ** 3, "$T^{-3}$" if first else "", dash="dashed", colour=GREY)
    level = float(one["plateau_loss"])
    slopes = {init: float(np.median(late_slopes(one.sel(init=init)))) for init in INITS}
    return Panel(
        _name(one, "loss"),
        "updates T",
        "population loss",
        (*curves, cubic),
        marks=(
            Mark(f"plateau, {level:.3g}", level=level),
            *_marks(one, ("t1", "weak", "$t_1$"), ("t2", "weak", "$t_2$")),
        ),
        xscale="log",
        yscale="log",
        note=f"slope over the second half: {slopes['gaussian']:.2f} (Gaussian), {slopes['weak']:.2f} (weak)",
    )


def _caption(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    fixed = [f"{s} = {_short(dataset[name][0])}" for name, s in SYMBOLS.items() if name not in about["varied"]]
    reached = dataset["mean_cosine"].max("step").median("seed")
    low, high = float(reached.min()), float(reached.max())
    return (
        f"Online SGD, batch {about['batch']}, d = {about['dim']}, |v| = {about['norm']:g}, {about['steps']} updates, "
        f"{', '.join(fixed)}, {dataset.sizes['seed']} seed(s); the loss is the exact population loss. Bands: from the "
        f"least to the largest student (cosines, norms), {BAND} of the seeds (loss). Vertical lines, of weak "
        f"recovery: at t1 the mean cosine to the nearest teacher passes {ALIGNED:g} for good, at t2 the mean norm "
        f"passes {SETTLED:g} of the balanced one. Every run first collapses onto the mean direction of the teachers "
        f"(the least cosine of a student to it reaches {low:.3f} to {high:.3f}) and pauses on the plateau there, which "
        "the paper's three phases do not "
        "contain."
    )


_TITLES = {
    "fig2": "Figure 2: SGD for several numbers of teachers and students",
    "fig3": "Figure 3: SGD for several scales of the start and step sizes",
}
FIGURES = tuple(
    Figure(id, _TITLES[id], functools.partial(compute, cases=cases), functools.partial(sheet, title=_TITLES[id]))
    for id, cases in (("fig2", FIGURE_2_CASES), ("fig3", FIGURE_3_CASES))
)
