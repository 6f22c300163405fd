"""Races, passages and the claims about one neuron. Every claim is seen to change its verdict on a planted error."""

import jax.numpy as jnp
import numpy as np
import pytest
from papers.figures import shown
from scipy.integrate import solve_ivp

from tutelage._errors import BadInput
from tutelage.analysis.claims import Verdict
from tutelage.oracle.clustered import ClusterOracle
from tutelage.papers.cluster_moe import passages, races
from tutelage.papers.cluster_moe.checks import growth
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.figures import hitting, stationary
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem.activations import activation
from tutelage.problem.units import Experts, Units
from tutelage.store.store import some_store

CLAIMS = {claim.id: claim for claim in growth.CLAIMS}
SETTINGS = ClusterMoeSettings()


def verdict(name):
    return CLAIMS[name].check(Evidence()).verdict


# Races.


def test_rates_of_relu_are_those_of_the_oracle():
    """Growth of one small overlap by the population gradient is `k rate o^(k-1)`, up to `o^2`."""
    problem = SETTINGS.problem()
    units = Units(jnp.array([1.0, -1.0]), jnp.array([0.4, -0.3]), kind=activation("relu"))
    small = 1e-3
    for task in range(2):
        start = np.zeros((2, 5))
        start[:, task] = small
        grown = np.asarray(ClusterOracle(problem).turning(units, jnp.asarray(start)))[:, task]
        np.testing.assert_allclose(grown, 4 * races.rates(problem, units, start)[:, task] * small**3, rtol=1e-5)
    routed = races.rates(problem, units, np.zeros((2, 5)), served=(1.0, 0.0))
    np.testing.assert_allclose(routed[:, 2], routed[:, 0], rtol=1e-12)  # s_1 gamma = beta_1
    np.testing.assert_allclose(races.rates(problem, units, np.zeros((2, 5)))[:, 2], 0.0, atol=1e-17)


def test_odd_exponents_need_the_sign():
    np.testing.assert_allclose(races.scores([1.0, 1.0, -1.0], [0.2, -0.2, -0.1], 3), [0.2, 0.0, 0.1])
    with pytest.raises(BadInput, match="3 or more"):
        races.scores([1.0], [0.1], 2)


def test_professionals():
    overlaps = np.array([[[0.1, -0.9, 0.9], [0.3, 0.2, 0.0]]])
    assert races.professionals(overlaps, 2) == (1, 0)
    scores = races.scores(np.array([[[1.0, 1.0, 1.0], [-1.0, 0.1, 1.0]]]), overlaps, 4)
    assert races.race_professionals(scores, 2) == (0, 1)
    assert races.race_professionals(np.zeros((1, 2, 3)), 2) == (-1, -1)


# Claims.


@pytest.fixture
def kept():
    """Runs are kept for the time of a test."""
    with some_store():
        yield


@pytest.mark.usefixtures("kept")
def test_claims_and_figures_at_small_sizes(monkeypatch):
    """One small run for claims and figures, kept for all of them; sixteen neurons do not decide exponents."""
    monkeypatch.setitem(passages.DIMS, "quick", (32, 64))
    monkeypatch.setitem(passages.STEPS, "quick", (1.0,))
    monkeypatch.setitem(passages.DRIFTING, "quick", (16, 32))
    monkeypatch.setattr(passages, "CASES", passages.CASES[1:])
    for name in ("CM-09", "CM-26", "CM-C8"):
        assert verdict(name) in (Verdict.HOLDS, Verdict.UNDECIDED), name
    assert verdict("CM-21") is Verdict.HOLDS
    monkeypatch.setattr(stationary, "CASES", passages.CASES)
    for module in (hitting, stationary):
        sheet = shown(module.FIGURE, module.compute(SETTINGS, "quick"))
        assert all(panel.xlabel and panel.ylabel for panel in sheet.panels)
    # Noise of half the size.
    halved = passages.settled(passages.CASES[0], passages.CASES[0].step)
    halved = halved._replace(foretold=1 - (1 - halved.foretold) / 2)
    monkeypatch.setattr(passages, "settled", lambda case, step: halved)
    assert verdict("CM-21") is Verdict.FAILS


def passing(dim, first=1.0, second=1.0):
    """Times as foretold, a little scattered, times powers of the dimension."""
    told = [passages.foretold(dim, level) for level in (passages.WEAK, passages.STRONG)]
    scatter = np.exp(0.05 * np.random.default_rng(dim).standard_normal((2, 16)))
    weak = told[0] * scatter[0] * (dim / 32) ** (first - 1)
    return passages.Passage(weak, weak + (told[1] - told[0]) * scatter[1] * (dim / 32) ** (second - 1), *told)


def test_exponents_of_passages_are_judged(monkeypatch):
    monkeypatch.setitem(passages.DIMS, "quick", (32, 64, 128, 256))
    for name, power in (("CM-09", "first"), ("CM-26", "second")):
        monkeypatch.setattr(passages, "passage", passing)
        assert verdict(name) is Verdict.HOLDS
        monkeypatch.setattr(passages, "passage", lambda dim, power=power: passing(dim, **{power: 2.0}))
        assert verdict(name) is Verdict.FAILS
    monkeypatch.setattr(passages, "passage", lambda dim: passing(dim)._replace(weak=np.full(16, np.inf)))
    assert verdict("CM-09") is Verdict.NOT_REACHED is verdict("CM-26")


def test_the_exponent_of_changed_coefficients_is_judged(monkeypatch):
    def drifted(power, most=3.0):
        return lambda dim: (dim**power * np.linspace(0.9, 1.1, 64), np.full(64, most))

    for made, outcome in (
        (drifted(-0.5), Verdict.HOLDS),
        (drifted(0.0), Verdict.FAILS),
        (drifted(-0.5, most=9.0), Verdict.NOT_APPLICABLE),
    ):
        monkeypatch.setattr(passages, "drifted", made)
        assert verdict("CM-C8") is outcome


def _crosses(t, o):
    return o[0] - 0.5


_crosses.terminal = True


def test_time_without_noise_is_that_of_the_equation():
    dim, rate = 64, passages.step_of(64) * 4 * passages.RATE
    solved = solve_ivp(
        lambda t, o: rate * o**3 * (1 - o**2), (0, 1e6), [passages.start_of(dim)], rtol=1e-10, events=_crosses
    )
    np.testing.assert_allclose(passages.foretold(dim, 0.5), solved.t_events[0][0], rtol=1e-6)


def test_growth_bounds_claim(monkeypatch):
    assert verdict("CM-02") is Verdict.HOLDS and verdict("CM-02:printed") is Verdict.FAILS
    monkeypatch.setattr(races, "growth_bounds", races.printed_bounds)
    assert verdict("CM-02") is Verdict.FAILS
    monkeypatch.setattr(races, "printed_bounds", lambda *given: races.Bounds(*(0 * b for b in races.Bounds(1, 1))))
    assert verdict("CM-02:printed") is Verdict.HOLDS


@pytest.mark.parametrize("name", ["exponent_sequence", "blocking_margin"])
def test_exponents_claim(monkeypatch, name):
    assert verdict("CM-14") is Verdict.HOLDS
    true = getattr(races, name)
    planted = {
        "exponent_sequence": lambda k, count: true(k, count) + 1 / (3 * k),
        "blocking_margin": lambda k: true(k + 1),
    }
    monkeypatch.setattr(races, name, planted[name])
    assert verdict("CM-14") is Verdict.FAILS


def test_race_claims(monkeypatch):
    """Who wins is taken from the race equation here; the chain's answer is the claim itself."""
    problem, draw = SETTINGS.problem(), np.random.default_rng(0)
    law = Experts(120, 4, "relu")
    units, start = law.units(draw), law.overlaps(draw, 30, 5)
    start[..., 4] = -start[..., 3]
    scores = races.scores(races.rates(problem, units, start), start, 4)
    seen = races.race_professionals(scores, 2)
    won = passages.Won(seen, seen, races.professionals(start, 2), 0)
    monkeypatch.setattr(passages, "won", lambda experts: won)
    assert verdict("CM-07:race") is Verdict.HOLDS and verdict("CM-07:definition") is Verdict.FAILS
    monkeypatch.setattr(passages, "won", lambda experts: won._replace(race=won.printed, printed=seen))
    assert verdict("CM-07:race") is Verdict.FAILS and verdict("CM-07:definition") is Verdict.HOLDS


def test_chain_tells_who_wins(monkeypatch):
    """A short walk with large steps: the hits decide, neuron by neuron and task by task."""
    monkeypatch.setattr(passages, "EXPLORE_STEP", 1e-3)
    won = passages.won(6, 40_000)
    assert won.lost < 6 and won.lost + len(won.seen.cluster) == 6
    assert set(won.seen.cluster) <= {0, 1} and set(won.seen.neuron) <= {0, 1, 2, 3}
