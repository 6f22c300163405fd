"""Verdicts and intervals of claims."""

import json

import numpy as np
import pytest
from scipy.stats import binom

import tutelage as tt
from tutelage.analysis import claims
from tutelage.analysis.claims import Checked, Claim, Finding, Hypothesis, Interval, Kind, Verdict


def test_bounds_judge_the_worst_entry():
    assert claims.at_most([1.0, 2.0], 2.0).verdict is Verdict.HOLDS
    assert claims.at_most([1.0, 2.1], 2.0).verdict is Verdict.FAILS and claims.at_most([1.0, 2.1], 2.0).measured == 2.1
    assert claims.at_least([1.0, 2.0], 1.0).verdict is Verdict.HOLDS
    assert claims.at_least([0.9, 2.0], 1.0).verdict is Verdict.FAILS


def test_nan_never_holds():
    assert claims.at_most([0.0, np.nan], 1.0).verdict is Verdict.FAILS
    assert claims.at_least([2.0, np.nan], 1.0).verdict is Verdict.FAILS
    finding = Finding(Verdict.HOLDS, measured=float("nan"))
    assert finding.verdict is Verdict.FAILS and "not a number" in finding.detail


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
def test_binomial_interval_covers(p):
    trials, level = 40, 0.9
    counts = np.arange(trials + 1)
    covered = [p in claims.binomial_interval(int(k), trials, level) for k in counts]
    # Exactly: the probability of all counts whose interval covers p is at least the level.
    assert binom.pmf(counts, trials, p)[covered].sum() >= level


def test_binomial_interval_at_the_ends():
    none, all_ = claims.binomial_interval(0, 10, 0.95), claims.binomial_interval(10, 10, 0.95)
    assert none.low == 0 and all_.high == 1
    # With no success in n the upper end solves (1-p)^n = 0.025.
    assert abs(none.high - (1 - 0.025**0.1)) < 1e-12 and abs(all_.low - 0.025**0.1) < 1e-12


def test_probability_claims():
    assert claims.probability_is(503, 1000, 0.5).verdict is Verdict.HOLDS
    assert claims.probability_is(600, 1000, 0.5).verdict is Verdict.FAILS
    assert claims.probability_is(503, 1000, 0.5, within=0.03).verdict is Verdict.UNDECIDED
    assert claims.probability_at_least(100, 100, 0.9).verdict is Verdict.HOLDS
    assert claims.probability_at_least(700, 1000, 0.9).verdict is Verdict.FAILS
    assert claims.probability_at_most(100, 1000, 0.2).verdict is Verdict.HOLDS
    assert claims.probability_at_most(300, 1000, 0.2).verdict is Verdict.FAILS


@pytest.mark.parametrize(("successes", "trials", "law"), [(10, 10, 6 / 7), (4, 10, 6 / 7), (50, 100, 0.6), (0, 3, 0.2)])
def test_an_undecided_probability_says_how_many_seeds_would_decide(successes, trials, law):
    found = claims.probability_at_least(successes, trials, law)
    rate = successes / trials
    assert found.verdict is Verdict.UNDECIDED and found.needed > trials and str(found.needed) in found.outcome
    judged = [claims.probability_at_least(round(rate * n), n, law).verdict for n in (found.needed - 1, found.needed)]
    assert judged == [Verdict.UNDECIDED, Verdict.HOLDS if rate > law else Verdict.FAILS]


@pytest.mark.parametrize(
    ("successes", "trials", "law", "then"),
    [(5, 10, 0.5, Verdict.HOLDS), (66, 100, 0.6, Verdict.FAILS), (322, 600, 0.5, Verdict.HOLDS)],
)
def test_an_undecided_value_of_a_probability_says_how_many_seeds_would_decide(successes, trials, law, then):
    """At the rate that was seen, which need not be that of the law."""
    found = claims.probability_is(successes, trials, law)
    rate = successes / trials
    assert found.verdict is Verdict.UNDECIDED and found.needed > trials
    judged = [claims.probability_is(round(rate * n), n, law).verdict for n in (found.needed - 1, found.needed)]
    assert judged == [Verdict.UNDECIDED, then]


def test_a_rate_at_its_bound_is_never_decided():
    found = claims.probability_at_least(6, 7, 6 / 7)
    assert found.verdict is Verdict.UNDECIDED and found.needed is None and found.outcome == "undecided"


@pytest.mark.parametrize("law", [0.0, 1.0])
def test_what_always_happens_is_no_probability(law):
    with pytest.raises(tt.BadInput, match="use every"):
        claims.probability_at_least(10, 10, law)
    assert claims.every(10, 10).verdict is Verdict.HOLDS and claims.every(9, 10).verdict is Verdict.FAILS


@pytest.mark.parametrize("p", [0.85, 6 / 7, 0.87])
def test_a_false_probability_is_seldom_said_to_hold(p):
    """Exactly: the chance of a wrong verdict is at most half of one minus the level, on either side of the bound."""
    trials, law = 200, 6 / 7
    verdicts = [claims.probability_at_least(k, trials, law).verdict for k in range(trials + 1)]
    wrong = Verdict.HOLDS if p < law else Verdict.FAILS
    chance = binom.pmf(np.arange(trials + 1), trials, p)[[verdict is wrong for verdict in verdicts]].sum()
    assert chance <= 0.0005


def test_means_and_intervals_have_three_outcomes():
    values = np.array([0.9, 1.0, 1.1, 1.0])
    assert claims.mean_at_most(values, 2.0).verdict is Verdict.HOLDS
    assert claims.mean_at_least(values, 2.0).verdict is Verdict.FAILS
    near = claims.mean_at_most(values, 1.05)
    assert near.verdict is Verdict.UNDECIDED and near.needed > 4
    assert claims.mean_at_most([1.0], 2.0).verdict is Verdict.UNDECIDED
    interval = Interval(-0.55, -0.45)
    assert claims.interval_is(-0.5, interval, -0.5, within=0.1).verdict is Verdict.HOLDS
    assert claims.interval_is(-0.5, interval, -0.5, within=0.01).verdict is Verdict.UNDECIDED
    assert claims.interval_is(-0.5, interval, -0.6, within=0.1).verdict is Verdict.FAILS
    assert claims.interval_at_most(-0.5, interval, -0.5).verdict is Verdict.UNDECIDED
    assert claims.interval_at_least(np.nan, Interval(np.nan, np.nan), 0.0).verdict is Verdict.FAILS


def test_an_unmet_hypothesis_leaves_nothing_to_say():
    met, unmet = Hypothesis("a <= 1", True, 0.5, 1.0), Hypothesis("b <= 1", False, 2.0, 1.0)
    for finding in (claims.at_most(1.0, 2.0), claims.at_most(3.0, 2.0)):
        assert claims.given(finding, met).verdict is finding.verdict
        both = claims.given(finding, met, unmet)
        assert both.verdict is Verdict.NOT_APPLICABLE and both.hypotheses == (met, unmet)
        assert both.measured == finding.measured
    assert unmet.sentence == "Hypothesis: b <= 1: not met (2 <= 1)."


def test_the_worst_of_several_is_one_that_fails():
    undecided, fails = claims.probability_at_least(10, 10, 0.9), claims.at_most(3.0, 2.0)
    assert claims.all_of([undecided, fails]).verdict is Verdict.FAILS
    assert claims.all_of([claims.at_most(1.0, 2.0), undecided]).verdict is Verdict.UNDECIDED


def test_statements_of_different_kinds_are_counted_apart():
    kinds = (Kind.PAPER, Kind.PAPER, Kind.SLIP, Kind.OURS)
    rows = [Checked(Claim(str(n), "", "", "", lambda e: e, k), claims.every(n % 2, 1)) for n, k in enumerate(kinds)]
    assert claims.Table(tuple(rows)).sentence == (
        "4 claims. The paper's statements: 1 holds, 1 fails. Printed slips: 1 fails. Ours: 1 holds."
    )
    assert claims.Table(tuple(rows[:2])).sentence == "2 claims: 1 holds, 1 fails."


def test_table_and_record():
    claim = Claim("X1", "Eq. 1", "a <= b", "anywhere", lambda evidence: claims.at_most(evidence, 1.0), must_hold=True)
    soft = Claim("X2", "Eq. 2", "a <= b", "anywhere", lambda evidence: claims.at_most(evidence, 1.0))
    table = claims.Table((Checked(claim, claim.check(2.0)), Checked(soft, soft.check(2.0))))
    assert len(table) == 2 and table["X2"].claim is soft and table.broken == (table["X1"],)
    records = json.loads(json.dumps(table.records()))
    assert records[0]["verdict"] == "fails" and records[0]["measured"] == 2.0 and records[0]["bound"] == 1.0
