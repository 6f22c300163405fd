"""Real processes, stopped by Ctrl-C or killed at any moment: the same command goes on and ends with the same bits."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tutelage as tt
from tutelage.papers.both_layers.figures import phases
from tutelage.store.fetching import differences, tree_differences
from tutelage.store.store import Store
from tutelage.trajectory.dataset import load, load_tree

# The commands as they are, but with chunks that take a while and a checkpoint after each of them: a run of 38 chunks
# then lasts some four seconds, whatever the machine.
SLOWLY = """
import sys, time
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Loop
from tutelage.present import cli
from tutelage.store import fetching

advance = Loop.advance

def slowly(loop):
    advance(loop)
    time.sleep(0.1)

Loop.advance = slowly
fetching.Checkpoint = lambda path, log: Checkpoint(path, every=0.0, log=log)
cli.main()
"""

# Stages of a problem of one's own, in the same way.
STAGES = """
import jax
import tutelage as tt

problem = tt.Problem(
    inputs=tt.Gaussian(1000),
    teacher=tt.TwoLayer("linear", first=[[1.0]]),
    student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-2), width=2, trains=("first",)),
)

def halved(handover):
    teacher, students = handover.start
    return handover.changed(start=tt.Start(teacher, jax.tree.map(lambda leaf: leaf / 2, students)))

stages = [
    tt.Stage("one", tt.Descent(step=0.01, steps=20)),
    tt.Stage("two", tt.Descent(step=0.02, steps=60), halved, record=tt.Record(at="all")),
    tt.Stage("three", tt.Flow(until=1.0), record=tt.Record(10)),
]
"""
RUN = ("run", "both_layers", "--seeds", "2", "--set", "width=3")
ABSENCE = 240.0  # seconds after which something that should come never will


@pytest.fixture(scope="module")
def reference():
    return tt.papers.both_layers(width=3).descend(seeds=2).dataset


def begin(store, words=RUN, source=SLOWLY):
    command = [sys.executable, "-c", source, *words, "--store", str(store.root)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(ready, process) -> None:
    until = time.monotonic() + ABSENCE
    while not ready():
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.005)


def checkpoint(store):
    return next(store.root.glob("*/checkpoint.npz"), None)


def changed(store, since: float = 0.0) -> bool:
    """A checkpoint has been written since."""
    path = checkpoint(store)
    return path is not None and path.stat().st_mtime_ns > since


def finished(store, process) -> str:
    out, err = process.communicate(timeout=ABSENCE)
    assert process.returncode == 0, err
    (entry,) = store.entries()
    assert entry.state == "finished"
    assert sorted(path.name for path in entry.folder.iterdir()) == ["log", "spec.json", "summary.json", "trajectory.nc"]
    return err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path, reference, number):
    store = Store(tmp_path)
    process = begin(store)
    wait_for(lambda: changed(store), process)
    process.send_signal(number)
    out, err = process.communicate(timeout=ABSENCE)
    assert (process.returncode, out) == (130, "")
    said = err.splitlines()[-1]  # on a slow machine, lines of progress come before
    assert said == "tutelage: stopped; what was done is kept, and the same command goes on from there."
    (entry,) = store.entries()
    assert entry.state == "unfinished" and "stopped when asked to" in (entry.folder / "log").read_text()
    assert f"tutelage: {entry.id}: goes on from checkpoint.npz\n" in finished(store, begin(store))
    assert differences(store.open("last").dataset, reference) == []


def test_a_stop_before_the_first_checkpoint_saves_too(tmp_path, reference):
    store = Store(tmp_path)
    process = begin(store)
    wait_for(store.entries, process)  # it is being compiled now
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=ABSENCE) == 130
    process.communicate()
    assert checkpoint(store) is not None
    finished(store, begin(store))
    assert differences(store.open("last").dataset, reference) == []


def test_killed_at_random_moments_and_ended_with_the_same_bits(tmp_path, reference):
    """Each time it gets a little further: a kill comes within half a second after a new checkpoint."""
    store, moments = Store(tmp_path), random.Random(0)
    since = 0
    for _ in range(3):
        process = begin(store)
        wait_for(lambda since=since: changed(store, since), process)
        time.sleep(moments.uniform(0.0, 0.5))
        process.kill()
        process.communicate()
        (entry,) = store.entries()
        assert process.returncode == -signal.SIGKILL and entry.state == "unfinished"
        since = checkpoint(store).stat().st_mtime_ns
    assert "goes on from" in finished(store, begin(store))
    assert differences(store.open("last").dataset, reference) == []


@pytest.mark.parametrize("moment", ["write_record", "replaced"])
def test_killed_while_the_result_is_written(tmp_path, reference, moment):
    """At the worst moments of a commit: nothing half-written is taken for a result."""
    store = Store(tmp_path)
    dying = f"""
import os, signal
import tutelage as tt
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.store import fetching

real, fetching.Checkpoint = fetching.{moment}, lambda path, log: Checkpoint(path, every=0.0, log=log)

def half(*args):
    real(*args)
    os.kill(os.getpid(), signal.SIGKILL)

def before(path, write):
    def halfway(part):
        write(part)
        part.write_bytes(part.read_bytes()[:1000])
        os.kill(os.getpid(), signal.SIGKILL)
    real(path, halfway)

fetching.{moment} = half if "{moment}" == "write_record" else before
tt.papers.both_layers(width=3).run(store={str(store.root)!r}, seeds=2)
"""
    assert subprocess.run([sys.executable, "-c", dying]).returncode == -signal.SIGKILL
    (entry,) = store.entries()
    assert entry.state == "unfinished" and checkpoint(store) is not None
    assert differences(tt.papers.both_layers(width=3).run(store=store, seeds=2).dataset, reference) == []
    (entry,) = store.entries()
    assert sorted(path.name for path in entry.folder.iterdir()) == ["log", "spec.json", "summary.json", "trajectory.nc"]


ABORTING = """
import os
from tutelage.dynamics.driver import Loop

ready, going, left = Loop.__init__, Loop.advance, [3]

def begin(loop, *given, **named):
    ready(loop, *given, **named)
    os.abort()

def go(loop):
    going(loop)
    left[0] -= 1
    left[0] or os.abort()

"""
MOMENTS = {"compiled": "Loop.__init__ = begin", "between chunks": "Loop.advance = go"}


@pytest.mark.parametrize("moment", MOMENTS)
def test_aborted_by_a_library(tmp_path, reference, moment):
    """As XLA does when memory is refused to it: not a line of Python runs after that."""
    store = Store(tmp_path)
    process = begin(store, source=ABORTING + MOMENTS[moment] + SLOWLY)
    process.communicate(timeout=ABSENCE)
    assert process.returncode == -signal.SIGABRT
    (entry,) = store.entries()
    assert entry.state == "unfinished"
    assert ("goes on from" in finished(store, begin(store))) == (moment == "between chunks")
    assert differences(store.open("last").dataset, reference) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep to the limit")
def test_with_too_little_memory_to_compile(tmp_path, reference):
    """How the first command ends is not ours to say: in imports, in the C library, in XLA, or well, where there are few
    cores and so few stacks of threads. The next one works."""
    store = Store(tmp_path)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000,) * 2)\n" + SLOWLY
    process = begin(store, source=limited)
    process.communicate(timeout=ABSENCE)
    left = "finished" if process.returncode == 0 else "unfinished"
    assert all(entry.state == left for entry in store.entries())
    finished(store, begin(store))
    assert differences(store.open("last").dataset, reference) == []


def killed_when(process, ready) -> None:
    wait_for(ready, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_stages_killed_in_the_second_go_on_and_end_with_the_same_bits(tmp_path):
    store, scope = Store(tmp_path), {}
    exec(STAGES, scope)  # as the process has them: a name depends on how a function is written
    whole = tt.run(scope["problem"], scope["stages"], seeds=2)
    source = SLOWLY.replace("cli.main()", STAGES + "tt.run(problem, stages, seeds=2, store=sys.argv[-1])")
    # The second stage has its place in the checkpoint when it was begun, and rows once a chunk of it is done.
    killed_when(begin(store, (), source), lambda: has_rows(store, stage=1))
    assert not has_rows(store, stage=2)
    (entry,) = store.entries()
    assert entry.state == "unfinished"
    finished(store, begin(store, (), source))
    assert "goes on from" in (entry.folder / "log").read_text()
    assert tree_differences(load_tree(entry.result), whole.tree()) == []


def has_rows(store, stage: int) -> bool:
    path = checkpoint(store)
    if path is None:
        return False
    with np.load(path, allow_pickle=False) as saved:
        return any(name.startswith(f"{stage}/row/") for name in saved.files)


# A figure of seven runs, here of three, and each a little slower than it is.
FIGURE = SLOWLY.replace("time.sleep(0.1)", "time.sleep(0.02)").replace(
    "cli.main()",
    "from tutelage.papers.both_layers.figures import phases\nphases.SCALES_TRIED = phases.SCALES_TRIED[:3]\ncli.main()",
)


def test_a_reproduction_killed_in_the_middle_goes_on(tmp_path, monkeypatch):
    """Its runs are read, the one in progress goes on, and the figure is that of one that was not stopped."""
    store, report = Store(tmp_path / "store"), tmp_path / "report"
    words = ("reproduce", "both_layers/scales", "--quick", "--quiet", "--out", str(report))
    killed_when(begin(store, words, FIGURE), lambda: complete(store) and checkpoint(store) is not None)
    before = {entry.id: entry.result.stat().st_mtime_ns for entry in complete(store)}
    assert 1 <= len(before) <= 2 and not (report / "both_layers" / "scales.nc").exists()
    again = begin(store, words, FIGURE)
    _, told = again.communicate(timeout=ABSENCE)
    assert again.returncode == 0, told
    assert len(complete(store)) == len(store.entries()) == 3
    assert {id: store.find(id).result.stat().st_mtime_ns for id in before} == before
    logs = [(entry.folder / "log").read_text() for entry in store.entries()]
    assert all(log.count(" computed in ") == log.count(" stored") == 1 for log in logs)
    assert sum("goes on from" in log for log in logs) == 1
    monkeypatch.setattr(phases, "SCALES_TRIED", phases.SCALES_TRIED[:3])
    alone = tt.papers.both_layers.figure("scales").compute(tt.papers.both_layers.settings(), "quick")
    assert differences(load(report / "both_layers" / "scales.nc"), alone) == []


def complete(store):
    return [entry for entry in store.entries() if entry.state == "finished"]
