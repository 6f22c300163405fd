"""Pictures of a sweep, as data: a measure over one setting with its fits, or over two as a phase diagram."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tutelage._errors import BadInput
from tutelage._plain import number, some
from tutelage._types import Numbers
from tutelage.analysis.panels import BAND, GREY, Field, Panel, Scale, Series, Sheet, line
from tutelage.analysis.scaling import Choice, Fit
from tutelage.study.contours import contour
from tutelage.study.sweep_data import (
    LEVEL,
    Curve,
    axis_label,
    curves_of,
    limits,
    listed,
    long_name,
    measured,
    probabilities,
    spread_to_come,
    trend_axes,
)

COLOURS = 6  # of the house; more curves than that differ by their markers
MARKERS = "osDvP*X"


def trend(
    dataset: xr.Dataset,
    measure: str,
    fits: Sequence[Fit | Choice] | Mapping[Hashable, Fit | Choice] = (),
    over: str | None = None,
) -> Sheet:
    """A measure of a sweep over one setting: medians with bars, or probabilities with exact intervals.

    `over` is the setting on the x axis, the first with numbers if it is not given; each value of a second one has a
    curve of its own. Values that had not come when a run ended are arrows at that time. `fits` are drawn as lines; if
    there is a second setting, they are given by its values. The law of the measure is dashed, and so is the law of a
    `Choice` that was asked for and is not the best.

    ```python
    >>> import numpy as np, xarray as xr
    >>> from tutelage.study.charts import trend
    >>> time = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("dim", "seed"), coords={"dim": [10, 1000]})
    >>> sheet = trend(xr.Dataset({"time": time.assign_attrs(long_name="time of recovery")}), "time")
    >>> sheet.panels[0].xscale, sheet.panels[0].series[-1].y
    ('log', array([1.5, 3.5]))

    ```
    """
    found = measured(dataset, measure)
    axis, other = trend_axes(dataset, measure, over)
    curves = list(curves_of(dataset, measure, axis, other))
    by_curve = _by_curve(fits, curves, measure, other)
    chance = found.attrs.get("kind") == "chance"
    series = _alone(curves[0], by_curve[0], chance) if len(curves) == 1 else _together(curves, by_curve, chance)
    xscale = _scale(np.concatenate([curve.x for curve in curves]))
    shown = np.concatenate([np.ravel(each.y) for each in series])
    panel = Panel(
        "",
        axis_label(dataset[axis]),
        f"probability: {axis_label(found)}" if chance else axis_label(found),
        tuple(series),
        xscale=xscale,
        yscale="linear" if chance else _scale(shown[np.isfinite(shown)]),
        ylim=(-0.03, 1.03) if chance else None,
    )
    title = f"{_capital(long_name(found))} against {long_name(dataset[axis])}"
    sentences = [
        f"{f'{curve.label}: ' if curve.label else ''}{each.sentence}{f', {said}' if said else ''}."
        for curve, fits in zip(curves, by_curve, strict=True)
        for each, said in fits
    ]
    return Sheet(title, (panel,), columns=1, caption=" ".join([_explained(curves, chance), *sentences]))


def diagram(dataset: xr.Dataset, measure: str) -> Sheet:
    """A phase diagram: a measure of a sweep over a grid of two settings, in colours.

    The first setting is along x, the second along y. A number is the mean over seeds; a time their median, since some
    may be still to come; a chance the probability of a success, with half the width of its exact interval in a second
    panel. If the measure has a law, so does the diagram: a panel of its own, and on the measured one the line where it
    predicts 1/2, or lines of equal value. Cells not done are blank.
    """
    cells = _Cells.of(dataset, measure)
    overlays, note = _overlays(cells)
    word = {"chance": "probability", "time": "median"}.get(cells.kind, "mean")
    ends = (0.0, 1.0) if cells.kind == "chance" else _ends(cells.middle, cells.law)
    name = axis_label(dataset[measure])
    panels = [cells.panel("measured", cells.middle, f"{word}: {name}", ends, overlays, note)]
    if cells.kind == "chance":
        low, _, high = probabilities(cells.values)
        panels.append(cells.panel("uncertainty", (high - low) / 2, f"half-width of the {100 * LEVEL:g} % interval"))
    if cells.law is not None:
        panels.append(cells.panel("predicted", cells.law, f"law: {name}", ends))
    x, y = (long_name(cells.axes[dim]) for dim in (1, 0))
    caption = f"Each cell has {some(cells.values.shape[-1], 'seed')}. {note}".strip()
    return Sheet(f"{_capital(long_name(dataset[measure]))} over {x} and {y}", tuple(panels), len(panels), caption)


# ---- a trend


Drawn = list[tuple[Fit, str]]
"""Fits, and what is said against each."""


def _drawn(fits: Sequence[Fit | Choice]) -> Drawn:
    return [each for fit in fits for each in (fit.drawn if isinstance(fit, Choice) else [(fit, "")])]


def _by_curve(fits: Any, curves: list[Curve], measure: str, other: str | None) -> list[Drawn]:
    """The fits of each curve."""
    if isinstance(fits, Mapping):
        values = [curve.value for curve in curves]
        if strange := [value for value in fits if value not in values]:
            known = listed([str(value) for value in values])
            raise BadInput(f"There is a fit for {other} = {strange[0]}, but its values are {known}; leave it out.")
        return [_drawn([fits[value]]) if value in fits else [] for value in values]
    if len(curves) > 1 and fits:
        raise BadInput(
            f"{measure!r} has a curve for each value of {other}, but the fits do not say which is whose; give them as "
            "a dictionary from its values."
        )
    return [_drawn(fits), *([] for _ in curves[1:])]


def _alone(curve: Curve, fits: Drawn, chance: bool) -> list[Series]:
    """One curve: every seed, what is still to come, the law, each fit in a colour of its own, and the points."""
    series = [] if chance else [_seeds(curve)]
    series += _censored([curve], 0)
    if curve.law is not None:
        # A law between scattered points depends on other settings as well: it has no line.
        style: Any = {"kind": "points", "marker": "x"} if curve.scattered else {"dash": "dashed"}
        series.append(line(curve.x, curve.law, "law", colour=GREY, **style))
    series += [_fitted(fit, curve, said, 1 + place, alone=True) for place, (fit, said) in enumerate(fits)]
    seeds = some(curve.values.shape[1], "seed")
    return [*series, _points(curve, f"{'probability' if chance else f'median, {BAND}'}, {seeds}", 0, chance)]


def _together(curves: list[Curve], by_curve: list[Drawn], chance: bool) -> list[Series]:
    """Several curves, each with its law and fit in its colour; the legend says once in grey what a line is."""
    series = _censored(curves, GREY)
    for index, (curve, fits) in enumerate(zip(curves, by_curve, strict=True)):
        if curve.law is not None:
            series.append(line(curve.x, curve.law, dash="dashed", colour=index % COLOURS))
        series += [_fitted(fit, curve, said, index) for fit, said in fits if not said]
    series += [_points(curve, curve.label, index, chance) for index, curve in enumerate(curves)]
    if any(by_curve):
        series.append(line([], [], "fit", colour=GREY))
    if any(curve.law is not None for curve in curves):
        series.append(line([], [], "law", dash="dashed", colour=GREY))
    return series


def _seeds(curve: Curve) -> Series:
    """Every seed, faint."""
    x = np.repeat(curve.x, curve.values.shape[1])
    return line(x, curve.values.ravel(), "seeds", kind="points", faint=True, colour=0, marker=".")


def _censored(curves: list[Curve], colour: int) -> list[Series]:
    """An arrow at each limit, once where several seeds have the same."""
    found = [(curve.x[i], curve.limit[i, j]) for curve in curves for i, j in np.argwhere(np.isfinite(curve.limit))]
    if not found:
        return []
    x, y = np.unique(found, axis=0).T
    return [line(x, y, "still to come when the run ended", kind="points", colour=colour, marker="^")]


def _fitted(fit: Fit, curve: Curve, said: str, colour: int, alone: bool = False) -> Series:
    """A fitted law, over the range of x; dashed if something is said against it. Alone, the legend tells it."""
    label = f"{said or 'fit'}: {fit.expression}" if alone else ""
    ends = curve.x[0], curve.x[-1]
    fine = np.geomspace(*ends, 200) if _scale(curve.x) == "log" else np.linspace(*ends, 200)
    return line(fine, fit.predict(fine), label, dash="dashed" if said else "solid", colour=colour % COLOURS)


def _points(curve: Curve, label: str, index: int, chance: bool) -> Series:
    """Medians or probabilities, with bars."""
    low, middle, high = probabilities(curve.values) if chance else spread_to_come(curve.values, curve.limit)
    marker = MARKERS[index // COLOURS % len(MARKERS)]
    return line(curve.x, middle, label, kind="points", low=low, high=high, colour=index % COLOURS, marker=marker)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _scale(values: Numbers) -> Scale:
    """A log axis for positive values over a decade or more."""
    return "log" if values.size and values.min() > 0 and values.max() >= 10 * values.min() else "linear"


def _explained(curves: list[Curve], chance: bool) -> str:
    if chance:
        return f"Bars are exact {100 * LEVEL:g} % binomial intervals."
    late = sum(int(np.isfinite(curve.limit).sum()) for curve in curves)
    words = f"Points are medians, bars: {BAND}."
    return f"{words} Arrows: {some(late, 'value')} still to come when the run ended." if late else words


# ---- a phase diagram


@dataclass(frozen=True)
class _Cells:
    """A measure over two settings, the `axes` of rows and columns: `values`, `limit` (row, column, seed), `law`."""

    axes: tuple[xr.DataArray, xr.DataArray]
    kind: str
    values: Numbers
    limit: Numbers
    law: Numbers | None

    @classmethod
    def of(cls, dataset: xr.Dataset, measure: str) -> "_Cells":
        found = measured(dataset, measure)
        dims = tuple(str(dim) for dim in found.dims if dim != "seed")
        if len(dims) != 2 or "point" in dims:
            raise BadInput(
                f"A phase diagram is over a grid of two settings, but {measure!r} has {listed(dims)}; sweep over a "
                "grid of two, or draw its trend."
            )
        dims = dims[::-1]
        values = found.transpose(*dims, "seed").values.astype(float)
        law = dataset[f"{measure}_law"].transpose(*dims).values.astype(float) if f"{measure}_law" in dataset else None
        axes = dataset[dims[0]], dataset[dims[1]]
        return cls(axes, found.attrs.get("kind", "number"), values, limits(dataset, measure, dims), law)

    @property
    def middle(self) -> Numbers:
        """What a cell shows; nan where there is nothing."""
        if self.kind == "chance":
            return probabilities(self.values)[1]
        if self.kind == "time":
            return spread_to_come(self.values, self.limit)[1]
        counts = np.isfinite(self.values).sum(-1)
        mean: Numbers = np.nansum(self.values, -1) / np.where(counts > 0, counts, np.nan)
        return mean

    def panel(
        self,
        title: str,
        values: Numbers,
        label: str,
        ends: tuple[float, float] | None = None,
        series: tuple[Series, ...] = (),
        note: str = "",
    ) -> Panel:
        rows, columns = (tuple(axis.values.tolist()) for axis in self.axes)
        x, y = np.arange(len(columns), dtype=float), np.arange(len(rows), dtype=float)
        table = Field(x, y, values, label, cells=True, columns=columns, rows=rows, ends=ends or _ends(values))
        return Panel(title, axis_label(self.axes[1]), axis_label(self.axes[0]), series, (table,), note=note)


def _ends(*tables: Numbers | None) -> tuple[float, float]:
    """The ends of the colours: of all that is known."""
    known = np.concatenate([table[np.isfinite(table)] for table in tables if table is not None])
    return (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)


def _overlays(cells: _Cells) -> tuple[tuple[Series, ...], str]:
    """On the measured cells: lines of the law, and arrows where most seeds are still to come; and what they are."""
    drawn, words = [], []
    if cells.law is not None and (lines := _contours(cells.law, cells.kind)):
        drawn += [line(*each, colour=1) for each in lines.values()]
        levels = "1/2" if cells.kind == "chance" else ", ".join(map(number, lines))
        words.append(f"{'Line' if len(lines) == 1 else 'Lines'}: where the law predicts {levels}.")
    rows, columns = np.nonzero(np.isnan(cells.middle) & np.isfinite(cells.limit).any(-1))
    if rows.size:
        drawn.append(line(columns, rows, kind="points", marker="^", colour=1))
        words.append("Arrows: half of the seeds or more were still to come when the run ended.")
    if (np.isnan(cells.values) & np.isnan(cells.limit)).all(-1).any():
        words.append("Blank cells are not done.")
    return tuple(drawn), " ".join(words)


def _contours(law: Numbers, kind: str) -> dict[float, tuple[Numbers, Numbers]]:
    """Lines of the law by level, those that there are; between cells it is linear, or its logarithm over decades."""
    low, high = _ends(law)
    if kind == "chance":
        found = {0.5: contour(law, 0.5)}
    elif low > 0 and high >= 10 * low:
        decades = np.arange(np.ceil(np.log10(low)), np.ceil(np.log10(high)))
        chosen = decades[:: 1 + len(decades) // 5]
        found = {float(10.0**decade): contour(np.log10(law), decade) for decade in chosen}
    else:
        rounded = {float(f"{low + part * (high - low):.2g}") for part in (0.25, 0.5, 0.75)}
        found = {level: contour(law, level) for level in sorted(rounded)}
    return {level: lines for level, lines in found.items() if lines[0].size}
