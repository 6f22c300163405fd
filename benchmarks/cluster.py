"""What a large sweep costs on a cluster besides the runs: bytes of cells and results, the scheduler, commits.

A real scheduler and two workers on this machine. Their tasks compute nothing: they take a cell of `soft_moe` and give a
result of 32 seeds, both of the true size. `docs/cluster.md` reckons with these numbers.
"""

# isort: off
from _measure import write  # first, because it fixes the number of threads
from _loopback import loopback

import pickle
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import distributed
import numpy as np
import psutil

import tutelage as tt
from tutelage._identity import digest
from tutelage.study import cluster
from tutelage.study.measuring import measurements
from tutelage.study.sweep import _plan, _Work
from tutelage.study.workers import packed
# isort: on

SEEDS, MEASURES = 32, ("recovery_time", "final_loss")
IDLE = 20.0  # seconds of looking at a scheduler that has nothing to do


def plan(cells: int):
    """A sweep of as many cells: dimensions by numbers of students."""
    over = {"dim": f"1e3..1e8:{cells // 10}", "students": list(range(10, 20))}
    return _plan("soft_moe", over, MEASURES, SEEDS, None, "grid", None, 0, SEEDS)


def outcome(seed: int = 0) -> dict:
    """A result as large as a true one: a fifth of the times are still to come."""
    draws = np.random.default_rng(seed).random((2, SEEDS))
    times = [None if late else value for value, late in zip(draws[0], draws[1] < 0.2, strict=True)]
    limits = [150.0 if value is None else None for value in times]
    measures = {"recovery_time": {"values": times, "limit": limits, "law": 3.5}}
    measures["final_loss"] = {"values": draws[1].tolist(), "limit": [None] * SEEDS, "law": None}
    return {"measures": measures, "seconds": 1.5}


def on_scheduler(tasks: int, folder: Path) -> dict:
    """Tasks through `cluster.on_cluster`, as a sweep sends them."""
    result = outcome()
    cluster.work = lambda payload: dict(result)
    cells = {cell.id: cell for row in plan(tasks).cells() for cell in row}
    with loopback(folder) as started, cluster.connect(started.address) as client:
        client.wait_for_workers(2)
        scheduler = psutil.Process(started.scheduler.pid)
        list(cluster.on_cluster({f"warm{n}": cell for n, cell in enumerate(list(cells.values())[:20])}, client))
        before, beating = scheduler.memory_info().rss, _spent(scheduler, IDLE)
        sent, cpu, began = _loopback_bytes(), _cpu(scheduler), time.perf_counter()
        assert sum("error" not in each for _, each in cluster.on_cluster(cells, client)) == len(cells)
        seconds = time.perf_counter() - began
        peak = int(Path(f"/proc/{scheduler.pid}/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
        spent, sent = _cpu(scheduler) - cpu, _loopback_bytes() - sent
        for worker in started.workers:
            worker.kill()
        time.sleep(2)  # until their loss is dealt with
        alone = _spent(scheduler, IDLE)
        return {
            "tasks": len(cells),
            "tasks_per_second": len(cells) / seconds,
            "scheduler_cpu_milliseconds_per_task": 1e3 * spent / len(cells),
            # Each worker sends two heartbeats per second.
            "idle_scheduler_cpu_milliseconds_a_second": {
                "two workers": 1e3 * beating / IDLE,
                "none": 1e3 * alone / IDLE,
            },
            "loopback_bytes_per_task": sent / len(cells),
            "scheduler_megabytes_before": before / 1e6,
            "scheduler_megabytes_at_most": peak / 1e6,
            "scheduler_kilobytes_per_task": (peak - before) / 1e3 / len(cells),
        }


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _spent(process: psutil.Process, seconds: float) -> float:
    before = _cpu(process)
    time.sleep(seconds)
    return _cpu(process) - before


def _loopback_bytes() -> int:
    """Through the loopback interface, of all processes: run this on a quiet machine."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def in_store(cells: int, folder: Path) -> dict:
    """Commits of as many results, and asking again for the sweep whose cells are all there."""
    planned, store = plan(cells), tt.Store(folder / "store")
    table = planned.cells()
    spec = planned.spec(table)
    entry = store.prepare(digest(spec["asked"]), spec)
    work = _Work(store, entry, planned, table, None)
    work._due = np.inf  # the partial result is timed by itself
    outcomes = [outcome(seed) for seed in range(100)]
    began = time.perf_counter()
    for number, id in enumerate(work.cells):
        work._commit(id, outcomes[number % 100])
    committed = time.perf_counter() - began
    seconds = {}
    for what, do in (("read", lambda: _Work(store, entry, planned, table, None)), ("write", work._write)):
        began = time.perf_counter()
        do()
        seconds[what] = time.perf_counter() - began
    files = list((store.root / ".cells").rglob("*.json"))
    return {
        "cells": len(work.cells),
        "cell_file_bytes": int(np.mean([file.stat().st_size for file in files[:100]])),
        "commit_milliseconds": 1e3 * committed / len(work.cells),
        "seconds_to_read_all_cells": seconds["read"],
        "seconds_to_make_and_write_the_dataset": seconds["write"],
        "result_megabytes": entry.result.stat().st_size / 1e6,
    }


def main(tasks: int, cells: int) -> None:
    (first, *_), *_ = plan(10).cells()
    own = replace(first, measurements=measurements(tt.papers.soft_moe, lambda run: run.last("loss")))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(
            "cluster",
            {
                "setting": f"cells of soft_moe, {SEEDS} seeds, {' and '.join(MEASURES)}; two workers of one thread",
                "distributed": distributed.__version__,
                "cell_bytes": len(packed(first)),
                "cell_with_own_function_bytes": len(packed(own)),
                "result_bytes": len(pickle.dumps(outcome())),
                "scheduler": on_scheduler(tasks, folder),
                "store": in_store(cells, folder),
            },
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
