"""A run in progress on disk: written whole or not at all, taken up by the same run only, and never in its way."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import optax
import pytest

import tutelage as tt
from tutelage import _interrupt
from tutelage._errors import BadInput
from tutelage._files import replaced
from tutelage._interrupt import Interrupted, gentle_signals, stop_asked
from tutelage.dynamics import checkpoint as checkpoint_module
from tutelage.dynamics import driver
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Loop
from tutelage.trajectory.asked import Asked
from tutelage.trajectory.running import Training

STEPS = 100  # a chunk spans an eighth of a run at most: after one of them 13 records are done, then 25, 37, ...


def descend(**options):
    return tt.papers.both_layers(steps=STEPS).descend(seeds=2, **options)


@pytest.fixture(scope="module")
def whole():
    return descend()


@pytest.fixture
def stopping_after(monkeypatch):
    """Ask for a stop after so many chunks, as Ctrl-C does."""
    monkeypatch.setattr(Loop, "chunk", 16)
    monkeypatch.setattr(driver, "SLOW", -1.0)  # chunks as short as those of a run that takes hours
    monkeypatch.setattr(_interrupt, "_ASKED", type(_interrupt._ASKED)())
    advance = Loop.advance

    def after(chunks: int) -> None:
        left = iter(range(chunks - 1, -1, -1))

        def counted(loop):
            advance(loop)
            if next(left, 1) == 0:
                _interrupt.ask_to_stop()

        monkeypatch.setattr(Loop, "advance", counted)

    yield after
    _interrupt._ASKED.clear()


def same(one, other) -> bool:
    names = set(one.dataset.variables) | set(other.dataset.variables)
    return all(one.dataset[name].equals(other.dataset[name]) for name in names)


@pytest.fixture
def stopped(stopping_after, tmp_path):
    """The checkpoint of a run that was stopped after its third chunk."""
    path = tmp_path / "run.npz"
    stopping_after(3)
    with pytest.raises(Interrupted):
        descend(checkpoint=path)
    _interrupt._ASKED.clear()
    return path


def test_a_stopped_run_goes_on_where_it_was_and_ends_the_same(stopped, whole, monkeypatch):
    done = []
    advance = Loop.advance
    monkeypatch.setattr(Loop, "advance", lambda loop: (done.append(loop.position), advance(loop)))
    said = []
    assert same(descend(checkpoint=Checkpoint(stopped, log=said.append)), whole)
    assert done[0] == 37 and said == ["goes on from run.npz"]


def test_a_short_run_is_not_written(tmp_path):
    descend(checkpoint=tmp_path / "run.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_long_run_is_kept_until_its_result_is_safe(tmp_path, whole, monkeypatch):
    path = tmp_path / "run.npz"
    assert same(descend(checkpoint=Checkpoint(path, every=0.0)), whole)
    monkeypatch.setattr(Loop, "advance", lambda loop: pytest.fail("a finished run was computed again"))
    assert same(descend(checkpoint=path), whole)


@pytest.mark.parametrize(
    "other", [{"seeds": 3}, {"seeds": [1, 0]}, {"record": 50}, {"step": 0.05}, {"steps": STEPS + 1}, {"dim": 101}]
)
def test_the_checkpoint_of_another_run_is_refused(stopped, other):
    before = stopped.read_bytes()
    settings = {name: other[name] for name in ("step", "steps", "dim") if name in other}
    options = {name: other[name] for name in ("seeds", "record") if name in other}
    with pytest.raises(BadInput, match="was saved by a different run"):
        tt.papers.both_layers(**{"steps": STEPS} | settings).descend(**{"seeds": 2} | options, checkpoint=stopped)
    assert stopped.read_bytes() == before


def own(student="relu", teacher="relu", trains=("first", "second"), tied=False, noise=0.0, **start) -> tt.Problem:
    return tt.Problem(
        inputs=tt.Gaussian(20),
        teacher=tt.TwoLayer(teacher, first=np.eye(2, 20)),
        student=tt.TwoLayer(student, first=tt.GaussianRows(**{"std": 0.1} | start), width=2, trains=trains, tied=tied),
        noise=noise,
    )


def mixed(gate="sigmoid", degree=3) -> tt.Problem:
    student = tt.Mixture(gate, degree=degree, start=tt.MixtureRows("orthonormal"), width=3)
    teacher = tt.Mixture(gate, degree=degree, routers=np.eye(2, 4), experts=np.eye(4)[2:])
    return tt.Problem(inputs=tt.Gaussian(50), teacher=teacher, student=student)


def asked(problem=None, moves=None, record=None, stop=None, seeds=(0, 1)) -> Asked:
    return Asked(problem or own(), moves or tt.Descent(0.1, 200), seeds, record or tt.Record(5), stop or tt.Stop())


def double(snapshot):
    return 2 * snapshot.loss


def half(snapshot):
    return snapshot.loss / 2


X = np.random.default_rng(0).standard_normal((30, 20))
DATA = (X, X[:, 0])
SGD, FLOW = {"steps": 20, "batch": 2}, {"until": 2.0}
OTHERS = {
    "student": (asked(), asked(own("tanh"))),
    "both activations": (asked(), asked(own("erf", "erf"))),
    "teacher": (asked(), asked(own(teacher="abs"))),
    "trains": (asked(), asked(own(trains=("first",)))),
    "tied": (asked(), asked(own(tied=True))),
    "start": (asked(), asked(own(std=0.2))),
    "schedule": (asked(), asked(moves=tt.Descent(0.1, 200, schedule=lambda n: 1 / (1 + n)))),
    "truncation": (asked(), asked(moves=tt.Descent(0.1, 200, truncation=tt.Truncation((2.0,))))),
    "rates": (asked(), asked(moves=tt.Descent(0.1, 200, rates={"second": 0.5}))),
    "stop_loss": (asked(), asked(stop=tt.Stop(loss=0.01))),
    "stop_gradient": (asked(), asked(stop=tt.Stop(gradient=0.0))),
    "cap": (asked(), asked(stop=tt.Stop(steps=7))),
    "seeds": (asked(), asked(seeds=(0, 2))),
    "number of samples": tuple(asked(moves=tt.Descent(0.1, 200, n)) for n in (20, 40)),
    "noise of samples": tuple(asked(own(noise=noise), tt.Descent(0.1, 200, 20)) for noise in (0.0, 0.5)),
    "samples": (asked(moves=tt.Descent(0.1, 200, DATA)), asked(moves=tt.Descent(0.1, 200, (X, X[:, 1])))),
    "student of sgd": tuple(asked(own(name), tt.Sgd(**SGD, step=0.1)) for name in ("relu", "erf")),
    "learning rate": tuple(asked(moves=tt.Sgd(**SGD, optimiser=optax.sgd(rate))) for rate in (0.1, 0.2)),
    "momentum": tuple(asked(moves=tt.Sgd(**SGD, optimiser=optax.sgd(0.1, momentum=m))) for m in (0.8, 0.9)),
    "law": tuple(asked(moves=tt.Sgd(**SGD, step=0.1, law=law)) for law in ("exact", "direct")),
    "student of a flow": tuple(asked(own(name), tt.Flow(**FLOW)) for name in ("relu", "erf")),
    "solver": tuple(asked(moves=tt.Flow(**FLOW, solver=name)) for name in ("auto", "stiff")),
    "samples of a flow": tuple(asked(moves=tt.Flow(**FLOW, data=n)) for n in (20, 40)),
    "gate": (asked(mixed()), asked(mixed("tanh"))),
    "degree": (asked(mixed()), asked(mixed(degree=2))),
    "event": tuple(asked(record=tt.Record(5, events=(tt.below(level),))) for level in (0.1, 0.2)),
    "function": tuple(asked(record=tt.Record(5, own={"mine": function})) for function in (double, half)),
}
"""Of an attack in which seventeen of these were taken for one another."""


@pytest.mark.parametrize("what", OTHERS)
def test_whatever_else_is_asked_a_checkpoint_is_of_one_run_only(what, tmp_path):
    one, other = OTHERS[what]
    Training(one).save(tmp_path / "run.npz")
    Training(one).restore(tmp_path / "run.npz")
    with pytest.raises(BadInput, match="was saved by a different run"):
        Training(other).restore(tmp_path / "run.npz")


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 1.0])
def test_every_flipped_bit_of_a_checkpoint_is_noticed(part, stopped):
    whole = stopped.read_bytes()
    for at in np.unique(np.linspace(0, 8 * len(whole) - 1, 60).astype(int) - int(7 * part)):
        data = bytearray(whole)
        data[max(at, 0) // 8] ^= 1 << max(at, 0) % 8
        stopped.write_bytes(data)
        with pytest.raises(BadInput, match="cannot be read as the checkpoint of a run .its checksum"):
            descend(checkpoint=stopped)


def shortened(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def incomplete(data: bytes) -> bytes:
    """An archive that lost one array, as from a damaged index."""
    import io

    with np.load(io.BytesIO(data)) as saved:
        arrays = {name: saved[name] for name in saved.files if name != "0/row/0/loss"}
    assert len(arrays) == len(saved.files) - 1
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize("damage", [shortened, flipped, incomplete, lambda data: b"", lambda data: b"not an archive"])
def test_a_damaged_checkpoint_is_told_and_left_alone(stopped, damage):
    stopped.write_bytes(damage(stopped.read_bytes()))
    before = stopped.read_bytes()
    with pytest.raises(BadInput, match="cannot be read as the checkpoint of a run .* move it away") as told:
        descend(checkpoint=stopped)
    assert "\n" not in str(told.value) and stopped.read_bytes() == before


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_stops_the_writing_and_not_the_run(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(Training, "save", full_disk)
    said = []
    with pytest.warns(
        UserWarning, match="No checkpoint was written .No space left on device.; the run goes on"
    ) as told:
        done = descend(checkpoint=Checkpoint(tmp_path / "run.npz", every=0.0, log=said.append))
    assert same(done, whole) and len(told) == 1  # once, not for every chunk
    assert said == ["no checkpoint: No space left on device"] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), RuntimeError("bug"), KeyboardInterrupt()])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def write(part):
        part.write_text("half of the ne")
        raise error

    with pytest.raises(type(error)):
        replaced(path, write)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_the_new_file_is_seen_only_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    seen = []
    replaced(path, lambda part: (part.write_text("half"), seen.append(path.exists()), part.write_text("whole")))
    assert seen == [False] and path.read_text() == "whole" and list(tmp_path.iterdir()) == [path]


KILLED = """
import sys, time
from pathlib import Path
from tutelage._files import replaced

def write(part):
    part.write_text("half of the ne")
    print("writing", flush=True)
    time.sleep(60)

replaced(Path(sys.argv[1]), write)
"""


def test_a_writer_that_is_killed_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        process.kill()
    assert path.read_text() == "old"
    assert [other.name[0] for other in tmp_path.iterdir() if other != path] == ["."]  # what is left over is hidden


def test_the_writing_costs_a_tenth_of_the_time_at_most(tmp_path, monkeypatch):
    """With a clock of its own: a write takes 1 s, so that after the first the next comes 10 s later at the earliest."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    class Kept(checkpoint_module.Kept):
        written: list[float] = []

        def arrays(self):
            raise NotImplementedError

        def adopt(self, about, saved):
            raise NotImplementedError

        def save(self, path):
            clock[0] += 1.0
            self.written.append(clock[0])

    checkpoint = Checkpoint(tmp_path / "run.npz", every=2.0)
    for _ in range(40):
        clock[0] += 0.5
        checkpoint.between(Kept())
    assert Kept.written == [3.0, 14.0]


def test_ctrl_c_asks_once_and_then_insists():
    before = signal.getsignal(signal.SIGINT)  # ignored, if the tests were begun in the background
    with gentle_signals():
        signal.raise_signal(signal.SIGINT)
        assert stop_asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not stop_asked() and signal.getsignal(signal.SIGINT) is before


def test_a_patient_process_is_asked_as_often_as_one_likes():
    with gentle_signals(patient=True):
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert stop_asked()
    assert not stop_asked()


def test_a_stop_that_comes_while_a_checkpoint_is_written_is_not_lost(tmp_path, monkeypatch, whole):
    """It waits for the next chunk, whose state is then saved."""
    save = Training.save
    positions = []

    def asked_meanwhile(training, path):
        save(training, path)
        positions.append(training.current.loop.position)
        _interrupt.ask_to_stop()

    monkeypatch.setattr(Loop, "chunk", 16)
    monkeypatch.setattr(driver, "SLOW", -1.0)
    monkeypatch.setattr(_interrupt, "_ASKED", type(_interrupt._ASKED)())
    monkeypatch.setattr(Training, "save", asked_meanwhile)
    with pytest.raises(Interrupted):
        descend(checkpoint=Checkpoint(tmp_path / "run.npz", every=0.0))
    _interrupt._ASKED.clear()
    assert positions == [13, 25]
    assert same(descend(checkpoint=tmp_path / "run.npz"), whole)
