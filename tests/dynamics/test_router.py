"""Router training: its gradient against finite differences and plain loops, ties, noise, chunks, records."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.dynamics.router import Routed, route
from tutelage.dynamics.streams import stream
from tutelage.problem.clusters import Clustered, Tasks, antipodal
from tutelage.problem.outputs import expert_outputs
from tutelage.problem.routers import Threshold, Top1
from tutelage.problem.units import Experts

EXPERTS, DIM = 3, 6


def laboratory(noise=0.3):
    tasks = Tasks(local=[{2: 1.0}, {3: -1.0}], shared={2: 1.0}, interference=(1.0, -1.0))
    data = stream(Clustered(antipodal(DIM, 2.0), tasks, noise), seed=3, phase=2)
    units, first = Experts(EXPERTS, 4, "relu", bias=0.5).draw(np.random.default_rng(1), DIM)
    return data, units, first


@eqx.filter_jit
def batch(data, units, first, begin, count):
    drawn = data.samples(begin, count)
    return drawn.inputs, drawn.labels, expert_outputs(units, first, drawn.inputs)


def seen(data, units, first, begin, count):
    return (np.asarray(part) for part in batch(data, units, first, jnp.asarray(begin), count))


def softmax(scores):
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def objective(theta, x, y, f, chosen, balance):
    """The correlation less the penalty, with the experts chosen and their load held fixed."""
    pi = softmax(x @ theta.T)
    correlation = np.mean(y * pi[np.arange(len(x)), chosen] * f[np.arange(len(x)), chosen])
    load = np.bincount(chosen, minlength=EXPERTS) / len(x)
    return correlation - balance * EXPERTS * np.sum(load * pi.mean(0))


@pytest.mark.parametrize("balance", [0.0, 0.7])
def test_the_step_is_the_gradient_by_finite_differences(balance):
    data, units, first = laboratory()
    start = 0.4 * np.random.default_rng(5).standard_normal((EXPERTS, DIM))
    x, y, f = seen(data, units, first, 100, 400)
    chosen = np.argmax(x @ start.T, axis=1)
    moved = route(data, units, first, samples=400, start=start, step=1.0, balance=balance, begin=100).theta - start
    h = 1e-5
    for m, i in np.ndindex(EXPERTS, DIM):
        push = np.zeros_like(start)
        push[m, i] = h
        up, down = (objective(start + sign * push, x, y, f, chosen, balance) for sign in (1, -1))
        # Central differences: h^2 times a third derivative of a few hundred at most, and rounding 1e-16/h.
        assert moved[m, i] == pytest.approx((up - down) / (2 * h), abs=1e-7)


def test_several_steps_choose_anew_each_time():
    data, units, first = laboratory()
    theta = 0.1 * np.random.default_rng(2).standard_normal((EXPERTS, DIM))
    found = route(data, units, first, samples=50, steps=4, step=3.0, start=theta, begin=7)
    for number in range(4):
        x, y, f = seen(data, units, first, 7 + 50 * number, 50)
        slope = np.zeros_like(theta)
        for row, label, said in zip(x, y, f, strict=True):
            pi = softmax(row[None] @ theta.T)[0]
            best = int(np.argmax(theta @ row))
            slope += (np.eye(EXPERTS)[best] - pi)[:, None] * pi[best] * said[best] * label * row
        theta = theta + 3.0 * slope / 50
    # Two orders of the same sums of 50 terms.
    np.testing.assert_allclose(found.theta, theta, rtol=1e-10, atol=1e-13)
    assert found.end == 7 + 200


def test_one_run_in_two_halves_is_the_same():
    data, units, first = laboratory()
    whole = route(data, units, first, samples=300, steps=4, step=2.0)
    half = route(data, units, first, samples=300, steps=2, step=2.0)
    rest = route(data, units, first, samples=300, steps=2, step=2.0, start=half.theta, begin=half.end)
    assert np.array_equal(whole.theta, rest.theta)


def test_the_chunk_changes_the_order_of_additions_only():
    data, units, first = laboratory()
    runs = [route(data, units, first, samples=1000, chunk=chunk) for chunk in (96, 2048)]
    for run in runs[1:]:
        np.testing.assert_allclose(run.theta, runs[0].theta, rtol=0, atol=1e-13)
        assert np.array_equal(run.counts, runs[0].counts)
    assert runs[0].counts.sum() == 1000


def test_ties_are_drawn_and_rows_add_up_to_zero():
    data, units, first = laboratory()
    found = route(data, units, first, samples=3000)
    count = found.counts.sum(axis=1)[0]
    # A uniform choice: Pearson's statistic passes this with probability 1e-6; the seed is fixed.
    assert np.sum((count - 1000) ** 2 / 1000) < chi2.isf(1e-6, EXPERTS - 1)
    assert np.max(np.abs(found.theta.sum(axis=0))) < 1e-13
    assert np.max(np.abs(found.theta)) > 1e-3


def test_rao_blackwell_is_the_mean_over_the_draw():
    data, units, first = laboratory()
    x, y, f = seen(data, units, first, 0, 400)
    law = ((f - f.mean(1, keepdims=True)) * y[:, None]).T @ x / (400 * EXPERTS**2)
    found = route(data, units, first, samples=400, step=2.0, rao_blackwell=True)
    np.testing.assert_allclose(found.theta, 2.0 * law, rtol=1e-10, atol=1e-14)
    # Where there are no ties it changes nothing.
    start = np.random.default_rng(2).standard_normal((EXPERTS, DIM))
    plain, same = (route(data, units, first, samples=400, start=start, rao_blackwell=r).theta for r in (False, True))
    assert np.array_equal(plain, same)


def test_noise_moves_the_choice_and_not_the_weight():
    data, units, first = laboratory()
    start = np.zeros((EXPERTS, DIM))
    start[0, 3] = 2.0
    calm, noisy = (
        route(data, units, first, samples=4000, router=Top1(noise=noise), start=start) for noise in (0.0, 1e6)
    )
    assert calm.load[0].max() == pytest.approx(np.mean(next(seen(data, units, first, 0, 4000))[:, 3] > 0), abs=1e-12)
    # With noise far above the scores the choice is uniform: 4000 draws of 1/3 are within 5 standard deviations.
    assert np.max(np.abs(noisy.load[0] - 1 / 3)) < 5 * np.sqrt(2 / 9 / 4000)
    assert noisy.entropy[0] == calm.entropy[0]


def test_records_are_taken_before_the_step():
    data, units, first = laboratory()
    found = route(data, units, first, samples=200, steps=5, record=(0, 3, 5))
    assert found.steps.tolist() == [0, 3, 5]
    assert found.counts.shape == (3, 2, EXPERTS)
    assert found.norms[0].tolist() == [0.0] * EXPERTS
    assert found.entropy[0] == pytest.approx(np.log(EXPERTS), abs=1e-12)
    np.testing.assert_allclose(found.norms[-1], np.linalg.norm(found.theta, axis=1), rtol=1e-14)
    assert np.array_equal(found.theta, route(data, units, first, samples=200, steps=5).theta)
    nothing = route(data, units, first, samples=200, record=())
    assert nothing.load.shape == (0, EXPERTS) and nothing.collapse() is None
    long = route(data, units, first, samples=2, steps=150)
    assert len(long.steps) == 60 and long.steps[0] == 0 and long.steps[-1] == 149


def test_a_number_of_records_and_all_are_those_of_any_dynamics():
    steps = tt.RouterSteps(samples=10, steps=100)
    assert len(steps.stops(tt.Record())) == 60  # evenly, unless something is said
    assert steps.stops(tt.Record(4)).tolist() == [1, 5, 22, 100]  # log-spaced
    assert steps.stops(tt.Record("all")).tolist() == list(range(1, 101))
    assert steps.stops(tt.Record((0, 7))).tolist() == [1, 8, 100]
    assert tt.RouterSteps(samples=10).stops(tt.Record(4)).tolist() == [1]
    with pytest.raises(BadInput, match="a step in record is 1.5, but a whole number from 0 to 100"):
        steps.stops(tt.Record((0, 1.5)))


def test_a_stage_records_as_often_as_it_is_asked_to():
    problem = laboratory()[0].problem.taught_to(Experts(EXPERTS, 4))
    moves = [
        tt.Stage("explore", tt.Spherical(10, 1e-3)),
        tt.Stage("router", tt.RouterSteps(10, 20), record=tt.Record(3)),
    ]
    assert tt.run(problem, moves).stages["router"].dataset["step"].values.tolist() == [1, 4, 20]


def test_a_collapse_is_an_event():
    counts = np.array([[[5.0, 5, 5, 5]], [[20, 0, 0, 0]], [[9, 8, 2, 1]], [[17, 1, 1, 1]], [[20, 0, 0, 0]]])
    run = Routed(np.zeros((4, 2)), np.arange(0, 50, 10), counts, np.zeros(5), np.zeros((5, 4)), 0)
    entropy = -(0.85 * np.log(0.85) + 3 * 0.05 * np.log(0.05))
    np.testing.assert_allclose(run.load_entropy[[0, 1, 3]], [np.log(4), 0.0, entropy], rtol=1e-12)
    assert run.collapse() == 30  # at 10 it had fallen, but not for good
    assert run.collapse(below=0.1) == 40
    assert run.collapse(below=2.0) == 0
    assert run.collapse(below=-1.0) is None


def test_the_penalty_spreads_the_load():
    data, units, first = laboratory()
    start = np.zeros((EXPERTS, DIM))
    start[:, 3] = (1.0, 0.2, -0.1)
    options = {"samples": 500, "steps": 40, "step": 1.0, "start": start, "record": (0, 40)}
    plain, spread = (route(data, units, first, balance=balance, **options) for balance in (0.0, 1.0))
    assert spread.load_entropy[-1] > plain.load_entropy[-1] + 0.1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"samples": 0}, "samples is 0"),
        ({"router": Threshold()}, "only Top1"),
        ({"router": Top1(noise=1.0), "rao_blackwell": True}, "leaves none"),
        ({"start": np.zeros((2, 2))}, "start has shape"),
        ({"balance": -1.0}, "balance is -1.0"),
        ({"record": (3,)}, "a step in record is 3.0, but a whole number from 0 to 1"),
    ],
)
def test_bad_input_is_refused(wrong, words):
    data, units, first = laboratory()
    with pytest.raises(BadInput, match=words):
        route(data, units, first, **{"samples": 10} | wrong)


def test_weights_of_other_units_are_refused():
    data, units, first = laboratory()
    with pytest.raises(BadInput, match="first has shape"):
        route(data, units, first[:2], samples=10)
