"""What parts cost is measured, kept, and told the next time; what was not measured is not told."""

import dataclasses
import json
from types import SimpleNamespace

import pytest

from tutelage.analysis.claims import Claim
from tutelage.present import making as making_module
from tutelage.present import progress as progress_module
from tutelage.present.costs import Costs
from tutelage.present.making import Steps
from tutelage.present.reproduce import reproduce
from tutelage.study import Figure
from tutelage.study import study as paper_module

SECONDS = 100.0


class Clock:
    """Time that passes when told to."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    perf_counter = monotonic


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (making_module, paper_module, progress_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


class Told:
    """A progress that keeps what it hears."""

    def __init__(self):
        self.expected, self.heard = [], {}

    def expect(self, *, part, whole):
        self.expected = [part, whole and round(whole, 6)]  # a difference of two times

    def __call__(self, label, done, total):
        self.heard[label] = self.expected


@pytest.fixture
def slow(registered, paper, clock):
    """The tiny paper, with one figure of a hundred seconds; and a stopwatch is all that its claims need."""
    (figure,) = paper.figures

    def compute(settings, size):
        clock.now += SECONDS
        return figure.compute(settings, size)

    made = dataclasses.replace(paper, figures=(dataclasses.replace(figure, compute=compute),), claims=())
    registered(made)
    return made


def reproduced(folder, *targets, **options):
    told = Told()
    reproduce(targets, out=folder, progress=told, **options)
    return told.heard


def test_nothing_is_told_before_it_was_measured_and_then_what_was(slow, tmp_path, cost_file):
    assert reproduced(tmp_path, "tiny") == {"tiny: figure fig1": [None, None]}
    assert reproduced(tmp_path, "tiny") == {"tiny: figure fig1": [SECONDS, SECONDS]}
    assert json.loads(cost_file.read_text()) == {"tiny/figure fig1/quick": SECONDS}


def test_what_is_compiled_is_no_cost(slow, registered, clock, tmp_path, cost_file, monkeypatch):
    """The first time a figure compiles for a while, within what it takes."""
    compiling = SimpleNamespace(listen=lambda: None, here=0.0, seconds=0.0)
    for module in (making_module, progress_module):
        monkeypatch.setattr(module, "COMPILING", compiling)
    (figure,) = slow.figures

    def compute(settings, size):
        compiling.here, compiling.seconds = compiling.here + 30.0, compiling.seconds + 30.0
        return figure.compute(settings, size)

    registered(dataclasses.replace(slow, figures=(dataclasses.replace(figure, compute=compute),)))
    reproduced(tmp_path, "tiny")
    assert set(json.loads(cost_file.read_text()).values()) == {SECONDS - 30.0}


def test_another_size_is_another_cost(slow, tmp_path):
    reproduced(tmp_path, "tiny")
    assert reproduced(tmp_path, "tiny", size="full") == {"tiny: figure fig1": [None, None]}


def test_the_whole_is_told_only_if_all_of_it_is_known(slow, registered, tmp_path):
    other = dataclasses.replace(slow, name="other")
    registered(slow, other)
    reproduced(tmp_path, "tiny")
    # Of the two papers one was never measured: its part, and hence the whole, nobody knows.
    first = reproduced(tmp_path, "tiny", "other")
    assert first == {"tiny: figure fig1": [SECONDS, None], "other: figure fig1": [None, None]}


def test_the_rest_is_told_as_parts_are_made_two_at_a_time(tmp_path):
    costs, told = Costs(None), Told()
    for number, seconds in enumerate((10.0, 50.0, 30.0, 20.0)):
        costs.note(seconds, "tiny", f"figure {number}", "quick")
    steps = Steps(costs, "quick", told)
    steps.plan("tiny", [f"figure {number}" for number in range(4)])
    for number in (0, 2, 3, 1):
        steps.start("tiny", f"figure {number}", f"figure {number}")
        steps.end("tiny", f"figure {number}", None)
    assert list(told.heard.values()) == [[10.0, 55.0], [30.0, 50.0], [20.0, 50.0], [50.0, 50.0]]


def test_claims_are_measured_by_seeds_and_crashes_are_not(registered, paper, clock, tmp_path, cost_file):
    def check(evidence):
        clock.now += evidence.seeds
        return paper.claims[0].check(evidence)

    def boom(*_):
        raise RuntimeError("kaboom")

    claims = (dataclasses.replace(paper.claims[0], check=check), Claim("T99", "", "crashes", "", boom))
    registered(dataclasses.replace(paper, claims=claims, figures=(Figure("fig0", "Crashes", boom, boom),)))
    reproduced(tmp_path, seeds=4)
    assert json.loads(cost_file.read_text()) == {"tiny/claim T01 of 4 seeds/quick": 4.0}
    assert reproduced(tmp_path, seeds=4)["tiny: claim T01"] == [4.0, None]
    assert reproduced(tmp_path, seeds=8)["tiny: claim T01"] == [None, None]


def test_a_damaged_file_is_written_anew_and_one_that_cannot_be_written_does_no_harm(tmp_path):
    file = tmp_path / "seconds.json"
    for text in ("{", "[1]", '{"a": "b"}'):
        file.write_text(text)
        costs = Costs(file)
        assert costs.of("tiny", "figure fig1", "quick") is None
        costs.note(1.0, "tiny", "figure fig1", "quick")
        assert Costs(file).of("tiny", "figure fig1", "quick") == 1.0
    Costs(file / "below" / "seconds.json").note(1.0, "tiny", "figure fig1", "quick")
    assert Costs(file).of("tiny", "figure fig1", "quick") == 1.0
