"""Checking that entries agree, and timing them in turn."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tutelage.bench.contest import Contest, Entry


class Disagreement(Exception):
    """Two entries computed different things: there is nothing to time."""


@dataclass(frozen=True)
class Plan:
    """How long to measure: `repeat` rounds. An entry that took `patience` seconds in all is left out of later ones,
    but not before its second."""

    quick: bool = False
    repeat: int = 5
    patience: float = 5.0


def checked(contest: Contest) -> dict[str, float]:
    """How far every other entry is from the first, which must be within the tolerance. All are compiled after this."""
    ours, *others = contest.present
    mine, found = _shown(ours), {}
    for other in others:
        found[other.name] = contest.apart(mine, _shown(other))
        if not found[other.name] <= contest.tolerance:
            raise Disagreement(
                f"{ours.name} and {other.name} differ by {found[other.name]:.3g}, but at most {contest.tolerance:g} "
                f"was expected ({contest.agreement})."
            )
    return found


def _shown(entry: Entry) -> object:
    if entry.shown is None:
        return entry.call()
    entry.call()  # the one that is timed is compiled as well
    return entry.shown()


def interleaved(entries: Iterable[Entry], plan: Plan) -> dict[str, list[float]]:
    """Seconds for a unit of work, call by call, taken in turn so that all see the same machine."""
    entries = tuple(entries)
    taken: dict[str, list[float]] = {entry.name: [] for entry in entries}
    for turn in range(plan.repeat):
        for entry in entries:
            seconds = taken[entry.name]
            if turn >= 2 and sum(seconds) * entry.work > plan.patience:
                continue
            start = time.perf_counter()
            entry.call()
            seconds.append((time.perf_counter() - start) / entry.work)
    return taken


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
    return {"median": middle, "low": low, "high": high, "count": len(seconds)}
