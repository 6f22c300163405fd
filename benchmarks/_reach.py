"""A plugin of pytest for benchmarks/mutants.py: which tests call the function that has a fault; these are run first.

Calls are seen, not lines: a function of the package is known by its file, name and first line. Programs that JAX has
compiled are not called again, so that of several tests that need one only the first is seen to call it.
"""

import os
import sys
import threading
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest


class Place(NamedTuple):
    """A function of the package, or with no name all functions of a file."""

    file: str
    name: str
    first: int
    last: int

    def called(self, calls: list[list[Any]]) -> bool:
        here = [(name, line) for file, name, line in calls if file == self.file]
        return any(not self.name or (name == self.name and self.first <= line <= self.last) for name, line in here)


class Reach:
    """Runs tests that are known to call the place, quick ones first, then those of which nothing is known.

    Those that are known not to call it are left out, unless all are asked for.
    """

    def __init__(self, known: dict[str, dict[str, Any]], place: Place | None, seconds: float, everything: bool):
        self.known, self.place, self.seconds, self.everything = known, place, seconds, everything
        self.found: dict[str, dict[str, Any]] = {}
        self.failed: list[str] = []
        self.cut = False
        self._called: dict[int, CodeType] = {}  # by id: the hash of code is slow, and what is kept keeps its id

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.place is None:
            return
        before: Counter[Path] = Counter()
        ranked = []
        for number, item in enumerate(items):
            ranked.append((*self._rank(item.nodeid, self.place, before[item.path]), number))
            before[item.path] += 1
        items[:] = [items[number] for known, _, number in sorted(ranked) if known < 2 or self.everything]

    def _rank(self, test: str, place: Place, before: int) -> tuple[int, float]:
        """How soon it is run. Files of which nothing is known take turns."""
        about = self.known.get(test)
        if about is None:
            return 1, before
        return (0, about["seconds"]) if place.called(about["calls"]) else (2, about["seconds"])

    def pytest_collection_finish(self) -> None:
        package = sys.modules.get("tutelage")
        assert package is None or Path(str(package.__file__)).is_relative_to(Path.cwd()), "of another copy"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._called.clear()
        begun = _spent()
        threading.settrace(self._seen)
        sys.settrace(self._seen)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            self.found[item.nodeid] = {"seconds": round(_spent() - begun, 3), "calls": self._calls()}
            if _spent() > self.seconds:
                item.session.shouldstop, self.cut = "enough", True

    def _seen(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        self._called[id(code)] = code

    def _calls(self) -> list[tuple[str, str, int]]:
        inside = str(Path.cwd() / "tutelage") + os.sep
        codes = [code for code in self._called.values() if code.co_filename.startswith(inside)]
        return sorted({("tutelage/" + c.co_filename[len(inside) :], c.co_name, c.co_firstlineno) for c in codes})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _spent() -> float:
    """Seconds of this process and of those it waited for: other work on the machine does not count."""
    return sum(os.times()[:4])
