"""Descent with momentum: the recurrence written out, and plain descent without it."""

import equinox as eqx
import jax
import numpy as np
import pytest

import tutelage as tt


def problem():
    teacher = tt.TwoLayer("relu", first=[[1.0, 0.0], [0.0, 1.0]])
    student = tt.TwoLayer("relu", first=tt.GaussianRows(0.1), second="ones", width=3)
    return tt.Problem(tt.Gaussian(20), teacher, student)


def test_it_is_the_recurrence():
    run = tt.run(problem(), tt.HeavyBall(step=0.1, steps=12, momentum=0.7), record=tt.Record("all", weights=True))
    weights = jax.tree.map(lambda leaf: leaf[0], run.start)
    before, slope = weights, eqx.filter_jit(run.oracle.gradient)
    for n in range(12):
        gradient = slope(weights)
        after = jax.tree.map(lambda w, g, b: w - 0.1 * g + 0.7 * (w - b), weights, gradient, before)
        before, weights = weights, after
        # Twelve updates, each to rounding.
        np.testing.assert_allclose(run.weights_first[0, n + 1], weights.first, rtol=0, atol=1e-14)


def test_without_momentum_it_is_descent():
    ball = tt.run(problem(), tt.HeavyBall(step=0.1, steps=30, momentum=0.0), seeds=2)
    plain = tt.run(problem(), tt.Descent(step=0.1, steps=30), seeds=2)
    # Thirty updates, each to rounding: products and sums may be joined otherwise.
    np.testing.assert_allclose(ball.final.first, plain.final.first, rtol=0, atol=1e-13)


@pytest.mark.parametrize("momentum", [-0.1, 1.0, float("nan")])
def test_momentum_is_below_one(momentum):
    with pytest.raises(tt.BadInput, match="momentum is"):
        tt.HeavyBall(step=0.1, steps=3, momentum=momentum)
