"""One problem by several dynamics: distances that are known, and how they shrink."""

import numpy as np
import pytest

import tutelage as tt
from tutelage.analysis.comparing import apart, finer, interpolated

TEACHER = tt.TwoLayer("erf_over_sqrt2", first=np.eye(2), second="ones")


def problem(dim: int = 1000) -> tt.Problem:
    student = tt.TwoLayer(
        "erf_over_sqrt2", first=tt.SphereRows(0.5), width=2, second="ones", trains=("first",)
    )  # fmt: skip
    return tt.Problem(tt.Gaussian(dim), TEACHER, student)


@pytest.fixture(scope="module")
def shrinking():
    return tt.compare(problem(), [tt.Flow(8.0), tt.Descent(0.4, 20)], finer=[1, 2, 4], seeds=3)


def test_descent_is_a_flow_up_to_the_order_of_its_step(shrinking):
    fitted = shrinking.exponents["descent"]
    assert abs(fitted.estimates["b"] + 1) < 0.1
    assert shrinking.distances["loss"].dims == ("dynamics", "finer", "seed")
    assert shrinking.names == ("descent",) and shrinking.reference == "flow"
    assert list(shrinking.runs) == [1, 2, 4]


def test_it_prints_and_draws(shrinking):
    text = str(shrinking)
    assert text.splitlines()[0].startswith("Largest distance from flow at any time")
    assert "finer = 4" in text and ("-1.0" in text or "-0.9" in text)
    sheet = shrinking.sheet()
    assert [(series.label, series.dash) for series in sheet.panels[0].series] == [
        ("descent", "solid"),
        ("flow", "dashed"),
    ]
    assert len(sheet.panels) == 2 and len(shrinking.plot().axes) == 2


def test_the_ode_is_the_limit_of_sgd():
    """The distance of SGD falls with the dimension, that of the flow does not: it has no noise."""
    found = tt.compare(
        problem,
        {
            "ode": tt.Ode(rate=0.5, until=4.0),
            "flow": tt.Flow(4.0),
            "sgd": lambda dim: tt.Sgd(steps=8 * dim, batch=1, step=0.5 / dim),
        },
        dims=[30, 100, 300],
        seeds=6,
        record=100,
    )
    middle = found.distances["loss"].median("seed")
    assert middle.sel(dynamics="sgd", dim=30) > 1.5 * middle.sel(dynamics="sgd", dim=300)
    assert found.exponents["sgd"].estimates["b"] < -0.2
    assert abs(found.exponents["flow"].estimates["b"]) < 0.2


def test_a_distance_is_the_largest_at_any_time():
    one, other = (tt.descend(problem(50), step=step, steps=int(4 / step), record="all") for step in (0.1, 0.2))
    found = apart(other, one, "loss")
    same = np.abs(one.loss.values[:, ::2] - other.loss.values).max(1)
    assert np.all(found >= same) and np.all(found < 1.5 * same)
    assert np.all(apart(one, one, "overlap") == 0)


def test_a_seed_that_has_stopped_stays_where_it_was():
    stopped = tt.flow(problem(50), until=100.0, stop=tt.Stop(loss=0.05), seeds=3)
    assert len(set(stopped.recorded.values.tolist())) > 1
    assert np.all(np.isfinite(apart(stopped, tt.flow(problem(50), until=100.0, seeds=3), "loss")))


def test_values_between_records_are_linear_in_time():
    times, values = np.array([0.0, 1.0, 4.0]), np.array([[[0.0, 1.0], [2.0, 1.0], [5.0, 4.0]]])
    np.testing.assert_allclose(interpolated(times, values, np.array([0.5, 4.0]))[0], [[1.0, 1.0], [5.0, 4.0]])


def test_steps_are_made_smaller():
    assert finer(tt.Sgd(10, 4, 0.2), 2) == tt.Sgd(20, 4, 0.1)
    assert finer(tt.Ode(1.0, 5.0), 4) == tt.Ode(0.25, 5.0)
    assert finer(tt.Sphere(100, 0.2), 2).samples == 200


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (lambda: tt.compare(problem(), [tt.Flow(1.0)]), "at least two dynamics"),
        (lambda: tt.compare(problem(), [tt.Flow(1.0), tt.Flow(2.0)]), "flow is there twice"),
        (lambda: tt.compare(problem(), [tt.Flow(1.0), "sgd"]), "compare: dynamics is 'sgd'"),
        (lambda: tt.compare(problem(), [tt.Flow(1.0), tt.Ode(1.0, 1.0)], dims=[3]), "with dims, pass a function"),
        (lambda: tt.compare(problem, [tt.Flow(1.0), tt.Ode(1.0, 1.0)]), "pass dims= too"),
        (lambda: tt.compare(problem, [tt.Flow(1.0), tt.Ode(1.0, 1.0)], dims=[3, 3]), "different whole numbers"),
        (lambda: tt.compare(problem, [tt.Flow(1.0), tt.Ode(1.0, 1.0)], dims=[3], finer=[1]), "pass one of them"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(asked, sentence):
    with pytest.raises(tt.BadInput, match=sentence):
        asked()
