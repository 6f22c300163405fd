"""Small faults planted in the code one by one, and whether any test sees them.

    python benchmarks/mutants.py                    a fixed sample of faults, bounded in time
    python benchmarks/mutants.py --part oracle      of one part only
    python benchmarks/mutants.py --more             those of the sample that were not tried yet, or not to the end
    python benchmarks/mutants.py --again            those that survived last time, to see whether a new test kills them

The package and its tests are copied, and a fault is written into the copy: a comparison turned round, a sum made a
difference, a number changed, a condition made false, a statement left out, two arguments swapped. Then those tests
of the module are run that call the function, quick ones first, until one fails. What passes all of them has survived: a
test is missing, or the fault makes no difference; `WHY` says which, for those that were looked at.

Of the files named beside a survivor not all tests were run, and no others: a part's whole suite takes minutes a fault.
With `--again` all tests of these files are.
"""

import argparse
import ast
import hashlib
import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "mutants.json"
CACHE = HERE / ".cache" / "mutants"
# Programs that a fault does not touch are compiled once for all. Before JAX is loaded.
os.environ |= {
    "JAX_COMPILATION_CACHE_DIR": str(CACHE / "compiled"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

# What the package loads: every fault finds it loaded.
import beartype  # noqa: E402, F401
import diffrax  # noqa: E402, F401
import h5netcdf  # noqa: E402, F401
import hypothesis.strategies  # noqa: E402, F401
import matplotlib.pyplot  # noqa: E402, F401
import mpmath  # noqa: E402, F401
import optax  # noqa: E402, F401
import pydantic  # noqa: E402, F401
import pytest  # noqa: E402
import scipy.integrate  # noqa: E402, F401
import scipy.optimize  # noqa: E402, F401
import scipy.stats  # noqa: E402, F401
import xarray  # noqa: E402, F401
from _reach import Place, Reach  # noqa: E402
from filelock import FileLock  # noqa: E402

warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # nothing of JAX runs before the child

SECONDS = 60.0  # of the tests of one fault; no test is begun after these, and the fault is undecided
ENDLESS = 240  # seconds of one process, after which its fault is taken to make a loop endless
WAITING = 1800.0  # seconds by the clock, on a busy machine
MEMORY = 16 * 2**30
BROKEN = 70
ENOUGH = 2  # pytest's exit code when no further test is begun
SEED = 16

_NETWORKS = ("problem/test_problem.py", "contracts/test_oracles.py")
_LOOP = ("dynamics/test_loop.py", "dynamics/test_events.py", "dynamics/test_checkpoint.py")
_NEURONS = ("dynamics/test_overlaps.py", "dynamics/test_chain.py")
_CLUSTERED = ("problem/test_clusters.py", "oracle/test_clustered.py", "oracle/test_shifted.py")
_KERNELS = ("oracle/test_kernels.py", "oracle/test_kernels_edges.py", "oracle/test_gated.py")
_RUNS = ("trajectory/test_dataset.py", "trajectory/test_measures.py", "study/test_fetching.py")
TESTS = {
    "problem/activations": ("problem/test_activations.py", "contracts/test_activations.py"),
    "problem/atoms": ("problem/test_activations.py", "contracts/test_activations.py", "oracle/test_kernels.py"),
    "problem/clusters": _CLUSTERED,
    "problem/frame": ("problem/test_frame.py", "problem/test_problem.py"),
    "problem/hidden": ("contracts/test_oracles.py", "oracle/test_tied.py"),
    "problem/initial": ("contracts/test_starts.py", "problem/test_weak_recovery.py", "problem/test_mixture.py"),
    "problem/mixture": ("problem/test_mixture.py", "dynamics/test_mixture_sgd.py"),
    "problem/outputs": ("dynamics/test_router.py", "oracle/test_routing.py"),
    "problem/routers": ("problem/test_routers.py", "contracts/test_routers.py"),
    "problem/trees": _NETWORKS,
    "problem/units": ("problem/test_units.py", "oracle/test_step_size.py"),
    "problem": ("problem/test_problem.py", "problem/test_hermite.py", "test_identity.py"),
    "oracle/kernels/gated": ("oracle/test_gated.py", "oracle/test_mixture.py"),
    "oracle/kernels/shifted": ("oracle/test_shifted.py", "reference/test_reference.py"),
    "oracle/kernels": (*_KERNELS, "reference/test_reference.py"),
    "oracle/stable/linear_teacher": ("oracle/test_population.py", "reference/test_reference.py"),
    "oracle/stable": ("oracle/test_shared_kink.py", "reference/test_reference.py"),
    "oracle/compensated": ("oracle/test_population.py", "oracle/test_shared_kink.py"),
    "oracle/clustered": ("oracle/test_clustered.py", "oracle/test_step_size.py", *_NEURONS),
    "oracle": ("contracts/test_oracles.py", "reference/test_reference.py"),
    "dynamics/blocks": ("dynamics/test_blocks.py", "dynamics/test_spherical.py"),
    "dynamics/spherical": ("dynamics/test_spherical.py", "trajectory/test_spherical_verb.py"),
    "dynamics/streams": ("dynamics/test_streams.py", "dynamics/test_spherical.py"),
    "dynamics/router": ("dynamics/test_router.py", "analysis/test_readout.py"),
    "dynamics/neuron": _NEURONS,
    "dynamics/online": ("dynamics/test_online.py", "dynamics/test_mixture_sgd.py"),
    "dynamics/equivariance": ("dynamics/test_online.py",),
    "dynamics/random": ("dynamics/test_online.py", "dynamics/test_streams.py"),
    "dynamics/chebyshev": ("dynamics/test_chebyshev.py", "dynamics/test_stabilised.py"),
    "dynamics/stabilised": ("dynamics/test_stabilised.py", "contracts/test_dynamics.py"),
    "dynamics/heavy_ball": ("dynamics/test_heavy_ball.py", "contracts/test_dynamics.py"),
    "dynamics": (*_LOOP, "contracts/test_dynamics.py"),
    "trajectory/asked": ("test_identity.py", "study/test_fetching.py"),
    "trajectory/observables": ("trajectory/test_dataset.py", "dynamics/test_events.py", "oracle/test_orders.py"),
    "trajectory/findings": ("trajectory/test_measures.py", "study/test_sweep.py"),
    "trajectory": _RUNS,
    "store": ("study/test_store.py", "study/test_fetching.py", "study/test_resume.py"),
    "study/charts": ("study/test_charts.py",),
    "study/contours": ("study/test_charts.py",),
    "study/design": ("study/test_design.py", "study/test_sweep.py"),
    "study/measuring": ("study/test_measuring.py", "study/test_sweep.py"),
    "study": ("study/test_sweep.py", "study/test_resume.py"),
    "analysis/claims": ("analysis/test_claims.py", "papers/test_both_layers_claims.py"),
}
"""What is run for the modules whose path begins so, the first that fits; before these the module's own examples."""
PARTS = tuple(dict.fromkeys(name.split("/")[0] for name in TESTS))
ONLY = {"analysis": ("claims.py",)}
ELSEWHERE = ("study/cluster.py",)
"""Not judged here: it is tested on a real cluster of processes."""

# A place and a fault that is known, and why it may live.
WHY: dict[str, str] = {
    "tutelage/dynamics/chebyshev.py:227: 1 -> 2": "a number that is divided by and then not used",
    "tutelage/oracle/kernels/shifted.py:87: np.linspace(-_REACH, _REACH, _PANELS + 1) -> "
    "(np.linspace(_REACH, -_REACH, _PANELS + 1))": "they are sorted right after",
    "tutelage/oracle/kernels/series.py:112: not (self.s.kink_at_zero or self.t.kink_at_zero) -> False": (
        "a shortcut: what follows is multiplied by the two"
    ),
}


class Fault(NamedTuple):
    """A place in a file, what stands there and what is written in its stead."""

    module: str
    line: int
    column: int
    end: tuple[int, int]
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line}: {self.old} -> {self.new}"


# Faults of a module -------------------------------------------------------------------------------------------------

FLIPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Lt, ast.Gt: ast.LtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
DEAF = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)
"""What is said to users, and what is asserted for the reader only."""


def changed(node: ast.AST) -> ast.AST | None:
    """The node with a fault, to take its place."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            return ast.Compare(left, [FLIPS[type(op)]()], right)  # type: ignore[list-item]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in FLIPS:
            return ast.BinOp(left, FLIPS[type(op)](), right)  # type: ignore[arg-type]
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(FLIPS[type(op)](), values)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
        case ast.Constant(value=int() as value):
            return ast.Constant(value + 1)
        case ast.Constant(value=float() as value):
            return ast.Constant(2 * value if value else 0.5)
        case ast.IfExp(body=body, orelse=other):
            return ast.IfExp(ast.Constant(False), body, other)
        case ast.Call(func=func, args=[one, two, *rest], keywords=words):
            starred = any(isinstance(each, ast.Starred) for each in (one, two))
            return None if starred or ast.dump(one) == ast.dump(two) else ast.Call(func, [two, one, *rest], words)
    return None


def statements(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Conditions that are made false, and statements that are left out."""
    if isinstance(node, ast.If):
        yield node.test, "False"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield node, "pass"


def _typed(node: ast.AST) -> bool:
    """Whether a subscript is of a type, such as `Float[Array, "unit"]`."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id[:1].isupper()


def _between(lines: list[bytes], node: Any) -> str:
    """What stands there, as `ast.get_source_segment` says too, which splits the text anew for every node."""
    whole = lines[node.lineno - 1 : node.end_lineno]
    whole[-1] = whole[-1][: node.end_col_offset]
    whole[0] = whole[0][node.col_offset :]
    return b"".join(whole).decode()


def faults(path: Path) -> Iterator[Fault]:
    text = path.read_text(encoding="utf-8")
    module = path.relative_to(HERE).as_posix()

    lines = text.encode().splitlines(keepends=True)

    def fault(node: Any, new: str) -> Fault:
        old = _between(lines, node)
        return Fault(module, node.lineno, node.col_offset, (node.end_lineno, node.end_col_offset), old, new)

    def walk(node: ast.AST) -> Iterator[Fault]:
        for found, new in statements(node):
            yield fault(found, new)
        if (other := changed(node)) is not None:
            yield fault(node, ast.unparse(other) if isinstance(other, ast.Constant) else f"({ast.unparse(other)})")
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "slice" if _typed(node) else ""):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, DEAF):
                    yield from walk(child)

    yield from (each for each in walk(ast.parse(text)) if len(each.old) < 100 and "TYPE_CHECKING" not in each.old)


def sampled(parts: list[str], each: int) -> list[Fault]:
    """As many faults of every part, in a fixed order in which parts take turns."""
    rows = []
    for part in parts:
        files = sorted((HERE / "tutelage" / part).rglob("*.py"))
        files = [path for path in files if path.name in ONLY.get(part, (path.name,))]
        known = [fault for path in files if not path.as_posix().endswith(ELSEWHERE) for fault in faults(path)]
        rows.append(random.Random(f"{SEED} {part}").sample(known, min(each, len(known))))
    longest = max(map(len, rows), default=0)
    return [row[n] for n in range(longest) for row in rows if n < len(row)]


# Running tests ------------------------------------------------------------------------------------------------------


class Bench:
    """A copy of the project in which one fault at a time is tried.

    A process that has loaded the libraries, but nothing of the package, splits off a child for each fault: they take
    ten times as long to load as the package. What tests call is kept for the faults that follow.
    """

    def __init__(self, kept: Path, place: Path, everything: bool):
        self.kept, self.place, self.everything = kept, place, everything
        self.stamps = itertools.count(1)
        for part in ("tutelage", "tests", "benchmarks", "conftest.py", "pyproject.toml"):
            source = HERE / part
            if source.is_dir():
                shutil.copytree(source, place / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place / part)

    def tried(self, fault: Fault) -> dict[str, Any]:
        path, files = self.place / fault.module, tests_of(fault.module)
        right, before = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(written(right, fault), encoding="utf-8")
        # Python knows what it has compiled by second and size: no two faults may share both.
        os.utime(path, (stamp := next(self.stamps), stamp))
        try:
            code, said = self.pytest(files, enclosing(fault, right))
        finally:
            path.write_text(right, encoding="utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        by = next(iter(said["failed"]), None)
        if by is not None and "::" in by and not self.passes(by):
            return self.tried(fault)  # the test fails without the fault too, and is left out from now on
        self.keep(said["found"])
        if code is None:
            verdict = "timeout"
        elif by or code not in (0, ENOUGH):
            verdict = "killed"
        else:
            verdict = "undecided" if said["cut"] else "survived"
        return {"fault": fault.name, "verdict": verdict, "by": by, "tests": files, "ran": len(said["found"])}

    def passes(self, test: str) -> bool:
        """Whether a test passes without a fault: some count compilations, of which a copy has fewer. Asked once."""
        file = test.partition("::")[0]
        if "passes" not in self.known(file).get(test, {}):
            code, said = self.pytest([test], None)
            about = said["found"].get(test, {"seconds": 0.0, "calls": []})
            self.keep({test: about | {"passes": code == 0}})
        return bool(self.known(file)[test]["passes"])

    def pytest(self, files: list[str], place: Place | None) -> tuple[int | None, dict[str, Any]]:
        """The exit code, None if it took too long, and what was seen."""
        known = {test: about for file in files for test, about in self.known(file.partition("::")[0]).items()}
        said = self.place / "said.json"
        said.write_text(json.dumps({"failed": [], "found": {}, "cut": False}))
        pid = os.fork()
        if pid == 0:
            try:
                _child(self.place, files, Reach(known, place, SECONDS, self.everything), said)
            except BaseException:
                traceback.print_exc()
            os._exit(BROKEN)  # not a step further in a copy of the worker
        code = _waited(pid)
        assert code != BROKEN, said.with_suffix(".txt").read_text()
        return code, json.loads(said.read_text())

    def known(self, file: str) -> dict[str, Any]:
        path = self._about(file)
        return json.loads(path.read_text()) if path.exists() else {}

    def keep(self, found: dict[str, dict[str, Any]]) -> None:
        for file in {test.partition("::")[0] for test in found}:
            path = self._about(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{path}.lock"):
                known = self.known(file)
                for test, about in found.items():
                    if test.startswith(f"{file}::"):
                        old = known.get(test, {"calls": []})
                        calls = {tuple(call) for call in (*old["calls"], *about["calls"])}
                        known[test] = old | about | {"calls": sorted(calls)}
                path.with_suffix(".part").write_text(json.dumps(known))
                path.with_suffix(".part").replace(path)

    def _about(self, file: str) -> Path:
        return self.kept / f"{file}.json"


def _child(place: Path, files: list[str], reach: Reach, said: Path) -> None:
    """The tests of a copy, in a process of their own."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (ENDLESS, ENDLESS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(place)
    os.environ["PYTHONPATH"] = str(place)
    sys.path[:] = [str(place), *(folder for folder in sys.path if Path(folder) not in (HERE, HERE / "benchmarks"))]
    output = os.open(said.with_suffix(".txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    broken = [f"--deselect={name}" for name, about in reach.known.items() if not about.get("passes", True)]
    words = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=no"]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of its own plugins, which are loaded already
    code = pytest.main([*words, *broken, *files], plugins=[reach])
    said.write_text(json.dumps({"failed": reach.failed, "found": reach.found, "cut": reach.cut}))
    os._exit(int(code))


def _waited(pid: int) -> int | None:
    """How a child ended; None if it used all its time, or waits for ever."""
    until = time.monotonic() + WAITING
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.05)
    late = ended[0] == 0
    try:
        os.killpg(pid, signal.SIGKILL)  # and whoever it started
    except ProcessLookupError:
        pass
    if late:
        os.waitpid(pid, 0)
        return None
    code = os.waitstatus_to_exitcode(ended[1])
    return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code


def enclosing(fault: Fault, text: str) -> Place:
    """The innermost function that holds the fault; for one outside of all, all functions of the module."""
    inside = Place(fault.module, "", 0, 0)
    for node in ast.walk(ast.parse(text)):  # from the outside in
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= fault.line <= (node.end_lineno or 0):
            first = min(each.lineno for each in (node, *node.decorator_list))
            inside = Place(fault.module, node.name, first, node.body[0].lineno)
    return inside


def tests_of(module: str) -> list[str]:
    """The module itself, for its examples, and the tests of it."""
    inside = module.removeprefix("tutelage/")
    chosen = next(files for name, files in TESTS.items() if inside.startswith(name))
    return [module, *(f"tests/{file}" for file in chosen)]


def written(text: str, fault: Fault) -> str:
    """The module with the fault in it. Columns are of bytes."""
    lines = text.encode().splitlines(keepends=True)
    first, last = fault.line - 1, fault.end[0] - 1
    joined = lines[first][: fault.column] + fault.new.encode() + lines[last][fault.end[1] :]
    return b"".join([*lines[:first], joined, *lines[last + 1 :]]).decode()


_bench: Bench
"""Of a worker process."""


def _begin(folder: Path, everything: bool) -> None:
    global _bench
    _bench = Bench(kept_in(), folder / str(os.getpid()), everything)


def _try(fault: Fault, until: float) -> dict[str, Any] | None:
    return _bench.tried(fault) if time.monotonic() < until else None


def kept_in() -> Path:
    """Where is kept what tests call: of this text of the package only."""
    sources = (path.read_bytes() for path in sorted((HERE / "tutelage").rglob("*.py")))
    return CACHE / hashlib.sha256(b"".join(sources)).hexdigest()[:12]


def last_time() -> tuple[float, dict[str, dict[str, Any]]]:
    """How many minutes it took, and what became of each fault."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [{"verdict": "survived", **row} for row in found["survivors"]]
    rows += [{"fault": name, "verdict": verdict} for verdict in OPEN for name in found.get(f"{verdict}s", ())]
    rows += [{"fault": name, "verdict": "killed", "by": by} for name, by in found["killed_by"].items()]
    return found["minutes"], {row["fault"]: row for row in rows}


OPEN = ("timeout", "undecided")
CHOSEN: dict[str, Callable[[dict[str, Any] | None], bool]] = {
    "again": lambda row: row is not None and row["verdict"] == "survived",
    "more": lambda row: row is None or row["verdict"] == "undecided",
}


def main(parts: list[str], minutes: float, each: int, way: str | None, workers: int) -> int:
    wanted, last, before = sampled(parts, each), {}, 0.0
    if way:
        before, last = last_time()
        wanted = [
            fault for fault in sampled(parts, 10**6 if way == "again" else each) if CHOSEN[way](last.get(fault.name))
        ]
    begun = time.monotonic()
    found: list[dict[str, Any]] = []
    fork = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(workers, fork, _begin, (Path(folder), way == "again")) as pool,
    ):
        for done in as_completed([pool.submit(_try, fault, begun + 60 * minutes) for fault in wanted]):
            if (row := done.result()) is not None:
                found.append(row)
                print(f"{row['verdict']}: {row['fault']} ({row['ran']} tests, {row['by']})", flush=True)
    last |= {row["fault"]: row for row in found}
    told(list(last.values()), len(PARTS) * each, before + (time.monotonic() - begun) / 60)
    return 0


def told(found: list[dict[str, Any]], wanted: int, minutes: float) -> None:
    from _measure import write

    survivors = [row for row in found if row["verdict"] == "survived"]
    parts: dict[str, Counter[str]] = {}
    for row in found:
        parts.setdefault(row["fault"].split("/")[1], Counter())[row["verdict"]] += 1
    write(
        "mutants",
        {
            **{"sampled": wanted, "tried": len(found), "minutes": round(minutes, 1)},
            "verdicts": dict(Counter(row["verdict"] for row in found)),
            "parts": {part: dict(counts) for part, counts in sorted(parts.items())},
            "survivors": [
                {"fault": row["fault"], "tests": row["tests"], "why": WHY.get(row["fault"])}
                for row in sorted(survivors, key=lambda row: row["fault"])
            ],
            **{f"{verdict}s": sorted(row["fault"] for row in found if row["verdict"] == verdict) for verdict in OPEN},
            "killed_by": dict(sorted((row["fault"], row["by"]) for row in found if row["verdict"] == "killed")),
        },
    )


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Faults that are planted, and the tests that see them.")
    asked.add_argument("--part", choices=PARTS, action="append")
    asked.add_argument("--minutes", type=float, default=15.0, help="no fault is begun after these")
    asked.add_argument("--each", type=int, default=30, help="faults of each part")
    asked.add_argument("--again", dest="way", action="store_const", const="again", help="those that survived last time")
    asked.add_argument("--more", dest="way", action="store_const", const="more", help="those that were not tried yet")
    asked.add_argument("--workers", type=int, default=2)
    given = asked.parse_args()
    sys.exit(main(given.part or list(PARTS), given.minutes, given.each, given.way, given.workers))
