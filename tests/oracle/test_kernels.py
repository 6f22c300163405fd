"""Every pair of activations against integration in the plane, which knows no kernel formula."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from oracle import quadrature

from tutelage._errors import BadInput
from tutelage.oracle.kernels import SumKernel, kernel
from tutelage.oracle.kernels.series import SeriesKernel
from tutelage.problem import activations as act

ACTIVATIONS = {
    "relu": act.relu,
    "abs": act.absolute,
    "linear": act.linear,
    "erf": act.erf,
    "sigmoid": act.sigmoid,
    "tanh": act.tanh,
    "he3": act.hermite(3),
    "he4": act.hermite(4),
    "cubic": act.polynomial([0.5, -1.0, 0.3, 0.2]),
    "softplus": act.from_callable(jax.nn.softplus),
    "half cosine": act.from_callable(lambda z: jnp.where(z > 0, 1 + z, jnp.cos(z)), name="half cosine", kinks=(0.0,)),
}
PAIRS = list(itertools.combinations_with_replacement(ACTIVATIONS, 2))

# Short rows for the series: at norm 0.6 softplus' coefficients reach rounding within 128 terms.
A = jnp.array([[0.3, -0.4, 0.2], [0.1, 0.5, -0.2]])
B = jnp.array([[0.2, 0.3, 0.4], [-0.5, 0.1, 0.1]])
C = jnp.array([[1.0, -0.7], [0.4, 2.0]])


def by_quadrature(s, t, c, a, b):
    table = [[quadrature.expectation(s, t, row, column) for column in b] for row in a]
    value, gradient, mixed, curvature = (np.array([[cell[i] for cell in line] for line in table]) for i in range(4))
    return value, gradient, mixed, np.einsum("pq,pqmn->pmn", c, curvature)


@pytest.mark.parametrize(("s", "t"), PAIRS)
def test_pair_against_quadrature(s, t):
    s, t = ACTIVATIONS[s], ACTIVATIONS[t]
    # Both routes are good to a few roundings of numbers of size one (1e-14); second derivatives of a function are
    # differentiated twice more by JAX and lose another digit.
    a, c = A[:1], C[:1]
    k, expected = kernel(s, t), by_quadrature(s, t, c, a, B)
    ours = k.value(a, B), k.gradient(a, B), k.mixed(a, B), k.curvature(c, a, B)
    for mine, theirs in zip(ours, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=3e-13, rtol=3e-13)
    np.testing.assert_allclose(k.pull(c, a, B), np.einsum("pq,pqn->pn", c, ours[1]), atol=1e-14, rtol=1e-13)


@pytest.mark.parametrize(("s", "t"), [("relu", "abs"), ("sigmoid", "erf"), ("abs", "he4"), ("softplus", "relu")])
def test_derivatives_by_finite_differences(s, t):
    """The gradient from values, the second derivatives from gradients: fourth-order differences, step 1e-3."""
    k, a, h = kernel(ACTIVATIONS[s], ACTIVATIONS[t]), A[:1], 1e-3

    def difference(f, direction):
        far, near = (f(-2 * direction) - f(2 * direction)), (f(direction) - f(-direction))
        return np.asarray(8 * near + far) / (12 * h)

    steps = h * jnp.eye(3)[:, None]
    gradient = np.stack([difference(lambda e: k.value(a + e, B), e) for e in steps], axis=-1)
    curvature = np.stack([difference(lambda e: k.gradient(a + e, B), e) for e in steps], axis=-1)
    mixed = np.stack([difference(lambda e: k.gradient(a, B + e), e) for e in steps], axis=-1)
    # The error is h^4 / 30 times a fifth derivative, which for |.| goes with high inverse powers of norm and angle.
    np.testing.assert_allclose(k.gradient(a, B), gradient, atol=1e-8)
    np.testing.assert_allclose(k.mixed(a, B), mixed, atol=1e-8)
    np.testing.assert_allclose(k.curvature(C[:1], a, B), np.einsum("pq,pqmn->pmn", C[:1], curvature), atol=1e-7)


@pytest.mark.parametrize(("s", "t"), [("relu", "abs"), ("relu", "sigmoid"), ("abs", "cubic"), ("tanh", "he3")])
def test_symmetry(s, t):
    there, back = kernel(s, ACTIVATIONS[t]), kernel(ACTIVATIONS[t], s)
    np.testing.assert_allclose(there.value(A, B), back.value(B, A).T, rtol=1e-14)
    np.testing.assert_allclose(there.mixed(A, B), np.transpose(back.mixed(B, A), (1, 0, 3, 2)), atol=1e-14)


@pytest.mark.parametrize("name", ["erf", "tanh", "he3", "cubic"])
def test_series_is_a_second_opinion(name):
    """The Hermite series of a closed-form pair, within its own stated error."""
    (atom,) = ACTIVATIONS[name].atoms
    series, closed = SeriesKernel(atom, atom, terms=40), kernel(name, name) if name != "cubic" else None
    closed = closed or kernel(ACTIVATIONS[name], ACTIVATIONS[name])
    assert np.all(np.abs(series.value(A, B) - closed.value(A, B)) <= series.error(A, B))
    assert np.max(series.error(A, B)) < 1e-8
    np.testing.assert_allclose(series.mixed(A, B), closed.mixed(A, B), atol=1e-7)


def test_series_of_relu_is_within_its_error():
    """Slow convergence, honestly bounded: the bound covers the error and is not vacuous."""
    (atom,) = act.relu.atoms
    series, rows = SeriesKernel(atom, atom, terms=30), jnp.array([[1.0, 0.0], [0.9, 0.1]])
    error, bound = np.abs(series.value(rows, rows) - kernel("relu", "relu").value(rows, rows)), series.error(rows, rows)
    assert np.all(error <= bound) and np.max(bound) < 1e-2 and np.max(error) > 1e-4


def test_callable_within_its_error():
    """A series truncated too early says so."""
    s = act.from_callable(lambda z: jnp.tanh(3 * z), name="steep")
    k, rows = kernel(s, s, terms=20), jnp.array([[1.0, 0.0], [0.6, 0.8]])
    exact = kernel("tanh", "tanh").value(3 * rows, 3 * rows)
    error, bound = np.abs(k.value(rows, rows) - exact), k.error(rows, rows)
    assert np.all(error <= bound) and 1e-5 < np.max(bound) < 0.1


def test_error_of_a_sum():
    """A kink at 0 makes a sum of a closed form and series; the bound covers them all."""
    k, rows = kernel(ACTIVATIONS["half cosine"], "relu", terms=6), jnp.array([[1.5, 0.0], [0.9, 1.2]])
    exact = kernel(ACTIVATIONS["half cosine"], "relu", terms=300)
    error, bound = np.abs(k.value(rows, rows) - exact.value(rows, rows)), k.error(rows, rows)
    # The reference is itself a series: its own bound must be far below the smallest error it is used to judge.
    assert np.all(error <= bound) and np.min(error) > 1e-4 and np.max(exact.error(rows, rows)) < 1e-2 * np.min(error)


def test_error_is_never_below_what_rounding_can_see():
    """A tail lost in rounding is not a tail of zero: ReLU's slow tail would multiply what was not seen."""
    rows = jnp.array([[1.0, 0.0]])
    few, many = (kernel("relu", ACTIVATIONS["softplus"], terms=terms) for terms in (26, 200))
    assert abs(few.value(rows, rows) - many.value(rows, rows))[0, 0] <= few.error(rows, rows)[0, 0] < 1e-6
    assert many.error(rows, rows)[0, 0] > 1e-12


def test_kink_away_from_zero():
    """Values and gradients are offered, the Hessian is refused in a sentence."""
    s = act.from_callable(lambda z: jnp.maximum(z - 0.4, 0.0), name="late", kinks=(0.4,))
    k = kernel(s, "erf", terms=60)
    value, gradient = jax.jit(lambda a, b: (k.value(a, b), k.gradient(a, b)))(A, B)
    expected = by_quadrature(s, act.erf, C, A, B)
    np.testing.assert_allclose(value, expected[0], atol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-12)
    for ask in (lambda: k.mixed(A, B), lambda: k.curvature(C, A, B)):
        with pytest.raises(BadInput, match="slope jumps at"):
            ask()


def test_accuracy_says_which_form():
    exact = [p for p in PAIRS if not {"softplus", "half cosine"} & set(p)]
    assert all("closed form" in kernel(ACTIVATIONS[s], ACTIVATIONS[t]).accuracy for s, t in exact)
    assert all("series" not in kernel(ACTIVATIONS[s], ACTIVATIONS[t]).accuracy for s, t in exact)
    assert "closed form" in kernel("linear", ACTIVATIONS["softplus"]).accuracy  # Stein's identity
    assert "128 terms" in kernel("relu", ACTIVATIONS["softplus"]).accuracy
    assert isinstance(kernel("relu", "sigmoid"), SumKernel)


@pytest.mark.parametrize(
    ("name", "function"),
    [("relu", lambda z: max(z, 0)), ("sigmoid", lambda z: 1 / (1 + mpmath.exp(-z)))],
)
def test_against_mpmath(name, function):
    """Integration of the plain definition in long arithmetic."""
    theta = 2.1
    rows = jnp.array([[1.3, 0.0]]), 0.7 * jnp.array([[np.cos(theta), np.sin(theta)]])
    exact = quadrature.expectation_mp(function, function, 1.3, 0.7, theta, digits=15)
    assert abs(float(kernel(name, name).value(*rows)[0, 0]) - float(exact)) < 2e-15


def test_jit_and_vmap():
    k = kernel("relu", "tanh")
    batch_a, batch_b = jnp.stack([A, 2 * A, -A]), jnp.stack([B, B, 3 * B])
    batched = jax.jit(jax.vmap(lambda a, b: k.pull(C, a, b)))(batch_a, batch_b)
    for i in range(3):
        np.testing.assert_allclose(batched[i], k.pull(C, batch_a[i], batch_b[i]), rtol=1e-13, atol=1e-15)
