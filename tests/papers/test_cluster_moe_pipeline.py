"""All four phases: claims with a planted error for each, figures, what a run holds, and how it is resumed."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
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
    stages,
)
from tutelage.papers.cluster_moe.checks import experiment
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
CLAIMS = {claim.id: claim for claim in (*checks.CLAIMS, *experiment.CLAIMS)}
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
    for name in ("explore_overlap", "overlap"):  # no shift by a mean turns a coefficient around
        data[name].values[..., 3:] = 0.0
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

LABS = ("CM-08", "CM-22", "CM-22:clusters", "CM-11:forgets")
EXPERIMENT = [f"CM-EXP:{part}{kind}" for part in ("router", "experts", "error") for kind in ("", ":mended")]


@pytest.mark.parametrize("id", [*LABS, *(f"{id}:lab_a" for id in LABS), "CM-25", *EXPERIMENT])
def test_claims_hold_where_all_is_as_promised(planted, id):
    assert verdict(id, FULL) is Verdict.HOLDS


def test_ids_and_sentences():
    assert len(CLAIMS) == len(checks.CLAIMS) + len(experiment.CLAIMS)
    for claim in CLAIMS.values():
        assert claim.statement.endswith(".") and claim.setting
        assert claim.explanation or claim.expected is Verdict.HOLDS


@pytest.mark.parametrize("id", [id for id in CLAIMS if id.endswith("lab_a") or id in EXPERIMENT])
def test_what_takes_minutes_is_not_run_in_quick_size(id):
    assert verdict(id) is Verdict.NOT_REACHED


# What of the ideal Dataset is changed, and the verdict after it.


def wrong_starts(data):
    data["explore_overlap"].values[:, -1, :, 0, 1] = 0.9  # and Definition 4.7 names the first task


def right_starts(data):
    data["explore_overlap"].values[:, 0, :, 1, 0] = 0.3
    data["explore_overlap"].values[:, -1, :, 0, 1] = 0.1


def another_as_large(data):
    data["explore_overlap"].values[1, -1, 2, 3, 2] = 0.6


def nobody_for_a_cluster(data):
    data["sharp"].values[1, 1::2] = False


def large_errors(data):
    data["error"].values[:, 0] = 0.5, 0.51


def no_global_task(data):
    data["overlap"].values[:, -1, 0::2, :, 2] = 0.5


def a_global_task(data):
    data["vanilla_overlap"].values[1, -1, 3, 2] = -0.11


def signs_change(data):
    data["overlap"].values[0, 2, 1, 0, 3:] = 0.34, -0.34  # rho |nu| > 1, where alpha_4 has changed its sign


PLANTED = {
    **dict.fromkeys(("CM-08", "CM-08:lab_a"), another_as_large),
    **dict.fromkeys(("CM-EXP:router", "CM-EXP:router:mended"), nobody_for_a_cluster),
    **dict.fromkeys(("CM-22", "CM-22:lab_a", "CM-EXP:error", "CM-EXP:error:mended"), large_errors),
    **dict.fromkeys(("CM-22:clusters", "CM-22:clusters:lab_a"), no_global_task),
    **dict.fromkeys(("CM-EXP:experts", "CM-EXP:experts:mended"), no_global_task),
    **dict.fromkeys(("CM-11:forgets", "CM-11:forgets:lab_a"), a_global_task),
    **dict.fromkeys(("CM-24:trained", "CM-24:trained:lab_a"), signs_change),
}


@pytest.mark.parametrize("id", PLANTED)
def test_planted_errors_are_seen(planted, id):
    assert verdict(id, FULL) is Verdict.HOLDS
    PLANTED[id](planted)
    assert verdict(id, FULL) is Verdict.FAILS


@pytest.mark.parametrize("id", ["CM-07", "CM-07:lab_a"])
def test_a_right_definition_is_seen(planted, id):
    right_starts(planted)
    planted["explore_overlap"].values[:, -1, :, 1, 0] = 0.9
    many = xr.concat([planted] * 100, "seed").assign_coords(seed=[0, 1] * 100)  # eight cannot tell 0.99
    assert CLAIMS[id].check.__closure__ is not None
    lab = checks.Lab(TINY, many)
    assert checks.definition_foretells(lab).verdict is Verdict.HOLDS
    wrong_starts(many)
    assert checks.definition_foretells(lab).verdict is Verdict.FAILS


@pytest.mark.parametrize("id", ["CM-18:trained", "CM-18:trained:lab_a"])
def test_clusters_that_nobody_serves_are_seen(planted, monkeypatch, id):
    assert verdict(id, FULL) is Verdict.UNDECIDED  # two seeds cannot tell 0.9
    many = xr.concat([planted] * 30, "seed").assign_coords(seed=[0, 1] * 30)
    monkeypatch.setattr(runs, "laboratory", lambda name, size: many)
    assert verdict(id, FULL) is Verdict.HOLDS
    many["sharp"].values[1::2, 1::2] = False  # the second cluster of every second seed
    assert verdict(id, FULL) is Verdict.FAILS


UNDER = ("CM-07", "CM-08", "CM-18:trained", "CM-22:experts")


@pytest.mark.parametrize("id", [*UNDER, *(f"{id}:lab_a" for id in UNDER)])
def test_what_a_theorem_assumes_is_asked_for(planted, monkeypatch, id):
    """A sign that changes in either phase, or k = 3, and its lemmas say nothing."""
    assert all(each.met for each in CLAIMS[id].check(FULL).hypotheses)
    untouched = planted.copy(deep=True)
    for name in ("explore_overlap", "overlap"):
        planted[name].values[0, 1, 1, 0, 3:] = 0.34, -0.34
        assert verdict(id, FULL) is Verdict.NOT_APPLICABLE
        planted[name].values[:] = untouched[name].values
    assert verdict(id, FULL) is not Verdict.NOT_APPLICABLE
    for changes in ({"radius": 0.5}, {"interference": (1.0, -0.5)}):
        monkeypatch.setattr(runs, "configured", lambda name, size, more=changes: TINY.model_copy(update=more))
        assert verdict(id, FULL) is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("id", ["CM-22:experts", "CM-22:experts:lab_a"])
def test_experts_that_miss_a_task_are_seen(planted, monkeypatch, id):
    many = xr.concat([planted] * 20, "seed").assign_coords(seed=[0, 1] * 20)
    monkeypatch.setattr(runs, "laboratory", lambda name, size: many)
    assert verdict(id, FULL) is Verdict.HOLDS
    many["overlap"].values[:, -1, :3, :, 2] = 0.5  # three of four
    assert verdict(id, FULL) is Verdict.FAILS
    many["served"].values[:] = 2 - np.arange(4) % 2  # a task of the other cluster does not count
    assert verdict(id, FULL) is Verdict.FAILS
    many["sharp"].values[:] = False
    assert verdict(id, FULL) is Verdict.NOT_REACHED


@pytest.mark.parametrize("id", ["CM-11:trained", "CM-11:trained:lab_a"])
def test_an_overlap_on_the_way_is_seen(planted, monkeypatch, id):
    assert verdict(id, FULL) is Verdict.NOT_APPLICABLE  # k = 4
    six = TINY.model_copy(update={"local": ({6: 1.0}, {6: -1.0}), "shared": {6: 1.0}, "dim": 400})
    monkeypatch.setattr(runs, "configured", lambda name, size: six)
    planted["vanilla_overlap"].values[..., 2] = 0.05
    assert verdict(id, FULL) is Verdict.HOLDS
    planted["vanilla_overlap"].values[0, 2, 1, 2] = 0.3  # not at the end
    assert verdict(id, FULL) is Verdict.FAILS


def test_an_expert_that_learns_nothing_is_seen(planted):
    planted["explore_overlap"].values[0, -1, 3, 0, 0] = 0.4
    assert verdict("CM-08") is Verdict.FAILS


def test_a_smaller_step_keeps_what_is_learned(monkeypatch):
    readings = {"units of the lowest order": experiment.READINGS["a eps h_3"]}
    monkeypatch.setattr(experiment, "READINGS", readings)
    assert verdict("CM-EXP:step") is Verdict.FAILS
    monkeypatch.setitem(experiment.STATED, "step", 2e-6)  # the last one of the mended preset
    assert verdict("CM-EXP:step") is Verdict.HOLDS


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
    (specialisation, specialisation.routing, ("Router and means, seed 0", "Routing probabilities, seed 0",
                                              "All seeds, every point an expert")),
    (recovered, recovered.sheet, 4),
    (training, training.sheet, ("Mixture: experts that are routed sharply", "Network without a router")),
    (errors, errors.sheet, ("By seed", "By cluster", "Mixture over network without a router")),
)  # fmt: skip


@pytest.mark.parametrize(("module", "sheet", "titles"), FIGURES, ids=["fig1b", "fig2", "training", "errors"])
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


@pytest.fixture
def small_paper(tiny, monkeypatch):
    """The paper's experiment is the tiny Dataset."""
    small = ClusterMoeSettings(**TINY.model_dump() | {"vanilla_width": 0})
    for module in (paper_size, specialisation):
        monkeypatch.setattr(module, "laboratory", lambda *given: ideal(tiny).isel(seed=[0]))
        monkeypatch.setattr(module, "configured", lambda *given: small)


def test_the_small_version_says_so(small_paper):
    for figure in paper_size.FIGURES:
        for size, title in (("quick", "A small version of"), ("full", "The paper's experiment")):
            made = figure.sheet(figure.compute(TINY, size))
            assert made.title.startswith(title) and len(made.panels) == 6
            assert ("mended" in made.title) == figure.id.endswith("mended")


def test_the_first_figure_is_of_the_paper(small_paper):
    figure = specialisation.FIGURES[0]
    made = figure.sheet(figure.compute(TINY, "quick"))
    titles = [panel.title for panel in made.panels]
    assert titles == ["Neurons that know a task: as stated", "Neurons that know a task: mended"]
    assert all(panel.fields[0].values.shape == (3, 4) for panel in made.panels)


def test_the_small_version_differs_in_size_only():
    small, full = (runs.configured("paper_fig1", size) for size in ("quick", "full"))
    same = ("local", "shared", "interference", "means", "radius", "activation", "bias", "experts", "average_ties")
    assert all(getattr(small, name) == getattr(full, name) for name in same)
    for settings in (small, full):  # learning rate 1
        assert settings.explore_step == 1 / (settings.experts * settings.explore_width)
        assert settings.step == settings.late_step == 1 / settings.width
    assert (full.dim, full.width, full.explore_width, full.router_steps) == (200, 500, 500, 300)
    assert (full.explore_samples, full.samples + full.late_samples) == (3_500_000, 10_000_000)
    mended = runs.configured("paper_fig1_mended", "full")
    assert set(presets.changed(mended)) == {"explore_step", "router_steps", "step", "late_step"}


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
    assert "does not state" in sentence and "paper_fig1_mended" in sentence
    (sentence,) = presets.unstated(ClusterMoeSettings(**presets.PRESETS["paper_fig1_mended"]))
    assert "router_steps 1 for 300" in sentence and "step 2e-05 for 0.002" in sentence
    assert presets.unstated(ClusterMoeSettings()) == []
    assert presets.unstated(ClusterMoeSettings(**presets.PRESETS["paper_fig1"] | {"dim": 100})) == []


def test_tasks_and_means_with_given_products():
    frame = ClusterMoeSettings(correlation=0.2, slant=0.1).problem().frame
    wanted = np.eye(5)
    wanted[:3, :3] += 0.2 * (1 - np.eye(3))
    wanted[:3, 3:] = 0.1, -0.1
    wanted[3:, :3] = wanted[:3, 3:].T
    wanted[3, 4] = wanted[4, 3] = -1.0
    assert np.allclose(frame @ frame.T, wanted, atol=1e-14)
    with pytest.raises(ValueError, match="slant is 0.6"):
        ClusterMoeSettings(slant=0.6)


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
