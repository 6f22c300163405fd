"""The commands `prove` and `verify`: proofs are written, checked, and refused when they were changed."""

import json

import pytest
from typer.testing import CliRunner

from tutelage._interrupt import ask_to_stop
from tutelage.present.cli import app
from tutelage.rigour import proofs


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result, code: int) -> str:
    """The one sentence on standard error."""
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("tutelage: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def proof(tmp_path):
    """A proof that was made, in a folder that was not there."""
    done = call("prove", "relu_teachers", "--only", "HESS", "--out", tmp_path / "new")
    file = tmp_path / "new" / "HESS-printed.json"
    assert done.exit_code == 0 and "HESS:printed: Lemma 7 as printed" in done.stdout
    assert f"Written: {file}" in done.stdout
    return file


def test_a_proof_is_made_and_verified(proof):
    done = call("verify", proof)
    assert done.exit_code == 0 and "proved. Lemma 7 as printed" in done.stdout and "derivative: [0.10" in done.stdout


def test_what_a_study_ships_is_verified_by_its_name():
    done = call("verify", "soft_moe", "both_layers")
    assert done.exit_code == 0, done.output
    assert done.stdout.count(": proved. ") == 8 and "SM-L1-printed.json" in done.stdout


def test_check_shows_what_is_proved():
    """In the table, in its last line, and as data."""
    words = ("check", "relu_teachers", "--only", "HESS:printed")
    done = call(*words)
    assert "fails, refuted" in done.stdout and "By proof: 1 refuted." in done.stdout
    (row,) = json.loads(call(*words, "--json").stdout)
    assert row["verdict"] == "fails" and [each["standing"] for each in row["settled"]] == ["refuted"]


def test_as_json(proof, tmp_path):
    done = call("prove", "relu_teachers", "--only", "HESS:printed", "--out", tmp_path, "--json")
    assert json.loads(done.stdout) == [json.loads(proof.read_text(encoding="utf-8"))]
    (found,) = json.loads(call("verify", proof, "--json").stdout)
    assert found["file"] == str(proof) and set(found["enclosed"]) == {"printed", "derivative"}


def test_a_proof_that_was_changed_is_refused_and_the_others_are_checked(proof, tmp_path):
    changed = tmp_path / "changed.json"
    changed.write_text(proof.read_text(encoding="utf-8").replace("1/10", "1/9"), encoding="utf-8")
    done = call("verify", changed, proof)
    assert "not what was sealed" in refused(done, 1) and "proved. Lemma 7" in done.stdout
    (tmp_path / "text.json").write_text("?", encoding="utf-8")
    assert "not JSON" in refused(call("verify", tmp_path / "text.json"), 1)


def test_it_can_be_stopped_and_keeps_what_was_proved(tmp_path, monkeypatch):
    right = proofs.Proof.save

    def save_and_stop(proof, path):
        right(proof, path)
        ask_to_stop()

    monkeypatch.setattr(proofs.Proof, "save", save_and_stop)
    done = call("prove", "relu_teachers", "--only", "HESS", "--only", "RECUR", "--out", tmp_path)
    assert "the proofs that were written are kept" in refused(done, 130)
    assert [path.name for path in tmp_path.iterdir()] == ["HESS-printed.json"]


def test_what_can_be_proved_is_listed():
    done = call("prove", "relu_teachers", "--list")
    assert done.exit_code == 0 and "P1-ANGLE:k=2 (Theorem 3" in done.stdout and "MINIMA:k=12" in done.stdout
    rows = json.loads(call("prove", "relu_teachers", "--only", "MINIMA", "--list", "--json").stdout)
    assert [row["id"] for row in rows] == [f"MINIMA:k={k}" for k in range(6, 13)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("prove", "cluster_moe"), "no statement with a proof"),
        (("prove", "relu_teachers", "--only", "MINIMUM"), "did you mean 'MINIMA"),
        (("prove", "no_such_study"), "Unknown study"),
        (("verify", "no_such_file.json"), "cannot be read"),
        (("verify", "no_such_study"), "Unknown study"),
        (("verify", "cluster_moe"), "ships no proofs"),
        (("prove", "relu_teachers", "--only", "HESS", "--out", __file__), "test_cli_proofs.py"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence):
    assert sentence in refused(call(*words), 2)
