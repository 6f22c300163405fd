"""Figures are read as series, scales and labels, not as pixels."""

import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from tutelage._errors import BadInput
from tutelage.analysis.panels import Field, Mark, Panel, Series, Sheet, line
from tutelage.present.figures import draw, save
from tutelage.present.theme import PALETTE

X = np.array([0.0, 1.0, 10.0, 100.0])


def sheet(*series: Series, columns: int = 1, **panel) -> Sheet:
    return Sheet("Title", (Panel("panel", "x", "y", series, **panel),), columns=columns)


def axes_of(*series: Series, **panel):
    return draw(sheet(*series, **panel)).axes


def box(artist):
    return artist.get_window_extent()


def apart(one, two) -> bool:
    """The boxes do not overlap, up to the rounding of a pixel."""
    return one.x1 <= two.x0 + 1 or two.x1 <= one.x0 + 1 or one.y1 <= two.y0 + 1 or two.y1 <= one.y0 + 1


def test_series_keep_their_numbers_labels_and_colours():
    (axes,) = axes_of(line(X, X**2, "square", colour=3), line(X, X, "line", dash="dashed"))
    square, straight = axes.lines
    np.testing.assert_array_equal(square.get_xydata(), np.stack([X, X**2], 1))
    assert (square.get_label(), straight.get_label()) == ("square", "line")
    assert (to_hex(square.get_color()), to_hex(straight.get_color())) == (PALETTE[3].lower(), PALETTE[0].lower())
    assert straight.is_dashed() and not square.is_dashed()
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["square", "line"]


def test_more_series_than_colours_all_differ():
    (axes,) = axes_of(*(line(X, X * k, f"{k}") for k in range(12)))
    assert len({to_hex(curve.get_color()) for curve in axes.lines}) == 12


def test_a_label_used_twice_appears_once_in_the_legend():
    (axes,) = axes_of(line(X, X, "seeds", faint=True), line(X, 2 * X, "seeds", faint=True), line(X, 3 * X))
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["seeds"]


def test_log_axes_leave_out_what_they_cannot_show():
    (axes,) = axes_of(line(X, X - 1, "y"), xscale="log", yscale="log")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    np.testing.assert_array_equal(np.isfinite(axes.lines[0].get_ydata()), [False, False, True, True])
    assert np.isnan(axes.lines[0].get_xdata()[0])
    assert axes.get_ylim()[0] > 1  # the zero does not pull the axis down


def test_nothing_positive_on_a_log_axis_is_said_and_not_a_warning():
    (axes,) = axes_of(line([1, 2], [0, -1], "y"), yscale="log")
    assert "nothing to show" in " ".join(t.get_text() for t in axes.texts)


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize("data", [[1e-30, 1e-2, 1.0, 1e8], [0.25, 0.26, 0.3, 0.35], [2, 2.5, 3, 6], [-1, 0, 1, 5]])
def test_ticks_do_not_collide(scale, data):
    (axes,) = axes_of(line(data, data, "y"), xscale=scale, yscale=scale)
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        shown = [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high and t.label1.get_text()]
        assert len(shown) >= 2 or min(data) < 0
        boxes = [box(label) for label in shown]
        assert all(apart(a, b) for a, b in zip(boxes, boxes[1:], strict=False))


def test_bands_error_bars_and_steps():
    (axes,) = axes_of(
        line(X, X, "band", low=X - 1, high=X + 1),
        line(X, X, "bars", kind="points", low=X - 1, high=X + 2),
        line(X, X, "stairs", kind="steps"),
    )
    assert len(axes.collections) == 2  # the band, and the bars' segments
    (bars,) = axes.containers
    lengths = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(lengths, np.stack([X - 1, X + 2], 1))
    assert axes.lines[-1].get_drawstyle() == "steps-post"


def test_right_hand_series_have_their_own_axis_and_one_legend():
    left, right = axes_of(line(X, X, "loss"), line(X, 0.01 * X, "angle", right=True), right_label="angle [rad]")
    assert right.get_ylabel() == "angle [rad]" and [c.get_label() for c in right.lines] == ["angle (right)"]
    assert left.get_legend() is None  # it is on the upper axes, where no curve can cross it
    assert [t.get_text() for t in right.get_legend().get_texts()] == ["loss", "angle (right)"]


def test_marks_are_drawn_and_labelled_inside_and_apart():
    marks = (*(Mark(f"event number {k}", at=10.0 * k) for k in (1, 2, 5)), Mark("floor", level=20.0),
             Mark("late", span=(60.0, 90.0)), Mark("here", arrow=(70.0, 30.0, 90.0, 80.0)))  # fmt: skip
    (axes,) = axes_of(line(X, X, "y"), marks=marks)
    named = [t for t in axes.texts if t.get_text()]
    assert [t.get_text() for t in named] == [m.label for m in marks]
    boxes = [box(t) for t in named] + [box(axes.get_legend())]
    assert all(apart(a, b) for i, a in enumerate(boxes) for b in boxes[:i])
    frame = axes.bbox
    assert all(b.x0 >= frame.x0 - 1 and b.x1 <= frame.x1 + 1 and b.y1 <= frame.y1 + 1 for b in boxes)


def test_labels_stay_off_the_curve():
    x = np.linspace(0, 100, 200)
    (axes,) = axes_of(line(x, np.where(x < 50, 1.0, 0.2), "y"), marks=(Mark("a mark", at=30.0),), ylim=(0, 1.02))
    (label,) = (t for t in axes.texts if t.get_text() == "a mark")
    assert box(label).y1 < axes.transData.transform((0, 1.0))[1]


def test_a_mark_outside_the_axes_has_no_label():
    (axes,) = axes_of(line(X, X, "y"), marks=(Mark("far", at=1e6),), xlim=(0, 100))
    assert not [t for t in axes.texts if t.get_text()]


def test_arrows_stay_in_the_axes_and_have_labels_of_their_own():
    vectors = (Mark("a", arrow=(0.0, 0.0, 50.0, 0.0)), Mark("-a", arrow=(0.0, 0.0, -50.0, 0.0)))
    (axes,) = axes_of(line([-60.0, 60.0], [-1.0, 1.0], "y"), marks=vectors)
    plus, minus = (t for t in axes.texts if t.get_text() in ("a", "-a"))
    zero = axes.transData.transform((0.0, 0.0))[0]
    assert box(minus).x1 < zero < box(plus).x0
    (far,) = axes_of(line(X, X, "y"), marks=(Mark("b", arrow=(500.0, 500.0, 900.0, 900.0)),), xlim=(0, 100))
    assert not [t for t in far.texts if t.get_text()]
    (arrow,) = (t.arrow_patch for t in far.texts if getattr(t, "arrow_patch", None))
    assert arrow.get_clip_box() is not None


def test_long_legends_stand_beside_the_axes_and_in_the_figure():
    figure = draw(sheet(*(line(X, X * k, f"neuron {k}") for k in range(12))))
    legend = box(figure.axes[0].get_legend())
    assert legend.x0 > figure.axes[0].bbox.x1 and legend.x1 <= figure.bbox.x1


def test_a_legend_without_room_goes_below_and_stays_in_the_figure():
    rng = np.random.default_rng(0)
    noise = [line(np.arange(500), rng.normal(size=500), f"a rather long label {k}") for k in range(5)]
    figure = draw(sheet(*noise))
    legend = box(figure.axes[0].get_legend())
    assert legend.y1 < figure.axes[0].bbox.y0 and legend.y0 >= 0 and legend.x1 <= figure.bbox.x1


def test_fields_have_contours_and_a_colour_bar():
    x, y = np.linspace(-1, 1, 20), np.linspace(0, 1, 10)
    values = x[None, :] * np.ones(10)[:, None]
    axes, bar = axes_of(fields=(Field(x, y, values, "height"),), equal_axes=True)
    assert bar.get_ylabel() == "height" and axes.get_aspect() == 1
    colours = axes.collections[0]
    assert colours.norm.vmin == -colours.norm.vmax  # both signs: white is zero


@pytest.mark.parametrize("low", [-3.5, -4.0, -4.5])
def test_a_field_over_decades_has_whole_decades_on_its_bar(low):
    x = np.linspace(0.0, 1.0, 20)
    _, bar = axes_of(fields=(Field(x, x, 10.0 ** (low * np.ones((20, 1)) * x[None, :] + 0.3), "f"),))
    shown = [tick for tick, text in zip(bar.get_yticks(), bar.get_yticklabels(), strict=True) if text.get_text()]
    assert {0.1, 0.01, 0.001} <= {round(tick, 12) for tick in shown}


def test_field_levels_are_the_ticks_of_the_bar():
    x = np.linspace(0, 2, 20)
    _, bar = axes_of(fields=(Field(x, x, x[None, :] + x[:, None], "f", levels=(0.25, 1.0, 2.0)),))
    assert [t.get_text() for t in bar.get_yticklabels()] == ["0.25", "1", "2"]


@pytest.mark.parametrize("values", [np.zeros((5, 5)), np.full((5, 5), np.nan), np.geomspace(1e-9, 1, 25).reshape(5, 5)])
def test_awkward_fields_draw(values):
    values = values.copy()
    values[0, 0] = 1e-9 if np.isnan(values).all() else values[0, 0]
    draw(sheet(fields=(Field(np.arange(5.0), np.arange(5.0), values, "f"),)))


@pytest.mark.parametrize("series", [(), (line([], []),), (line([1.0], [1.0], "one"),), (line(X, X * np.nan, "nan"),)])
@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_awkward_series_draw(series, scale):
    draw(sheet(*series, xscale=scale, yscale=scale, marks=(Mark("m", at=1.0), Mark("l", level=1.0))))


def test_panels_in_rows():
    one = Panel("p", "x", "y", (line(X, X, "s"),))
    figure = draw(Sheet("t", (one,) * 5, columns=3))
    corners = {(round(a.bbox.x0), round(a.bbox.y0)) for a in figure.axes}
    assert len(figure.axes) == 5 and len({y for _, y in corners}) == 2


def test_titles_notes_and_labels_are_there_and_inside():
    figure = draw(sheet(line(X, X, "s"), note="a note " * 30))
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")) == ("x", "y", "panel")
    words = [t for t in axes.texts if "a note" in t.get_text()]
    assert words and box(words[0]).y0 >= 0 and box(words[0]).y1 <= box(axes.xaxis.label).y0 + 1
    assert figure.get_suptitle() == "Title"


def test_saving_leaves_no_trace_and_is_repeatable(tmp_path):
    before = dict(matplotlib.rcParams)
    one, two = (save(sheet(line(X, X, "s")), tmp_path / name).read_bytes() for name in ("a.png", "b.png"))
    assert one == two and one.startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before
    for suffix in ("pdf", "svg"):
        assert save(sheet(line(X, X, "s")), tmp_path / f"a.{suffix}").stat().st_size > 1000


def test_unknown_format_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"'a.gif'.*try \.png"):
        save(sheet(), tmp_path / "a.gif")


def test_drawing_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(sheet(line(X, X, "σ ≤ ‖a‖²"), xscale="log", marks=(Mark("θ ≥ π/2", at=3.0),)))
