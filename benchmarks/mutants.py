"""Small faults planted in the code one by one, and whether any test sees them.

    python benchmarks/mutants.py                    a fixed sample of faults, bounded in time
    python benchmarks/mutants.py --part oracle      of one part only
    python benchmarks/mutants.py --again            those that survived last time, to see whether a new test kills them

The package and its tests are copied, and a fault is written into the copy: a comparison turned round, a sum made a
difference, a number changed, a condition made false, a statement left out, two arguments swapped. Then the tests of the
module are run, its own first, until one fails. What passes all of them has survived: a test is missing, or the fault
makes no difference; `WHY` says which, for those that were looked at.

Only the tests named beside a survivor were run for it, not all there are: a part's whole suite takes minutes a fault.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "mutants.json"
WORKERS = 2
LIMIT = 900.0  # seconds for the tests of one fault, on a busy machine
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


def faults(path: Path) -> Iterator[Fault]:
    text = path.read_text(encoding="utf-8")
    module = path.relative_to(HERE).as_posix()

    def fault(node: Any, new: str) -> Fault:
        old = ast.get_source_segment(text, node) or ""
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
    """Copies of the project, in each of which one fault at a time is tried."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.right: dict[str, Future[list[str]]] = {}
        self.lock = threading.Lock()

    def copy(self, name: str) -> Path:
        place = self.folder / name
        for part in ("tutelage", "tests", "benchmarks", "conftest.py", "pyproject.toml"):
            source = HERE / part
            if source.is_dir():
                shutil.copytree(source, place / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, place / part)
        words = [sys.executable, "-c", "import tutelage; print(tutelage.__file__)"]
        seen = subprocess.run(words, cwd=place, env=self.environment(place), capture_output=True, text=True).stdout
        assert Path(seen.strip()).is_relative_to(place), f"tests of {place} would import {seen}"
        return place

    def environment(self, place: Path) -> dict[str, str]:
        """Programs that a fault does not touch are compiled once for all."""
        cache = {
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        return os.environ | cache | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}

    def pytest(self, place: Path, files: list[str], *more: str) -> tuple[int | None, list[str]]:
        """The exit code, None if it took too long, and the tests that failed."""
        words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
        begun = subprocess.Popen(
            [*words, *more, *files], cwd=place, env=self.environment(place), start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = begun.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(begun.pid, signal.SIGKILL)
            begun.communicate()
            return None, []
        lines = [line.split() for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return begun.returncode, [line[1] for line in lines]

    def failing(self, file: str, place: Path) -> list[str]:
        """Tests that fail without a fault, such as those that count compilations, of which a copy has fewer.

        Asked once for each file, by whoever comes first; it also compiles what all faults share.
        """
        with self.lock:
            first = file not in self.right
            if first:
                self.right[file] = Future()
        if first:
            self.right[file].set_result(self.pytest(place, [file])[1])
        return self.right[file].result()

    def tried(self, fault: Fault, place: Path) -> dict[str, Any]:
        path, files = place / fault.module, tests_of(fault.module)
        broken = [name for file in files for name in self.failing(file, place)]
        right = path.read_text(encoding="utf-8")
        path.write_text(written(right, fault), encoding="utf-8")
        try:
            code, by = self.pytest(place, files, "-x", *(f"--deselect={name}" for name in broken))
        finally:
            path.write_text(right, encoding="utf-8")
        verdict = "survived" if code == 0 else "timeout" if code is None else "killed"
        return {"fault": fault.name, "verdict": verdict, "by": by[0] if by else None, "tests": files}


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


def main(parts: list[str], minutes: float, each: int, again: bool) -> int:
    wanted = sampled(parts, each)
    if again:
        last = {row["fault"] for row in json.loads(RESULTS.read_text(encoding="utf-8"))["survivors"]}
        wanted = [fault for fault in sampled(parts, 10**6) if fault.name in last]
    begun, queue = time.monotonic(), iter(wanted)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        bench = Bench(Path(folder))
        places = [bench.copy(f"copy{number}") for number in range(WORKERS)]

        def work(place: Path) -> None:
            for fault in queue:
                if time.monotonic() - begun > 60 * minutes:
                    return
                found.append(bench.tried(fault, place))
                print(f"{found[-1]['verdict']}: {found[-1]['fault']}", flush=True)

        list(pool.map(work, places))
    told(found, len(wanted), (time.monotonic() - begun) / 60)
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
            "timeouts": sorted(row["fault"] for row in found if row["verdict"] == "timeout"),
            "killed_by": dict(sorted((row["fault"], row["by"]) for row in found if row["verdict"] == "killed")),
        },
    )


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Faults that are planted, and the tests that see them.")
    asked.add_argument("--part", choices=PARTS, action="append")
    asked.add_argument("--minutes", type=float, default=15.0, help="no fault is begun after these")
    asked.add_argument("--each", type=int, default=30, help="faults of each part")
    asked.add_argument("--again", action="store_true", help="those that survived last time")
    given = asked.parse_args()
    sys.exit(main(given.part or list(PARTS), given.minutes, given.each, given.again))
