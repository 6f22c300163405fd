"""Theorem 4.6 as rates, and laboratories with one assumption changed: formulas, claims with planted errors, figures."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from papers.figures import shown
from scipy import special

from tutelage.analysis.claims import Verdict
from tutelage.oracle import ClusterOracle
from tutelage.papers.cluster_moe import rates, runs, variants
from tutelage.papers.cluster_moe.checks import rates as rate_checks
from tutelage.papers.cluster_moe.checks import variants as variant_checks
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.figures import rates as rate_figure
from tutelage.papers.cluster_moe.figures import variants as variant_figure
from tutelage.papers.cluster_moe.rates import Rate
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem import Experts

QUICK = Evidence()
CLAIMS = {claim.id: claim for claim in (*rate_checks.CLAIMS, *variant_checks.CLAIMS)}


def verdict(id):
    return CLAIMS[id].check(QUICK).verdict


def power(exponent, spread=0.01):
    """Errors of four seeds that are a power of the size."""
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    noise = np.random.default_rng(46).normal(0, spread, (4, 4))
    return Rate(sizes, 0.1 * sizes**exponent * np.exp(noise))


def test_exponents_of_powers():
    rate = power(-0.7, spread=0.0)
    assert np.allclose(rate.slopes, -0.7, atol=1e-12) and rate.exponent == pytest.approx(-0.7)
    assert abs(rate.interval.high - rate.interval.low) < 1e-9


# What the claims look at, an exponent at which they hold, and one at which they fail.
PLANTED = {
    "CM-22:width": ("by_width", -1.2, -0.8),
    "CM-22:samples": ("by_samples", -0.5, -0.3),
    "CM-22:late": ("by_late", -0.45, -0.2),
    "CM-C28": ("by_slip", 1.2, 0.5),
    "CM-22:dim": ("by_dim", -0.2, 0.2),
}


@pytest.mark.parametrize("id", PLANTED)
def test_other_exponents_are_seen(monkeypatch, id):
    name, right, wrong = PLANTED[id]
    monkeypatch.setattr(rates, name, lambda size: power(right))
    found = CLAIMS[id].check(QUICK)
    assert found.verdict is Verdict.HOLDS and all(each.met for each in found.hypotheses)
    monkeypatch.setattr(rates, name, lambda size: power(wrong))
    assert verdict(id) is Verdict.FAILS


@pytest.mark.parametrize(
    ("id", "factor", "expected"), [("CM-C28:mended", 1.1, Verdict.HOLDS), ("CM-C28:mended", 0.9, Verdict.FAILS)]
)
def test_errors_below_the_least_are_seen(monkeypatch, id, factor, expected):
    slips = np.array([0.01, 0.04])
    errors = factor * rates.least_square(slips) * (1 + 0.01 * np.arange(4)[:, None])
    monkeypatch.setattr(rates, "squares", lambda size: Rate(slips, errors))
    assert verdict(id) is expected


def test_hypotheses_that_are_not_met_are_seen(monkeypatch):
    monkeypatch.setattr(rates, "by_width", lambda size: power(-1.2))
    monkeypatch.setattr(rates, "laboratory", lambda: ClusterMoeSettings(interference=(1.0, -0.5)))
    assert verdict("CM-22:width") is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("id", ["CM-22:late", "CM-22:dim"])
def test_signs_that_change_in_training_are_seen(monkeypatch, id):
    name, right, _ = PLANTED[id]
    for share, expected in ((0.0, Verdict.HOLDS), (0.01, Verdict.NOT_APPLICABLE)):
        monkeypatch.setattr(rates, name, lambda size, share=share: power(right)._replace(flipped=share))
        found = CLAIMS[id].check(QUICK)
        assert found.verdict is expected and found.hypotheses[-1].measured == share


def test_placed_neurons_are_where_they_should_be():
    settings = rates.laboratory(width=6, dim=12)
    learner = rates.placed(settings, seed=3, slip=0.1)
    rows, frame = np.asarray(learner.first), np.pad(settings.problem().frame, ((0, 0), (0, 8)))
    overlaps = rows @ frame.T
    assert np.allclose(np.linalg.norm(rows, axis=-1), 1)
    for expert in range(settings.experts):
        for neuron in range(settings.width):
            task = expert % 2 if neuron % 2 == 0 else 2
            wanted = np.zeros(5)
            wanted[task] = 0.9
            assert np.allclose(overlaps[expert, neuron], wanted, atol=1e-12)
    # Each is pulled to its own task by the samples of its expert's cluster.
    for expert, served in enumerate([[1.0, 0.0], [0.0, 1.0]]):
        oracle = ClusterOracle(settings.problem()).served(jnp.asarray(served))
        units = learner.units.expert(expert)
        force = np.asarray(oracle.field(units, jnp.asarray(overlaps[expert])).force)
        assert np.all(force[0::2, expert] > 0) and np.all(force[1::2, 2] > 0)


def test_misses_are_at_least_what_no_second_layer_can_mend():
    """1 - (1 - epsilon)^(2 k) of the variance of both tasks, less what is cut off where biases end (a tenth)."""
    missed, least = rates._squared(rates._ALONE, 0, 0.05), rates.least_square(np.array(0.05))
    assert least == pytest.approx(2 * (1 - 0.95**8)) and 0.9 * least < missed < 1.5 * least


def test_scaled_laboratories():
    assert rates.of_dim(20)["explore_step"] == 1.3e-3
    small, large = (rates.of_dim(dim) for dim in (10, 20))
    assert small["step"] / large["step"] == pytest.approx(4)
    assert large["samples"] / small["samples"] == pytest.approx(8)
    assert large["router_samples"] == 2 * small["router_samples"]


def test_the_figure_of_rates(monkeypatch):
    for name in rate_figure.LAWS:
        monkeypatch.setattr(rates, f"by_{name}", lambda size: power(-0.5))
    made = rate_figure.sheet(rate_figure.compute(ClusterMoeSettings(), "quick"))
    assert len(made.panels) == 5 and "nan" not in made.caption
    for panel in made.panels:
        assert np.allclose(panel.series[1].y, 0.1 * panel.series[1].x ** -0.5, rtol=0.05)
        assert panel.series[2].dash == "dashed" and panel.series[2].y[0] == panel.series[1].y[0]


# Variants.


def fake(name, size, ratio=0.5, seeds=4):
    """What is looked at of a run."""
    spread = np.linspace(-0.01, 0.01, seeds)
    errors = np.stack([0.7 * (ratio + spread), np.full(seeds, 0.7)], axis=1)
    names = {"network": ["moe", "vanilla"], "seed": np.arange(seeds)}
    data = xr.Dataset({"error": (("seed", "network"), errors)}, coords=names)
    data["zero"] = (("seed", "network"), np.full((seeds, 2), 0.8))
    data["sharp"] = (("seed", "expert"), np.ones((seeds, 8), bool))
    overlaps = np.full((seeds, 3, 5, 5), 0.1)
    overlaps[:, -1, 0, 2] = -0.8
    axes = ("seed", "vanilla_time", "vanilla_unit", "row")
    return data.assign(vanilla_overlap=(axes, overlaps)).assign_coords(row=["w1", "w2", "wg", "v1", "v2"])


@pytest.mark.parametrize("id", ["CM-22:biases", "CM-22:orthogonal", "CM-22:noise", "CM-22:correlated", "CM-22:slanted"])
def test_a_mixture_that_is_no_better_is_seen(monkeypatch, id):
    monkeypatch.setattr(variants, "trained", fake)
    assert verdict(id) is Verdict.HOLDS
    monkeypatch.setattr(variants, "trained", lambda name, size: fake(name, size, ratio=1.1))
    assert verdict(id) is Verdict.FAILS


def test_who_learns_what():
    data = fake("plain", "quick")
    assert variants.global_shares(data).tolist() == [0.2] * 4 and variants.sharp_shares(data).tolist() == [1.0] * 4


def test_a_negligible_slant_is_seen(monkeypatch):
    assert verdict("CM-33:slant") is Verdict.FAILS
    monkeypatch.setattr(variants, "perturbation", lambda dim: dim**-0.5)
    assert verdict("CM-33:slant") is Verdict.HOLDS


def test_the_force_with_products_of_tasks_and_means():
    """Against samples of correlated tasks and slanted means: 27 numbers within 5 standard errors, odds 1 : 60,000."""
    settings, draw, count = ClusterMoeSettings(dim=9, slant=0.3, correlation=0.25), np.random.default_rng(46), 400_000
    problem = settings.problem()
    frame = np.pad(problem.frame, ((0, 0), (0, 9 - problem.frame.shape[1])))
    units, first = Experts(1, 3, "relu").draw(draw, 9)
    cluster = draw.integers(0, 2, count)
    inputs = draw.standard_normal((count, 9)) + settings.radius * frame[3:][cluster]
    own, other, common = (special.eval_hermitenorm(4, inputs @ row) / np.sqrt(24) for row in frame[:3])
    labels = np.where(cluster == 0, own + common, -other - common)
    force = np.asarray(ClusterOracle(problem).field(units, jnp.asarray(first @ frame.T)).force)[0]
    for row, outgoing, along in zip(first[0], np.asarray(units.outgoing)[0], force, strict=True):
        tangent = np.eye(9) - np.outer(row, row)
        pulls = (labels * outgoing * (inputs @ row > 0))[:, None] * inputs @ tangent
        off = pulls.mean(0) - along @ frame @ tangent
        assert np.all(np.abs(off) < 5 * pulls.std(0) / np.sqrt(count))
        assert np.any(np.abs(pulls.mean(0)) > 20 * pulls.std(0) / np.sqrt(count))


def test_a_slant_weighs_the_same_at_every_dimension():
    """Order 1 of the shifted task is rho^3 d^(-3/2), and so is the force of order 4 but for the rho."""
    far, farther = variants.perturbation(10**6), variants.perturbation(10**8)
    assert far == pytest.approx(farther, rel=0.01) and far > 10


def test_a_router_that_no_radius_helps_is_seen(monkeypatch):
    shares = np.array([[[0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [1.0], [1.0]]] * 2)
    monkeypatch.setattr(variants, "by_radius", lambda size: shares)
    assert verdict("CM-32:radius") is Verdict.HOLDS
    for place, value in ((1, 0.2), (5, 0.5)):  # sharp at rho = 1, or not at 3
        wrong = shares.copy()
        wrong[1, place] = value
        monkeypatch.setattr(variants, "by_radius", lambda size, wrong=wrong: wrong)
        assert verdict("CM-32:radius") is Verdict.FAILS


def test_in_expectation_the_radius_decides():
    assert variants.most_routed(1.0) == pytest.approx(special.ndtr(1.0))
    assert variants._sharp(10**4, 1.0, "quick").tolist() == [0.0]
    assert variants._sharp(10**4, 3.0, "quick").tolist() == [1.0]


def test_settings_of_variants():
    plain = variants.settings_of("plain", "quick")
    changed = {name: variants.settings_of(name, "quick") for name in variants.VARIANTS}
    assert changed["correlated"].correlation == changed["slanted"].slant == plain.dim**-0.5
    assert changed["noise"].noise == changed["biases"].bias == 1.0 and changed["orthogonal"].means == "orthogonal"
    assert runs.configured("lab_b", "quick", **variants.SIZES["full"]).dim == 20


def test_the_figure_of_variants(monkeypatch):
    monkeypatch.setattr(variants, "trained", lambda name, size: fake(name, size, seeds=variants.VARIANTS[name].seeds))
    monkeypatch.setattr(variants, "by_radius", lambda size: np.ones((2, 8, 1)))
    data = variant_figure.compute(ClusterMoeSettings(), "quick")
    made = variant_figure.sheet(data)
    assert len(made.panels) == 3 and "nan" not in made.caption and "4 to 8 seeds" in made.caption
    assert made.panels[0].names == tuple(variants.VARIANTS)
    assert sum(len(series.x) for series in made.panels[0].series[:1]) == 8 + 8 + 4 * 4
    assert shown(variant_figure.FIGURE, data)
