"""Processes of their own: what is measured in one has nothing of another in its memory and its caches."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

RESULT, LINE = "tutelage bench result: ", "tutelage bench: "
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
"""Several threads of OpenBLAS on matrices of a few hundred rows wait for each other longer than they compute, the more
so where other work is done. All entries factorise with one; XLA, PyTorch and tutelage's own threads have all cores."""


def ask(
    module: str, asked: Mapping[str, Any], cache: str | None = None, told: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """What `module`, run as a program, answers; its lines on the way are `told`. `cache`: of compiled programs."""
    environment = os.environ | ENVIRONMENT | ({} if cache is None else {"TUTELAGE_CACHE": cache})
    words = [sys.executable, "-m", module, json.dumps(asked)]
    found: dict[str, Any] | None = None
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(RESULT):
                found = json.loads(line.removeprefix(RESULT))
            elif line.startswith(LINE) and told:
                told(line.removeprefix(LINE).strip())
    if found is None:
        raise RuntimeError(f"{module} ended with code {process.returncode} and no result for {dict(asked)}")
    return found


def answer(found: Mapping[str, Any]) -> None:
    """The end of a program that was asked."""
    print(RESULT + json.dumps(found, allow_nan=False), flush=True)


def tell(line: str) -> None:
    """A line on the way."""
    print(LINE + line, flush=True)
