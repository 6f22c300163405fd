"""The claims about specialists, the router and the split readout: verdicts, and a planted error for each."""

import dataclasses

import numpy as np
import pytest
from papers.figures import shown

from tutelage.analysis import readout
from tutelage.analysis.claims import Verdict
from tutelage.oracle import routing
from tutelage.papers.cluster_moe import phase_two, races
from tutelage.papers.cluster_moe.checks import router, starts
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.figures import collapse, router_error
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem.clusters import Clusters

CLAIMS = {claim.id: claim for claim in (*starts.CLAIMS, *router.CLAIMS)}
QUICK = Evidence()


def verdict(id):
    return CLAIMS[id].check(QUICK).verdict


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_verdicts_are_those_expected(claim):
    assert claim.check(QUICK).verdict is claim.expected
    assert claim.explanation or claim.expected is Verdict.HOLDS


@pytest.fixture
def anew():
    """Nothing that was made with a planted error is kept."""
    kept = (starts._covering, router._population, starts.few_starts, starts.many_starts)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


# The start.


def unsigned(overlaps, clusters):
    """A first cluster that wins ties of a coarse rounding: experts no longer fall to all clusters alike."""
    return races._largest(np.round(np.asarray(overlaps)[..., :clusters] * 10))


def test_unequal_chances_are_seen(monkeypatch, anew):
    monkeypatch.setattr(races, "professionals", unsigned)
    assert verdict("CM-05") is Verdict.FAILS


def test_a_bound_that_is_too_high_is_seen(monkeypatch):
    monkeypatch.setattr(starts, "union_bound", lambda clusters, experts, terms: 0.999)
    assert verdict("CM-05:printed") is Verdict.FAILS


def test_too_few_experts_are_seen(monkeypatch, anew):
    """The paper's own experiment has 8."""
    monkeypatch.setattr(starts, "enough_experts", lambda clusters, delta: 8)
    assert verdict("CM-05:lemma") is Verdict.FAILS


def test_exact_covering_by_counting():
    for clusters, experts in ((2, 8), (3, 4)):
        every = np.indices((clusters,) * experts).reshape(experts, -1).T
        seen = np.mean([len(set(row)) == clusters for row in every.tolist()])
        assert starts.covered(clusters, experts) == pytest.approx(seen, abs=1e-12)


def clear(scaled, log_dim, draws, truth=starts._counted):
    """Starts that stand out as clearly as can be, and are positive."""
    kappa = np.full(scaled.shape, 0.1)
    kappa[:, 0, 0] = 3
    return truth(kappa, log_dim, draws)


def signed(scaled, log_dim, draws, truth=starts._counted):
    """The same, but with the sign that comes."""
    kappa = np.full(scaled.shape, 0.1)
    kappa[:, 0, 0] = np.sign(scaled[:, 0, 0]) * 3
    return truth(kappa, log_dim, draws)


def narrow(scaled, log_dim, draws, truth=starts._counted):
    """No more neurons than `log(M/delta)/C`."""
    return truth(scaled[:, :3], log_dim, draws)


def side_by_side(scaled, log_dim, draws, truth=starts._counted):
    """A neuron beside the first that is as good."""
    return truth(np.concatenate([scaled, scaled], axis=1), log_dim, draws)


@pytest.mark.parametrize("id", ["CM-06", "CM-C3"])
def test_winners_that_stand_out_are_seen(monkeypatch, anew, id):
    monkeypatch.setattr(starts, "_counted", clear)
    assert verdict(id) is Verdict.HOLDS
    monkeypatch.setattr(starts, "_counted", signed)  # signs alone break the lemma
    for each in (starts.few_starts, starts.many_starts):
        each.cache_clear()
    assert verdict(id) is Verdict.FAILS and verdict(f"{id}:unsigned") is Verdict.HOLDS


@pytest.mark.parametrize(("id", "error"), [("CM-06:unsigned", narrow), ("CM-C3:unsigned", side_by_side)])
def test_starts_that_do_not_stand_out_are_seen(monkeypatch, anew, id, error):
    monkeypatch.setattr(starts, "_counted", error)
    assert verdict(id) is Verdict.FAILS


# The router.


def test_rows_that_do_not_add_up_are_seen(monkeypatch):
    real = phase_two.expected()
    monkeypatch.setattr(phase_two, "expected", lambda: real + 1e-9)
    assert verdict("CM-16") is Verdict.FAILS


def test_the_right_gradient_adds_up(monkeypatch):
    def right(inputs, labels, said, chosen):
        experts = said.shape[1]
        own = np.take_along_axis(said, chosen[:, None], axis=1)
        weights = (np.eye(experts)[chosen] - 1 / experts) / experts * own * labels[:, None]
        return weights.T @ inputs / len(inputs)

    monkeypatch.setattr(router, "printed_gradient", right)
    assert verdict("CM-16:printed") is Verdict.HOLDS


@pytest.mark.parametrize("id", ["CM-17", "CM-18"])
def test_a_router_of_the_wrong_sign_is_seen(monkeypatch, anew, id):
    real = routing.expected_router
    monkeypatch.setattr(routing, "expected_router", lambda *given: -real(*given))
    assert verdict(id) is Verdict.FAILS


@pytest.mark.parametrize("id", ["CM-17:small", "CM-17:explored", "CM-18:explored"])
def test_a_router_that_knows_the_clusters_is_seen(monkeypatch, anew, id):
    def ideal(problem, units, first):
        means = np.asarray(problem.inputs.means)
        rows = np.pad(means, ((0, 0), (0, problem.inputs.dim - means.shape[1])))
        gap = rows - rows.mean(axis=0)
        return gap[np.arange(len(first)) % len(gap)]

    monkeypatch.setattr(routing, "expected_router", ideal)
    assert verdict(id) is Verdict.HOLDS


def test_enough_samples_are_seen(monkeypatch):
    law = phase_two.expected()
    monkeypatch.setattr(phase_two, "one_step", lambda *given: law)
    assert verdict("CM-18:samples") is Verdict.HOLDS


@pytest.mark.parametrize("name", ["passing", "winning"])
def test_wrong_probabilities_are_seen(monkeypatch, name):
    real = getattr(routing, name)

    def without_radius(theta, law):
        return real(theta, Clusters(law.dim, law.means, 1.0))

    monkeypatch.setattr(routing, name, without_radius)
    assert verdict("CM-18:formula") is Verdict.FAILS


def test_a_wrong_factor_of_the_expected_step_is_seen(monkeypatch):
    law = phase_two.expected()
    monkeypatch.setattr(phase_two, "expected", lambda: 8 * law)  # 1/M for 1/M^2
    assert verdict("CM-19") is Verdict.FAILS
    monkeypatch.setattr(phase_two, "expected", lambda: 2 * law)
    assert verdict("CM-19") is Verdict.FAILS


def test_a_router_that_outgrows_the_radius_is_seen(monkeypatch):
    real = routing.expected_router
    monkeypatch.setattr(
        routing, "expected_router", lambda problem, *given: problem.inputs.radius * real(problem, *given)
    )
    assert verdict("CM-27") is Verdict.FAILS


# The readout.


def test_a_split_that_changes_the_result_is_seen(monkeypatch):
    real = readout.ridge

    def wrong(*given, split, **options):
        found = real(*given, split=split, **options)
        return dataclasses.replace(found, outgoing=found.outgoing * (1 + 1e-8)) if split else found

    monkeypatch.setattr(readout, "ridge", wrong)
    assert verdict("CM-23") is Verdict.FAILS


# The figures.


@pytest.mark.parametrize("module", [collapse, router_error], ids=["collapse", "router_error"])
def test_figures_show_something(module):
    dataset = module.FIGURE.compute(ClusterMoeSettings(), "quick")
    assert len(shown(module.FIGURE, dataset).panels) == {"collapse": 6, "router_error": 3}[module.FIGURE.id]


def test_the_collapse_is_marked_and_the_penalty_prevents_it():
    dataset = collapse.compute(ClusterMoeSettings(), "quick")
    met = dict(zip(dataset["case"].values.tolist(), dataset["collapse"].values.tolist(), strict=True))
    assert met["plain"] < 200 and met["noise"] < 200
    assert np.isnan(met["penalty"]) and np.isnan(met["noise and penalty"])
