"""Nonsense: each is one sentence and leaves nothing behind, or it can be run."""

import math
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import tutelage as tt
from tutelage import papers
from tutelage._errors import BadInput
from tutelage._limits import CELLS, STEPS
from tutelage._values import value
from tutelage.papers.fields import updates
from tutelage.present.cli import app
from tutelage.store.fetching import spec_of
from tutelage.store.store import Entry, Store, condition
from tutelage.study.design import Range, design

NASTY = (
    *(0, -1, 3, 0.5, 1e-308, 5e-324, 10**6, 1e20, 1e308, math.nan, math.inf, -math.inf, 99999999999999999999, 10**400),
    *(
        True,
        False,
        None,
        "",
        "a",
        "he1000000",
        "he" + "9" * 400,
        "[",
        [],
        {},
        [True],
        [[1]],
        [1.0] * 1000,
        {"4": math.nan},
    ),
)


def cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def bad(result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and result.stderr.startswith("tutelage: ") and result.stderr.count("\n") == 1
    return result.stderr


def empty(store) -> bool:
    """Nothing was made but the folder itself and a lock, at most."""
    return not store.root.exists() or {path.name for path in store.root.iterdir()} <= {".locks"}


# ---- settings


@pytest.mark.parametrize("name", papers.names())
def test_every_setting_refuses_nonsense_or_can_be_run(name):
    """A run of it is described, not computed: bounds are checked before anything is made."""
    paper = papers.get(name)
    for field in paper.settings.model_fields:
        for nasty in NASTY:
            for dynamics in paper.dynamics:
                sentence = refusal(paper, {field: nasty}, dynamics)
                assert len(sentence) < 600 and "\n" not in sentence, (field, nasty)


def refusal(paper, values, dynamics) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a paper leaves open
            paper.recipe.asked(paper.configure(values), dynamics=dynamics, seeds=2)
    except BadInput as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", papers.names())
def test_true_and_texts_are_no_numbers(name):
    paper = papers.get(name)
    for field, about in paper.settings.model_fields.items():
        for nasty in (True, np.True_, "5", [True], ["5"]):
            try:
                found = getattr(paper.configure({field: nasty}), field)
            except BadInput:
                continue
            assert about.annotation is bool or found == "5", field


def test_numbers_of_numpy_are_numbers():
    settings = tt.papers.both_layers(dim=np.int64(7), step=np.float32(0.5), width=2.0).settings
    assert (settings.dim, settings.step, settings.width) == (7, 0.5, 2) and type(settings.dim) is int


def test_a_time_of_too_many_updates_is_refused():
    assert updates(1.0, 0.3) == 3 and updates(1.0, 0.3, math.ceil) == 4 and updates(1e-9, 1.0) == 1
    assert updates(float(STEPS), 1.0) == STEPS
    for until, step in ((2.0 * STEPS, 1.0), (1e308, 0.1), (1.0, 5e-324)):
        with pytest.raises(BadInput, match="shorter time or a larger step"):
            updates(until, step)


def test_values_on_a_command_line():
    assert value("1" * 400) == math.inf and value("1e-400") == 0
    with pytest.raises(BadInput, match="too many brackets"):
        value("[" * 100_000)


# ---- runs and sweeps

RUNS = [
    ("run", "both_layers", "--seeds", "1000000000"),
    ("run", "both_layers", "--seeds", "1" * 400),
    ("run", "both_layers", "--set", "samples=10000000000"),
    ("run", "both_layers", "--set", "samples=99999999999999999999"),
    ("run", "both_layers", "--set", "samples=1e8", "--set", "dim=1e6"),
    ("run", "both_layers", "--set", "dim=true"),
    ("run", "both_layers", "--set", "activation=he1000000"),
    ("run", "beyond_ntk", "--set", "until=1e308"),
    ("run", "soft_moe", "--set", "step=1e-308", "--dynamics", "descent"),
    ("check", "both_layers", "--seeds", "1" * 400),
    ("reproduce", "both_layers", "--seeds", "1" * 400),
    ("diagram", "both_layers", "--seeds", "1" * 400),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1..1e9:1000000000"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", f"dim=1..1e9:{'9' * 5000}"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1e-300..1e300:3"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1e300..1e-300:3"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "offset=-1e308..1e308:3:lin"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=0..1:3:log"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1..1e9:0"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "samples=99999999999999999999"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=true,2"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1..1e9", "--design", "sobol", "--points", 10**9),
    (
        "sweep",
        "both_layers",
        "--measure",
        "final_loss",
        "--over",
        "dim=1..1e9",
        "--design",
        "random",
        "--points",
        10**9,
    ),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1..1e9:2000", "--over", "step=1e-3..1:2000"),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=1..1e9:20000", "--seeds", 100_000),
    ("sweep", "both_layers", "--measure", "final_loss", "--over", "dim=10", "--seeds", "1" * 400),
]


@pytest.mark.parametrize("words", RUNS, ids=lambda words: " ".join(map(str, words))[:90])
def test_what_would_run_away_is_refused_and_leaves_nothing(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a reproduction would write its report
    assert len(bad(cli(*words, "-q"))) < 600
    assert empty(Store()) and not list(tmp_path.iterdir())


def test_ranges_and_designs_have_bounds(monkeypatch):
    assert Range(1.0, 100.0, CELLS).count == CELLS
    with pytest.raises(BadInput, match=f"from 1 to {CELLS}"):
        Range(1.0, 100.0, CELLS + 1)
    for low, high in ((math.nan, 1.0), (1.0, "a"), (True, 2.0)):
        with pytest.raises(BadInput, match="a finite number"):
            Range(low, high)
    with pytest.raises(BadInput, match="numbers or names"):
        design(tt.papers.cluster_moe, {"shared": [{4: 1.0}]})
    with monkeypatch.context() as patch, pytest.raises(BadInput, match="ask for fewer"):
        patch.delattr("tutelage.study.design._product")  # its points are counted before they are made
        design(tt.papers.both_layers, {"dim": "1..1e9:1000", "step": "1..2:2000"})
    endless = iter(int, 1)
    with pytest.raises(BadInput, match="ask for fewer"):
        design(tt.papers.both_layers, {"dim": endless})


# ---- conditions


@pytest.mark.parametrize(
    "text",
    [
        *(
            "dim>>3",
            "dim><3",
            "dim=>3",
            "dim=<3",
            "dim>1 and 1",
            "dim>1;ls",
            "1e4<dim",
            "dim = ",
            "dim=",
            "=3",
            "dim",
            "",
        ),
        *("dim>nan", "dim<a", "dim>=1,2", "dim===3", "dim!3", "3>2", "dim>3>2", "dim=3=3"),
    ],
)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(BadInput, match="--where"):
        condition(text)


def test_conditions_that_are(tmp_path):
    entry = Entry("0", tmp_path, {"settings": {"dim": 100, "trains": "routers and experts"}})
    for text in ("dim>1e1", " dim <= 100 ", "dim==100", "dim=1e2", "dim!=3", "trains=routers and experts", "dim<inf"):
        assert condition(text)(entry), text
    assert not condition("dim>100")(entry) and not condition("none=3")(entry)


def test_a_name_that_nobody_knows_is_refused():
    store = Store()
    assert cli("runs", "--where", "dmi>3").exit_code == 0  # there is nothing to know it yet
    asked = tt.papers.both_layers.recipe.asked(tt.papers.both_layers.configure({"dim": 5}), seeds=1)
    store.prepare(asked.identity, spec_of(asked))
    assert "did you mean 'dim'" in bad(cli("runs", "--where", "dmi>3"))
    for known in ("dim>7", "students>3", "loss<1", "state=finished"):  # of the run, of a paper, of a summary, of all
        assert "matches" in cli("runs", "--where", known).stdout
