"""The table of a store's runs. Without JAX, xarray and rich, so that a thousand runs are listed at once."""

import json
import time
from collections.abc import Sequence
from typing import Any

import typer

from tutelage._plain import duration, number
from tutelage.store.store import Entry

MOST = 4  # settings shown
_COLOURS = {"finished": "green", "unfinished": "yellow", "running": "blue", "damaged": "red"}


def listing(entries: Sequence[Entry], asked: Sequence[str] = ()) -> None:
    """One line per run, with the settings that were asked about and those in which the listed runs differ.

    What is damaged is told below.
    """
    settings = {name for entry in entries for name in choices(entry)}
    differing = list(dict.fromkeys([*(name for name in asked if name in settings), *varied(entries)]))
    names = differing[:MOST]
    head = ("run", "kind", "paper", "state", *names, "seeds", "loss", "took", "age")
    now = time.time()
    lines = _aligned([head, *(_row(entry, names, now) for entry in entries)])
    lines[1:] = [_coloured(line, entry) for line, entry in zip(lines[1:], entries, strict=True)]
    if len(differing) > MOST:
        lines.append(f"They also differ in {', '.join(differing[MOST:])}; --json shows all.")
    typer.echo("\n".join([*lines, *(f"{entry.id[:8]}: {entry.trouble}" for entry in entries if entry.trouble)]))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _coloured(line: str, entry: Entry) -> str:
    shown = _state(entry)
    return line.replace(f" {shown} ", f" {typer.style(shown, fg=_COLOURS[entry.state])} ", 1)


def _state(entry: Entry) -> str:
    """With a mark at what an older revision computed: it can be shown, but asking for it computes it again."""
    return f"{entry.state} (older)" if entry.outdated else entry.state


def varied(entries: Sequence[Entry]) -> list[str]:
    """The settings in which runs of the same paper differ, in the order of the papers' settings.

    ```python
    >>> from pathlib import Path
    >>> from tutelage.present.listing import varied
    >>> from tutelage.store.store import Entry
    >>> varied([Entry("0", Path(), {"settings": {"dim": dim, "width": 2}}) for dim in (10, 100)])
    ['dim']

    ```
    """
    seen: dict[str, dict[Any, set[str]]] = {}
    for entry in entries:
        for name, value in choices(entry).items():
            seen.setdefault(name, {}).setdefault(entry.spec.get("paper"), set()).add(json.dumps(value))
    return [name for name, papers in seen.items() if any(len(values) > 1 for values in papers.values())]


def choices(entry: Entry) -> dict[str, Any]:
    """What was chosen for a run: its settings and its dynamics."""
    own = {"dynamics": entry.spec["dynamics"]} if "dynamics" in entry.spec else {}
    settings: dict[str, Any] = entry.spec.get("settings", {})
    return own | settings


def _row(entry: Entry, names: Sequence[str], now: float) -> tuple[str, ...]:
    told = (entry.kind, str(entry.spec["paper"] or "–")) if entry.spec else ("–", "–")
    chosen = choices(entry)
    shown = (number(chosen[name]) if name in chosen else "–" for name in names)
    seeds = str(entry.value("seeds")) if entry.spec else "–"
    took = entry.summary.get("seconds")
    return (
        entry.id[:8],
        *told,
        _state(entry),
        *shown,
        seeds,
        number(entry.value("loss")),
        duration(took) if isinstance(took, (int, float)) else "–",
        age(now - entry.changed),
    )


def age(seconds: float) -> str:
    """How long ago, in one unit.

    ```python
    >>> from tutelage.present.listing import age
    >>> age(4.2), age(200), age(3 * 86400 + 5)
    ('4 s', '3 min', '3 days')

    ```
    """
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
