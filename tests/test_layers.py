"""The folders are the data flow: each imports only from those before it. And heavy tools stay in their places."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tutelage

ROOT = Path(tutelage.__file__).parent
# `verbs` joins all that came before, certificates and the store included.
ORDER = (
    *("_version", "_types", "_revisions", "_errors", "_checks", "_limits", "_plain", "_values", "_config"),
    *(
        "_extensions",
        "_progress",
        "_compiling",
        "_interrupt",
        "_identity",
        "_files",
        "problem",
        "rigour",
        "oracle",
        "dynamics",
        "trajectory",
        "analysis",
        "store",
        "verbs",
    ),
    *("study", "papers", "bench"),
    *("present", "__main__"),
)
# Packages that only some folders may know.
ONLY_IN = {
    "matplotlib": ("present",),
    "typer": ("present",),
    "rich": ("present",),
    "torch": ("bench",),
    "torchdiffeq": ("bench",),
    "panel": (),
    "dask": ("study",),
    "distributed": ("study",),
}


def modules() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Every module a file imports, at the top or inside a function, with its line; relative ones made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*parent, *filter(None, [node.module])))
            # `from tutelage import papers` names a folder: look at what is imported as well.
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def layer(module: str) -> str | None:
    """The folder (or root module) of tutelage that a module belongs to; '' for the root's public names."""
    parts = module.split(".")
    if parts[0] != "tutelage":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else ""


def package_of(path: Path) -> tuple[str, ...]:
    return ("tutelage", *path.relative_to(ROOT).parent.parts)


def wrong_imports(source: str, own: str, package: tuple[str, ...]) -> list[str]:
    """What is imported against the order."""
    rank = ORDER.index(own)
    found = []
    for module, line in imported(ast.parse(source), package):
        other = layer(module)
        if other is None:
            continue
        if (other == "" and own not in ("papers", "bench")) or (other and ORDER.index(other) > rank):
            found.append(f"line {line}: {own} imports {module}")
    return found


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_point_backwards(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert own in ORDER, f"{own} has no place in the order of the layers"
    assert wrong_imports(path.read_text(encoding="utf-8"), own, package_of(path)) == []


def test_papers_use_only_what_is_public():
    """A paper may take names of `tutelage` and of its folders, as any user may, and what papers share; no module of
    theirs, and nothing private."""
    wrong = []
    for path in sorted((ROOT / "papers").rglob("*.py")):
        if path.parent == ROOT / "papers":
            continue  # what papers share: recipes, settings, the registry
        for module, line in imported(ast.parse(path.read_text(encoding="utf-8")), package_of(path)):
            base, _, name = module.rpartition(".")
            if not module.startswith("tutelage") or base.startswith("tutelage.papers"):
                continue
            if name not in public_names(base):
                wrong.append(f"{name_of(path)}, line {line}: {module}")
    assert wrong == []


def public_names(package: str) -> set[str]:
    """What the stub of a package names."""
    stub = ROOT.joinpath(*package.split(".")[1:]) / "__init__.pyi"
    if not stub.is_file():
        return set()
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def loaded(source: str) -> ast.AST:
    """A module without what only type checkers read: a type may be named where its package is not loaded."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return tree


@pytest.mark.parametrize("path", [ROOT / "__init__.py", *modules()], ids=name_of)
def test_heavy_tools_stay_in_their_places(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for module, line in imported(loaded(path.read_text(encoding="utf-8")), package_of(path)):
        allowed = ONLY_IN.get(module.split(".")[0])
        assert allowed is None or own in allowed, f"line {line}: {own} imports {module}"


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("from tutelage.papers import paper", "analysis"),
        ("def f():\n    import tutelage.present.cli", "papers"),
        ("from tutelage import papers", "oracle"),
        ("from tutelage import Problem", "dynamics"),
        ("import tutelage", "oracle"),
        ("from ..dynamics import loop", "oracle"),
        ("from ..dynamics.driver import Loop", "oracle"),
    ],
)
def test_a_wrong_import_is_seen(source, own):
    assert len(wrong_imports(source, own, ("tutelage", own))) == 1


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("from tutelage import papers", "present"),
        ("from ..problem import inputs", "oracle"),
        ("import numpy", "problem"),
        ("from .claims import Interval", "analysis"),
        ("from tutelage._errors import BadInput", "problem"),
    ],
)
def test_a_right_import_is_not(source, own):
    assert wrong_imports(source, own, ("tutelage", own)) == []
