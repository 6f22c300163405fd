"""Real processes, stopped by Ctrl-C or killed at any moment: the same command goes on and ends with the same bits."""

import random
import signal
import subprocess
import sys
import time

import pytest

import tutelage as tt
from tutelage.store.asking import differences
from tutelage.store.store import Store

# The commands as they are, but with chunks that take a while and a checkpoint after each of them: a run of 38 chunks
# then lasts some four seconds, whatever the machine.
SLOWLY = """
import sys, time
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Loop
from tutelage.present import cli
from tutelage.store import asking

advance = Loop.advance

def slowly(loop):
    advance(loop)
    time.sleep(0.1)

Loop.advance = slowly
asking.Checkpoint = lambda path, said: Checkpoint(path, every=0.0, said=said)
cli.main()
"""
RUN = ("run", "both_layers", "--seeds", "2", "--set", "width=3")
ABSENCE = 60.0  # seconds after which something that should come never will


@pytest.fixture(scope="module")
def reference():
    return tt.papers.both_layers(width=3).descend(seeds=2).dataset


def begin(store, *words):
    command = [sys.executable, "-c", SLOWLY, *RUN, "--store", str(store.root), *words]
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
    assert f"tutelage: {entry.id}: taken up again from checkpoint.npz\n" in finished(store, begin(store))
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
    assert "taken up again" in finished(store, begin(store))
    assert differences(store.open("last").dataset, reference) == []


@pytest.mark.parametrize("moment", ["write_json", "replaced"])
def test_killed_while_the_result_is_written(tmp_path, reference, moment):
    """At the worst moments of a commit: nothing half-written is taken for a result."""
    store = Store(tmp_path)
    dying = f"""
import os, signal
import tutelage as tt
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.store import asking

real, asking.Checkpoint = asking.{moment}, lambda path, said: Checkpoint(path, every=0.0, said=said)

def half(*args):
    real(*args)
    os.kill(os.getpid(), signal.SIGKILL)

def before(path, write):
    def halfway(part):
        write(part)
        part.write_bytes(part.read_bytes()[:1000])
        os.kill(os.getpid(), signal.SIGKILL)
    real(path, halfway)

asking.{moment} = half if "{moment}" == "write_json" else before
tt.Store({str(store.root)!r}).run(tt.papers.both_layers(width=3), seeds=2)
"""
    assert subprocess.run([sys.executable, "-c", dying]).returncode == -signal.SIGKILL
    (entry,) = store.entries()
    assert entry.state == "unfinished" and checkpoint(store) is not None
    assert differences(store.run(tt.papers.both_layers(width=3), seeds=2).dataset, reference) == []
    (entry,) = store.entries()
    assert sorted(path.name for path in entry.folder.iterdir()) == ["log", "spec.json", "summary.json", "trajectory.nc"]
