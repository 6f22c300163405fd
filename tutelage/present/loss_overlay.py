"""The loss curves of many runs in one picture. Read with h5py alone: a thousand files in a second or two."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from tutelage._plain import some
from tutelage.present.listing import choices, varied
from tutelage.present.pictures import write
from tutelage.present.theme import PALETTE, RC
from tutelage.store.store import Entry

Curve = NDArray[np.floating]
"""Times and losses, (record, 2)."""


def curve(path: Path) -> Curve | None:
    """The median loss over seeds where there is one above zero; None if the file cannot be read."""
    try:
        with h5py.File(path) as file:
            time, loss = np.asarray(file["time"], float), np.asarray(file["loss"], float)
    except (OSError, KeyError, RuntimeError, ValueError):
        return None
    if loss.ndim != 2 or loss.shape[1:] != time.shape:
        return None
    seen = np.isfinite(loss).any(0)
    both = np.stack([time[seen], np.nanmedian(loss[:, seen], 0)], 1)
    return both[(both > 0).all(1)]  # what logarithmic axes can show


def together(entries: Sequence[Entry], path: Path) -> int:
    """Draw the losses of finished runs, and say how many were drawn.

    Their colour is the one setting in which they differ, if that is a number, and their paper if not.
    """
    found = [(entry, curve(entry.result)) for entry in entries if entry.kind == "run" and entry.state == "finished"]
    kept = [(entry, each) for entry, each in found if each is not None and len(each)]
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(7.6, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set(xscale="log", yscale="log", xlabel="time", ylabel="loss, median over seeds")
        axes.set_title(f"Loss of {some(len(kept), 'run')}")
        _coloured(axes, [entry for entry, _ in kept], [each for _, each in kept])
    write(figure, path)
    return len(kept)


def _coloured(axes: Axes, entries: list[Entry], curves: list[Curve]) -> None:
    if not curves:
        return
    name = _number_that_differs(entries)
    colours = _by_number(axes, entries, name) if name else _by_paper(axes, entries)
    thin = float(np.clip(20 / len(curves), 0.4, 1.4))
    axes.add_collection(LineCollection(curves, colors=colours, linewidths=thin, alpha=0.8))
    axes.autoscale_view()


def _number_that_differs(entries: list[Entry]) -> str:
    names = varied(entries)
    if len(names) != 1 or len({entry.spec["paper"] for entry in entries}) > 1:
        return ""
    values = [choices(entry).get(names[0]) for entry in entries]
    return names[0] if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values) else ""


def _by_number(axes: Axes, entries: list[Entry], name: str) -> NDArray[np.floating]:
    values = np.array([float(choices(entry)[name]) for entry in entries])
    low, high = values.min(), values.max()
    wide = low > 0 and high >= 20 * low
    norm = LogNorm(low, high) if wide else Normalize(low, high)
    shades = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, 256)))  # its yellow end is too light
    shown = ScalarMappable(norm, shades)
    bar = axes.figure.colorbar(shown, ax=axes, pad=0.02, aspect=28, label=name)
    bar.outline.set_visible(False)
    return np.asarray(shown.to_rgba(values))


def _by_paper(axes: Axes, entries: list[Entry]) -> list[Any]:
    papers = sorted({str(entry.spec["paper"]) for entry in entries})
    colour = {paper: PALETTE[number % len(PALETTE)] for number, paper in enumerate(papers)}
    axes.legend(handles=[Line2D([], [], color=colour[paper], label=paper) for paper in papers])
    return [colour[str(entry.spec["paper"])] for entry in entries]
