"""Overlaps of online SGD in many dimensions: its limits, known results, and SGD itself at growing dim."""

import numpy as np
import pytest

import tutelage as tt

pytestmark = pytest.mark.usefixtures("quickly_compiled")
SEEN = ("loss", "overlap", "overlap_ss")


def problem(activation="erf", dim=1000, noise=0.1, trains=("first",)):
    first = 0.5 * np.random.default_rng(3).standard_normal((2, 4))
    student = tt.TwoLayer(activation, first=first, trains=trains)
    return tt.Problem(tt.Gaussian(dim), tt.TwoLayer(activation, first=np.eye(2)), student, noise=noise)


def run(what, until, at, **options):
    return tt.run(problem(**options), tt.Ode(what, until), record=tt.Record(at, observables=SEEN))


@pytest.mark.parametrize("activation", ["erf", "relu", "he2"])
def test_a_small_rate_is_the_flow(activation):
    """Noise of 1e-9, and errors of 1e-6 at each of some tens of steps."""
    at, record = np.linspace(0, 1, 5), tt.Record(np.linspace(0, 1, 5), observables=SEEN)
    found = run(1e-9, 1.0, at, activation=activation)
    flow = tt.run(problem(activation), tt.Flow(1.0), record=record)
    for name in SEEN:
        np.testing.assert_allclose(found.dataset[name], flow.dataset[name], atol=1e-4)


def test_a_linear_student_is_solved_by_hand():
    """`d = w - v`: d|d|^2/dt = -2 |d|^2 + rate (|d|^2 + noise^2), whatever the direction."""
    student = tt.TwoLayer("linear", first=[[0.2, 0.5]], trains=("first",))
    linear = tt.Problem(tt.Gaussian(10**9), tt.TwoLayer("linear", first=[[1.0, 0.0]]), student, noise=0.3)
    rate, at = 0.7, np.linspace(0, 3, 7)
    found = tt.run(linear, tt.Ode(rate, 3.0), record=tt.Record(at, observables=SEEN))
    rest = rate * 0.09 / (2 - rate)
    expected = rest + (0.8**2 + 0.25 - rest) * np.exp(-(2 - rate) * at)
    np.testing.assert_allclose(2 * found.loss.values[0], expected, rtol=1e-5)


def test_batches_divide_the_noise():
    at = np.linspace(0, 2, 3)
    one, two = run(0.25, 2.0, at), tt.run(problem(), tt.Ode(0.5, 2.0, batch=2), record=tt.Record(at, observables=SEEN))
    np.testing.assert_allclose(one.loss, two.loss, rtol=1e-9)


@pytest.mark.parametrize(("activation", "rate"), [("erf", 1.0), ("relu", 0.5)])
def test_sgd_tends_to_it_as_dim_grows(activation, rate):
    """The mean over 32 seeds of SGD at dim 2000 is within 4.5 standard errors and 1/dim of it (false alarms 1e-4), and
    noise of half the size, or none, would be seen."""
    dim, until, seeds = 2000, 1.0, 32
    at = np.array([0.0, 0.5, 1.0])
    steps = round(until * dim / rate)
    record = tt.Record(np.round(at * dim / rate), observables=("overlap_ss",))
    sgd = tt.run(problem(activation, dim), tt.Sgd(steps, 1, rate / dim), seeds=seeds, record=record)
    drawn = sgd.overlap_ss.values[:, -1]
    error = drawn.std(0, ddof=1) / seeds**0.5
    full = run(rate, until, at, activation=activation)
    half = tt.run(problem(activation), tt.Ode(rate, until, batch=2), record=tt.Record(at, observables=SEEN))
    far = [np.abs(drawn.mean(0) - each.overlap_ss.values[0, -1]) / (error + 2 / dim) for each in (full, half)]
    assert np.all(far[0] < 4.5) and np.max(far[1]) > 9


def test_both_layers_train():
    """The outgoing weights follow the flow of their own, with the same rate."""
    at = np.linspace(0, 1, 3)
    found = tt.run(problem(trains=("first", "second")), tt.Ode(1e-9, 1.0), record=tt.Record(at))
    flow = tt.run(problem(trains=("first", "second")), tt.Flow(1.0), record=tt.Record(at))
    np.testing.assert_allclose(found.second, flow.second, atol=1e-4)


def test_what_it_cannot_do_is_refused():
    tied = tt.TwoLayer("relu", first=np.eye(2), tied=True)
    with pytest.raises(tt.BadInput, match="mixture or tied"):
        tt.run(tt.Problem(tt.Gaussian(9), tt.TwoLayer("relu", first=np.eye(2)), tied), tt.Ode(0.1, 1.0))
    with pytest.raises(tt.BadInput, match="no exact form"):
        tt.run(problem("tanh"), tt.Ode(0.1, 1.0))
    for wrong in ({"rate": 0}, {"until": -1.0}, {"batch": 0}, {"rtol": 0.0}):
        with pytest.raises(tt.BadInput):
            tt.Ode(**{"rate": 0.1, "until": 1.0} | wrong)
