"""Processes of their own: what is measured in one has nothing of another in its memory and its caches."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

RESULT, LINE = "tutelage bench result: ", "tutelage bench: "
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
"""Several threads of OpenBLAS on matrices of a few hundred rows wait for each other longer than they compute, the more
so where other work is done. All entries factorise with one; XLA, PyTorch and tutelage's own threads have all cores."""


class Unfinished(Exception):
    """A process that did not come to its end; `found` is the last that it answered, None if there is nothing."""

    def __init__(self, reason: str, found: dict[str, Any] | None):
        super().__init__(reason)
        self.found = found


def ask(
    module: str,
    asked: Mapping[str, Any],
    *,
    cache: str | None = None,
    told: Callable[[str], None] | None = None,
    so_far: Callable[[dict[str, Any]], None] | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """What `module`, run as a program, answers last; its lines on the way are `told`, earlier answers are `so_far`.

    `cache`: of compiled programs. `seconds`: when it is ended, with all that it has begun.
    """
    environment = os.environ | ENVIRONMENT | ({} if cache is None else {"TUTELAGE_CACHE": cache})
    words = [sys.executable, "-m", module, json.dumps(asked)]
    found: dict[str, Any] | None = None
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=environment, start_new_session=True, **pipes) as process:
        clock = threading.Timer(seconds or threading.TIMEOUT_MAX, _end, [process])
        clock.daemon = True
        clock.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(RESULT):
                    found = json.loads(line.removeprefix(RESULT))
                    if so_far:
                        so_far(found)
                elif line.startswith(LINE) and told:
                    told(line.removeprefix(LINE).strip())
            code = process.wait()
        finally:  # stopped by Ctrl-C, too
            clock.cancel()
            _end(process)
    if code or found is None:
        raise Unfinished(f"{module} ended with code {code}{'' if found else ' and no result'}", found)
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it has begun, which is in its session."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def was_asked() -> dict[str, Any]:
    """What this process was asked by `ask`. It ends when the one that asked does, however that ended: nobody holds its
    input open any more."""

    def wait() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock would be held when this process comes to its own end
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    found: dict[str, Any] = json.loads(sys.argv[1])
    return found


def answer(found: Mapping[str, Any]) -> None:
    """What was found, or what was found so far; the last answer counts."""
    print(RESULT + json.dumps(found, allow_nan=False), flush=True)


def tell(line: str) -> None:
    """A line on the way."""
    print(LINE + line, flush=True)
