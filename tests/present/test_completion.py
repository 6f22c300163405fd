"""The tab key, the help by groups, and the version."""

import os
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tutelage._version import __version__
from tutelage.present.cli import GROUPS, app


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("tutelage run both", ["both_layers"]),
        ("tutelage run both_layers --set wi", ["width="]),
        ("tutelage run soft_moe --preset fi", ["fig1"]),
        ("tutelage run both_layers --dynamics de", ["descent"]),
        ("tutelage sweep both_layers --over di", ["dim="]),
        ("tutelage sweep both_layers --measure succ", ["success"]),
        ("tutelage check both_layers --only BL0", [f"BL0{n}" for n in range(1, 10)]),
        ("tutelage reproduce both_layers/fig", [f"both_layers/fig{n}" for n in range(1, 9)]),
        ("tutelage show la", ["last"]),
        ("tutelage run nothing --set wi", []),
    ],
)
def test_what_the_tab_key_offers(typed, offered, tmp_path):
    words = typed.split(" ")
    asked = {"_TUTELAGE_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "from tutelage.present.cli import app; app(prog_name='tutelage')"]
    where = os.environ | asked | {"TUTELAGE_STORE": str(tmp_path)}
    found = subprocess.run(command, env=where, capture_output=True, text=True, check=False)
    assert found.stdout.split() == offered and found.stderr == ""


def test_help_has_every_command_once_and_cuts_no_sentence():
    said = CliRunner().invoke(app, ["--help"], terminal_width=80).stdout
    names = list(get_command(app).commands)
    assert all(said.count(f"\n  {name:9}  ") == 1 for name in names), said
    assert "..." not in said.partition("Studies:")[2]
    assert {name for group in GROUPS.values() for name in group} <= set(names)
    assert all(len(line) <= 80 for line in said.splitlines())


def test_the_version_and_a_command_that_is_not_there():
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == __version__
    said = CliRunner().invoke(app, ["chekc"])
    assert said.exit_code == 2 and "Did you mean 'check'?" in said.stderr
