"""What to record of a run, when, and when to stop."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import flag, function, instance, mapping, put, real, refused, several, table, text, whole
from tutelage._errors import BadInput
from tutelage._limits import STEPS, fits
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

    def __post_init__(self) -> None:
        text("Observable: name", self.name)
        function("Observable: measure", self.measure, "a Snapshot")
        put(self, dims=several("Observable: dims", self.dims, str, "a tuple of names"))
        put(self, coords=several("Observable: coords", self.coords, tuple, "a tuple of pairs (dim, values)"))
        for name in ("long_name", "units"):
            instance(f"Observable: {name}", getattr(self, name), str, "text")


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
        kinds: dict[str, type] = {"observables": str, "events": Event, "crossings": Crossings}
        for name, kind in kinds.items():
            if (given := getattr(self, name)) is not None:
                things = "names" if kind is str else f"tt.{kind.__name__}"
                put(self, **{name: several(f"Record: {name}", given, kind, f"a tuple of {things}")})
        if self.at is not None:
            put(self, at=_moments(self.at))
        if self.first is not None:
            put(self, first=real("Record: first", self.first, above=0))
        if self.weights is not None:
            put(self, weights=flag("Record: weights", self.weights))
        if self.own is not None:
            put(self, own=_own(self.own))
        for name in ("observables", "events", "crossings"):
            _once(name, [getattr(each, "name", each) for each in getattr(self, name) or ()])

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
            few(steps + 1)
            return np.arange(steps + 1.0)
        if isinstance(at, int):
            few(at)
            return np.unique(np.concatenate([[0.0], np.round(np.geomspace(1, steps, max(at, 2)))]))
        return _given(at, steps, whole_numbers=True)

    def times(self, until: float) -> NDArray[np.float64]:
        """When to record a flow to time `until`."""
        at = RECORDS if self.at is None else self.at
        if isinstance(at, str):
            raise BadInput("record='all' is for descent; a flow records a number of log-spaced times, or given times.")
        if isinstance(at, int):
            few(at)
            begin = min(until / 1e6, 0.01) if self.first is None else self.first
            if begin >= until:
                raise BadInput(f"The first record is at time {begin:g}, but the flow ends at {until:g}; lower first.")
            return np.concatenate([[0.0], np.geomspace(begin, until, max(at, 2))])
        return _given(at, until)


def recorded(record: "Record | When | None") -> Record:
    """A `Record`, from one or from its `at` alone."""
    return record if isinstance(record, Record) else Record(record)


def _moments(at: Any) -> When:
    """How many moments, "all", or the moments themselves; numbers of NumPy are numbers."""
    if isinstance(at, str) and at == "all":
        return "all"
    expected = "a number of points, 'all', or the updates or times to record"
    if isinstance(at, (str, bytes, Mapping)):
        raise refused("record", at, expected)
    if np.ndim(at) == 0:
        return whole("record", at, least=1, most=STEPS)
    moments = table("record", at, expected, axes=(1,))
    if not len(moments):
        raise refused("record", at, expected)
    return moments if hasattr(at, "dtype") else tuple(moments.tolist())  # lists stay comparable


def _own(own: Any) -> Own:
    """A user's own observables, each with a function."""
    if isinstance(own, (list, tuple)):
        return several("Record: own", own, Observable, "a dictionary of functions, or a tuple of tt.Observable,")
    for name, measure in mapping("Record: own", own, "a dictionary of functions").items():
        function(f"The observable {text('The name of an observable', name)!r}", measure, "a Snapshot")
    given: Own = own
    return given


def _once(what: str, names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadInput(f"Record: {what} has the name {sorted(twice)[0]!r} twice; give each its own.")


def few(count: int) -> None:
    """Their times alone, while they are made, are a few arrays of this length."""
    fits(f"A list of {count} records", 40.0 * count, "ask for fewer records")


def _given(at: ArrayLike, end: float, *, whole_numbers: bool = False) -> NDArray[np.float64]:
    stops = np.unique(np.asarray(at, float))
    if stops[0] < 0 or stops[-1] > end:
        raise BadInput(f"record must hold numbers between 0 and {end:g}.")
    if whole_numbers and np.any(stops != np.floor(stops)):
        part = stops[stops != np.floor(stops)][0]
        raise BadInput(f"record has the update {part:g}, but whole numbers of updates were expected.")
    return np.union1d(stops, [0.0, end])


@dataclass(frozen=True)
class Stop:
    """When a run ends before its horizon; checked at recording times.

    - `loss`: it has converged when its loss is at most this (0: never for that).
    - `gradient`: or when its gradient is at most this times the norm of the weights (below 0: never for that); None
      for what the dynamics takes, 1e-14 for descent and flow and 0 for SGD.
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

    def __post_init__(self) -> None:
        put(self, loss=real("Stop: loss", self.loss, least=0))
        if self.gradient is not None:
            put(self, gradient=real("Stop: gradient", self.gradient))  # below 0: never for that
        if self.steps is not None:
            put(self, steps=whole("Stop: steps", self.steps, least=1, most=STEPS))
