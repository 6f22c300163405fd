"""What the parts of papers have cost on this machine, so that a time left can be believed."""

import contextlib
import json
import threading
from pathlib import Path

from tutelage._config import cache_folder
from tutelage._files import write_json


class Costs:
    """Seconds by part, as measured last, in a small file; without one they are forgotten.

    ```python
    >>> costs = Costs(None)
    >>> costs.note(12.0, "soft_moe", "figure fig1", "quick")
    >>> costs.of("soft_moe", "figure fig1", "quick"), costs.of("soft_moe", "figure fig1", "full")
    (12.0, None)

    ```
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._seconds = self._read()

    @classmethod
    def of_this_machine(cls) -> "Costs":
        """Those in the user's cache folder."""
        folder = cache_folder("costs")
        return cls(None if folder is None else Path(folder) / "seconds.json")

    def of(self, paper: str, part: str, size: str) -> float | None:
        """What this part took last time; None if it was never measured."""
        return self._seconds.get(f"{paper}/{part}/{size}")

    def note(self, seconds: float, paper: str, part: str, size: str) -> None:
        """Remember what this part took."""
        with self._lock:
            self._seconds[f"{paper}/{part}/{size}"] = round(seconds, 3)
            if self._file is None:
                return
            with contextlib.suppress(OSError):  # nothing is lost but a guess
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_json(self._seconds, self._file)

    def _read(self) -> dict[str, float]:
        """A file that is missing or damaged is an empty one: it is written again."""
        if self._file is None:
            return {}
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            return {str(part): float(seconds) for part, seconds in kept.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
