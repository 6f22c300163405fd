"""The loss order by order: against projections on Hermite polynomials by quadrature, and against the whole loss."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.oracle import orders
from tutelage.papers.soft_moe.recipe import problem as mixture
from tutelage.problem.networks import untied

order_losses = jax.jit(orders.order_losses, static_argnums=(0, 1, 4))
COUNT = 7
NODES = 220


def some_weights(units, outputs, seed, frame=2):
    draw = np.random.default_rng(seed)
    first, second = draw.normal(size=(units, frame)), draw.normal(size=(units, outputs))
    return tt.Weights(first=jnp.asarray(first), second=jnp.asarray(second))


def projected(student, teacher, weights, target):
    """1/2 sum over multi-indices of |E (f - f*) He_a He_b / sqrt(a! b!)|^2, order by order, on a grid of the plane."""
    z, mass = np.polynomial.hermite_e.hermegauss(NODES)
    mass = mass / mass.sum()
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), -1)
    seen = [np.asarray(jnp.asarray(grid) @ w.first.T) for w in (weights, target)]
    error = sum(
        sign * np.asarray(act(jnp.asarray(s))) @ np.asarray(w.second)
        for sign, act, s, w in zip((1, -1), (student, teacher), seen, (weights, target), strict=True)
    )
    basis = [np.polynomial.hermite_e.hermeval(z, np.eye(COUNT)[k]) / math.sqrt(math.factorial(k)) for k in range(COUNT)]
    losses = np.zeros(COUNT)
    for a, b in itertools.product(range(COUNT), repeat=2):
        if a + b < COUNT:
            found = np.einsum("i,j,ijo->o", mass * basis[a], mass * basis[b], error)
            losses[a + b] += np.sum(found**2) / 2
    return losses


@pytest.mark.parametrize(
    ("student", "teacher", "tolerance"),
    [
        # Smooth functions: Gauss-Hermite converges beyond rounding. With a kink its error falls like 1/nodes.
        ("erf", "erf", 1e-10),
        ("tanh", "he3", 1e-9),
        ("sigmoid", "linear", 1e-10),
        ("relu", "relu", 2e-2),
        ("relu", "abs", 2e-2),
    ],
)
def test_orders_are_projections(student, teacher, tolerance):
    sides = tt.activation(student), tt.activation(teacher)
    weights, target = some_weights(4, 2, 0), some_weights(3, 2, 1)
    found = np.asarray(order_losses(*sides, weights, target, COUNT))
    expected = projected(*sides, weights, target)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * expected.max())


@pytest.mark.parametrize(("student", "teacher"), [("he3", "he2"), ("linear", "he4"), ("he0", "he1")])
def test_polynomials_end(student, teacher):
    weights, target = some_weights(3, 1, 2), some_weights(2, 1, 3)
    found = np.asarray(order_losses(tt.activation(student), tt.activation(teacher), weights, target, COUNT))
    whole = float(tt.PopulationOracle(student=student, teacher=teacher, target=target).loss(weights))
    assert found.sum() == pytest.approx(whole, rel=1e-12)
    assert np.abs(found[5:]).max() <= 1e-13 * whole


def test_all_orders_of_erf_sum_to_the_loss():
    """Coefficients of erf fall like (2 r^2 / (1 + 2 r^2))^(k/2): at r = 0.5 sixty orders leave 1e-14."""
    weights, target = some_weights(4, 1, 4), some_weights(3, 1, 5)
    shrunk = [
        tt.Weights(0.5 * w.first / jnp.linalg.norm(w.first, axis=1)[:, None], w.second) for w in (weights, target)
    ]
    sides = tt.activation("erf"), tt.activation("erf")
    whole = float(tt.PopulationOracle(student="erf", teacher="erf", target=shrunk[1]).loss(shrunk[0]))
    assert float(order_losses(*sides, *shrunk, 60).sum()) == pytest.approx(whole, rel=1e-12)


def test_the_coefficients_of_the_absolute_value():
    """c_0, c_2, c_4, c_6 = 2/pi, 1/pi, 1/(12 pi), 1/(40 pi), and no odd ones: one unit against nothing."""
    one = tt.Weights(first=jnp.array([[0.6, 0.8]]), second=jnp.ones((1, 1)))
    nothing = tt.Weights(first=jnp.array([[1.0, 0.0]]), second=jnp.zeros((1, 1)))
    found = 2 * np.asarray(order_losses(tt.activation("abs"), tt.activation("abs"), one, nothing, COUNT))
    expected = np.array([2, 0, 1, 0, 1 / 12, 0, 1 / 40]) / math.pi
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_low_orders_keep_their_digits_near_the_optimum():
    """A student pushed by 1e-9 has losses of order 1e-18: the squares of orders 1 and 2 are right to 1e-6 there."""
    target = some_weights(3, 1, 6)
    push = np.random.default_rng(7).normal(size=(3, 2))
    relu = tt.activation("relu")
    far, near = (
        np.asarray(order_losses(relu, relu, tt.Weights(target.first + size * push, target.second), target, 3))
        for size in (1e-6, 1e-9)
    )
    # Losses are quadratic in the push, with corrections of its relative size.
    np.testing.assert_allclose(near[1:] * 1e6, far[1:], rtol=1e-5)


def test_edges():
    relu, target = tt.activation("relu"), some_weights(2, 1, 8)
    zero = tt.Weights(jnp.zeros((1, 2)), jnp.ones((1, 1)))
    alone = tt.Weights(target.first, jnp.zeros_like(target.second))
    np.testing.assert_allclose(*(order_losses(relu, relu, w, target, COUNT) for w in (zero, alone)), atol=1e-15)
    same = np.asarray(order_losses(relu, relu, target, target, COUNT))
    # Squares of rounding; orders from 3 on are differences of terms as large as the squared output.
    assert np.abs(same[:3]).max() < 1e-30 and np.abs(same).max() < 1e-14
    assert order_losses(relu, relu, target, target, 1).shape == (1,)


def problem(dim=10**9, **student):
    return tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("erf", first=np.eye(2)),
        student=tt.TwoLayer("erf", first=tt.GaussianRows(1e-6), width=3, trains=("first",), **student),
    )


def test_a_run_records_orders_by_name_at_any_dim():
    run = tt.flow(problem(), until=2.0, record=tt.Record(8, observables=("loss", "loss_order", "loss_beyond")))
    assert run.loss_order.dims == ("seed", "time", "tensor_order") and run.tensor_order.values.tolist() == list(
        range(9)
    )
    total = run.loss_order.sum("tensor_order") + run.loss_beyond
    np.testing.assert_allclose(total, run.loss, rtol=1e-13)
    assert np.all(run.loss_beyond > 0)
    assert np.all(run.loss_order.sel(tensor_order=[0, 2, 4, 6, 8]) == 0)  # erf is odd


def test_on_data_the_orders_are_those_of_the_population():
    """Trained on 60 samples, the recorded loss is that of the samples; the orders sum to the population's."""
    chosen = problem(dim=5)
    run = tt.descend(
        chosen, step=0.1, steps=4, data=60, record=tt.Record("all", own=tt.loss_orders(chosen, 3), weights=True)
    )
    total = (run.loss_order.sum("tensor_order") + run.loss_beyond).values[0]
    oracle = tt.PopulationOracle(student="erf", teacher="erf", target=run.teacher)
    weights = zip(run.weights_first.values[0], run.weights_second.values[0], strict=True)
    expected = [float(oracle.loss(tt.Weights(jnp.asarray(a), jnp.asarray(b)))) for a, b in weights]
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    assert np.abs(total - run.loss.values[0]).min() > 1e-4


def test_what_has_no_orders_is_refused():
    with pytest.raises(tt.BadInput, match="two-layer"):
        tt.loss_orders(mixture(tt.papers.soft_moe.configure()))
    with pytest.raises(tt.BadInput, match="highest is"):
        tt.loss_orders(problem(), highest=-1)


@pytest.mark.parametrize(
    ("student", "teacher", "tied"), [("erf", "tanh", False), ("abs", "abs", True), ("relu", "abs", True)]
)
def test_gradients_of_orders(student, teacher, tied):
    """Central differences at h = 1e-5 are off by h^2 of a third derivative and by 1e-16/h: 1e-9 of the largest."""
    sides = tt.activation(student), tt.activation(teacher)
    weights, target = some_weights(4, 2, 6), some_weights(3, 2, 7)
    found = jax.jit(lambda w: orders.order_gradients(*sides, w, target, COUNT, tied=tied))(weights)
    losses = jax.jit(lambda w: orders.order_losses(*sides, untied(w) if tied else w, target, COUNT))
    draw, h = np.random.default_rng(8), 1e-5
    move = jax.tree.map(lambda leaf: jnp.asarray(draw.normal(size=leaf.shape)), weights)
    ahead = losses(jax.tree.map(lambda w, m: w + h * m, weights, move))
    behind = losses(jax.tree.map(lambda w, m: w - h * m, weights, move))
    slope = sum(jnp.sum(getattr(found, k) * getattr(move, k)[None], axis=(1, 2)) for k in ("first", "second"))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), atol=1e-8 * float(jnp.abs(slope).max()))


def test_gradients_of_all_orders_of_erf_sum_to_the_gradient():
    """Half the norm of test_all_orders_of_erf: sixty orders leave 1e-12 of the gradient."""
    weights, target = some_weights(4, 1, 4), some_weights(3, 1, 5)
    shrunk = [
        tt.Weights(0.5 * w.first / jnp.linalg.norm(w.first, axis=1)[:, None], w.second) for w in (weights, target)
    ]
    erf = tt.activation("erf")
    whole = tt.PopulationOracle(student="erf", teacher="erf", target=shrunk[1]).gradient(shrunk[0])
    found = jax.jit(lambda w: orders.order_gradients(erf, erf, w, shrunk[1], 60))(shrunk[0])
    for layer in ("first", "second"):
        np.testing.assert_allclose(getattr(found, layer).sum(0), getattr(whole, layer), atol=1e-11)


def test_recorded_gradients_of_orders():
    problem = tt.Problem(
        inputs=tt.Gaussian(20),
        teacher=tt.TwoLayer("erf", first=[[1.0]]),
        student=tt.TwoLayer("erf", first=tt.GaussianRows(0.1), width=2, trains=("first",)),
    )
    run = tt.flow(problem, until=1.0, record=tt.Record(observables=("loss", "gradient_norm", "gradient_order")))
    pulls = run.dataset["gradient_order"]
    assert pulls.dims == ("seed", "time", "tensor_order")
    # erf is odd: all is in odd orders, and while units are small nearly all in the first.
    assert float(pulls.sel(tensor_order=[0, 2, 4]).max()) < 1e-14
    assert float(pulls.sel(tensor_order=1)[0, 0]) == pytest.approx(float(run.dataset["gradient_norm"][0, 0]), rel=0.1)
