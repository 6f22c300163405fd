"""Numbers of a run, one per seed: an observable at the end, the time of an event, or a function of one's own."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tutelage._checks import function, instance, one_of, put, refused, several, text, whole
from tutelage._errors import BadInput, unknown
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.events import Event
from tutelage.dynamics.record import Record
from tutelage.dynamics.snapshot import Snapshot
from tutelage.problem.problem import Problem
from tutelage.trajectory.asked import Asked
from tutelage.trajectory.observables import chosen
from tutelage.trajectory.result import Run

Kind = Literal["number", "time", "chance"]
REDUCERS = ("max", "min", "mean", "sum", "count")


@dataclass(frozen=True)
class Measure:
    """A number that each seed of a run has.

    - `of(run)`: the numbers, one per seed; nan where there is none. Or a `Measured`, if it knows its own limits.
    - `kind`: a "number"; a "time", which is still to come when it is nan (censored at the time the seed ended); or a
      "chance", 1 for a success, 0 for none, nan while it is undecided.
    - `law(settings)`: what theory predicts for it, if it does: a number, or the probability of a success; nan where
      the law does not apply.

    So that many runs are cheap, it says what it reads:

    - `observables`: names of what must be recorded; None for all.
    - `records`: how many records are enough; None for as many as the paper makes.
    - `events`: what must be watched for, besides the paper's own.
    - `stop`: an event after which it no longer changes.

    ```python
    >>> import tutelage as tt
    >>> spread = tt.Measure("spread", "spread of the norms", lambda run: run.last("first_norm").std("student"))
    >>> spread.measured(tt.papers.both_layers(width=4).descend(seeds=3)).values.shape
    (3,)

    ```
    """

    name: str
    long_name: str
    of: Callable[[Run], "ArrayLike | Measured"]
    units: str = ""
    kind: Kind = "number"
    law: Callable[[Any], float] | None = None
    observables: tuple[str, ...] | None = None
    records: int | None = None
    events: tuple[Event, ...] = ()
    stop: Event | None = None

    def __post_init__(self) -> None:
        text("Measure: name", self.name)
        function("Measure: of", self.of, "a run")
        one_of("kind of a measure", self.kind, ["number", "time", "chance"])
        put(self, events=several("Measure: events", self.events, Event, "a tuple of tt.Event"))
        if self.law is not None:
            function("Measure: law", self.law, "settings")
        if self.observables is not None:
            names = several("Measure: observables", self.observables, str, "a tuple of names")
            put(self, observables=names)
        if self.records is not None:
            put(self, records=whole("Measure: records", self.records, least=1))
        if self.stop is not None:
            instance("Measure: stop", self.stop, Event, "a tt.Event")

    def measured(self, run: Run) -> "Measured":
        """The numbers of a run, checked."""
        seeds = run.dataset.sizes["seed"]
        found = self.of(run)
        own = found if isinstance(found, Measured) else None
        try:
            values = np.asarray(own.values if own else found, float)
        except (TypeError, ValueError):
            raise refused(f"What the measure {self.name!r} gives", found, "one number per seed") from None
        if values.shape != (seeds,):
            raise BadInput(
                f"The measure {self.name!r} has shape {values.shape}, but one number per seed, {(seeds,)}, "
                "was expected."
            )
        late = np.isnan(values) if self.kind == "time" else np.zeros(seeds, bool)
        return own or Measured(values, np.where(late, run.dataset["stop_time"].values, np.inf))


@dataclass(frozen=True)
class Measured:
    """Numbers, one per seed. Where a value is nan and `limit` is finite, the value is known to be above `limit`."""

    values: NDArray[np.float64]
    limit: NDArray[np.float64]


def needed(measures: Sequence[Measure]) -> Record:
    """A record that has what these measures read, and little more.

    A run is stopped early only when every one of them has a `stop`, and once all of these hold.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.trajectory.measures import needed
    >>> needed([tt.papers.soft_moe.measure("recovered")]).at
    2

    ```
    """
    record = Record()
    if not measures:
        return record
    if all(measure.observables is not None for measure in measures):
        names = _once(("loss", *(name for m in measures for name in m.observables or ())))
        record = replace(record, observables=names)
    if all(measure.records is not None for measure in measures):
        record = replace(record, at=max(measure.records or 2 for measure in measures))
    events = _once(event for measure in measures for event in measure.events)
    stops = _once(measure.stop.when for measure in measures if measure.stop)
    if all(measure.stop for measure in measures):
        events = (*events, Event("enough", _All(stops), stop=True))
    return replace(record, events=events) if events else record


def _once(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))


@dataclass(frozen=True)
class _All:
    """All conditions hold. Compares equal for equal conditions, so that all cells of a sweep share a compilation."""

    conditions: tuple[Callable[[Snapshot], Float[Array, ""]], ...]

    def __call__(self, view: Snapshot) -> Float[Array, ""]:
        return jnp.stack([condition(view) for condition in self.conditions]).min()


def phase_times(run: Run, name: str) -> NDArray[np.float64]:
    """When the phase of this name ended, seed by seed; nan where it was not found.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.trajectory.measures import phase_times
    >>> phase_times(tt.papers.both_layers().descend(seeds=2), "growth").round(1).shape
    (2,)

    ```
    """
    ends = {phase.seed: phase.end for phase in run.phases if phase.name == name}
    return np.array([ends.get(int(seed), np.nan) for seed in run.dataset["seed"].values])


def named(name: str, known: Sequence[Measure] = ()) -> Measure:
    """The measure of this name: one of the `known`, or one that any run has.

    Of any run: `final_NAME`, `largest_NAME` and `smallest_NAME` of an observable, the name of an event, or that of a
    variable with one value per seed. What has further axes is reduced: `final_overlap.max`, `expert_time.min`, and
    `expert_time.count` for the number of entries that are not nan.

    ```python
    >>> from tutelage.trajectory.measures import named
    >>> named("final_loss").long_name
    'final loss'

    ```
    """
    for measure in known:
        if measure.name == name:
            return measure
    stem, dot, reducer = name.partition(".")
    if dot and reducer not in REDUCERS:
        raise unknown(f"reducer of the measure {name!r}", reducer, REDUCERS)
    found = re.fullmatch(r"(final|largest|smallest)_(\w+)", stem)
    when, variable = found.groups() if found else ("", stem)
    time = variable.endswith("time") and reducer in ("", "max", "min")
    others = [measure.name for measure in known]
    return Measure(
        name,
        _words(when, variable, reducer),
        lambda run: _value(run, name, when, variable, reducer, others),
        kind="time" if time else "number",
        observables=(variable,) if when else (),
    )


def foreseen(asked: Asked) -> Run | None:
    """A run with the variables that the one asked for will have, and no numbers: what measures can be tried on.

    None where only the run itself can tell: that of several stages, or of experts.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.trajectory.measures import foreseen, named
    >>> asked = tt.papers.both_layers.recipe.asked(seeds=2)
    >>> named("final_overlap").measured(foreseen(asked))
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: 'final_overlap' has a value for each student x teacher; reduce them, for example
    final_overlap.max or final_overlap.min.

    ```
    """
    problem, record = asked.problem, asked.record
    if not (isinstance(asked.plan, AbstractDynamics) and isinstance(problem, Problem)):
        return None
    usual, wanted = (chosen(problem, each, None) for each in (replace(record, observables=None), record))
    dims = {each.name: ("seed", "time", *each.dims) for each in (*usual, *wanted)}
    dims |= {each.name: ("seed", *each.dims) for each in record.crossings or ()}
    dims |= dict.fromkeys(("stop_time", "solver_steps"), ("seed",))
    data = xr.Dataset({name: (axes, np.full((1,) * len(axes), np.nan)) for name, axes in dims.items()})
    data = data.assign(recorded=("seed", [1]), stopped=("seed", [""]))
    events = [event.name for event in record.events or ()]
    if events:
        data = data.assign(event_time=(("seed", "event"), np.full((1, len(events)), np.nan)), event=events)
    return Run(data)


def _words(when: str, variable: str, reducer: str) -> str:
    prefix = {"": "", "count": "number of entries of"}.get(reducer, reducer)
    return " ".join(filter(None, (prefix, when, variable.replace("_", " "))))


def _value(run: Run, name: str, when: str, variable: str, reducer: str, others: Sequence[str]) -> xr.DataArray:
    found = _over_time(run, when, variable, others)
    axes = [dim for dim in found.dims if dim != "seed"]
    if not axes:
        return found
    if not reducer:
        what = " x ".join(str(dim) for dim in axes)
        raise BadInput(f"{name!r} has a value for each {what}; reduce them, for example {name}.max or {name}.min.")
    if reducer == "count":
        return found.notnull().sum(axes)
    # The first of several times has come once one has; the last of them only when all have.
    reduced: xr.DataArray = getattr(found, reducer)(axes, skipna=reducer == "min")
    return reduced


def _over_time(run: Run, when: str, variable: str, others: Sequence[str]) -> xr.DataArray:
    data = run.dataset
    if not when and "event" in data.coords and variable in data["event"].values:
        return data["event_time"].sel(event=variable, drop=True)
    timed = {str(v) for v in data.data_vars if "time" in data[v].dims}
    if variable not in data.data_vars or (variable in timed) != bool(when):
        raise unknown("measure", f"{when}_{variable}".strip("_"), {*others, *_available(data, timed)})
    if when == "final":
        return run.last(variable)
    return getattr(data[variable], "max" if when == "largest" else "min")("time") if when else data[variable]


def _available(data: xr.Dataset, timed: set[str]) -> list[str]:
    single = {str(v) for v in data.data_vars if "seed" in data[v].dims} - timed - {"event_time", "stopped"}
    events = set(map(str, data["event"].values)) if "event" in data.coords else set()
    return [*(f"final_{name}" for name in timed), *single, *events]
