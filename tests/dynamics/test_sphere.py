"""SGD on the sphere for a plain problem: its law against samples with all their entries, by the plain update.

Means of overlaps and of their squares, of 4000 runs by either route, may differ by 4.5 standard errors: 7e-6 of false
alarms for each number, 2e-4 for a whole case.
"""

import functools

import equinox as eqx
import numpy as np
import pytest

import tutelage as tt

pytestmark = pytest.mark.usefixtures("quickly_compiled")
COUNT, SAMPLES, STEP = 4000, 12, 0.08
ACTIVATIONS = {
    "he3": (lambda z: z**3 - 3 * z, lambda z: 3 * z**2 - 3),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
}
TEACHERS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-0.8, 0.6]])
# Students, teachers, dimensions, activation, loss, noise; with 2 + 1 or 2 + 2 dimensions none is outside the frame.
CASES = {
    "single index": (1, 1, 6, "he3", "correlation", 0.0),
    "one unit, two teachers": (1, 2, 7, "tanh", "squared", 0.5),
    "committee": (2, 2, 7, "tanh", "squared", 0.3),
    "committee, correlation": (3, 1, 9, "tanh", "correlation", 0.0),
    "no room outside": (1, 2, 3, "tanh", "squared", 0.0),
    "less than a direction each": (3, 2, 4, "tanh", "squared", 0.0),
    "one direction outside": (1, 1, 3, "tanh", "correlation", 0.0),
    "more teachers than directions": (1, 4, 7, "tanh", "squared", 0.0),
    "more teachers, two units": (2, 4, 6, "tanh", "squared", 0.0),
}


def problem(case):
    units, teachers, dim, link, _, noise = CASES[case]
    student = tt.TwoLayer(link, first=tt.SphereRows(1.0), second="ones", width=units, trains=("first",))
    return tt.Problem(tt.Gaussian(dim), tt.TwoLayer(link, first=TEACHERS[:teachers]), student, noise)


def numbers(met, among):
    """Overlaps and their squares (run, number)."""
    units = among.shape[1]
    flat = np.concatenate([met.reshape(len(met), -1), among[:, *np.triu_indices(units, 1)]], axis=1)
    return np.concatenate([flat, flat**2], axis=1)


@functools.cache
def written_out(case):
    """The update with all entries of every sample, in NumPy."""
    units, teachers, dim, link, loss, noise = CASES[case]
    value, slope = ACTIVATIONS[link]
    draw = np.random.default_rng(1)
    w = draw.standard_normal((COUNT, units, dim))
    w /= np.linalg.norm(w, axis=2, keepdims=True)
    taught = np.pad(TEACHERS[:teachers], ((0, 0), (0, dim - 2)))
    for _ in range(SAMPLES):
        x = draw.standard_normal((COUNT, dim))
        y = value(x @ taught.T).sum(1) + noise * draw.standard_normal(COUNT)
        u = np.einsum("cud,cd->cu", w, x)
        pull = y - value(u).sum(1) if loss == "squared" else y
        gradient = (pull[:, None] * slope(u))[..., None] * x[:, None]
        gradient -= np.sum(gradient * w, axis=2, keepdims=True) * w
        w = w + STEP / 4 * gradient
        w /= np.linalg.norm(w, axis=2, keepdims=True)
    return numbers(w @ taught.T, w @ w.transpose(0, 2, 1))


def in_law(case):
    moves = tt.Sphere(SAMPLES, STEP / 4, CASES[case][4])
    record = tt.Record(2, observables=("loss", "overlap", "overlap_ss"))
    run = tt.run(problem(case), moves, seeds=COUNT, record=record)
    np.testing.assert_allclose(np.linalg.norm(run.final.first, axis=-1), 1, atol=1e-12)
    last = (run.last(name).transpose("seed", ...).values for name in ("overlap", "overlap_ss"))
    return numbers(*last)


def distance(one, other):
    """The largest difference of two sets of means, in its standard errors."""
    error = np.sqrt((one.var(0) + other.var(0)) / COUNT)
    return np.max(np.abs(one.mean(0) - other.mean(0)) / np.maximum(error, 1e-14))


@pytest.mark.parametrize("case", CASES)
def test_the_law_is_that_of_whole_samples(case):
    assert distance(in_law(case), written_out(case)) < 4.5


def test_a_wrong_length_outside_is_seen(monkeypatch):
    """Four dimensions too many."""
    prepare = tt.Sphere.prepare

    def wrong(self, *given):
        ready = prepare(self, *given)
        return ready._replace(step=eqx.tree_at(lambda step: step.outside, ready.step, ready.step.outside + 4))

    monkeypatch.setattr(tt.Sphere, "prepare", wrong)
    assert distance(in_law("single index"), written_out("single index")) > 4.5


def test_any_dimension_costs_the_same():
    """And an event is found to the sample: the first at which the overlap is passed."""
    teacher = tt.TwoLayer("linear", first=[[1.0]])
    student = tt.TwoLayer("linear", first=tt.SphereRows(1.0), second="ones", width=1, trains=("first",))
    wide = tt.Problem(tt.Gaussian(10**9), teacher, student)
    passed = tt.Event("passed", lambda view: view.weights.first[0, 0] * view.teacher.first[0, 0] - 0.8, stop=True)
    small = tt.Problem(tt.Gaussian(100), teacher, student)
    run = tt.spherical(small, samples=4000, step=0.002, seeds=3, record=tt.Record("all", events=(passed,)))
    for seed in range(3):
        overlap, time = run.overlap.values[seed, :, 0, 0], float(run.event_time[seed, 0])
        reached = np.flatnonzero(overlap >= 0.8)
        assert time == int(time) > 10 and (not len(reached) or reached[0] == time)
        assert np.nanmax(overlap[: int(time)]) < 0.8
    assert tt.spherical(wide, samples=100, step=1e-10).final.first.shape == (1, 1, 2)


def test_its_loss_is_that_of_the_population():
    run = tt.spherical(problem("committee"), samples=50, step=0.01, loss="squared", record=tt.Record(3, weights=True))
    again = run.oracle.loss(tt.Weights(*(run.final.first[0], run.final.second[0])))
    assert float(run.last("loss")[0]) == pytest.approx(float(again), rel=1e-12)
