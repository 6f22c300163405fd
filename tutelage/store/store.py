"""A folder of runs: one folder each, named by a hash of its full specification. Made to be listed without JAX."""

import itertools
import math
import os
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import filelock

from tutelage._checks import instance
from tutelage._checks import path as path_at
from tutelage._errors import BadInput
from tutelage._extensions import extension
from tutelage._files import CHECKSUM, is_file, log, read_json, read_record, write_record, writing
from tutelage._identity import LENGTH, digest
from tutelage._interrupt import Interrupted, stop_asked
from tutelage._revisions import SCHEMA, outdated

if TYPE_CHECKING:
    from tutelage.dynamics.base import AbstractDynamics
    from tutelage.dynamics.driver import Progress
    from tutelage.dynamics.record import Record, Stop, When
    from tutelage.problem.problem import AbstractProblem
    from tutelage.trajectory.asked import Asked, Stage
    from tutelage.trajectory.result import Run

VARIABLE = "TUTELAGE_STORE"
RESULT = {"run": "trajectory.nc", "sweep": "sweep.nc"}
State = Literal["finished", "unfinished", "running", "damaged"]
RECENT, LARGE = 64, 2**25
"""How many runs a store keeps at hand, and how many bytes each may have."""
CLAIMS = "claims.json"
CHECKPOINTS = ("checkpoint.npz", "again.npz")
"""Of a run that is computed for the first time, and of one computed afresh."""


@dataclass(frozen=True)
class Entry:
    """A run or a sweep in a store, as far as its small files tell. `spec` is empty if it is damaged."""

    id: str
    folder: Path
    spec: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    changed: float = field(default=0.0, compare=False)
    """When something was last written, in seconds since 1970."""

    @property
    def kind(self) -> Literal["run", "sweep"]:
        return "sweep" if self.spec.get("kind") == "sweep" else "run"

    @property
    def result(self) -> Path:
        """The file with the numbers."""
        return self.folder / RESULT[self.kind]

    @cached_property
    def state(self) -> State:
        if self.trouble:
            return "damaged"
        if self.summary and is_file(self.result):
            return "finished"
        return "running" if _held(self.folder.parent, self.id) else "unfinished"

    @property
    def outdated(self) -> dict[str, int]:
        """Revisions that computed it and are no longer the present ones; asking for the run computes it again."""
        return outdated(self.spec.get("asked", {}).get("revisions", {}))

    def value(self, name: str) -> object:
        """A setting, a part of the specification or a number of the summary, by name; None if there is none."""
        facts = {"id": self.id, "state": self.state, "kind": self.kind, "seeds": len(self.spec.get("seeds", ()))}
        for source in (facts, self.spec.get("settings", {}), self.spec, self.summary):
            if name in source:
                found = source[name]
                return found.get("median") if isinstance(found, dict) else found
        return None

    def record(self) -> dict[str, Any]:
        """A plain dictionary, ready for JSON."""
        about = {"id": self.id, "kind": self.kind, "state": self.state, "folder": str(self.folder)}
        return about | ({"trouble": self.trouble} if self.trouble else {"spec": self.spec, "summary": self.summary})


class Store:
    """A folder of runs and sweeps; `runs/` or what TUTELAGE_STORE says, unless given.

    ```python
    >>> import tempfile, tutelage as tt
    >>> store = tt.Store(tempfile.mkdtemp())
    >>> run = tt.papers.both_layers(steps=50).descend(seeds=2, store=store)
    >>> again = tt.papers.both_layers(steps=50).descend(seeds=2, store=store)  # read, not computed
    >>> [entry.state for entry in store.entries()], bool((run.loss == again.loss).all())
    (['finished'], True)

    ```
    """

    def __init__(self, root: str | Path | None = None):
        self.root = path_at("The folder of a store", root if root is not None else os.environ.get(VARIABLE) or "runs")
        if self.root.is_file():
            raise BadInput(f"{self.root} is a file, but the folder of a store was expected; choose another place.")
        self._recent: OrderedDict[str, tuple[tuple[int, int], Run]] = OrderedDict()

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def fetch(
        self,
        asked: "Asked",
        *,
        fresh: bool = False,
        finish: "Callable[[Run], Run] | None" = None,
        progress: "Progress | None" = None,
        told: Callable[[str], None] | None = None,
    ) -> "Run":
        """The run that was asked for: read if it is here, resumed or computed if not (`store.fetching`)."""
        from tutelage.store.fetching import fetch

        return fetch(self, asked, fresh=fresh, finish=finish, progress=progress, told=told)

    def run(
        self,
        problem: "AbstractProblem",
        dynamics: "AbstractDynamics | Sequence[Stage]",
        *,
        seeds: int | Sequence[int] = 1,
        record: "Record | When | None" = None,
        stop: "Stop | None" = None,
        certify: bool = False,
        fresh: bool = False,
        progress: "Progress | None" = None,
    ) -> "Run":
        """The run of a problem by a dynamics: `tutelage.run` with this store.

        ```python
        >>> import tempfile, tutelage as tt
        >>> line = tt.TwoLayer("linear", first=[[1.0]])
        >>> problem = tt.Problem(tt.Gaussian(100), line, tt.TwoLayer("linear", first=tt.GaussianRows(0.01), width=1))
        >>> store = tt.Store(tempfile.mkdtemp())
        >>> run = store.run(problem, tt.Flow(until=20.0), seeds=2)
        >>> store.run(problem, tt.Flow(until=20.0), seeds=2).computed
        False

        ```
        """
        run: Run = extension("run")(
            problem, dynamics, seeds=seeds, record=record, stop=stop, certify=certify, fresh=fresh, progress=progress,
            store=self,
        )  # fmt: skip
        return run

    def open(self, entry: "Entry | str") -> "Run":
        """A finished run, by its entry, its id or the beginning of its id."""
        from tutelage.store.fetching import opened

        return opened(self.find(entry) if isinstance(entry, str) else entry)

    def recent(self, entry: Entry) -> "Run | None":
        """A run that this process has lately read from here or put here, as long as its file is the same."""
        stamp, run = self._recent.get(entry.id, (None, None))
        return run if run is not None and stamp == _stamp(entry.result) else None

    def remember(self, entry: Entry, run: "Run") -> None:
        """Keep a run of moderate size at hand: opening a file takes far longer than reading its numbers."""
        if run.dataset.nbytes > LARGE:
            return
        self._recent[entry.id] = (_stamp(entry.result), run)
        self._recent.move_to_end(entry.id)
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)

    @contextmanager
    def in_use(self) -> Iterator["Store"]:
        """Within it every run of this process is asked of this store, from all threads.

        ```python
        >>> import tempfile, tutelage as tt
        >>> with tt.Store(tempfile.mkdtemp()).in_use() as store:
        ...     run = tt.papers.both_layers(steps=50).descend(seeds=2)
        >>> len(store.entries())
        1

        ```
        """
        _IN_USE.append(self)
        try:
            yield self
        finally:
            _IN_USE.remove(self)

    def entries(self) -> list[Entry]:
        """All runs and sweeps, the newest first. A damaged one is an entry that says so."""
        found = [self._entry(id) for id in self._ids()]
        return sorted(found, key=lambda entry: (entry.changed, entry.id), reverse=True)

    def _ids(self) -> list[str]:
        """What is here by name. A folder with neither specification nor result is one that is just being made."""
        if not self.root.is_dir():
            return []
        names = [name for name in os.listdir(self.root) if re.fullmatch(f"[0-9a-f]{{{LENGTH}}}", name)]
        return [name for name in names if name in self]

    def __contains__(self, id: str) -> bool:
        return any(is_file(self.root / id / file) for file in ("spec.json", *RESULT.values()))

    def _entry(self, id: str) -> Entry:
        folder = self.root / id
        try:
            changed = folder.stat().st_mtime
        except OSError:
            changed = 0.0  # removed a moment ago
        try:
            spec = _specification(folder / "spec.json", id)
            there = os.path.lexists(folder / "summary.json")
            summary = read_record(folder / "summary.json") if there else {}
        except _Older as error:
            return Entry(id, folder, trouble=str(error), changed=changed)
        except BadInput as error:
            return Entry(id, folder, trouble=f"{error} {way_out(folder)}", changed=changed)
        return Entry(id, folder, spec, summary, changed=changed)

    def find(self, id: str) -> Entry:
        """The entry whose id begins with these digits; "last" is the newest."""
        instance("The id of a run", id, str, "text")
        if id == "last" and (entries := self.entries()):
            return entries[0]
        if len(id) == LENGTH and id in self:
            return self._entry(id)  # without a look at all others
        found = [name for name in self._ids() if name.startswith(id.lower())] if id else []
        if len(found) != 1:
            what = f"{len(found)} runs of {self.root} begin with {id!r}" if found else f"{self.root} has no run {id!r}"
            raise BadInput(f"{what}; `tutelage runs` lists what there is.")
        return self._entry(found[0])

    def select(self, paper: str | None = None, where: Iterable[str] = ()) -> list[Entry]:
        """Entries of a paper, for which all conditions such as `dim>1e4` are true."""
        tests = [condition(text) for text in where]
        kept = [e for e in self.entries() if paper is None or e.spec.get("paper") == paper]
        return [entry for entry in kept if all(test(entry) for test in tests)]

    def remove(self, entry: Entry) -> None:
        """Delete an entry, unless a process is at work on it."""
        with self.locked(entry.id, wait=False), writing(entry.folder):
            if entry.folder.is_symlink():
                entry.folder.unlink()  # what it leads to is not of this store
                return
            # First out of sight, so that nothing half-deleted is seen.
            gone = entry.folder.with_name(f".{entry.id}.removed")
            shutil.rmtree(gone, ignore_errors=True)  # of an earlier removal that was cut short
            os.replace(entry.folder, gone)
            shutil.rmtree(gone)

    def put_aside(self, path: Path) -> Path:
        """Move an entry, or a file of one, out of the way of the one who holds its lock; where it is now."""
        names = (f".{path.name}.damaged{number or ''}" for number in itertools.count())
        place = next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))
        with writing(path):
            os.replace(path, place)
        return place

    def prepare(self, id: str, spec: dict[str, Any]) -> Entry:
        """The folder of a specification, made if it is not there."""
        folder = self.root / id
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / "spec.json").is_file():
                write_record(spec, folder / "spec.json")
        entry = self._entry(id)
        if entry.trouble:
            raise BadInput(entry.trouble)
        return entry

    @contextmanager
    def locked(self, id: str, *, wait: bool = True, told: Callable[[str], None] | None = None) -> Iterator[None]:
        """Within it no other process works on this entry. The lock of a process that dies is free at once."""
        with writing(self.root):
            _locks(self.root).mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(_locks(self.root) / f"{id}.lock")
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                if not wait:
                    raise BadInput(f"Another process is at work on {id}; stop it first, or wait for it.") from None
                if told:
                    told(f"another process is at work on {id}; waiting for it")
                _wait(lock)
        try:
            yield
        finally:
            lock.release()

    def note(self, id: str, line: str) -> None:
        """Add a line to the log of an entry."""
        log(self.root / id, line)


def way_out(folder: Path) -> str:
    """What to do about an entry that cannot be read."""
    removed = f"`tutelage rm {folder.name}` removes it"
    if os.path.lexists(folder / RESULT["sweep"]):
        return f"{removed}; the sweep asked for again keeps its cells."
    return f"Ask for the run with --fresh (fresh=True in Python) to put it aside and compute it anew, or {removed}."


def _stamp(path: Path) -> tuple[int, int]:
    """Changes when a file is replaced."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


_IN_USE: list[Store] = []


@contextmanager
def some_store() -> Iterator[Store]:
    """The store that is in use or, if there is none, one that is gone afterwards: what is shared is computed once."""
    here = current_store()
    if here is not None:
        yield here
        return
    with tempfile.TemporaryDirectory(prefix="tutelage-") as folder, Store(folder).in_use() as store:
        yield store


def current_store() -> Store | None:
    """The store that runs are asked of, if one is in use."""
    return _IN_USE[-1] if _IN_USE else None


class _Older(BadInput):
    """A specification of an earlier version. The run that it asked for has another name now."""


def _specification(path: Path, id: str) -> dict[str, Any]:
    """A specification of this version, with this name; any other is refused."""
    try:
        spec = read_record(path)
    except BadInput:
        older = read_json(path)
        if isinstance(older, dict) and (older.get("schema") or older.get("asked")) and CHECKSUM not in older:
            raise _Older(
                f"{path} was written by an earlier version of tutelage, whose numbers are not read as those of this "
                f"one; it was not changed; `tutelage rm {id}` removes the entry."
            ) from None
        raise
    asked = spec.get("asked")
    known = isinstance(asked, dict) and asked.get("schema") == SCHEMA and digest(asked) == id
    if not known or not _consistent(spec):
        raise BadInput(f"{path} is not a specification that this version knows; it was not changed.")
    return spec


def _consistent(spec: dict[str, Any]) -> bool:
    """Whether the words for listings are there, and say what was asked."""
    asked, needed = spec["asked"], set(spec["asked"]) - _UNTOLD if spec.get("kind") == "sweep" else set()
    same = all(spec[name] == asked[name] for name in spec.keys() & asked.keys())
    return same and needed <= set(spec) and all(isinstance(spec.get(name), kind) for name, kind in _PARTS.items())


_UNTOLD = {"schema", "revisions", "runs"}
"""Of what a sweep was asked, all but these are its words for listings as well."""
_PARTS = {"kind": str, "paper": str, "settings": dict, "dynamics": str, "seeds": list}
"""Of every specification, for listings."""


def tidied(entry: Entry) -> None:
    """Remove what processes that were killed left half-written; only who holds the lock writes these files."""
    for name in ("spec.json", "summary.json", entry.result.name, *CHECKPOINTS):
        for part in entry.folder.glob(f".{name}.*.part"):
            part.unlink(missing_ok=True)


def _locks(root: Path) -> Path:
    return root / ".locks"


def _wait(lock: filelock.BaseFileLock) -> None:
    """Wait for a lock, until it is free or a stop is asked for."""
    try:
        lock.acquire(cancel_check=stop_asked)
    except filelock.Timeout:
        raise Interrupted from None


def _held(root: Path, id: str) -> bool:
    path = _locks(root) / f"{id}.lock"
    if not path.is_file():
        return False
    try:
        with filelock.FileLock(path, timeout=0):
            return False
    except filelock.Timeout:
        return True
    except OSError:
        return False  # a store that can only be read has nobody at work in it


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=": lambda a, b: a == b,
}


def condition(text: str) -> Callable[[Entry], bool]:
    """A condition such as `dim>1e4`, `init=iid` or `loss<1e-8`; an entry without the value does not meet it.

    ```python
    >>> from pathlib import Path
    >>> from tutelage.store.store import Entry, condition
    >>> condition("dim>1e4")(Entry("0", Path(), {"settings": {"dim": 10**6}}))
    True

    ```
    """
    found = re.fullmatch(r"([A-Za-z_]\w*)\s*(<=|>=|!=|==|=|<|>)\s*([^<>=!\s][^<>=!]*)", text.strip())
    if not found:
        raise BadInput(f"--where {text!r} is not a condition; write for example dim>1e4 or init=iid.")
    name, relation, wanted = found.groups()
    if relation[0] in "<>" and not _is_number(wanted):
        raise BadInput(f"--where {text!r} compares with {wanted!r}, but a number was expected, such as in dim>1e4.")
    compare = _RELATIONS[relation.replace("==", "=")]

    def meets(entry: Entry) -> bool:
        value: Any = entry.value(name)
        if value is None:
            return False
        try:
            return compare(float(value), float(wanted))
        except (TypeError, ValueError):
            return relation in ("=", "==", "!=") and compare(str(value), wanted)

    return meets
