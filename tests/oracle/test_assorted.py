"""Layers whose units have activations of their own, against the sum over pairs by integration, and differences."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import quadrature

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.oracle.orders import order_losses
from tutelage.problem.assorted import layer_units
from tutelage.problem.trees import flatten, unflatten

pytestmark = pytest.mark.usefixtures("quickly_compiled")
STUDENT, TEACHER = ["relu", "erf", "he3", "relu"], ["sign", "linear", "softplus"]
RANDOM = np.random.default_rng(3)
WEIGHTS = tt.Weights(*(jnp.asarray(RANDOM.standard_normal(shape)) / 2 for shape in ((4, 3), (4, 2))))
TARGET = tt.Weights(*(jnp.asarray(RANDOM.standard_normal(shape)) / 2 for shape in ((3, 3), (3, 2))))


def oracle(**changes):
    return tt.PopulationOracle(**{"student": STUDENT, "teacher": TEACHER, "target": TARGET} | changes)


def test_the_loss_is_the_sum_over_pairs_of_units():
    units = list(zip(STUDENT, WEIGHTS.first, WEIGHTS.second, strict=True))
    units += zip(TEACHER, TARGET.first, -TARGET.second, strict=True)
    total = sum(
        0.5 * float(u @ v) * quadrature.expectation(s, t, a, b).value
        for (s, a, u), (t, b, v) in itertools.product(units, units)
    )
    assert float(oracle().loss(WEIGHTS)) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_derivatives_are_differences(tied):
    """Central differences, step 1e-5."""
    made = tt.TiedOracle(oracle()) if tied else oracle()
    y, step = flatten(WEIGHTS), 1e-5

    @jax.jit
    def at(places):
        both = jax.vmap(lambda v: (made.loss(unflatten(v, WEIGHTS)), flatten(made.gradient(unflatten(v, WEIGHTS)))))
        return both(places)

    up, down = (at(y[None] + sign * step * jnp.eye(len(y))) for sign in (1, -1))
    gradient, hessian = ((high - low) / (2 * step) for high, low in zip(up, down, strict=True))
    np.testing.assert_allclose(flatten(made.gradient(WEIGHTS)), gradient, atol=1e-9)
    np.testing.assert_allclose(jax.jit(lambda asked, w: asked.hessian(w))(made, WEIGHTS), hessian, atol=3e-8)


def test_equal_members_are_one_activation_and_order_is_kept():
    assert layer_units(["relu", "relu"]) == tt.activation("relu")
    order = np.array([2, 0, 3, 1])
    other = tt.Weights(WEIGHTS.first[order], WEIGHTS.second[order])
    moved, slope = oracle(student=[STUDENT[i] for i in order]), oracle().gradient(WEIGHTS)
    assert float(moved.loss(other)) == pytest.approx(float(oracle().loss(WEIGHTS)), rel=1e-13)
    np.testing.assert_allclose(moved.gradient(other).first, slope.first[order], atol=1e-13)


def test_on_samples_each_unit_has_its_own():
    x = jnp.asarray(RANDOM.standard_normal((50, 3)))
    y = jnp.asarray(RANDOM.standard_normal((50, 2)))
    made = tt.EmpiricalOracle(student=STUDENT, x=x, y=y)

    def loss(w):
        hidden = [tt.activation(s)(x @ row) for s, row in zip(STUDENT, w.first, strict=True)]
        return 0.5 * jnp.mean(jnp.sum((jnp.stack(hidden, 1) @ w.second - y) ** 2, axis=1))

    assert float(made.loss(WEIGHTS)) == pytest.approx(float(loss(WEIGHTS)), rel=1e-13)
    np.testing.assert_allclose(flatten(made.gradient(WEIGHTS)), flatten(jax.grad(loss)(WEIGHTS)), atol=1e-13)
    expected = jax.hessian(lambda v: loss(unflatten(v, WEIGHTS)))(flatten(WEIGHTS))
    np.testing.assert_allclose(made.hessian(WEIGHTS), expected, atol=1e-12)


def test_orders_sum_to_the_loss():
    """Polynomials of degree 3 have no order beyond."""
    units, taught = layer_units(["he1", "he3"]), layer_units(["he2", "he3", "linear"])
    weights = tt.Weights(WEIGHTS.first[:2], WEIGHTS.second[:2])
    found = order_losses(units, taught, weights, TARGET, 4)
    loss = tt.PopulationOracle(student=units, teacher=taught, target=TARGET).loss(weights)
    assert float(jnp.sum(found)) == pytest.approx(float(loss), rel=1e-12)


@pytest.mark.parametrize(
    ("terms", "directions"),
    [
        ({(1,): 1.0, (1, 1): 1.0, (1, 1, 1): 1.0}, None),
        ({(2, 1): 0.3, (0, 3): -1.0, (): 2.0, (1, 2, 0, 1): 0.7}, None),
        ({(2, 2): 1.0, (1, 1): -0.5}, [[1.0, 2.0, 0.0], [0.5, 0.0, -1.0]]),
        ({(3, 4, 5): 1e-3}, None),
    ],
)
def test_a_product_is_a_sum_of_powers(terms, directions):
    """Sums of a few hundred terms cancel to the product: a thousand roundings of the largest."""
    teacher = tt.multi_index(terms, directions)
    x = np.random.default_rng(0).standard_normal((20, 4))
    rows = np.eye(4)[: max(map(len, terms))] if directions is None else np.pad(np.array(directions), ((0, 0), (0, 1)))
    z = x @ rows.T
    expected = sum(c * np.prod([z[:, i] ** k for i, k in enumerate(a)], axis=0) for a, c in terms.items())
    np.testing.assert_allclose(teacher.output(x)[:, 0], expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(teacher.first[: len(rows)], rows[:, : teacher.first.shape[1]])


def test_the_population_of_a_staircase():
    """`E[f*^2] = 3` for `z1 + z1 z2 + z1 z2 z3`, and a student of the products themselves has no loss."""
    teacher = tt.multi_index({(1,): 1.0, (1, 1): 1.0, (1, 1, 1): 1.0})
    student = tt.TwoLayer("relu", first=tt.GaussianRows(1e-9), width=2)
    run = tt.descend(tt.Problem(tt.Gaussian(10**6), teacher, student), step=1e-9, steps=1)
    assert float(run.loss[0, 0]) == pytest.approx(1.5, abs=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tt.TwoLayer(["relu", "erf"], first=np.eye(3)), "2 activations and 3 units"),
        (lambda: tt.TwoLayer([], first=np.eye(3)), "empty"),
        (lambda: oracle().loss(tt.Weights(WEIGHTS.first[:3], WEIGHTS.second[:3])), "4 units .* 3 rows"),
        (lambda: layer_units(STUDENT)(jnp.ones((2, 5))), "4 units .* 2 rows"),
        (lambda: tt.TwoLayer(["linear", "relu"], first=[[0.0], [0.0]]), "row 1 of first is zero, where relu"),
        (lambda: tt.multi_index({(1, 1): 1.0}, [[1.0]]), "need 2 directions"),
        (lambda: tt.multi_index({(9, 9): 1.0}), "degree 18"),
        (lambda: tt.multi_index({}), "no terms"),
        (lambda: tt.multi_index({2: 1.0}), "no tuple"),
        (lambda: tt.TwoLayer("relu", first=tt.GaussianRows(1.0), width=2).output([[1.0]]), "laws"),
        (lambda: tt.TwoLayer("relu", first=np.eye(3)).output([[1.0]]), "1 columns"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(BadInput, match=words):
        make()
