"""The explicit solver of flows: its steps are diffrax's, its records lie inside them, and decays are followed."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.dynamics.tsit5 import Tsit5, stiffness

RATES = jnp.array([0.5, 2.0, 7.0])


def field(t, y, args):
    return -RATES * y + jnp.sin(y[::-1])


def test_a_step_is_that_of_diffrax():
    term, y = diffrax.ODETerm(field), jnp.array([1.0, -0.3, 0.2])
    known, ours = diffrax.Tsit5(), Tsit5()
    state = known.init(term, 0.0, 0.2, y, None)
    expected = known.step(term, 0.0, 0.2, y, None, state, jnp.array(False))
    found = ours.step(term, 0.0, 0.2, y, None, ours.init(term, 0.0, 0.2, y, None), jnp.array(False))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-16)
    np.testing.assert_allclose(found[3], field(0.2, found[0], None), rtol=1e-14)
    inside = known.interpolation_cls(t0=0.0, t1=0.2, **expected[2]).evaluate(0.13)
    np.testing.assert_allclose(Tsit5.inside((0.0, 0.2, y, found[2]["k"]), jnp.array(0.13)), inside, rtol=1e-14)


def test_the_rate_is_that_of_the_fastest_direction_where_it_limits_the_step():
    term, y = diffrax.ODETerm(lambda t, y, args: -RATES * y), jnp.array([1e-3, 1e-3, 1.0])
    solver = Tsit5()
    velocity = solver.init(term, 0.0, 0.4, y, None)
    for _ in range(3):
        y, _, dense, velocity, _ = solver.step(term, 0.0, 0.4, y, None, velocity, jnp.array(False))
    assert float(stiffness(0.4, dense["k"])) == pytest.approx(7.0, rel=0.01)
    assert stiffness(np.zeros(2), np.zeros((2, 7, 3))).tolist() == [0.0, 0.0]


def learner():
    rng = np.random.default_rng(0)
    teacher = tt.TwoLayer("relu", first=np.eye(2))
    student = tt.TwoLayer("relu", first=0.1 * rng.standard_normal((3, 6)), trains=("first",))
    return tt.Problem(tt.Gaussian(6), teacher, student)


@pytest.fixture(scope="module")
def exact():
    return tt.flow(learner(), until=300.0, rtol=1e-12, solver="explicit", record=100)


@pytest.mark.parametrize("rtol", [1e-6, 1e-8])
def test_records_inside_steps_have_the_error_of_the_steps(exact, rtol):
    """There are more records than steps at first, and more steps than records later."""
    run = tt.flow(learner(), until=300.0, rtol=rtol, solver="explicit", record=100)
    assert run.dataset.solver_steps < exact.dataset.solver_steps
    np.testing.assert_array_equal(run.dataset.time, exact.dataset.time)
    np.testing.assert_allclose(run.dataset.overlap, exact.dataset.overlap, atol=20 * rtol)
    # The loss near the optimum is that of a decay, right to as many digits as the weights were at first.
    assert float(exact.last("loss")[0]) < 1e-5
    np.testing.assert_allclose(run.dataset.loss, exact.dataset.loss, rtol=100 * rtol)


def test_a_stopping_event_keeps_the_records_before_it(exact):
    """A step must not go past a record and then end at an event before it."""
    halt = tt.Event("there", lambda view: 1e-3 - view.loss, stop=True)
    run = tt.flow(learner(), until=300.0, solver="explicit", record=tt.Record(100, events=(halt,)))
    end, times = float(run.dataset.stop_time[0]), exact.dataset.time.values
    assert run.stopped == (tt.StopReason.EVENT,)
    assert int(run.dataset.recorded[0]) == np.sum(times <= end)
    assert float(np.interp(end, times, exact.dataset.loss[0])) == pytest.approx(1e-3, rel=0.05)


def test_a_flow_that_becomes_stiff_is_given_to_the_stiff_solver(monkeypatch):
    from tutelage.dynamics import driver, flow, loop

    for module in (driver, loop):
        monkeypatch.setattr(module, "PAUSE", 40)
    monkeypatch.setattr(flow, "PATIENCE", 100)
    run = tt.flow(learner(), until=2000.0, record=17)
    assert '"solver": "stiff"' in run.dataset.attrs["settings"]
    known = tt.flow(learner(), until=2000.0, solver="explicit", record=17, rtol=1e-10)
    np.testing.assert_allclose(run.dataset.loss, known.dataset.loss, rtol=1e-3)


@pytest.mark.parametrize("size", [1e-12, 1e-10, 1e-9, 1e-5, 1.0, np.inf])
def test_steps_are_judged_as_by_diffrax_where_motion_is_no_bound(size):
    prepared = tt.Flow(until=10.0).prepare(learner(), [0])
    step, weights = prepared.step, jax.tree.map(lambda leaf: leaf[0], prepared.start)
    moment = step.begin(prepared.oracle, weights)._replace(clock=jnp.array(1e12))
    y = step._vector(weights)
    draws = np.random.default_rng(0).standard_normal((2, len(y)))
    new, error = y + 0.01 * draws[0], jnp.asarray(size * draws[1])
    keep, width = step._judged(moment, y, new, error, moment.clock + 0.5)
    known = diffrax.PIDController(rtol=step.rtol, atol=moment.carry.atol)
    memory = (jnp.array(1.0), jnp.array(1.0), jnp.array(False))
    kept, begin, end, *_ = known.adapt_step_size(0.0, 0.5, y, new, None, error, 5.0, memory)
    assert bool(keep) == bool(kept)
    np.testing.assert_allclose(width, end - begin, rtol=1e-7)
