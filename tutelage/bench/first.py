"""First calls: in a process of its own, with an empty compilation cache, from the call to its result.

Modules are imported before the clock starts, for everybody. `python -m tutelage.bench.first` is that process.
"""

import resource
import sys
import tempfile
import time
from importlib import import_module
from typing import Any

from tutelage.bench.cases import get
from tutelage.bench.contest import OURS
from tutelage.bench.counting import compilations
from tutelage.bench.process import answer, ask, was_asked


def first_call(case: str, contest: str, entry: str, quick: bool) -> dict[str, Any]:
    """Seconds of the first call, its programs, and the peak of the process's memory, before it and after; of tutelage
    also the seconds of the first call of a second process, which finds what the first has compiled."""
    wanted = {"case": case, "contest": contest, "entry": entry, "quick": quick}
    if entry != OURS:  # other tools have no cache unless one asks for it
        return ask(__name__, wanted, cache="off")
    with tempfile.TemporaryDirectory() as folder:
        return ask(__name__, wanted, cache=folder) | {"cached": ask(__name__, wanted, cache=folder)["seconds"]}


def main(case: str, contest: str, entry: str, quick: bool) -> None:
    held = next(each for each in get(case).contests(quick) if each.name == contest)
    chosen = held.entry(entry)
    for module in chosen.needs:
        import_module(module)
    if held.given is not None and entry != OURS:
        held.given()
    before, start = peak(), time.perf_counter()
    with compilations() as compiled:
        chosen.call()
    seconds = time.perf_counter() - start
    memory = {"memory_mb": peak(), "memory_before_mb": before}
    answer({"seconds": seconds, "programs": compiled.programs, "compiling": compiled.seconds} | memory)


def peak() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)


if __name__ == "__main__":
    main(**was_asked())
