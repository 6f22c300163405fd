"""A real Dask cluster on this machine: one scheduler and some workers, each a process of its own."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 120.0  # seconds until a scheduler that does not start is given up


@dataclass(frozen=True)
class Loopback:
    address: str
    scheduler: subprocess.Popen
    workers: tuple[subprocess.Popen, ...]


@contextlib.contextmanager
def loopback(folder: Path, workers: int = 2) -> Iterator[Loopback]:
    """Within it there is a cluster on 127.0.0.1, at ports that the system chose; after it every process is gone.

    `folder` has the files of the cluster; what its processes say is in `folder/*.log`.
    """
    file = folder / "scheduler.json"
    started: list[subprocess.Popen] = []
    try:
        started.append(_start(folder, "scheduler", "--port", "0", "--scheduler-file", str(file)))
        address = _address(file, started[0])
        # No nanny: a worker that is killed is gone. One that lost its scheduler ends by itself.
        options = ("--nthreads", "1", "--no-nanny", "--death-timeout", "60", "--local-directory", str(folder))
        for number in range(workers):
            started.append(_start(folder, "worker", address, "--name", str(number), *options))
        yield Loopback(address, started[0], tuple(started[1:]))
    finally:
        for process in reversed(started):
            process.kill()
        for process in started:
            process.wait()


def _start(folder: Path, what: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1", "--no-dashboard", *options]
    with open(folder / f"{what}.log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def _address(file: Path, scheduler: subprocess.Popen) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and scheduler.poll() is None:
        with contextlib.suppress(OSError, ValueError):  # not there yet, or being written
            return json.loads(file.read_text())["address"]
        time.sleep(0.1)
    raise RuntimeError(f"No scheduler was started; {file.with_suffix('.log')} says why.")
