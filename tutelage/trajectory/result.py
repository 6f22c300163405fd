"""A finished run, however it was come by: computed, in stages, or read from a store."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PyTree
from numpy.typing import NDArray

from tutelage._checks import one_of
from tutelage._errors import BadInput, StopReason
from tutelage._extensions import extension
from tutelage._plain import plain
from tutelage.dynamics.base import AbstractDynamics, Prepared
from tutelage.oracle.base import AbstractOracle
from tutelage.problem.networks import Weights
from tutelage.problem.problem import AbstractProblem, Start
from tutelage.trajectory import dataset as door
from tutelage.trajectory.asked import Asked, Handover
from tutelage.trajectory.findings import Certificate, Phase, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

FINAL, STAGES = "final", "stages"
"""Groups of a run's file: the last weights, and its stages."""
AGAIN = "load it with problem= and dynamics=, or ask for it with tt.run and its store"


@runtime_checkable
class Place(Protocol):
    """What a run knows of its entry in a store."""

    @property
    def id(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def summary(self) -> dict[str, Any]: ...


class Recorded:
    """What has a Dataset of records. Its variables are attributes: `run.loss`, `run.overlap`."""

    dataset: xr.Dataset

    def __getattr__(self, name: str) -> xr.DataArray:
        if name.startswith("_") or name == "dataset" or name not in self.dataset.variables:
            raise AttributeError(
                f"This run has no {name!r}; its variables are {', '.join(map(str, self.dataset.data_vars))}."
            )
        return self.dataset[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *map(str, self.dataset.variables)]

    def last(self, name: str) -> xr.DataArray:
        """The last recorded value of a variable, seed by seed."""
        timed = [str(each) for each in self.dataset if "time" in self.dataset[each].dims]
        if not timed:
            raise BadInput("Nothing here was recorded over time, so that nothing has a last value.")
        if isinstance(name, str) and name in self.dataset.variables and name not in timed:
            raise BadInput(f"{name!r} was not recorded over time and has no last value; it is the attribute {name}.")
        one_of("variable over time", name, timed)
        return self.dataset[name].isel(time=self.dataset["recorded"] - 1)

    def save(self, path: str | Path) -> None:
        """Write one NetCDF file."""
        door.save(self.dataset, path)

    def to_netcdf(self, path: str | Path) -> None:
        """Another name of `save`, that of xarray."""
        self.save(path)

    def to_dataframe(self) -> "DataFrame":
        """A row for each seed and time; further axes are columns such as `overlap[student=0,teacher=1]`.

        ```python
        >>> import tutelage as tt
        >>> run = tt.papers.both_layers(steps=50).descend(seeds=2, record=tt.Record(3, observables=("loss",)))
        >>> frame = run.to_dataframe()
        >>> len(frame) == run.loss.size, "loss" in frame
        (True, True)

        ```
        """
        frame: DataFrame = extension("table")(self.dataset)
        return frame


class Leaves(NamedTuple):
    """The arrays of weights that were read from a file, and the class of which they were."""

    values: tuple[NDArray[Any], ...]
    of: str


@dataclass(frozen=True)
class Run(Recorded):
    """The result of a flow, a descent, SGD or several stages: a Dataset whose variables are attributes, and more.

    - `asked`: what it was asked for, None for a run that was read without it; `seconds`: how long it took.
    - `phases`, `certificate`, `claims`: what was found out about it.
    - `stages`: the runs of its stages, by name; the Dataset is that of all if they record the same, else of the last.
    - `facts`: a few plain numbers for its summary.

    `start`, `final` and `teacher` are weights in frame coordinates (`start` and `final` with a leading seed axis);
    `final` is where each seed stopped. `oracle` is the loss that was descended (`batched` when each seed has its own
    data).
    """

    dataset: xr.Dataset
    seconds: float = 0.0
    asked: Asked | None = None
    phases: tuple[Phase, ...] = ()
    certificate: Certificate | None = None
    claims: Table | None = None
    stages: dict[str, "Run"] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    ends: tuple[Prepared, PyTree] | Leaves | None = field(default=None, repr=False)
    """Where it began and ended; of a run that was read, the leaves of the last weights."""
    entry: Place | None = field(default=None, repr=False, compare=False)
    """Its entry in a store, if it has one."""
    computed: bool = field(default=True, repr=False, compare=False)
    """Whether it was computed just now, and not only read."""

    @cached_property
    def _prepared(self) -> Prepared:
        if self.ends and not isinstance(self.ends, Leaves):
            return self.ends[0]
        asked = self.asked
        if asked is None:
            raise BadInput(f"This run was read from a file, which has no oracle; {AGAIN}.")
        if not isinstance(asked.plan, AbstractDynamics):
            raise BadInput("This run of several stages was read, and has no oracle; look at one of its `stages`.")
        return asked.plan.prepare(asked.problem, list(asked.seeds), asked.start)

    @property
    def oracle(self) -> AbstractOracle:
        return self._prepared.oracle

    @property
    def batched(self) -> bool:
        return self._prepared.batched

    @property
    def teacher(self) -> PyTree:
        return self._prepared.teacher

    @property
    def start(self) -> PyTree:
        return self._prepared.start

    @cached_property
    def final(self) -> PyTree:
        if self.ends is None:
            raise BadInput("This run was read from a file without its last weights.")
        if not isinstance(self.ends, Leaves):
            return self.ends[1]
        if self.ends.of == Weights.__name__:
            second, first = map(jnp.asarray, self.ends.values)
            return Weights(first, second)
        leaves, structure = jax.tree.flatten(self._like)
        if len(leaves) != len(self.ends.values):
            raise BadInput("A stage has changed what the weights are made of; compute this run to have the last ones.")
        return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in self.ends.values])

    @property
    def _like(self) -> PyTree:
        """Weights of the same structure as the last ones. Stages change how many there are, hardly ever of what."""
        asked = self.asked
        if asked is None or isinstance(asked.plan, AbstractDynamics):
            return self._prepared.start
        return asked.plan[0].dynamics.prepare(asked.problem, list(asked.seeds), asked.start).start

    @property
    def stopped(self) -> tuple[StopReason, ...]:
        """Why each seed stopped."""
        return tuple(StopReason[str(name).upper()] for name in self.dataset["stopped"].values)

    @property
    def problem(self) -> AbstractProblem:
        """What was to be learned."""
        if self.asked is None:
            raise BadInput(f"This run was read from a file, without its problem; {AGAIN}.")
        return self.asked.problem

    @property
    def handover(self) -> Handover:
        """What a further stage begins from."""
        seeds = tuple(int(seed) for seed in self.dataset["seed"].values)
        return Handover(self.problem, seeds, Start(self.teacher, self.final), self.stages)

    def with_findings(
        self,
        *,
        phases: Iterable[Phase] | None = None,
        certificate: Certificate | None = None,
        facts: dict[str, Any] | None = None,
    ) -> "Run":
        """The same run with what was found out about it; what is None stays as it was."""
        about, found = {}, self.phases if phases is None else tuple(phases)
        if phases is not None:
            about["phases"] = json.dumps([phase.record() for phase in found])
        if certificate is not None:
            about["certificate"] = json.dumps(certificate.records())
        return replace(
            self,
            dataset=self.dataset.assign_attrs(about),
            phases=found,
            certificate=certificate or self.certificate,
            facts=self.facts if facts is None else facts,
        )

    def with_phases(self, *detectors: Callable[[xr.Dataset], Iterable[Phase]]) -> "Run":
        """The same run with its phases: plateaus of the loss and linear convergence, or what `detectors` find.

        A detector is a function of the Dataset of one seed; `tutelage.analysis.milestones` makes one from conditions.

        ```python
        >>> import tutelage as tt
        >>> problem = tt.Problem(
        ...     inputs=tt.Gaussian(10**6),
        ...     teacher=tt.TwoLayer("linear", first=[[1.0]]),
        ...     student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-6), width=1, trains=("first",)),
        ... )
        >>> [phase.name for phase in tt.flow(problem, until=20.0).with_phases().phases]
        ['plateau', 'linear convergence']

        ```
        """
        return self.with_findings(phases=extension("detect")(self.dataset, *([detectors] if detectors else [])))

    def plot(self, variable: str | None = None, *, title: str | None = None, width: float | None = None) -> "Figure":
        """An overview of the run or, with a name, one variable over time, as a matplotlib figure.

        `width`: that of a paper's column in inches, such as 3.25, with fonts to match and no title.

        ```python
        >>> import tutelage as tt
        >>> figure = tt.papers.both_layers(steps=50).descend(seeds=2).plot("loss")
        >>> len(figure.axes)
        1

        ```
        """
        figure: Figure = extension("plot")(self, variable, title=title, width=width)
        return figure

    def _repr_html_(self) -> str:
        return str(extension("html")(self))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.dataset.sizes.items() if name in ("seed", "time"))
        dynamics = self.asked.label if self.asked else json.loads(self.dataset.attrs["settings"]).get("dynamics", "run")
        stages = f", stages {', '.join(self.stages)}" if self.stages else ""
        names = list(map(str, self.dataset.data_vars))
        listed = ", ".join(names[:8]) + (f", and {len(names) - 8} more" if len(names) > 8 else "")
        return f"<Run: {dynamics}, {sizes}{stages}; {listed}>"

    def summary(self) -> dict[str, Any]:
        """A few plain numbers, ready for JSON."""
        place = self.entry
        where = (
            {} if place is None else {"id": place.id, "folder": str(place.folder), "read_from_store": not self.computed}
        )
        result: dict[str, Any] = {**where, "seeds": self.dataset.sizes["seed"], **self.facts}
        if "stopped" in self.dataset:
            counts = {reason.name.lower(): self.stopped.count(reason) for reason in dict.fromkeys(self.stopped)}
            sentences = [reason.sentence for reason in dict.fromkeys(self.stopped)]
            result |= {"stopped": counts, "stopped_because": sentences}
        if self.ends is not None and not self.stages:
            result["frame"] = self._frame
        for name in ("stop_time", "loss"):
            if name in self.dataset:
                result[name] = _spread((self.last(name) if name == "loss" else self.dataset[name]).values)
        if "event_time" in self.dataset:
            events = self.dataset["event_time"]
            result["events"] = {str(e): _spread(events.sel(event=e).values) for e in events["event"].values}
        if self.phases:
            result["phases"] = [phase.record() for phase in self.phases]
        if self.certificate is not None:
            result["certificate"] = self.certificate.records()
        return result | {"seconds": round(self.seconds, 3)}

    @property
    def _frame(self) -> int | None:
        """How many coordinates the weights have; of a run that was read, as was said when it was stored."""
        if self.ends and not isinstance(self.ends, Leaves):
            first = getattr(self.ends[1], "first", None)
            return None if first is None else int(first.shape[-1])
        return None if self.entry is None else self.entry.summary.get("frame")

    def save(self, path: str | Path) -> None:
        """Write one NetCDF file with all that it has, its last weights and stages too; `tutelage.load` reads it."""
        about = {"seconds": self.seconds, "facts": json.dumps(plain(self.facts))}
        door.save(replace(self, dataset=self.dataset.assign_attrs(about)).tree(), path)

    def tree(self) -> xr.DataTree:
        """All that a file holds of it: its Dataset, the last weights, and its stages."""
        # Groups share the coordinates of the groups above them, so that stages cannot lie below one of them.
        parts: dict[str, xr.Dataset | xr.DataTree] = {door.WHOLE if self.stages else "/": self.dataset}
        if self.ends is not None:
            leaves, kind = jax.tree.leaves(self.final), type(self.final).__name__
            parts[FINAL] = xr.Dataset({str(n): _variable(n, leaf) for n, leaf in enumerate(leaves)}, attrs={"of": kind})
        parts |= {f"{STAGES}/{name}": stage.tree() for name, stage in self.stages.items()}
        return xr.DataTree.from_dict(parts)

    @classmethod
    def read(cls, tree: xr.DataTree, asked: Asked | None = None) -> "Run":
        """From what a file holds."""
        dataset = door.whole(tree)
        leaves = tree.children[FINAL].to_dataset(inherit=False) if FINAL in tree.children else None
        ends = None if leaves is None else _leaves(leaves)
        parts = tree.children[STAGES].children if STAGES in tree.children else {}
        stages = {name: cls.read(part) for name, part in parts.items()}
        certificate = dataset.attrs.get("certificate")
        return cls(
            dataset,
            float(dataset.attrs.get("seconds", 0.0)),
            asked,
            tuple(Phase.read(record) for record in json.loads(dataset.attrs.get("phases", "[]"))),
            None if certificate is None else Certificate.read(json.loads(certificate)),
            stages=stages,
            facts=json.loads(dataset.attrs.get("facts", "{}")),
            ends=ends,
        )


def _leaves(group: xr.Dataset) -> Leaves:
    values = tuple(group[str(n)].values for n in range(len(group.data_vars)))
    return Leaves(values, str(group.attrs.get("of", "")))


def _variable(number: int, leaf: Any) -> xr.Variable:
    return xr.Variable([f"leaf{number}_{axis}" for axis in range(np.ndim(leaf))], np.asarray(leaf))


def _spread(values: np.ndarray) -> dict[str, float | None]:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {"median": None, "min": None, "max": None, "count": 0}
    low, middle, high = (float(value) for value in np.quantile(finite, [0.0, 0.5, 1.0]))
    return {"median": middle, "min": low, "max": high, "count": len(finite)}
