"""The commands for many runs: sweep, diagram, and what show and export make of them."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tutelage._errors import BadInput
from tutelage._interrupt import ask_to_stop
from tutelage.present.cli import app
from tutelage.store.store import Store
from tutelage.study import cells, workers
from tutelage.study.cells import Cell
from tutelage.trajectory.dataset import load

POWER = 0.5
SWEEP = ("sweep", "both_layers", "--over", "dim=1e2..1e6:5", "--seeds", 4, "--measure", "stop_time", "--processes", 1)


def cli(*words, **options):
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def number(cell: Cell, name: str) -> list[float]:
    """A made-up number per seed: a power of dim, and a success where the width is more than the seed."""
    settings, seeds = cell.settings, np.array(cell.seeds)
    if name == "success":
        return (settings["width"] > seeds).astype(float).tolist()
    return (settings["dim"] ** POWER * (1 + 0.01 * seeds)).tolist()


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    """Cells that cost nothing; the slowest seed of the largest dim is still to come."""

    def compute(cell):
        found = {}
        for name in [each.name for each in cell.measurements]:
            values, limit = number(cell, name), [None] * len(cell.seeds)
            if name == "stop_time" and cell.settings["dim"] == 10**6:
                values[-1], limit[-1] = None, 1000.0
            found[name] = {"values": values, "limit": limit, "law": 0.5 if name == "success" else None}
        return {"measures": found, "seconds": 0.1}

    monkeypatch.setattr(workers, "compute", compute)


def only():
    (entry,) = Store().entries()
    return entry


def bad(result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("tutelage: ") and result.stderr.count("\n") == 1
    return result.stderr


def test_a_sweep_prints_its_cells_and_the_fit_and_draws_it():
    result = cli(*SWEEP, "--fit", "-q")
    assert result.exit_code == 0 and result.output == ""
    result = cli(*SWEEP, "--fit", "--law", "power")
    power = re.search(
        r"Asked for: stop_time = [\d.]+ dim\^([\d.]+) \(95 % intervals .* 1 of 20 censored", result.stdout
    )
    # The seeds differ by 3 % and dim by e^9.2: a censored seed moves the slope by 0.03 / 9.2 at most.
    assert power and abs(float(power[1]) - POWER) < 0.004
    row = next(line for line in result.stdout.splitlines() if line.startswith("1000000"))
    assert row.split() == ["1000000", "4", "1015", "1003", "1000", "1"]  # the 90 % quantile ends at the limit
    assert (only().folder / "stop_time.png").stat().st_size > 1000
    assert f"Written: {only().folder / 'stop_time.png'}" in result.stdout


def test_json_has_the_fit_and_every_law():
    record = json.loads(cli(*SWEEP, "--law", "power", "--json").stdout)
    (fit,) = record["fits"]
    assert fit["law"] == "sqrt" and fit["asked"]["rejected"] is False
    assert abs(fit["asked"]["estimates"]["b"] - POWER) < 0.01
    assert {"sqrt", "logarithmic"} <= {law["law"] for law in fit["laws"]}
    assert record["state"] == "finished" and record["failed"] == {}


def test_a_chance_over_two_settings_is_a_phase_diagram(tmp_path):
    words = ("sweep", "both_layers", "--over", "width=1,2,3", "--over", "dim=10,100", "--measure", "success")
    result = cli(*words, "--seeds", 4, "--processes", 1, "--figure", tmp_path / "a.png")
    assert result.exit_code == 0 and (tmp_path / "a.png").is_file()
    row = next(line for line in result.stdout.splitlines() if line.startswith("3 "))
    assert row.split()[:4] == ["3", "10", "4", "0.75"]


def test_a_diagram_of_the_paper_is_a_sweep(tmp_path):
    result = cli("diagram", "both_layers", "--seeds", 2, "--processes", 1, "--figure", tmp_path / "d.png")
    assert result.exit_code == 0, result.output
    assert only().spec["measures"] == ["success"] and len(only().spec["names"]) == 2
    assert (tmp_path / "d.png").is_file()
    assert "sucess" in bad(cli("diagram", "both_layers", "sucess"))


def test_two_measures_are_two_pictures(tmp_path):
    words = ("sweep", "both_layers", "--over", "dim=10,100", "--measure", "stop_time,final_loss", "--processes", 1)
    assert cli(*words, "--figure", tmp_path / "a.png").exit_code == 0
    assert {path.name for path in tmp_path.glob("*.png")} == {"a-stop_time.png", "a-final_loss.png"}


def test_show_and_export_know_sweeps(tmp_path):
    cli(*SWEEP, "-q")
    shown = cli("show", "last", "--figure", tmp_path / "s.png")
    assert "stop time" in shown.stdout and "1000000" in shown.stdout and (tmp_path / "s.png").is_file()
    assert json.loads(cli("show", "last", "--json").stdout)["spec"]["names"] == ["dim"]
    cli("export", "last", "--to", "csv", "--out", tmp_path / "s.csv")
    table = pd.read_csv(tmp_path / "s.csv")
    assert len(table) == 20 and abs(table["stop_time"].max() - 1020) < 1e-9
    assert "sweep" in cli("runs").stdout


def test_a_cell_that_fails_is_told_and_the_rest_is_kept(monkeypatch):
    def compute(cell, real=workers.compute):
        if cell.settings["dim"] == 1000:
            raise RuntimeError("no luck")
        return real(cell)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "compute", compute)
        result = cli(*SWEEP, "-q")
    assert result.exit_code == 1 and "dim=1000 failed: RuntimeError: no luck" in result.stderr
    assert result.stderr.splitlines()[-1] == "tutelage: 1 cell failed; the same command tries again."
    assert "1 of 5 cells have no result" in cli("show", "last").stdout
    assert load(only().result)["done"].values.tolist() == [True, False, True, True, True]
    shown = next(line for line in cli("show", "last").stdout.splitlines() if line.startswith("1000 "))
    assert shown.split() == ["1000", "0", "–", "–", "–", "0"]  # not done is not "still to come"
    assert cli(*SWEEP, "-q").exit_code == 0 and load(only().result)["done"].all()


def test_a_stopped_sweep_says_how_to_go_on(monkeypatch):
    def compute(cell, real=workers.compute):
        ask_to_stop()
        return real(cell)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "compute", compute)
        result = cli(*SWEEP, "-q")
    assert result.exit_code == 130 and "the same command goes on" in result.stderr
    assert load(only().result)["done"].sum() == 1 and only().state == "unfinished"
    assert cli(*SWEEP, "-q").exit_code == 0 and only().state == "finished"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--over", "dmi=1,2", "--measure", "final_loss"), "did you mean 'dim'"),
        (("--over", "dim", "--measure", "final_loss"), "name=values"),
        (("--over", "dim=1..2..3:4", "--measure", "final_loss"), "1..2..3:4"),
        (("--over", "dim=0,10", "--measure", "final_loss"), "dim"),
        (("--over", "dim=10,100", "--measure", "final_loss.mox"), "did you mean 'max'"),
        (("--over", "dim=10,100", "--measure", "claim:BL999"), "BL999"),
        (("--over", "dim=10..100", "--measure", "final_loss"), "number of points"),
        (("--over", "dim=10..100", "--measure", "final_loss", "--design", "sobol"), "--points"),
        (("--over", "dim=10,100", "--measure", "final_loss", "--figure", "a.xyz"), "a.png"),
        (("--over", "dim=10,100", "--measure", "final_loss", "--fit", "--law", "powre"), "did you mean 'power'"),
        (("--over", "dim=10,100", "--measure", "final_loss", "--scheduler", "tcp://127.0.0.1:9"), "tcp://127.0.0.1:9"),
    ],
)
def test_bad_input_is_one_sentence(words, hint):
    assert hint in bad(cli("sweep", "both_layers", *words, "-q", "--processes", 1))
    assert not any(entry.result.is_file() for entry in Store().entries())  # refused before anything is computed


def test_a_measure_that_no_run_has_is_refused_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(workers, "compute", cells.compute)
    words = ("sweep", "both_layers", "--set", "steps=20", "--over", "dim=10,100", "--processes", 1, "-q")
    assert "did you mean 'loss'" in bad(cli(*words, "--measure", "final_lost"))
    assert Store().entries() == []


def test_a_refused_sweep_leaves_no_checkpoint():
    """A cell that takes seconds has one by the time it is measured."""
    words = ("sweep", "both_layers", "--over", "dim=10,100", "--processes", 1, "-q", "--measure", "final_loss")

    def compute(cell):
        for name in (cell.checkpoint.name, f".{cell.checkpoint.name}.abc.part"):
            (cell.checkpoint.parent / name).write_bytes(b"half")
        raise BadInput("no such measure")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "compute", compute)
        assert "no such measure" in bad(cli(*words))
    assert {path.name for path in Store().root.rglob("*") if path.suffix != ".lock"} == {".locks", ".cells"}
