"""Tables in colours with their entries written in, and axes with names."""

import numpy as np

from tutelage.analysis.panels import Field, Panel, Sheet, line
from tutelage.present.figures import draw


def table(values, **more):
    values = np.asarray(values, float)
    down, across = (np.arange(size, dtype=float) for size in values.shape)
    return Panel("", "x", "y", fields=(Field(across, down, values, "z", cells=True, ends=(0.0, 10.0), **more),))


def written(panel):
    axes = draw(Sheet("", (panel,))).axes[0]
    return {text.get_position(): (text.get_text(), text.get_color()) for text in axes.texts}


def test_entries_are_written_where_they_are_and_blanks_are_not():
    found = written(table([[1, 2], [np.nan, 10]], written=".1f"))
    assert {at: text for at, (text, _) in found.items()} == {(0, 0): "1.0", (1, 0): "2.0", (1, 1): "10.0"}
    assert found[1, 1][1] == "white" != found[0, 0][1]  # light on dark
    assert written(table([[1, 2]])) == {}


def test_cells_that_are_narrow_have_no_edges():
    few, many = (draw(Sheet("", (table(np.ones((2, size))),))).axes[0].collections[0] for size in (20, 200))
    assert len(few.get_edgecolor()) and not len(many.get_edgecolor())


def test_axes_with_names():
    panel = Panel("", "", "y", (line([0, 1], [1, 2]),), names=("first", "second"))
    axes = draw(Sheet("", (panel,))).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["first", "second"]
