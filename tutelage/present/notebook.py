"""A run in a notebook: its picture, and its summary as HTML."""

import base64
import html as markup
import io
from typing import Any

import matplotlib.figure
import xarray as xr

from tutelage._errors import unknown
from tutelage._plain import number
from tutelage.analysis.panels import Sheet
from tutelage.present import figures
from tutelage.present.overview import overview, variable_panel
from tutelage.trajectory.result import Run

SMALL = 60
"""Dots per inch of the picture beside a summary."""


def plot(
    run: Run, variable: str | None = None, *, title: str | None = None, width: float | None = None
) -> matplotlib.figure.Figure:
    """The overview of a run or, with a name, one of its variables over time."""
    return figures.draw(sheet(run, variable, title), width)


def sheet(run: Run, variable: str | None = None, title: str | None = None) -> Sheet:
    """The same as data."""
    if variable is None:
        return overview(run.dataset, title or "Run")
    timed = [str(name) for name, each in run.dataset.data_vars.items() if "time" in each.dims]
    if variable not in timed:
        raise unknown("variable of this run", variable, timed)
    return Sheet(title or "", (variable_panel(run.dataset, variable),))


def html(run: Run) -> str:
    """A summary, the phases of the first seed, and a small picture; one string without scripts."""
    parts = [f"<b>{markup.escape(repr(run).partition(';')[0].strip('<'))}</b>", _facts(run), _phases(run)]
    if "loss" in run.dataset and "time" in run.dataset["loss"].dims:
        parts.append(_picture(run.dataset))
    return f"<div>{''.join(parts)}</div>"


def _facts(run: Run) -> str:
    summary = run.summary()
    rows = {"stopped": ", ".join(f"{count} {name}" for name, count in summary.get("stopped", {}).items())}
    for name in ("loss", "stop_time"):
        if summary.get(name):
            spread = summary[name]
            words = [number(spread[end]) for end in ("median", "min", "max")]
            rows[name.replace("_", " ")] = f"median {words[0]}, from {words[1]} to {words[2]}"
    if run.certificate is not None:
        rows["certificate"] = run.certificate.sentence
    return _table([(name, text) for name, text in rows.items() if text])


def _phases(run: Run) -> str:
    first = [phase for phase in run.phases if phase.seed == run.phases[0].seed]
    spans = [(phase.name, f"{number(phase.start)} to {number(phase.end)}") for phase in first]
    return _table(spans) if spans else ""


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{markup.escape(a)}</th><td>{markup.escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


def _picture(dataset: xr.Dataset) -> str:
    figure: Any = figures.draw(Sheet("", (variable_panel(dataset, "loss"),)))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=SMALL)
    content = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="loss over time" src="data:image/png;base64,{content}">'
