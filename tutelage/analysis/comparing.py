"""One problem by several dynamics: how far apart they are, and how that shrinks with the dimension or with the step."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from tutelage._checks import function, instance, whole
from tutelage._errors import BadInput
from tutelage._extensions import extension
from tutelage._plain import number
from tutelage._types import Numbers
from tutelage.analysis.panels import BAND, Panel, Series, Sheet, band, line, spread
from tutelage.analysis.scaling import Fit, fit
from tutelage.dynamics.base import AbstractDynamics
from tutelage.problem.problem import AbstractProblem
from tutelage.trajectory.result import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Moves = AbstractDynamics | Callable[[int], AbstractDynamics]
"""A dynamics, or a function of the input dimension that gives one."""
MEASURED = ("loss", "overlap")
LEVEL = 0.95


@dataclass(frozen=True)
class Cases:
    """What is compared: dynamics by name, the first of which is the reference, along one axis or at one place."""

    problem: AbstractProblem | Callable[[int], AbstractProblem]
    moves: dict[str, Moves]
    axis: str
    values: tuple[int, ...]

    def at(self, value: int) -> tuple[AbstractProblem, dict[str, AbstractDynamics]]:
        """The problem and the dynamics at one value of the axis."""
        dim = value if self.axis == "dim" else None
        factor = value if self.axis == "finer" else 1
        moves = {name: finer(_moves(name, each, dim), factor) for name, each in self.moves.items()}
        return _problem(self.problem, dim), moves


def cases(
    problem: AbstractProblem | Callable[[int], AbstractProblem],
    moves: Mapping[str, Moves] | Sequence[AbstractDynamics],
    dims: Sequence[int] | None,
    finer: Sequence[int] | None,
) -> Cases:
    """What was asked for, or a sentence about what is wrong with it."""
    named = dict(moves) if isinstance(moves, Mapping) else _named(moves)
    if len(named) < 2:
        raise BadInput("compare: at least two dynamics were expected, such as [tt.Flow(50.0), tt.Ode(0.5, 50.0)].")
    if dims is not None and finer is not None:
        raise BadInput("compare: got dims and finer; pass one of them, so that there is one axis.")
    axis, given = ("dim", dims) if dims is not None else ("finer", finer)
    values = (1,) if given is None else tuple(whole(f"compare: {axis}", value, least=1) for value in given)
    if len(set(values)) < len(values) or not values:
        raise BadInput(f"compare: {axis} is {list(values)}, but different whole numbers were expected.")
    return Cases(problem, named, axis, values)


def _named(moves: Sequence[AbstractDynamics]) -> dict[str, Moves]:
    expected = "a dynamics such as tt.Flow(50.0)"
    listed = [instance("compare: dynamics", each, AbstractDynamics, expected) for each in moves]
    names = [each.name for each in listed]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise BadInput(f"compare: {twice[0]} is there twice; pass a dictionary, in which each dynamics has its name.")
    return dict(zip(names, listed, strict=True))


def _problem(given: AbstractProblem | Callable[[int], AbstractProblem], dim: int | None) -> AbstractProblem:
    """The problem itself, or made for an input dimension."""
    if isinstance(given, AbstractProblem):
        if dim is not None:
            raise BadInput("compare: with dims, pass a function of the dimension that gives the problem.")
        return given
    return instance("compare: problem", _made("the problem", given, dim), AbstractProblem, "a problem")


def _moves(name: str, given: Moves, dim: int | None) -> AbstractDynamics:
    """The dynamics itself, or made for an input dimension."""
    made = given if isinstance(given, AbstractDynamics) else _made(name, given, dim)
    return instance(f"compare: {name}", made, AbstractDynamics, "a dynamics such as tt.Flow(50.0)")


def _made(what: str, given: Callable[[int], object], dim: int | None) -> object:
    function(f"compare: {what}", given, "the dimension")
    if dim is None:
        raise BadInput(f"compare: {what} is a function of the dimension; pass dims= too.")
    return given(dim)


def finer(moves: AbstractDynamics, times: int) -> AbstractDynamics:
    """The same dynamics over the same time with steps so many times smaller; what has none stays as it is.

    ```python
    >>> import tutelage as tt
    >>> from tutelage.analysis.comparing import finer
    >>> finer(tt.Descent(step=0.1, steps=100), 4).steps, finer(tt.Flow(until=10.0), 4).until
    (400, 10.0)

    ```
    """
    if times == 1:
        return moves
    fields = {each.name: getattr(moves, each.name) for each in dataclasses.fields(moves)}  # type: ignore[arg-type]
    if "rate" in fields:
        return dataclasses.replace(moves, rate=fields["rate"] / times)  # type: ignore[type-var]
    if "step" not in fields:
        return moves
    if fields["step"] is None or fields.get("schedule") is not None:
        raise BadInput(f"compare: the steps of {moves.name} are those of its schedule or optimiser; leave out finer.")
    count = "steps" if "steps" in fields else "samples"
    changed = {"step": fields["step"] / times, count: fields[count] * times}
    return dataclasses.replace(moves, **changed)  # type: ignore[type-var]


@dataclass(frozen=True)
class Compared:
    """Runs of one problem by several dynamics, and how far they are from the first. It prints as a table.

    - `runs`: by the value of the axis (a dimension, or how many times finer the steps are), then by name.
    - `distances`: over (dynamics, axis, seed), the largest distance from the reference at any time to which both go:
      of the loss, as a part of its first value; and of the overlaps.
    - `exponents`: of the distance of the loss along the axis, a `Fit` for each dynamics, where there are three values.
    """

    axis: str
    runs: dict[int, dict[str, Run]]
    distances: xr.Dataset

    @property
    def reference(self) -> str:
        """The dynamics from which distances are measured."""
        return next(iter(next(iter(self.runs.values()))))

    @property
    def names(self) -> tuple[str, ...]:
        """The others."""
        return tuple(map(str, self.distances["dynamics"].values))

    @cached_property
    def exponents(self) -> dict[str, Fit]:
        if len(self.runs) < 3:
            return {}
        found = {}
        for name in self.names:
            values = self.distances["loss"].sel(dynamics=name).transpose(self.axis, "seed").values
            if np.all(values > 0):
                found[name] = fit(list(self.runs), values, names=(f"distance of {name}", self.axis), level=LEVEL)
        return found

    def __str__(self) -> str:
        columns = [f"{self.axis} = {value}" for value in self.runs] if len(self.runs) > 1 else ["distance of the loss"]
        head = ["", *columns, "of overlaps", *(["exponent [95 %]"] if self.exponents else [])]
        rows = [head, *map(self._row, self.names)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.sentence, *lines])

    def _row(self, name: str) -> list[str]:
        here = self.distances.sel(dynamics=name)
        middle = here["loss"].median("seed").values
        overlap = [number(float(here["overlap"].isel({self.axis: -1}).median()))] if "overlap" in here else ["-"]
        fitted = []
        if self.exponents:
            found = self.exponents.get(name)
            fitted = ["-"] if found is None else [_exponent(found)]
        return [name, *(number(float(value)) for value in middle), *overlap, *fitted]

    @property
    def sentence(self) -> str:
        """What the numbers are."""
        seeds = self.distances.sizes["seed"]
        return (
            f"Largest distance from {self.reference} at any time: of the loss, as a part of its first value, and of "
            f"overlaps; median of {seeds} seed{'' if seeds == 1 else 's'}."
        )

    def sheet(self) -> Sheet:
        """The figure as data: all losses, and their distances along the axis."""
        value, runs = list(self.runs.items())[-1]
        where = f", {self.axis} = {value}" if len(self.runs) > 1 else ""
        # The reference is drawn last, and dashed: what lies on it is still seen.
        losses = [_curve(name, run, colour) for colour, (name, run) in enumerate(runs.items())]
        losses = [*losses[1:], replace(losses[0], dash="dashed")]
        panels = [Panel(f"Loss{where}", "time", "loss", tuple(losses), xscale="log", yscale="log")]
        if len(self.runs) > 1:
            label = {"dim": "input dimension", "finer": "how many times smaller the steps are"}[self.axis]
            far = tuple(each for place, name in enumerate(self.names) for each in self._distances(name, place + 1))
            panels.append(
                Panel(f"Distance from {self.reference}", label, "distance of the loss", far, xscale="log", yscale="log")
            )
        caption = f"{self.sentence} Bands and bars: {BAND} of seeds. Dashed: fitted powers."
        return Sheet("The same problem by several dynamics", tuple(panels), caption=caption)

    def _distances(self, name: str, colour: int) -> list[Series]:
        values = self.distances["loss"].sel(dynamics=name).transpose("seed", self.axis)
        x = np.asarray(list(self.runs), float)
        found = self.exponents.get(name)
        told = name if found is None else f"{name}, exponent {_short(found.estimates['b'])}"
        series = [band(x, values, told, kind="points", colour=colour)]
        if found is not None:
            series.append(line(x, found.predict(x), dash="dashed", colour=colour))
        return series

    def plot(self) -> "Figure":
        """The figure, drawn by matplotlib."""
        figure: Figure = extension("draw")(self.sheet())
        return figure


def _exponent(found: Fit) -> str:
    ends = found.intervals["b"]
    return f"{_short(found.estimates['b'])} [{_short(ends.low)}, {_short(ends.high)}]"


def _short(exponent: float) -> str:
    return f"{round(exponent, 2) + 0.0:.2f}"  # no minus before nothing


def _curve(name: str, run: Run, colour: int) -> Series:
    values = np.where(settled(run, "loss") > 0, settled(run, "loss"), np.nan)
    low, middle, high = spread(values)
    return line(run.dataset["time"].values, middle, name, low=low, high=high, colour=colour)


def settled(run: Run, variable: str) -> Numbers:
    """A recorded variable (seed, time, ...); a seed that has stopped stays where it was."""
    values = run.dataset[variable].transpose("seed", "time", ...).values
    last = (run.dataset["recorded"].values - 1).astype(int)
    times = np.minimum(np.arange(values.shape[1])[None], last[:, None])
    return np.asarray(np.take_along_axis(values, times.reshape(*times.shape, *(1,) * (values.ndim - 2)), axis=1))


def apart(run: Run, reference: Run, variable: str) -> Numbers:
    """One number per seed: the largest distance of a variable from its reference, at times to which both go.

    The times are the records of the reference; the other run is interpolated between its own, linearly in time.
    """
    mine, theirs = (each.dataset["time"].values for each in (run, reference))
    shared = theirs <= mine[-1] * (1 + 1e-12)
    values = settled(reference, variable)[:, shared]
    found = interpolated(mine, settled(run, variable), theirs[shared])
    return np.asarray(np.max(np.abs(found - values).reshape(len(values), -1), axis=1))


def interpolated(times: Numbers, values: Numbers, at: Numbers) -> Numbers:
    """Values (seed, time, ...) at other times."""
    after = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    begin, end = times[after - 1], times[after]
    part: NDArray[np.float64] = np.clip((at - begin) / (end - begin), 0.0, 1.0)
    part = part.reshape(1, -1, *(1,) * (values.ndim - 2))
    return (1 - part) * values[:, after - 1] + part * values[:, after]


def compared(cases: Cases, ask: Callable[[AbstractProblem, AbstractDynamics], Run]) -> Compared:
    """All runs, and their distances; `ask` gives the run that is asked for (`tutelage.compare` asks a store)."""
    runs: dict[int, dict[str, Run]] = {}
    for value in cases.values:
        problem, moves = cases.at(value)
        runs[value] = {name: ask(problem, each) for name, each in moves.items()}
    return Compared(cases.axis, runs, _distances(cases.axis, runs))


def _distances(axis: str, runs: dict[int, dict[str, Run]]) -> xr.Dataset:
    first = next(iter(runs.values()))
    reference, *others = first
    shared = [name for name in MEASURED if all(name in run.dataset for run in first.values())]
    found = {}
    for variable in shared:
        table = [[_far(each[name], each[reference], variable) for each in runs.values()] for name in others]
        found[variable] = (("dynamics", axis, "seed"), np.array(table))
    seeds = first[reference].dataset["seed"].values
    return xr.Dataset(found, {"dynamics": others, axis: list(runs), "seed": seeds})


def _far(run: Run, reference: Run, variable: str) -> Numbers:
    size = settled(reference, "loss")[:, 0] if variable == "loss" else 1.0
    return apart(run, reference, variable) / size
