"""What is made of the results: rows with verdicts, a page, the README's table, and the command's own tables."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tutelage
from tutelage.bench import cases, results, runner
from tutelage.present.cli import app

ROOT = Path(tutelage.__file__).parent.parent


@pytest.fixture(scope="module")
def speed():
    spec = importlib.util.spec_from_file_location("make_speed", ROOT / "docs" / "make_speed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def only(found, **changes):
    (contest,) = found["cases"]["flow"]["contests"]
    contest |= changes
    return found


def test_rows_have_ratios_and_verdicts(found):
    diffrax, scipy = results.rows(found)
    assert (diffrax.peer, diffrax.ratio, diffrax.verdict) == ("diffrax", pytest.approx(3.0), "met")
    assert (scipy.ratio, scipy.goal, scipy.verdict) == (pytest.approx(0.5), None, "")
    assert diffrax.share == "40% (goal 50%: not met)"


def test_what_is_not_met_says_what_the_limit_allows(found):
    row = results.rows(only(found, goals={"diffrax": 10.0}))[0]
    assert row.verdict == "not met; random numbers alone: 7.5 times"
    only(found)["cases"]["flow"]["contests"][0].pop("limit")
    assert results.rows(found)[0].verdict == "not met"


@pytest.mark.parametrize(("allowed", "verdict"), [(0.0, "not met"), (1.0, "met"), (None, "")])
def test_first_calls_may_take_a_little_longer(found, allowed, verdict):
    (row,) = results.first_rows(only(found, first_goals={"diffrax": allowed}))
    assert row.verdict == verdict


def test_what_is_not_installed_is_one_line(found):
    assert results.left_out(found) == ["torch: left out, for torch is not installed (pip install 'tutelage[bench]')."]


def test_the_last_file_is_that_of_the_last_date(tmp_path):
    assert results.newest(tmp_path) is None
    for name in ("2029-12-31", "2030-01-02", "laws", "both_layers_full"):
        (tmp_path / f"{name}.json").touch()
    assert results.newest(tmp_path) == tmp_path / "2030-01-02.json"


def test_the_page_has_all_of_it(speed, found):
    page = speed.page(found)
    later = (
        "| 100 ms (90 ms to 110 ms) | diffrax | 300 ms (270 ms to 330 ms) | **3** | 2 | met | 40% (goal 50%: not met) |"
    )
    first = "| 2 s | 500 ms | 3 in 500 ms | diffrax | 1.5 s | at most 0 s more | not met | 50 / 50 |"
    assert f"| d=50, 200 records {later}" in page and f"| flow, d=50, 200 records {first}" in page
    assert "apart by at most 1e-08 (tolerance 1e-05)" in page and "images/work-precision.png" in page
    assert "| dimension d | 100: 100 ms, 1000: 100 ms | 0.00 | 0 |" in page
    assert "met at 2 of 2 tolerances" in page and "| diffrax Tsit5 | 1e-08 | 2e-09 | 7 |" in page
    assert "Of 1 goals for later calls 1 are met." in page


def test_without_results_the_page_says_so(speed):
    assert speed.NOTHING in speed.page(None) and speed.NOTHING in speed.short(None)


def test_the_short_table_has_main_contests_with_goals(speed, found):
    table = speed.short(found)
    assert "| flow: d=50, 200 records | 100 ms | diffrax | 300 ms | **3** | 2 | met |" in table
    assert "SciPy" not in table
    assert "| flow" not in speed.short(only(found, headline=False))


def test_the_picture_has_a_curve_for_each(speed, found):
    (panel,) = speed.picture(found).panels
    assert [curve.label for curve in panel.series] == ["tutelage", "diffrax Tsit5"]
    assert panel.series[0].y.tolist() == pytest.approx([1e-5, 1e-9])
    assert speed.picture({"cases": {}}) is None


@pytest.fixture
def cli(monkeypatch, found):
    """The command, with results that were made by hand."""
    monkeypatch.setattr(runner, "ask", lambda module, asked, **how: dict(found["cases"]["flow"]))
    return lambda *words: CliRunner().invoke(app, ["bench", *words])


def test_the_command_shows_and_writes(cli, tmp_path):
    out = tmp_path / "bench.json"
    done = cli("flow", "--out", str(out))
    assert done.exit_code == 0 and out.is_file()
    assert "diffrax" in done.stdout and "met" in done.stdout and "is not installed" in done.stdout


def test_only_a_whole_bench_is_kept_by_itself(cli, tmp_path, monkeypatch):
    """So that the page is never made from a part, or from tiny sizes."""
    monkeypatch.chdir(tmp_path)
    assert cli("flow").exit_code == cli("--quick").exit_code == 0
    assert not list(tmp_path.iterdir())
    assert cli("--repeat", "1").exit_code == 0
    assert results.newest(tmp_path) == next(tmp_path.iterdir())


def test_cases_are_listed_and_not_measured(cli, monkeypatch):
    monkeypatch.setattr(runner, "ask", None)
    listed = cli("--list").stdout
    assert all(name in listed for name in cases.NAMES)
    known = json.loads(cli("flow", "--list", "--json").stdout)
    assert list(known) == ["flow"] and "d=50, 200 records" in known["flow"]["contests"]
    assert cli("flows", "--list").exit_code == 2


def test_a_disagreement_is_exit_1(cli, found):
    only(found, refused="tutelage and diffrax differ by 1")
    found["cases"]["flow"]["contests"][0].pop("times")
    done = cli("flow", "--quick")
    assert done.exit_code == 1 and "flow, d=50, 200 records: not timed: tutelage and diffrax differ by 1" in done.stdout


def test_a_case_that_did_not_end_is_exit_1(cli, found):
    found["cases"]["flow"]["unfinished"] = "crashed"
    done = cli("flow", "--quick")
    assert done.exit_code == 1 and "flow: crashed." in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["flows"], "Unknown case 'flows': did you mean 'flow'?"),
        (["flow", "--out", "no/such/bench.json"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(cli, words, said):
    done = cli(*words)
    assert done.exit_code == 2 and said in done.stderr


@pytest.mark.parametrize("words", [["--repeat", "0"], ["--repeat", "x"]])
def test_misuse_is_exit_2_too(cli, words):
    assert cli("flow", *words).exit_code == 2
