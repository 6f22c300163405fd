"""Sweeps on a real Dask cluster: a scheduler and two workers, each a process on this machine."""

import gc
import os
import signal
from collections import Counter

import pytest
from distributed import Client

import tutelage as tt
from benchmarks._loopback import loopback
from tutelage._errors import BadInput
from tutelage.store.fetching import differences
from tutelage.study import cluster
from tutelage.study.sweep import _Work
from tutelage.study.sweep_result import CellsFailed

# About a second per cell, so that a worker dies in the middle of one.
EXPERIMENT = tt.papers.both_layers(steps=400_000, step=1e-5)
OPTIONS = {"over": {"dim": [10, 20, 40, 80, 160, 320]}, "seeds": 4, "block": 2}


def own(run):
    """A function of this file, which workers do not have."""
    return run.last("loss") * scale()


def scale():
    return 2.0


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    with loopback(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def client(two):
    with cluster.connect(two.address) as connected:
        connected.wait_for_workers(1)
        yield connected


@pytest.fixture
def committed(monkeypatch):
    """How often each cell was committed."""
    counts = Counter()

    def commit(self, id, outcome, real=_Work._commit):
        counts[id] += 1
        real(self, id, outcome)

    monkeypatch.setattr(_Work, "_commit", commit)
    return counts


def test_an_error_of_a_cell_is_told_and_does_not_stop_the_others(client, tmp_path):
    def choosy(run):
        if run.dataset.sizes["seed"] == 1:
            raise RuntimeError("only one")
        return run.last("loss")

    with pytest.warns(CellsFailed, match="1 of 2 cells failed"):
        found = tt.sweep(
            tt.papers.both_layers(steps=50), over={"dim": [10]}, seeds=3, block=2, measure=choosy, store=tmp_path,
            client=client,
        )  # fmt: skip
    assert found.failed == {"dim=10, seeds 2 to 2": "RuntimeError: only one"}
    assert found.choosy.notnull().values.tolist() == [[True, True, False]]


def test_a_killed_worker_loses_nothing(two, client, tmp_path, committed):
    """Killed after the first result: its cells go to the other, and all numbers are those of one process, all bits."""
    client.wait_for_workers(2)

    def kill_one(label, done, total):
        if done == 1 and two.workers[0].poll() is None:
            os.kill(two.workers[0].pid, signal.SIGKILL)

    found = tt.sweep(
        EXPERIMENT, measure=["final_loss", own], store=tmp_path / "far", client=client, progress=kill_one, **OPTIONS
    )
    assert two.workers[0].wait() == -signal.SIGKILL
    assert len(committed) == 12 and set(committed.values()) == {1}
    near = tt.sweep(EXPERIMENT, measure=["final_loss", own], store=tmp_path / "near", processes=1, **OPTIONS)
    assert not found.failed and found.entry.state == "finished"
    assert differences(found.dataset, near.dataset) == []


def test_cells_from_a_cluster_are_not_computed_again_elsewhere(client, tmp_path, committed):
    options = {"over": {"dim": [10, 20]}, "measure": "final_loss", "seeds": 2, "store": tmp_path}
    tt.sweep(tt.papers.both_layers(steps=50), client=client, **options)
    tt.sweep(tt.papers.both_layers(steps=50), processes=1, **options)
    assert set(committed.values()) == {1}


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "tcp://127.0.0.1:port", ""])
def test_an_address_at_which_nobody_answers_is_one_sentence(address, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(BadInput, match="No Dask scheduler answers"):
        cluster.connect(address)
    # None is left to the collector, which would hang if it came upon it while another client starts.
    assert not [each for each in gc.get_objects() if type(each) is Client]


def test_a_lost_scheduler_is_told_and_nothing_is_lost(tmp_path, committed):
    """Last of all: this one ends a cluster of its own."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    lost = pytest.warns(CellsFailed, match="cells failed")
    with loopback(folder, workers=1) as one, cluster.connect(one.address) as client, lost:

        def lose(label, done, total):
            if done == 1:
                one.scheduler.kill()

        found = tt.sweep(EXPERIMENT, measure="final_loss", store=tmp_path, client=client, progress=lose, **OPTIONS)
    assert found.failed and found.done.sum() < 6 and found.entry.state == "unfinished"
    kept = sum(committed.values()) - len(found.failed)
    whole = tt.sweep(EXPERIMENT, measure="final_loss", store=tmp_path, processes=1, **OPTIONS)
    assert kept > 0 and not whole.failed and whole.entry.state == "finished"
    assert sum(committed.values()) == 12 + len(found.failed)
