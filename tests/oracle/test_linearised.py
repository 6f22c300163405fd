"""The first-order expansion of a network: its loss on samples, its derivatives, and where it is the network itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tables import network

import tutelage as tt
from tutelage.problem.hidden import PlainHidden
from tutelage.problem.trees import flatten, unflatten

SAMPLES = 200_000


@pytest.mark.parametrize(("unit", "outputs"), [("relu", 1), ("erf", 2), ("he3", 1)])
def test_its_loss_is_that_of_the_expanded_network_on_samples(unit, outputs):
    """Within 4.5 standard deviations of the mean, a false alarm in 1.5e5; an outgoing factor of 1.02 is seen."""
    target, origin, there = (network(seed, rows, outputs) for seed, rows in ((1, 2), (2, 3), (3, 3)))
    oracle = tt.LinearisedOracle(tt.PopulationOracle(student=unit, teacher=unit, target=target), origin)
    hidden = PlainHidden(tt.activation(unit))
    x = jnp.asarray(np.random.default_rng(0).standard_normal((SAMPLES, 4)))

    def said(weights):
        return hidden(weights.first, weights.first @ x.T).T @ weights.second

    moved = jax.tree.map(lambda a, b: 0.5 * (a - b), there, origin)
    value, slope = jax.jvp(said, (origin,), (moved,))
    each = 0.5 * np.sum(np.asarray(value + slope - said(target)) ** 2, axis=1)
    place = jax.tree.map(jnp.add, origin, moved)
    apart = (each.mean() - float(oracle.loss(place))) / (each.std() / SAMPLES**0.5)
    assert abs(apart) < 4.5


def test_gradient_and_hessian_are_those_of_its_loss():
    target, origin, there = (network(seed, rows, 2) for seed, rows in ((1, 2), (2, 3), (3, 3)))
    oracle = tt.LinearisedOracle(tt.PopulationOracle(student="erf", teacher="erf", target=target), origin)
    y = flatten(there)
    of = lambda vector: oracle.loss(unflatten(vector, there))  # noqa: E731
    np.testing.assert_allclose(flatten(oracle.gradient(there)), jax.grad(of)(y), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(oracle.hessian(there), jax.hessian(of)(y), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("unit", ["relu", "erf"])
def test_the_metric_is_the_hessian_where_the_error_is_nothing(unit):
    target = network(1, 3, 2)
    oracle = tt.PopulationOracle(student=unit, teacher=unit, target=target)
    np.testing.assert_allclose(oracle.metric(target), oracle.hessian(target), rtol=0, atol=1e-13)
    elsewhere = network(2, 3, 2)
    assert np.abs(oracle.metric(elsewhere) - oracle.hessian(elsewhere)).max() > 1e-3


def test_what_has_no_expansion_is_refused():
    with pytest.raises(tt.BadInput, match="LinearisedOracle: plain"):
        tt.LinearisedOracle("erf", network(1, 2, 1))
