"""What a sweep measures: names, files, functions, and keys that change when what they compute does."""

import dataclasses
import functools
import subprocess
import sys
import textwrap

import pytest

import tutelage as tt
from tutelage import papers
from tutelage._errors import BadInput
from tutelage._identity import identity
from tutelage.analysis.claims import Claim, at_most
from tutelage.study.measuring import measurements

PAPER = papers.get("both_layers")
FACTOR = 1


def spread(run):
    """Spread of the norms, in words."""
    return run.last("first_norm").std("student") * FACTOR


def names(wanted):
    return [each.name for each in measurements(PAPER, wanted)]


def test_names_may_be_texts_with_commas_measures_or_functions():
    own = tt.Measure("own", "one of my own", spread, law=lambda settings: 1.0)
    assert names("final_loss, success,claim:BL11") == ["final_loss", "success", "claim:BL11"]
    assert names(["final_loss,success", own, spread]) == ["final_loss", "success", "own", "spread"]
    assert names(lambda run: run.last("loss")) == ["measure"]


def test_a_function_is_described_by_its_first_line():
    (found,) = measurements(PAPER, spread)
    assert found.measure(PAPER).long_name == "Spread of the norms, in words."


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([], "something to measure"),
        (" , ", "something to measure"),
        ("final_loss,final_loss", "twice"),
        (["spread.py:spread"], "not a Python file"),
        ("claim:NO", "claim of both_layers"),
        ("final_overlap.median", "reducer"),
        ([3], "is not a measure"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(wanted, words):
    with pytest.raises(BadInput, match=words):
        measurements(PAPER, wanted)


def test_a_function_of_a_file(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("K = 2\ndef twice(run):\n    return K * run.last('loss')\n")
    (found,) = measurements(PAPER, f"{file}:twice")
    run = tt.papers.both_layers(steps=50).descend(seeds=2)
    assert (found.measure(PAPER).measured(run).values == 2 * run.last("loss").values).all()
    with pytest.raises(BadInput, match="no function thrice"):
        measurements(PAPER, f"{file}:thrice")
    file.write_text("# a comment\n\nK = 2\n\ndef twice(run):\n    return K * run.last('loss')  # and another\n")
    assert measurements(PAPER, f"{file}:twice")[0].key == found.key
    file.write_text("K = 3\ndef twice(run):\n    return K * run.last('loss')\n")
    assert measurements(PAPER, f"{file}:twice")[0].key != found.key


def quantile(part):
    return lambda run: run.last("loss") * part


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, run):
        return run.last("loss") * self.factor


def test_keys_change_with_what_is_computed(monkeypatch):
    same, other = lambda run: run.last("loss"), lambda run: run.last("gradient_norm")
    pairs = [(same, other), (quantile(0.1), quantile(0.9)), (Scaled(1), Scaled(2))]
    pairs += [(functools.partial(spread, run=1), functools.partial(spread, run=2))]
    for one, another in pairs:
        assert identity(one) != identity(another)
    assert identity(quantile(0.1)) == identity(quantile(0.1))
    assert identity(Scaled(1)) == identity(Scaled(1))
    before = identity(spread)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 2)
    assert identity(spread) != before


def test_the_key_of_a_verdict_changes_with_the_code_of_the_claim():
    def claimed(bound):
        claim = Claim("OWN", "", "", "", lambda evidence: at_most(1.0, bound))
        return measurements(dataclasses.replace(PAPER, claims=(claim,)), "claim:OWN")[0].key

    assert claimed(1.0) == claimed(1.0) != claimed(2.0)


def test_keys_are_the_same_in_every_process():
    """Also where there is no file to read the source from, and whatever the order of sets."""
    source = textwrap.dedent("""
        from tutelage._identity import identity
        WORDS = {"a", "b", "c"}
        def own(run):
            return [word in {"x", "y", "z"} for word in WORDS]
        print(identity(own), identity(lambda run: own(run)))
    """)
    told = [
        subprocess.run([sys.executable, "-c", source], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True)
        for seed in "12"
    ]
    assert told[0].stdout == told[1].stdout and len(told[0].stdout.split()) == 2, told[0].stderr
