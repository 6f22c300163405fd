"""What was measured, on what, with which versions. No host or user names: a result can be shown to anyone."""

import contextlib
import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("tutelage", "jax", "jaxlib", "diffrax", "equinox", "numpy", "scipy", "torch", "torchdiffeq")


def about(command: str) -> dict[str, Any]:
    """Date, command, commit, machine and versions."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }


def machine() -> dict[str, Any]:
    """The kind of machine, how busy it is, and what the environment says of threads."""
    told = {name: os.environ[name] for name in ("XLA_FLAGS", "OMP_NUM_THREADS") if os.environ.get(name)}
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "threads": told or "all cores for everybody, but one for OpenBLAS",
    }


def _processor() -> str | None:
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), None)
    return platform.processor() or None


def commit() -> str | None:
    """Of the code that was measured; None outside a repository."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=10"]
    with contextlib.suppress(OSError):
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or None
    return None


def version(name: str) -> str | None:
    """Of an installed package; None if it is not."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
