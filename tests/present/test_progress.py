"""Lines about a long computation within a longer one."""

from tutelage._progress import listening, tell
from tutelage.present import progress
from tutelage.present.progress import Within


class Clock:
    """Time that passes when told to."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def test_lines_come_seldom_and_say_how_long(monkeypatch):
    clock, lines = Clock(), []
    monkeypatch.setattr(progress, "time", clock)
    with listening(Within(lines.append)):
        for done in range(0, 100, 10):
            tell("lab: Phase I", done, 100)
            clock.now += 5.0
    # A line every fifteen seconds of fifty; at 5 s for a tenth, 30 % leave 35 s.
    assert lines == [
        "lab: Phase I, 30%, about 35 s left",
        "lab: Phase I, 60%, about 20 s left",
        "lab: Phase I, 90%, about 5 s left",
    ]


def test_nobody_need_listen():
    tell("alone", 1, 2)
    with listening(Within(None)):
        tell("unheard", 1, 2)
