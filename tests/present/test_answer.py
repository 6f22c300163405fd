"""What a run answers: marks of phases under the plot, each under its time."""

import numpy as np

from tutelage.present.sparkplot import sparkplot


def test_letters_stand_under_their_places():
    lines = sparkplot(np.arange(11.0), np.arange(11.0), width=11, height=2, marks={"a": 0, "b": 5, "c": 10, "d": 11})
    row, edge = lines.splitlines()[-2], lines.splitlines()[-3].index("┤") + 1
    assert [row.index(letter) - edge for letter in "abc"] == [0, 5, 10]
    assert "d" not in row  # outside the plot
