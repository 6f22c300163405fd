"""What to record of a run, when, and when to stop."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage._errors import BadInput
from tutelage.dynamics.events import Crossings, Event
from tutelage.dynamics.snapshot import Snapshot

RECORDS = 200


@dataclass(frozen=True)
class Observable:
    """A named quantity with the dimensions, description and units that its Dataset variable will have.

    `coords` has the values along a dimension, where they are not 0, 1, ...
    """

    name: str
    measure: Callable[[Snapshot], ArrayLike]
    dims: tuple[str, ...] = ()
    long_name: str = ""
    units: str = "1"
    coords: tuple[tuple[str, tuple[object, ...]], ...] = ()


Own = Mapping[str, Callable[[Snapshot], ArrayLike]] | tuple[Observable, ...]
When = int | Literal["all"] | ArrayLike


@dataclass(frozen=True)
class Record:
    """What is recorded, and when. What is None is left to the dynamics, or to the paper whose run it is.

    - `at`: how many log-spaced moments (200 if nothing is said), "all" updates, or the updates or times themselves.
    - `first`: the first of the log-spaced times of a flow after 0 (`until / 1e6`, at most 0.01, if None).
    - `observables`: names; all the standard ones if None. `own`: your own, `{"name": function of a Snapshot}` or
      `tt.Observable`s. `weights`: record the weights as well.
    - `events`: times to note, or to stop at; `crossings`: whole arrays of thresholds to note the times of.

    ```python
    >>> import tutelage as tt
    >>> tt.Record(50, observables=("loss",)).at
    50

    ```
    """

    at: When | None = None
    first: float | None = None
    observables: tuple[str, ...] | None = None
    own: Own | None = None
    weights: bool | None = None
    events: tuple[Event, ...] | None = None
    crossings: tuple[Crossings, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.at, str) and self.at != "all":
            raise BadInput(f"record is {self.at!r}; pass a number of points, 'all', or the updates to record.")
        for name in ("observables", "events", "crossings"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))

    def over(self, usual: "Record | None") -> "Record":
        """This, and what it leaves open as in `usual`."""
        if usual is None:
            return self
        pairs = {each.name: (getattr(self, each.name), getattr(usual, each.name)) for each in dataclasses.fields(self)}
        return Record(**{name: mine if mine is not None else theirs for name, (mine, theirs) in pairs.items()})

    def updates(self, steps: int) -> NDArray[np.float64]:
        """When to record a run of `steps` updates."""
        at = RECORDS if self.at is None else self.at
        if isinstance(at, str):
            return np.arange(steps + 1.0)
        if isinstance(at, int):
            return np.unique(np.concatenate([[0.0], np.round(np.geomspace(1, steps, max(at, 2)))]))
        return _given(at, steps)

    def times(self, until: float) -> NDArray[np.float64]:
        """When to record a flow to time `until`."""
        at = RECORDS if self.at is None else self.at
        if isinstance(at, str):
            raise BadInput("record='all' is for descent; a flow records a number of log-spaced times, or given times.")
        if isinstance(at, int):
            begin = min(until / 1e6, 0.01) if self.first is None else self.first
            return np.concatenate([[0.0], np.geomspace(begin, until, max(at, 2))])
        return _given(at, until)


def recorded(record: "Record | When | None") -> Record:
    """A `Record`, from one or from its `at` alone."""
    return record if isinstance(record, Record) else Record(record)


def _given(at: ArrayLike, end: float) -> NDArray[np.float64]:
    stops = np.unique(np.asarray(at, float))
    if not len(stops) or stops[0] < 0 or stops[-1] > end or not np.all(np.isfinite(stops)):
        raise BadInput(f"record must hold numbers between 0 and {end:g}.")
    return np.union1d(stops, [0.0, end])


@dataclass(frozen=True)
class Stop:
    """When a run ends before its horizon; checked at recording times.

    - `loss`: it has converged when its loss is at most this (0: never for that).
    - `gradient`: or when its gradient is at most this times the norm of the weights; None for what the dynamics
      takes, 1e-14 for descent and flow and 0 for SGD.
    - `steps`: the cap on steps of a seed, such as the solver's; None for that of the dynamics.

    ```python
    >>> import tutelage as tt
    >>> tt.Stop(loss=1e-9).gradient is None
    True

    ```
    """

    loss: float = 0.0
    gradient: float | None = None
    steps: int | None = None
