"""The small parts: values on a command line, plain JSON, parameters, progress, overview."""

import enum
import json
from dataclasses import dataclass
from typing import Annotated, Literal

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pydantic
import pytest
import xarray as xr

from tutelage._errors import BadInput
from tutelage._plain import dumps, plain
from tutelage._values import assignments
from tutelage.present import progress as progress_module
from tutelage.present.describe import describe
from tutelage.present.overview import overview
from tutelage.present.placing import Crowd, best
from tutelage.present.progress import Progress
from tutelage.present.settings_table import parameters
from tutelage.present.sparkplot import sparkplot


@hypothesis.given(st.integers(-(10**39), 10**39))
@hypothesis.example(2**53 + 1)  # the first whole number that a float cannot hold
@hypothesis.example(10**39 - 1)
def test_whole_numbers_are_exact(value):
    read = assignments([f"n={value}", f"m={value}e0"])
    assert read == {"n": value, "m": value} and {type(each) for each in read.values()} == {int}


@hypothesis.given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_survive(value):
    assert float(assignments([f"x={value!r}"])["x"]) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("a=none", None), ("a=true", True), ("a=x=y", "x=y"), ("a= b ", "b"), ("a=1e50", 1e50), ("a=-2.50", -2.5)],
)
def test_other_values(text, value):
    assert assignments([text]) == {"a": value}


def test_the_last_one_wins():
    assert assignments(["a=1", "a=2"]) == {"a": 2}


@pytest.mark.parametrize("text", ["foo", "=1", "a=", "a=[1,"])
def test_malformed_assignments(text):
    with pytest.raises(BadInput):
        assignments([text])


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Box:
    size: np.ndarray
    colour: Colour


def test_plain_takes_apart_what_results_hold():
    box = Box(np.array([1.0, np.nan]), Colour.RED)
    assert plain({"box": box, 1: np.int32(2)}) == {"box": {"size": [1.0, None], "colour": "red"}, "1": 2}
    assert json.loads(dumps([float("inf"), box.size])) == [None, [1.0, None]]


def test_parameters_in_words():
    class Model(pydantic.BaseModel):
        law: Literal["chi", "xavier"] = "chi"
        scale: Annotated[float, pydantic.Field(gt=0, le=1e3)] = 0.5
        width: int | None = None
        sizes: tuple[int, ...] = (1, 2)
        needed: int

    rows = {p.name: p for p in parameters(Model)}
    assert rows["law"].kind == "chi | xavier" and rows["scale"].bounds == "> 0, <= 1000"
    assert rows["width"].kind == "int | none" and rows["sizes"].kind == "tuple[int, ...]"
    assert rows["needed"].default == "required"


def test_progress_in_a_log_speaks_now_and_then(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with Progress() as progress:
        for second in range(12):
            now[0] = float(second)
            progress("descent", second, 12)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["tutelage: descent (6/12, 6 s, about 6 s left)"]


def test_time_left_counts_from_what_was_done_before(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with Progress() as progress:
        progress("sweep", 90, 120)  # resumed: ninety cells were there
        now[0] = 8.0
        progress("sweep", 92, 120)  # workers started and compiled: no pace yet
        now[0] = 20.0
        progress("sweep", 98, 120)
        now[0] = 40.0
        progress("sweep", 120, 120)
    assert capsys.readouterr().err.splitlines() == [
        "tutelage: sweep (92/120, 8 s)",
        "tutelage: sweep (98/120, 20 s, about 44 s left)",  # six in twelve seconds
        "tutelage: sweep (120/120, 40 s)",
    ]


def test_one_step_of_a_thousand_says_nothing_of_the_others(capsys, monkeypatch):
    """The first one took 49 s, most of it compilation, and thirteen hours were told for a run of five minutes."""
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with Progress() as progress:
        for done, now[0] in ((0, 0.0), (1, 49.0), (20, 55.0), (60, 67.7)):
            progress("lab", done, 1000)
    assert capsys.readouterr().err.splitlines() == [
        "tutelage: lab (1/1000, 49 s)",
        "tutelage: lab (20/1000, 55 s)",
        "tutelage: lab (60/1000, 1 min 8 s, about 4 min 58 s left)",
    ]


def test_parts_of_unlike_cost_have_the_time_they_had_before_or_none(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with Progress(alike=False) as progress:
        for done in range(4):  # quick ones, which say nothing of what comes
            now[0] = 6.0 * (done + 1)
            progress("claim", done, 50)
        progress.expect(part=300.0, whole=1000.0)
        now[0] = 40.0
        progress("figure", 5, 50)
        now[0] = 400.0  # longer than before: what is left of it nobody knows
        progress("figure", 5, 50)
        progress.expect(part=None, whole=None)
        now[0] = 410.0
        progress("certificate", 6, 50)
    assert capsys.readouterr().err.splitlines() == [
        *(f"tutelage: claim ({done}/50, {6 * (done + 1)} s)" for done in range(4)),
        "tutelage: figure (5/50, 40 s, this part about 4 min 44 s more, all about 16 min 24 s)",
        "tutelage: figure (5/50, 6 min 40 s, all about 10 min 24 s)",
        "tutelage: certificate (6/50, 6 min 50 s)",
    ]


def test_quiet_progress_says_nothing(capsys):
    with Progress(quiet=True) as progress:
        progress._began = progress._said = -100.0
        progress("descent", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal_starts_late_and_goes_away(capsys, monkeypatch):
    monkeypatch.setattr(progress_module.sys.stderr, "isatty", lambda: True, raising=False)
    with Progress() as progress:
        progress("descent", 1, 2)
    assert "descent" not in capsys.readouterr().err


def run_dataset(seeds=3) -> xr.Dataset:
    time = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 30)])
    loss = np.exp(-time) * np.arange(1, seeds + 1)[:, None]
    loss[0, 20:] = np.nan  # a seed that ended early
    dataset = xr.Dataset(coords={"time": time, "seed": np.arange(seeds)})
    dataset["loss"] = (("seed", "time"), loss)
    dataset["overlap_angle"] = (("seed", "time", "student", "teacher"), np.ones((seeds, 31, 12, 1)))
    return dataset


def test_overview_shows_seeds_and_their_median():
    sheet = overview(run_dataset())
    loss, angle = sheet.panels
    assert [s.faint for s in loss.series] == [True, True, True, False]
    np.testing.assert_allclose(loss.series[-1].y[0], 2.0)
    assert loss.xscale == "log" and loss.yscale == "log"
    # Twelve students are too many to tell apart: one band.
    (band,) = angle.series
    assert band.low is not None and angle.note == "median of 12 curves per seed, band: 10 % to 90 %"


def test_overview_shows_the_nearest_teacher_and_no_layer_that_is_fixed():
    dataset = run_dataset()[["loss"]]
    angles = np.broadcast_to([0.3, 1.2], (3, 31, 2, 2))
    dataset["overlap_angle"] = (("seed", "time", "student", "teacher"), angles)
    dataset["second"] = (("seed", "time", "student", "output"), np.ones((3, 31, 2, 1)))
    panels = overview(dataset).panels
    assert [panel.title for panel in panels] == ["Loss", "Angle to the nearest teacher"]
    assert {float(value) for series in panels[1].series for value in series.y} == {0.3}
    dataset["second"][:, 1:] = 2.0
    assert "Outgoing weights" in {panel.title for panel in overview(dataset).panels}


def test_overview_of_one_seed_has_no_faint_curves():
    (series,) = overview(run_dataset(1)[["loss"]]).panels[0].series
    assert not series.faint and np.isfinite(series.y).all() and len(series.y) == 20


def test_describe_takes_the_last_finite_value():
    about = describe(run_dataset())
    # Seed 0 ended at record 20, where its loss was exp(-time).
    assert about["final"]["loss"]["max"] == pytest.approx(np.exp(-run_dataset().time.values[19]))
    assert about["stopped"] == [] and about["settings"] == {}


def test_sparkplot_has_its_frame():
    text = sparkplot(np.arange(1, 100), np.exp(-np.arange(1.0, 100)), title="loss", width=30, height=4)
    lines = text.splitlines()
    assert lines[0] == "loss (log)" and len(lines) == 6
    assert "0.368 ┤" in lines[1] and "1.01e-43 ┤" in lines[4] and lines[5].split() == ["1", "99"]
    assert sparkplot([1.0], [np.nan], title="loss") == "loss: too few values to plot"
    assert "┤" in sparkplot([1.0, 2.0], [3.0, 3.0])


def test_labels_prefer_free_room():
    crowd = Crowd()
    crowd.add_curve(np.array([[0.0, 5.0], [100.0, 5.0]]))
    assert best([(0, 0, 10, 10), (0, 20, 10, 30)], crowd)[0] == 1
    crowd.boxes.append((0, 20, 10, 30))
    assert best([(0, 0, 10, 10), (0, 20, 10, 30)], crowd)[0] == 0  # covering words is worse than covering a curve
    assert best([(-5, 40, 5, 50), (20, 0, 30, 10)], crowd, inside=(0, 0, 100, 100))[0] == 1


def test_overview_shows_the_orders_that_there_are():
    values = np.array([1.0, 0.0, 0.5, 1e-15]) * np.exp(-np.arange(5.0))[:, None]
    orders = xr.DataArray(values[None], dims=("seed", "time", "tensor_order"))
    loss = xr.DataArray(values.sum(1)[None], dims=("seed", "time"))
    data = xr.Dataset({"loss": loss, "loss_order": orders}, {"time": np.arange(5.0), "tensor_order": range(4)})
    panel = next(panel for panel in overview(data).panels if panel.title == "Loss by order")
    assert [series.label for series in panel.series] == ["order 0", "order 2"]
