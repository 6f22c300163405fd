"""Which settings a sweep visits: what `--over` may say, grids in order, designs that a seed repeats."""

import numpy as np
import pytest

from tutelage import papers
from tutelage._errors import BadInput
from tutelage.study.design import Range, design, parsed

PAPER = papers.get("both_layers")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10,25,50", (10, 25, 50)),
        (" 1e3 , 0.5 ", (1000, 0.5)),
        ("xavier,paper_chi", ("xavier", "paper_chi")),
        ("true,none", (True, None)),
        ("1e2..1e8:13", Range(1e2, 1e8, 13, log=True)),
        ("1..2", Range(1.0, 2.0)),
        ("0..1:5", Range(0.0, 1.0, 5, log=False)),
        ("1..9:5:lin", Range(1.0, 9.0, 5, log=False)),
        ("1..9:lin", Range(1.0, 9.0, None, log=False)),
        ("-1..1:3", Range(-1.0, 1.0, 3, log=False)),
        ("1e-8..1e-2:7:log", Range(1e-8, 1e-2, 7, log=True)),
    ],
)
def test_texts_are_values_or_ranges(text, values):
    assert parsed(text) == values


@pytest.mark.parametrize(
    "text",
    ["1..", "..5", "a..b:3", "1..2:x", "1..2:3:cubic", "0..1:5:log", "-1..1:3:log", "1..inf:3", "nan..1:3", "1..2..3"],
)
def test_what_is_no_range_is_one_sentence(text):
    with pytest.raises(BadInput, match=r"(--over|The range) .*(write|try|mend)"):
        parsed(text)


@pytest.mark.parametrize(
    ("over", "options", "words"),
    [
        ({}, {}, "at least one setting"),
        ({"dims": [1]}, {}, "dims"),
        ({"dim": "1..9"}, {}, "no number of points"),
        ({"dim": []}, {}, "no values"),
        ({"dim": ","}, {}, "no values"),
        ({"dim": "1..9:0"}, {}, "from 1 to"),
        ({"dim": "1..9"}, {"kind": "sobol"}, "--points"),
        ({"dim": "1..9"}, {"kind": "random", "points": 0}, "points is 0"),
        ({"dim": [1]}, {"kind": "latin"}, "latin"),
        ({"dim": []}, {"kind": "random", "points": 2}, "no values"),
    ],
)
def test_a_design_that_cannot_be_is_one_sentence(over, options, words):
    with pytest.raises(BadInput, match=words):
        design(PAPER, over, **options)


def test_the_last_axis_of_a_grid_is_the_fastest():
    found = design(PAPER, {"width": [4, 1], "init": "xavier,gauss_half", "scale": "1e-4,1e-2"})
    assert found.shape == (2, 2, 2) and found.dims == ("width", "init", "scale")
    assert [tuple(point.values()) for point in found.points[:3]] == [
        (4, "xavier", 1e-4),
        (4, "xavier", 1e-2),
        (4, "gauss_half", 1e-4),
    ]
    assert found.points[4]["width"] == 1  # in the order given, not sorted


def test_whole_settings_of_a_range_are_rounded_and_come_once():
    assert design(PAPER, {"width": "1..4:10"}).axes["width"] == (1, 2, 3, 4)
    assert design(PAPER, {"dim": "1e2..1e8:7"}).axes["dim"] == tuple(10**power for power in range(2, 9))
    assert all(type(value) is int for value in design(PAPER, {"dim": "1e2..1e8:13"}).axes["dim"])


def test_ranges_reach_both_ends():
    log, even = (design(PAPER, {"scale": text}).axes["scale"] for text in ("1e-8..1e-2:4", "0.1..0.7:4:lin"))
    assert log == (1e-8, 1e-6, 1e-4, 1e-2)
    assert even == (0.1, 0.3, 0.5, 0.7)


def test_values_that_are_given_stay_as_they_are():
    exact = 0.1234567890123456789
    assert design(PAPER, {"scale": [exact, np.float64(2.5)]}).axes["scale"] == (exact, 2.5)
    assert design(PAPER, {"dim": [1e3, np.int64(7)]}).axes["dim"] == (1000, 7)
    assert design(PAPER, {"dim": 5}).axes["dim"] == (5,)
    lists = design(PAPER, {"singular_values": [[1.5, 2], (3, 4)]}).axes["singular_values"]
    assert lists == ((1.5, 2), (3, 4))


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_scattered_points_are_repeated_by_their_seed_and_inside(kind):
    over = {
        "dim": "10..1e6",
        "scale": "1e-8..1e-2",
        "step": Range(0.1, 0.2, log=False),
        "init": ["xavier", "paper_chi"],
    }
    one, same, other = (design(PAPER, over, kind=kind, points=11, seed=seed).points for seed in (3, 3, 4))
    assert one == same and one != other and len(one) == 11
    for point in one:
        assert 10 <= point["dim"] <= 10**6 and type(point["dim"]) is int
        assert 1e-8 <= point["scale"] <= 1e-2 and 0.1 <= point["step"] <= 0.2
        assert point["init"] in ("xavier", "paper_chi")
    assert design(PAPER, over, kind=kind, points=11).dims == ("point",)


def test_sobol_points_fill_the_range_evenly():
    """Of 2^m points each dyadic interval of length 2^-m holds one, in each coordinate."""
    over = {"scale": "1e-8..1", "target": Range(1, 2, log=False)}
    points = design(PAPER, over, kind="sobol", points=16, seed=1).points
    parts = np.log(np.array([point["scale"] for point in points])) / np.log(1e8) + 1
    assert sorted((16 * parts).astype(int)) == list(range(16))
    assert sorted(int(16 * (point["target"] - 1)) for point in points) == list(range(16))


def test_fewer_sobol_points_are_the_beginning_of_more():
    over = {"scale": "1e-8..1"}
    few, many = (design(PAPER, over, kind="sobol", points=count, seed=1).points for count in (5, 16))
    assert many[:5] == few


def test_aliases_are_settings():
    paper = papers.get("soft_moe")
    assert paper.aliases and design(paper, {next(iter(paper.aliases)): [2]}).names == (
        next(iter(paper.aliases.values())),
    )
