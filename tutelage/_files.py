"""Files: written whole or not at all, and read with a clear sentence when they cannot be."""

import contextlib
import datetime
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tutelage._errors import BadInput
from tutelage._plain import dumps


def replaced(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file so that at every moment either the old one or the new one is there, whole."""
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
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read ({error}); it was not changed; repair it or move it away.") from None


def log(folder: Path, line: str) -> None:
    """Add a line with the time to the folder's log. One write of one line: two processes do not mix theirs."""
    stamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with contextlib.suppress(OSError), open(folder / "log", "a", encoding="utf-8") as file:
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
