"""The gallery of `relu_teachers`: each figure at a small size, with a fact that it must show.

Runs share compiled functions, so most figures use the same k, m and number of seeds. Seeds are fixed: nothing flickers.
"""

import math

import jax
import numpy as np
import pytest
import xarray as xr

import tutelage as tt
from tutelage.papers.relu_teachers.figures import beyond
from tutelage.papers.relu_teachers.figures.beyond import absolute, balance, common, few, gaussian, outer, teachers
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings

SETTINGS = ReluTeachersSettings()


@pytest.fixture(autouse=True)
def eight_seeds(monkeypatch):
    monkeypatch.setitem(common.SEEDS, "quick", 8)


def shown(figure, dataset):
    """The sheet of a figure, whose series all have something to show."""
    sheet = figure.sheet(dataset)
    assert sheet.caption and "nan" not in sheet.caption
    for panel in sheet.panels:
        assert panel.series and all(np.isfinite(series.y).any() for series in panel.series), panel.title
    return sheet


def test_steps_grow_to_the_full_one():
    factors = common.growing(np.arange(common.WARM + 3.0))
    np.testing.assert_allclose(factors[1:100] / factors[:99], common.GROWTH, rtol=1e-12)
    assert factors[common.WARM - 1] < 1 and (factors[common.WARM :] == 1).all()


def test_gaussian_starts_escape_when_predicted_and_share_the_teachers_evenly():
    dataset = gaussian.compute(SETTINGS, "quick", hard=())
    shown(gaussian.FIGURE, dataset)
    escape, end = dataset["escape"].to_dataset(), dataset["end"].to_dataset()
    later = float(escape["escape"].diff("scale").isel(scale=-1).median())
    # Escapes are seen at records, 1500/119 updates of 0.05/12 apart; the exponent outside the span would give 1.04.
    predicted = Plateau(common.TEACHERS, common.STUDENTS).lengthening(1e3)
    assert later == pytest.approx(predicted, abs=1500 / 119 * 0.05 / 12)
    # If each student chose alone, sizes would have the variance 2.25.
    assert end["counts"].values.sum(-1).tolist() == [12] * 8 and end["counts"].values.var() < 1
    assert (end["loss"] < common.RECOVERED).all()


def test_a_run_at_rest_above_zero_is_counted_as_stuck():
    loss, gradient = xr.DataArray([1e-6, 0.0215, 0.03], dims="seed"), xr.DataArray([1e-3, 1e-7, 1e-2], dims="seed")
    found = gaussian._outcome(loss, 8, 8, 8, gradient)
    assert (found["reached"], found["stuck"], found["level"]) == (1, 1, 0.0215)
    assert found["low"] < 1 / 3 < found["high"]


def test_without_a_linear_part_a_teacher_attracts():
    dataset = absolute.compute(SETTINGS, "quick")
    shown(absolute.FIGURE, dataset)
    relu, kinked = (dataset.sel(activation=name) for name in ("relu", "half_abs"))
    # The left side of Eq. 4 starts equal to the right side; rounding may put it an ulp above.
    assert absolute.excess(kinked) < 1 + 1e-12 and absolute.excess(relu) > 2
    # The fit reaches up to half of the final norm, where the law of small norms ends: a few per cent.
    assert absolute.measured_exponent(kinked) == pytest.approx(absolute.exponents(common.TEACHERS)[1], rel=0.05)


def test_the_plateau_of_teachers_at_an_angle_is_where_predicted():
    dataset = teachers.compute(SETTINGS, "quick", cases={"cosine 0.2": {"cosine": 0.2}})
    shown(teachers.FIGURE, dataset)
    early = dataset["early"].to_dataset().isel(case=0)
    np.testing.assert_allclose(early["plateau"], early["predicted_plateau"], rtol=1e-3)
    # Descent parts at ln(1 + rate step)/step, 0.6 % below the rate; the fit ends at a spread of 0.1, not at 0.
    np.testing.assert_allclose(early["rate"], early["predicted_rate"], rtol=0.04)


def test_weak_recovery_balances_the_norms_and_a_gaussian_start_does_not():
    dataset = balance.compute(SETTINGS, "quick", scales=(1e-6,))
    shown(balance.FIGURE, dataset)
    np.testing.assert_allclose(dataset["excess"].sel(init="weak"), 1, atol=5e-3)
    assert dataset["excess"].sel(init="gaussian").median() > 1.02


def test_outer_weights_keep_their_balance_and_speed_up_the_tail():
    dataset = outer.compute(SETTINGS, "quick", updates=3000, trains=("both",))
    shown(outer.FIGURE, dataset)
    both = dataset.sel(trains="both")
    # Descent changes the balance by step^2 (|grad_w|^2 - |grad_a|^2) per update: below 0.01 in all.
    assert both["drift"].max() < 0.01 and both["lowest"].min() > 0.99
    # c nears its limit like 1/s, 1.5 % above at s = 100; with fixed outer weights it is 9 % less.
    np.testing.assert_allclose(both["rate"].isel(time=-1), outer.predicted_rates()["both"], rtol=0.03)


def test_two_students_of_four_teachers_copy_one_and_average_three():
    dataset = few.compute(SETTINGS, "quick", students=(2,))
    shown(few.FIGURE, dataset)
    two = dataset["m2"].to_dataset()
    assert few.ends(two) == {"copy + average of three": 8, "two averages of two": 0}
    # All seeds, at rest: the loss differs from the level by the square of a gradient below 1e-4.
    np.testing.assert_allclose(two["final"], two["level"][0], rtol=1e-6)


def test_every_entry_is_a_figure_of_its_own():
    names = [figure.id for figure in beyond.FIGURES]
    assert len(set(names)) == 6 and all(figure.ours for figure in beyond.FIGURES)


def test_eight_students_of_eight_teachers_can_rest_above_zero():
    """The strict local minimum of the gallery page: seven students lean to the eighth teacher, one points away."""
    axes = np.eye(8)
    lean = math.cos(0.23) * axes[:7] + math.sin(0.23) * axes[7]
    first = np.vstack([lean, 0.78 * (0.2 * axes[:7].sum(0) - 0.84 * axes[7])])
    student = tt.TwoLayer("relu", first=first, trains=("first",))
    problem = tt.Problem(tt.Gaussian(8), tt.TwoLayer("relu", first=axes), student)
    run = tt.descend(problem, step=0.3, steps=4000, record=tt.Record(20, observables=("loss",)))
    assert float(run.loss[0, -1]) == pytest.approx(0.021508, abs=5e-7)
    hessian = np.asarray(run.oracle.hessian(jax.tree.map(lambda leaf: leaf[0], run.final)))
    assert np.linalg.eigvalsh(hessian[8:, 8:])[0] == pytest.approx(0.0213, abs=5e-5)
