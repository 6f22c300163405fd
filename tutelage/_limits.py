"""What this machine can hold, so that nothing larger is begun."""

import os
import sys
from functools import cache
from pathlib import Path

from tutelage._errors import BadInput

if sys.platform != "win32":
    import resource

SHARE = 0.8  # of the memory: the rest is for compiled programs and for whoever else is there
STEPS = 10**13
"""The most updates of a run: at one microsecond each they take four months."""
SHORTEST, LONGEST = 1e-290, 1e300
"""Ends of a flow: beyond them times of records, or of a step, are zero or infinite."""
CELLS, CELL = 10**6, 10_000
"""The most cells of a sweep, whose names alone take hours to find, and the bytes that are kept of each."""


def memory() -> int:
    """The bytes that this process may use: those of the machine, of its container or of its own limit."""
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    if sys.platform != "win32":
        bounds.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    bounds = [bound for bound in (*bounds, *_of_container()) if bound > 0]
    return min(bounds) if bounds else 2**40


@cache  # a run asks several times
def _of_container() -> tuple[int, ...]:
    bounds = []
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            bounds.append(int(Path(file).read_text()))
        except (OSError, ValueError):
            continue  # there is none, or it says "max"
    return tuple(bounds)


def fits(what: str, size: float, remedy: str) -> None:
    """Refuse what would take more than the memory there is.

    ```python
    >>> from tutelage._limits import fits
    >>> fits("A run of so many seeds", 1e15, "ask for fewer seeds")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tutelage._errors.BadInput: A run of so many seeds takes about 9.31e+05 GiB, but this machine has ...

    ```
    """
    there = memory()
    if size > SHARE * there:
        gib = 2.0**30
        raise BadInput(
            f"{what} takes about {size / gib:.3g} GiB, but this machine has {there / gib:.3g} GiB; {remedy}."
        )


def few_cells(what: str, count: int) -> None:
    """Refuse a sweep of more cells than can be named or kept."""
    fits(what, float(CELL) * min(count, 10**300), "ask for fewer points or seeds")
    if count > CELLS:
        raise BadInput(f"{what} has {count} cells, but a sweep has at most {CELLS}; ask for fewer points or seeds.")
