"""Beyond the paper: each computation at a tiny size, with a fact that it must show. Seeds are fixed."""

from itertools import combinations

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from papers.figures import shown

from tutelage._errors import BadInput
from tutelage.oracle.routing import expected_router, passing
from tutelage.papers.cluster_moe import runs, stages
from tutelage.papers.cluster_moe.beyond import adapting, bench, exploring, many_clusters, pruning, upcycling
from tutelage.papers.cluster_moe.figures import beyond
from tutelage.papers.cluster_moe.figures.beyond import adaptive, clusters, exploration
from tutelage.papers.cluster_moe.figures.beyond import pruning as pruning_figure
from tutelage.papers.cluster_moe.figures.beyond import upcycling as upcycling_figure
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem.frame import stream as weights_of
from tutelage.problem.routers import Threshold, TopK

TINY = {
    "dim": 8,
    "experts": 4,
    "explore_width": 2,
    "width": 6,
    "explore_samples": 40_000,
    "router_samples": 2000,
    "samples": 20_000,
    "late_samples": 9000,
    "ridge_samples": 3000,
    "test_samples": 3000,
    "vanilla_width": 6,
}
SETTINGS = ClusterMoeSettings(**TINY)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """The quick laboratory is a tiny one, and nothing made of it is kept."""
    monkeypatch.setitem(runs.QUICK, "lab_b", runs.QUICK["lab_b"] | TINY)
    exploring.scratch.cache_clear()
    yield
    exploring.scratch.cache_clear()


@pytest.fixture(scope="module")
def learner():
    """Experts that have not learned, whose router is that of other experts."""
    scout = stages.explorers(SETTINGS, 0)
    theta = stages.expected(SETTINGS, scout.units, scout.first)
    return stages.hired(SETTINGS, 0, theta)


@pytest.fixture(scope="module")
def tried(learner):
    return bench.Bench(SETTINGS, 0, learner)


def test_a_bench_has_the_errors_of_phase_four(tried, learner):
    read = stages.read(SETTINGS, 0, learner)
    found = tried.tried(Threshold())
    # The same normal equations, summed in another order, with condition numbers below 1e5 (penalty 1e-4).
    assert found.errors[0] == pytest.approx(read.errors.absolute.value, rel=1e-9)
    assert found.idle == pytest.approx(read.errors.idle, abs=1e-12)


def test_a_bench_without_an_expert_is_a_router_that_never_picks_it(tried):
    sets = [(0, 1, 2, 3), (0, 2)]
    level = jnp.asarray([0.0, np.inf, 0.0, np.inf])
    by_set, by_level = tried.tried(Threshold(), sets), tried.tried(Threshold(level))
    assert by_set.errors[1] == pytest.approx(by_level.errors[0], rel=1e-9)
    # Fewer features never fit better.
    assert by_set.gains[0] > by_set.gains[1] > 0
    with pytest.raises(BadInput, match="empty"):
        tried.tried(Threshold(), [()])


def test_fixed_numbers_of_experts_are_active(tried):
    for k in (1, 3):
        found = tried.tried(TopK(k))
        assert (found.active, found.idle) == (k, 0.0)


def test_orders_of_removal():
    likeness = np.eye(4)
    for m, n, value in ((0, 1, 0.9), (1, 2, 0.5), (2, 3, 0.6)):
        likeness[m, n] = likeness[n, m] = value
    # 0 and 1 are most alike, and 1 is also like 2; then 2 and 3; ties go by number.
    assert pruning.by_likeness(likeness) == [1, 2, 0]
    worth = {0: 4.0, 1: 1.0, 2: 3.0, 3: 2.0}
    sets = [each for size in range(1, 5) for each in combinations(range(4), size)]
    gains = {each: sum(worth[m] for m in each) for each in sets}
    assert pruning.by_gain(gains) == [1, 3, 2]
    assert pruning.path([1, 3, 2], gains) == [4.0, 7.0, 9.0, 10.0]


@pytest.mark.parametrize(
    ("errors", "least"), [([3.0, 1.05, 1.0, 1.0], 2), ([1.05, 1.2, 1.0], 3), ([2.0, 2.0, 1.0], 3), ([1.0], 1)]
)
def test_enough_experts(errors, least):
    assert pruning.enough(np.array(errors)) == least


def test_pruning_shows_every_set():
    dataset = pruning.pruned("quick")
    sheet = pruning_figure.FIGURE.sheet(dataset)
    assert "nan" not in sheet.caption and sheet.panels[0].fields[0].values.shape == (4, 4)
    for name in ("redundancy", "fit", "random"):
        assert (dataset["best"] <= dataset[name] + 1e-12).all() and (dataset[name] <= dataset["worst"] + 1e-12).all()
    # All experts are one set, and have the error of the laboratory itself.
    whole = runs.laboratory("lab_b", "quick")["error"].sel(network="moe")
    np.testing.assert_allclose(dataset["random"].isel(kept=-1), whole, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(dataset["likeness"].isel(seed=0)), 1.0)


def test_a_higher_level_leaves_fewer_experts(monkeypatch):
    monkeypatch.setitem(adapting.LEVELS, "quick", (-20.0, -1.0, 0.0, 1.0, 20.0))
    dataset = adapting.adapted("quick")
    shown(adaptive.FIGURE, dataset)
    active, idle = dataset["level_active"], dataset["level_idle"]
    assert (active.diff("level") <= 0).all() and (idle.diff("level") >= 0).all()
    # Scores are within 3 + 6 standard deviations of zero: level -20 is all experts, level 20 none.
    assert (active.isel(level=0) == 4).all() and (idle.isel(level=-1) == 1).all()
    np.testing.assert_allclose(dataset["level_error"].isel(level=0), dataset["k_error"].sel(k=4), rtol=1e-9)
    # Half of all experts are active at level 0: scores of antipodal clusters have opposite signs.
    np.testing.assert_allclose(active.sel(level=0.0), 2.0, atol=0.2)


def test_exploration_ends_where_the_laboratory_does(monkeypatch):
    monkeypatch.setitem(exploring.BATCHES, "quick", (2000,))
    monkeypatch.setitem(exploring.RECORDS, "quick", 3)
    dataset = exploring.scratch("quick")
    shown(exploration.FIGURE, dataset)
    run = runs.laboratory("lab_b", "quick")
    inputs = SETTINGS.problem().inputs
    for seed in (0, 1):
        seen = passing(run["router_expected"].sel(seed=seed).values, inputs)
        # Samples are functions of their numbers: the same weights but for a laboratory's own settings of records.
        np.testing.assert_allclose(dataset["seen"].isel(seed=seed, time=-1).sel(batch=0), seen, atol=1e-9)
    assert (dataset["miss"].sel(batch=0) == 0).all() and (dataset["miss"].sel(batch=2000) > 0).all()


def test_aim_is_zero_by_chance_and_one_at_best():
    draw = np.random.default_rng(0)
    seen, knows = draw.uniform(size=(2000, 3, 8)), draw.uniform(size=(3, 8))
    # 16000 numbers of standard deviation sqrt(1/12 + 1/24) = 0.35: the mean is within 5 standard errors, 0.014.
    assert abs(exploring.aimed(seen, knows).mean()) < 0.014
    better = np.argmax(knows - knows.mean(axis=1, keepdims=True), axis=0)
    np.testing.assert_array_equal(exploring.aimed(np.eye(3)[better].T, knows), np.ones(8))


def test_the_saving_is_the_shift_between_two_lines():
    times, later = np.geomspace(1e4, 1e6, 9), np.geomspace(1e3, 1e5, 5)
    aims = {"scratch": 0.1 * np.log(times), "copied": 0.1 * np.log(8 * later)}
    dataset = xr.Dataset(
        {
            "scratch_aim": (("seed", "scratch_time"), aims["scratch"][None]),
            "copied_aim": (("seed", "copied_time", "shake", "deal"), aims["copied"][None, :, None, None]),
            "continued_aim": (("seed", "continued_time"), np.zeros((1, 1))),
        },
        {"scratch_time": times, "copied_time": later, "continued_time": [1.0], "shake": [upcycling.SHAKEN]},
    )
    assert upcycling_figure.saving(dataset) == pytest.approx(8.0, rel=1e-9)


def test_the_same_copies_have_no_router_and_dealt_ones_have():
    units, first = stages.vanilla(SETTINGS, 0).units, np.asarray(stages.vanilla(SETTINGS, 0).first)
    mine, rows = upcycling.dealt(SETTINGS, units, first, 0.0, weights_of(0, 1))
    assert rows.shape == (4, 2, 8)
    # Without a perturbation every neuron is one of the network's, with its own sign.
    match = np.einsum("mjd,kd->mjk", rows, first[0])
    place = match.argmax(axis=-1)
    np.testing.assert_allclose(match.max(axis=-1), 1.0)
    np.testing.assert_array_equal(mine.outgoing, np.asarray(units.outgoing)[0][place])
    assert all(len(set(each)) == 2 for each in place.tolist())
    sizes = np.linalg.norm(expected_router(SETTINGS.problem(), mine, rows), axis=1)
    same_units = type(mine)(jnp.tile(mine.outgoing[:1], (4, 1)), jnp.tile(mine.bias[:1], (4, 1)), kind=mine.kind)
    same = expected_router(SETTINGS.problem(), same_units, np.tile(rows[:1], (4, 1, 1)))
    # Equal numbers minus their mean: rounding only.
    assert np.abs(same).max() < 1e-14 * sizes.max() + 1e-18
    assert sizes.min() > 0


def test_perturbed_copies_keep_their_direction_in_part():
    units, first = stages.vanilla(SETTINGS, 0).units, np.asarray(stages.vanilla(SETTINGS, 0).first)
    _, plain = upcycling.dealt(SETTINGS, units, first, 0.0, weights_of(0, 1))
    places = [np.linalg.norm(first[0] - row, axis=1).argmin() for row in plain.reshape(-1, 8)]
    _, shaken = upcycling.dealt(SETTINGS, units, first, 1e-3, weights_of(0, 1))
    moved = np.linalg.norm(shaken.reshape(-1, 8) - first[0][places], axis=1)
    # Gaussian of expected squared length 1: lengths are 0.3 to 2 in 8 dimensions, but for one in a million.
    assert (moved > 2e-4).all() and (moved < 2.5e-3).all()
    with pytest.raises(BadInput, match="wider"):
        upcycling.dealt(SETTINGS.model_copy(update={"explore_width": 7}), units, first, 0.0, weights_of(0, 1))


def test_upcycling_counts_the_samples_of_the_dense_network(monkeypatch):
    for module in (exploring, upcycling):
        monkeypatch.setitem(module.RECORDS, "quick", 3)
    monkeypatch.setitem(exploring.BATCHES, "quick", ())
    monkeypatch.setitem(upcycling.DEALS, "quick", 2)
    monkeypatch.setattr(upcycling, "DENSE", 1.0)
    dataset = upcycling_figure.compute(SETTINGS, "quick")
    shown(upcycling_figure.FIGURE, dataset)
    assert dataset["copied_time"][-1] == 40_000
    place = int(np.searchsorted(dataset["copied_time"], 20_000))
    assert dataset["continued_time"][0] == dataset["copied_time"][place]
    assert np.abs(dataset["scratch_aim"]).max() <= 1


def test_threshold_zero_mixes_clusters_and_the_highest_score_does_not(monkeypatch):
    monkeypatch.setattr(many_clusters, "COUNTS", (2, 3))
    monkeypatch.setitem(many_clusters.SEEDS, "quick", 2)
    sizes = (3, 8, 2, 20_000, 9000, 9000, 4, 1000, 1000)
    monkeypatch.setattr(many_clusters, "PIPE", dict(zip(many_clusters.PIPE, sizes, strict=True)))
    flown = clusters.compute(SETTINGS, "quick")
    shown(clusters.FIGURE, flown)
    both = clusters.with_sgd(flown, many_clusters.learned())
    assert len(shown(clusters.FIGURE, both).panels) == 4
    assert (both["sgd_error"] > 0).all() and (both["sgd_active"].sel(router="top 4") == 4).all()
    mean = flown.mean("seed")
    # Of three orthogonal means an expert is positive for one or two: the part of its main one is between 1/2 and 1.
    assert float(mean["pure"].sel(router="threshold 0", clusters=3)) < 0.8
    assert float(mean["pure"].sel(router="top 1", clusters=3)) > 0.85
    assert float(mean["sharp"].sel(router="threshold 0", clusters=2)) > 0.5
    assert (flown["active"].sel(router="top 1") == 1).all()


def test_clusters_that_are_not_there_do_not_count():
    two, padded = many_clusters.of_clusters(2, 30), many_clusters.of_clusters(2, 30, among=3)
    assert padded.experts == 12 and sum(padded.interference) == 0
    # The weight of the third is 1e-15: its labels and its mean do not matter to rounding.
    units, first = two.law(explore=True).draw(np.random.default_rng(0), 30)
    frame = two.problem().frame, padded.problem().frame
    overlaps = first[..., : frame[0].shape[1]] @ frame[0].T  # w1 w2 wg v1 v2
    wide = np.zeros((*first.shape[:2], 30))
    order = [0, 1, 3, 4, 5]  # where these rows are among w1 w2 w3 wg v1 v2 v3
    wide[..., order] = overlaps
    left = np.sqrt(1 - np.sum(wide**2, axis=-1))
    wide[..., 20] = left
    narrow = np.zeros_like(wide)
    narrow[..., :5], narrow[..., 20] = overlaps, left
    thin, thick = expected_router(two.problem(), units, narrow), expected_router(padded.problem(), units, wide)
    np.testing.assert_allclose(thick[:, order], thin[:, :5], atol=1e-13)


def test_three_clusters_interfere_with_sum_zero():
    assert many_clusters.of_clusters(5, 50).interference == (1.0, -1.0, 1.0, -1.0, 0.0)


def test_every_figure_is_listed():
    assert {each.id for each in beyond.FIGURES} == {
        f"beyond_{name}" for name in ("exploration", "upcycling", "pruning", "adaptive", "clusters")
    }
    assert all(each.ours for each in beyond.FIGURES)
