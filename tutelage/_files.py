"""Files: written whole or not at all, sealed, and read with a clear sentence when they cannot be."""

import contextlib
import datetime
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from tutelage._errors import BadInput
from tutelage._identity import digest
from tutelage._plain import dumps, plain

SEAL = b"\ntutelage sha256 "
SEALED = len(SEAL) + 64 + 1
"""Bytes of a seal: the last of a file, with the hash of all before them."""
CHECKSUM = "checksum"
LARGE = 2**28
"""More bytes of JSON than anything writes here."""


def replaced(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file so that at every moment either the old one or the new one is there, whole."""
    path = Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not path.is_file():
        raise OSError("it is there and is not an ordinary file")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        part.chmod(0o644)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def is_file(path: Path) -> bool:
    """Whether it is an ordinary file that may be looked at; a folder of somebody else's may forbid it."""
    try:
        return path.is_file()
    except OSError:
        return False


def deliver(name: str | Path, write: Callable[[Path], object], *, parents: bool = False) -> None:
    """Write a file that a user named: whole or not at all, and what stands in the way is one sentence.

    `parents`: make its folder if it is not there.
    """
    path = _place(name)
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        replaced(path, write)
    except OSError as error:
        raise _unwritable(name, error) from None


def check_file(name: str | Path) -> None:
    """Refuse a file that `deliver` could not write, before its content is computed.

    ```python
    >>> from tutelage._files import check_file
    >>> check_file("no/such/folder/run.nc")
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: The folder of 'no/such/folder/run.nc' does not exist; make it first or choose another.

    ```
    """
    path = _place(name)
    if not path.parent.is_dir():
        raise BadInput(f"The folder of {str(name)!r} does not exist; make it first or choose another.")
    try:
        _try(path.parent)
    except OSError as error:
        raise _unwritable(name, error) from None


def check_folder(name: str | Path) -> None:
    """Refuse a folder that cannot be made or written to; it is not made, and nothing is left there."""
    folder = Path(os.path.abspath(name))
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    try:
        _try(there)
    except OSError as error:
        raise _unwritable(name, error) from None


def _place(name: str | Path) -> Path:
    """Where a file that a user named is to be. A link is followed; a folder or a device is not replaced."""
    path = Path(os.path.realpath(name))
    if path.is_dir():
        raise BadInput(f"{str(name)!r} is a folder, but the name of a file was expected; add one.")
    if os.path.lexists(path) and not path.is_file():
        raise BadInput(f"{str(name)!r} is not a file that can be replaced; choose another name.")
    if path.is_file() and not os.access(path, os.W_OK):
        raise BadInput(f"{str(name)!r} is write-protected; choose another name, or correct its permissions.")
    return path


def _try(folder: Path) -> None:
    """Write a little and remove it: permissions alone do not tell whether a disk takes anything."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(4096))
        file.flush()


def _unwritable(name: str | Path, error: OSError) -> BadInput:
    reason = error.strerror or str(error)
    return BadInput(f"{str(name)!r} cannot be written ({reason}); choose another place, or free some space.")


def write_json(value: Any, path: Path) -> None:
    """The value as a JSON file, by atomic replace."""
    text = dumps(value) + "\n"

    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8")

    replaced(path, write)


def read_json(path: Path) -> Any:
    """Read JSON; a damaged file is refused and not changed."""
    try:
        return json.loads(_content(path).decode(), parse_constant=_no_number)
    except RecursionError:
        reason = "it is nested too deeply"
    except (OSError, ValueError) as error:
        reason = str(error)
    raise BadInput(f"{path} cannot be read ({reason}); it was not changed; repair it or move it away.")


def write_record(record: dict[str, Any], path: Path) -> None:
    """A dictionary as a JSON file with a checksum of its own."""
    write_json(record | {CHECKSUM: digest(plain(record))}, path)


def read_record(path: Path) -> dict[str, Any]:
    """What `write_record` wrote; anything else is refused and not changed."""
    record = read_json(path)
    if not isinstance(record, dict):
        raise BadInput(f"{path} holds no record; it was not changed; repair it or move it away.")
    checksum = record.pop(CHECKSUM, None)
    try:
        right = digest(record) == checksum
    except RecursionError:
        right = False
    if not right:
        raise BadInput(
            f"{path} was not written by this version, or has been changed or damaged since: its checksum does not "
            "agree; it was not changed; repair it or move it away."
        )
    return record


def sealed(content: bytes) -> bytes:
    """The content with a hash of it at the end, where readers of HDF5 and of archives do not look."""
    return content + SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n"


def intact(path: str | Path) -> bool | None:
    """Whether a sealed file is as it was written; None for one without a seal."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size - SEALED
        file.seek(max(size, 0))
        seal = file.read()
        if size < 0 or not seal.startswith(SEAL):
            return None
        found = hashlib.sha256()
        file.seek(0)
        while size > 0:
            block = file.read(min(size, 2**20))
            found.update(block)
            size -= len(block)
    return seal == SEAL + found.hexdigest().encode() + b"\n"


def _content(path: Path) -> bytes:
    with _opened(path) as file:
        content: bytes = file.read(LARGE + 1)
    if len(content) > LARGE:
        raise OSError(f"it is larger than {LARGE} bytes")
    return content


def _opened(path: str | Path) -> Any:
    """An ordinary file, open for reading. Who opens a pipe or a device may wait for ever."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is not an ordinary file")
    return open(handle, "rb")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def log(folder: Path, line: str) -> None:
    """Add a line with the time to the folder's log. One write of one line: two processes do not mix theirs."""
    stamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)  # not to wait for who reads a pipe
    with (
        contextlib.suppress(OSError),
        open(os.open(folder / "log", flags, 0o644), "a", encoding="utf-8") as file,
    ):
        file.write(f"{stamp} [{os.getpid()}] {line}\n")


@contextlib.contextmanager
def writing(what: Path | str) -> Iterator[None]:
    """Disk errors within it become one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInput(
            f"{what} cannot be written ({reason}); free some space or correct the permissions, or choose "
            f"another store with --store or TUTELAGE_STORE. What was written before is untouched."
        ) from None
