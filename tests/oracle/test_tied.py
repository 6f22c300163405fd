"""Networks whose outgoing weights are tied to the incoming norms: against differences, samples and plain networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.oracle.population import exact
from tutelage.problem.hidden import TiedHidden
from tutelage.problem.networks import untied
from tutelage.problem.trees import flatten, unflatten

SIDES = [("abs", "abs"), ("relu", "abs"), ("relu", "relu"), ("erf", "erf"), ("abs", "relu")]


def some(units, outputs, seed, frame=4):
    draw = np.random.default_rng(seed)
    return tt.Weights(jnp.asarray(draw.normal(size=(units, frame))), jnp.asarray(draw.normal(size=(units, outputs))))


def oracle_of(student, teacher, target):
    """In its quick form, which has all digits away from an optimum and compiles in a second."""
    return exact(tt.activation(student), tt.activation(teacher), target, tied=True).quick()


@eqx.filter_jit
def loss_of(oracle, weights):
    return oracle.loss(weights)


@eqx.filter_jit
def gradient_of(oracle, weights):
    return oracle.gradient(weights)


@pytest.mark.parametrize("sides", SIDES)
def test_derivatives_are_those_of_the_loss(sides):
    """Central differences at h = 1e-4 are off by h^2 ~ 1e-8 of the third derivative, rounding by 1e-16/h = 1e-12."""
    weights, target = some(5, 2, 0), some(3, 2, 1)
    oracle = oracle_of(*sides, target)
    loss = jax.jit(lambda y: oracle.loss(unflatten(y, weights)))
    slope = jax.jit(lambda y: flatten(oracle.gradient(unflatten(y, weights))))
    at, h = flatten(weights), 1e-4
    steps = h * jnp.eye(at.size)
    differences = np.asarray(jax.vmap(lambda s: (loss(at + s) - loss(at - s)) / (2 * h))(steps))
    np.testing.assert_allclose(slope(at), differences, atol=3e-6 * np.abs(differences).max())
    bends = np.asarray(jax.vmap(lambda s: (slope(at + s) - slope(at - s)) / (2 * h))(steps))
    found = np.asarray(eqx.filter_jit(oracle.hessian)(weights))
    np.testing.assert_allclose(found, bends, atol=1e-5 * np.abs(bends).max())


@pytest.mark.parametrize("sides", SIDES)
def test_loss_is_that_of_samples(sides):
    """2e5 inputs: the mean of squares is within 5 standard errors, which fails once in 2e6."""
    weights, target = some(5, 1, 2), some(3, 1, 3)
    x = np.random.default_rng(4).standard_normal((200_000, 4))
    student, teacher = (tt.activation(name) for name in sides)
    norms = np.linalg.norm(weights.first, axis=1, keepdims=True)
    f = np.asarray(student(jnp.asarray(x @ weights.first.T))) @ (np.asarray(weights.second) * norms)
    wanted = np.asarray(teacher(jnp.asarray(x @ target.first.T))) @ np.asarray(target.second)
    squares = 0.5 * np.sum((f - wanted) ** 2, axis=1)
    assert abs(squares.mean() - float(loss_of(oracle_of(*sides, target), weights))) < 5 * squares.std() / len(x) ** 0.5


def test_a_zero_unit_stays_and_does_nothing():
    weights, target = some(4, 1, 5), some(3, 1, 6)
    dead = tt.Weights(weights.first.at[1].set(0.0), weights.second)
    left = tt.Weights(jnp.delete(weights.first, 1, axis=0), jnp.delete(weights.second, 1, axis=0))
    for sides in SIDES[:3]:
        oracle = oracle_of(*sides, target)
        gradient = gradient_of(oracle, dead)
        assert float(jnp.abs(gradient.first[1]).max()) == 0.0
        others = gradient_of(oracle, left)
        np.testing.assert_allclose(jnp.delete(gradient.first, 1, axis=0), others.first, rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "abs", "erf"])
def test_samples_pull_as_the_loss_does(name):
    """What a unit computes on samples and how an error comes back, against automatic differentiation."""
    weights = some(5, 1, 7)
    hidden, draw = TiedHidden(tt.activation(name)), np.random.default_rng(8)
    x, errors = jnp.asarray(draw.normal(size=(4, 30))), jnp.asarray(draw.normal(size=(5, 30)))
    inside, along = hidden.back(weights.first, weights.first @ x, errors)
    found = inside @ x.T + along[:, None] * weights.first
    expected = jax.grad(lambda first: jnp.sum(errors * hidden(first, first @ x)))(weights.first)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_translated_teachers_are_the_same_function():
    """|z| in ReLU; others are left as they are. The loss does not depend on the words."""
    weights, target = some(5, 1, 9), some(3, 1, 10)
    for student, teacher in (("relu", "abs"), ("relu", "linear"), ("abs", "relu")):
        plain = tt.PopulationOracle(student=student, teacher=teacher, target=target)
        told = exact(tt.activation(student), tt.activation(teacher), target, tied=False).quick()
        assert float(loss_of(told, weights)) == pytest.approx(float(loss_of(plain.quick(), weights)), rel=1e-12)


def test_relu_students_of_absolute_teachers_keep_their_digits_near_the_optimum():
    """Two ReLU for each |z|, off by 1e-9: the plain sum would leave nothing of a loss of 1e-19."""
    frame, off = 3, 1e-9
    teacher = tt.Weights(jnp.eye(frame), jnp.full((frame, 1), 1 / frame))
    draw = np.random.default_rng(11)
    signs = np.concatenate([np.eye(frame), -np.eye(frame)])
    tilt = draw.normal(size=signs.shape)
    oracle = exact(tt.activation("relu"), tt.activation("abs"), teacher, tied=True)
    mass = jnp.full((2 * frame, 1), 1 / frame)

    def loss(size):
        return float(loss_of(oracle, tt.Weights(jnp.asarray(signs + size * tilt), mass)))

    # Quadratic in the offset, up to terms |offset|^3.
    assert loss(off) / off**2 == pytest.approx(loss(1e-5) / 1e-10, rel=1e-3)


def test_samples_in_blocks(monkeypatch):
    """Sums over blocks of samples are the sums over all, to rounding."""
    from tutelage.oracle import empirical

    draw, weights = np.random.default_rng(12), some(5, 2, 13)
    x, y = draw.normal(size=(1003, 4)), draw.normal(size=(1003, 2))
    whole = tt.TiedOracle(tt.EmpiricalOracle(student="relu", x=x, y=y))
    expected = whole.loss(weights), whole.gradient(weights)
    monkeypatch.setattr(empirical, "BLOCK", 100)
    np.testing.assert_allclose(whole.loss(weights), expected[0], rtol=1e-13)
    for found, wanted in zip(jax.tree.leaves(whole.gradient(weights)), jax.tree.leaves(expected[1]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def small(**options):
    teacher = tt.TwoLayer("abs", first=np.eye(3), second=np.full(3, 1 / 3))
    student = {"first": tt.GaussianRows(0.6), "width": 6, "second": "mean", "tied": True, "trains": ("first",)}
    return tt.Problem(tt.Gaussian(3), teacher, tt.TwoLayer("abs", **student | options))


def test_runs_of_tied_networks_certify():
    for data in (None, 50):
        run = tt.descend(small(), step=0.1, steps=20, rates={"first": 12.0}, data=data, certify=True, seeds=2)
        assert run.certificate.ok, run.certificate.sentence
        assert any(row.route == "the plain network" for row in run.certificate.rows)


def test_flow_and_sgd_of_tied_networks():
    flow = tt.flow(small(), until=5.0, rates={"first": 12.0})
    assert float(flow.last("loss")[0]) < float(flow.loss[0, 0])
    # At a small step online SGD follows the flow: its noise falls like sqrt(step). Over 16 seeds the difference has a
    # standard deviation of 2.6e-5; five of them are passed once in 2e6.
    steps = tt.sgd(small(), step=1e-3, steps=5000, batch=64, rates={"first": 12.0})
    assert float(steps.last("loss")[0]) == pytest.approx(float(flow.last("loss")[0]), abs=1.3e-4)


def test_particles_of_unequal_mass():
    """Two particles of half the mass in one place move as one of the whole mass, when rates are over masses."""
    rows = np.random.default_rng(14).normal(size=(4, 3))
    masses = np.array([0.1, 0.2, 0.3, 0.4])
    options = {"step": 0.05, "steps": 40, "record": tt.Record([40], weights=True, observables=("loss",))}
    whole = tt.descend(small(first=rows, second=masses, width=4), rates={"first": 2 / masses}, **options)
    twice, halves = np.repeat(rows, 2, axis=0), np.repeat(masses / 2, 2)
    split = tt.descend(small(first=twice, second=halves, width=8), rates={"first": 2 / halves}, **options)
    found = split.dataset["weights_first"].isel(time=-1, seed=0).values[::2]
    np.testing.assert_allclose(found, whole.dataset["weights_first"].isel(time=-1, seed=0).values, rtol=1e-12)


def test_truncated_units_stand_still_until_their_stage_ends():
    rows = np.diag([1.0, 2.0, 0.5])
    problem = small(first=rows, width=3)
    stages = tt.Truncation(caps=(3.0, 100.0), ends=(10,))
    run = tt.descend(
        problem, step=0.02, steps=12, rates={"first": 6.0}, truncation=stages, record=tt.Record("all", weights=True)
    )
    first = run.dataset["weights_first"].isel(seed=0).values
    moved = np.linalg.norm(np.diff(first, axis=0), axis=-1) > 0
    assert not moved[:10, 1].any() and moved[10:, 1].all()
    assert moved[:, [0, 2]].all()
    free = tt.descend(problem, step=0.02, steps=12, rates={"first": 6.0}, record=tt.Record("all", weights=True))
    assert (np.linalg.norm(np.diff(free.dataset["weights_first"].isel(seed=0).values, axis=0), axis=-1) > 0).all()
    certified = tt.descend(problem, step=0.02, steps=12, rates={"first": 6.0}, truncation=stages, certify=True)
    assert certified.certificate.ok, certified.certificate.sentence


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: tt.Truncation(caps=(1.0,), ends=(3,)), "an end for each but the last"),
        (lambda: tt.Truncation(caps=(1.0, -2.0), ends=(3,)), "a cap is -2.0"),
        (lambda: tt.Truncation(caps=(1.0, 2.0, 3.0), ends=(3, 2)), "rising numbers"),
        (lambda: small().student.rates({"first": [1.0, 2.0]}), "one for each of the 6 units"),
        (lambda: small(second="median"), "'ones' or 'mean'"),
    ],
)
def test_bad_input_is_one_sentence(ask, words):
    with pytest.raises(tt.BadInput, match=words):
        ask()


def test_orders_of_a_tied_network_are_those_of_the_plain_one():
    problem = small()
    run = tt.descend(
        problem,
        step=0.1,
        steps=3,
        rates={"first": 12.0},
        data=200,
        record=tt.Record(weights=True, observables=("loss", "loss_order", "loss_beyond", "population_loss")),
    )
    sums = run.loss_order.sum("tensor_order") + run.dataset["loss_beyond"]
    np.testing.assert_allclose(sums, run.dataset["population_loss"], rtol=1e-12)
    weights = tt.Weights(*(jnp.asarray(run.dataset[f"weights_{k}"].values[0, -1]) for k in ("first", "second")))
    oracle = tt.PopulationOracle(student="abs", teacher="abs", target=run.teacher)
    assert float(oracle.loss(untied(weights))) == pytest.approx(float(run.dataset["population_loss"][0, -1]), rel=1e-10)
