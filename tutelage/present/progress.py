"""Progress on stderr: a bar on a terminal, a line now and then in a log; nothing for work shorter than a second."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from tutelage._compiling import COMPILING, kept
from tutelage._plain import duration

PATIENCE = 1.0  # seconds before anything is shown
PAUSE = 5.0  # seconds between lines in a log
ENOUGH = 0.05  # of the work: what must be done before its pace is believed
MANY = 10_000  # so many parts are told as a percentage


@runtime_checkable
class Reporter(Protocol):
    """Anything that can be told how far the work is."""

    def __call__(self, label: str, done: int, total: int) -> None: ...


def working() -> float:
    """A clock that stands still while programs are compiled."""
    return time.monotonic() - COMPILING.seconds


class Pace:
    """How fast something goes whose parts are alike. Compilation, which comes once, does not count."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._begun = False

    def left(self, done: int, total: int) -> str:
        """How long it may still take, by the pace since the first part was done: that one has everything to load.

        Nothing until a twentieth has been done at this pace: one step of a thousand says little of the others.
        """
        now = working()
        if self._first is None or done < self._first[0]:
            self._first, self._begun = (done, now), False
        before, then = self._first
        if not self._begun and done > before:
            self._first, self._begun = (done, now), True
            return ""
        if not self._begun or done >= total or now - then < PATIENCE or done - before < ENOUGH * total:
            return ""
        return f"about {_rounded((now - then) * (total - done) / (done - before))} left"


class Expected:
    """When the part in hand and the whole should end, by what they cost before. As a text: how long that is still."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    def set(self, **seconds: float | None) -> None:
        """`part` and `whole`, from now; None if nobody knows."""
        now = working()
        self._ends = {name: now + each for name, each in seconds.items() if each is not None}

    def __str__(self) -> str:
        now = working()
        left = {name: end - now for name, end in self._ends.items() if end > now}
        words = {"part": "this part about {} more", "whole": "all about {}"}
        return ", ".join(words[name].format(_rounded(each)) for name, each in left.items())


def _rounded(seconds: float) -> str:
    return duration(max(1.0, round(seconds)))


class Within:
    """Lines about a long computation within a longer one: how far it is, and how long it may take."""

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


class Left:
    """As a text: that programs are being compiled or, when none is, how long the rest may take."""

    def __init__(self, text: object = "") -> None:
        self.text = text

    def __str__(self) -> str:
        if COMPILING.now < PATIENCE:
            return str(self.text)
        return "compiling (first time only)" if kept() else "compiling"


class Progress:
    """A `progress(label, done, total)` callback that shows itself, and says when programs are being compiled.

    `alike`: whether all parts cost about the same, so that those done say how long the others take. If they do not,
    the time left is what `expect` was told, or nothing.

    ```python
    >>> from tutelage.present.progress import Progress
    >>> with Progress(quiet=True) as progress:
    ...     progress("step", 1, 10)

    ```
    """

    def __init__(self, *, quiet: bool = False, title: str = "working", alike: bool = True) -> None:
        self.quiet, self.alike = quiet, alike
        self.title = title
        self._bar: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None
        self._began = self._said = time.monotonic()
        self._paces: dict[str, Pace] = {}
        self._expected = Expected()
        self._last: tuple[str, int, int, object] = (title, 0, 0, Left())
        self._lock, self._ended = threading.Lock(), threading.Event()

    def __enter__(self) -> "Progress":
        if self.quiet:
            return self
        COMPILING.listen()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            text = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*text, TextColumn("{task.fields[left]}"), console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.title, total=None, left="")
            self._timer = threading.Timer(PATIENCE, self._bar.start)
            self._timer.daemon = True
            self._timer.start()
        else:
            # Nobody calls while a program is compiled.
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __call__(self, label: str, done: int, total: int) -> None:
        # Every part has its own pace. The text changes with time: the bar reads it whenever it is drawn.
        pace = self._paces.setdefault(label, Pace())
        left = Left(pace.left(done, total) if self.alike else self._expected)
        if self._bar is not None:
            self._bar.update(self._task, description=label, completed=done, total=total or None, left=left)
        elif not self.quiet:
            self._last = (label, done, total, left)
            self._say()

    def expect(self, *, part: float | None, whole: float | None) -> None:
        """How many seconds the part that begins now, and all that is left, should take; None if nobody knows."""
        self._expected.set(part=part, whole=whole)

    def tell(self, line: str) -> None:
        """A line of its own, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(f"tutelage: {line}", markup=False, highlight=False)
        elif not self.quiet:
            print(f"tutelage: {line}", file=sys.stderr, flush=True)

    def _watch(self) -> None:
        while not self._ended.wait(PATIENCE):
            if COMPILING.now >= PATIENCE:
                self._say()

    def _say(self) -> None:
        """A line in a log, now and then."""
        now = time.monotonic()
        with self._lock:
            if now - self._began <= PATIENCE or now - self._said <= PAUSE:
                return
            self._said = now
        label, done, total, left = self._last
        far = f"{done}/{total}" if total < MANY else f"{done / total:.0%}"
        spent = ", ".join(filter(None, (far if total else "", duration(round(now - self._began)), str(left))))
        print(f"tutelage: {label} ({spent})", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()
