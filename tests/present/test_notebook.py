"""A run in a notebook: pictures of it, its summary as HTML, and one line of text."""

import base64
import re

import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.present.notebook import html, sheet
from tutelage.store.store import Store
from tutelage.trajectory.findings import Certificate, Check, Phase


@pytest.fixture(scope="module")
def run():
    """Two ReLU students of one teacher."""
    problem = tt.Problem(
        inputs=tt.Gaussian(1000),
        teacher=tt.TwoLayer("relu", first=[[1.0]]),
        student=tt.TwoLayer("relu", first=tt.GaussianRows(0.01), second="ones", width=2),
    )
    return tt.descend(problem, step=0.1, steps=30, seeds=3)


@pytest.fixture
def said(run):
    """The same run with phases of two seeds and a certificate."""
    phases = (Phase("early <a>", 0.0, 1.5, seed=0), Phase("late", 1.5, 3.0, seed=0), Phase("other", 0.0, 3.0, seed=1))
    certificate = Certificate((Check("loss", "sampling", 0.25, 0.25, 0.0, 1e-3),))
    return run.with_findings(phases=phases, certificate=certificate)


def test_a_run_draws_its_overview(run):
    figure = run.plot(title="Two students")
    titles = [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes]
    assert len(figure.axes) == len(sheet(run).panels) > 2 and any("Loss" in title for title in titles)
    assert sheet(run, title="Two students").title == "Two students"


@pytest.mark.parametrize("name", ["loss", "overlap", "overlap_ss", "first_norm"])
def test_one_variable_has_one_panel_with_its_own_numbers(run, name):
    (axes,) = run.plot(name).axes
    (panel,) = sheet(run, name).panels
    variable = run.dataset[name]
    curves = int(np.prod([size for dim, size in variable.sizes.items() if dim not in ("seed", "time")]))
    strong = [series for series in panel.series if not series.faint]
    assert len(axes.lines) >= len(panel.series) == curves * (3 + 1) and len(strong) == curves
    median = variable.transpose("seed", "time", ...).values.reshape(3, variable.sizes["time"], -1)
    np.testing.assert_array_equal(strong[-1].y, np.median(median[..., -1], axis=0))


def test_what_changes_its_sign_has_no_log_axis(run):
    (signed,), (positive,) = sheet(run, "overlap").panels, sheet(run, "loss").panels
    assert positive.yscale == "log"
    assert signed.yscale == ("log" if bool((run.overlap > 0).all()) else "linear")
    flipped = tt.Run(run.dataset.assign(overlap=-run.overlap))
    assert sheet(flipped, "overlap").panels[0].yscale == "linear"


@pytest.mark.parametrize(
    ("name", "hint"), [("overlp", "did you mean 'overlap'"), ("stop_time", "loss"), ("time", "loss")]
)
def test_a_variable_that_is_not_there_is_one_sentence(run, name, hint):
    """What has no values over time cannot be drawn over it either."""
    with pytest.raises(BadInput) as caught:
        run.plot(name)
    text = str(caught.value)
    assert repr(name) in text and hint in text and "\n" not in text and text.endswith((".", "?"))


def test_html_has_the_numbers_the_phases_and_a_picture(said):
    text = said._repr_html_()
    assert text == html(said) and "<script" not in text
    for part in ("descent", "seed=3", "3 horizon", "median", "early &lt;a&gt;", "late", "All 1 checks agree"):
        assert part in text, part
    assert "early <a>" not in text and "other" not in text  # escaped; the first seed's phases only
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_a_run_without_a_loss_has_no_picture(run):
    bare = tt.Run(run.dataset.drop_vars("loss"))
    assert "<img" not in html(bare) and "3 horizon" in html(bare)


def test_text_is_one_short_line(run):
    staged = tt.run(run.asked.problem, [tt.Stage("fast", tt.Descent(0.1, 3)), tt.Stage("slow", tt.Descent(0.01, 3))])
    for each, words in ((run, ("descent", "seed=3", "time=31")), (staged, ("stages", "fast, slow"))):
        text = repr(each)
        assert len(text) < 300 and "\n" not in text and "loss" in text
        assert all(word in text for word in words)


def test_a_run_that_was_read_shows_itself_too(paper):
    """Also one that is opened by its id, of which nobody knows the problem."""
    store = Store()
    settings = paper.configure({})
    computed = paper.run(settings, seeds=2, store=store)
    for each in (paper.run(settings, seeds=2, store=store), store.open(computed.entry.id)):
        assert "2 horizon" in each._repr_html_() and len(repr(each)) < 300 and "descent" in repr(each)
        assert len(each.plot().axes) == len(computed.plot().axes)
        same = ("seeds", "stopped", "loss", "stop_time", "dim")
        assert {name: each.summary()[name] for name in same} == {name: computed.summary()[name] for name in same}
        assert each.summary()["read_from_store"]
