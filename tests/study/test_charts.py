"""Pictures of sweeps, read as series and tables; and the drawn ones, read as ticks."""

import numpy as np
import pytest
import xarray as xr

from tutelage._errors import BadInput
from tutelage.analysis.claims import binomial_interval
from tutelage.analysis.scaling import choose, fit
from tutelage.present.figures import draw
from tutelage.study.charts import diagram, trend
from tutelage.study.contours import contour

DIM = np.array([100, 1000, 10_000, 100_000])
HORIZON = 60.0


def times(law=True, students=None, horizon=np.inf, seeds=9) -> xr.Dataset:
    """Recovery times that grow as the root of dim, of some students each."""
    rng = np.random.default_rng(0)
    axes = {"dim": DIM} | ({"students": students} if students else {})
    truth = np.sqrt(DIM) if students is None else np.sqrt(DIM)[:, None] * np.asarray(students)
    values = truth[..., None] * np.exp(0.2 * rng.normal(size=(*truth.shape, seeds)))
    late = values >= horizon
    dims = (*axes, "seed")
    about = {"long_name": "time of recovery", "units": "1/step", "kind": "time"}
    data = xr.Dataset(
        {
            "recovery_time": (dims, np.where(late, np.nan, values), about),
            "recovery_time_limit": (dims, np.where(late, horizon, np.inf)),
        },
        axes | {"seed": np.arange(seeds)},
    )
    data["dim"].attrs["long_name"] = "input dimension d"
    return data.assign(recovery_time_law=(tuple(axes), truth)) if law else data


def chances(done=True) -> xr.Dataset:
    """Successes over the settings ratio and dim, with a law that crosses 1/2."""
    law = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.45, 0.55, 0.7], [0.8, 0.9, 0.95, 1.0]])
    values = (np.random.default_rng(1).random((3, 4, 20)) < law[..., None]).astype(float)
    if not done:
        values[2, 3] = np.nan
        values[0, 0, 5:] = np.nan
    dims = ("ratio", "dim", "seed")
    return xr.Dataset(
        {
            "recovered": (dims, values, {"long_name": "all teachers recovered", "kind": "chance"}),
            "recovered_law": (dims[:2], law),
        },
        {"ratio": [1.0, 2.0, 5.0], "dim": DIM},
    )


def series(sheet, label):
    (panel,) = sheet.panels
    return next(each for each in panel.series if each.label.startswith(label))


# ---- trends


def test_a_trend_has_medians_bars_seeds_and_law():
    data = times()
    sheet = trend(data, "recovery_time")
    values = data["recovery_time"].values
    points = series(sheet, "median, 10 % to 90 %, 9 seeds")
    np.testing.assert_allclose(points.y, np.median(values, 1))
    np.testing.assert_allclose([points.low, points.high], np.quantile(values, [0.1, 0.9], axis=1))
    seeds = series(sheet, "seeds")
    assert seeds.faint and seeds.x.size == values.size
    law = series(sheet, "law")
    assert law.dash == "dashed" and (law.y == np.sqrt(DIM)).all()
    (panel,) = sheet.panels
    assert (panel.xlabel, panel.ylabel) == ("input dimension d", "time of recovery [1/step]")
    assert (panel.xscale, panel.yscale) == ("log", "log")
    assert sheet.title == "Time of recovery against input dimension d"
    assert "still to come" not in sheet.caption and draw(sheet).axes


def test_axes_of_less_than_a_decade_are_linear():
    data = times(law=False).assign_coords(dim=[2, 4, 6, 8])
    assert trend(data, "recovery_time").panels[0].xscale == "linear"
    assert trend(data.assign_coords(dim=[0, 4, 60, 800]), "recovery_time").panels[0].xscale == "linear"
    narrow = data.assign(recovery_time=data["recovery_time"].clip(10, 99))
    assert trend(narrow, "recovery_time").panels[0].yscale == "linear"


def test_x_is_in_order_whatever_the_order_of_the_sweep():
    sheets = [trend(data, "recovery_time") for data in (times(), times().isel(dim=[2, 0, 3, 1]))]
    for one, two in zip(*(sheet.panels[0].series for sheet in sheets), strict=True):
        np.testing.assert_array_equal(one.x, two.x)
        np.testing.assert_array_equal(one.y, two.y)


def test_what_is_still_to_come_is_an_arrow_and_counts_in_the_median():
    data = times(horizon=HORIZON)
    sheet = trend(data, "recovery_time")
    arrows = series(sheet, "still to come")
    assert arrows.marker == "^" and (arrows.y == HORIZON).all() and 1e5 in arrows.x
    points = series(sheet, "median")
    late = np.isnan(data["recovery_time"].values).sum(1)
    assert late[-1] == 9 and np.isnan(points.y[-1])  # no median is known, and none is made up
    assert "still to come" in sheet.caption and f"{late.sum()} values" in sheet.caption
    draw(sheet)


def test_a_median_below_the_censored_ones_is_known_and_its_bar_ends_at_the_limit():
    values = np.array([[1.0, 2.0, 3.0, np.nan, np.nan], [1.0, 2.0, np.nan, np.nan, np.nan], [1.0, 2.0, 3.0, 4.0, 5.0]])
    limit = np.where(np.isnan(values), 7.0, np.inf)
    data = xr.Dataset(
        {"t": (("x", "seed"), values, {"kind": "time"}), "t_limit": (("x", "seed"), limit)}, {"x": [1, 2, 3]}
    )
    points = series(trend(data, "t"), "median")
    np.testing.assert_array_equal(points.y, [3.0, np.nan, 3.0])
    np.testing.assert_allclose(points.high, [7.0, np.nan, 4.6])


def test_cells_that_are_not_done_are_left_out():
    data = times().where(times()["dim"] < 50_000)
    data["recovery_time"].attrs = times()["recovery_time"].attrs
    sheet = trend(data, "recovery_time")
    assert np.isnan(series(sheet, "median").y[-1]) and not [s for s in sheet.panels[0].series if s.marker == "^"]
    draw(sheet)


def test_fits_are_lines_with_their_sentences_in_the_caption():
    data = times(horizon=HORIZON)
    arrays = [data[name].values for name in ("dim", "recovery_time", "recovery_time_limit")]
    fits = [fit(*arrays, law=law, resamples=50, names=("recovery_time", "dim")) for law in ("power", "logarithmic")]
    sheet = trend(data, "recovery_time", fits)
    curve = series(sheet, "fit: recovery_time = ")
    np.testing.assert_allclose(curve.y, fits[0].predict(curve.x))
    assert (curve.x[0], curve.x[-1]) == pytest.approx((100, 1e5))
    assert all(f"{each.sentence}." in sheet.caption for each in fits)
    assert len({each.colour for each in sheet.panels[0].series if each.label.startswith(("fit", "median"))}) == 3


def test_a_law_that_was_asked_for_and_rejected_is_dashed_and_says_so():
    y = (2 + np.log(DIM))[:, None] * np.exp(0.01 * np.random.default_rng(3).normal(size=(len(DIM), 9)))
    data = times(law=False)
    data["recovery_time"] = data["recovery_time"].copy(data=y)
    choice = choose(DIM, y, asked="power", resamples=50, names=("recovery_time", "dim"))
    sheet = trend(data, "recovery_time", [choice])
    assert series(sheet, "fit: ").dash == "solid" and series(sheet, "rejected (AIC higher by ").dash == "dashed"
    np.testing.assert_allclose(series(sheet, "rejected").y[[0, -1]], choice.asked.predict(DIM[[0, -1]]))
    assert choice.best.law.name == "logarithmic" and f"{choice.asked.sentence}, rejected (" in sheet.caption


def test_a_second_setting_has_curves_with_their_own_fits_and_laws():
    data = times(students=[1, 3])
    fits = {
        value: fit(DIM, data["recovery_time"].sel(students=value).values, resamples=20, names=("recovery_time", "dim"))
        for value in (1, 3)
    }
    sheet = trend(data, "recovery_time", fits)
    (panel,) = sheet.panels
    points = [series(sheet, f"students = {value}") for value in (1, 3)]
    for each, value in zip(points, (1, 3), strict=True):
        np.testing.assert_allclose(each.y, data["recovery_time"].sel(students=value).median("seed"))
        same = [s for s in panel.series if s.colour == each.colour and s.kind == "line"]
        assert sorted(s.dash for s in same) == ["dashed", "solid"]
        np.testing.assert_allclose(next(s for s in same if s.dash == "dashed").y, np.sqrt(DIM) * value)
    assert points[0].colour != points[1].colour
    assert "students = 3: recovery_time = " in sheet.caption
    labels = [text.get_text() for text in draw(sheet).axes[0].get_legend().get_texts()]
    assert labels == ["students = 1", "students = 3", "fit", "law"]


def test_many_curves_differ_by_colour_or_marker():
    sheet = trend(times(law=False, students=list(range(1, 11))), "recovery_time")
    assert len({(s.colour, s.marker) for s in sheet.panels[0].series}) == 10


def test_the_setting_on_the_axis_can_be_chosen():
    sheet = trend(times(students=[1, 3]), "recovery_time", over="students")
    assert sheet.panels[0].xlabel == "students" and series(sheet, "input dimension d = 100").x.size == 2


def test_words_are_curves_and_never_the_axis():
    data = times(students=[1, 3]).assign_coords(students=["few", "many"]).transpose("students", ...)
    sheet = trend(data, "recovery_time")
    assert sheet.panels[0].xlabel == "input dimension d" and series(sheet, "students = few").x.size == 4


def test_probabilities_have_exact_intervals():
    data = chances().sel(ratio=2.0)
    sheet = trend(data, "recovered")
    points = series(sheet, "probability, 20 seeds")
    counts = data["recovered"].values.sum(1)
    np.testing.assert_allclose(points.y, counts / 20)
    intervals = [binomial_interval(int(count), 20, 0.95) for count in counts]
    np.testing.assert_allclose(points.low, [each.low for each in intervals])
    np.testing.assert_allclose(points.high, [each.high for each in intervals])
    assert sheet.panels[0].ylabel == "probability: all teachers recovered" and sheet.panels[0].yscale == "linear"


def test_scattered_points_need_no_grid():
    rng = np.random.default_rng(2)
    dims = ("point", "seed")
    coords = {"dim": ("point", [1000, 10, 100]), "width": ("point", [3, 1, 2])}
    data = xr.Dataset({"loss": (dims, rng.random((3, 4)) + 1), "loss_law": ("point", [3.0, 1.0, 2.0])}, coords)
    sheet = trend(data, "loss", over="dim")
    np.testing.assert_array_equal(series(sheet, "median").x, [10, 100, 1000])
    law = series(sheet, "law")  # it depends on width as well: points, not a line
    assert law.kind == "points" and (law.y == [1, 2, 3]).all()
    draw(sheet)


# ---- phase diagrams


def test_a_diagram_has_probabilities_intervals_and_the_predicted_boundary():
    data = chances(done=False)
    sheet = diagram(data, "recovered")
    measured, spread, predicted = sheet.panels
    values = data["recovered"].values
    (table,) = measured.fields
    assert table.cells and table.ends == (0.0, 1.0)
    assert table.columns == (1.0, 2.0, 5.0) and table.rows == (100, 1000, 10_000, 100_000)
    assert np.isnan(table.values[3, 2]) and np.isnan(spread.fields[0].values[3, 2])
    assert table.values[1, 2] == values[2, 1].mean() and table.values[0, 0] == np.nanmean(values[0, 0])
    interval = binomial_interval(int(np.nansum(values[0, 0])), 5, 0.95)  # five of its seeds are done
    assert spread.fields[0].values[0, 0] == pytest.approx((interval.high - interval.low) / 2)
    np.testing.assert_array_equal(predicted.fields[0].values, data["recovered_law"].values.T)
    (boundary,) = measured.series
    # At dim 100 the law is 0.4 at the second ratio and 0.8 at the third: 1/2 a quarter of the way between.
    at_first = boundary.x[np.isfinite(boundary.x) & (boundary.y == 0)]
    np.testing.assert_allclose(at_first, 1.25)
    assert measured.note == "Line: where the law predicts 1/2. Blank cells are not done."
    assert "20 seeds" in sheet.caption
    assert (measured.xlabel, measured.ylabel) == ("ratio", "dim")


def test_ticks_of_a_drawn_diagram_are_the_values_of_the_settings():
    axes = draw(diagram(chances(), "recovered")).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "5"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["100", "$10^{3}$", "$10^{4}$", "$10^{5}$"]
    np.testing.assert_allclose(axes.get_xlim(), (-0.5, 2.5))
    words = draw(diagram(chances().assign_coords(ratio=["iid", "unit", "flipped"]), "recovered")).axes[0]
    assert [text.get_text() for text in words.get_xticklabels()] == ["iid", "unit", "flipped"]
    small = draw(diagram(chances().assign_coords(ratio=[0.0, 1e-5, 0.5]).isel(ratio=[0, 1, 2]), "recovered")).axes[0]
    assert [text.get_text() for text in small.get_xticklabels()] == ["0", "$10^{-5}$", "0.5"]
    truth = draw(diagram(chances().isel(ratio=[0, 1]).assign_coords(ratio=[True, False]), "recovered")).axes[0]
    assert [text.get_text() for text in truth.get_xticklabels()] == ["True", "False"]


def test_tick_labels_of_many_columns_do_not_collide():
    dims = ("dim", "width", "seed")
    data = xr.Dataset(
        {"success": (dims, np.ones((25, 3, 4)), {"kind": "chance"}), "success_law": (dims[:2], np.full((25, 3), 0.9))},
        {"dim": np.geomspace(1e2, 1e8, 25).round(), "width": [1, 2, 3]},
    )
    figure = draw(diagram(data, "success"))
    boxes = [text.get_window_extent() for text in figure.axes[0].get_xticklabels()]
    assert len(boxes) >= 4 and all(a.x1 < b.x0 for a, b in zip(boxes, boxes[1:], strict=False))


def test_times_are_medians_with_lines_of_the_law_and_arrows():
    data = times(students=[1, 3], horizon=HORIZON)
    sheet = diagram(data, "recovery_time")
    measured, predicted = sheet.panels
    (table,) = measured.fields
    np.testing.assert_allclose(table.values[0, 0], data["recovery_time"].values[0, 0].mean(), rtol=0.3)
    assert table.values[0, 0] == np.median(data["recovery_time"].values[0, 0])
    assert table.ends == predicted.fields[0].ends and table.ends[1] == pytest.approx(3 * np.sqrt(1e5))
    *lines, arrows = measured.series
    assert arrows.marker == "^" and (3.0, 1.0) in zip(arrows.x, arrows.y, strict=True)
    assert measured.note.startswith("Line: where the law predicts 100. Arrows: half")
    # The logarithm of the law is linear in the index of dim, log10(dim) - 2: 100 is at dim 1e4 / students^2.
    (hundred,) = lines
    for row, students in enumerate((1, 3)):
        found = hundred.x[np.isfinite(hundred.x) & (hundred.y == row)]
        np.testing.assert_allclose(found, 2 - 2 * np.log10(students), atol=1e-12)
    draw(sheet)


def test_numbers_are_means_and_a_constant_law_has_no_line():
    dims = ("width", "step", "seed")
    values = np.random.default_rng(3).random((2, 3, 5)) - 0.5
    law = np.full((2, 3), 0.1)
    data = xr.Dataset({"gap": (dims, values), "gap_law": (dims[:2], law)}, {"width": [2, 4], "step": [0.1, 0.2, 0.3]})
    sheet = diagram(data, "gap")
    np.testing.assert_allclose(sheet.panels[0].fields[0].values, values.mean(-1).T)
    assert sheet.panels[0].series == () and len(sheet.panels) == 2 and sheet.panels[0].note == ""
    draw(sheet)


def test_a_diagram_of_which_nothing_is_done_is_blank():
    data = chances()
    data["recovered"][:] = np.nan
    sheet = diagram(data, "recovered")
    assert np.isnan(sheet.panels[0].fields[0].values).all() and "Blank cells are not done." in sheet.caption
    draw(sheet)


# ---- contours


def test_contours_of_a_plane_are_straight():
    rows, columns = np.indices((4, 6))
    x, y = contour(2.0 * columns + rows, 5.3)
    known = np.isfinite(x)
    np.testing.assert_allclose(2 * x[known] + y[known], 5.3, rtol=1e-14)
    assert y[known].min() == 0 and y[known].max() == 3


def test_contours_of_nothing_are_empty():
    assert contour(np.zeros((3, 3)), 1.0)[0].size == 0
    assert contour(np.zeros((1, 5)), 0.0)[0].size == 0
    holes = np.array([[0.0, 1.0], [0.0, np.nan]])
    assert contour(holes, 0.5)[0].size == 0
    assert contour(np.array([[1.0, 2.0], [2.0, 3.0]]), 1.0)[0].size == 0  # at the level is above it: no dot in a corner


def test_separate_lines_have_a_gap_between_them():
    x, _ = contour(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]), 0.25)
    assert np.isnan(x).sum() == 1 and set(x[np.isfinite(x)]) == {0.25, 1.75}


# ---- what cannot be drawn


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trend(times(), "recovery_tme"), "did you mean 'recovery_time'"),
        (lambda: trend(times(), "recovery_time", over="dm"), "did you mean 'dim'"),
        (lambda: trend(times().expand_dims(a=[1, 2], b=[1, 2]), "recovery_time"), "a, b, dim; choose a value"),
        (lambda: trend(times(students=[1, 3]), "recovery_time", [fit(DIM, np.ones((4, 2)))]), "a dictionary from its"),
        (lambda: trend(times(students=[1, 3]), "recovery_time", {2: fit(DIM, np.ones((4, 2)))}), "values are 1, 3"),
        (lambda: diagram(times(), "recovery_time"), "over a grid of two settings, but 'recovery_time' has dim"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(BadInput, match=words):
        call()
