"""Shared by the benchmarks: one thread each, interleaved timings, and a results file with date, machine and command."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tutelage.bench.machine import about  # which loads nothing that has threads

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

RESULTS = Path(__file__).parent / "results"


def interleaved(runs: dict[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """The best time in seconds of each function over `rounds`, taken in turn so that all see the same machine.

    One call of each before the clock starts pays for compilation.
    """
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def write(name: str, result: dict[str, Any]) -> None:
    """Print the result and keep it in `benchmarks/results/<name>.json`."""
    found = about(f"python benchmarks/{Path(sys.argv[0]).name}") | result
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(result, indent=2))
