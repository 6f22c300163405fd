"""Lines about a long computation within a longer one, and about programs that are compiled."""

import threading
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import tutelage as tt
from tutelage import _compiling
from tutelage._compiling import STAGES, Compiling
from tutelage._progress import listening, tell
from tutelage.present import progress
from tutelage.present.progress import Pace, Progress, Within


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


# ---- compilation


def test_compilation_within_compilation_counts_once(monkeypatch):
    clock, compiling = Clock(), Compiling()
    monkeypatch.setattr(_compiling, "time", clock)
    trace, _, compile = sorted(STAGES, reverse=True)
    compiling._begin(trace, 0.0)
    clock.now += 2.0
    compiling._begin(compile, 0.0)  # an array that is made while something is traced
    clock.now += 1.0
    assert (compiling.now, compiling.seconds) == (3.0, 3.0)
    compiling._end(compile, 1.0)
    compiling._end(trace, 3.0)
    clock.now += 50.0
    assert (compiling.now, compiling.seconds, compiling.here) == (0.0, 3.0, 3.0)
    compiling._end(trace, 1.0)  # had begun before anybody listened
    compiling._begin("/jax/other", 0.0)
    assert (compiling.now, compiling.seconds) == (0.0, 3.0)


def test_every_thread_has_its_own():
    compiling = Compiling()
    compiling.listen()
    compiling.listen()
    thread = threading.Thread(target=lambda: jax.jit(lambda x: jnp.sin(x) + 17.0)(1.0))
    thread.start()
    thread.join()
    assert compiling.here == 0.0 < compiling.seconds and compiling.now == 0.0


def test_time_left_does_not_count_compilation(monkeypatch):
    clock, compiling = Clock(), SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "COMPILING", compiling)
    pace = Pace()
    for done in (0, 1, 2, 3):
        left = pace.left(done, 10)
        clock.now += 10.0
        if done == 2:
            clock.now, compiling.seconds = clock.now + 600.0, 600.0
    assert left == "about 1 min 10 s left"  # 7 parts of 10 s


def test_a_log_says_that_programs_are_compiled(monkeypatch, capsys):
    """Nobody calls while this goes on."""
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    monkeypatch.setattr(progress, "COMPILING", SimpleNamespace(seconds=9.0, now=9.0, listen=lambda: None))
    for kept, words in ((True, "compiling (first time only)"), (False, "compiling")):
        monkeypatch.setattr(progress, "kept", lambda kept=kept: kept)
        with Progress(title="running tiny"):
            said = ""
            while not said:
                time.sleep(0.01)
                said = capsys.readouterr().err
        assert said.splitlines()[0].startswith("tutelage: running tiny (") and f", {words})" in said


def test_a_bar_says_that_programs_are_compiled_and_then_how_long_it_takes(monkeypatch, capsys):
    """On a terminal the text is read whenever the bar is drawn, so that it changes although nobody calls."""
    compiling = SimpleNamespace(seconds=9.0, now=9.0, listen=lambda: None)
    monkeypatch.setattr(progress, "time", Clock())
    monkeypatch.setattr(progress, "COMPILING", compiling)
    monkeypatch.setattr(progress, "kept", lambda: True)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with Progress(title="running tiny", alike=False) as shown:
        shown.expect(part=None, whole=600.0)
        shown("a step", 1, 4)
        left = shown._bar.tasks[0].fields["left"]
        assert str(left) == "compiling (first time only)"
        compiling.now = 0.0
        assert str(left) == "all about 10 min 0 s"
    capsys.readouterr()


def test_each_part_has_its_own_pace(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    with Progress() as shown:
        for label, seconds in (("slow, 1 of 2", 100.0), ("quick, 2 of 2", 10.0)):
            for done in range(4):
                shown(label, done, 4)
                clock.now += seconds
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "tutelage: quick, 2 of 2 (3/4, 7 min 10 s, about 10 s left)"


@pytest.mark.parametrize("flow", [False, True])
def test_progress_is_told_in_updates_where_there_are_any(flow):
    problem = tt.Problem(
        inputs=tt.Gaussian(100),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
    )
    dynamics = tt.Flow(until=4.0) if flow else tt.Descent(step=0.01, steps=500)
    heard = []
    stages = [tt.Stage("one", dynamics), tt.Stage("two", dynamics)]
    tt.run(problem, stages, record=20, progress=lambda *told: heard.append(told))
    assert {label for label, _, _ in heard} == {"one, 1 of 2", "two, 2 of 2"}
    totals = {total for _, _, total in heard}
    assert len(totals) == 1 and (totals == {500}) is not flow
    assert [done for label, done, _ in heard if label == "one, 1 of 2"][-1] == totals.pop()
