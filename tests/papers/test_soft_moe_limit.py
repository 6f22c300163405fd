"""The race of Theorem 1 in which no dimension is left, against known chances, finite dimensions and flows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from papers.figures import again
from scipy.stats import ks_2samp

from tutelage.analysis.claims import Verdict
from tutelage.papers.soft_moe import limit as module
from tutelage.papers.soft_moe import matching, repairs
from tutelage.papers.soft_moe.checks import limits as checks
from tutelage.papers.soft_moe.constants import Constants
from tutelage.papers.soft_moe.draws import Draws
from tutelage.papers.soft_moe.figures.limit import FIGURES
from tutelage.papers.soft_moe.limit import STARTS, Limit, Limits
from tutelage.papers.soft_moe.repairs import Repairs, paired
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.present.figures import draw

CLAIMS = {claim.id: claim for claim in checks.CLAIMS}


@pytest.mark.parametrize(("students", "chance"), [(1, 1 / 2), (2, 1 / 2)])
def test_chances_known_in_closed_form(students, chance):
    # One teacher. One student: its product is positive. Two: the one with the larger product z is at its teacher first,
    # or the two cancel first; by the symmetry of s both events are decided by three independent normal numbers.
    found = Limit(students, 1, 20000).matched.mean()
    # Four standard deviations: a false alarm below 1e-4; the seed is fixed.
    assert abs(found - _one_teacher(students)) < 4 * math.sqrt(0.25 / 20000)
    assert found == pytest.approx(chance, abs=0.02)


@pytest.mark.parametrize("students", [5, 10, 25])
def test_chances_of_one_teacher_without_draws(students):
    found, expected = Limit(students, 1, 20000).matched.mean(), module.one_teacher(students)
    assert abs(found - expected) < 4 * math.sqrt(0.25 / 20000)


def test_more_students_help_up_to_four_fifths():
    """Even and odd numbers have limits of their own, both below 6/7: what is missing falls as 1/m."""
    for first, limit in ((50, 0.800), (51, 0.8076)):
        few, many = module.one_teacher(first), module.one_teacher(4 * first + first % 2)
        assert few < many < limit < checks.LAW
        assert (limit - few) / (limit - many) == pytest.approx(4, rel=0.15)


def _one_teacher(students):
    """By quadrature over the first products z, and over the product s of two students."""
    if students == 1:
        return 0.5
    z = np.linspace(-8, 8, 321)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    first, second, between = np.meshgrid(z, z, z, indexing="ij")
    weight = density[:, None, None] * density[:, None] * density
    best = np.maximum(first, second)
    # An edge of strength 2|s| comes before one of strength z; both students are then gone.
    return float(weight[(best > 0) & (best > np.where(between < 0, -2 * between, 0))].sum())


def test_matched_teachers_have_students_of_their_own():
    race = Limit(10, 3, 500)
    for winners, times in zip(race.winners, race.times, strict=True):
        students = winners[winners >= 0].tolist()
        assert len(set(students)) == len(students)
        assert np.array_equal(np.isfinite(times), winners >= 0)
    assert np.array_equal(race.matched, (race.winners >= 0).all(1))
    assert np.all(race.matched_by(0.4) <= race.matched_by(1.0)) and np.all(race.as_greedy <= race.matched)


def test_the_limit_is_that_of_finite_dimensions():
    """Draws in 10^12 dimensions, whose norms and overlaps are what they are: the same law of the last time."""
    draws = Draws(SoftMoeSettings(students=8, teachers=2, dim=10**12), 1000)
    cost = matching.edges(draws.overlap_expert, draws.overlap_ss_expert, draws.norm_expert, 1.0, None)
    student, partner, time = matching.removals(cost, 2)
    _, times = module._by_teacher(student, partner, time / 1e6, 2)
    race = Limit(8, 2, 1000)
    # Infinite times, of teachers that nobody learns, are part of the law. False alarm 1e-3 each; seeds are fixed.
    for one in (np.min, np.max):
        ours, theirs = (np.nan_to_num(one(each, axis=1), posinf=1e9) for each in (race.times, times))
        assert ks_2samp(ours, theirs).pvalue > 1e-3


def test_eq_6_by_the_matching_of_the_paper():
    """As `matching.greedy` says it, draw by draw."""
    taught = np.random.default_rng(4).standard_normal((40, 6, 2))
    cost = module._cost(taught, np.zeros((40, 6, 6)))
    student, partner, time = matching.removals(cost, 2)
    winners, _ = module._by_teacher(student, partner, time, 2)
    same = module._in_order(taught, student, partner)
    assert same.all()  # without students that cancel the race is Eq. (6), as far as products are positive
    for table, found in zip(taught, winners, strict=True):
        expected = matching.greedy(table).winners(2)
        assert all(one in (-1, other) for one, other in zip(found, expected, strict=True))
    other = np.where(partner == 0, 1, np.where(partner == 1, 0, partner))
    assert not module._in_order(taught, student, other).all()


def test_starts():
    chances = {start: Limit(25, 5, 2000, start).matched.mean() for start in STARTS}
    assert chances["orthonormal"] == chances["even"] == 1
    # Signs of outputs change nothing: four standard deviations of a difference.
    assert abs(chances["signed"] - chances["iid"]) < 4 * math.sqrt(2 * 0.1 / 2000)
    assert chances["iid"] < 0.15 < 0.2 < chances["flipped"] < 0.35


# Claims.


@pytest.fixture
def evidence(monkeypatch):
    monkeypatch.setattr(module, "GRID", ((1, 10, 25), (1, 5)))
    flows = np.array([True, False])
    monkeypatch.setattr(checks, "paired", lambda race: flows)
    race = SimpleNamespace(settings=SoftMoeSettings())
    return SimpleNamespace(
        settings=SoftMoeSettings(), limits=Limits("quick"), starts=SimpleNamespace(even=race, flipped=race)
    )


class Other(Limits):
    """The limits of another start in the place of each."""

    def __init__(self, put):
        super().__init__("quick")
        self.put = put

    def at(self, students, teachers, start="iid"):
        return super().at(students, teachers, self.put.get(start, start))


PLANTED = {
    "SM-LIMIT": {"iid": "orthonormal"},
    "SM-LIMIT:greedy": {"iid": "orthonormal"},
    "SM-START:flipped": {"flipped": "orthonormal"},
    "SM-START:signed": {"signed": "orthonormal"},
}


@pytest.mark.parametrize("id", PLANTED)
def test_claims_turn_where_another_start_is_put_in(evidence, id):
    assert CLAIMS[id].check(evidence).verdict is CLAIMS[id].expected
    # At (10, 5) and (1, 1) the hypothesis on m is not met, and nothing is asked.
    evidence.limits = Other(PLANTED[id])
    assert CLAIMS[id].check(evidence).verdict not in (CLAIMS[id].expected, Verdict.UNDECIDED)


@pytest.mark.parametrize(("good", "expected"), [(10, "holds"), (8, "undecided"), (0, "fails")])
def test_even_degrees_are_judged_by_flows(evidence, monkeypatch, good, expected):
    """SM-START:even, on ten flows made up."""
    monkeypatch.setattr(checks, "paired", lambda race: np.arange(10) < good)
    evidence.starts.even = SimpleNamespace(settings=SoftMoeSettings(), until=1.0)
    assert CLAIMS["SM-START:even"].check(evidence).verdict == expected


def test_signs_are_flips_is_an_identity(evidence, monkeypatch):
    monkeypatch.setattr(checks, "paper", lambda: Constants.of("sigmoid", 4))
    assert CLAIMS["SM-START:signed"].check(evidence).verdict is Verdict.FAILS  # He_4 does not see the sign


# Flows.


def test_flows_from_other_starts(monkeypatch):
    monkeypatch.setattr(repairs, "SEEDS", {"quick": {"flipped": 2, "even": 2}})
    monkeypatch.setattr(repairs, "EVEN_DIM", 10**4)
    flows = Repairs(SoftMoeSettings(students=6, teachers=1), "quick")
    assert paired(flows.even).all() and flows.even.settings.degree == 4 and not flows.even.opposite().any()
    # Of an even degree -w* is as good: with the sign asked for, not both would be found here.
    expert = flows.even.run.overlap_expert.values
    assert expert.min() < -0.9 or expert.max() > 0.9
    assert flows.flipped.settings.init == "flipped"


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_figures(figure, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "GRID", ((1, 5, 10), (1, 2)))
    monkeypatch.setattr(repairs, "SEEDS", {"quick": {"flipped": 2, "even": 2}})
    monkeypatch.setattr(repairs, "EVEN_DIM", 10**3)
    monkeypatch.setattr(repairs, "FLIPPED_DIM", 10**4)
    dataset = again(figure.compute(SoftMoeSettings(students=6, teachers=2), "quick"), tmp_path)
    sheet = figure.sheet(dataset)
    assert sheet.caption and "nan" not in sheet.caption
    draw(sheet)
