"""Asking for a run: it is read if the store has it, taken up again if it was begun, and computed if not."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from tutelage._plain import duration
from tutelage.dynamics.checkpoint import Checkpoint, replaced
from tutelage.dynamics.stopping import Interrupted
from tutelage.papers.paper import Experiment
from tutelage.study.files import write_json, writing
from tutelage.study.spec import RunSpec
from tutelage.study.store import Entry, Store
from tutelage.study.stored import StoredRun
from tutelage.trajectory.dataset import save
from tutelage.trajectory.run import Run


class Disagreement(Exception):
    """A run computed afresh is not the one that was stored. Neither is thrown away without being told."""


def spec_of(experiment: Experiment, dynamics: str | None, seeds: int | Sequence[int]) -> RunSpec:
    """The full specification of a run of an experiment."""
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    settings = experiment.settings.model_dump(mode="json")
    return RunSpec(experiment.paper.name, settings, dynamics or experiment.paper.dynamics[0], tuple(map(int, numbers)))


def ask(
    store: Store,
    experiment: Experiment,
    *,
    dynamics: str | None = None,
    seeds: int | Sequence[int] = 8,
    fresh: bool = False,
    certify: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    told: Callable[[str], None] | None = None,
) -> StoredRun:
    """The run of an experiment, from the store or into it.

    - `fresh`: compute it again, and refuse if it does not agree, bit for bit, with what is stored.
    - `certify`: with a certificate; one that is stored without it is computed again, and must agree too.
    - `told`: is told in words what is done, such as waiting for another process.

    A run that takes longer than a few seconds is checkpointed. After Ctrl-C (`Interrupted`) or a crash, asking again
    goes on from the last checkpoint, and ends with the same bits.
    """
    spec = spec_of(experiment, dynamics, seeds)
    there = _finished(store, spec)
    if there and not fresh and (not certify or there.certificate is not None):
        return there
    entry = store.prepare(spec.plain())
    with store.locked(entry.id, told=told):
        there = _finished(store, spec)  # another process may have made it meanwhile
        if there and not fresh and (not certify or there.certificate is not None):
            return there
        run = _compute(store, entry, experiment, spec, certify, progress, told, again=there is not None)
        if there:
            _agree(there, run)
        if not there or certify:
            _commit(store, entry, run)
        _checkpoint(entry, again=there is not None).unlink(missing_ok=True)
    return StoredRun.read(store.find(entry.id))


def _finished(store: Store, spec: RunSpec) -> StoredRun | None:
    if not (store.root / spec.id).is_dir():
        return None
    entry = store.find(spec.id)
    return StoredRun.read(entry) if entry.state in ("finished", "damaged") else None


def _checkpoint(entry: Entry, *, again: bool) -> Path:
    return entry.folder / ("again.npz" if again else "checkpoint.npz")


def _compute(store, entry: Entry, experiment: Experiment, spec: RunSpec, certify, progress, told, *, again) -> Run:
    path = _checkpoint(entry, again=again)

    def say(line: str) -> None:
        store.note(entry.id, line)
        if told:
            told(f"{entry.id}: {line}")

    store.note(entry.id, "begun" if not path.is_file() else "begun again")
    try:
        run = experiment.paper.launch(
            experiment.settings, spec.dynamics, seeds=list(spec.seeds), certify=certify, progress=progress,
            checkpoint=Checkpoint(path, said=say),
        )  # fmt: skip
    except Interrupted:
        store.note(entry.id, "stopped when asked to; what was done is kept")
        raise
    store.note(entry.id, f"computed in {duration(run.seconds)}")
    return run


def _commit(store: Store, entry: Entry, run: Run) -> None:
    """The summary first, the trajectory last: a run counts as finished when its trajectory is there."""
    with writing(entry.folder):
        write_json(run.summary(), entry.folder / "summary.json")
        replaced(entry.result, lambda part: save(run.dataset, part))
    store.note(entry.id, "stored")


def _agree(stored: StoredRun, run: Run) -> None:
    found = differences(stored.dataset, run.dataset)
    if found:
        raise Disagreement(
            f"The run {stored.entry.id} computed afresh differs from the stored one in {'; '.join(found)}. The stored "
            f"one was kept. It was made by {_made(stored.dataset)}, this one by {_made(run.dataset)}."
        )


def _made(dataset: xr.Dataset) -> str:
    return ", ".join(f"{name} {dataset.attrs.get(f'{name}_version', '?')}" for name in ("tutelage", "jax", "python"))


def differences(one: xr.Dataset, other: xr.Dataset) -> list[str]:
    """In which variables two Datasets are not the same bits, and by how much."""
    names = sorted({*map(str, one.variables), *map(str, other.variables)})
    return [text for name in names if (text := _difference(one, other, name))]


def _difference(one: xr.Dataset, other: xr.Dataset, name: str) -> str:
    if name not in one.variables or name not in other.variables:
        return f"{name} (only in one of them)"
    a, b = one[name].values, other[name].values
    if a.shape != b.shape:
        return f"{name} (shapes {a.shape} and {b.shape})"
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return "" if np.array_equal(a.astype(str), b.astype(str)) else name
    if np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return ""
    return f"{name} (by up to {np.nanmax(np.abs(a.astype(float) - b.astype(float))):.3g})"
