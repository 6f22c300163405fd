"""Writes docs/reliability.md: every promise, the tests that hold it, and the last figures of the long suites."""

import json
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "benchmarks" / "results"
PROMISES: dict[str, list[dict[str, Any]]] = tomllib.loads((ROOT / "docs" / "promises.toml").read_text(encoding="utf-8"))


def page() -> str:
    parts = [
        "# Reliability",
        "<!-- Made by docs/make_reliability.py (`make pages`) from docs/promises.toml; do not edit. -->",
        "What tutelage promises, which tests hold it, and what the long suites last found. `make test` runs\n"
        "the tests; the long suites have commands of their own. A name that ends in ... stands for all tests that\n"
        "begin so.",
    ]
    for title, promises in PROMISES.items():
        parts += [f"## {title}", *map(_promise, promises)]
    parts += ["## The long suites", *filter(None, (_soak(), _fuzz(), _laws(), _mutants()))]
    return "\n\n".join(parts) + "\n"


def _promise(promise: dict[str, Any]) -> str:
    tests = (f"- `{test}{'' if named(test) == 1 else '...'}`" for test in promise["tests"])
    return f"**{promise['promise']}**\n\n" + "\n".join(tests)


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
        f"**Soak** (`make soak`, {found['date']}): {sum(kills.values())} faults ({told});\n{found['results_compared']} "
        f"results with {found['variables_compared']} variables compared with undisturbed ones, "
        f"{found['differences']} differences."
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
    found = _result("laws")
    if found is None:
        return ""
    seen = [name for name, about in found["planted_faults"].items() if about["seen"]]
    return (
        f"**Laws** (`make laws`, {found['date']}): {found['cases']} settings of online SGD against a loop in NumPy, "
        f"{found['replicas']}\nreplicas each, {found['tests']} tests with a false-alarm rate of "
        f"{found['false_alarm_rate']:g} for all together: {'passed' if found['passed'] else 'failed'}.\n"
        f"{len(seen)} of {len(found['planted_faults'])} planted faults are seen: {'; '.join(seen)}."
    )


def _mutants() -> str:
    found = _result("mutants")
    if found is None:
        return ""
    verdicts = ", ".join(f"{count} {name}" for name, count in sorted(found["verdicts"].items()))
    survivors = (f"- `{row['fault']}`: {row['why'] or 'not looked at yet'}" for row in found["survivors"])
    return (
        f"**Mutants** (`make mutants`, {found['date']}): small faults in the code, one by one, and the tests of their "
        f"module\nthat call the function with the fault; {found['tried']} of a fixed sample of {found['sampled']} were "
        f"tried, {found['minutes']:g} minutes:\n{verdicts}. Those that survived:\n\n" + "\n".join(survivors)
    )


def pages() -> dict[Path, str]:
    return {PAGE: page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
