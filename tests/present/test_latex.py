"""Claims as a table of LaTeX."""

import pytest

import tutelage as tt
from tutelage.analysis.claims import Checked, Claim, Finding, Interval, Table, Verdict
from tutelage.present.latex import claims, escaped


def row(**found) -> Checked:
    claim = Claim("P1_A:k=2", "Theorem 1 & 2", "", "", lambda evidence: None)
    return Checked(claim, Finding(Verdict.HOLDS, **found))


@pytest.mark.parametrize(
    ("found", "cells"),
    [
        ({"measured": 1.5, "bound": 2.0}, "$1.5$ & $\\le 2$"),
        ({"measured": 3.2e-15, "bound": 1e-8, "relation": ">="}, "$3.2\\times 10^{-15}$ & $\\ge 10^{-8}$"),
        ({"measured": -1e-9, "bound": 0.0, "relation": "="}, "$-10^{-9}$ & $= 0$"),
        ({"measured": float("inf")}, "$\\infty$ & --"),
        ({}, "-- & --"),
        ({"measured": 0.5, "interval": Interval(0.4, 0.6, 0.95)}, "$0.5\\ [0.4, 0.6]$ & --"),
    ],
)
def test_numbers_are_mathematics(found, cells):
    line = claims(Table((row(**found),))).splitlines()[4]
    assert line == f"P1\\_A:k=2 & Theorem 1 \\& 2 & holds & {cells} \\\\"


def test_letters_that_tex_reads_are_escaped():
    assert escaped("a_b^2 < 50 % {x} \\") == r"a\_b\textasciicircum{}2 \textless{} 50 \% \{x\} \textbackslash{}"


def test_a_table_knows_its_latex_and_the_command_writes_it(tmp_path):
    from typer.testing import CliRunner

    from tutelage.present.cli import app

    path = tmp_path / "claims.tex"
    done = CliRunner().invoke(app, ["check", "both_layers", "--only", "BL43", "--latex", str(path), "-q"])
    assert done.exit_code == 0, done.output
    assert path.read_text() == tt.papers.both_layers().check(only=["BL43"]).to_latex()
