"""Writes docs/reliability.md: every promise, the tests that hold it, and the last figures of the long suites."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Promise:
    """What is promised, and which tests hold it: `file::name`, where the name is a test or the beginning of some."""

    what: str
    tests: tuple[str, ...]


STORE, FETCHING, CHECKPOINT = "tests/study/test_store.py", "tests/study/test_fetching.py", "tests/dynamics/test_checkpoint.py"
RESUME, SWEEP, CLUSTER = "tests/study/test_resume.py", "tests/study/test_sweep.py", "tests/study/test_cluster.py"

PROMISES: dict[str, tuple[Promise, ...]] = {
    "Nothing wrong is returned": (
        Promise(
            "A run is named by everything it was asked: any field of any problem, dynamics, record or stop gives another "
            "name, functions by their source and by all they refer to. Store, checkpoint, cell and sweep use that name. "
            "What cannot be described is refused where it would be kept.",
            ("tests/test_identity.py::test_every_field", "tests/test_identity.py::test_functions_count",
             f"{FETCHING}::test_what_cannot_be_described"),
        ),
        Promise(
            "A checkpoint of another run is refused.",
            (f"{CHECKPOINT}::test_whatever_else_is_asked", f"{FETCHING}::test_a_checkpoint_of_other_stages"),
        ),
        Promise(
            "What a run stores says the whole problem, and what an older revision or version computed is never read as new.",
            (f"{FETCHING}::test_a_run_says_the_whole_problem", f"{FETCHING}::test_runs_of_other_problems",
             f"{FETCHING}::test_what_an_older_revision", f"{FETCHING}::test_code_of_ones_own", "tests/test_revisions.py::test",
             "tests/study/test_upgrades.py::test"),
        ),
        Promise(
            "Every file has a checksum of all of it, compared before it is used; what is damaged is told in one sentence "
            "and left alone.",
            (f"{STORE}::test_what_is_damaged", f"{STORE}::test_every_flipped_bit", f"{STORE}::test_a_missing_chunk",
             f"{CHECKPOINT}::test_every_flipped_bit", f"{SWEEP}::test_a_cell_that_was_changed", f"{SWEEP}::test_a_damaged_cell"),
        ),
    ),
    "Nothing is lost": (
        Promise(
            "Killed, interrupted or terminated at any moment, a run, stages, a sweep and a reproduction go on from what was "
            "kept and end with the same bits.",
            (f"{RESUME}::test_killed", f"{RESUME}::test_ctrl_c", f"{RESUME}::test_stages_killed", f"{RESUME}::test_a_reproduction",
             "tests/study/test_soak.py::test"),
        ),
        Promise(
            "A full disk, or a store that can only be read, costs no run that was computed.",
            (f"{STORE}::test_a_full_disk", f"{STORE}::test_a_real_limit", f"{STORE}::test_a_store_that_can_only_be_read",
             f"{CHECKPOINT}::test_a_full_disk"),
        ),
        Promise(
            "One bad entry hides no other: pipes, devices, folders, links, other users' entries, nan and nesting without end.",
            (f"{STORE}::test_one_bad_entry", f"{STORE}::test_an_entry_that_may_not", f"{STORE}::test_a_log_that_is_a_pipe"),
        ),
    ),
}  # fmt: skip


def page() -> str:
    parts = [
        "# Reliability",
        "<!-- Made by docs/make_reliability.py (`make pages`); do not edit. -->",
        "What tutelage promises, which tests hold it, and what the long suites last found. Tests are run by `make test`; the "
        "long suites by the commands beside their figures. A name that ends in ... stands for all tests that begin so.",
    ]
    for title, promises in PROMISES.items():
        parts += [f"## {title}", *(_promise(each) for each in promises)]
    parts += ["## The long suites", *filter(None, (_soak(), _fuzz(), _laws(), _mutants()))]
    return "\n\n".join(parts) + "\n"


def _promise(promise: Promise) -> str:
    return f"**{promise.what}**\n\n" + _listed(f"`{test}{'' if named(test) == 1 else '...'}`" for test in promise.tests)


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def named(test: str) -> int:
    """How many tests have this name, or begin with it; an exact name is one."""
    file, _, name = test.partition("::")
    source = (ROOT / file).read_text(encoding="utf-8")
    return 1 if f"def {name}(" in source else source.count(f"def {name}")


def _result(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _soak() -> str:
    found = _result("soak")
    if found is None:
        return ""
    kills = found["kills"]
    told = ", ".join(f"{count} {what}" for what, count in kills.items())
    return (
        f"**Soak** (`make soak`, {found['date']}): {sum(kills.values())} faults ({told}); {found['results_compared']} results "
        f"with {found['variables_compared']} variables compared with undisturbed ones, {found['differences']} differences."
    )


def _fuzz() -> str:
    found = _result("fuzz")
    if found is None:
        return ""
    rows = [
        f"| {kind} | " + " | ".join(str(counts.get(name, 0)) for name in ("refused", "begun", "works", "wrong")) + " |"
        for kind, counts in found["counts"].items()
    ]
    return (
        f"**Fuzz** (`make fuzz`, {found['date']}): {found['cases']} cases from a grammar of mistakes, in "
        f"{round(found['seconds'] / 60)} minutes. Refused is one sentence (and exit code 2); begun is a run that was "
        "made ready, and stopped there.\n\n"
        "| where | refused | begun | works | wrong |\n|---|---|---|---|---|\n" + "\n".join(rows)
    )


def _laws() -> str:
    return ""


def _mutants() -> str:
    return ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
