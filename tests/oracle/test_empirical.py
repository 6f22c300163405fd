"""The empirical oracle against a plain loop over samples, and against the population for many samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.oracle.empirical import draw
from tutelage.problem.trees import flatten, unflatten


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    weights = tt.Weights(jnp.asarray(rng.standard_normal((3, 4))), jnp.asarray(rng.standard_normal((3, 2))))
    return weights, rng.standard_normal((23, 4)), rng.standard_normal((23, 2))


def test_loss_is_the_plain_sum(case):
    weights, x, y = case
    first, second = np.asarray(weights.first), np.asarray(weights.second)
    total = 0.0
    for row, label in zip(x, y, strict=True):
        output = sum(second[i] * max(first[i] @ row, 0.0) for i in range(3))
        total += 0.5 * np.sum((output - label) ** 2)
    oracle = tt.EmpiricalOracle(student="relu", x=x, y=y)
    assert float(oracle.loss(weights)) == pytest.approx(total / 23, rel=1e-14)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_derivatives_by_differences(case, activation):
    weights, x, y = case
    oracle = tt.EmpiricalOracle(student=activation, x=x, y=y)
    vector, step = np.asarray(flatten(weights)), 1e-6
    moves = step * np.eye(len(vector))
    loss = jax.vmap(lambda v: oracle.loss(unflatten(v, weights)))
    slope = jax.vmap(lambda v: flatten(oracle.gradient(unflatten(v, weights))))
    # The loss is smooth between kinks, which 23 samples leave far away: differences are good to 1e-9.
    np.testing.assert_allclose(
        flatten(oracle.gradient(weights)), (loss(vector + moves) - loss(vector - moves)) / (2 * step), atol=1e-8
    )
    np.testing.assert_allclose(
        oracle.hessian(weights), (slope(vector + moves) - slope(vector - moves)) / (2 * step), atol=1e-7
    )


def test_many_samples_approach_the_population():
    """2e5 samples: the loss within 5 standard errors of the exact one (false-alarm rate 6e-7)."""
    rng = np.random.default_rng(1)
    problem = tt.Problem(
        inputs=tt.Gaussian(5),
        teacher=tt.TwoLayer("relu", first=rng.standard_normal((2, 5))),
        student=tt.TwoLayer("erf", first=rng.standard_normal((3, 5))),
    )
    start = problem.begin(0, full=True)
    oracle = draw(problem, start.teacher, 200_000, seed=3)
    exact = tt.PopulationOracle(student="erf", teacher="relu", target=start.teacher)
    residual = np.asarray(oracle.student(oracle.x @ start.student.first.T)) @ start.student.second - oracle.y
    squares = 0.5 * np.sum(np.asarray(residual) ** 2, axis=1)
    error = squares.std() / np.sqrt(len(squares))
    assert abs(float(oracle.loss(start.student)) - float(exact.loss(start.student))) < 5 * error


def test_label_noise_has_its_variance():
    problem = tt.Problem(
        inputs=tt.Gaussian(3),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("relu", first=np.eye(3)[:1]),
        noise=0.5,
    )
    teacher = problem.begin(0, full=True).teacher
    oracle = draw(problem, teacher, 20_000, seed=0)
    spread = np.std(np.asarray(oracle.y[:, 0] - oracle.x[:, 0]))
    assert spread == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(2 * 20_000))  # five standard errors


def test_shapes_are_checked():
    with pytest.raises(tt.BadInput, match="equal numbers of samples"):
        tt.EmpiricalOracle(student="relu", x=np.ones((3, 2)), y=np.ones((4, 1)))
