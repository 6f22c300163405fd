"""The kernel side of `beyond_ntk`: verdicts on small sizes, other verdicts on planted errors, and its figure."""

import dataclasses
import math

import numpy as np
import pytest
from tables import conditions_are_told

import tutelage as tt
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import recipe, rivals, theorem
from tutelage.papers.beyond_ntk.checks import kernels as checks
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.figures import kernels as figure
from tutelage.papers.beyond_ntk.rivals import Contest
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.present.figures import draw
from tutelage.trajectory.dataset import save

BY_ID = {claim.id: claim for claim in checks.CLAIMS}
SMALL, FEW = Contest(8, 512), Contest(8, 60)


@pytest.fixture(scope="module", autouse=True)
def small_sizes():
    """Sizes at which every claim is decided in seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(theorem.PLANS, "quick", theorem.Plan((8,), (8,), 2, 8))
        patch.setitem(rivals.DIMENSIONS, "quick", (SMALL,))
        patch.setitem(rivals.SAMPLES, "quick", (FEW, SMALL))
        patch.setitem(checks.CELLS, "quick", ((8, 200), (10, 200)))
        patch.setitem(checks.FLOOR, "quick", (1000,))
        yield


@pytest.fixture
def evidence():
    return Evidence(size="quick", seeds=2)


@pytest.mark.parametrize("id", list(BY_ID))
def test_every_claim_has_its_expected_verdict(id, evidence):
    found = BY_ID[id].check(evidence)
    assert found.verdict is BY_ID[id].expected, found.detail
    assert found.detail and conditions_are_told(BY_ID[id], found)


def scaled(factor, place, name):
    """A function whose value is multiplied."""
    old = getattr(place, name)
    return lambda *args: factor * old(*args)


def only(kernel, factor):
    """One kernel's level is another."""
    old = rivals.ridge_level
    return lambda name, *args: old(name, *args) * (factor if name == kernel else 1)


def as_printed():
    """Definition C.1 as it stands: the directions do not depend on the partition."""
    old = checks.hard_teacher

    def drawn(partition, random):
        size = len(partition[0])
        plain = tuple(tuple(range(first, first + size)) for first in range(0, size * len(partition), size))
        return dataclasses.replace(old(plain, random), partition=partition)

    return drawn


def without_signs():
    old = checks.sign_coefficient
    return lambda mu, weights=None: old(mu) if weights is None else old(mu) * weights.sum(-1) / math.sqrt(mu.shape[-1])


PLANTS = [
    ("C25", rivals, "bound", lambda: scaled(3, rivals, "bound")),
    ("C25", rivals, "tangent_features_level", lambda: scaled(0.1, rivals, "tangent_features_level")),
    ("C25", rivals, "ridge_level", lambda: only("ntk-relu", 0.3)),
    ("C26", rivals, "ridge_level", lambda: only("arc-abs", 0.8)),
    ("C26", rivals, "ridge_level", lambda: scaled(1.3, rivals, "ridge_level")),
    ("C27", checks, "block_constant", lambda: scaled(1.2, checks, "block_constant")),
    ("C27:columns", checks, "sign_coefficient", without_signs),
    ("C27:blocks", checks, "hard_teacher", as_printed),
    ("C27:blocks", checks, "block_weight", lambda: lambda weights, size: 0.1),
    ("C28", checks, "collision_probability", lambda: scaled(2, checks, "collision_probability")),
    ("C28", checks, "collision_probability", lambda: scaled(0.5, checks, "collision_probability")),
    ("C28:partitions", checks, "disjoint_partitions", lambda: lambda d, r, n, random: [((0,) * 4,) * 4] * d),
    ("C28:partitions", checks, "disjoint_partitions", lambda: lambda d, r, n, random: []),
    ("C28:features", checks, "random_features_loss", lambda: scaled(0.01, checks, "random_features_loss")),
]


@pytest.mark.parametrize(("id", "place", "name", "plant"), PLANTS, ids=[f"{plant[0]}-{plant[2]}" for plant in PLANTS])
def test_a_planted_error_changes_the_verdict(id, place, name, plant, evidence, monkeypatch):
    monkeypatch.setattr(place, name, plant())
    assert BY_ID[id].check(evidence).verdict is Verdict.FAILS


def test_every_claim_has_a_plant():
    assert {plant[0] for plant in PLANTS} == set(BY_ID)


def test_kernels_and_network_have_the_same_samples():
    settings = theorem.algorithm(*SMALL)
    x, y = rivals.samples(BeyondNtkSettings(dim=8, samples=512))
    np.testing.assert_allclose(y, np.abs(x).mean(axis=1), rtol=1e-13)
    w = np.asarray(recipe.problem(settings).begin(0, full=True).student.first)
    output = np.mean(np.linalg.norm(w, axis=1) * np.maximum(x @ w.T, 0), axis=1)
    first = float(theorem.trained(*SMALL, seeds=1)["trained"].isel(time=0, seed=0))
    assert first == pytest.approx(np.mean((output - y) ** 2), rel=1e-12)


@pytest.fixture(scope="module")
def computed(small_sizes):
    return figure.compute(BeyondNtkSettings(), "quick")


def test_figure(computed, tmp_path):
    save(computed, tmp_path / "figure.nc")
    sheet = figure.sheet(tt.load(tmp_path / "figure.nc", tree=True))
    dims, counts = sheet.panels
    assert (dims.title, counts.title) == ("$N = d^3$ samples", "d = 8")
    assert sheet.names == tuple(figure.LABELS.values())
    # Of 1/d sum |z_i|, polynomials of degree 2, 4 and 6 miss 1 - 3/pi and so on, over d.
    np.testing.assert_allclose([mark.level for mark in dims.marks], [0.045070, 0.018545, 0.010587], rtol=1e-4)
    curves = {series.label: series for series in dims.series if series.label}
    network, limit = (curves[figure.LABELS[name]].y for name in (figure.NETWORK, figure.BOUND))
    assert network[0] == pytest.approx(8 * rivals.network_levels(SMALL, 2).mean())
    assert limit[0] == pytest.approx(8 * rivals.bound(8, 512))
    assert f"d = 8: {network[0]:.2g}" in sheet.caption
    draw(sheet)


def test_with_few_samples_the_network_stays_at_the_level_of_kernels(computed):
    counts = computed["counts"].to_dataset()
    few, many = (counts.isel(contest=index)["loss"] for index in (0, 1))
    kernels = [name for name in figure.LABELS if name not in (figure.NETWORK, figure.BOUND)]
    assert float(few.sel(learner=figure.NETWORK)) > 0.9 * float(few.sel(learner=kernels).min())
    assert float(many.sel(learner=figure.NETWORK)) < 0.6 * float(few.sel(learner=figure.NETWORK))
