"""The full record of a paper: every claim and figure at full size, by one version of the code, for the docs' pages.

    python benchmarks/record.py soft_moe              (or `make record PAPER=soft_moe`)

It is taken only from a clean work tree that is the same commit before and after: findings, pictures and captions are
of one version. Runs are kept in `build/record/store`, named by all that was asked and by the revision of what makes
them, so that a record that was stopped goes on.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tutelage as tt
from tutelage.bench.machine import about
from tutelage.present.reproduce import Reproduction, reproduce

HERE = Path(__file__).parents[1]
RESULTS, PICTURES = HERE / "benchmarks" / "results", HERE / "docs" / "images"


def clean_commit() -> str:
    """The commit of a work tree in which nothing is changed."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    if changed:
        sys.exit(f"These files are changed: {', '.join(line[3:] for line in changed.splitlines())}; commit them first.")
    return _git("rev-parse", "--short=10", "HEAD")


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=HERE, check=True, capture_output=True, text=True).stdout.rstrip()


def record(paper: str, seeds: int) -> None:
    """Reproduce the paper in full, and keep the findings, the pictures and what their captions say."""
    commit, began = clean_commit(), time.perf_counter()
    place = HERE / "build" / "record"
    done = reproduce([paper], size="full", seeds=seeds, out=place / paper, store=place / "store", progress=_told)
    crashed = [crash.what for result in done.results for crash in result.crashes]
    if crashed:
        sys.exit(f"These parts crashed: {', '.join(crashed)}; nothing is recorded.")
    if clean_commit() != commit:
        sys.exit(f"The commit is no longer {commit}; nothing is recorded.")
    found = about(f"tutelage reproduce {paper} --full") | _found(paper, done, seeds)
    found |= {"commit": commit, "seconds": round(time.perf_counter() - began)}
    (RESULTS / f"{paper}_full.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for drawn in done.results[0].figures:
        shutil.copyfile(drawn.png, PICTURES / paper / drawn.png.name)


def _found(paper: str, done: Reproduction, seeds: int) -> dict[str, Any]:
    checked = json.loads((done.report.parent / "claims.json").read_text(encoding="utf-8"))
    captions = {drawn.figure.id: drawn.sheet.caption for drawn in done.results[0].figures}
    return checked | {"seeds": seeds, "captions": captions}


def _told(what: str, done: int, total: int) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what} ({done} of {total})", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("paper", choices=tt.papers.names())
    options.add_argument("--seeds", type=int, default=10)
    asked = options.parse_args()
    record(asked.paper, asked.seeds)
