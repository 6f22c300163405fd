"""A run in progress kept on disk: written between chunks by atomic replace, and taken up again by the same run."""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tutelage._files import replaced
from tutelage._interrupt import stop_asked


class Keepable(Protocol):
    """What can be kept: it writes itself to a file, and reads itself back."""

    def save(self, path: str | Path) -> None: ...

    def restore(self, path: str | Path) -> None: ...


class Checkpoint:
    """The file in which a run in progress is kept.

    It is written at most every `every` seconds, and so that it costs less than a tenth of the time of the run. A full
    disk stops the writing and not the run. `said` is told what happens, one line at a time.
    """

    def __init__(self, path: str | Path, *, every: float = 2.0, said: Callable[[str], None] | None = None):
        self.path, self.every = Path(path), every
        self._said = said or (lambda line: None)
        self._due = time.monotonic() + every
        self._written = self._failed = False

    def resume(self, kept: Keepable) -> bool:
        """Take up what an earlier process left; False if there is nothing."""
        if not self.path.is_file():
            return False
        kept.restore(self.path)
        self._written = True
        self._said(f"taken up again from {self.path.name}")
        return True

    def between(self, kept: Keepable) -> None:
        """Called between chunks: write if it is due, or if a stop was asked for."""
        if stop_asked() or time.monotonic() >= self._due:
            self._write(kept)

    def ended(self, kept: Keepable) -> None:
        """Called at the end: a long run is kept until its result is safe."""
        if self._written:
            self._write(kept)

    def _write(self, kept: Keepable) -> None:
        began = time.monotonic()
        try:
            replaced(self.path, kept.save)
            self._written = True
        except OSError as error:
            if not self._failed:
                warnings.warn(f"No checkpoint was written ({error.strerror}); the run goes on.", stacklevel=2)
                self._said(f"no checkpoint: {error.strerror}")
            self._failed = True
        now = time.monotonic()
        self._due = now + max(self.every, 10 * (now - began))
