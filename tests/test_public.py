"""The public names: the stub, what can be loaded, and what a type checker sees are one list."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tutelage as tt

STUB = Path(tt.__file__).with_suffix(".pyi")


def stated() -> dict[str, str]:
    """The names of the stub, each with the module it comes from."""
    imports = [node for node in ast.parse(STUB.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or "": node.module or "" for node in imports for alias in node.names}


@pytest.mark.parametrize(("name", "home"), stated().items())
def test_every_name_of_the_stub_is_that_of_its_home(name, home):
    expected = getattr(import_module(f"tutelage.{home}"), name) if home else import_module(f"tutelage.{name}")
    assert getattr(tt, name) is expected


def test_names_are_listed_once_and_sorted():
    assert dir(tt) == tt.__all__ == sorted(stated()) and len(tt.__all__) > 50


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(AttributeError, match=r"tutelage has no 'flows'; it has .*\bflow\b"):
        _ = tt.flows


def test_import_alone_loads_nothing_heavy():
    heavy = "jax", "numpy", "xarray", "pydantic", "rich", "tutelage.papers", "tutelage.problem"
    code = f"import sys, tutelage; print([name for name in {heavy} if name in sys.modules])"
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
