"""A run in progress kept on disk: written between chunks by atomic replace, and read again by the same run."""

import abc
import json
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tutelage._checks import function, real
from tutelage._checks import path as path_at
from tutelage._errors import BadInput
from tutelage._files import replaced
from tutelage._interrupt import stop_asked

Arrays = dict[str, NDArray[Any]]

UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, struct.error),
    *(zipfile.BadZipFile, zlib.error),
)
"""What a damaged archive may raise."""


class Kept(abc.ABC):
    """What a checkpoint keeps: something in progress that is plain values and arrays, and can go on from them.

    `identity` says what it is; a file with another one is refused.
    """

    identity: str

    @abc.abstractmethod
    def arrays(self) -> tuple[dict[str, Any], Arrays]:
        """All that is needed to go on."""

    @abc.abstractmethod
    def adopt(self, about: dict[str, Any], saved: Arrays) -> None:
        """Go on from there."""

    def save(self, path: str | Path) -> None:
        """Write one file: nothing pickled, and an index that tells when something is missing."""
        about, arrays = self.arrays()
        index = json.dumps({"identity": self.identity, "about": about, "arrays": list(arrays)})
        with open(path, "wb") as file:
            np.savez(file, **{"index": np.array(index), **arrays})  # type: ignore[arg-type]

    def restore(self, path: str | Path) -> None:
        """Continue from a file that the same thing wrote; another is refused."""
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
                arrays = {name: saved[name] for name in saved.files}
                index = json.loads(str(arrays.pop("index")))
            if set(index["arrays"]) != set(arrays):  # a damaged index may leave out some
                raise ValueError("arrays are missing")
        except UNREADABLE as error:
            raise BadInput(f"{path} cannot be read as the checkpoint of a run ({error}); move it away.") from None
        if index["identity"] != self.identity:
            raise BadInput(f"{path} was saved by a different run; ask for that run, or move the file away.")
        self.adopt(index["about"], arrays)


class Checkpoint:
    """The file in which a run in progress is kept.

    It is written at most every `every` seconds, and so that it costs less than a tenth of the time of the run. A full
    disk stops the writing and not the run. `log` gets a line for everything that happens.
    """

    def __init__(self, path: str | Path, *, every: float = 2.0, log: Callable[[str], None] | None = None):
        self.path, self.every = path_at("checkpoint", path), real("checkpoint: every", every, least=0)
        if self.path.is_dir():
            raise BadInput(f"checkpoint is {str(path)!r}, which is a folder, but a file was expected.")
        self._log = (lambda line: None) if log is None else function("checkpoint: log", log, "a line of text")
        self._due = time.monotonic() + self.every
        self._written = self._failed = False

    def resume(self, kept: Kept) -> bool:
        """Take up what an earlier process left; False if there is nothing."""
        if not self.path.is_file():
            return False
        kept.restore(self.path)
        self._written = True
        self._log(f"goes on from {self.path.name}")
        return True

    def between(self, kept: Kept) -> None:
        """Called between chunks: write if it is due, or if a stop was asked for."""
        if stop_asked() or time.monotonic() >= self._due:
            self._write(kept)

    def ended(self, kept: Kept) -> None:
        """Called at the end: a long run is kept until its result is safe."""
        if self._written:
            self._write(kept)

    def _write(self, kept: Kept) -> None:
        began = time.monotonic()
        try:
            replaced(self.path, kept.save)
            self._written = True
        except OSError as error:
            if not self._failed:
                warnings.warn(f"No checkpoint was written ({error.strerror}); the run goes on.", stacklevel=2)
                self._log(f"no checkpoint: {error.strerror}")
            self._failed = True
        now = time.monotonic()
        self._due = now + max(self.every, 10 * (now - began))


def checkpoint_at(place: Checkpoint | str | Path | None) -> Checkpoint | None:
    """A checkpoint, from one or from its path."""
    return place if isinstance(place, Checkpoint) or place is None else Checkpoint(place)
