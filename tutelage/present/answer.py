"""What a run answers in a terminal: what happened, a plot with its phases, and what to type next."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from tutelage._errors import StopReason
from tutelage._plain import duration, number, some
from tutelage.present.sparkplot import sparkplot
from tutelage.present.terminal import entries, grid, over_seeds
from tutelage.trajectory.result import Run

TOLD = ("id", "folder", "read_from_store", "seeds", "stopped", "stopped_because", "frame", "stop_time", "loss")
"""What the sentences say already of a summary; what is left of it follows as a table."""


def answer(console: Console, run: Run, title: str) -> None:
    """Print it. Everything fits into 80 columns."""
    summary, phases = run.summary(), over_seeds([phase.record() for phase in run.phases or ()])
    console.print(f"[bold]{escape(title)}[/]")
    for sentence in sentences(run, phases):
        console.print(escape(sentence), highlight=False)
    if (plot := _plot(run, phases)) is not None:
        console.print("", plot, sep="\n", highlight=False, markup=False)
    console.print()
    head = ("", "phase", "from", "to", "predicted", "what it is")
    grid(console, "", head, [_row(letter, phase) for letter, phase in zip(LETTERS, phases, strict=False)])
    rest = {name: value for name, value in summary.items() if name not in (*TOLD, "phases", "certificate", "seconds")}
    if rest:
        entries(console, rest)
    for line in ends(run):
        console.print(escape(line), highlight=False, soft_wrap=True)


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def sentences(run: Run, phases: list[dict[str, Any]]) -> Iterator[str]:
    """What happened: the loss, why it stopped, and each phase whose end was predicted."""
    data = run.dataset
    seeds = some(data.sizes["seed"], "seed")
    if "loss" in data and "time" in data["loss"].dims:
        first, last = data["loss"].isel(time=0).values, run.last("loss").values
        if np.isfinite(first).any() and np.isfinite(last).any():
            spread = f" ({number(np.nanmin(last), 3)} to {number(np.nanmax(last), 3)})" if len(last) > 1 else ""
            yield (
                f"{seeds}: the loss went from {number(np.nanmedian(first), 3)} to {number(np.nanmedian(last), 3)}"
                f"{spread}{_at(data)}."
            )
    for reason in StopReason if "stopped" in data else ():
        if count := run.stopped.count(reason):
            yield f"{count} of {seeds}: {reason.sentence}" if count < len(run.stopped) else reason.sentence
    for phase in phases:
        if phase.get("predicted") is not None:
            yield f"{phase['name']} ended at {number(phase['end'], 4)}; predicted {number(phase['predicted'], 4)}."


def _at(data: Any) -> str:
    times = data["stop_time"].values if "stop_time" in data else np.array([np.nan])
    return f" by time {number(float(np.nanmedian(times)), 4)}" if np.isfinite(times).any() else ""


def _plot(run: Run, phases: list[dict[str, Any]]) -> str | None:
    """The median loss over seeds, with the letters of the phases where they end."""
    data = run.dataset
    if "loss" not in data or data["loss"].dims[-1:] != ("time",) or data.sizes["time"] < 3:
        return None
    loss = data["loss"].median([dim for dim in data["loss"].dims if dim != "time"])
    marks = {letter: float(phase["end"]) for letter, phase in zip(LETTERS, phases, strict=False)}
    return sparkplot(data["time"].values, loss.values, title="Loss, median over seeds", marks=marks)


def _row(letter: str, phase: dict[str, Any]) -> tuple[str, ...]:
    times = (number(phase[name], 4) if phase.get(name) is not None else "" for name in ("start", "end", "predicted"))
    return (letter, f"[bold]{escape(phase['name'])}[/]", *times, escape(phase.get("description", "")))


def ends(run: Run) -> Iterator[str]:
    """How long it took, where it is kept, and what to type next."""
    place = run.entry
    if place is None:
        yield f"Computed in {duration(run.seconds)}."
        return
    done = f"computed in {duration(run.seconds)}" if run.computed else "read from the store"
    yield f"Run {place.id[:8]}, {done}, kept in {place.folder}."
    yield f"Next: tutelage show {place.id[:8]} --open | --check | --figure run.png"
