"""Writes docs/speed.md and the short table of the README from the last results of `tutelage bench`."""

import json
import re
from pathlib import Path
from typing import Any

from tutelage.analysis import Panel, Sheet, line
from tutelage.bench import results
from tutelage.bench.cases import NAMES, get
from tutelage.bench.contest import OURS

ROOT = Path(__file__).parent.parent
PAGE, README = ROOT / "docs" / "speed.md", ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
PICTURE = ROOT / "docs" / "images" / "work-precision.png"
PEERS = ("plain_jax", "plain_numpy", "by_diffrax", "by_scipy", "by_torch", "by_torchdiffeq")
SHORT = re.compile(r"(<!-- speed: made by docs/make_speed.py -->\n).*?(<!-- /speed -->)", re.S)

INTRO = """# Speed

<!-- Made by docs/make_speed.py (`make pages`) from the last file of benchmarks/results; do not edit. -->

A user of this field writes ten lines of JAX or diffrax, so that is what tutelage is measured against: `tutelage bench`,
or `make bench`, which installs PyTorch and torchdiffeq first. `tutelage bench flow --quick` shows in a minute how it
works.

- **Side by side.** All entries of a contest run on one machine in one process, in turn (A B A B ...), several times; a
  time is the median, with its quartiles. Everybody has the same precision and all cores. OpenBLAS has one thread for
  everybody, and PyTorch one where its arrays are tiny: more made them slower.
- **Checked first.** Entries are timed only if they computed the same thing, within the tolerance that is stated.
- **First calls** are those of a new process with an empty compilation cache, imports not counted. *From its cache* is
  the first call of the next process.
- **Peers** are written as one writes them, in a few lines, and are [below](#what-it-is-compared-with)."""

NOTHING = "There are no results of a whole bench in this clone. `make bench` measures them."


def page(found: dict[str, Any] | None) -> str:
    parts = [INTRO]
    if found is None:
        parts.append(NOTHING)
    else:
        parts += [_about(found), *(_case(found, name) for name in NAMES if name in found["cases"]), _first(found)]
    return "\n\n".join([*filter(None, parts), _peers()]) + "\n"


def _about(found: dict[str, Any]) -> str:
    machine, versions = found["machine"], found["versions"]
    told = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    goals = [row for row in results.rows(found) if row.goal is not None]
    met = sum(row.verdict == "met" for row in goals)
    lines = [
        f"Measured on {found['date']} in {found['seconds'] / 60:.0f} minutes, commit {found['commit']}, by "
        f"`{found['command']}`, on {machine['cores']} cores ({machine['processor'] or machine['architecture']}), "
        f"{machine['system']}, with a load of {machine['load']:g} before it; {told}.",
        f"Of {len(goals)} goals for later calls {met} are met.",
        *results.left_out(found),
        *results.troubles(found),
    ]
    return "\n\n".join(lines)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows))


def _case(found: dict[str, Any], name: str) -> str:
    case = found["cases"][name]
    parts = [f"## {case['title']}", f"`tutelage bench {name}`, {case['seconds']:.0f} s."]
    rows = [
        (row.contest, results.ranged(row.ours), row.peer, results.ranged(row.theirs), f"**{row.ratio:.3g}**",
         "" if row.goal is None else f"{row.goal:g}", row.verdict, row.share)
        for row in results.rows(found) if row.case == name
    ]  # fmt: skip
    if rows:
        units = dict.fromkeys(contest["unit"] for contest in case["contests"])
        ours = f"tutelage, one {' or '.join(units)}"
        head = ("contest", ours, "compared with", "takes", "ratio", "goal", "", "limit")
        limits = dict.fromkeys(contest["limit"]["name"] for contest in case["contests"] if "limit" in contest)
        parts += [_table(head, rows), _agreement(case)]
        parts += [f"*limit*: the part of tutelage's time that {each} take by themselves, measured." for each in limits]
        if any("not met" in cell for row in rows for cell in row) and (why := get(name).reason):
            parts.append(f"*Why a goal is not met.* {why}")
    return "\n\n".join([*parts, *_precision(case), *_growth(case)])


def _agreement(case: dict[str, Any]) -> str:
    told: dict[tuple[str, float], float] = {}
    for contest in case["contests"]:
        key = contest["agreement"], contest["tolerance"]
        told[key] = max([told.get(key, 0.0), *contest.get("apart", {}).values()])
    each = (f"{what}: apart by at most {far:.2g} (tolerance {within:g})" for (what, within), far in told.items())
    return "Agreement, checked before timing: " + "; ".join(each) + "."


def _precision(case: dict[str, Any]) -> list[str]:
    found = case.get("work_precision")
    if found is None:
        return []
    apart, rows = f"{found['references_apart']:.1g}", found["rows"]
    pairs = list(zip(*([row for row in rows if row["entry"] == name] for name in (OURS, "diffrax Tsit5")), strict=True))
    within = sum(ours["error"] <= theirs["error"] for ours, theirs in pairs)
    return [
        f"### Error against seconds\n\nThe largest error of an overlap at any of {found['records']} records, at "
        f"d = {found['dim']} to time {found['until']:g}, against SciPy's DOP853 with a tolerance of 1e-12 (from which "
        f"diffrax at that tolerance is {apart} away). The goal is an error no larger than diffrax's at equal `rtol`: "
        f"met at {within} of {len(pairs)} tolerances.",
        "![Error against seconds, for tolerances from 1e-4 to 1e-10](images/work-precision.png)",
        _table(
            ("entry", "rtol", "error", "steps", "seconds"),
            [
                (row["entry"], f"{row['rtol']:g}", f"{row['error']:.2g}", str(row["steps"] or ""), results.ranged(row))
                for row in rows
            ],
        ),
    ]


def _growth(case: dict[str, Any]) -> list[str]:
    if "growth" not in case:
        return []
    rows = []
    for each in case["growth"]:
        times = ", ".join(f"{size}: {results.spoken(taken['median'])}" for size, taken in each["seconds"].items())
        expected = " to ".join(dict.fromkeys(f"{value:g}" for value in each["expected"]))
        rows.append((each["name"], times, f"{each['exponent']:.2f}", expected))
    return [_table(("with", "times", "exponent", "expected"), rows)]


def _first(found: dict[str, Any]) -> str:
    rows = [
        (f"{row.case}, {row.contest}", results.spoken(row.ours["seconds"]), results.spoken(row.ours["cached"]),
         f"{row.ours['programs']} in {results.spoken(row.ours['compiling'])}", row.peer,
         results.spoken(row.theirs["seconds"]), "" if row.goal is None else f"at most {row.goal:g} s more", row.verdict,
         f"{_memory(row.ours)} / {_memory(row.theirs)}")
        for row in results.first_rows(found)
    ]  # fmt: skip
    if not rows:
        return ""
    head = ("contest", "tutelage", "from its cache", "programs", "compared with", "takes", "goal", "", "memory, MB")
    return "\n\n".join(
        [
            "## First calls, and memory",
            _table(head, rows),
            "*memory*: by how much the call raised the peak of its process, of tutelage and of the other.",
        ]
    )


def _memory(call: dict[str, float]) -> str:
    return f"{call['memory_mb'] - call['memory_before_mb']:.0f}"


def _peers() -> str:
    parts = ["## What it is compared with", "The files of `tutelage/bench/peers`, as they are run."]
    parts += [f'``` {{ .python title="{name}.py" }}\n--8<-- "tutelage/bench/peers/{name}.py"\n```' for name in PEERS]
    return "\n\n".join(parts)


def short(found: dict[str, Any] | None) -> str:
    """The README's table: the main contests, each with those it has goals against."""
    if found is None:
        return f"{NOTHING}\n"
    rows = [
        (f"{row.case}: {row.contest}", results.spoken(row.ours["median"]), row.peer,
         results.spoken(row.theirs["median"]), f"**{row.ratio:.3g}**", f"{row.goal:g}", row.verdict)
        for row in results.rows(found) if row.headline and row.goal is not None
    ]  # fmt: skip
    head = ("later calls, for a unit of work", "tutelage", "compared with", "takes", "ratio", "goal", "")
    return _table(head, rows) + f"\n\n`{found['command']}`, {found['date']}, {found['machine']['cores']} cores.\n"


def picture(found: dict[str, Any]) -> Sheet | None:
    """Error against seconds."""
    table = found["cases"].get("flow", {}).get("work_precision")
    if table is None:
        return None
    curves = []
    for number, name in enumerate(dict.fromkeys(row["entry"] for row in table["rows"])):
        mine = [row for row in table["rows"] if row["entry"] == name]
        curves.append(line([row["median"] for row in mine], [row["error"] for row in mine], name, colour=number))
    title = f"{table['records']} records to time {table['until']:g}, d = {table['dim']}"
    panel = Panel(title, "seconds", "largest error", tuple(curves), xscale="log", yscale="log")
    return Sheet("Error against seconds", (panel,), columns=1)


def last() -> dict[str, Any] | None:
    """The last results of a whole bench."""
    path = results.newest(RESULTS)
    return None if path is None else json.loads(path.read_text(encoding="utf-8"))


def pages() -> dict[Path, str]:
    """The page and the README by their places."""
    found, readme = last(), README.read_text(encoding="utf-8")
    made, count = SHORT.subn(lambda match: match[1] + "\n" + short(found) + "\n" + match[2], readme)
    assert count == 1, "README.md has no place for the table"
    return {PAGE: page(found), README: made}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    sheet = picture(last() or {"cases": {}})
    if sheet is not None:
        from tutelage.present import figures

        figures.save(sheet, PICTURE)
