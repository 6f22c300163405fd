"""Progress on stderr: a bar on a terminal, a line now and then in a log; nothing for work shorter than a second."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from tutelage._plain import duration

PATIENCE = 1.0  # seconds before anything is shown
PAUSE = 5.0  # seconds between lines in a log


class Reporter(Protocol):
    """Anything that can be told how far the work is."""

    def __call__(self, label: str, done: int, total: int) -> None: ...


class Pace:
    """How fast something goes."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None

    def left(self, done: int, total: int) -> str:
        """How long it may still take, by the pace since the first call; what was done before does not count."""
        now = time.monotonic()
        if self._first is None or done < self._first[0]:
            self._first = (done, now)
        before, then = self._first
        if done <= before or done >= total or now - then < PATIENCE:
            return ""
        return f"about {duration(max(1.0, round((now - then) * (total - done) / (done - before))))} left"


class Within:
    """Lines about a long computation within a longer one: how far it is, and how long it may take; seldom."""

    OFTEN = 15.0  # seconds between two lines

    def __init__(self, say: Callable[[str], None] | None) -> None:
        self._say, self._said = say, time.monotonic()
        self._paces: dict[str, Pace] = {}

    def __call__(self, label: str, done: int, total: int) -> None:
        name = label.partition(":")[0]
        left = self._paces.setdefault(name, Pace()).left(done, total)
        now = time.monotonic()
        if self._say and now - self._said >= self.OFTEN:
            self._said = now
            self._say(", ".join(filter(None, (label, f"{done / max(total, 1):.0%}", left))))


class Progress:
    """A `progress(label, done, total)` callback that shows itself.

    ```python
    >>> from tutelage.present.progress import Progress
    >>> with Progress(quiet=True) as progress:
    ...     progress("step", 1, 10)

    ```
    """

    def __init__(self, *, quiet: bool = False, title: str = "working") -> None:
        self.quiet = quiet
        self.title = title
        self._bar: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None
        self._began = self._said = time.monotonic()
        self._pace = Pace()

    def __enter__(self) -> "Progress":
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            text = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*text, TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.title, total=None, left="")
            self._timer = threading.Timer(PATIENCE, self._bar.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __call__(self, label: str, done: int, total: int) -> None:
        left = self._pace.left(done, total)
        if self._bar is not None:
            self._bar.update(self._task, description=label, completed=done, total=total or None, left=left)
        elif not self.quiet:
            self._say(label, done, total, left)

    def tell(self, line: str) -> None:
        """A line of its own, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(f"tutelage: {line}", markup=False, highlight=False)
        elif not self.quiet:
            print(f"tutelage: {line}", file=sys.stderr, flush=True)

    def _say(self, label: str, done: int, total: int, left: str) -> None:
        now = time.monotonic()
        if now - self._began > PATIENCE and now - self._said > PAUSE:
            self._said = now
            spent = ", ".join(filter(None, (f"{done}/{total}", duration(round(now - self._began)), left)))
            print(f"tutelage: {label} ({spent})", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()
