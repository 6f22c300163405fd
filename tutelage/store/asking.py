"""Asking for a run: it is read if the store has it, taken up again if it was begun, and computed if not."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

from tutelage._errors import BadInput
from tutelage._files import replaced, write_json, writing
from tutelage._interrupt import Interrupted
from tutelage._plain import duration
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.papers.paper import Experiment
from tutelage.store.spec import RunSpec
from tutelage.store.store import Entry, Store
from tutelage.store.stored import StoredRun
from tutelage.trajectory.dataset import packed
from tutelage.trajectory.observables import WEIGHTS
from tutelage.trajectory.result import Run

CHECKPOINTS = ("checkpoint.npz", "again.npz", "certified.npz")
"""Of a run that is computed for the first time, of one computed afresh, and of one with what a certificate needs."""


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
    with store.locked(spec.id, told=told):
        there = _finished(store, spec)  # another process may have made it meanwhile
        if there and not fresh and (not certify or there.certificate is not None):
            return there
        entry = store.prepare(spec.plain())
        tidied(entry)
        checkpoint = entry.folder / CHECKPOINTS[2 if certify else 1 if there else 0]
        run = _compute(store, entry, experiment, spec, certify, progress, told, checkpoint)
        if there:
            _agree(there, run, checkpoint)
        if not there or certify:
            _commit(store, entry, run)
        for name in CHECKPOINTS:
            (entry.folder / name).unlink(missing_ok=True)
    return replace(StoredRun.read(store.find(entry.id)), computed=True)


def _finished(store: Store, spec: RunSpec) -> StoredRun | None:
    if spec.id not in store:
        return None
    entry = store.find(spec.id)
    return StoredRun.read(entry) if entry.state in ("finished", "damaged") else None


def tidied(entry: Entry) -> None:
    """Remove what processes that were killed left half-written; only who holds the lock writes these files."""
    for name in ("spec.json", "summary.json", entry.result.name, *CHECKPOINTS):
        for part in entry.folder.glob(f".{name}.*.part"):
            part.unlink(missing_ok=True)


def _compute(store, entry: Entry, experiment: Experiment, spec: RunSpec, certify, progress, told, path: Path) -> Run:
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
    except BadInput:
        if not entry.result.is_file() and not any((entry.folder / name).is_file() for name in CHECKPOINTS):
            shutil.rmtree(entry.folder, ignore_errors=True)  # there is no such run
        raise
    store.note(entry.id, f"computed in {duration(run.seconds)}")
    return run


def _commit(store: Store, entry: Entry, run: Run) -> None:
    """The summary first, the trajectory last: a run counts as finished when its trajectory is there."""
    with writing(entry.folder):
        write_json(run.summary(), entry.folder / "summary.json")
        replaced(entry.result, lambda part: part.write_bytes(packed(run.dataset)))
    store.note(entry.id, "stored")


def _agree(stored: StoredRun, run: Run, checkpoint: Path) -> None:
    # Weights are recorded for a certificate only.
    extra = {each.name for each in WEIGHTS} & (set(stored.dataset.variables) ^ set(run.dataset.variables))
    found = differences(*(each.dataset.drop_vars(extra, errors="ignore") for each in (stored, run)))
    if found:
        checkpoint.unlink(missing_ok=True)  # asking again is to compute again
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
    apart = np.abs(a.astype(float) - b.astype(float))
    if not np.isfinite(apart).any():
        return f"{name} (what is finite in one is not in the other)"
    return f"{name} (by up to {np.nanmax(apart):.3g})"
