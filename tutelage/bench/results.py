"""From what a bench found to rows that people read: times, ratios, goals and whether they are met."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutelage.bench.contest import OURS

Found = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """Tutelage and one other in a contest. `ours` and `theirs` have median, low, high (quartiles), count and work."""

    case: str
    contest: str
    peer: str
    unit: str
    ours: dict[str, float]
    theirs: dict[str, float]
    goal: float | None
    limit: dict[str, Any] | None
    headline: bool

    @property
    def ratio(self) -> float:
        """How many times as fast tutelage is."""
        return self.theirs["median"] / self.ours["median"]

    @property
    def share(self) -> str:
        """The part of tutelage's time that nobody can do without, and whether it is as large as it is to be."""
        if self.limit is None:
            return ""
        part, goal = self.limit["seconds"] / self.ours["median"], self.limit["goal"]
        verdict = "" if goal is None else f" (goal {goal:.0%}: {'met' if part >= goal else 'not met'})"
        return f"{part:.0%}{verdict}"

    @property
    def verdict(self) -> str:
        """Whether the goal is met; if not, what the measured limit would allow."""
        if self.goal is None:
            return ""
        if self.ratio >= self.goal:
            return "met"
        if self.limit is None:
            return "not met"
        most = self.theirs["median"] / self.limit["seconds"]
        return f"not met; {self.limit['name']} alone: {most:.3g} times"


@dataclass(frozen=True)
class FirstRow:
    """First calls of tutelage and of one other; `goal`: the seconds that tutelage may need more."""

    case: str
    contest: str
    peer: str
    ours: dict[str, float]
    theirs: dict[str, float]
    goal: float | None

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "met" if self.ours["seconds"] <= self.theirs["seconds"] + self.goal else "not met"


def contests(found: Found) -> Iterator[tuple[str, Found]]:
    """All contests, each with the name of its case."""
    for name, case in found["cases"].items():
        yield from ((name, contest) for contest in case["contests"])


def rows(found: Found) -> list[Row]:
    """Later calls: one row for everybody with whom tutelage was compared."""
    return [
        Row(case, it["name"], peer, it["unit"], it["times"][OURS], theirs, it["goals"].get(peer), it.get("limit"),
            it["headline"])
        for case, it in contests(found)
        for peer, theirs in it.get("times", {}).items()
        if peer != OURS
    ]  # fmt: skip


def first_rows(found: Found) -> list[FirstRow]:
    """First calls, where they were measured."""
    return [
        FirstRow(case, it["name"], peer, it["first"][OURS], theirs, it["first_goals"].get(peer))
        for case, it in contests(found)
        for peer, theirs in it.get("first", {}).items()
        if peer != OURS
    ]


def troubles(found: Found) -> list[str]:
    """Contests that were not timed, because results differ, and cases that did not come to their end."""
    told = [f"{case}, {it['name']}: not timed: {it['refused']}" for case, it in contests(found) if "refused" in it]
    return told + [f"{name}: {case['unfinished']}." for name, case in found["cases"].items() if "unfinished" in case]


def left_out(found: Found) -> list[str]:
    """Packages that are not installed, and what was left out for want of them: one line each."""
    missing: dict[str, set[str]] = {}
    for _, it in contests(found):
        for entry, packages in it["left_out"].items():
            missing.setdefault(" and ".join(packages), set()).add(entry)
    return [
        f"{', '.join(sorted(entries))}: left out, for {packages} is not installed (pip install 'tutelage[bench]')."
        for packages, entries in sorted(missing.items())
    ]


def spoken(seconds: float) -> str:
    """Seconds as people say them, from nanoseconds on.

    ```python
    >>> from tutelage.bench.results import spoken
    >>> spoken(31.24e-6), spoken(0.0123), spoken(12.34)
    ('31.2 us', '12.3 ms', '12.3 s')

    ```
    """
    for name, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def ranged(times: dict[str, float]) -> str:
    """A median with its quartiles.

    ```python
    >>> from tutelage.bench.results import ranged
    >>> ranged({"median": 0.012, "low": 0.011, "high": 0.015})
    '12 ms (11 ms to 15 ms)'

    ```
    """
    return f"{spoken(times['median'])} ({spoken(times['low'])} to {spoken(times['high'])})"


def newest(folder: Path) -> Path | None:
    """The last file of a whole bench in a folder of results, by its date."""
    return max((path for path in folder.glob("*.json") if re.fullmatch(r"\d{4}-\d\d-\d\d", path.stem)), default=None)
