"""The bench: cases one after the other, each in a process of its own, and one file with all that was found."""

import datetime
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tutelage._checks import whole
from tutelage._files import check_file, deliver
from tutelage._plain import dumps
from tutelage.bench.cases import chosen
from tutelage.bench.machine import about
from tutelage.bench.process import Unfinished, ask

RESULTS = Path("benchmarks/results")
REPEAT, PATIENCE = 5, 5.0
LONGEST = 600.0
"""Seconds of a case, after which it is stopped."""
BUSY = 0.5
"""Processes that run on a machine that is not quiet."""


def bench(
    cases: Sequence[str] = (),
    *,
    quick: bool = False,
    repeat: int | None = None,
    out: Path | None = None,
    told: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure the cases (all if none is named) and return what was found, as in the file `out`.

    - `quick`: sizes of seconds, to see that all works; its figures say nothing about speed.
    - `repeat`: rounds, 5 (2 if quick). In each, everybody is called once, in turn. A slow one is left out of later
      rounds when it has taken five seconds, but not before its second.
    - `out`: written after every contest, so that little is lost when a bench is stopped.
    """
    names = chosen(cases)
    rounds = whole("repeat", (2 if quick else REPEAT) if repeat is None else repeat, least=1)
    if out is not None:
        check_file(out)
    words = ["tutelage bench", *cases, *(["--quick"] if quick else ())]
    start = time.monotonic()
    found: dict[str, Any] = about(" ".join([*words, f"--repeat {rounds}"]))
    found |= {"quick": quick, "seconds": 0.0, "cases": {}}
    if told and (busy := found["machine"]["load"]) > BUSY:
        told(f"the machine is busy (a load of {busy:.1f} before the bench): its figures will be off")
    for name in names:
        asked = {"case": name, "quick": quick, "repeat": rounds, "patience": 0.5 if quick else PATIENCE}
        keep = partial(_keep, found, out, name, start, time.monotonic())
        keep(_answer(asked, told, keep))
    return found


def _keep(found: dict[str, Any], out: Path | None, name: str, start: float, begun: float, case: dict[str, Any]) -> None:
    """What is known of a case, in its place."""
    now = time.monotonic()
    found["cases"][name] = case | {"seconds": now - begun}
    found["seconds"] = now - start
    if out is not None:
        deliver(out, lambda path: path.write_text(dumps(found) + "\n", encoding="utf-8"))


def _answer(
    asked: dict[str, Any], told: Callable[[str], None] | None, keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """What a case found. One that crashed, or takes too long, keeps what it had, and the others go on."""
    so_far = lambda case: keep(case | {"unfinished": "the bench was stopped"})  # noqa: E731
    try:
        return ask("tutelage.bench.worker", asked, told=told, so_far=so_far, seconds=LONGEST)
    except Unfinished as error:
        reason = f"stopped after {LONGEST:g} s, or crashed ({error})"
        if told:
            told(f"{asked['case']}: {reason}")
        return (error.found or {"title": asked["case"], "contests": []}) | {"unfinished": reason}


def usual_file() -> Path:
    """Where the results of a whole bench go: beside the earlier ones in a clone, else where one is."""
    folder = RESULTS if RESULTS.is_dir() else Path()
    return folder / f"{datetime.date.today().isoformat()}.json"
