"""What is compared: entries that compute the same thing, and how fast the first of them is to be."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

OURS = "tutelage"


@dataclass(frozen=True)
class Entry:
    """One who computes.

    - `call`: what is timed. It returns arrays of the host, so that nothing is still being computed when it ends.
    - `work`: how many updates (or whatever the contest counts) one call does; times are divided by it.
    - `shown`: what it computes, to be compared with the others; what `call` returns, if None.
    - `needs`: modules without which it is left out. They are imported before the clock of a first call starts.
    """

    name: str
    call: Callable[[], Any]
    work: float = 1.0
    shown: Callable[[], Any] | None = None
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        packages = dict.fromkeys(name.partition(".")[0] for name in self.needs)
        return tuple(name for name in packages if importlib.util.find_spec(name) is None)


@dataclass(frozen=True)
class Limit:
    """A time that nobody can do without, measured: `seconds()` for one unit of the contest's work.

    `goal`: which part of tutelage's time it is to be.
    """

    name: str
    seconds: Callable[[], float]
    goal: float | None = None


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference of two arrays, relative to the largest entry of the second; infinite if one is not finite.

    ```python
    >>> from tutelage.bench.contest import apart
    >>> apart([1.0, 2.0], [1.5, 2.0]), apart([1.0], [float("nan")])
    (0.25, inf)

    ```
    """
    one, other = np.asarray(ours, float), np.asarray(theirs, float)
    if one.shape != other.shape:
        raise ValueError(f"results of shapes {one.shape} and {other.shape} cannot be compared")
    if not (np.all(np.isfinite(one)) and np.all(np.isfinite(other))):
        return float("inf")
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


@dataclass(frozen=True)
class Contest:
    """Entries that compute the same thing, tutelage first.

    - `tolerance`: how far their results may be apart, by `apart(ours, theirs)`; in words, `agreement`.
    - `unit`: what a time is of: a "call", an "update", a "start".
    - `goals`: how many times as fast as whom tutelage is to be, in later calls.
    - `first`: first calls that are measured, each in a process of its own: tutelage is to need at most so many seconds
      more than this entry. None: measured without a goal.
    - `given`: makes (and keeps) the arrays that the others are given, before the clock of a first call starts.
    - `limit`: what bounds every answer from below. `headline`: whether it is in the short table.
    """

    name: str
    entries: tuple[Entry, ...]
    tolerance: float
    agreement: str = "largest difference, relative to the largest entry"
    apart: Callable[[Any, Any], float] = apart
    unit: str = "call"
    goals: Mapping[str, float] = field(default_factory=dict)
    first: Mapping[str, float | None] = field(default_factory=dict)
    given: Callable[[], Any] | None = None
    limit: Limit | None = None
    headline: bool = False

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.entries]
        assert names[0] == OURS and len(set(names)) == len(names), names
        assert {*self.goals, *self.first} <= set(names), (self.goals, self.first)

    @property
    def present(self) -> tuple[Entry, ...]:
        """Those whose packages are installed."""
        return tuple(entry for entry in self.entries if not entry.missing)

    def entry(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.name == name)


@dataclass(frozen=True)
class Case:
    """Contests about one thing, and tables that are no contests.

    `contests(quick)` and `tables(quick)` build with sizes of seconds if `quick`; the contests are built without
    computing anything. `reason`: why a goal is not met, shown where one is not.
    """

    title: str
    contests: Callable[[bool], Sequence[Contest]] = lambda quick: ()
    tables: Callable[[bool], Mapping[str, Any]] = lambda quick: {}
    reason: str = ""
