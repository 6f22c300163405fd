"""Shared by the benchmarks: one thread each, and a results file with date, machine and command."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tutelage.bench.machine import about  # which loads nothing that has threads

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

RESULTS = Path(__file__).parent / "results"


def write(name: str, result: dict[str, Any]) -> None:
    """Print the result and keep it in `benchmarks/results/<name>.json`."""
    found = about(f"python benchmarks/{Path(sys.argv[0]).name}") | result
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(result, indent=2))
