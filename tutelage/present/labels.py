"""Legends and marks, set where they cover least of the data. Needs a laid-out figure, so it comes last."""

from typing import Any

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from tutelage.analysis.panels import Mark, Panel
from tutelage.present.placing import Box, Crowd, best
from tutelage.present.theme import INK, QUIET

MOST_INSIDE = 8  # longer legends go beside the axes
PLACES: tuple[Any, ...] = (
    *("upper right", "upper left", "lower left", "lower right"),
    *("center right", "center left", "upper center", "lower center"),
)
RIGHT = " (right)"  # what a series on the right-hand axis adds to its label
Drawn = tuple[Panel, Axes, Axes | None]


def settle(figure: Figure, drawn: list[Drawn]) -> None:
    """Draw the marks, then place legends and labels and freeze the layout."""
    # Right-hand axes lie on top: words belong to the topmost, or a curve would cross them.
    pending = [
        [(mark, _mark(panel, axes, right or axes, mark)) for mark in panel.marks] for panel, axes, right in drawn
    ]
    figure.draw_without_rendering()
    crowds = [_crowd(*each) for each in drawn]
    for each, crowd in zip(drawn, crowds, strict=True):
        _legend(figure, *each, crowd)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for each, texts in zip(drawn, pending, strict=True):
        _, axes, right = each
        crowd = _crowd(*each)
        _add_marks(each[0], axes, crowd)
        legend = (right or axes).get_legend()
        if legend is not None:
            crowd.boxes.append(_box(legend, figure))
        for mark, text in texts:
            if text is not None:
                _set_down(figure, axes, mark, text, crowd)


# ---- what is in the way


def _crowd(panel: Panel, axes: Axes, right: Axes | None) -> Crowd:
    crowd = Crowd()
    for series in panel.series:
        own = right if series.right and right is not None else axes
        x = np.asarray(series.x, float)
        curves = [np.asarray(y, float) for y in (series.y, series.low, series.high) if y is not None]
        for y in curves:
            pixels = _pixels(own, x, y)
            if series.kind == "points":
                # A marker is as wide as a short stretch of curve.
                crowd.add_points(np.concatenate([pixels + shift for shift in ([0, 0], [4, 4], [-4, -4])]))
            else:
                crowd.add_curve(pixels)
    return crowd


def _pixels(axes: Axes, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = np.asarray(axes.transData.transform(np.stack([x, y], axis=1)))
    frame = axes.bbox
    inside = (pixels > [frame.x0 - 2, frame.y0 - 2]) & (pixels < [frame.x1 + 2, frame.y1 + 2])
    return np.where(inside.all(axis=1, keepdims=True), pixels, np.nan)


def _box(artist: Any, figure: Figure) -> Box:
    extent = artist.get_window_extent(figure.canvas.get_renderer())  # type: ignore[attr-defined]
    return (extent.x0, extent.y0, extent.x1, extent.y1)


# ---- legends


def _legend(figure: Figure, panel: Panel, axes: Axes, right: Axes | None, crowd: Crowd) -> None:
    entries = _entries(panel, axes, right)
    top = right or axes
    if len(entries) > MOST_INSIDE:
        shift = 6 + (40 if right is not None else 0) + (60 if panel.fields else 0)
        beside = axes.transAxes + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)
        _outside(top, entries, beside, anchor=(1, 1))
    elif entries:
        _inside(figure, panel, axes, top, entries, crowd)


def _entries(panel: Panel, axes: Axes, right: Axes | None) -> dict[str, Any]:
    """Handles by label, each label once, in the order of the series."""
    found: dict[str, Any] = {}
    for each in filter(None, (axes, right)):
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    order = [s.label for s in panel.series]
    return dict(sorted(found.items(), key=lambda item: order.index(item[0].removesuffix(RIGHT))))


def _inside(
    figure: Figure, panel: Panel, axes: Axes, top: Axes, entries: dict[str, Any], crowd: Crowd, enough: float = 10
) -> None:
    """The corner or side that hides least; under the axes when every one hides too much."""
    _add_marks(panel, axes, crowd)
    legend = top.legend(entries.values(), entries.keys(), loc="upper right")
    boxes = []
    for place in PLACES:
        legend.set_loc(place)
        boxes.append(_box(legend, figure))
    frame = axes.bbox
    chosen, cost = best(boxes, crowd, (frame.x0, frame.y0, frame.x1, frame.y1))
    legend.set_loc(PLACES[chosen])
    if cost <= enough:
        return
    lowest = axes.get_tightbbox(figure.canvas.get_renderer()).y0  # type: ignore[attr-defined, union-attr]
    down = (axes.bbox.y0 - lowest) / figure.dpi + 0.06
    below = axes.transAxes + ScaledTranslation(0, -down, figure.dpi_scale_trans)
    # Between columns matplotlib leaves two letters; the axes may still shrink a little.
    column = boxes[0][2] - boxes[0][0] + 16 / 72 * figure.dpi
    _outside(top, entries, below, anchor=(0, 0), ncols=max(1, min(len(entries), int(0.95 * frame.width / column))))


def _outside(top: Axes, entries: dict[str, Any], where: Any, anchor: tuple[float, float], ncols: int = 1) -> None:
    top.legend(entries.values(), entries.keys(), loc="upper left", bbox_to_anchor=anchor, bbox_transform=where,
               borderaxespad=0, ncols=ncols)  # fmt: skip


def _add_marks(panel: Panel, axes: Axes, crowd: Crowd) -> None:
    """Marks are lines too: a legend should not hide them."""
    for mark in panel.marks:
        if mark.at is not None:
            crowd.add_curve(_pixels(axes, np.full(2, mark.at), np.array(axes.get_ylim())), spacing=12)
        if mark.level is not None:
            crowd.add_curve(_pixels(axes, np.array(axes.get_xlim()), np.full(2, mark.level)), spacing=12)
        if mark.arrow is not None:
            crowd.add_curve(_pixels(axes, np.array(mark.arrow[::2]), np.array(mark.arrow[1::2])))


# ---- marks


def _mark(panel: Panel, axes: Axes, top: Axes, mark: Mark) -> Text | None:
    """Draw the mark and make its label, not yet in its place."""
    halo = [patheffects.withStroke(linewidth=2.4, foreground="white")]
    line = {"color": QUIET, "linewidth": 0.9, "zorder": 1.8}
    if mark.at is not None:
        axes.axvline(mark.at, linestyle=(0, (4, 2)), **line)  # type: ignore[arg-type]
    if mark.level is not None:
        axes.axhline(mark.level, linestyle=(0, (4, 2)), **line)  # type: ignore[arg-type]
    if mark.span is not None:
        axes.axvspan(*mark.span, color="#8899AA", alpha=0.0 if panel.fields else 0.13, linewidth=0, zorder=0.8)
        for end in mark.span if panel.fields else ():  # shading would change a field's colours
            axes.axvline(end, linestyle=(0, (4, 2)), **line)  # type: ignore[arg-type]
    if mark.arrow is not None:
        x0, y0, x1, y1 = mark.arrow
        shape = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 10}
        arrow = axes.annotate("", (x1, y1), (x0, y0), arrowprops=shape | {"path_effects": halo}, zorder=1.5)
        arrow.set_in_layout(False)
        arrow.arrow_patch.set_clip_path(axes.patch)  # type: ignore[union-attr]
    if not mark.label:
        return None
    text = top.text(0.5, 0.5, mark.label, transform=None, fontsize=7.5, color=INK, path_effects=halo, zorder=4,
                    clip_on=False)  # fmt: skip
    text.set_in_layout(False)
    return text


def _set_down(figure: Figure, axes: Axes, mark: Mark, text: Text, crowd: Crowd) -> None:
    """Move the label to its best place and tell the next ones about it."""
    frame = axes.bbox
    inside = (frame.x0, frame.y0, frame.x1, frame.y1)
    if mark.at is not None:
        text.set_rotation(90)
    elif mark.span is not None and not _fits(figure, axes, mark.span, text):
        text.set_rotation(90)
    left, bottom, right, top = _box(text, figure)
    width, height = right - left, top - bottom
    anchors = _anchors(axes, mark, width, height, inside)
    boxes = [(x, y, x + width, y + height) for x, y in anchors]
    if not boxes:  # the mark lies outside the axes
        text.remove()
        return
    chosen, _ = best([(a - 1.5, b - 1.5, c + 1.5, d + 1.5) for a, b, c, d in boxes], crowd, inside)
    crowd.boxes.append(boxes[chosen])
    _move(axes, text, boxes[chosen])


def _move(axes: Axes, text: Text, box: Box) -> None:
    """Pin the text's corner in axes coordinates, so that it stays right at any resolution."""
    text.set(ha="left", va="bottom", rotation_mode="default", transform=axes.transAxes)
    text.set_position(tuple(axes.transAxes.inverted().transform(box[:2])))


def _fits(figure: Figure, axes: Axes, span: tuple[float, float], text: Text) -> bool:
    low, high = _visible_span(axes, span)
    box = _box(text, figure)
    return high - low > box[2] - box[0] + 4


def _visible_span(axes: Axes, span: tuple[float, float]) -> tuple[float, float]:
    """The ends of the interval in pixels, cut to the axes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = axes.get_xaxis_transform().transform([(span[0], 0.0), (span[1], 0.0)])[:, 0]
    ends = np.nan_to_num(ends, nan=axes.bbox.x0)
    return float(np.clip(min(ends), axes.bbox.x0, axes.bbox.x1)), float(np.clip(max(ends), axes.bbox.x0, axes.bbox.x1))


def _anchors(axes: Axes, mark: Mark, width: float, height: float, inside: Box) -> list[tuple[float, float]]:
    """Lower-left corners to try, the preferred first."""
    x0, y0, x1, y1 = inside
    gap = 4.0
    heights = np.linspace(y1 - height - gap, y0 + gap, 25)  # from the top down
    if mark.at is not None:
        line = axes.get_xaxis_transform().transform((mark.at, 0.0))[0]
        if not x0 - 1 <= line <= x1 + 1:
            return []
        return [(side, y) for y in heights for side in (line + gap, line - gap - width)]
    if mark.span is not None:
        low, high = _visible_span(axes, mark.span)
        return [((low + high - width) / 2, y) for y in heights] if high > low else []
    if mark.level is not None:
        line = axes.get_yaxis_transform().transform((0.0, mark.level))[1]
        if not y0 - 1 <= line <= y1 + 1:
            return []
        sides = np.linspace(x1 - width - gap, x0 + gap, 13)  # from the right
        return [(x, y) for x in sides for y in (line + gap, line - height - gap)]
    if mark.arrow is not None:
        tail, head = axes.transData.transform([mark.arrow[:2], mark.arrow[2:]])
        middle = (tail + head) / 2
        places = [_around(point, head - tail, width, height, gap) for point in (middle, head, tail)]
        return [place for point in places for place in point if x0 <= place[0] <= x1 and y0 <= place[1] <= y1]
    return [(x0 + gap, y) for y in heights]


def _around(point: Any, along: Any, width: float, height: float, gap: float) -> list[tuple[float, float]]:
    """Places about a point of an arrow, those beside the arrow first."""
    x, y = float(point[0]), float(point[1])
    places = {
        (0, 1): (x - width / 2, y + gap),
        (0, -1): (x - width / 2, y - gap - height),
        (1, 0): (x + gap, y - height / 2),
        (-1, 0): (x - gap - width, y - height / 2),
    }
    return [places[way] for way in sorted(places, key=lambda way: abs(float(np.dot(way, along))))]
