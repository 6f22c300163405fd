"""Fetching a run from a store: read if it is there, resumed if it was begun, computed and kept if not."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tutelage._errors import BadInput
from tutelage._files import intact, is_file, read_record, replaced, write_record, writing
from tutelage._interrupt import Interrupted
from tutelage._plain import duration, plain
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Progress
from tutelage.store.store import CHECKPOINTS, CLAIMS, Entry, Store, tidied, way_out
from tutelage.trajectory.asked import Asked
from tutelage.trajectory.dataset import WHOLE, load_tree, packed
from tutelage.trajectory.findings import Table
from tutelage.trajectory.result import Place, Run
from tutelage.trajectory.running import perform

Told = Callable[[str], None]
Finish = Callable[[Run], Run]


class Disagreement(Exception):
    """A run computed afresh is not the one that was stored. Neither is thrown away without being told."""


def fetch(
    store: Store,
    asked: Asked,
    *,
    fresh: bool = False,
    finish: Finish | None = None,
    progress: Progress | None = None,
    told: Told | None = None,
) -> Run:
    """The run that was asked for, from the store or into it.

    - `fresh`: compute it again, and refuse if it does not agree, bit for bit, with what is stored. What is damaged of
      that is put aside.
    - `finish`: what is found out about a run before it is kept, such as its phases.
    - `told`: is told in words what is done, such as waiting for another process.

    A run that takes longer than a few seconds is checkpointed. After Ctrl-C (`Interrupted`) or a crash, asking again
    goes on from the last checkpoint, and ends with the same bits.
    """
    there = None if fresh else _finished(store, asked)
    if there:
        return there
    with store.locked(asked.identity, told=told):
        aside = _cleared(store, asked, told) if fresh else []
        there = _finished(store, asked)  # another process may have made it meanwhile
        if there and not fresh:
            return there
        entry = store.prepare(asked.identity, spec_of(asked))
        tidied(entry)
        for line in aside:
            store.note(entry.id, line)
        checkpoint = entry.folder / CHECKPOINTS[1 if there else 0]
        run = _compute(store, entry, asked, finish, progress, told, checkpoint)
        if there:
            _agree(entry, there, run, checkpoint)
        else:
            _commit(store, entry, run)
        for name in CHECKPOINTS:
            (entry.folder / name).unlink(missing_ok=True)
    return replace(run, entry=store.find(entry.id))  # as it is now


def spec_of(asked: Asked) -> dict[str, Any]:
    """As it is written in `spec.json`: all that was asked, and words for listings."""
    about = {"paper": "", "settings": {}, "dynamics": asked.label, "seeds": list(asked.seeds)}
    return {"kind": "run", **about, **asked.about, "asked": asked.description}


def opened(entry: Entry, asked: Asked | None = None) -> Run:
    """A finished run; what is not finished, or damaged, is refused with a sentence and not changed."""
    if entry.trouble:
        raise BadInput(entry.trouble)
    if entry.kind != "run":
        raise BadInput(f"{entry.id} is a sweep, but a run was expected.")
    if entry.state != "finished":
        raise BadInput(f"The run {entry.id} is {entry.state}; ask for it again with `tutelage run` to finish it.")
    try:
        run = Run.read(load_tree(entry.result, sealed=True), asked)
    except BadInput as error:
        raise BadInput(f"{error} It was not changed. {way_out(entry.folder)}") from None
    return replace(run, claims=read_claims(entry.folder), entry=entry, computed=False)


def read_claims(folder: Path) -> Table | None:
    """The claims that were checked at the settings of a run; None if nobody has. Whether by the code that its paper has
    now, only the paper can tell (`Study.judged`)."""
    path = folder / CLAIMS
    if not os.path.lexists(path):
        return None
    try:
        kept = read_record(path)
        return Table.read(kept["claims"], kept.get("code", ""))
    except BadInput as error:
        raise BadInput(f"{error} {way_out(folder)}") from None
    except (TypeError, KeyError, ValueError):
        raise BadInput(f"{path} holds no checked claims; it was not changed. {way_out(folder)}") from None


def write_claims(entry: Place, table: Table) -> None:
    """Keep checked claims beside their run."""
    path = entry.folder / CLAIMS
    with writing(path):
        write_record({"claims": table.records(), "code": table.code}, path)


def _finished(store: Store, asked: Asked) -> Run | None:
    if asked.identity not in store:
        return None
    entry = store.find(asked.identity)
    if entry.state not in ("finished", "damaged"):
        return None
    known = store.recent(entry)
    run = opened(entry, asked) if known is None else replace(known, claims=read_claims(entry.folder), entry=entry)
    if known is None:
        store.remember(entry, run)
    return replace(run, dataset=run.dataset.copy())  # callers may add to theirs


def _cleared(store: Store, asked: Asked, told: Told | None) -> list[str]:
    """Put aside what is damaged of an entry: files that the run can do without, or else all of it. What was done."""
    if asked.identity not in store:
        return []
    folder = store.root / asked.identity
    lines = [f"{path.name} is damaged and was moved to {store.put_aside(path)}" for path in _damaged(folder)]
    entry = store.find(asked.identity)
    try:
        if entry.state in ("finished", "damaged"):
            opened(entry)
    except BadInput:
        lines.append(f"what was here is damaged and was moved to {store.put_aside(folder)}")
    if told:
        for line in lines:
            told(f"{asked.identity}: {line}")
    return lines


def _damaged(folder: Path) -> Iterator[Path]:
    """Files beside a run that cannot be read: claims and checkpoints."""
    try:
        read_claims(folder)
    except BadInput:
        yield folder / CLAIMS
    for name in CHECKPOINTS:
        if is_file(folder / name) and not intact(folder / name):
            yield folder / name


def _compute(
    store: Store,
    entry: Entry,
    asked: Asked,
    finish: Finish | None,
    progress: Progress | None,
    told: Told | None,
    path: Path,
) -> Run:
    def say(line: str) -> None:
        store.note(entry.id, line)
        if told:
            told(f"{entry.id}: {line}")

    store.note(entry.id, "begun" if not path.is_file() else "begun again")
    try:
        run = perform(asked, progress=progress, checkpoint=Checkpoint(path, log=say))
    except Interrupted:
        store.note(entry.id, "stopped when asked to; what was done is kept")
        raise
    except BadInput as error:
        if path in _damaged(entry.folder):
            raise BadInput(f"{error} {way_out(entry.folder)}") from None
        if not entry.result.is_file() and not any((entry.folder / name).is_file() for name in CHECKPOINTS):
            shutil.rmtree(entry.folder, ignore_errors=True)  # there is no such run
        raise
    store.note(entry.id, f"computed in {duration(run.seconds)}")
    run = finish(run) if finish else run
    about = {"seconds": run.seconds, "facts": json.dumps(plain(run.facts))}
    return replace(run, dataset=run.dataset.assign_attrs(about), entry=entry)


def _commit(store: Store, entry: Entry, run: Run) -> None:
    """The summary first, the trajectory last: a run counts as finished when its trajectory is there."""
    with writing(entry.folder):
        write_record(replace(run, entry=None).summary(), entry.folder / "summary.json")
        replaced(entry.result, lambda part: part.write_bytes(packed(run.tree())))
    store.note(entry.id, "stored")


def _agree(entry: Entry, stored: Run, run: Run, checkpoint: Path) -> None:
    found = tree_differences(load_tree(entry.result, sealed=True), run.tree())
    if found:
        checkpoint.unlink(missing_ok=True)  # asking again is to compute again
        raise Disagreement(
            f"The run {entry.id} computed afresh differs from the stored one in {'; '.join(found)}. The stored "
            f"one was kept. It was made by {_made(stored.dataset)}, this one by {_made(run.dataset)}."
        )


def _made(dataset: xr.Dataset) -> str:
    return ", ".join(f"{name} {dataset.attrs.get(f'{name}_version', '?')}" for name in ("tutelage", "jax", "python"))


def tree_differences(one: xr.DataTree, other: xr.DataTree) -> list[str]:
    """In which variables two runs differ: in their records, their last weights or their stages."""
    parts: list[dict[str, xr.Dataset]] = [
        {node.relative_to(tree): node.to_dataset(inherit=False) for node in tree.subtree} for tree in (one, other)
    ]
    found = []
    for path in dict.fromkeys([*parts[0], *parts[1]]):
        prefix = "" if path in (".", WHOLE) else f"{path}/"
        found += [prefix + text for text in differences(*(part.get(path, xr.Dataset()) for part in parts))]
    return found


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
