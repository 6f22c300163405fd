"""Stopping a run from outside, between two chunks, so that nothing is lost."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

_ASKED = threading.Event()


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop and did, between two chunks. What it had done is in its checkpoint, if it has one."""


def ask_to_stop() -> None:
    """Ask every run of this process to stop at its next chunk."""
    _ASKED.set()


def stop_asked() -> bool:
    """Whether a stop was asked for."""
    return _ASKED.is_set()


@contextlib.contextmanager
def gentle_signals(*, patient: bool = False) -> Iterator[None]:
    """Within it Ctrl-C, and a request to terminate, stop runs at the next chunk; a second Ctrl-C stops at once.

    `patient`: however many come, for a worker whose parent decides.
    """

    def stop(number: int, frame: Any) -> None:
        if _ASKED.is_set() and number == signal.SIGINT and not patient:
            raise KeyboardInterrupt
        _ASKED.set()

    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _ASKED.clear()
