"""Small files of a store: written whole or not at all, and read with a clear sentence when they cannot be."""

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
