"""What every router must do: choose with the stated probabilities, share ties, and give those chosen their factor.

Statistical tests: counts of 20000 samples within 5 standard errors of the stated chance. With up to 40 of them per row
the false-alarm rate is 2.3e-5 per row; seeds are fixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tables import ROUTERS, members

import tutelage as tt
from tutelage.problem.routers import Router

EVERY = pytest.mark.parametrize("name", ROUTERS)
SAMPLES, EXPERTS = 20_000, 4
SCORES = {
    "the start": np.zeros(EXPERTS),
    "generic": np.array([0.9, -0.2, 0.3, 0.6]),
    "two tied above": np.array([0.7, 0.1, 0.7, 0.2]),
    "three tied below": np.array([0.1, 0.1, 0.8, 0.1]),
    "all tied, high": np.full(EXPERTS, 3.0),
}


def drawn(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).uniform(size=shape))


def near(counts, chance):
    """Within 5 standard errors, and exact where there is no chance in it."""
    error = np.sqrt(chance * (1 - chance) / SAMPLES)
    return np.all(np.abs(counts / SAMPLES - chance) <= 5 * error + 1e-12)


def test_every_router_is_in_the_table():
    assert {type(row.router) for row in ROUTERS.values()} == members(Router)


@EVERY
@pytest.mark.parametrize("case", SCORES)
def test_frequencies_are_the_stated_chances(name, case):
    router, chance, factor, _ = ROUTERS[name]
    table = jnp.asarray(np.tile(SCORES[case], (SAMPLES, 1)))
    uniforms = drawn(*table.shape)
    chosen, gates = np.asarray(router.chosen(table, uniforms)), np.asarray(router.gates(table, uniforms))
    assert chosen.dtype == bool and near(chosen.sum(0), chance(SCORES[case]))
    # exp of numbers of order one: a few roundings.
    np.testing.assert_allclose(gates, np.where(chosen, factor(SCORES[case]), 0.0), rtol=1e-14)
    np.testing.assert_allclose(gates.mean(0), chosen.mean(0) * factor(SCORES[case]), rtol=1e-12)


@EVERY
def test_experts_have_no_numbers(name):
    router = ROUTERS[name].router
    scores, uniforms = 0.4 + drawn(50, EXPERTS, seed=1), drawn(50, EXPERTS)
    order = np.array([2, 0, 3, 1])
    for ask in (router.chosen, router.gates):
        np.testing.assert_allclose(
            ask(scores[:, order], uniforms[:, order]), ask(scores, uniforms)[:, order], rtol=1e-14
        )


@EVERY
def test_precision_and_compilation(name):
    router = ROUTERS[name].router
    scores, uniforms = 0.4 + drawn(50, EXPERTS, seed=1), drawn(50, EXPERTS)
    assert router.gates(scores, uniforms).dtype == jnp.float64
    single = router.gates(scores.astype(jnp.float32), uniforms.astype(jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_array_equal(jax.jit(router.chosen)(scores, uniforms), router.chosen(scores, uniforms))


@pytest.mark.parametrize("name", [name for name, row in ROUTERS.items() if row.shares])
def test_shares_over_clusters_are_those_of_samples(name):
    """The closed form of the population against samples that are scored and routed."""
    router, _, _, shares = ROUTERS[name]
    draw = np.random.default_rng(2)
    inputs = tt.Clusters(6, means=np.eye(2), radius=1.0)
    theta = draw.standard_normal((EXPERTS, 6))
    for cluster, expected in enumerate(shares(theta, inputs)):
        x = draw.standard_normal((SAMPLES, 6)) + np.eye(2, 6)[cluster]
        assert near(np.asarray(router.chosen(jnp.asarray(x @ theta.T), drawn(SAMPLES, EXPERTS))).sum(0), expected)
