"""Penalties on weights: closed forms and plain recurrences, for every dynamics, and what else sees them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import tutelage as tt
from tutelage._identity import described
from tutelage.analysis.certificates import certify
from tutelage.analysis.landscape import Kind, classify, spectrum
from tutelage.oracle.penalised import PenalisedOracle

pytestmark = pytest.mark.usefixtures("quickly_compiled")
PENALTY = tt.Penalty(first=0.05, second=0.4)
TEACHER = tt.TwoLayer("linear", first=[[1.0, 0.5]])
START, OUT = np.array([0.3, -0.2]), 0.7


def linear(penalty=PENALTY, dim=2, noise=0.0, **student):
    """One linear unit, `f = v w.x`: its loss is `1/2 |v w - w*|^2`."""
    learner = tt.TwoLayer("linear", **{"first": [START], "second": [OUT]} | student)
    return tt.Problem(tt.Gaussian(dim), TEACHER, learner, noise, penalty)


def relu(penalty, **student):
    teacher = tt.TwoLayer("relu", first=[[1.0, 0.0], [0.0, 0.7]])
    learner = tt.TwoLayer("relu", **{"first": tt.GaussianRows(0.3), "second": [0.5, -0.1, 0.4], "width": 3} | student)
    return tt.Problem(tt.Gaussian(30), teacher, learner, penalty=penalty)


def by_hand(steps, step, momentum, rates=(1.0, 1.0), strengths=(0.05, 0.4)):
    """The same update for update, in plain numbers."""
    w, v, taught, moved = START.copy(), OUT, np.array([1.0, 0.5]), (np.zeros(2), 0.0)
    for _ in range(steps):
        off = v * w - taught
        slopes = v * off + strengths[0] * w, w @ off + strengths[1] * v
        moved = tuple(momentum * m - step * r * g for m, r, g in zip(moved, rates, slopes, strict=True))
        w, v = w + moved[0], v + moved[1]
    return w, v


@pytest.mark.parametrize(
    ("dynamics", "momentum"), [(tt.Descent(0.1, 40), 0.0), (tt.HeavyBall(0.1, 40, momentum=0.6), 0.6)]
)
def test_updates_are_those_of_a_plain_recurrence(dynamics, momentum):
    rates = {"first": 0.5, "second": 2.0}
    run = tt.run(linear(), dataclasses.replace(dynamics, rates=rates), record="all")
    w, v = by_hand(40, 0.1, momentum, (0.5, 2.0))
    np.testing.assert_allclose(run.final.first[0, 0], w, rtol=1e-13)
    np.testing.assert_allclose(run.final.second[0, 0, 0], v, rtol=1e-13)
    loss = 0.5 * np.sum((v * w - [1.0, 0.5]) ** 2)
    assert float(run.last("loss")[0]) == pytest.approx(loss, rel=1e-12)
    assert float(run.last("objective")[0]) == pytest.approx(loss + 0.5 * (0.05 * w @ w + 0.4 * v**2), rel=1e-12)


def test_a_flow_follows_its_closed_form():
    """`dw/dt = w* - (1 + first) w`, with the outgoing weight fixed at 1."""
    problem = linear(tt.Penalty(0.3), second=[1.0], trains=("first",))
    run = tt.flow(problem, until=5.0, record=20)
    decay = np.exp(-1.3 * run.time.values)[:, None]
    expected = np.array([1.0, 0.5]) / 1.3 * (1 - decay) + START * decay
    found = run.overlap.values[0, :, 0, 0]
    np.testing.assert_allclose(found, expected @ [1.0, 0.5], atol=1e-7)


@pytest.mark.parametrize("solver", ["explicit", "stabilised", "stiff"])
def test_equal_penalties_make_layers_balance(solver):
    """`|w|^2 - v^2` of every ReLU unit decays as `exp(-2 strength t)`, whatever the loss is."""
    run = tt.flow(relu(tt.Penalty(0.1, 0.1)), until=8.0, solver=solver, rtol=1e-9, seeds=2, record=10)
    expected = run.imbalance.isel(time=0) * np.exp(-0.2 * run.time)
    np.testing.assert_allclose(run.imbalance, expected.transpose("seed", "time", "student"), atol=1e-6)


LONG, UPDATES, SEEDS = 10**6, 30, 400


@pytest.mark.parametrize("law", ["exact", "direct"])
def test_online_sgd_has_the_moments_of_its_law(law):
    """Mean overlap with the teacher and mean squared norm, of one linear unit: the moments obey a recurrence.

    `w <- (1 - step s) w - step x (x.(w - w*) - noise e)`. Within 4.5 standard errors of 400 seeds: 1e-5 of false alarms
    for each of four numbers.
    """
    dim, strength, noise = (LONG if law == "exact" else 6), 0.5, 0.3
    step = 0.3 / dim
    problem = linear(tt.Penalty(strength), dim, noise, second=[1.0], trains=("first",))
    run = tt.sgd(problem, step=step, steps=UPDATES, batch=1, law=law, seeds=SEEDS, record=2)
    square, met, taught = START @ START, START @ [1.0, 0.5], 1.25
    keep = 1 - step * strength
    for _ in range(UPDATES):
        apart = square - 2 * met + taught
        square = keep**2 * square - 2 * step * keep * (square - met) + step**2 * ((dim + 2) * apart + dim * noise**2)
        met = keep * met - step * (met - taught)
    for found, expected in ((run.last("overlap"), met), (run.last("overlap_ss"), square)):
        values = found.values.ravel()
        assert abs(values.mean() - expected) < 4.5 * values.std(ddof=1) / np.sqrt(SEEDS)


def test_an_optimiser_of_sgd_sees_the_penalty():
    """Plain SGD by optax is plain SGD, bit for bit of the same samples."""
    problem = linear(dim=1000)
    plain = tt.sgd(problem, step=1e-3, steps=20, batch=2, record=2)
    other = tt.sgd(problem, optimiser=optax.sgd(1e-3), steps=20, batch=2, record=2)
    np.testing.assert_allclose(other.last("overlap_ss"), plain.last("overlap_ss"), rtol=1e-13)
    without = tt.sgd(linear(None, dim=1000), step=1e-3, steps=20, batch=2, record=2)
    assert abs(float((without.last("overlap_ss") - plain.last("overlap_ss")).squeeze())) > 1e-6


def test_penalty_on_data_and_tied_networks():
    """A gradient of the objective is that of its value: differences through the verb's own oracle."""
    for options, student in (({"data": 40}, {}), ({}, {"tied": True})):
        run = tt.descend(relu(PENALTY, **student), step=0.05, steps=3, **options)
        oracle = jax.tree.map(lambda leaf: leaf[0], run.oracle) if run.batched else run.oracle
        assert isinstance(oracle, PenalisedOracle)
        weights = jax.tree.map(lambda leaf: leaf[0], run.final)
        turn = jax.tree.map(lambda leaf: jnp.cos(jnp.arange(leaf.size, dtype=float)).reshape(leaf.shape), weights)
        moved = [jax.tree.map(lambda w, t, h=h: w + h * t, weights, turn) for h in (1e-6, -1e-6)]
        slope = (float(oracle.loss(moved[0])) - float(oracle.loss(moved[1]))) / 2e-6
        gradient = oracle.gradient(weights)
        assert slope == pytest.approx(
            float(jnp.vdot(gradient.first, turn.first) + jnp.vdot(gradient.second, turn.second)), abs=1e-7
        )


@pytest.mark.parametrize("ask", [
    lambda problem: tt.descend(problem, step=0.1, steps=60, certify=True),
    lambda problem: tt.flow(problem, until=6.0, certify=True),
    lambda problem: tt.descend(problem, step=0.1, steps=20, data=30, certify=True),
])  # fmt: skip
def test_runs_are_certified(ask):
    certificate = ask(relu(PENALTY)).certificate
    assert certificate.ok, certificate.sentence
    assert any("with penalty" in row.what for row in certificate.rows)


def test_a_wrong_penalty_is_not_certified(monkeypatch):
    other = relu(PENALTY, width=5, second="mean")  # of a size by itself: what was compiled right must not be found
    run = tt.descend(other, step=0.1, steps=20, record=tt.Record(weights=True))
    pull = PenalisedOracle.pull
    monkeypatch.setattr(PenalisedOracle, "pull", lambda self, w: jax.tree.map(lambda leaf: 1.001 * leaf, pull(self, w)))
    wrong = [row.what for row in certify(run, samples=0).rows if not row.agrees]
    assert any("derivative with penalty" in what for what in wrong)


def test_the_landscape_sees_it():
    """At zero of a linear unit that is kept from growing: curvature `1 + strength` outside, and a minimum."""
    target = tt.Weights(jnp.array([[1.0]]), jnp.ones((1, 1)))
    plain = tt.PopulationOracle(student="linear", teacher="linear", target=target)
    oracle = tt.PenalisedOracle(plain, tt.Penalty(first=0.25))
    there = tt.Weights(jnp.array([[0.8]]), jnp.ones((1, 1)))
    found = spectrum(oracle, there, dim=4, trains=("first",)).eigenvalues
    np.testing.assert_allclose(found, [1.25] * 4, rtol=1e-14)
    assert classify(oracle, there, trains=("first",)).kind is Kind.MINIMUM
    assert classify(plain, there, trains=("first",), polish=False).kind is not Kind.MINIMUM


def test_a_run_ends_where_the_objective_is_flat():
    """With equal strengths the layers balance: `1/2 (s - |w*|)^2 + strength s`, `s = v |w|`."""
    run = tt.descend(linear(tt.Penalty(0.1, 0.1)), step=0.3, steps=5000, record=50)
    assert run.stopped == (tt.StopReason.CONVERGED,)
    assert float(run.last("loss")[0]) == pytest.approx(0.5 * 0.1**2, rel=1e-11)
    assert float(run.last("objective")[0]) == pytest.approx(0.5 * 0.1**2 + 0.1 * (1.25**0.5 - 0.1), rel=1e-11)


def test_forms_keep_the_digits_of_a_tiny_penalty():
    """Near the teacher the plain sums have cancelled, and beside a penalty of 1e-12 it matters."""
    target = tt.Weights(jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.ones((2, 1)))
    oracle = PenalisedOracle(tt.PopulationOracle(student="relu", teacher="relu", target=target), tt.Penalty(1e-12))
    near = tt.Weights(target.first + 1e-9, target.second)
    quick = oracle.quick()
    assert bool(quick.strained(near, gradient=quick.gradient(near))) and len(oracle.forms()) == 3
    far = tt.Weights(2 * target.first, target.second)
    assert not bool(quick.strained(far, gradient=quick.gradient(far)))


def test_names_of_problems_without_one_are_as_before():
    assert "penalty" not in described(linear(None)) and "penalty" in described(linear())
