"""Who hears how far a computation is."""

import sys
import threading

import pytest

from tutelage import _progress
from tutelage._progress import listening, reporting, tell, watched


class Bar:
    def __init__(self, *, title):
        self.title, self.told, self.open = title, [], False
        BARS.append(self)

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, *error):
        self.open = False

    def __call__(self, label, done, total):
        self.told.append((label, done, total))


BARS: list[Bar] = []


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """Somebody sits before a terminal."""
    BARS.clear()
    monkeypatch.setattr(_progress, "extension", lambda name: Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("TUTELAGE_PROGRESS", raising=False)


def test_at_a_terminal_there_is_a_bar_and_only_one():
    with reporting(None, "flow") as heard:
        heard("flow", 1, 2)
        with reporting(None, "within") as inner:
            inner("within", 1, 2)
    [bar] = BARS
    assert bar.title == "flow" and bar.told == [("flow", 1, 2)] and not bar.open
    tell("flow", 2, 2)  # nobody listens any more
    assert bar.told == [("flow", 1, 2)]


def test_whoever_listens_or_is_given_hears_it():
    heard = []
    with listening(lambda *told: heard.append(told)), reporting(None, "flow") as report:
        report("flow", 1, 2)
    own = lambda *told: heard.append(told)  # noqa: E731
    with reporting(own, "flow") as report:
        assert report is own
    assert heard == [("flow", 1, 2)] and not BARS


def test_nobody_sees_a_log_a_thread_or_a_switch(monkeypatch):
    found = []
    thread = threading.Thread(target=lambda: found.append(watched()))
    thread.start()
    thread.join()
    assert watched() and found == [False]
    monkeypatch.setenv("TUTELAGE_PROGRESS", "off")
    assert not watched()
    monkeypatch.delenv("TUTELAGE_PROGRESS")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert not watched() or "ipykernel" in sys.modules
