"""The reduced flow of overlaps: against a fine fixed step, finite differences, closed solutions and its invariants."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.dynamics.neuron_flow import flow_overlaps, initial
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import antipodal, orthogonal

DIM, COUNT = 60, 32  # one number of units and few numbers of records, so that programs are compiled once


def tasks(order=4, directions=None):
    return tt.Tasks([{order: 1.0}, {order: -1.0}], {order: 1.0}, (1.0, -1.0), directions)


def skewed():
    """Tasks and means that are not orthogonal among themselves."""
    axes = np.eye(6)
    rows = axes[:3] + 0.3 * np.random.default_rng(1).standard_normal((3, 3)) @ axes[:3]
    means = np.stack([axes[3], 0.4 * axes[3] + axes[4]])
    return tt.Clustered(tt.Clusters(DIM, means, 1.5, [0.4, 0.6]), tasks(directions=rows))


PROBLEMS = {
    "orthogonal": tt.Clustered(orthogonal(DIM, 1.0, 2), tasks()),
    "antipodal": tt.Clustered(antipodal(DIM, 2.0), tasks()),
    "skewed": skewed(),
}


def drawn(problem, kind="relu", bias=0.5, seed=3, width=COUNT):
    units, start = initial(problem, tt.Experts(1, width, kind, bias), np.random.default_rng(seed))
    return units, start


def reference(problem, units, start, until, steps):
    """Classical Runge-Kutta with a fixed step; the force is a central difference of the correlation."""
    oracle, eye = ClusterOracle(problem), 1e-5 * np.eye(start.shape[-1])
    gram = problem.frame @ problem.frame.T

    correlation = eqx.filter_jit(oracle.field)

    def velocity(o):
        around = np.stack([o + row for row in eye] + [o - row for row in eye])
        both = np.asarray(correlation(units, jnp.asarray(around)).correlation)
        force = np.moveaxis(both[: len(eye)] - both[len(eye) :], 0, -1) / 2e-5
        return force @ gram - o * np.sum(o * force, axis=-1, keepdims=True)

    o, h = start.copy(), until / steps
    for _ in range(steps):
        a = velocity(o)
        b = velocity(o + h / 2 * a)
        c = velocity(o + h / 2 * b)
        o = o + h / 6 * (a + 2 * b + 2 * c + velocity(o + h * c))
    return o


@pytest.mark.parametrize("name", PROBLEMS)
def test_against_a_fine_fixed_step(name):
    problem = PROBLEMS[name]
    units, start = drawn(problem)
    start = start * 2.0 / np.sqrt(np.maximum(1.0, 12 * np.sum(start**2, -1, keepdims=True)))  # to see them move
    found = flow_overlaps(problem, units, start, 20.0, rtol=1e-10)
    seen = reference(problem, units, start, 20.0, 200)
    assert np.abs(seen - start).max() > 0.02
    # Differences with h = 1e-5 are right to 1e-10 and the steps of 0.1 to 1e-7; over a time of 20 that grows tenfold.
    np.testing.assert_allclose(found.final, seen, rtol=0, atol=1e-6)


def test_escape_time_of_the_closed_solution():
    """One cluster served, `a h_4`: d kappa/dt = 4 kappa^3 (1 - kappa^2) if kappa is the only overlap."""
    problem = PROBLEMS["orthogonal"]
    units, _ = drawn(problem, (4, 4), 0.0)
    good = np.asarray(units.outgoing * units.signs[..., 0])[0] > 0
    start = np.zeros((1, COUNT, 5))
    start[..., 0] = 1e-3
    found = flow_overlaps(ClusterOracle(problem).served((1.0, 0.0)), units, start, 1e7, rtol=1e-9)

    def clock(x):  # the integral of 1/(4 x^3 (1 - x^2))
        return -1 / (8 * x**2) + np.log(x) / 4 - np.log(1 - x**2) / 8

    # Errors of the steps, 1e-9 each over some hundred, are doubled by the power law of the escape; its interpolation
    # in the last step, of width 1 beside 125000, adds less.
    np.testing.assert_allclose(found.crossed[0, good, 0], clock(0.5) - clock(1e-3), rtol=1e-6)
    np.testing.assert_allclose(found.final[0, good, 0], 1.0, atol=1e-6)  # at rest to 100 rtol
    assert np.isinf(found.crossed[0, ~good]).all() and np.isinf(found.crossed[..., 1:]).all()
    # The others decay: d kappa/dt = -4 kappa^3 (1 + kappa^2) up to kappa^2 = 1e-6.
    np.testing.assert_allclose(found.final[0, ~good, 0], (1e6 + 8 * 1e7) ** -0.5, rtol=1e-5)


def test_invariants_and_outcomes_in_a_billion_dimensions():
    problem = tt.Clustered(antipodal(10**9, 3.0), tasks())
    units, start = drawn(problem, bias=0.0)
    times = np.geomspace(1e3, 1e16, 9)
    found = flow_overlaps(problem, units, start, 1e17, times=times)
    # |o|^2, the mean counted once, is the squared norm of a unit vector's part; rtol 1e-7 a step.
    norms = np.sum(found.overlaps[..., :4] ** 2, axis=-1)
    assert norms.max() <= 1 + 1e-5
    np.testing.assert_allclose(found.overlaps[..., 3], -found.overlaps[..., 4], atol=1e-12)
    # ReLU without biases and antipodal means: the correlation has nothing of the global task, each neuron learns one
    # local task, which the sign of its coefficient names. -0.0814 is the coefficient of order 4.
    assert np.isfinite(found.settled).all()
    expected = np.where(np.asarray(units.outgoing) < 0, 0, 1)
    np.testing.assert_array_equal(np.argmax(np.abs(found.final), axis=-1), expected)
    assert (np.take_along_axis(np.abs(found.final), expected[..., None], -1) > 0.999).all()
    assert found.largest[..., 2].max() <= np.abs(start[..., 2]).max() * 1.01
    # Records of a unit at rest are its end.
    np.testing.assert_array_equal(found.overlaps[-1][found.settled < times[-1]], found.final[found.settled < times[-1]])


def test_starts_that_do_not_move():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem, (4, 4), 0.0)
    start = np.zeros_like(start)
    start[0, 1, 0], start[0, 2, 0], start[0, 3, 2] = 1.0, -1.0, 1.0
    found = flow_overlaps(problem, units, start, 100.0)
    np.testing.assert_array_equal(found.final, start)
    np.testing.assert_array_equal(found.settled, np.zeros((1, COUNT)))
    assert found.crossed[0, 1, 0] == 0 and np.isinf(found.crossed[0, 0]).all()


def test_records_do_not_change_the_way():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem)
    plain = flow_overlaps(problem, units, start, 1e3, rtol=1e-9)
    each = np.linspace(0, 1e3, 9)[:, None, None] * np.linspace(0.5, 1.0, COUNT)
    found = flow_overlaps(problem, units, start, 1e3, times=each, rtol=1e-9)
    np.testing.assert_allclose(found.final, plain.final, atol=1e-6)
    np.testing.assert_array_equal(found.overlaps[0], start)
    np.testing.assert_allclose(found.overlaps[-1][0, -1], plain.final[0, -1], atol=1e-6)


def test_halt_ends_a_unit_where_it_crosses():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem, (4, 4), 0.0)
    halt = np.zeros(start.shape, bool)
    halt[..., :2] = True
    found = flow_overlaps(problem, units, start, 1e9, threshold=0.3, halt=halt)
    top = np.abs(found.final[..., :2]).max(-1)
    assert ((top >= 0.3) & (top < 0.9)).all()
    assert np.isinf(found.settled).all()


def test_flips_are_seen():
    """ReLU's alpha_4 changes its sign where |b + rho nu| crosses 1: a unit with a bias of 0.9 drifts across."""
    problem = tt.Clustered(orthogonal(100, 3.0, 2), tasks())
    units, start = drawn(problem, bias=1.5)
    found = flow_overlaps(problem, units, start, 1e8)
    shift = np.asarray(units.bias)[..., None] + 3.0 * np.stack([start, found.final])[..., 3:]
    ends = (np.abs(shift[0]) < 1) != (np.abs(shift[1]) < 1)
    flips = np.isfinite(found.flipped[..., 4])
    assert ends.any() and flips[ends].all()  # those that end on the other side have crossed
    assert not flips.all()


@pytest.mark.parametrize(
    "change, word",
    [
        ({"until": 0.0}, "until"),
        ({"until": np.inf}, "until"),
        ({"rtol": 0.1}, "rtol"),
        ({"times": [2.0, 1.0]}, "ascend"),
        ({"times": [200.0]}, "ascend"),
        ({"overlaps": np.ones((1, COUNT, 5))}, "no unit vector"),
        ({"overlaps": np.full((1, COUNT, 5), np.nan)}, "no unit vector"),
        ({"overlaps": np.zeros((COUNT, 5))}, "shape"),
    ],
)
def test_bad_input(change, word):
    problem = PROBLEMS["antipodal"]
    units, start = drawn(problem)
    with pytest.raises(BadInput, match=word):
        flow_overlaps(**{"problem": problem, "units": units, "overlaps": start, "until": 100.0} | change)


def test_overlaps_that_contradict_the_frame_are_refused():
    problem = PROBLEMS["antipodal"]
    units, start = drawn(problem)
    start[..., 4] = start[..., 3]  # but v_2 = -v_1
    with pytest.raises(BadInput, match="no unit vector"):
        flow_overlaps(problem, units, start, 100.0)


def test_too_many_steps_are_refused(monkeypatch):
    monkeypatch.setattr("tutelage.dynamics.neuron_flow.LIMIT", 3)
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem, width=COUNT + 1)
    with pytest.raises(BadInput, match="3 steps"):
        flow_overlaps(problem, units, start, 1e6)
