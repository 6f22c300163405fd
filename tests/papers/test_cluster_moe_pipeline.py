"""All four phases: claims with a planted error for each, figures, what a run holds, and how it is resumed."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from papers.figures import shown

from tutelage._errors import BadInput
from tutelage._interrupt import Interrupted
from tutelage.analysis.claims import Verdict, mean_interval
from tutelage.dynamics import spherical
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.oracle.routing import passing
from tutelage.papers.cluster_moe import (
    certificate,
    explored,
    learned,
    presets,
    result,
    runs,
    second_layer,
    stages,
)
from tutelage.papers.cluster_moe.checks import pipeline as checks
from tutelage.papers.cluster_moe.evidence import Evidence
from tutelage.papers.cluster_moe.figures import errors, paper_size, recovered, specialisation, training
from tutelage.papers.cluster_moe.recipe import RECIPE
from tutelage.papers.cluster_moe.settings import ClusterMoeSettings
from tutelage.problem.units import Units
from tutelage.store.fetching import differences

TINY = ClusterMoeSettings(
    dim=8, experts=4, width=8, explore_samples=25_000, router_samples=5000, samples=25_000, late_samples=9000,
    ridge_samples=2000, test_samples=2000, vanilla_width=8, noise=2.0,
)  # fmt: skip
SEEDS = [0, 1]
CLAIMS = {claim.id: claim for claim in checks.CLAIMS}
QUICK, FULL = Evidence(), Evidence(size="full")


@pytest.fixture(scope="module")
def finished():
    """The run, without a store."""
    return RECIPE.run(TINY, seeds=SEEDS, record=8)


@pytest.fixture(scope="module")
def tiny(finished):
    return finished.dataset


def ideal(tiny):
    """The same Dataset with what the theorems promise: every expert is sharp and knows its two tasks."""
    data = tiny.copy(deep=True)
    data["router"].values[:] = 0.0
    data["router"].values[..., 3] = np.where(np.arange(4) % 2 == 0, 1.0, -1.0)
    data["routed"].values[:] = passing(data["router"].values[0], TINY.problem().inputs)
    data["sharp"].values[:] = True
    data["served"].values[:] = 1 + np.arange(4) % 2
    data["weights"].values[:] = 0.0
    for expert in range(4):  # neurons know their own task and the global one in turns
        data["weights"].values[:, expert, 0::2, expert % 2] = 1.0
        data["weights"].values[:, expert, 1::2, 2] = 1.0
    data["overlap"].values[:, -1] = data["weights"].values @ np.pad(TINY.problem().frame, ((0, 0), (0, 4))).T
    data["explore_overlap"].values[..., :3] = 0.1
    data["explore_overlap"].values[:, -1, :, 0, 0] = 0.8
    data["vanilla_overlap"].values[:, -1] = 0.05
    data["error"].values[:] = [[0.30, 0.70], [0.31, 0.72]]
    return data


@pytest.fixture
def planted(monkeypatch, tiny):
    """Claims look at the ideal Dataset, after a change."""
    data = ideal(tiny)
    monkeypatch.setattr(runs, "laboratory", lambda name, size: data)
    monkeypatch.setattr(runs, "configured", lambda name, size: TINY)
    return data


def verdict(id, evidence=QUICK):
    return CLAIMS[id].check(evidence).verdict


# The claims.

SOUND = [
    "CM-08", "CM-18:trained", "CM-22", "CM-22:mean", "CM-22:width", "CM-22:samples", "CM-25", "CM-MUST:experts",
    "CM-MUST:clusters", "CM-MUST:vanilla",
]  # fmt: skip


@pytest.mark.parametrize("id", SOUND)
def test_claims_hold_where_all_is_as_promised(planted, id):
    assert verdict(id) is Verdict.HOLDS


def test_ids_and_sentences():
    assert len(CLAIMS) == len(checks.CLAIMS)
    for claim in checks.CLAIMS:
        assert claim.statement.endswith(".") and claim.setting
        assert claim.explanation or claim.expected is Verdict.HOLDS


@pytest.mark.parametrize("id", [id for id in CLAIMS if id.endswith("lab_a")])
def test_what_takes_minutes_is_not_run_in_quick_size(id):
    assert verdict(id) is Verdict.NOT_REACHED


def test_the_other_laboratory_is_run_in_full_size(planted):
    assert verdict("CM-18:trained:lab_a", FULL) is Verdict.HOLDS


def test_a_right_definition_is_seen(planted):
    start = planted["explore_overlap"].values[:, 0]
    start[:, :, 1, 0] = 0.3  # Definition 4.7 names the first task, which then is the first to grow
    assert verdict("CM-07") is Verdict.HOLDS
    planted["explore_overlap"].values[:, -1, :, 0, 1] = 0.9
    assert verdict("CM-07") is Verdict.FAILS


@pytest.mark.parametrize("row", [1, 2], ids=["local", "global"])
def test_a_second_overlap_of_the_same_size_is_seen(planted, row):
    planted["explore_overlap"].values[1, -1, 2, 3, row] = 0.6
    assert verdict("CM-08") is Verdict.FAILS


def test_an_expert_that_learns_nothing_is_seen(planted):
    planted["explore_overlap"].values[0, -1, 3, 0, 0] = 0.4
    assert verdict("CM-08") is Verdict.FAILS


def test_a_cluster_without_an_expert_is_seen(planted):
    planted["sharp"].values[1, 1::2] = False
    assert verdict("CM-18:trained") is Verdict.FAILS
    assert verdict("CM-MUST:clusters") is Verdict.FAILS


def test_more_than_half_of_the_error_is_seen(planted):
    planted["error"].values[1, 0] = 0.4
    assert verdict("CM-22") is Verdict.FAILS
    assert verdict("CM-22:mean") is Verdict.NOT_REACHED
    planted["error"].values[:, 0] = 0.5, 0.51
    assert verdict("CM-22:mean") is Verdict.FAILS


@pytest.mark.parametrize(("id", "name"), [("CM-22:width", "by_width"), ("CM-22:samples", "by_samples")])
def test_errors_that_do_not_fall_are_seen(planted, monkeypatch, id, name):
    real = getattr(second_layer, name)(TINY, planted)
    monkeypatch.setattr(second_layer, name, lambda settings, data: real.copy(data=real.values[:, ::-1]))
    assert verdict(id) is Verdict.FAILS


def test_an_expert_that_misses_a_task_is_seen(planted):
    planted["overlap"].values[:, -1, 0, :, 2] = 0.5  # one of four, in both seeds
    assert verdict("CM-MUST:experts") is Verdict.FAILS
    assert verdict("CM-MUST:clusters") is Verdict.HOLDS  # another serves the same cluster
    planted["overlap"].values[:, -1, 2, :, 0] = 0.5
    assert verdict("CM-MUST:clusters") is Verdict.FAILS


def test_a_task_of_the_other_cluster_does_not_count(planted):
    planted["served"].values[:] = 2 - np.arange(4) % 2
    assert verdict("CM-MUST:experts") is Verdict.FAILS


def test_a_vanilla_network_that_learns_the_global_task_is_seen(planted):
    planted["vanilla_overlap"].values[1, -1, 3, 2] = -0.11
    assert verdict("CM-MUST:vanilla") is Verdict.FAILS


def test_changes_of_sign_are_seen(planted):
    for name in ("explore_overlap", "overlap"):
        planted[name].values[..., 3:] = 0.0
    assert verdict("CM-24:trained") is Verdict.HOLDS
    planted["overlap"].values[0, 2, 1, 0, 3:] = 0.34, -0.34  # rho |nu| > 1, where alpha_4 has changed its sign
    assert verdict("CM-24:trained") is Verdict.FAILS


@pytest.fixture
def wrong_step(monkeypatch):
    real = stages.Spherical
    monkeypatch.setattr(
        stages, "Spherical", lambda samples, step, *given, **more: real(samples, 1.001 * step, *given, **more)
    )


def test_a_wrong_step_is_seen(planted, wrong_step):
    assert verdict("CM-25") is Verdict.FAILS


def test_who_is_first_in_records():
    overlaps = np.zeros((3, 2, 2, 5))
    overlaps[0, :, 0, 0] = 0.2
    overlaps[1, 0, 1, 1], overlaps[2, 0, 0, 0] = -0.6, 0.9
    units = Units(jnp.ones((2, 2)), jnp.zeros((2, 2)), kind=stages.explorers(TINY, 0).units.kind)
    found = explored.trained(TINY, units, overlaps)
    assert found.first.neuron.tolist() == [1, -1] and found.first.cluster.tolist() == [1, -1]
    assert found.right(found.by_definition) == (0, 1)
    other, ratio = explored.alone(overlaps, 2).T
    assert other.tolist() == [0.0, np.inf] and ratio[0] == 0.0


def test_intervals_of_means_cover():
    # 2000 intervals of 95 % from 4 normals each: the covered share is within 4 standard errors with odds 1 : 16000.
    draws = np.random.default_rng(7).standard_normal((2000, 4))
    covered = np.mean([0.0 in mean_interval(row) for row in draws])
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)
    assert mean_interval([1.0]).high == np.inf


# The figures.

FIGURES = (
    (specialisation, specialisation.explored, ("Neurons that know a task, seed 0", "The same in 2 seeds")),
    (specialisation, specialisation.routing, ("Router and means, seed 0", "Routing probabilities, seed 0",
                                              "All seeds, every point an expert")),
    (recovered, recovered.sheet, 4),
    (training, training.sheet, ("Mixture: experts that are routed sharply", "Network without a router")),
    (errors, errors.sheet, ("By seed", "By cluster", "Mixture over network without a router")),
)  # fmt: skip


@pytest.mark.parametrize(("module", "sheet", "titles"), FIGURES, ids=["fig1a", "fig1b", "fig2", "training", "errors"])
def test_figures_show_something(tiny, module, sheet, titles):
    made = sheet(module.read_off(ideal(tiny), TINY))
    assert made.caption and "nan" not in made.caption
    seen = tuple(panel.title for panel in made.panels)
    assert seen == titles if isinstance(titles, tuple) else len(seen) == titles
    for panel in made.panels:
        assert panel.ylabel and (panel.xlabel or panel.names)
        for table in panel.fields:
            assert table.values.shape == (len(table.rows), len(table.columns)) and np.isfinite(table.values).all()
        assert panel.fields or all(np.isfinite(series.y).any() for series in panel.series)


def test_figures_of_overlaps_have_both_boundaries(tiny):
    made = training.sheet(training.read_off(ideal(tiny), TINY))
    for panel in made.panels:
        assert [mark.at for mark in panel.marks] == [0.025, 0.05] and panel.xlim == (0.0, 0.059)
    assert shown(dataclasses.replace(training.FIGURE), training.read_off(ideal(tiny), TINY))


def test_counts_of_the_first_figure(tiny):
    data = ideal(tiny)
    data["explore_overlap"].values[:] = 0.0
    data["explore_overlap"].values[:, 0, 1, 2, 1] = -0.3  # the threshold of expert 1
    data["explore_overlap"].values[:, 0, 1, 2, 2] = 0.9  # a global overlap is none
    data["explore_overlap"].values[:, -1, 1, :, 0] = -0.31, 0.29, 0.31, 0.1
    data["explore_overlap"].values[:, -1, 1, :, 2] = 0.5
    assert learned.exceeding(data, 4).values[0, :, 1].tolist() == [2, 0, 4]
    assert learned.exceeding(data, 3).values[0, :, 1].tolist() == [3, 0, 4]  # signed: the threshold is 0


def test_the_most_sharply_routed_are_shown(tiny):
    data = ideal(tiny)
    data["routed"].values[0] = [[0.9, 0.99, 0.97, 0.3], [0.1, 0.4, 0.2, 0.95]]
    assert learned.sharpest(data)[0].tolist() == [0, 3]  # not expert 1, which sees much of the other cluster too


def test_the_small_version_says_so(tiny, monkeypatch):
    small = ClusterMoeSettings(**TINY.model_dump() | {"vanilla_width": 0})
    monkeypatch.setattr(paper_size, "laboratory", lambda *given, **changes: ideal(tiny).isel(seed=[0]))
    monkeypatch.setattr(paper_size, "configured", lambda *given, **changes: small)
    for size, title in (("quick", "A small version of"), ("full", "The paper's experiment")):
        made = paper_size.sheet(paper_size.compute(small, size))
        assert made.title.startswith(title) and len(made.panels) == 6


def test_the_small_version_differs_in_size_only():
    small, full = (runs.configured("paper_fig1", size, **paper_size.CHANGES[size]) for size in ("quick", "full"))
    same = ("local", "shared", "interference", "means", "radius", "activation", "experts", "explore_width")
    assert all(getattr(small, name) == getattr(full, name) for name in same)
    assert (full.dim, full.width, full.explore_samples) == (200, 500, 3_500_000)


# A run's Dataset.


def test_what_a_run_holds(tiny, finished):
    frame = np.pad(TINY.problem().frame, ((0, 0), (0, 4)))
    assert np.allclose(tiny["overlap"].values[:, -1], tiny["weights"].values @ frame.T, atol=1e-14)
    assert np.allclose(tiny["explore_overlap"].values[:, -1], tiny["explore_weights"].values @ frame.T, atol=1e-14)
    assert tiny["row"].values.tolist() == ["w1", "w2", "wg", "v1", "v2"]
    assert tiny["expert_time"].values[-1] == TINY.samples + TINY.late_samples
    assert tiny["vanilla_time"].values[-1] == tiny["time"].values[-1] == 59_000
    for name in ("explore_time", "expert_time", "vanilla_time", "time"):
        assert np.all(np.diff(tiny[name].values) > 0), name
    assert np.allclose(tiny["routed"].sum("cluster"), 1.0)  # antipodal means, threshold 0
    assert np.array_equal(tiny["served"].values, 1 + tiny["routed"].values.argmax(1))
    assert np.all(tiny["zero"].values > 0) and tiny["network"].values.tolist() == ["moe", "vanilla"]
    # Errors of the whole are means over the clusters, whose parts of 2000 samples differ a little from one half.
    parts = tiny["error_by_cluster"].values
    assert np.all((parts.min(-1) <= tiny["error"].values) & (tiny["error"].values <= parts.max(-1)))
    assert result.numbers(tiny)["sharp_experts"] == tiny["sharp"].sum("expert").values.tolist()


def test_what_it_knows_of_tasks(tiny):
    last = learned.grown(tiny).isel(expert_time=-1)
    for seed, expert in np.ndindex(2, 4):
        best = np.abs(tiny["overlap"].values[seed, -1, expert, :, :3]).max(0)
        served = int(tiny["served"][seed, expert])
        found = [float(last[name][seed, expert]) for name in ("own", "other", "shared")]
        assert found == [best[served - 1], best[2 - served], best[2]]


def test_sharply():
    seen = np.array([[0.95, 0.95, 0.85, 0.02], [0.05, 0.2, 0.01, 0.97]])
    assert result.sharply(seen).tolist() == [True, False, False, True]


def test_what_the_paper_does_not_state():
    paper = ClusterMoeSettings(**presets.PRESETS["paper_fig1"])
    (sentence,) = presets.unstated(paper)
    assert "does not state" in sentence and f"{paper.explore_step:g}" in sentence
    assert presets.unstated(ClusterMoeSettings()) == []
    assert presets.unstated(ClusterMoeSettings(**presets.PRESETS["paper_fig1"] | {"dim": 100})) == []


# Taken up again.


class Stopper(Checkpoint):
    """Saves a run in the middle of a stage, and stops it there."""

    def __init__(self, path, stage):
        super().__init__(path, every=1e9)
        self.stage = stage

    def between(self, kept):
        here = kept.current
        if here.stage.name == self.stage and here.loop.position and not here.loop.over:
            kept.save(self.path)
            raise Interrupted("here")


@pytest.mark.parametrize("stage", ["explore", "experts"])
def test_a_run_that_was_stopped_goes_on_bit_by_bit(tmp_path, monkeypatch, tiny, stage):
    monkeypatch.setattr(spherical, "CHUNK", 1)
    path = tmp_path / "kept.npz"
    with pytest.raises(Interrupted):
        RECIPE.run(TINY, seeds=SEEDS, record=8, checkpoint=Stopper(path, stage))
    again = RECIPE.run(TINY, seeds=SEEDS, record=8, checkpoint=path)
    assert differences(again.dataset, tiny) == []


# The other ways to run.


@pytest.mark.parametrize("dim", [30, 10**9])
def test_in_expectation_at_any_dimension(dim):
    settings = ClusterMoeSettings(dim=dim, experts=2, explore_width=2, width=3, vanilla_width=6)
    data = RECIPE.run(settings, dynamics="flow", record=4).dataset
    assert np.abs(data["overlap"]).max() <= 1 + 1e-6
    start = np.abs(data["vanilla_overlap"].values[0, 0])
    assert 0.05 < np.median(start) * np.sqrt(dim) < 3  # of the order d^-1/2
    assert np.allclose(data["routed"].sum("cluster"), 1.0)
    # Every neuron has one local task that it can learn, and time enough. Nothing drives it to the global one, as ReLU
    # without biases at antipodal means has even coefficients: all that is orthogonal to w_1, w_2 and v is only scaled,
    # up to the length 1 at most. The tolerance is that of the integrator.
    assert np.all(np.abs(data["vanilla_overlap"].values[0, -1, :, :2]).max(-1) > 0.9)
    rest = np.sqrt(1 - np.sum(start[:, [0, 1, 3]] ** 2, axis=1))
    assert np.all(data["vanilla_largest"].values[0, :, 2] <= start[:, 2] / rest * (1 + 1e-6))


def test_a_run_in_expectation_is_kept_like_another(tmp_path):
    settings = ClusterMoeSettings(experts=2, explore_width=2, width=3, vanilla_width=6)
    asked = {"dynamics": "flow", "record": 4, "seeds": SEEDS, "store": tmp_path / "runs"}
    first, again = RECIPE.run(settings, **asked), RECIPE.run(settings, **asked)
    assert first.computed and not again.computed and first.summary()["id"] == again.summary()["id"]
    assert first.dataset.equals(again.dataset) and first.facts == again.facts
    with pytest.raises(BadInput, match="no samples to certify"):
        RECIPE.run(settings, certify=True, **asked | {"store": None})


@pytest.fixture
def fewer(monkeypatch):
    monkeypatch.setattr(certificate, "SAMPLES", checks.SAMPLES)  # programs for that many are compiled already


def test_a_run_is_certified(tiny, fewer):
    made = certificate.certify(TINY, tiny)
    assert made.ok and len(made.rows) == 3


def test_a_wrong_step_is_not_certified(tiny, fewer, wrong_step):
    made = certificate.certify(TINY, tiny)
    assert not made.ok
    assert [row.agrees for row in made.rows] == [False, False, True]
