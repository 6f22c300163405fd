"""Sweeps: many settings, many seeds, a few numbers of each run; safe to stop, and only what is missing is computed."""

import contextlib
import math
import os
import shutil
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from tutelage._checks import function, one_of, refused, whole
from tutelage._errors import BadInput
from tutelage._files import is_file, read_record, replaced, write_record, writing
from tutelage._identity import digest
from tutelage._interrupt import Interrupted, stop_asked
from tutelage._limits import few_cells
from tutelage._plain import duration, some
from tutelage._progress import Listener, reporting
from tutelage._revisions import SCHEMA
from tutelage.store.store import Entry, Store, current_store, tidied
from tutelage.study import cluster, workers
from tutelage.study.cells import Cell
from tutelage.study.design import Design, Kind
from tutelage.study.design import design as planned
from tutelage.study.measuring import Measurement, Wanted, measurements
from tutelage.study.moves import Moves, parted
from tutelage.study.registry import Studied, experiment_of, is_installed
from tutelage.study.study import Experiment, Study, first_seeds
from tutelage.study.sweep_result import CellsFailed, Sweep
from tutelage.trajectory.asked import Asked, seed_list
from tutelage.trajectory.dataset import packed, provenance
from tutelage.trajectory.measures import foreseen, needed

if TYPE_CHECKING:
    from distributed import Client

BLOCK = 32
"""Seeds of a cell that are run in one batch. More seeds are more blocks, so that a larger sweep keeps the smaller's."""
PAUSE = 2.0  # seconds between two writings of the partial result


@dataclass(frozen=True)
class _Plan:
    """What is to be done: a cell for each point and block of seeds."""

    study: Study
    base: Experiment
    design: Design
    measurements: tuple[Measurement, ...]
    seeds: tuple[int, ...]
    dynamics: str | None
    block: int

    def experiments(self) -> Iterator[Experiment]:
        own = self.base.settings.model_dump(mode="json")
        for point in self.design.points:
            yield Experiment(self.study, self.study.configure(own | point))

    def cells(self) -> list[list[Cell]]:
        """By point, by block of seeds."""
        few_cells("This sweep", len(self.design.points) * math.ceil(len(self.seeds) / self.block))
        blocks = [self.seeds[at : at + self.block] for at in range(0, len(self.seeds), self.block)]
        return [[self._cell(experiment, block) for block in blocks] for experiment in self.experiments()]

    def _cell(self, experiment: Experiment, seeds: tuple[int, ...]) -> Cell:
        name, settings = self.study.recipe.known(self.dynamics), experiment.settings
        run = self._run(experiment, seeds).identity
        return Cell(self.sent, settings.model_dump(mode="json"), name, seeds, self.measurements, run)

    @cached_property
    def sent(self) -> Study | str:
        """What a worker is told of the study."""
        return self.study.name if is_installed(self.study) else self.study

    def _run(self, experiment: Experiment, seeds: tuple[int, ...]) -> Asked:
        measures = [each.measure(self.study) for each in self.measurements if not each.claim]
        return self.study.recipe.asked(
            experiment.settings, dynamics=self.dynamics, seeds=seeds, record=needed(measures)
        )

    def foresee(self) -> None:
        """Refuse a measure that no run has, where that is known before there is one.

        What a study makes of its runs, or a function of one's own reads of them, only a run can tell.
        """
        measured = [each for each in self.measurements if not each.claim]
        run = foreseen(self._run(next(self.experiments()), self.seeds)) if measured else None
        if run is None or self.study.recipe.complete is not None:
            return
        others = {measure.name for measure in self.study.measures}
        for each in measured:
            if each.own is None and each.name not in others:
                each.measure(self.study).measured(run)

    def spec(self, cells: list[list[Cell]]) -> dict[str, Any]:
        """As it is written in `spec.json`."""
        plain, runs = self.plain(), [[cell.run for cell in row] for row in cells]
        revisions = self._run(next(self.experiments()), self.seeds).revisions
        asked = {"schema": SCHEMA, "kind": "sweep", "revisions": revisions, "runs": runs, **plain}
        return {"kind": "sweep", **plain, "asked": asked}

    def plain(self) -> dict[str, Any]:
        """What was asked, in words."""
        return {
            "paper": self.study.name,
            "settings": {
                k: v for k, v in self.base.settings.model_dump(mode="json").items() if k not in self.design.points[0]
            },
            "dynamics": self.dynamics or self.study.dynamics[0],
            "seeds": list(self.seeds),
            "block": self.block,
            "design": self.design.kind,
            "names": list(self.names),
            "points": list(self.design.points),
            "measures": [each.name for each in self.measurements],
            "keys": [each.key for each in self.measurements],
        }

    @property
    def names(self) -> tuple[str, ...]:
        return self.design.names


def sweep(
    study: Studied,
    *,
    over: Mapping[str, Any],
    measure: Wanted | Sequence[Wanted],
    seeds: int | Sequence[int] = 8,
    dynamics: str | Moves | None = None,
    design: Kind = "grid",
    points: int | None = None,
    design_seed: int = 0,
    store: Store | str | Path | None = None,
    processes: int | None = None,
    client: "Client | None" = None,
    block: int = BLOCK,
    progress: Callable[[str, int, int], None] | None = None,
    told: Callable[[str], None] | None = None,
) -> Sweep:
    """Run a study over many settings and keep a few numbers of each run.

    - `study`: a paper or a study, by name or itself, with settings or without; or a function that gives a problem,
      such as `def committee(dim: int = 1000) -> tt.Problem`.
    - `over`: the settings to sweep, `{"dim": "1e2..1e8:13", "students": [10, 25]}`; texts as on the command line.
      Settings that change together are one axis: `{"students=teachers=dim": [6, 8, 10]}`.
    - `dynamics`: by name, `"flow"` or `"flow:until=1e3"`, or one of your own, such as `tt.Sgd(...)`.
    - `measure`: what to keep of each seed: names (of the study, `final_loss`, an event, `claim:ID`), `tt.Measure`s, or
      functions of a run that give one number per seed.
    - `design`: "grid", or "random" or "sobol" with `points` points in the ranges of `over`.
    - `store`: where results are kept; that in use, or `runs/`, if None. A cell that is there is not computed again;
      partial results are in the sweep's folder at any time; after Ctrl-C or a crash the same call goes on, and ends
      with the same numbers.
    - `processes`: how many of this machine; as many as it has cores if None. Or `client`: that of a Dask cluster.
    - `block`: how many seeds are run in one batch.

    ```python
    >>> import tempfile, tutelage as tt
    >>> swept = tt.sweep("both_layers", over={"width": [1, 2, 4]}, measure="final_loss", seeds=4,
    ...                  store=tempfile.mkdtemp(), processes=1)
    >>> dict(swept.final_loss.sizes)
    {'width': 3, 'seed': 4}

    ```
    """
    _check(processes, client, progress, told)
    plan = _plan(study, over, measure, seeds, dynamics, design, points, design_seed, block)
    plan.foresee()
    cells = plan.cells()  # a setting that cannot be is refused before anything is written
    place = current_store() if store is None else store
    kept = place if isinstance(place, Store) else Store(place)
    spec = plan.spec(cells)
    entry = kept.prepare(digest(spec["asked"]), spec)
    with kept.locked(entry.id, told=told):
        tidied(entry)
        with reporting(progress, "sweep") as heard:
            done = _Work(kept, entry, plan, cells, heard).done(processes, client)
    if done.failed:
        where, why = next(iter(done.failed.items()))
        count = f"{len(done.failed)} of {some(sum(map(len, cells)), 'cell')}"
        warnings.warn(CellsFailed(f"{count} failed and have no numbers, such as {where}: {why}"), stacklevel=2)
    return done


def _plan(
    studied: Studied,
    over: Mapping[str, Any],
    measure: Wanted | Sequence[Wanted],
    seeds: int | Sequence[int],
    dynamics: str | Moves | None,
    kind: Kind,
    points: int | None,
    design_seed: int,
    block: int,
) -> _Plan:
    base = experiment_of(studied)
    if not (dynamics is None or isinstance(dynamics, str)):
        base, dynamics = replace(base, study=base.study.moving_by(dynamics)), None
    numbers, block, study = seed_list(seeds), whole("block", block, least=1), base.study
    if dynamics is not None:
        one_of(f"dynamics of {study.name}", parted(dynamics)[0], study.dynamics)
    wanted = measurements(study, measure)
    if any(each.claim for each in wanted):
        block = max(block, first_seeds(numbers))  # a claim is judged once, on all seeds
    chosen = planned(study, over, kind=kind, points=points, seed=design_seed)
    return _Plan(study, base, chosen, wanted, numbers, dynamics, block)


class _Refused(Exception):
    """The first cell cannot be, and so none can."""


def _check(processes: Any, client: Any, progress: Any, told: Any) -> None:
    if processes is not None:
        whole("processes", processes, least=1)
    if client is not None and not (callable(getattr(client, "map", None)) and hasattr(client, "scheduler")):
        raise refused("client", client, "a dask.distributed.Client")
    for name, listener, of in (("progress", progress, "(label, done, total)"), ("told", told, "a line of text")):
        if listener is not None:
            function(name, listener, of)


class _Work:
    """A sweep being done: which cells there are, which of them have results, and the Dataset of these."""

    def __init__(
        self,
        store: Store,
        entry: Entry,
        plan: _Plan,
        table: list[list[Cell]],
        progress: Listener,
    ):
        self.store, self.entry, self.plan, self.table, self.progress = store, entry, plan, table, progress
        self.cells = {cell.id: cell for row in self.table for cell in row}
        self.results = {id: _result(self._file(id), cell) for id, cell in self.cells.items() if is_file(self._file(id))}
        self.failed: dict[str, str] = {}
        self._due = 0.0

    def done(self, processes: int | None, client: "Client | None") -> Sweep:
        """All cells, and the result."""
        began, missing = time.perf_counter(), self._missing(checkpoints=client is None)
        self.store.note(self.entry.id, f"begun: {len(missing)} of {some(len(self.cells), 'cell')} to do")
        self._tell()
        try:
            with contextlib.closing(self._computed(missing, processes, client)) as outcomes:
                for id, outcome in outcomes:
                    self._commit(id, outcome)
                    self._tell()
        except _Refused as error:
            self._forget(missing)
            raise BadInput(str(error)) from None
        if missing or self.store.find(self.entry.id).state != "finished":
            self._write(final=len(self.results) == len(self.cells), seconds=time.perf_counter() - began)
        if stop_asked() and len(self.results) + len(self.failed) < len(self.cells):
            self.store.note(self.entry.id, "stopped when asked to; what was done is kept")
            raise Interrupted
        return replace(Sweep.read(self.store.find(self.entry.id)), failed=self.failed)

    def _missing(self, *, checkpoints: bool) -> dict[str, Cell]:
        missing = {id: cell for id, cell in self.cells.items() if id not in self.results}
        if not checkpoints:
            return missing
        return {id: replace(cell, checkpoint=self._file(id).with_suffix(".npz")) for id, cell in missing.items()}

    def _computed(
        self, missing: dict[str, Cell], processes: int | None, client: "Client | None"
    ) -> Generator[tuple[str, workers.Outcome], None, None]:
        if client is not None:
            return cluster.on_cluster(missing, client)
        with writing(self.store.root):
            for cell in missing.values():
                assert cell.checkpoint is not None
                cell.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        count = min(int(processes or 0) or os.cpu_count() or 1, len(missing))
        return workers.inline(missing) if count <= 1 else workers.processes(missing, count)

    def _file(self, id: str) -> Path:
        return self.store.root / ".cells" / id[:2] / f"{id}.json"

    def _commit(self, id: str, outcome: workers.Outcome) -> None:
        """A result is kept once and for all; an error is told, and tried again when the sweep is asked for again."""
        cell = self.cells[id]
        if outcome.get("refused") and not self.results and not self.failed:
            raise _Refused(outcome["error"])  # such as a measure that no run has: no other cell will know it either
        if "error" in outcome:
            where = ", ".join(f"{name}={cell.settings[name]}" for name in self.plan.names)
            if len(self.table[0]) > 1:
                where += f", seeds {cell.seeds[0]} to {cell.seeds[-1]}"
            self.failed[where] = outcome["error"]
            self.store.note(self.entry.id, f"failed: {where}: {outcome['error']}")
            return
        file = self._file(id)
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_record({"cell": id, "run": cell.plain(), **outcome}, file)
        self._unkept(id)
        self.results[id] = outcome
        if time.monotonic() > self._due:
            self._write()

    def _unkept(self, id: str) -> None:
        """Remove the checkpoint of a cell, with what workers that were killed left half-written."""
        file = self._file(id)
        for left in (file.with_suffix(".npz"), *file.parent.glob(f".{id}.npz.*.part")):
            left.unlink(missing_ok=True)

    def _forget(self, cells: Iterable[str]) -> None:
        """Leave nothing of a sweep that cannot be."""
        for id in cells:
            self._unkept(id)
            with contextlib.suppress(OSError):  # there may be others in it
                self._file(id).parent.rmdir()
        if not self.entry.result.is_file():
            shutil.rmtree(self.entry.folder, ignore_errors=True)

    def _tell(self) -> None:
        self.progress("sweep", len(self.results) + len(self.failed), len(self.cells))

    def _write(self, *, final: bool = False, seconds: float = 0.0) -> None:
        """The Dataset as far as it goes; the summary only when all is done."""
        began, dataset = time.monotonic(), self._dataset()
        with writing(self.entry.folder):
            replaced(self.entry.result, lambda part: part.write_bytes(packed(dataset)))
            if final:
                spent = sum(result["seconds"] for result in self.results.values())
                about = {"cells": len(self.cells), "cell_seconds": round(spent, 3), "seconds": round(seconds, 3)}
                write_record(about, self.entry.folder / "summary.json")
                self.store.note(self.entry.id, f"done in {duration(seconds)}")
        now = time.monotonic()
        self._due = now + max(PAUSE, 10 * (now - began))  # a large sweep is written less often

    def _dataset(self) -> xr.Dataset:
        plan = self.plan
        dims, shape = plan.design.dims, plan.design.shape
        done = np.array([all(cell.id in self.results for cell in row) for row in self.table])
        dataset = xr.Dataset({"done": (dims, done.reshape(shape))}, self._coords())
        for each in plan.measurements:
            measure = None if each.claim else each.measure(plan.study)
            kind = measure.kind if measure else "verdict"
            about = {"long_name": measure.long_name if measure else f"verdict of {each.claim}", "kind": kind}
            units = {"units": measure.units if measure else "1 holds, 0 fails"}
            dataset[each.name] = ((*dims, "seed"), self._values(each.name, "values", np.nan), about | units)
            if kind == "time":
                dataset[f"{each.name}_limit"] = ((*dims, "seed"), self._values(each.name, "limit", np.inf))
            if measure and measure.law:
                dataset[f"{each.name}_law"] = (dims, self._law(each.name), {"long_name": "prediction"})
        about = provenance({"kind": "sweep"} | plan.plain(), self.entry.spec["asked"])
        return dataset.assign_attrs(about | {"paper": plan.study.name})

    def _coords(self) -> dict[str, Any]:
        plan = self.plan
        seeds = {"seed": ("seed", list(plan.seeds))}
        if plan.design.axes:
            return seeds | {
                name: (name, _coordinate(axis), self._linked(name)) for name, axis in plan.design.axes.items()
            }
        return seeds | {
            name: ("point", _coordinate([point[name] for point in plan.design.points]), self._linked(name))
            for name in plan.names
        }

    def _linked(self, name: str) -> dict[str, str]:
        """What to call an axis of several settings."""
        others = self.plan.design.linked.get(name)
        return {"long_name": " = ".join((name, *others))} if others else {}

    def _values(self, name: str, part: str, absent: float) -> np.ndarray:
        rows = [np.concatenate([self._block(cell, name, part, absent) for cell in row]) for row in self.table]
        return np.array(rows).reshape(*self.plan.design.shape, len(self.plan.seeds))

    def _block(self, cell: Cell, name: str, part: str, absent: float) -> np.ndarray:
        result = self.results.get(cell.id)
        found = result["measures"][name][part] if result else [None] * len(cell.seeds)
        return np.array([absent if each is None else each for each in found], float)

    def _law(self, name: str) -> np.ndarray:
        """What theory predicts: it was computed with the cells, since it may take as long as a short run."""
        found = [[self.results[cell.id] for cell in row if cell.id in self.results] for row in self.table]
        laws = [results[0]["measures"][name]["law"] if results else None for results in found]
        return np.array([np.nan if law is None else law for law in laws], float).reshape(self.plan.design.shape)


def _result(file: Path, cell: Cell) -> workers.Outcome:
    """What was kept of a cell; a file that holds something else is refused and not changed."""
    kept: workers.Outcome = read_record(file)
    if kept.get("cell") != cell.id:
        raise BadInput(f"{file} is the result of another cell; it was not changed; move it away.")
    try:
        wanted = {each.name for each in cell.measurements}
        counts = {len(kept["measures"][name][part]) for name in wanted for part in ("values", "limit")}
        laws = all("law" in kept["measures"][name] for name in wanted)
        fits = counts == {len(cell.seeds)} and laws and kept["seconds"] >= 0
    except (TypeError, KeyError):
        fits = False
    if not fits:
        raise BadInput(f"{file} is not the result of a cell; it was not changed; repair it or move it away.")
    return kept


def _coordinate(values: Sequence[Any]) -> np.ndarray:
    """Numbers as numbers; anything else as text."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)
    found = np.array(values) if numbers else np.array([str(each) for each in values])
    return found.astype(float) if found.dtype == object else found  # whole numbers too large for 64 bits
