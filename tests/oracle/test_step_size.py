"""Drift and noise of one neuron: the noise against samples and closed forms, the balance against its own equation."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.oracle.step_size import Balance, noise_level, recommended_step, typical_start
from tutelage.problem.clusters import antipodal, orthogonal
from tutelage.problem.units import Experts, Units

HALF = float(np.sqrt(0.5))
PAPER = tt.Tasks([{3: HALF, 5: HALF}, {3: HALF, 4: HALF}], {3: 1.0}, (1.0, -1.0))
PLAIN = tt.Tasks([{4: 1.0}, {4: -1.0}], {4: 1.0}, (1.0, -1.0))


def relu(bias=0.0, outgoing=1.0):
    return Units(jnp.full(1, outgoing), jnp.full(1, bias), kind=tt.activation("relu"))


def polynomial(order, sign=1.0):
    return Units(jnp.full(1, sign), jnp.zeros(1), jnp.ones((1, 1)), lowest=order)


@pytest.mark.parametrize("kind", ["relu", "polynomial"])
def test_noise_is_that_of_samples(kind):
    slanted = tt.Tasks(
        [{1: 0.5, 2: 0.3}, {2: 0.7}], {1: 1.0, 2: 0.2}, (1.0, -0.5), [[1, 0, 0], [0.4, 1, 0], [0, 0.2, 1]]
    )
    problem = tt.Clustered(orthogonal(5, 0.8, 2), slanted, noise=0.4)
    draw = np.random.default_rng(0)
    w = draw.standard_normal(5)
    w /= np.linalg.norm(w)
    unit = relu(0.3) if kind == "relu" else Units(jnp.ones(1), jnp.full(1, 0.2), jnp.array([[1.0, -1.0]]), lowest=1)
    found = noise_level(problem, unit, (problem.frame @ w)[None])[0]
    for cluster in range(2):
        x = draw.standard_normal((400_000, 5)) + 0.8 * problem.inputs.means[cluster]
        y = problem.teacher.labels(jnp.asarray(x), jnp.full(len(x), cluster)) + 0.4 * draw.standard_normal(len(x))
        values = np.asarray(y * unit.slope(jnp.asarray(x @ w)[:, None])[:, 0]) ** 2
        # Four standard errors: a false alarm in 6e-5 of seeds, four times.
        assert abs(values.mean() - found[cluster]) < 4 * values.std() / np.sqrt(len(values))


def test_noise_in_closed_form():
    problem = tt.Clustered(antipodal(40, 3.0), PLAIN)
    start, end = np.zeros((1, 5)), np.eye(5)[:1]
    # E[y^2] = 2 and E[s'^2] = E[(2 h_3)^2] = 4, independent of each other at the start.
    np.testing.assert_allclose(noise_level(problem, polynomial(4), start), [[8.0, 8.0]], rtol=1e-12)
    # Full alignment: E[4 h_3^2 (h_4^2 + 1)] in the own cluster, by sums over an exact rule; 8 in the other.
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    h3, h4 = (nodes**3 - 3 * nodes) / np.sqrt(6), (nodes**4 - 6 * nodes**2 + 3) / np.sqrt(24)
    own = weights @ (4 * h3**2 * (h4**2 + 1)) / weights.sum()
    np.testing.assert_allclose(noise_level(problem, polynomial(4), end), [[own, 8.0]], rtol=1e-11)
    # ReLU, which the cluster's mean opens or shuts: E[y^2] = 2 times the probability that it is open.
    found = noise_level(problem, relu(), np.array([[0, 0, 0, 0.6, -0.6]]))
    np.testing.assert_allclose(found, [[2 * norm.cdf(1.8), 2 * norm.cdf(-1.8)]], rtol=1e-11)


def test_numbers_known_from_runs():
    problem = tt.Clustered(antipodal(50, 3.0), PAPER)
    own = Balance(problem, polynomial(3), 0, (1.0, 0.0))
    # SGD in all dimensions has ended at 0.92 to 0.98 with the step 4e-5 and at 0.978 to 0.984 with 1e-5.
    assert 0.92 < own.stationary(4e-5)[0] < 0.98 and 0.978 < own.stationary(1e-5)[0] < 0.985
    # With the noise of full alignment in place of that where the neuron is, the balance is 0.928 and 0.984.
    for step, kappa in ((4e-5, 0.928), (1e-5, 0.984)):
        frozen = 2 * own.drift(kappa)[0] / (kappa * 49 * own.noise(1.0)[0])
        assert abs(frozen / step - 1) < 6e-4 / (1 - kappa)  # three digits of kappa
    assert abs(own.noise(1.0)[0] - 278.3313) < 1e-3


def test_stationary_alignment_solves_the_balance_and_is_stable():
    balance = Balance(tt.Clustered(antipodal(200, 3.0), PAPER), relu(-1.0), 1)
    kappa = balance.stationary(2.5e-4)
    np.testing.assert_allclose(balance.step_at(kappa), 2.5e-4, rtol=1e-8)
    assert balance.step_at(kappa + 1e-3) < 2.5e-4 < balance.step_at(kappa - 1e-3)
    assert np.isnan(balance.stationary(1.0)).all()
    # Near 1 the law is linear, with an error of second order.
    small = 1e-6
    np.testing.assert_allclose(1 - balance.near_one(small), 1 - balance.stationary(small), rtol=5e-3)


def test_start_up_limit_has_the_power_of_the_paper():
    """`2 P k alpha_k beta_k kappa^(k-2)/(d N)` with `kappa = 2/sqrt(d)` is `2 (1/2) 4 (4/d)/(8 d) = 2/d^2`."""
    for dim in (10**4, 10**6):
        limit = Balance(tt.Clustered(antipodal(dim, 3.0), PLAIN), polynomial(4), 0).largest_start()[0]
        # Corrections to drift and noise are of the order kappa^2 = 4/d, with factors below 10.
        np.testing.assert_allclose(limit * dim**2, 2.0, rtol=40 / dim)


def test_odd_orders_grow_on_one_side():
    problem = tt.Clustered(antipodal(50, 3.0), tt.Tasks([{3: 1.0}, {3: 1.0}], {3: 1.0}, (1.0, -1.0)))
    ahead, back = (Balance(problem, polynomial(3, sign), 0).stationary(1e-5) for sign in (1.0, -1.0))
    np.testing.assert_allclose(ahead, back, rtol=1e-12)
    even = Balance(tt.Clustered(antipodal(50, 3.0), PLAIN), polynomial(4, -1.0), 0)
    assert even.step_at(0.5) < 0 and np.isnan(even.stationary(1e-6)).all()


def test_recommended_step():
    problem = tt.Clustered(antipodal(30, 3.0), PLAIN)
    units = Experts(2, 8, "relu", 0.5).units(np.random.default_rng(0))
    advice = recommended_step(problem, units)
    assert 0 < advice.step < min(advice.start["w1"], advice.start["w2"], advice.end["w1"])
    assert recommended_step(problem, units, safety=0.25).step == advice.step / 2
    routed = recommended_step(problem, units, served=(1.0, 0.0))
    assert np.isfinite(routed.start["wg"]) and np.isnan(routed.start["w2"])
    assert typical_start(problem) == 2 / np.sqrt(30)
    with pytest.raises(BadInput, match="expected"):
        recommended_step(problem, units, alignment=0.2)
    with pytest.raises(BadInput, match="none of the units"):
        recommended_step(problem, polynomial(4, -1.0), served=(1.0, 0.0))
