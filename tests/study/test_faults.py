"""What the surroundings may do: clocks that jump, other numbers of threads and of workers."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import tutelage as tt
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.present.cli import app
from tutelage.store.fetching import differences

EXPERIMENT = tt.papers.both_layers(steps=40)

NUMBERS = """
import hashlib, json, sys
import tutelage as tt
problem = tt.papers.both_layers(width=3).problem
runs = {
    "descent": tt.run(problem, tt.Descent(0.05, 60), seeds=3),
    "flow": tt.run(problem, tt.Flow(3.0), seeds=3),
    "sgd": tt.run(problem, tt.Sgd(60, 2, 1e-3), seeds=3),
}
hashes = {name: hashlib.sha256(run.dataset.overlap.values.tobytes()).hexdigest() for name, run in runs.items()}
json.dump(hashes, sys.stdout)
"""


def numbers(threads: int) -> dict[str, str]:
    """Hashes of runs that a process computes with so many threads: XLA takes their number from the environment."""
    flags = f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()} intra_op_parallelism_threads={threads}"
    done = subprocess.run(
        [sys.executable, "-c", NUMBERS],
        env=os.environ | {"NPROC": str(threads), "OMP_NUM_THREADS": str(threads), "XLA_FLAGS": flags},
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_the_number_of_threads_changes_no_bit():
    assert numbers(1) == numbers(4)


def test_the_number_of_workers_changes_no_bit(tmp_path):
    one, two = (
        tt.sweep(
            EXPERIMENT, over={"width": [1, 2]}, measure="final_loss", seeds=4, block=2, store=tmp_path / str(count),
            processes=count,
        )
        for count in (1, 2)
    )  # fmt: skip
    assert differences(one.dataset, two.dataset) == []


@pytest.mark.parametrize("jump", [-(10**9), 10**9])
def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch, jump):
    """Checkpoints go by a clock that cannot be set; only the age of an entry is told wrongly."""
    whole = EXPERIMENT.run(seeds=2)
    calls, real = [], time.time
    monkeypatch.setattr(time, "time", lambda: real() + (jump if len(calls) % 2 else 0) + 0 * (calls.append(1) or 0))
    store = tt.Store(tmp_path)
    run = EXPERIMENT.run(seeds=2, store=store)
    assert differences(run.dataset, whole.dataset) == []
    assert Checkpoint(tmp_path / "x.npz")._due < time.monotonic() + 10
    (entry,) = store.entries()
    os.utime(entry.folder, (real() + jump, real() + jump))
    listed = CliRunner().invoke(app, ["runs", "--store", str(tmp_path)])
    assert listed.exit_code == 0 and entry.id[:8] in listed.output
    assert np.isfinite(store.open("last").loss.values).all()
