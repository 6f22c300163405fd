"""The study that `tutelage new` writes runs as it is, and its own test sees the planted error."""

import pytest
from typer.testing import CliRunner

import tutelage as tt
from tutelage.present.cli import app
from tutelage.study import registry


def new(*words):
    return CliRunner().invoke(app, ["new", *map(str, words)])


@pytest.fixture
def study(tmp_path) -> tt.Study:
    assert new("my_paper", "--out", tmp_path / "made").exit_code == 0
    return registry.get(str(tmp_path / "made" / "my_paper.py:STUDY"))


def test_its_claim_holds_fails_or_does_not_apply(study):
    found = [study(students=2, **changes).check(seeds=2, only=("learns",)) for changes in ({}, {"noise": 0.5})]
    assert [table["learns"].finding.verdict for table in found] == [tt.Verdict.HOLDS, tt.Verdict.FAILS]
    large = study(students=2, scale=1.0).check(seeds=2, only=("learns",))
    assert large["learns"].finding.verdict is tt.Verdict.NOT_APPLICABLE
    assert study.measures[0].name == "learning_time" and study.figures[0].id == "loss" and "short" in study.presets


@pytest.mark.parametrize(
    ("name", "said"),
    [("3x", "cannot name a Python module"), ("class", "cannot name"), ("both_layers", "There is a study")],
)
def test_a_name_that_cannot_be_is_refused(name, said, tmp_path):
    done = new(name, "--out", tmp_path / "made")
    assert done.exit_code == 2 and said in done.stderr and not (tmp_path / "made").exists()


def test_nothing_that_is_there_is_changed(tmp_path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    done = new("my_paper", "--out", tmp_path)
    assert done.exit_code == 2 and [each.name for each in tmp_path.iterdir()] == ["README.md"]
