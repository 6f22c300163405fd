"""Mistakes by the thousand: whatever is asked, in whatever way, it works or is refused with one sentence.

Cases come from a grammar of mistakes in four places: the command line, settings of papers, files of a store, and calls
from Python. A case is made from its number alone, so that `--only NUMBER` shows one again. Nothing is trained, except
in one case of five hundred: a run that would begin is counted as such ("begun"), after everything it needs was made.

    python benchmarks/fuzz.py --cases 10000
"""

import argparse
import contextlib
import io
import json
import math
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import tutelage as tt
from tutelage import papers
from tutelage._files import CHECKSUM, write_record
from tutelage.present import reproduce
from tutelage.present.cli import app
from tutelage.problem.clusters import antipodal
from tutelage.store import fetching
from tutelage.store.store import Store
from tutelage.study import workers
from tutelage.study.study import Study
from tutelage.trajectory import running
from tutelage.trajectory.asked import Asked
from tutelage.trajectory.running import Training

CASES, SEED = 10_000, 0
HOME = Path.cwd()
LIMIT = 60  # seconds of a case
TRAINED = 501  # one case of so many is computed, of every kind in turn

Rng = np.random.Generator


class Begun(BaseException):
    """All that a run needs is there, and training would begin."""


class TooLong(BaseException):
    """A case took longer than its limit."""


@dataclass
class Case:
    """One mistake, or several: what is done, in words, and the doing. `outcome` is for what it returns."""

    kind: str
    words: str
    act: Callable[[], Any]


@dataclass
class Bench:
    """Where cases are tried: a store with a run and a sweep, never changed, and a place for copies of it."""

    made: Path
    place: Path
    number: int = 0
    copies: Iterator[Path] = field(init=False)

    def copy(self) -> Path:
        self.number += 1
        target = self.place / str(self.number)
        shutil.copytree(self.made, target, symlinks=True)
        return target


# ---- values that nobody expects

TEXTS = (
    *("", " ", "1" * 400, "\u202e", "[1, 2]", "[[1], [2]]", '{"a": 1}', "; ls"),
    *"0 -1 1 3 2.5 -0 1e3 1e308 1e-320 1e400 nan inf -inf true none 99999999999999999999 1e20 a é [] {} [ 1,2".split(),
    *", .. 1..2:3 1..1e9:1000000000 5..1:2 0..1:5 0..1:5:lin a..b:3 1..2:0 -- * ../.. / /dev/null /dev/full".split(),
    *"/nowhere/x . ~ = == a=b=c None ' %s {0}".split(),
)


def broken(*args: Any) -> float:
    return 1 / 0


def texts(*args: Any) -> str:
    return "a"


def nothing(*args: Any) -> float:
    return math.nan


OBJECTS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 3, -1, 2.5, -0.0, 1e308, 1e-320, np.nan, np.inf, -np.inf, 10**20, 10**400, 1 + 2j),
    *(
        "",
        "a",
        "12",
        "é",
        b"x",
        (),
        [],
        {},
        set(),
        [1],
        (1, 2),
        [1.5],
        [np.nan],
        ["a"],
        [None],
        [[1.0]],
        [[1.0], [2.0, 3.0]],
    ),
    *(
        {"a": 1},
        {"first": -1},
        object(),
        len,
        broken,
        texts,
        nothing,
        tt,
        Path("x"),
    ),
    *(np.int64(3), np.float64(0.5), np.float32(0.5), np.bool_(True), np.array(3), np.array([]), np.zeros((2, 2))),
    *(np.array(["a"]), np.array([None]), np.zeros((0, 3)), np.full((2, 2), np.nan), range(3), iter([1]), Ellipsis, int),
)


def some(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def misspelt(rng: Rng, word: str) -> str:
    """A letter left out, doubled, or another."""
    at = int(rng.integers(max(len(word), 1)))
    return some(
        rng,
        (word[:at] + word[at + 1 :], word[:at] + word[at : at + 1] * 2 + word[at + 1 :], word[:at] + "x", word.upper()),
    )


# ---- the command line


def command(rng: Rng, store: Path) -> list[str]:
    """A command that is right, or was."""
    paper = papers.get(some(rng, papers.names()))
    names = list(paper.settings.model_fields)
    file = str(store.parent / f"out{rng.integers(10**9)}")
    measures = [measure.name for measure in paper.measures] + ["final_loss", f"claim:{paper.claims[0].id}"]
    sets = ["--set", f"{some(rng, names)}={some(rng, TEXTS)}"] if rng.random() < 0.6 else []
    seeds = ["--seeds", some(rng, ("1", "2", "2"))]
    kept = ["--store", str(store)]
    return {
        "run": [
            "run",
            paper.name,
            *sets,
            *seeds,
            *kept,
            *some(
                rng,
                (
                    [],
                    ["--json"],
                    ["--out", file + ".nc"],
                    ["--figure", file + ".png"],
                    ["--dynamics", some(rng, paper.dynamics)],
                    ["--fresh"],
                    ["--certify"],
                    ["--preset", some(rng, (*paper.presets, "x"))],
                ),
            ),
        ],
        "sweep": [
            "sweep",
            paper.name,
            "--over",
            f"{some(rng, names)}={some(rng, TEXTS)}",
            "--measure",
            some(rng, measures),
            *sets,
            *seeds,
            "--processes",
            "1",
            *kept,
            *some(rng, ([], ["--fit"], ["--json"], ["--design", "sobol", "--points", some(rng, ("4", "1000000000"))])),
        ],
        "check": ["check", paper.name, "--only", some(rng, paper.claims).id, *sets, *seeds, *kept],
        "reproduce": ["reproduce", f"{paper.name}/{some(rng, paper.figures).id}", *seeds, "--out", file, *kept],
        "diagram": ["diagram", paper.name, some(rng, paper.diagrams).id, "--processes", "1", *kept],
        "show": [
            "show",
            some(rng, ("last", "0", "f", file)),
            *kept,
            *some(rng, ([], ["--json"], ["--figure", file + ".png"])),
        ],
        "runs": [
            "runs",
            *kept,
            "--where",
            some(rng, ("dim>1", "state=finished", "loss<1", *TEXTS)),
            *some(rng, ([], ["--json"])),
        ],
        "export": ["export", "last", "--to", some(rng, ("csv", "parquet", "netcdf", "x")), "--out", file, *kept],
        "rm": ["rm", some(rng, ("0", "f", "x", "")), "--yes", *kept],
        "papers": ["papers", paper.name],
        "version": ["version"],
    }[
        some(
            rng,
            (
                "run",
                "run",
                "run",
                "sweep",
                "sweep",
                "check",
                "reproduce",
                "diagram",
                "show",
                "runs",
                "export",
                "rm",
                "papers",
                "version",
            ),
        )
    ]


def mistaken(rng: Rng, words: list[str]) -> list[str]:
    """The same with a mistake: another value, one word less, one more, one misspelt or twice, or two swapped."""
    if len(words) < 2:
        return words
    words, at = list(words), int(rng.integers(1, len(words)))
    if words[max(at - 1, 0)] == "--store" or words[at] == "--store":
        return words  # cases stay in their own place
    what = some(rng, ("value", "value", "value", "less", "more", "misspelt", "twice", "swap"))
    if what == "value":
        words[at] = words[at].partition("=")[0] + "=" + some(rng, TEXTS) if "=" in words[at] else some(rng, TEXTS)
    elif what == "less":
        del words[at]
    elif what == "more":
        words.insert(at, some(rng, ("--nope", "-x", "--seeds", "--json", *TEXTS)))
    elif what == "misspelt":
        words[at] = misspelt(rng, words[at])
    elif what == "twice":
        words.insert(at, words[at])
    else:
        other = int(rng.integers(len(words)))
        if "--store" not in (words[other], words[max(other - 1, 0)]):
            words[at], words[other] = words[other], words[at]
    return words


def cli_case(rng: Rng, bench: Bench) -> Case:
    store = bench.made
    words = command(rng, store)
    if words[0] == "rm" or "--check" in words:
        store = bench.copy()
        words = [str(store) if word == str(bench.made) else word for word in words]
    for _ in range(int(rng.integers(0, 3))):
        words = mistaken(rng, words)

    def act() -> Any:
        before = listing(store)
        result = invoked(words)
        if result.exit_code == 2 and listing(store) != before:
            raise AssertionError(f"refused, but left {sorted(listing(store) - before)} in the store")
        return result

    return Case("command line", " ".join(["tutelage", *map(repr_word, words)]), act)


def repr_word(word: str) -> str:
    return word if word and word.isalnum() else repr(word)


def invoked(words: list[str]) -> Any:
    return CliRunner().invoke(app, words, catch_exceptions=True)


def listing(store: Path) -> set[str]:
    return {path.name for path in store.iterdir() if not path.name.startswith(".")}


# ---- settings


def settings_case(rng: Rng, bench: Bench) -> Case:
    paper = papers.get(some(rng, papers.names()))
    names = list(paper.settings.model_fields)
    values = {some(rng, names): some(rng, OBJECTS) for _ in range(int(rng.integers(1, 4)))}
    dynamics = some(rng, (None, *paper.dynamics))

    def act() -> Asked:
        asked = paper.recipe.asked(paper.configure(values), dynamics=dynamics, seeds=2)
        assert len(asked.identity) == 16
        return asked

    return Case("settings", f"{paper.name}({values!r}), {dynamics}", act)


# ---- files


def byte_damage(rng: Rng, path: Path) -> None:
    data = bytearray(path.read_bytes())
    what = some(rng, ("flip", "flip", "cut", "insert", "zeros", "empty", "swap"))
    at = int(rng.integers(max(len(data), 1)))
    if what == "flip" and data:
        data[at] ^= 1 << int(rng.integers(8))
    elif what == "cut":
        del data[at:]
    elif what == "insert":
        data[at:at] = rng.bytes(int(rng.integers(1, 50)))
    elif what == "zeros":
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif what == "empty":
        data.clear()
    else:
        data = bytearray(rng.bytes(len(data)))
    path.write_bytes(data)


def json_damage(rng: Rng, path: Path) -> None:
    """Another value somewhere in a record, with its right checksum: as if somebody had meant it."""
    record = json.loads(path.read_text())
    record.pop(CHECKSUM, None)
    node, key = record, some(rng, list(record) or [""])
    while isinstance(node.get(key) if isinstance(node, dict) else None, dict) and node[key] and rng.random() < 0.7:
        node = node[key]
        key = some(rng, list(node))
    node[key] = some(rng, (None, True, -1, 1e308, "", "x", [], {}, [None], {"a": {}}, "1" * 100, [[[]]]))
    if rng.random() < 0.3:
        del node[key]
    write_record(record, path)


def kind_damage(rng: Rng, path: Path) -> None:
    path.unlink()
    what = some(rng, ("pipe", "device", "folder", "link", "gone", "loop"))
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "folder":
        path.mkdir()
    elif what == "link":
        path.symlink_to("nowhere")
    elif what == "loop":
        path.symlink_to(path.name)


def file_case(rng: Rng, bench: Bench) -> Case:
    store = bench.copy()
    files = sorted(path for path in store.rglob("*") if path.is_file() and ".locks" not in path.parts)
    path = some(rng, files)
    damage = some(rng, (byte_damage, byte_damage, json_damage if path.suffix == ".json" else byte_damage, kind_damage))
    words = some(
        rng,
        (
            ["runs"],
            ["runs", "--json"],
            ["show", "last"],
            ["show", path.parent.name[:6]],
            ["export", "last", "--out", str(store / "x.csv")],
            ["runs", "--where", "dim>1"],
            RUN,
            RUN,
            SWEEP,
            SWEEP,
            ["rm", "last", "--yes"],
        ),
    )

    def act() -> Any:
        damage(rng, path)
        return invoked([*words, "--store", str(store)])

    return Case("files", f"{damage.__name__} of {path.relative_to(store)}, then {' '.join(words)}", act)


RUN = ["run", "both_layers", "--set", "steps=20", "--set", "width=1", "--seeds", "2"]
SWEEP = [
    "sweep",
    "both_layers",
    "--set",
    "steps=20",
    "--over",
    "width=1,2",
    "--measure",
    "final_loss",
    "--seeds",
    "2",
    "--processes",
    "1",
]


# ---- calls from Python


def network(**changes: Any) -> tt.TwoLayer:
    return tt.TwoLayer(changes.pop("activation", "relu"), **{"first": tt.GaussianRows(0.1), "width": 2} | changes)


def problem(**changes: Any) -> tt.Problem:
    teacher = tt.TwoLayer("relu", first=np.eye(2, 4))
    return tt.Problem(**{"inputs": tt.Gaussian(10), "teacher": teacher, "student": network()} | changes)


def clustered(**changes: Any) -> tt.Clustered:
    return tt.Clustered(**{"inputs": antipodal(20, 3.0), "teacher": tasks()} | changes)


def tasks(**changes: Any) -> tt.Tasks:
    whole = {"local": [{4: 1.0}, {4: -1.0}], "shared": {4: 1.0}, "interference": (1.0, -1.0)}
    return tt.Tasks(**whole | changes)


def one_more(snapshot: Any) -> Any:
    return snapshot.loss + 1


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Gaussian": (tt.Gaussian, {"dim": 10}),
    "TwoLayer": (
        network,
        {
            "activation": "relu",
            "first": np.eye(2, 4),
            "second": "ones",
            "width": 2,
            "outputs": 1,
            "trains": ("first",),
            "tied": False,
        },
    ),
    "Mixture": (
        tt.Mixture,
        {
            "gate": "sigmoid",
            "degree": 3,
            "start": tt.MixtureRows("iid"),
            "width": 3,
            "second": "ones",
            "outputs": 1,
            "trains": ("routers",),
        },
    ),
    "Problem": (
        problem,
        {"inputs": tt.Gaussian(10), "teacher": network(first=np.eye(2, 4)), "student": network(), "noise": 0.0},
    ),
    "Problem.begin": (lambda seed, **changes: problem(**changes).begin(seed), {"seed": 0, "student": network()}),
    "activation": (tt.activation, {"name": "relu"}),
    "kernel": (tt.kernel, {"one": "relu", "other": "erf"}),
    "GaussianRows": (
        lambda **c: problem(student=network(first=tt.GaussianRows(**c))).begin(0),
        {"std": 0.1, "mean": ()},
    ),
    "SphereRows": (lambda **c: problem(student=network(first=tt.SphereRows(**c))).begin(0), {"norm": 0.1}),
    "HalfSphereRows": (
        lambda **c: problem(student=network(first=tt.HalfSphereRows(**c))).begin(0),
        {"toward": ((1.0,),), "norm": 0.1},
    ),
    "OrthonormalRows": (lambda **c: problem(student=network(first=tt.OrthonormalRows(**c))).begin(0), {"norm": 0.1}),
    "MixtureRows": (tt.MixtureRows, {"kind": "iid"}),
    "GaussianEntries": (lambda **c: problem(student=network(second=tt.GaussianEntries(**c))).begin(0), {"std": 0.1}),
    "ChiEntries": (
        lambda **c: problem(student=network(second=tt.ChiEntries(**c))).begin(0),
        {"scale": 0.1, "degrees": 3, "signs": (1, -1)},
    ),
    "Descent": (
        tt.Descent,
        {"step": 0.1, "steps": 3, "data": None, "schedule": None, "truncation": None, "rates": None},
    ),
    "HeavyBall": (tt.HeavyBall, {"step": 0.1, "steps": 3, "momentum": 0.5}),
    "Flow": (tt.Flow, {"until": 1.0, "rtol": 1e-6, "solver": "auto", "data": None, "rates": None}),
    "Sgd": (
        tt.Sgd,
        {"steps": 3, "batch": 2, "step": 0.1, "law": "exact", "dtype": "float64", "schedule": None, "rates": None},
    ),
    "Spherical": (tt.Spherical, {"samples": 10, "step": 1e-3, "batch": 1, "precision": "float64", "phase": 1}),
    "NeuronFlow": (tt.NeuronFlow, {"until": 1.0, "rtol": 1e-6, "threshold": 0.5}),
    "NeuronSgd": (tt.NeuronSgd, {"samples": 10, "step": 1e-3, "levels": (0.5,), "until": ()}),
    "RouterSteps": (tt.RouterSteps, {"samples": 10, "steps": 1, "step": 1.0, "balance": 0.0}),
    "Truncation": (tt.Truncation, {"caps": (2.0, 3.0), "ends": (5,)}),
    "Record": (
        tt.Record,
        {
            "at": 5,
            "first": 0.1,
            "observables": ("loss",),
            "own": {"mine": one_more},
            "weights": True,
            "events": (),
            "crossings": (),
        },
    ),
    "Stop": (tt.Stop, {"loss": 0.1, "gradient": 0.1, "steps": 5}),
    "Event": (tt.Event, {"name": "here", "when": one_more, "stop": False}),
    "below": (tt.below, {"level": 0.1}),
    "Crossings": (tt.Crossings, {"name": "passed", "values": one_more, "dims": (), "long_name": "passed"}),
    "Observable": (tt.Observable, {"name": "mine", "measure": one_more, "dims": (), "units": "1"}),
    "Stage": (tt.Stage, {"name": "one", "dynamics": tt.Flow(1.0), "enter": None, "record": None, "stop": None}),
    "Measure": (tt.Measure, {"name": "mine", "long_name": "mine", "of": lambda run: run.last("loss")}),
    "Clusters": (tt.Clusters, {"dim": 20, "means": np.eye(2, 4), "radius": 3.0}),
    "Tasks": (tasks, {"local": [{4: 1.0}, {4: -1.0}], "shared": {4: 1.0}, "interference": (1.0, -1.0)}),
    "Clustered": (
        clustered,
        {"inputs": antipodal(20, 3.0), "teacher": tasks(), "noise": 0.0, "student": tt.Experts(1, 4)},
    ),
    "Experts": (tt.Experts, {"count": 2, "width": 4}),
    "Top1": (tt.Top1, {"noise": 0.0}),
    "TopK": (tt.TopK, {"count": 2}),
    "Threshold": (tt.Threshold, {"level": 0.0}),
    "Store": (lambda root: tt.Store(root).entries(), {"root": "nowhere"}),
    "load": (tt.load, {"path": "nowhere.nc"}),
    "descend": (
        tt.descend,
        {
            "problem": problem(),
            "step": 0.1,
            "steps": 3,
            "data": None,
            "schedule": None,
            "rates": None,
            "seeds": 2,
            "record": 3,
            "stop": None,
            "certify": False,
            "checkpoint": None,
            "progress": None,
        },
    ),
    "flow": (
        tt.flow,
        {
            "problem": problem(),
            "until": 1.0,
            "rtol": 1e-6,
            "solver": "auto",
            "data": None,
            "seeds": 2,
            "record": 3,
            "stop": None,
            "store": None,
        },
    ),
    "sgd": (
        tt.sgd,
        {
            "problem": problem(),
            "steps": 3,
            "batch": 2,
            "step": 0.1,
            "optimiser": None,
            "law": "exact",
            "dtype": "float64",
            "seeds": 2,
            "record": 3,
        },
    ),
    "spherical": (
        tt.spherical,
        {
            "problem": clustered(),
            "experts": tt.Experts(1, 4),
            "samples": 10,
            "step": 1e-3,
            "batch": 1,
            "loss": "correlation",
            "precision": "float64",
            "seeds": 2,
            "record": 3,
        },
    ),
    "run": (
        tt.run,
        {"problem": problem(), "dynamics": tt.Descent(0.1, 3), "seeds": 2, "record": None, "stop": None, "start": None},
    ),
    "sweep": (
        tt.sweep,
        {
            "experiment": "both_layers",
            "over": {"width": [1]},
            "measure": "final_loss",
            "seeds": 2,
            "dynamics": None,
            "design": "grid",
            "points": None,
            "design_seed": 0,
            "processes": 1,
            "block": 2,
        },
    ),
    "reproduce": (reproduce.reproduce, {"targets": ("both_layers/fig3",), "size": "quick", "seeds": 2}),
}


def call_case(rng: Rng, bench: Bench) -> Case:
    name = some(rng, list(CALLS))
    function, right = CALLS[name]
    changes = {some(rng, list(right)): some(rng, OBJECTS) for _ in range(int(rng.integers(1, 3)))}
    given = right | changes
    if name == "sweep":
        given["store"] = bench.made
    if name == "reproduce":
        given |= {"out": bench.place / "report", "store": bench.made}
    return Case(
        "Python",
        f"{name}({', '.join(f'{key}={value!r}' for key, value in changes.items())})",
        lambda: positional(name, function, given),
    )


def positional(name: str, function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Some take their arguments by place only."""
    if name in ("Gaussian", "activation", "kernel", "load", "MixtureRows", "Top1", "TopK", "Threshold", "below"):
        return function(*given.values())
    return function(**given)


# ---- trying them

KINDS = (cli_case, settings_case, file_case, call_case)


def case(number: int, seed: int, bench: Bench) -> Case:
    rng = np.random.default_rng([seed, number])
    return KINDS[number % len(KINDS)](rng, bench)


def outcome(tried: Case) -> str:
    """What became of it: "refused" with a sentence, "begun" or "works"; anything else is what went wrong."""
    try:
        with limited():
            found = tried.act()
    except Begun:
        return "begun"
    except tt.BadInput as error:
        return sentence(str(error))
    except TooLong:
        return f"took longer than {LIMIT} s"
    except ZeroDivisionError as error:  # of a function of the user's own: it comes through as it is
        return "refused" if traceback.extract_tb(error.__traceback__)[-1].name == "broken" else told(error)
    except BaseException as error:
        return told(error)
    return commanded(found) if hasattr(found, "exit_code") else "works"


def commanded(result: Any) -> str:
    error = result.exception
    if isinstance(error, Begun):
        return "begun"
    if isinstance(error, TooLong):
        return f"took longer than {LIMIT} s"
    if error is not None and not isinstance(error, SystemExit):
        return told(error)
    if result.exit_code == 2:
        said = result.stderr.strip()
        return "refused" if said and "Traceback" not in said else f"exit code 2 with {said[:200]!r}"
    return "works" if result.exit_code in (0, 1) else f"exit code {result.exit_code}"


def sentence(text: str) -> str:
    return "refused" if text.endswith((".", "?")) and "\n" not in text else f"no sentence: {text!r}"


def told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if "tutelage" in frame.filename][-3:]
    return f"{type(error).__name__}: {str(error)[:200]!r} at {' < '.join(reversed(ours))}"


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def nothing_trained() -> Iterator[None]:
    """A run is made ready and goes no further; a claim or a figure is not begun."""

    def ready(asked: Asked, **_: Any) -> Any:
        Training(asked)
        raise Begun

    def begun(*_: Any, **__: Any) -> Any:
        raise Begun

    places = [(fetching, "perform", ready), (running, "perform", ready), (workers, "compute", begun)]
    places += [(Study, "check", begun), (reproduce, "_make", begun)]
    before = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, stand_in in places:
        setattr(owner, name, stand_in)
    try:
        yield
    finally:
        for (owner, name, _), real in zip(places, before, strict=True):
            setattr(owner, name, real)


def fuzz(numbers: range, place: Path, seed: int = SEED, train: bool = False, tell: Any = None) -> dict[str, Any]:
    """Try the cases: how many there were of each kind and outcome, and those that went wrong."""
    bench = prepared(place)
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    for number in numbers:
        tried = case(number, seed, bench)
        quiet = contextlib.nullcontext() if train and number % TRAINED == 0 else nothing_trained()
        with quiet, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = outcome(tried)
        right = found in ("refused", "begun", "works")
        counts[tried.kind, found if right else "wrong"] += 1
        if not right:
            wrong.append({"number": number, "kind": tried.kind, "case": tried.words, "outcome": found})
        if tell and (number % 500 == 499 or not right):
            tell(number, tried, found)
        for left in bench.place.iterdir():
            if left.name.isdigit():
                shutil.rmtree(left, ignore_errors=True)
    table: dict[str, dict[str, int]] = {}
    for (kind, found), count in sorted(counts.items()):
        table.setdefault(kind, {})[found] = count
    return {"cases": len(numbers), "seed": seed, "counts": table, "wrong": wrong}


def prepared(place: Path) -> Bench:
    made = place / "made"
    if not made.exists():
        invoked([*RUN, "--store", str(made)])
        invoked([*SWEEP, "--store", str(made)])
        assert len(Store(made).entries()) == 2
    (place / "copies").mkdir(exist_ok=True)
    return Bench(made, place / "copies")


def stream(numbers: range, seed: int) -> dict[str, Any]:
    """Cases in a folder of their own: what a mistake names is looked for, and perhaps written, in there."""

    def tell(number: int, tried: Case, found: str) -> None:
        print(f"{number}: {tried.words}: {found}"[:400], file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="tutelage-fuzz-") as folder:
        os.chdir(folder)
        try:
            return fuzz(numbers, Path(folder), seed, train=True, tell=tell)
        finally:
            os.chdir(HOME)


def streams(cases: int, seed: int, count: int) -> dict[str, Any]:
    """All cases, in some processes side by side."""
    parts = [range(first, cases, count) for first in range(count)]
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(stream, parts, [seed] * count))
    counts: dict[str, Counter[str]] = {}
    for part in found:
        for kind, outcomes in part["counts"].items():
            counts.setdefault(kind, Counter()).update(outcomes)
    return {"cases": cases, "seed": seed, "counts": counts, "wrong": [each for part in found for each in part["wrong"]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, help="one case, with its traceback")
    chosen = parser.parse_args()
    if chosen.only is not None:
        with tempfile.TemporaryDirectory(prefix="tutelage-fuzz-") as folder, nothing_trained():
            tried = case(chosen.only, chosen.seed, prepared(Path(folder)))
            print(tried.words)
            print(tried.act())
        return
    began = time.perf_counter()
    facts = streams(chosen.cases, chosen.seed, os.cpu_count() or 1)
    from _measure import write  # beside this file; a test that imports it has no need of it

    write("fuzz", facts | {"seconds": round(time.perf_counter() - began)})
    sys.exit(1 if facts["wrong"] else 0)


if __name__ == "__main__":
    main()
