"""The public names: the stub, what can be loaded, and what a type checker sees are one list."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import tutelage as tt

STUB = Path(tt.__file__).with_suffix(".pyi")
ROOT = STUB.parent
SHARED = ["tutelage.papers.evidence"]
"""What papers share has no stub: all that is public there counts."""

LOOSE = {
    "deferred": "a function of another module, of any type",
    "PlainEvidence.__init__(settings)": "each paper has settings of its own",
}
"""Where the type of a public name may be `Any`, and why."""


def stated() -> dict[str, str]:
    """The names of the stub, each with the module it comes from."""
    imports = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or "": node.module or "" for node in imports for alias in node.names}


@pytest.mark.parametrize(("name", "home"), stated().items())
def test_every_name_of_the_stub_is_that_of_its_home(name, home):
    expected = getattr(import_module(f"tutelage.{home}"), name) if home else import_module(f"tutelage.{name}")
    assert getattr(tt, name) is expected


def homes() -> set[tuple[str, str]]:
    """All public names, of the package and of its folders: the modules that define them, and their names there."""
    found = set()
    for stub in ROOT.rglob("__init__.pyi"):
        package = ".".join(("tutelage", *stub.parent.relative_to(ROOT).parts))
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                things = [getattr(import_module(f"{package}.{node.module}"), alias.name) for alias in node.names]
                inside = [each for thing in things if inspect.ismodule(thing) for each in vars(thing).values()]
                found |= {
                    (thing.__module__, thing.__name__)
                    for thing in (*things, *inside)
                    if hasattr(thing, "__name__") and hasattr(thing, "__module__")
                }
    return {each for each in found if each[0].startswith("tutelage")} | {(module, "") for module in SHARED}


def is_public(name: str) -> bool:
    return not name.startswith("_") or name.endswith("__")


def annotations(node: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.expr]]:
    """Annotations of a function, or of the fields and methods of a class, each with what it is of."""
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            yield from annotations(part, f"{node.name}.")
    elif isinstance(node, ast.FunctionDef) and is_public(node.name):
        given = node.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        name = owner + node.name
        yield from ((f"{name}({each.arg})", each.annotation) for each in every if each and each.annotation)
        yield from ((name, each) for each in [node.returns] if each)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_public(node.target.id):
        yield owner + node.target.id, node.annotation


def loose(node: ast.AST) -> bool:
    """Whether a type is `Any` in some part. JSON and arrays of any type are not meant, nor what a callback is given:
    that is for whoever writes it to say."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return loose(ast.parse(node.value, mode="eval"))
    if isinstance(node, ast.Subscript):
        if ast.unparse(node) in ("dict[str, Any]", "Mapping[str, Any]", "NDArray[Any]"):
            return False
        if ast.unparse(node.value) == "Callable" and isinstance(node.slice, ast.Tuple):
            return loose(node.slice.elts[-1])
        if ast.unparse(node.value) in ("Literal", "Float", "Int", "Bool", "UInt64"):
            return False  # their strings are no types
    return isinstance(node, ast.Name) and node.id == "Any" or any(map(loose, ast.iter_child_nodes(node)))


def test_no_public_type_is_anything():
    found = set()
    for module, name in homes():
        source = Path(import_module(module).__file__ or "").read_text(encoding="utf-8")
        nodes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        chosen = [node for node in nodes if (node.name == name if name else is_public(node.name))]
        assert chosen or not name, f"{module} does not define {name}"
        found |= {what for node in chosen for what, given in annotations(node) if loose(given)}
    assert found == set(LOOSE)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [("Any", True), ("'Any | None'", True), ("tuple[Any, ...]", True), ("Callable[..., Any]", True)]
    + [("dict[str, Any]", False), ("Callable[[Any], int]", False), ("NDArray[Any] | None", False)],
)
def test_a_loose_type_is_seen(annotation, expected):
    assert loose(ast.parse(annotation, mode="eval")) is expected


def test_a_papers_options_are_the_fields_of_all_dynamics():
    from tutelage.study.recipe import Options, Recipe

    dynamics = (tt.Descent, tt.Flow, tt.Sgd, tt.HeavyBall)
    fields = {each.name for kind in dynamics for each in dataclasses.fields(kind)}
    named = set(inspect.signature(Recipe.run).parameters) - {"self", "settings", "dynamics", "changes"}
    assert set(Options.__annotations__) == fields | named


def test_names_are_listed_once_and_sorted():
    assert dir(tt) == tt.__all__ == sorted(stated()) and len(tt.__all__) > 50


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(AttributeError, match=r"tutelage has no 'flows'; it has .*\bflow\b"):
        _ = tt.flows


def test_import_alone_loads_nothing_heavy():
    heavy = "jax", "numpy", "xarray", "pydantic", "rich", "tutelage.papers", "tutelage.problem"
    code = f"import sys, tutelage; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_verb_is_named_without_solvers_and_results():
    heavy = "diffrax", "xarray", "pandas", "scipy", "optax", "mpmath", "matplotlib"
    code = f"import sys, tutelage as tt; tt.flow, tt.run; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_type_checkers_see_the_names_and_no_others(tmp_path):
    pytest.importorskip("mypy")
    assert (STUB.parent / "py.typed").is_file()
    snippet = tmp_path / "snippet.py"
    snippet.write_text("import tutelage as tt\n\ntt.flow\ntt.Problem\ntt.papers\ntt.flows\n")
    # Other modules are not looked at: that would take minutes.
    options = ["--follow-imports=skip", "--config-file=", f"--cache-dir={tmp_path}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(STUB), str(snippet)], capture_output=True, text=True, check=False
    )
    assert checked.stdout.splitlines() == [
        f'{snippet}:6: error: Module has no attribute "flows"; maybe "flow"?  [attr-defined]',
        "Found 1 error in 1 file (checked 2 source files)",
    ], checked.stderr
