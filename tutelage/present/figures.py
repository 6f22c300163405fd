"""Drawing a `Sheet`. With `labels` beside it, the only place that knows matplotlib.

Nothing global is touched: no pyplot, no backend switch, no rcParams left behind.
"""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import patheffects, ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm, CenteredNorm, Colormap, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from tutelage._checks import real
from tutelage._errors import BadInput
from tutelage.analysis.panels import Field, Panel, Series, Sheet
from tutelage.present import labels
from tutelage.present.pictures import write
from tutelage.present.theme import COLUMN, DASHES, FORMATS, INK, PALETTE, QUIET, RC

SIZES = {"*": 2.2, "X": 1.6, "x": 1.3, "+": 1.5, "P": 1.5, "^": 1.2, "v": 1.2, ".": 1.0}  # markers of equal weight


NARROW = 4.5
"""Inches below which panels stand one above the other."""


def draw(sheet: Sheet, width: float | None = None) -> Figure:
    """The sheet as a matplotlib figure; `width`: that of a paper's column in inches, with fonts to match.

    ```python
    >>> from tutelage.analysis.panels import Panel, Sheet, line
    >>> from tutelage.present.figures import draw
    >>> sheet = Sheet("Decay", (Panel("", "time", "loss", series=(line([0, 1, 2], [1, 0.5, 0.25], "loss"),)),))
    >>> [curve.get_label() for curve in draw(sheet).axes[0].lines]
    ['loss']

    ```
    """
    if width is not None:
        width = real("The width of a figure", width, least=1.5, most=30)
    with matplotlib.rc_context(RC if width is None else COLUMN):
        columns = max(1, min(sheet.columns, len(sheet.panels)))
        columns = columns if width is None or width >= NARROW else 1
        rows = max(1, math.ceil(len(sheet.panels) / columns))
        layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.04)
        size = _size(sheet, rows, columns) if width is None else (width, rows * 0.7 * width / columns)
        figure = Figure(figsize=size, layout=layout)
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(rows, columns)
        drawn = []
        for number, panel in enumerate(sheet.panels):
            axes = figure.add_subplot(grid[divmod(number, columns)])
            drawn.append((panel, axes, _panel(panel, axes)))
        if width is None:
            _title(figure, sheet.title)
        labels.settle(figure, drawn)
        return figure


def save(sheet: Sheet, path: str | Path, width: float | None = None) -> Path:
    """Draw the sheet into a file; the suffix (.png, .pdf or .svg) chooses the format. `width`: see `draw`."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise BadInput(
            f"Cannot draw into {path.name!r}: the suffix {path.suffix!r} is not one of {', '.join(FORMATS)}; try .png."
        )
    write(draw(sheet, width), path, RC if width is None else COLUMN)
    return path


def _size(sheet: Sheet, rows: int, columns: int) -> tuple[float, float]:
    """Width and height in inches; colour bars and right-hand axes get room of their own."""
    width, height = {1: (6.6, 4.1), 2: (5.2, 3.8), 3: (4.5, 3.6)}.get(columns, (4.1, 3.4))
    extra = max((0.5 for p in sheet.panels if p.fields or any(s.right for s in p.series)), default=0.0)
    return columns * (width + extra), rows * height + (0.35 if sheet.title else 0.0)


def _title(figure: Figure, title: str) -> None:
    if title:
        wide = int(figure.get_figwidth() * 72 / 7.2)
        figure.suptitle("\n".join(textwrap.wrap(title, wide)), x=0.012, ha="left", fontsize=12, fontweight="bold")


def _panel(panel: Panel, axes: Axes) -> Axes | None:
    """Draw the panel's data; returns the right-hand axes if there are any."""
    right = _twin(axes, panel) if any(s.right for s in panel.series) else None
    for field in panel.fields:
        _field(field, axes)
    for series, colour in zip(panel.series, _colours(panel.series), strict=True):
        _series(_visible(series, panel), right if series.right and right else axes, colour, bool(panel.fields))
    _scale(axes, "x", panel.xscale, [s.x for s in panel.series])
    _scale(axes, "y", panel.yscale, [s.y for s in panel.series if not s.right])
    if panel.xlim:
        axes.set_xlim(*panel.xlim)
    if panel.ylim:
        axes.set_ylim(*panel.ylim)
    if panel.names:
        axes.xaxis.set_major_locator(ticker.FixedLocator(list(range(len(panel.names)))))
        axes.xaxis.set_major_formatter(ticker.FixedFormatter(panel.names))
    if panel.equal_axes:
        axes.set_aspect("equal", adjustable="box" if panel.xlim or panel.ylim or panel.fields else "datalim")
    elif not panel.ylim and not panel.fields and any(m.at is not None or m.span is not None for m in panel.marks):
        _headroom(axes)
    for each in filter(None, (axes, right)):
        _ticks(each)
    _words(panel, axes)
    return right


def _twin(axes: Axes, panel: Panel) -> Axes:
    """Right-hand axes. Their grid would clash with the left one."""
    right = axes.twinx()
    right.set_ylabel(panel.right_label)
    right.spines["right"].set_visible(True)
    right.grid(False)
    return right


def _headroom(axes: Axes, part: float = 0.1) -> None:
    """A little room above the data, where the labels of marks can stand."""
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array(axes.get_ylim()))
    axes.set_ylim(top=float(scale.inverted().transform(np.array([high + part * (high - low)]))[0]))


def _words(panel: Panel, axes: Axes) -> None:
    """Title above; the note below the axis label, in small grey type."""
    wide, high = _room(axes)
    axes.set_title("\n".join(textwrap.wrap(panel.title, max(16, int(wide / 5.6)))), pad=6)
    axes.set_xlabel(panel.xlabel)
    axes.set_ylabel("\n".join(textwrap.wrap(panel.ylabel, max(24, int(high / 5.6)))))
    if panel.note:
        note = "\n".join(textwrap.wrap(panel.note, max(20, int(wide / 3.2))))
        axes.annotate(
            note, (0, 0), (0, -32), xycoords="axes fraction", textcoords="offset points", fontsize=7.5, color=QUIET,
            va="top", ha="left", linespacing=1.2,
        )  # fmt: skip


def _colours(series: tuple[Series, ...]) -> list[Any]:
    """A colour for each: its own index, or the next free one; more than the palette holds take a colour scale."""
    taken = {s.colour for s in series if s.colour is not None}
    free = [i for i in range(len(PALETTE)) if i not in taken]
    unnamed = sum(s.colour is None for s in series)
    if unnamed > len(free):
        following: Iterator[Any] = iter(matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, unnamed)))
    else:
        following = iter([PALETTE[i] for i in free])
    return [next(following) if s.colour is None else PALETTE[s.colour % len(PALETTE)] for s in series]


def _visible(series: Series, panel: Panel) -> Series:
    """The series with what a log axis cannot show (zero and below) cut out, instead of drawn as a plunge."""
    if panel.xscale == "log":
        series = replace(series, x=_positive(series.x))
    if panel.yscale == "log" and not series.right:
        y = _positive(series.y)
        series = replace(series, y=y, high=None if series.high is None else _positive(series.high))
        if series.low is not None:  # a band that reaches down to zero is drawn to a little below the curve
            series = replace(series, low=np.where(series.low > 0, series.low, 0.1 * y))
    return series


def _positive(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.where(np.asarray(values) > 0, values, np.nan)


def _series(series: Series, axes: Axes, colour: Any, on_field: bool) -> None:
    label = series.label + (labels.RIGHT if series.right and series.label else "")
    style: dict[str, Any] = {"color": colour, "label": label or "_", "zorder": 2.2 if series.faint else 2.5}
    if series.faint:
        style |= {"alpha": 0.35, "linewidth": 0.9}
    if on_field:
        style["path_effects"] = [patheffects.Stroke(linewidth=3.2, foreground="white"), patheffects.Normal()]
    if series.kind == "points":
        _points(series, axes, style, on_field)
        return
    if series.low is not None and series.high is not None:
        step: Any = "post" if series.kind == "steps" else None
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0, step=step, zorder=2)
    drawstyle = "steps-post" if series.kind == "steps" else "default"
    axes.plot(series.x, series.y, linestyle=DASHES[series.dash], drawstyle=drawstyle, **style)


def _points(series: Series, axes: Axes, style: dict[str, Any], on_field: bool) -> None:
    style.pop("path_effects", None)
    style |= {"marker": series.marker, "linestyle": "none", "markersize": 4.8 * SIZES.get(series.marker, 1.0)}
    if series.marker not in "x+1234|_,":  # filled markers get a thin light edge, so that neighbours stay apart
        style |= {"markeredgecolor": "white", "markeredgewidth": 0.8 if on_field else 0.4}
    if series.low is None or series.high is None:
        axes.plot(series.x, series.y, **style)
        return
    style.pop("linewidth", None)
    down, up = np.maximum(series.y - series.low, 0), np.maximum(series.high - series.y, 0)
    axes.errorbar(series.x, series.y, yerr=np.stack([down, up]), elinewidth=1.1, **style)


def _field(field: Field, axes: Axes) -> None:
    """Filled contours with thin lines, and a colour bar."""
    values = np.ma.masked_invalid(np.asarray(field.values, float))
    if field.cells:
        _cells(field, values, axes)
        return
    low, high = float(values.min()), float(values.max())
    norm, colours, levels = _shading(low, high, field.levels)
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    extend = beyond[low < levels[0], high > levels[-1]] if field.levels else "neither"
    filled = axes.contourf(field.x, field.y, values, levels=levels, norm=norm, cmap=colours, extend=extend)
    axes.contour(field.x, field.y, values, levels=levels, colors=INK, linewidths=0.3, alpha=0.5, linestyles="solid")
    axes.grid(False)
    bar = axes.figure.colorbar(filled, ax=axes, pad=0.02, aspect=28)
    bar.set_label(field.label)
    bar.outline.set_visible(False)
    if isinstance(norm, LogNorm):  # matplotlib's own choice may be half decades only, which it leaves without a label
        bar.locator = ticker.FixedLocator([level for level in levels if round(2 * math.log10(level)) % 2 == 0])
        bar.update_ticks()
    else:
        bar.locator = ticker.FixedLocator(levels) if field.levels else ticker.MaxNLocator(6)
        bar.formatter = ticker.FuncFormatter(_short) if field.levels else _plain()
        bar.update_ticks()


def _cells(field: Field, values: Any, axes: Axes) -> None:
    """A table in colours."""
    if field.ends is None:
        # All tables of cosines in one colour scale, so that they can be compared.
        size = max(1.0, float(abs(values).max()))
        norm, colours = Normalize(-size, size), matplotlib.colormaps["RdBu_r"]
    else:
        norm, colours, _ = _shading(*field.ends, ())
    edge = "white" if max(values.shape) <= 80 else "none"  # edges would hide cells that are narrower
    shown = axes.pcolormesh(field.x, field.y, values, cmap=colours, norm=norm, edgecolors=edge, linewidth=0.4)
    axes.grid(False)
    if field.written:
        _write(field, values, axes, shown.to_rgba(values))
    _whole_ticks(axes, field)
    bar = axes.figure.colorbar(shown, ax=axes, pad=0.02, aspect=28)
    if field.written == ".0f":  # counts
        bar.locator = ticker.MaxNLocator(6, integer=True)
    bar.set_label(field.label)
    bar.outline.set_visible(False)


def _write(field: Field, values: Any, axes: Axes, colours: NDArray[np.floating]) -> None:
    """Entries into their cells, dark on light and light on dark."""
    for (row, column), value in np.ma.ndenumerate(values):  # those that are not blank
        light = float(colours[row, column, :3] @ np.array([0.299, 0.587, 0.114])) > 0.55
        text, at = format(float(value), field.written), (field.x[column], field.y[row])
        axes.text(*at, text, ha="center", va="center", fontsize=8, color=INK if light else "white")


def _whole_ticks(axes: Axes, field: Field) -> None:
    """Rows and columns of a table are numbered, or have their names: as many as there is room for."""
    letters = int(_room(axes)[0] * 0.75 / 5)  # beside the colour bar, at the size of tick labels
    for axis, values, names in ((axes.xaxis, field.x, field.columns), (axes.yaxis, field.y, field.rows)):
        texts = _texts(names)
        each = max(1, len(values) // 12)
        while axis is axes.xaxis and sum(_width(text) + 2 for text in texts[::each]) > letters and each < len(values):
            each += 1
        axis.set_major_locator(ticker.FixedLocator(list(values[::each])))
        if names:
            axis.set_major_formatter(ticker.FixedFormatter(texts[::each]))


def _room(axes: Axes) -> tuple[float, float]:
    """Width and height of the axes, before the layout is settled."""
    place, (wide, high) = axes.get_position(), axes.figure.get_size_inches()  # type: ignore[union-attr]
    return float(place.width * wide * 72), float(place.height * high * 72)


def _texts(names: tuple[Any, ...]) -> list[str]:
    """Names of rows or columns as text: numbers plain, or those of 1000 and more by powers of ten if any is large."""
    sizes = [abs(name) for name in names if isinstance(name, (int, float)) and name]
    powers = bool(sizes) and not 1e-3 <= min(sizes) <= max(sizes) < 2e4

    def text(name: Any) -> str:
        if isinstance(name, bool) or not isinstance(name, (int, float)):
            return str(name)
        return _power(name) if powers and name and not 1e-2 <= abs(name) < 1e3 else _short(name)

    return [text(name) for name in names]


def _width(text: str) -> int:
    """About how many letters wide a label is; the signs of mathematics are not drawn."""
    return len(text.replace(r"\times", "x").translate({ord(sign): None for sign in "${}^ "}))


def _shading(low: float, high: float, levels: tuple[float, ...]) -> tuple[Normalize, Colormap, list[float]]:
    """Norm, colours, levels: light for small values, so that curves on top stay readable; two hues for two signs."""
    if not high > low:  # a constant field still gets one band
        low, high = low - 0.5, high + 0.5
    calm = ListedColormap(matplotlib.colormaps["YlGnBu"](np.linspace(0.02, 0.82, 256)))
    signs = matplotlib.colormaps["RdBu_r"]
    if levels:
        bands = BoundaryNorm(levels, 256, extend="both")
        return bands, signs if low < 0 < high else calm, list(levels)
    if low > 0 and high / low > 1e3:
        halves = np.arange(math.floor(2 * math.log10(low)), math.ceil(2 * math.log10(high)) + 1) / 2
        return LogNorm(low, high), calm, list(10.0**halves)
    chosen = list(ticker.MaxNLocator(16).tick_values(low, high))
    if low < 0 < high:
        return CenteredNorm(0.0, max(-low, high)), signs, chosen
    return Normalize(low, high), calm, chosen


def _scale(axes: Axes, which: str, scale: str, data: list[NDArray[np.floating]]) -> None:
    if scale == "linear":
        return
    values = np.concatenate([np.ravel(d) for d in data] or [np.zeros(0)])
    values = np.abs(values) if scale == "symlog" else values
    values = values[np.isfinite(values) & (values > 0)]
    set_scale = axes.set_xscale if which == "x" else axes.set_yscale
    if values.size == 0:  # a log axis would have no limits
        axes.text(0.5, 0.5, f"nothing to show on a {scale} axis", transform=axes.transAxes, ha="center", color=QUIET)
        return
    if scale == "log":
        set_scale("log", nonpositive="mask")
    else:
        smallest = max(values.min(), values.max() * 1e-8)
        set_scale("symlog", linthresh=10 ** math.floor(math.log10(smallest)), linscale=0.5)


def _ticks(axes: Axes) -> None:
    """Readable ticks: plain numbers in the middle range, powers of ten outside it, never a crowd of labels."""
    for axis, scale, limits in (
        (axes.xaxis, axes.get_xscale(), axes.get_xlim()),
        (axes.yaxis, axes.get_yscale(), axes.get_ylim()),
    ):
        if isinstance(axis.get_major_formatter(), ticker.FixedFormatter):  # rows and columns with names
            continue
        if scale == "log":
            _log_ticks(axis, *sorted(limits))
        elif scale == "linear":
            axis.set_major_formatter(_plain())
        elif sum(min(limits) <= tick <= max(limits) for tick in axis.get_major_locator()()) >= 2:
            axis.set_major_formatter(ticker.FuncFormatter(_power))
        else:  # symlog over less than a decade
            axis.set_major_locator(ticker.MaxNLocator(5))
            axis.set_major_formatter(_plain())


def _log_ticks(axis: Any, low: float, high: float) -> None:
    decades = math.log10(high / low) if low > 0 else 1.0
    plain = 9e-4 < low and high < 2e4
    if decades < 0.5:
        axis.set_major_locator(ticker.MaxNLocator(5))
        axis.set_major_formatter(_plain())
        axis.set_minor_locator(ticker.NullLocator())
        return
    subs = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0) if decades < 0.9 else (1.0, 2.0, 5.0) if decades < 1.8 else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=9))
    axis.set_major_formatter(ticker.FuncFormatter(_short if plain else _power))
    axis.set_minor_locator(ticker.LogLocator(subs=range(2, 10), numticks=60) if decades < 12 else ticker.NullLocator())
    axis.set_minor_formatter(ticker.NullFormatter())


def _plain() -> ticker.ScalarFormatter:
    formatter = ticker.ScalarFormatter(useMathText=True)
    formatter.set_powerlimits((-3, 5))
    return formatter


def _short(value: float, _: Any = None) -> str:
    return f"{value:g}"


def _power(value: float, _: Any = None) -> str:
    """`10^k` in mathematics, with its leading digit when that is not one."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    lead = value / 10.0**exponent
    digits = "" if abs(abs(lead) - 1) < 1e-9 else rf"{abs(lead):.3g} \times "
    return rf"${'-' if value < 0 else ''}{digits}10^{{{exponent}}}$"
