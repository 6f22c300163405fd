"""Progress of long computations: they report it, and a listener may show it."""

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator

from tutelage._extensions import extension

Listener = Callable[[str, int, int], None]

_LISTENERS: list[Listener] = []
_LOCK = threading.Lock()


def tell(label: str, done: int, total: int) -> None:
    """Say that `done` of `total` is done."""
    with _LOCK:
        for listener in _LISTENERS:
            listener(label, done, total)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within it `listener` hears everything, from all threads.

    ```python
    >>> from tutelage._progress import listening, tell
    >>> with listening(lambda label, done, total: print(label, done, total)):
    ...     tell("half", 1, 2)
    half 1 2

    ```
    """
    with _LOCK:
        _LISTENERS.append(listener)
    try:
        yield
    finally:
        with _LOCK:
            _LISTENERS.remove(listener)


@contextlib.contextmanager
def reporting(progress: Listener | None, title: str) -> Iterator[Listener]:
    """Whom a computation tells how far it is: `progress`, if there is one, or else whoever listens.

    If nobody does, and somebody sits before it, a bar appears after a second. Within it others are quiet: what a sweep
    computes needs no bar of its own. `TUTELAGE_PROGRESS=off` switches bars off.
    """
    if progress is not None:
        yield progress
    elif _LISTENERS or not watched():
        yield tell
    else:
        with extension("progress")(title=title) as bar, listening(_unheard):
            yield bar


def _unheard(label: str, done: int, total: int) -> None:
    """Nobody shows what is told within something longer."""


def watched() -> bool:
    """Whether somebody sees what this computation says: at a terminal, or in a notebook; not in a worker."""
    if os.environ.get("TUTELAGE_PROGRESS", "").lower() == "off":
        return False
    if multiprocessing.parent_process() is not None or threading.current_thread() is not threading.main_thread():
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules
