"""Settings, starts and phases of `relu_teachers`."""

import math

import numpy as np
import pytest
import xarray as xr

import tutelage as tt
from tutelage.papers.relu_teachers import PAPER, measures
from tutelage.papers.relu_teachers.assumptions import assumptions
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.papers.relu_teachers.recipe import problem, run, teacher_rows
from tutelage.papers.relu_teachers.settings import ReluTeachersSettings

SMALL = {"teachers": 2, "students": 6, "norm": 1.0, "dim": 50, "init": "weak", "step": 1e-2, "steps": 5000}


@pytest.fixture(scope="module")
def escaping():
    """A flow over the plateau: k = 2, m = 6 from 1e-12, to s = 50."""
    return run(ReluTeachersSettings(**SMALL, scale=1e-12), dynamics="flow", seeds=2)


def phase(result, name, seed=0):
    return next(p for p in result.phases if p.name == name and p.seed == seed)


@pytest.mark.parametrize("dim", [5, 100, 10**8])
def test_a_weak_start_meets_the_assumptions_and_a_gaussian_one_does_not(dim):
    eps1 = 0.3
    values = {"dim": dim, "teachers": 4, "students": 12, "scale": 1e-3, "zeta": 2e-3}
    for init, met in (("weak", True), ("gaussian", False)):
        start = problem(ReluTeachersSettings(**values, init=init)).begin(seed=1)
        found = assumptions(start.student.first, start.teacher.first, dim=dim, sigma=1e-3, eps1=eps1)
        assert found.orthogonal and found.weak_recovery is met


def test_teachers_have_the_norms_and_the_cosine_asked_for():
    rows = teacher_rows(ReluTeachersSettings(teachers=3, norms=(1.0, 2.0, 3.0), cosine=0.3))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 2, 3], rtol=1e-14)
    gram = rows @ rows.T / np.outer([1, 2, 3], [1, 2, 3])
    np.testing.assert_allclose(gram[~np.eye(3, dtype=bool)], 0.3, rtol=1e-13)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dim": 3}, "dim >= k"),
        ({"norms": (1.0, 2.0)}, "give one each"),
        ({"cosine": -0.5}, "above -0.333333"),
        ({"counts": (1, 2, 3)}, "add up to students = 20"),
        ({"first": ((1.0,),)}, "give one row each"),
        ({"dim": 4, "init": "weak"}, "more dimensions"),
        ({"batch": 0}, "batch"),
        ({"student": 3}, "students"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(values, words):
    with pytest.raises(tt.BadInput, match=words):
        PAPER.configure(values)


def test_the_plateau_is_found_with_its_level_and_rate(escaping):
    level = Plateau(2, 6)
    for seed in (0, 1):
        collapse, shelf, escape = (phase(escaping, name, seed) for name in ("collapse", "plateau", "escape"))
        # From 1e-12 the spread falls to 1e-4 before it grows again: the rates are those of the saddle to a few percent.
        assert collapse.fit.slope == pytest.approx(-level.decay_inside, rel=0.02)
        assert escape.fit.slope == pytest.approx(level.gamma_inside, rel=0.05)
        assert f"predicted {level.loss:.5g}" in shelf.description
        at = float(escaping.loss.sel(seed=seed, time=0.5 * (shelf.start + shelf.end), method="nearest"))
        assert at == pytest.approx(level.loss, rel=0.01)
        # The linear prediction leaves out that the growth slows near its end.
        assert 0 < escape.end - escape.predicted < 2 / level.gamma_inside


def test_the_papers_order_is_reversed_for_two_teachers(escaping):
    aligned, grown = phase(escaping, "alignment (T1)"), phase(escaping, "growth (T2)")
    assert aligned.end > grown.end > 1e5 * aligned.predicted


def test_one_teacher_aligns_first():
    result = run(ReluTeachersSettings(**SMALL | {"teachers": 1, "students": 3}, scale=1e-4), dynamics="flow")
    names = [p.name for p in result.phases]
    assert names == ["small norms", "alignment (T1)", "growth (T2)", "local"]
    assert phase(result, "alignment (T1)").end < phase(result, "small norms").end
    assert phase(result, "local").end == 50.0


def test_no_phase_is_found_in_a_run_that_stands_still():
    result = run(ReluTeachersSettings(**SMALL | {"steps": 20}, scale=1e-2), dynamics="descent", record=20)
    assert {p.name for p in result.phases} <= {"small norms", "collapse"}
    early = run(ReluTeachersSettings(dim=10**8, steps=50), record=20)
    assert "local" not in {p.name for p in early.phases}


def test_measures_on_a_hand_made_record():
    """Two students on two teachers of norm 2, the second at 60 degrees to its teacher at the second time."""
    first = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [math.sin(1), math.cos(1)]]])
    teacher = 2 * np.eye(2)
    unit = first / np.linalg.norm(first, axis=-1, keepdims=True)
    dims = ("time", "student", "teacher")
    data = xr.Dataset(
        {
            "overlap": (dims, first @ teacher.T),
            "overlap_cos": (dims, unit),
            "overlap_angle": (dims, np.arccos(np.clip(unit, -1, 1))),
        },
        {"time": [0.0, 1.0]},
    )
    assert measures.home(data).values.tolist() == [0, 1]
    np.testing.assert_allclose(measures.home_angles(data).values, [[0, 0], [0, 1]], atol=1e-15)
    np.testing.assert_allclose(measures.missing(data, 2.0).values, [[1, 1], [1, 2 - math.cos(1)]], rtol=1e-14)
    np.testing.assert_allclose(measures.spread(data).values[0], math.sqrt(0.5), rtol=1e-14)
    np.testing.assert_allclose(
        measures.mean_cosines(data).values[1], [0.5**0.5, (math.sin(1) + math.cos(1)) * 0.5**0.5], rtol=1e-14
    )


def test_the_default_step_is_the_papers_where_sgd_is_stable():
    assert ReluTeachersSettings().pace("sgd") == 5e-4
    assert ReluTeachersSettings(dim=10**8).pace("sgd") == 512 / (20 * 10**8)
    assert ReluTeachersSettings(dim=10**8).pace("flow") == 5e-4
    assert ReluTeachersSettings(dim=10**8, step=0.1).pace("sgd") == 0.1
