"""The figures of `relu_teachers`, computed small: panels and marks, and facts that a wrong curve would not have."""

import math

import numpy as np
import pytest
import xarray as xr
from papers.figures import again

from tutelage.papers.relu_teachers import section4
from tutelage.papers.relu_teachers.figures import FIGURES, cubic, portrait, refutation, shelf, training
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings
from tutelage.papers.relu_teachers.symmetric import Symmetric
from tutelage.present.figures import draw

SMALL = ReluTeachersSettings(dim=20, batch=64, steps=300)


def titles(sheet):
    return [panel.title for panel in sheet.panels]


def levels(panel):
    return [mark.level for mark in panel.marks if mark.level is not None]


def test_ids_are_unique_and_the_papers_own_figures_are_marked_as_such():
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
    assert [figure.id for figure in FIGURES if not figure.ours] == ["fig2", "fig3"]


@pytest.fixture(scope="module")
def trained():
    cases = (training.Case(2, 4, 1e-6, 5e-3), training.Case(2, 4, 1e-4, 5e-3))
    return training.compute(SMALL, "full", cases={"full": cases})


def test_training_has_a_row_for_cosines_norms_and_loss(trained, tmp_path):
    sheet = training.sheet(again(trained, tmp_path), title="Figure")
    assert titles(sheet) == [f"{what}: sigma = {s}" for what in ("cosine", "norms", "loss") for s in ("1e-6", "1e-4")]
    assert sheet.columns == 2
    level = Plateau(2, 4, SMALL.norm)
    cosine, norms, loss = (sheet.panels[index] for index in (0, 2, 4))
    np.testing.assert_allclose(levels(cosine), [1 / math.sqrt(2)])
    np.testing.assert_allclose(levels(norms), [level.sum_of_norms / (2 * SMALL.norm)])
    np.testing.assert_allclose(levels(loss), [level.loss])
    assert "64" in sheet.caption and "k = 2" in sheet.caption
    draw(sheet)


def test_training_goes_to_the_mean_direction_and_norms_grow(trained):
    # eta m T = 6: the norms have left zero and the students, pulled by both teachers, have the mean direction in
    # common. Without that pull a cosine of 0.9 in the twenty dimensions would not happen (its chance is below 1e-6).
    assert float(trained["mean_cosine"].max("step").min()) > 0.9
    assert (trained["norm_least"] <= trained["norm_mean"]).all() and (
        trained["norm_mean"] <= trained["norm_most"]
    ).all()
    at_start = trained.isel(step=0)
    # At weak recovery every student has the angle pi/4 to its teacher, by construction.
    np.testing.assert_allclose(at_start["cosine_least"].sel(init="weak"), math.cos(math.pi / 4), rtol=1e-9)
    assert (at_start["cosine_least"].sel(init="gaussian") < 0.6).all()


def test_late_slopes_of_a_power_law_are_its_exponent():
    step = np.geomspace(1, 5000, 100)
    data = xr.Dataset({"loss": (("seed", "step"), np.stack([step**-3.0, 2 * step**-3.0]))}, {"step": step})
    np.testing.assert_allclose(section4.late_slopes(data), -3)


def test_t1_is_when_a_level_is_passed_for_good():
    step = np.arange(6.0)
    values = [[0, 1, 0, 0.5, 1, 1], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0.5]]
    found = section4._stays_above(xr.DataArray(values, dims=("seed", "step"), coords={"step": step}), 0.9)
    np.testing.assert_allclose(found, [3.8, 0.0, np.nan])


@pytest.fixture(scope="module")
def long_run():
    with pytest.MonkeyPatch.context() as patch:
        short = {"teachers": 2, "students": 4, "init": "weak", "step": 5e-3, "steps": 100}
        patch.setitem(cubic.LONG, "quick", short)
        patch.setattr(cubic, "CASES", {"quick": (cubic.Case(1, 2, (2,)),)})
        patch.setattr(cubic, "UNTIL", 1e6)
        patch.setattr(cubic, "RECORDS", 40)
        yield cubic.compute(SMALL, "quick")


def test_cubic_flow_reaches_the_predicted_constant(long_run, tmp_path):
    flows = long_run["flow"].to_dataset()
    assert flows["case"].values.tolist() == ["k = 1: 2"]
    # L s^3 = C/(1 + s0/s)^3, and s0 is a few times 1/theta, where theta is the angle at which a student that started
    # with norm 0.006 ends its growth to 0.5: some hundreds.
    np.testing.assert_allclose(flows["cubed"][:, -1], flows["constant"], rtol=3e-3)
    np.testing.assert_allclose(flows["rate"][:, -1], flows["predicted"], rtol=1e-3)
    assert float(flows["loss"][0, -1]) < 1e-17  # where a plain sum of kernels would be rounding noise
    sheet = cubic.sheet(again(long_run, tmp_path))
    assert len(sheet.panels) == 4 and levels(sheet.panels[1]) == [3.0]
    assert "predicted" in sheet.panels[2].series[-1].label
    draw(sheet)


def test_local_slope_of_a_power_law_is_its_exponent():
    step = np.geomspace(1, 1e4, 300)
    middle, slope = cubic.local_slope(step, 7 * step**-3.0)
    np.testing.assert_allclose(slope, 3.0)
    assert middle[0] > 1 and middle[-1] < 1e4


@pytest.fixture(scope="module")
def shelves():
    with pytest.MonkeyPatch.context() as patch:
        # The shape of the refutation's flow, which need not be compiled again.
        patch.setattr(shelf, "TEACHERS", 3)
        patch.setattr(shelf, "SCALES", {"quick": (1e-6, 1e-12)})
        yield shelf.compute(SMALL, "quick")


def test_plateau_is_where_and_as_long_as_predicted(shelves):
    # The escape time is ln(1/deviation)/gam_V + O(1), and what is O(1) is the same for two small starts of one seed up
    # to terms of the order of the deviations, which are below 2 per cent at 1e-6.
    assert shelf.escape_slope(shelves) == pytest.approx(shelves.attrs["lengthening"], rel=0.01)
    # A start of 1e-12 stays on the saddle for gam_V s = 5, so deviations, and their squares in the loss, are small.
    assert shelf.shelf_loss(shelves.isel(scale=-1), shelves.attrs["level"]) == pytest.approx(
        Plateau(3, 6).loss, rel=1e-4
    )


def test_plateau_sheet(shelves, tmp_path):
    sheet = shelf.sheet(again(shelves, tmp_path))
    assert titles(sheet)[0] == "loss" and titles(sheet)[-1] == "time of escape" and len(sheet.panels) == 6
    assert levels(sheet.panels[0]) == [Plateau(3, 6).loss]
    assert {s.label for s in sheet.panels[0].series} == {"sigma = 1e-6", "sigma = 1e-12"}
    draw(sheet)


@pytest.fixture(scope="module")
def literal():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refutation, "RECORDS", 120)
        yield refutation.compute(SMALL, "quick")


def test_refutation_has_all_hypotheses_and_ends_on_the_mean_direction(literal):
    three = literal["three"].to_dataset()
    assert bool(three["hypotheses"]) and float(three["crowding"]) <= 1 and float(three["own_ratio"]) < 0.05
    np.testing.assert_allclose(three["angle"][-1], math.acos(1 / math.sqrt(3)), rtol=1e-6)
    assert (three["ratio"][-1] > 100).all()
    assert 0 < refutation.first_violation(three) < 1e-40


def test_refutation_holds_for_one_teacher(literal):
    one = literal["one"].to_dataset()
    assert bool(one["hypotheses"]) and (one["ratio"][1:] < 1).all()
    assert math.isnan(refutation.first_violation(one))
    assert float(one["angle"][-1].max()) < 1e-10


def test_refutation_sheet(literal, tmp_path):
    sheet = refutation.sheet(again(literal, tmp_path))
    assert titles(sheet)[:2] == ["k = 1, m = 6, sigma = 2.5e-21", "k = 3, m = 6, sigma = 1.1e-47"]
    assert any(mark.label == "Eq. (4) broken" for mark in sheet.panels[1].marks)
    assert "All hypotheses of Theorem 6 hold" in sheet.caption
    draw(sheet)


@pytest.fixture(scope="module")
def planes():
    return portrait.compute(SMALL, "quick")


@pytest.mark.parametrize("k", portrait.TEACHERS)
def test_portrait_rests_at_its_fixed_points_and_loses_loss(planes, k):
    plane, reduced = planes[f"k{k}"].to_dataset(), Symmetric(k, portrait.COPIES)
    for alpha, beta in list(zip(plane["fixed_alpha"].values, plane["fixed_beta"].values, strict=True))[1:]:
        # The far one is the end of a flow with relative errors of 1e-7.
        assert np.hypot(*reduced.field(alpha, beta)) < 1e-7
    # Loss falls along the flow; 1e-8 is for the integration, whose relative error is 1e-7 per step.
    assert (np.diff(plane["path_loss"].values, axis=1) < 1e-8).all()
    saddle = plane.isel(fixed=1)
    near = np.hypot(plane["path_alpha"] - saddle["fixed_alpha"], plane["path_beta"] - saddle["fixed_beta"]).min("time")
    small = near.values[: len(portrait.SMALL)]
    assert (np.diff(small) < 0).all()  # the smaller the start, the nearer it passes


def test_portrait_sheet(planes, tmp_path):
    sheet = portrait.sheet(again(planes, tmp_path))
    assert titles(sheet) == ["k = 2", "k = 4"]
    for panel in sheet.panels:
        assert {"origin (source)", "plateau (saddle)", "minimum (sink)"} <= {s.label for s in panel.series}
        assert len(panel.fields) == 1 and len(panel.marks) == len(portrait.SMALL) + len(portrait.OUTER)
    draw(sheet)
