"""Theorem 1.1 by one recipe: the recipe, verdicts on made-up losses that flip when a law is broken, the figure."""

import math

import numpy as np
import pytest
import xarray as xr
from tables import conditions_are_told

import tutelage as tt
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import PAPER, rivals, theorem
from tutelage.papers.beyond_ntk.checks import theorem as checks
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.figures import theorem as figure
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.present.figures import draw
from tutelage.trajectory.dataset import save

BY_ID = {claim.id: claim for claim in checks.CLAIMS}
EVIDENCE = Evidence(size="full")


def test_the_recipe_is_powers_of_the_dimension():
    one, two = theorem.algorithm(9, theorem.samples(9)), theorem.algorithm(16, theorem.samples(16))
    assert (one.width, two.width) == (27, 64) and (one.samples, two.samples) == (729, 4096)
    assert one.truncate == (3, 9) and two.truncate == (4, 16) and one.variant == two.variant == "relu"
    assert one.stage == pytest.approx(8 * 81 / math.log(9))
    assert one.until - one.stage == pytest.approx(16 * 9**1.1)
    # N = d^(5/2) is the number of weights.
    assert theorem.samples(16, theorem.FEW) == two.width * two.dim
    # All steps are stable: 2 b_0 + 2 b_2/d, of ReLU units at half the speed.
    for dim in (8, 24):
        assert 4 / (16 / math.pi + 8 / (math.pi * dim)) > theorem.STEP


def test_the_preset_is_the_recipe():
    preset, recipe = PAPER.configure(PAPER.presets["theorem"]), theorem.algorithm(16, theorem.samples(16))
    for name in ("dim", "width", "variant", "samples", "step", "truncate", "steps", "scale", "kappa"):
        assert getattr(preset, name) == getattr(recipe, name)
    assert preset.stage == pytest.approx(recipe.stage, abs=0.5)


class Laws:
    """Losses by laws in d. A test breaks one."""

    enough, few, exact = -1.6, -1.0, -2.4
    level = 0.1
    fine = 1.0
    kernels, bound = 0.045, 0.03
    noise = 0.05

    def __call__(self, dim, count, seeds, step=theorem.STEP):
        power = self.exact if not count else self.few if count == theorem.samples(dim, theorem.FEW) else self.enough
        last = self.level * dim**power * np.exp(self.noise * np.random.default_rng(dim + count).normal(size=seeds))
        last = last * (1.0 if step == theorem.STEP else self.fine)
        settings = theorem.algorithm(dim, count)
        time = np.linspace(0.0, settings.until, 5)
        frozen = np.ones((seeds, 5, 2)) * [3, 0]
        data = {
            "L": (("seed", "time"), np.outer(last, np.geomspace(9, 1, 5))),
            "frozen": (("seed", "time", "stage"), frozen),
        }
        return xr.Dataset(data, {"time": time, "seed": range(seeds)})

    def levels(self, contest):
        return {"ntk-abs": self.kernels / contest.dim, "rbf": 2 * self.kernels / contest.dim}

    def features(self, dim, count):
        return self.bound / dim


@pytest.fixture
def laws(monkeypatch):
    made = Laws()
    monkeypatch.setattr(theorem, "trained", made)
    monkeypatch.setattr(rivals, "levels", made.levels)
    monkeypatch.setattr(rivals, "bound", made.features)
    return made


@pytest.mark.parametrize("id", BY_ID)
def test_claims_hold_on_losses_that_obey_them(laws, id):
    found = BY_ID[id].check(EVIDENCE)
    assert found.verdict is Verdict.HOLDS, found.detail
    assert found.detail and conditions_are_told(BY_ID[id], found)


PLANTED = [
    ("THM1.1", "enough", -0.8, Verdict.FAILS),
    ("THM1.1", "enough", -0.98, Verdict.UNDECIDED),
    ("THM1.1", "fine", 0.5, Verdict.NOT_APPLICABLE),
    ("THM3.1", "exact", -0.8, Verdict.FAILS),
    ("THM1.1:few", "few", -1.6, Verdict.FAILS),
    ("C21", "level", 1.0, Verdict.FAILS),
    ("C21", "bound", 0.003, Verdict.FAILS),
    ("C21", "kernels", 0.003, Verdict.FAILS),
    ("C21", "kernels", math.nan, Verdict.FAILS),
    ("C21", "level", math.nan, Verdict.FAILS),
]


@pytest.mark.parametrize(("id", "law", "wrong", "verdict"), PLANTED)
def test_a_broken_law_flips_the_claim(laws, id, law, wrong, verdict):
    setattr(laws, law, wrong)
    assert BY_ID[id].check(EVIDENCE).verdict is verdict


@pytest.mark.parametrize("id", ["THM1.1", "THM3.1", "THM1.1:few", "C21"])
def test_one_run_without_a_loss_is_not_left_out(laws, monkeypatch, id):
    def broken(dim, *about, **more):
        run = laws(dim, *about, **more)
        return run.assign(L=run["L"].where((run["seed"] > 0) | (dim < 24)))

    monkeypatch.setattr(theorem, "trained", broken)
    assert BY_ID[id].check(EVIDENCE).verdict is Verdict.FAILS


def test_every_claim_has_a_plant():
    assert {plant[0] for plant in PLANTED} == set(BY_ID)


def test_the_network_is_judged_where_d_is_largest(laws):
    """At small d it loses to the bound, and that alone says nothing."""
    laws.enough, laws.level = -2.0, 0.3
    found = BY_ID["C21"].check(EVIDENCE)
    assert found.verdict is Verdict.HOLDS and found.detail.count("samples:") == 5
    assert rivals.network_levels(rivals.DIMENSIONS["full"][0], 5).mean() > laws.bound / 8


def test_figure(laws, tmp_path):
    data = figure.compute(BeyondNtkSettings(), "full")
    save(data, tmp_path / "figure.nc")
    sheet = figure.sheet(tt.load(tmp_path / "figure.nc", tree=True))
    left, middle, right = sheet.panels
    curves = {series.label: series for series in left.series if series.label}
    np.testing.assert_allclose(curves["no $d^3$ features go below"].y, laws.bound)
    slope = np.diff(np.log(curves["$N = d^3$ samples"].y[[0, -1]])) / math.log(3)
    assert slope == pytest.approx(laws.enough + 1, abs=0.1)
    assert [series.label for series in middle.series] == [f"d = {dim}" for dim in (8, 12, 16, 20, 24)]
    assert right.series[0].x[np.argmin(right.series[0].y)] > theorem.FIRST
    # Three of 23 units stand still in stage 1, none in stage 2.
    assert right.series[0].y[0] == pytest.approx(300 / 23) and right.series[0].y[-1] == 0
    assert "to the power -1.6" in sheet.caption and "d = 24" in sheet.caption
    draw(sheet)


def test_one_real_run_is_algorithm_1_in_two_stages():
    run = theorem.trained(4, 200, 1)
    assert run["frozen"].sizes["stage"] == 2
    norms = run["first_norm"].isel(seed=0).values ** 2
    np.testing.assert_array_equal(run["frozen"].isel(seed=0, stage=0), (norms > 2).sum(1))
    assert float(run["L"][0, -1]) < float(run["L"][0, 0])
