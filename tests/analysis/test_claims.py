"""Verdicts and intervals of claims."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from tutelage.analysis import claims
from tutelage.analysis.claims import Checked, Claim, Finding, Verdict


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
    assert claims.probability_at_least(10, 10, 0.9).verdict is Verdict.HOLDS
    assert claims.probability_at_least(700, 1000, 0.9).verdict is Verdict.FAILS


def test_table_and_record():
    claim = Claim("X1", "Eq. 1", "a <= b", "anywhere", lambda evidence: claims.at_most(evidence, 1.0))
    soft = Claim("X2", "Eq. 2", "a <= b", "anywhere", lambda evidence: claims.at_most(evidence, 1.0), must_hold=False)
    table = claims.Table((Checked(claim, claim.check(2.0)), Checked(soft, soft.check(2.0))))
    assert len(table) == 2 and table["X2"].claim is soft and table.broken == (table["X1"],)
    records = json.loads(json.dumps(table.records()))
    assert records[0]["verdict"] == "fails" and records[0]["measured"] == 2.0 and records[0]["bound"] == 1.0
