"""The commands against a tiny paper: output, exit codes, and the one sentence for bad input."""

import dataclasses
import json
import os
import re
import subprocess
import sys

import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

from tutelage import verbs
from tutelage._errors import BadInput
from tutelage.analysis.certificates import Certificate, Check
from tutelage.analysis.claims import Claim, at_most
from tutelage.present.cli import app

COMMANDS = (
    "papers", "run", "check", "reproduce", "sweep", "diagram", "runs", "show", "export", "rm", "bench", "new",
    "version", "prove", "verify",
)  # fmt: skip


@pytest.fixture
def cli(registered):
    def call(*words: str):
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


def refuted(paper, must_hold=True):
    """The tiny paper with one more claim, which is false."""
    wrong = Claim(
        "T99", "Thm 9", "loss <= 0", "", lambda e: at_most(e.loss, 0.0, detail="It is one half."), must_hold=must_hold
    )
    return dataclasses.replace(paper, claims=(*paper.claims, wrong))


def changed(paper, **fields):
    """The tiny paper with another recipe."""
    return dataclasses.replace(paper, recipe=dataclasses.replace(paper.recipe, **fields))


def crashing(paper):
    def boom(_):
        raise RuntimeError("kaboom")

    return dataclasses.replace(paper, claims=(Claim("T00", "", "crashes", "", boom), *paper.claims))


def bad(result) -> str:
    """The single sentence that bad input gives."""
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("tutelage: ")
    return lines[0]


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_an_example(cli, command, flag):
    result = cli(*filter(None, [command]), flag)
    assert result.exit_code == 0
    assert f"Example:\n    tutelage {command or 'reproduce'}" in result.output


def test_all_commands_are_here():
    assert sorted(typer.main.get_command(app).commands) == sorted(COMMANDS)


def test_papers_lists_and_details(cli):
    assert "A tiny paper" in cli("papers").stdout
    detail = cli("papers", "tiny").stdout
    for part in ("dim", ">= 1, <= 1000000000000", "mu, the step size", "chi | xavier", "large", "fig1", "T03"):
        assert part in detail


def test_papers_json_is_pure(cli):
    (only,) = json.loads(cli("papers", "--json").stdout)
    assert only["name"] == "tiny" and only["claims"] == 5
    detail = json.loads(cli("papers", "tiny", "--json").stdout)
    assert detail["settings"][0]["bounds"] == ">= 1, <= 1000000000000"
    assert detail["dynamics"] == ["descent", "flow"]
    assert [claim["id"] for claim in detail["claims"]] == ["T01", "T02", "T03", "T04", "T05"]


@pytest.mark.parametrize("text", ["1e9", "1000000000", "1.0e9"])
def test_run_reads_whole_numbers_in_any_form(cli, text):
    result = cli("run", "tiny", "--set", f"dim={text}", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["dim"] == 1_000_000_000


def test_run_json_has_no_nan(cli):
    assert json.loads(cli("run", "tiny", "--json").stdout)["worst"] is None


LONGER = "--preset large has the paper's own sizes and takes about 1 min 30 s."
SHORT = f"tutelage: --preset short, the main effect in seconds (dim=5); {LONGER}"


@pytest.mark.parametrize(
    ("words", "dim", "said"),
    [
        ((), 5, SHORT),
        (("--preset", "large"), 10**6, "tutelage: --preset large takes about 1 min 30 s."),
        (("--set", "step=0.2"), 100, "tutelage: what is not set is the default; --preset short begins from a run of"),
        (("--preset", "short", "--set", "step=0.2"), 5, SHORT),
        (("--check",), 100, "tutelage: what is not set is the default"),
        (("--preset", "unmeasured"), 7, ""),
    ],
)
def test_a_run_of_which_nothing_is_set_is_short(cli, registered, paper, words, dim, said):
    presets = {"short": {"dim": 5}, "large": {"dim": 10**6}, "unmeasured": {"dim": 7}}
    registered(dataclasses.replace(paper, presets=presets, own="large", takes={"large": 90.0}))
    result = cli("run", "tiny", "--json", *words)
    assert json.loads(result.stdout)["dim"] == dim
    assert said in result.stderr and bool(said) == ("--preset" in result.stderr)


def test_a_paper_runs_as_it_is_where_it_has_no_short_form(cli, paper):
    result = cli("run", "tiny", "--json")
    assert json.loads(result.stdout)["dim"] == paper.settings().dim and "preset" not in result.stderr


def test_run_passes_its_options_on(cli, tmp_path):
    out, figure = tmp_path / "run.nc", tmp_path / "run.png"
    result = cli("run", "tiny", "--preset", "large", "--dynamics", "flow", "--certify", "--seeds", 5, "--out", out,
                 "--figure", figure)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "flow" in result.stdout and "1000000" in result.stdout
    assert re.search(r"All \d+ checks agree", result.stdout)
    assert xr.load_dataset(out, engine="h5netcdf").sizes["seed"] == 5
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_paper_runs_by_the_dynamics_it_knows(cli, registered, paper):
    said = bad(cli("run", "tiny", "--dynamics", "sgd"))
    assert said == "tutelage: tiny knows the dynamics descent and flow, but 'sgd' was asked for; choose one of them."
    with pytest.raises(BadInput, match="knows the dynamics descent and flow"):
        paper(dim=5).sgd()
    registered(changed(paper, dynamics=("sgd", "descent", "flow")))
    assert json.loads(cli("run", "tiny", "--json").stdout)["dynamics"] == "sgd"
    assert json.loads(cli("run", "tiny", "--dynamics", "flow", "--json").stdout)["dynamics"] == "flow"
    assert "sgd, descent, flow" in cli("papers", "tiny").stdout


def test_a_certificate_that_disagrees_is_exit_1(cli, monkeypatch):
    doubted = Certificate((Check("loss", "sampling", 0.25, 0.5, 0.25, 1e-3),))
    monkeypatch.setattr(verbs, "certified", lambda run: doubted)
    for words in ((), ("--json",), ("--json",)):  # the last two are read from the store
        result = cli("run", "tiny", "--certify", *words)
        assert result.exit_code == 1, result.output
        said = json.loads(result.stdout)["certificate"][0]["agrees"] if words else result.stdout
        assert said is False if words else "1 of 1 checks disagree" in said
    assert cli("run", "tiny").exit_code == 0  # nobody asked


def test_quiet_is_silent(cli):
    result = cli("run", "tiny", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "tinny"), "did you mean 'tiny'"),
        (("papers", "tinny"), "did you mean 'tiny'"),
        (("run", "tiny", "--set", "dmi=3"), "did you mean 'dim'"),
        (("run", "tiny", "--set", "dim=-3"), "greater than or equal to 1"),
        (("run", "tiny", "--set", "dim=2.5"), "dim"),
        (("run", "tiny", "--set", "dim=1e999999999"), "dim"),
        (("run", "tiny", "--set", "step=nan"), "finite number"),
        (("run", "tiny", "--set", "step=inf"), "finite number"),
        (("run", "tiny", "--set", "start=chy"), "'chi' or 'xavier'"),
        (("run", "tiny", "--set", "foo"), "name=value"),
        (("run", "tiny", "--set", "dim="), "name=value"),
        (("run", "tiny", "--set", "=3"), "name=value"),
        (("run", "tiny", "--set", "dim=[1,"), "is not a list"),
        (("run", "tiny", "--preset", "lrge"), "did you mean 'large'"),
        (("run", "tiny", "--figure", "a.gif"), ".png"),
        (("run", "tiny", "--out", "no/such/folder/a.nc"), "does not exist"),
        (("check", "tiny", "--only", "T1"), "did you mean 'T01'"),
        (("reproduce", "tiny/fig2"), "did you mean 'fig1'"),
        (("reproduce", "tinny"), "did you mean 'tiny'"),
        (("show", "no-such-file.nc"), "no-such-file.nc"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(cli, words, said):
    assert said in bad(cli(*words))


def test_show_of_a_file_that_is_no_run(cli, tmp_path):
    (tmp_path / "text.nc").write_text("not NetCDF")
    assert "text.nc" in bad(cli("show", tmp_path / "text.nc"))


@pytest.mark.parametrize("words", [("run", "tiny", "--seeds", "0"), ("run", "tiny", "--no-such-option"), ("fly",)])
def test_misuse_is_exit_2_too(cli, words):
    assert cli(*words).exit_code == 2


def test_check_prints_the_table(cli):
    result = cli("check", "tiny")
    assert result.exit_code == 0, result.output
    for part in ("T01", "holds", "0.5", "<= 1", "50/100", "(ours)", "fails", "4041", "not applicable", "not reached"):
        assert part in result.stdout
    said = "5 claims. The paper's statements: 1 holds, 1 fails, 1 not applicable, 1 not reached. Ours: 1 holds."
    assert said in " ".join(result.stdout.split())


def test_check_json_lists_every_claim(cli):
    records = json.loads(cli("check", "tiny", "--json").stdout)
    assert [(r["id"], r["verdict"]) for r in records][:3] == [("T01", "holds"), ("T02", "holds"), ("T03", "fails")]
    assert set(records[0]) >= {"id", "verdict", "measured", "bound", "seeds"}
    assert records[0]["seeds"] == 10


def test_check_only_and_seeds(cli):
    (record,) = json.loads(cli("check", "tiny", "--only", "T01", "--seeds", "3", "--json").stdout)
    assert record["id"] == "T01" and record["seeds"] == 3


def test_a_claim_that_is_asked_for_is_told_in_words(cli, registered, paper):
    registered(refuted(paper, must_hold=False))
    assert "T99 It is one half." in cli("check", "tiny", "--only", "T99").stdout
    assert "It is one half." not in cli("check", "tiny").stdout


def test_a_claim_that_must_hold_and_fails_is_exit_1(cli, registered, paper):
    registered(refuted(paper))
    result = cli("check", "tiny")
    assert result.exit_code == 1 and "T99 must hold and fails. It is one half." in result.stdout
    assert cli("check", "tiny", "--only", "T01").exit_code == 0
    registered(refuted(paper, must_hold=False))
    assert cli("check", "tiny").exit_code == 0


def test_a_crashing_check_is_told_and_loses_nothing(cli, registered, paper):
    registered(crashing(paper))
    result = cli("check", "tiny")
    assert result.exit_code == 1
    assert "claim T00 crashed: RuntimeError: kaboom" in result.stdout and "T05" in result.stdout


def test_reproduce_says_where_the_report_is(cli, tmp_path):
    out = tmp_path / "report"
    result = cli("reproduce", "--quick", "--out", out)
    assert result.exit_code == 0, result.output
    assert str(out / "report.html") in result.stdout.replace("\n", "")
    told = json.loads(cli("reproduce", "tiny/fig1", "--out", out, "--json").stdout)
    assert told["ok"] and told["papers"][0]["figures"][0]["id"] == "fig1" and told["papers"][0]["verdicts"] == {}


def test_reproduce_exit_1_on_a_broken_claim(cli, registered, paper, tmp_path):
    registered(refuted(paper))
    assert cli("reproduce", "--out", tmp_path).exit_code == 1


def test_show_describes_a_saved_run(cli, saved_run):
    result = cli("show", saved_run)
    assert result.exit_code == 0, result.output
    for part in ("dim", "100", "converged", "convergence threshold", "first_norm", "Loss, median over seeds", "⠉"):
        assert part in result.stdout
    told = json.loads(cli("show", saved_run, "--json").stdout)
    assert told["settings"] == {"dim": 100} and told["dims"]["seed"] == 3
    assert {stop["reason"]: stop["seeds"] for stop in told["stopped"]} == {"converged": 2, "horizon": 1}
    assert told["final"]["loss"]["max"] < 1e-20


def test_version(cli):
    assert cli("version").stdout.strip() == json.loads(cli("version", "--json").stdout)["tutelage"]


THREADS = """
import os
from tutelage.present import cli
cli.app = lambda: print(os.environ["OPENBLAS_NUM_THREADS"])
cli.main()
"""


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_a_command_factorises_with_one_thread_unless_told_otherwise(given, threads):
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", THREADS], env=others | given, capture_output=True, text=True)
    assert done.stdout.strip() == threads, done.stderr
