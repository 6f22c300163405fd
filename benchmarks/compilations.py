"""What a command compiles: how often each program is traced, lowered and compiled, and for how many seconds.

The command is run twice, first with empty caches and then with those that the first run left, each time with a store of
its own, so that nothing is read that should be computed. JAX says on stderr what it compiles, in all processes of the
command; the rest of stderr is passed on.

    python benchmarks/compilations.py tutelage run both_layers
    python benchmarks/compilations.py            # `tutelage run` of every paper, kept in results/compilations.json
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STAGES = {"tracing": "trace", "jaxpr to MLIR module conversion": "lower", "XLA compilation of": "compile"}
DONE = re.compile(rf"Finished (?P<stage>{'|'.join(STAGES)}) (?P<name>.+?)(?: for \w+)? in (?P<seconds>\S+) sec")
HIT = re.compile(r"Persistent compilation cache hit for '(?P<name>\S+)'")
BEGUN = re.compile(r"Compiling \S+ with global shapes")
SHOWN = 15


@dataclass
class Counted:
    """One run of a command. A program that the persistent cache has is loaded and not compiled.

    A function that is traced while another one is counts for both.
    """

    compiled: Counter[str] = field(default_factory=Counter)
    loaded: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cpu: float = 0.0
    cache: int = 0

    def read(self, line: str) -> bool:
        """Whether this line of stderr is about compilation; if so, it is counted."""
        if done := DONE.search(line):
            # Traced functions have plain names; those that are lowered and compiled are called jit(name).
            name, stage = done["name"].removeprefix("jit(").removesuffix(")"), STAGES[done["stage"]]
            self.seconds[name][stage] += float(done["seconds"])
            self.compiled[name] += stage == "compile"
        elif hit := HIT.search(line):
            name = hit["name"].removeprefix("jit_")
            self.loaded[name] += 1
            self.compiled[name] -= 1  # JAX calls it compiled, too
        return bool(done or hit or BEGUN.search(line))

    def record(self) -> dict[str, Any]:
        sums = sum(self.seconds.values(), Counter())
        return {
            "cpu_seconds": round(self.cpu, 2),
            "compiled": self.compiled.total(),
            "loaded": self.loaded.total(),
            **{f"{stage}_seconds": round(sums[stage], 2) for stage in STAGES.values()},
            "cache_bytes": self.cache,
        }

    def table(self) -> str:
        """The programs that took longest."""
        longest = sorted(self.seconds, key=lambda name: -self.seconds[name].total())
        lines = [f"{'program':40} compiled loaded  trace  lower compile"]
        for name in longest[:SHOWN]:
            spent = " ".join(f"{self.seconds[name][stage]:6.2f}" for stage in STAGES.values())
            lines.append(f"{name[:40]:40} {self.compiled[name]:8} {self.loaded[name]:6} {spent}")
        others = longest[SHOWN:]
        return "\n".join(lines + [f"and {len(others)} others"] * bool(others))


def counted(command: list[str], cache: Path) -> Counted:
    """Run it with this cache of compiled programs and a new store."""
    found = Counted()
    with tempfile.TemporaryDirectory() as store:
        own = {"JAX_LOG_COMPILES": "1", "TUTELAGE_CACHE": str(cache), "TUTELAGE_STORE": store}
        before = _spent()
        piped: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "errors": "replace"}
        with subprocess.Popen(command, env=os.environ | own, **piped) as process:
            for line in process.stderr:
                if not found.read(line):
                    sys.stderr.write(line)
        if process.returncode:
            sys.exit(f"{' '.join(command)} ended with exit code {process.returncode}.")
    found.cpu = _spent() - before
    found.cache = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    return found


def _spent() -> float:
    """Seconds of CPU of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def twice(command: list[str]) -> dict[str, Counted]:
    """With empty caches, and with those that this leaves."""
    with tempfile.TemporaryDirectory() as cache:
        return {name: counted(command, Path(cache)) for name in ("cold", "warm")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    command = parser.parse_args().command
    if command:
        for title, run in twice(command).items():
            print(f"{title}: {', '.join(f'{name} {value}' for name, value in run.record().items())}\n{run.table()}\n")
        return
    from _measure import write

    from tutelage import papers

    runs = {name: twice([sys.executable, "-m", "tutelage", "run", name, "--quiet"]) for name in papers.names()}
    write("compilations", {name: {title: run.record() for title, run in each.items()} for name, each in runs.items()})


if __name__ == "__main__":
    main()
