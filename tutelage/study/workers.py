"""Where the cells of a sweep are computed on this machine: in this process, or in several of its own.

A way to compute takes cells by name and yields `(name, outcome)` as they come. An outcome is what `cells.compute`
gave, or `{"error": sentence}`, with `refused` if what was asked for cannot be. When a stop is asked for, cells in
progress stop at their next chunk and do not come.
"""

import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
from loky import ProcessPoolExecutor
from loky.backend import get_context

from tutelage._errors import BadInput
from tutelage._interrupt import Interrupted, ask_to_stop, stop_asked
from tutelage.study.cells import Cell, compute

Outcome = dict[str, Any]
ATTEMPTS = 3
"""How often in a row workers may die without finishing a cell."""
PAUSE = 0.2  # seconds between looks at whether a stop was asked for


def inline(cells: Mapping[str, Cell]) -> Generator[tuple[str, Outcome], None, None]:
    """One after another, in this process."""
    for name, cell in cells.items():
        if stop_asked():
            return
        try:
            yield name, attempt(cell)
        except Interrupted:
            return


def attempt(cell: Cell) -> Outcome:
    """The outcome of a cell; an error is one, so that it does not stop the others."""
    try:
        return compute(cell)
    except BadInput as error:
        return {"error": str(error), "refused": True}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def processes(cells: Mapping[str, Cell], count: int) -> Generator[tuple[str, Outcome], None, None]:
    """In `count` processes. If one dies, all are started again with the cells that are not done."""
    waiting, deaths = dict(cells), 0
    while waiting and not stop_asked():
        # After a death that nothing was finished before, one by one: then it is clear which cell it was.
        part = dict(itertools.islice(waiting.items(), count)) if deaths else dict(waiting)
        before = len(waiting)
        for name, outcome in _pooled(part, 1 if deaths else min(count, len(part))):
            del waiting[name]
            yield name, outcome
        deaths = 0 if len(waiting) < before else deaths + 1
        if deaths == ATTEMPTS:
            name = next(iter(waiting))
            del waiting[name]
            yield name, {"error": f"The worker died {ATTEMPTS} times in a row, perhaps for want of memory."}
            deaths = 0


def _pooled(cells: Mapping[str, Cell], count: int) -> Iterator[tuple[str, Outcome]]:
    """Cells in one pool of processes, until they are done, a process dies, or a stop is asked for."""
    payloads = {name: packed(cell) for name, cell in cells.items()}
    heard, said = multiprocessing.Pipe(duplex=False)
    # "loky": no fork, in which JAX hangs, and the user's script is not run again, as "spawn" would do.
    pool = ProcessPoolExecutor(count, context=get_context("loky"), initializer=_begin, initargs=(heard, os.getpid()))
    names: dict[Future[Outcome | None], str] = {}
    try:
        # Compiled programs stay in a worker; loky takes them for a leak and says so when it starts another.
        warnings.filterwarnings("ignore", message="A worker was restarted", category=UserWarning)
        with _deaf():
            names.update((pool.submit(work, payload), name) for name, payload in payloads.items())
        yield from _collected(names, said)
    except BrokenProcessPool:
        return
    finally:
        # Not asked to end, but ended: one that died while it held the lock of the queue would let the others wait for
        # ever. What they have done is here; if some are not done, whoever asked is gone, and nobody wants the rest.
        pool.shutdown(kill_workers=True)
        heard.close()
        said.close()


def _collected(names: Mapping[Future[Outcome | None], str], said: Connection) -> Iterator[tuple[str, Outcome]]:
    unfinished, told = set(names), False
    while unfinished:
        done, unfinished = wait(unfinished, PAUSE, FIRST_COMPLETED)
        for future in done:
            outcome = future.result()
            if outcome is not None:
                yield names[future], outcome
        if stop_asked() and not told:
            unfinished, told = {future for future in unfinished if not future.cancel()}, True
            said.send_bytes(b"stop")


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Workers started here never hear Ctrl-C, which a terminal sends to them too: it is for us to stop them."""
    resource_tracker.ensure_running()  # started within, it would let Ctrl-C in again (Python 3.11)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(heard: Connection, parent: int) -> None:
    """In a new worker: it listens for a request to stop, and ends when its parent is gone."""
    threading.Thread(target=_listen, args=(heard, parent), daemon=True).start()


def _listen(heard: Connection, parent: int) -> None:
    # What was said is left in the pipe, which all workers share. A worker of loky alone outlives a killed parent:
    # with 3.7.0 two of them, one idle and one at work, were still there ten minutes later.
    while os.getppid() == parent:
        if heard.poll(PAUSE):
            ask_to_stop()
            time.sleep(PAUSE)
    os._exit(1)


def packed(cell: Cell) -> bytes:
    """A cell to be sent. What is of the user's own modules goes along by value: a worker may not have their files."""
    own = _modules(cell)
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        sent: bytes = cloudpickle.dumps(cell)
        return sent
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _modules(cell: Cell) -> list[ModuleType]:
    """The modules of the functions and classes that a cell brings along, and what they import from beside them."""
    names = {getattr(each, "__module__", None) or "" for each in _code((cell.study, cell.measurements))}
    found = {name: module for name in sorted(names) if (module := sys.modules.get(name)) and not _ours(name)}
    folders = {Path(file).parent for module in found.values() if (file := _file(module))}
    beside = {
        name: each for name, each in list(sys.modules.items()) if (file := _file(each)) and _within(file, folders)
    }
    return list((found | {name: each for name, each in beside.items() if not _ours(name)}).values())


def _ours(name: str) -> bool:
    return name.partition(".")[0] in ("tutelage", "__main__", "__mp_main__")


def _file(module: ModuleType) -> str | None:
    """The file of a module that is not installed: what is, a worker has, or is told to install."""
    file = getattr(module, "__file__", None)
    return file if file and "site-packages" not in Path(file).parts else None


def _within(file: str, folders: set[Path]) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _code(thing: Any) -> Iterator[Any]:
    """The functions and classes in a thing made of plain parts."""
    if isinstance(thing, partial):
        yield from _code((thing.func, thing.args, thing.keywords))
    elif isinstance(thing, Mapping):
        yield from _code(tuple(thing.values()))
    elif isinstance(thing, (list, tuple)):
        for each in thing:
            yield from _code(each)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        yield type(thing)
        yield from _code(tuple(vars(thing).values()))
    elif callable(thing):
        yield thing


def work(payload: bytes) -> Outcome | None:
    """A packed cell in a worker; None if it was asked to stop."""
    try:
        return None if stop_asked() else attempt(cloudpickle.loads(payload))
    except Interrupted:
        return None
