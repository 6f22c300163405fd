"""Experiments of `beyond_ntk`: claims on made-up runs that obey their laws, and flip when a law is broken; small runs.

Nothing here draws random numbers beyond the fixed seeds of the runs.
"""

import dataclasses
import math
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from papers.figures import shown

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import escapes, recipe, stops, sweeps, tails
from tutelage.papers.beyond_ntk.checks.experiments import CLAIMS
from tutelage.papers.beyond_ntk.constants import plateau
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.figures import beyond, tail, truncation
from tutelage.papers.beyond_ntk.figures import plateau as lengths
from tutelage.papers.beyond_ntk.figures.beyond import common, dimension, kappa, noise, overlapping, relu_teacher, subset
from tutelage.papers.beyond_ntk.observed import observed
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.trajectory.measures import needed

DEFAULT = BeyondNtkSettings()
CHECKS = {claim.id: claim.check for claim in CLAIMS}


class Laws:
    """Runs as the claims say they are. A test breaks one law."""

    height = 1.0
    power = 1.85
    wider = 0.5
    exponent = 3.0
    narrow = "exponential"
    ever = 30.0
    stages = 1.2

    def length(self, settings):
        narrow = (4 * settings.dim / settings.width) ** self.wider
        return narrow * settings.dim**self.power

    def loss(self, settings, time):
        end = self.length(settings)
        past = np.maximum(time - end, 0.0)
        top = self.height * plateau(settings.dim, settings.width) * np.exp(-1e-3 * time / end)
        if settings.truncate:
            top = top * (self.ever if len(settings.truncate) == 1 else self.stages)
        if settings.width == settings.dim and self.narrow == "exponential":
            return top * np.exp(-0.2 * past)
        return top * (1 + past / end) ** (-self.exponent)

    def __call__(self, settings, seeds=1, records=200, slow=0):
        time = np.concatenate([[0.0], np.geomspace(settings.step, settings.until, records)])
        high = np.tile(self.loss(settings, time) / 2, (seeds, 1))
        orders = np.zeros((seeds, len(time), 9))
        orders[:, :, 2] = 0.05 * np.exp(-time)
        orders[:, :, 4] = 0.5 * high
        found = {
            "L": (("seed", "time"), 2 * (high + orders[:, :, 2])),
            "loss_order": (("seed", "time", "tensor_order"), orders),
            "loss_beyond": (("seed", "time"), 0.5 * high),
            "caught": (("seed", "time", "teacher"), np.ones((seeds, len(time), settings.dim))),
            "first_norm": (("seed", "time", "student"), np.ones((seeds, len(time), 3))),
        }
        if settings.truncate:
            frozen = np.full((seeds, len(time), len(settings.truncate)), 4.0)
            frozen[:, :, 1:] = 0.0
            found["frozen"] = (("seed", "time", "stage"), frozen)
        coords = {"time": time, "step": ("time", time / settings.step), "tensor_order": list(range(9))}
        return xr.Dataset(found, coords | {"seed": list(range(seeds))})


@pytest.fixture
def laws(monkeypatch):
    made = Laws()
    for module in (escapes, tails, stops):
        monkeypatch.setattr(module, "traces", made)
    # Long enough for the made-up plateaus.
    monkeypatch.setattr(escapes, "HORIZON", 12.0)
    monkeypatch.setitem(tails.PLANS, "quick", tails.Plan(10, (10, 40), 500.0, 2))
    return made


def verdict(id, size="quick"):
    return CHECKS[id](Evidence(size=size)).verdict


@pytest.mark.parametrize("id", CHECKS)
def test_claims_hold_on_runs_that_obey_them(laws, id):
    assert verdict(id) is (Verdict.NOT_REACHED if id == "E4" else Verdict.HOLDS)


@pytest.mark.parametrize(
    ("id", "law", "wrong"),
    [
        ("C29", "height", 1.08),
        ("C29", "height", 0.92),
        ("E4:width", "wider", 0.0),
        ("E5", "exponent", 1.5),
        ("E5", "exponent", 9.0),
        ("E5:narrow", "narrow", "algebraic"),
        ("E6", "ever", 2.0),
        ("E6:stages", "stages", 3.0),
    ],
)
def test_a_broken_law_flips_the_claim(laws, id, law, wrong):
    setattr(laws, law, wrong)
    assert verdict(id) is Verdict.FAILS


def test_nobody_standing_still_is_no_truncation(laws, monkeypatch):
    monkeypatch.setattr(stops, "standing", lambda dataset, plan: xr.zeros_like(dataset["L"]))
    assert verdict("E6") is Verdict.FAILS


def test_the_exponent_of_full_size_has_all_dimensions(laws):
    assert verdict("E4", "full") is Verdict.HOLDS
    assert "d = 40" in CHECKS["E4"](Evidence(size="full")).detail
    for wrong in (1.0, 2.4):
        laws.power = wrong
        assert verdict("E4", "full") is Verdict.FAILS


def test_figures_of_plateau_tail_and_truncation(laws):
    data = lengths.FIGURE.compute(DEFAULT, "quick")
    shown(lengths.FIGURE, data)
    # L passes .03/d on its way down the power law, a fixed part of the length after the plateau.
    ratio = data["time_by_dim"].values[:, 0] / np.array([10, 20]) ** 1.85
    assert ratio[1] / ratio[0] == pytest.approx(1.0, abs=0.1)
    data = tail.FIGURE.compute(DEFAULT, "quick")
    assert float(data["slope"].sel(width=40)[-1]) == pytest.approx(-3 * 500 / 500, abs=0.1)
    shown(tail.FIGURE, data)
    data = truncation.FIGURE.compute(DEFAULT, "quick")
    shown(truncation.FIGURE, data)
    # A time that only another way has: a curve has no gap there.
    missing = data.where((data["way"] != stops.EVER) | (data["time"] != data["time"][5]))
    curves = [curve for panel in truncation.FIGURE.sheet(missing).panels for curve in panel.series]
    assert len(curves) == 9 and all(np.isfinite(curve.y).all() for curve in curves)
    two = data["frozen"].sel(way=stops.STAGES).isel(seed=0)
    stage = stops.PLANS["quick"].stage
    assert (two[two["time"] < stage] == 4).all() and (two[two["time"] >= stage] == 0).all()


def test_the_figure_of_few_units_counts_what_was_found(laws, monkeypatch):
    def stopping(*about):
        data = laws(*about)
        return data.assign(L=data["L"].where(data["L"] > 1e-10))

    monkeypatch.setattr(subset, "traces", stopping)
    laws.exponent = 2.0
    data = subset.FIGURE.compute(DEFAULT, "quick")
    shown(subset.FIGURE, data)
    # The made-up narrow run ends below 1e-3/d, and has stopped before, the wide one, a power of time, above it.
    assert subset.successes(data).values.tolist() == [3, 0]


def test_crossings():
    values = xr.DataArray(
        [[4.0, 1.0, 0.25], [4.0, 3.0, 2.0], [0.1, 1.0, 1.0]], {"time": [0.0, 2.0, 4.0]}, ("seed", "time")
    )
    np.testing.assert_allclose(escapes.first_below(values, 2**-0.5), [2.5, np.nan, 0.0], rtol=1e-12)


def test_rates_of_exponential_decay_and_of_powers():
    time = np.geomspace(1, 400, 300)
    early, late = tails.decay_rates(time, np.exp(-0.1 * time))
    assert early == pytest.approx(0.1, rel=1e-3) and late == pytest.approx(0.1, rel=1e-3)
    early, late = tails.decay_rates(time, time**-4.0)
    assert late < 0.5 * early
    assert np.isnan(tails.decay_rates(time, np.full_like(time, 1e-3))).all()
    assert tails.final_exponent(time, time**-2.5) == pytest.approx(-2.5, rel=1e-9)


# Small runs.


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(common.SHAPES, "quick", common.Shape(6, 24))
    monkeypatch.setitem(overlapping.COSINES, "quick", (0.0, 0.6))
    monkeypatch.setitem(kappa.KAPPAS, "quick", (1.0, 4.0))


def test_overlapping_teachers_have_a_lower_plateau(small):
    data = overlapping.FIGURE.compute(DEFAULT, "quick")
    shown(overlapping.FIGURE, data)
    loss = data["L"].sel(time=10.0, method="nearest").mean("seed")
    assert float(loss.sel(cosine=0.6)) < float(loss.sel(cosine=0.0))
    assert (data["L"].isel(time=-1) < 0.1 * data["L"].sel(time=10.0, method="nearest")).all()


def test_strong_directions_are_taken_first(small):
    data = kappa.FIGURE.compute(DEFAULT, "quick")
    shown(kappa.FIGURE, data)
    one = data.sel(kappa=4.0)
    np.testing.assert_allclose(one["weight"].values, np.linspace(1, 4, 6) / 15, rtol=1e-14)
    assert float(one["taken"].isel(teacher=-1).median()) < float(one["taken"].isel(teacher=0).median())
    assert kappa.exponent(data) < -0.3


def test_a_relu_student_is_a_two_relu_student_at_half_the_speed(small):
    """Step for step: weights divided by sqrt 2, half the step. Rounding grows with the number of steps, of 20."""
    common_ = {"dim": 6, "width": 24, "teacher": "relu"}
    one = recipe.run(BeyondNtkSettings(**common_, variant="relu", until=4.0), seeds=3, record="all")
    two = recipe.run(
        BeyondNtkSettings(**common_, variant="relu2", until=2.0, step=0.1, scale=math.sqrt(0.5)), seeds=3, record="all"
    )
    np.testing.assert_allclose(two.loss.values, one.loss.values, rtol=1e-9)


def test_the_teacher_without_its_linear_part_is_half_of_the_papers():
    """Step for step: the figure shows the paper's run with a quarter of its loss and half its speed."""
    settings = BeyondNtkSettings(dim=6, width=24, until=4.0)
    paper = recipe.run(settings, seeds=3, record="all")
    half = recipe.problem(BeyondNtkSettings(dim=6, width=24, scale=math.sqrt(0.5)))
    half = dataclasses.replace(half, teacher=tt.TwoLayer("abs", first=np.eye(6), second=np.full(6, 1 / 12)))
    record = tt.Record("all", observables=("loss", "gradient_norm", "first_norm"), own=observed(half, settings))
    run = tt.descend(half, step=0.4, steps=20, rates={"first": 48.0}, seeds=3, record=record)
    np.testing.assert_allclose(run.loss.values, paper.loss.values / 4, rtol=1e-9)
    assert relu_teacher.CLOCKS == {"relu2": 1.0, "relu": 0.5, "abs": 2.0}


def test_the_figure_of_relu_teachers(small):
    data = relu_teacher.FIGURE.compute(DEFAULT, "quick")
    shown(relu_teacher.FIGURE, data)
    first = data["order"].sel(tensor_order=1, student="relu2").mean("seed")
    assert float(first[-1]) < 1e-2 * float(first[0])
    assert (data["order"].sel(tensor_order=1, student="abs") == 0).all()


def test_the_escape_grows_with_the_logarithm_of_the_dimension():
    data = dimension.FIGURE.compute(DEFAULT, "quick")
    shown(dimension.FIGURE, data)
    times = data["half"].mean("seed")
    later = float(times.sel(dim=1e9) - times.sel(dim=1e6))
    # The time of each start depends on its largest overlaps, whose ratio is that of sqrt d but for their own noise:
    # the same Gaussian numbers are drawn in all dimensions. Records are 5 % apart in time and interpolated.
    assert later == pytest.approx(math.log(1e3) / (2 * dimension.rate(0.25, 0.2)), rel=0.01)
    assert (data["covered"] == 4).all()


def test_noise_keeps_the_loss_up():
    data = noise.FIGURE.compute(DEFAULT, "quick")
    shown(noise.FIGURE, data)
    end = data["L"].isel(time=-1).mean(("seed", "samples"))
    assert (end.diff("noise") > 0).all() and (noise.overfit(data) >= 1).all()
    # Noise is in the labels, and in the loss on them, from the start on.
    rise = data["trained"].isel(time=0).sel(noise=0.3) - data["trained"].isel(time=0).sel(noise=0.0)
    assert float(rise.mean()) == pytest.approx(0.09, rel=0.15)


def test_the_gallery_has_names_of_its_own():
    names = [figure.id for figure in (*beyond.FIGURES, lengths.FIGURE, tail.FIGURE, truncation.FIGURE)]
    assert len(set(names)) == len(names) == 9 and all(figure.ours for figure in beyond.FIGURES)


# Measures.


def test_the_fourth_order_of_directions():
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(4, 3)), rng.uniform(1, 2, (2, 1))
    teacher = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    view = SimpleNamespace(
        weights=tt.Weights(jnp.asarray(first), jnp.ones((4, 1))),
        teacher=tt.Weights(jnp.asarray(teacher), jnp.asarray(second)),
    )

    def tensor(units, masses):
        return np.einsum("u,ui,uj,uk,ul->ijkl", masses / masses.sum(), *[units] * 4)

    norms = np.linalg.norm(first, axis=1)
    target = tensor(teacher, second[:, 0])
    gap = tensor(first / norms[:, None], norms**2) - target
    assert float(sweeps.fourth_order(view)) == pytest.approx(np.sum(gap**2) / np.sum(target**2), rel=1e-12)


def test_a_sweep_stops_at_the_escape():
    # On samples, where the loss that is descended does not tell.
    settings = BeyondNtkSettings(dim=6, width=24, until=400.0, samples=600)
    measure = sweeps.MEASURES[0]
    run = recipe.run(settings, seeds=2, record=needed([measure]))
    found = measure.measured(run).values
    assert (found > 5).all() and (found < 200).all()
    np.testing.assert_allclose(run.dataset["stop_time"].values, found, rtol=1e-12)
    with pytest.raises(BadInput, match="sweep it"):
        sweeps.escape_time(SimpleNamespace(dataset=xr.Dataset()))


def test_the_other_measures(small):
    run = recipe.run(BeyondNtkSettings(dim=6, width=24, until=5.5 * escapes.scale(6)), seeds=3, record=escapes.RECORDS)
    loss, covered = (measure.measured(run).values for measure in sweeps.MEASURES[1:])
    np.testing.assert_allclose(loss, 2 * run.last("loss").values, rtol=1e-14)
    assert covered.tolist() == [6, 6, 6]
