"""Kernels where formulas break: parallel, opposite, orthogonal, equal and zero rows, and norms from 1e-12 to 1e6."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from tutelage.oracle import quadrature
from tutelage.oracle.geometry import angles, rows
from tutelage.oracle.kernels import kernel
from tutelage.problem import activations as act

SMOOTH = ["erf", "sigmoid", "he3"]
PAIRS = [("relu", "relu"), ("abs", "relu"), ("relu", "he4"), ("sigmoid", "relu"), ("tanh", "erf"), ("he3", "tanh")]
U = np.array([0.6, 0.0, 0.8])
V = np.array([0.0, 1.0, 0.0])
DIRECTIONS = {
    "parallel": U,
    "opposite": -U,
    "orthogonal": V,
    "nearly parallel": U + 1e-9 * V,
    "nearly opposite": -U + 1e-9 * V,
}


@jax.jit
def everything(k, c, a, b):
    return k.value(a, b)[0, 0], k.gradient(a, b)[0, 0], k.pull(c, a, b)[0], k.mixed(a, b)[0, 0], k.curvature(c, a, b)[0]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("s", "t"), PAIRS)
def test_directions(s, t, direction):
    a, b = 0.9 * U, 1.7 * DIRECTIONS[direction]
    value, gradient, pull, mixed, curvature = everything(kernel(s, t), jnp.ones((1, 1)), a[None], b[None])
    # Sizes are of order one (He_4 at norm 1.7: fifty); both routes are good to a few roundings of that.
    close = {"atol": 5e-13, "rtol": 5e-13}
    np.testing.assert_allclose(value, quadrature.expectation(s, t, a, b), **close)
    np.testing.assert_allclose(gradient, quadrature.expectation_gradient(s, t, a, b), **close)
    np.testing.assert_allclose(pull, gradient, **close)
    np.testing.assert_allclose(mixed, quadrature.expectation_mixed(s, t, a, b), **close)
    np.testing.assert_allclose(curvature, quadrature.expectation_curvature(s, t, a, b), **close)


@pytest.mark.parametrize("norms", [(1e-12, 1e-12), (1e-12, 1.0), (1.0, 1e6), (1e6, 1e6), (1e6, 1e-12)])
@pytest.mark.parametrize("direction", ["parallel", "oblique", "opposite"])
@pytest.mark.parametrize(
    ("s", "t"), [("relu", "relu"), ("tanh", "erf"), ("erf", "linear"), ("he3", "he3"), ("abs", "he4")]
)
def test_norms(s, t, norms, direction):
    """Relative to the size of each answer, at every combination of short and long rows."""
    a = norms[0] * U
    b = norms[1] * {"parallel": U, "oblique": 0.8 * U + 0.6 * V, "opposite": -U}[direction]
    value, gradient, pull, mixed, curvature = everything(kernel(s, t), jnp.ones((1, 1)), a[None], b[None])
    references = (
        (value, quadrature.expectation(s, t, a, b)),
        (gradient, quadrature.expectation_gradient(s, t, a, b)),
        (pull, quadrature.expectation_gradient(s, t, a, b)),
        (mixed, quadrature.expectation_mixed(s, t, a, b)),
        (curvature, quadrature.expectation_curvature(s, t, a, b)),
    )
    # The natural size of a derivative is that of the value over the norms it is taken in; the integration itself
    # cancels to about 1e-12 of that when s'' is large and of both signs.
    s_size, t_size = (np.sqrt(quadrature.expectation(f, f, r, r)) for f, r in ((s, a), (t, b)))
    sizes = s_size * t_size / np.array([1, norms[0], norms[0], norms[0] * norms[1], norms[0] ** 2])
    for (ours, theirs), size in zip(references, sizes, strict=True):
        scale = max(size, float(np.max(np.abs(theirs))))
        assert np.max(np.abs(ours - theirs)) <= 1e-11 * scale


def test_relu_opposite_keeps_relative_accuracy():
    """At the angle pi - psi the value is psi^3 / (6 pi): no digits may be lost to cancellation."""
    for psi in [1e-1, 1e-3, 1e-5]:
        b = np.array([[-np.cos(psi), np.sin(psi), 0.0]])
        with mpmath.workdps(40):
            x, y = mpmath.mpf(b[0, 0]), mpmath.mpf(b[0, 1])
            angle = mpmath.atan2(y, -x)
            exact = mpmath.hypot(x, y) * (mpmath.sin(angle) - angle * mpmath.cos(angle)) / (2 * mpmath.pi)
        value = float(kernel("relu", "relu").value(np.array([[1.0, 0.0, 0.0]]), b)[0, 0])
        # The chord carries a rounding of the unit rows, eps / psi of itself, and the value goes with its cube.
        assert abs(value / float(exact) - 1) < 1e-15 / psi + 1e-15


def test_angle_of_equal_rows_is_zero_exactly():
    a = np.random.default_rng(0).normal(size=(6, 5))
    arc = angles(rows(a), rows(np.concatenate([a, 2 * a, -a])))
    near = np.asarray(arc.near)
    assert all(np.all(near[np.arange(6), np.arange(6) + shift] == 0) for shift in (0, 6, 12))
    assert np.all(np.asarray(arc.sign)[np.arange(6), np.arange(6) + 12] == -1)


def test_small_angles_have_relative_accuracy():
    """Where arccos of the dot product has lost everything."""
    for psi in [1e-3, 1e-6, 1e-9]:
        a, b = np.array([[1.0, 0.0]]), np.array([[np.cos(psi), np.sin(psi)]])
        assert float(angles(rows(a), rows(b)).near[0, 0]) == pytest.approx(psi, rel=1e-15 / psi + 1e-15)
        assert float(angles(rows(a), rows(-b)).near[0, 0]) == pytest.approx(psi, rel=1e-15 / psi + 1e-15)


def test_long_and_short_rows_do_not_overflow():
    a = np.array([[3e-200, 4e-200], [3e150, 4e150]])
    np.testing.assert_allclose(rows(a).norm, [5e-200, 5e150], rtol=1e-15)
    np.testing.assert_allclose(rows(a).unit, [[0.6, 0.8]] * 2, rtol=1e-15)
    gradient = kernel("relu", "relu").gradient(a[:1], np.array([[0.0, 1.0]]))[0, 0]
    np.testing.assert_allclose(gradient, kernel("relu", "relu").gradient(np.array([[3.0, 4.0]]), np.eye(2)[1:])[0, 0])


KINKED = ["relu", "abs"]
ZERO = np.zeros((1, 3))
ROW = 0.8 * U[None]


@pytest.mark.parametrize("t", ["relu", "he4", "sigmoid", "linear", "he3", "erf"])
@pytest.mark.parametrize("s", KINKED)
def test_zero_row_of_a_kinked_activation(s, t):
    """`K(a, b)` near `a = 0` is `|a|` times a function of direction: no derivative, unless that function vanishes."""
    k = kernel(s, t)
    value, gradient, pull, mixed, curvature = everything(k, jnp.ones((1, 1)), ZERO, ROW)
    assert value == 0
    has_even_part = t in ("relu", "he4", "sigmoid")
    for derivative in (gradient, pull, curvature):
        assert np.all(np.isnan(derivative)) == has_even_part
    if t != "sigmoid":  # the even part of the sigmoid is a constant, which the mixed derivative does not see
        assert np.all(np.isnan(mixed)) == has_even_part
    if not has_even_part:  # only the linear part is left: E[(l a.x) t(b.x)] has the gradient l E[t(b.x) x]
        expected = k.gradient(1e-8 * V[None], ROW)[0, 0]
        np.testing.assert_allclose(gradient, expected, atol=1e-7)
    for derivative in everything(k, jnp.zeros((1, 1)), ZERO, ROW)[2::2]:
        np.testing.assert_array_equal(derivative, 0.0)  # a coefficient that is exactly 0 asks for nothing


@pytest.mark.parametrize("s", ["relu", "erf", "he3", "sigmoid"])
def test_derivative_at_the_other_rows_zero(s):
    """`K(a, 0) = t(0) E[s(a.x)]`: smooth in `a` whatever `t` is."""
    for t in ("relu", "erf", "sigmoid", "he4"):
        value, gradient, pull, _, curvature = everything(kernel(s, t), jnp.ones((1, 1)), ROW, ZERO)
        constant = float(act.activation(t)(0.0))
        expected = constant * quadrature.expectation_gradient(s, "he0", ROW[0], U)
        bent = constant * quadrature.expectation_curvature(s, "he0", ROW[0], U)
        assert value == pytest.approx(constant * quadrature.expectation(s, "he0", ROW[0], U), abs=1e-14)
        np.testing.assert_allclose(gradient, expected, atol=1e-13)
        np.testing.assert_allclose(pull, expected, atol=1e-13)
        np.testing.assert_allclose(curvature, bent, atol=1e-13)


@pytest.mark.parametrize("s", SMOOTH)
@pytest.mark.parametrize("other", ["row", "zero"])
def test_zero_row_of_a_smooth_activation(s, other):
    """At `a = 0` a smooth kernel is smooth: `s'(0) E[t x]`, `s'(0) E[t' x x^T]` and `s''(0) E[t x x^T]`."""
    b = ROW if other == "row" else ZERO
    for t in ("erf", "he3", "sigmoid"):
        value, gradient, pull, mixed, curvature = everything(kernel(s, t), jnp.ones((1, 1)), ZERO, b)
        np.testing.assert_allclose(value, quadrature.expectation(s, t, ZERO[0], b[0]), atol=1e-13)
        np.testing.assert_allclose(gradient, quadrature.expectation_gradient(s, t, ZERO[0], b[0]), atol=1e-13)
        np.testing.assert_allclose(pull, gradient, atol=1e-15)
        np.testing.assert_allclose(mixed, quadrature.expectation_mixed(s, t, ZERO[0], b[0]), atol=1e-13)
        np.testing.assert_allclose(curvature, quadrature.expectation_curvature(s, t, ZERO[0], b[0]), atol=1e-13)


def test_both_rows_zero():
    """`K(a, 0)` is identically 0 for ReLU, so its gradient in `a` is 0 even at `a = 0`; the mixed one does not exist."""
    value, gradient, _, mixed, curvature = everything(kernel("relu", "relu"), jnp.ones((1, 1)), ZERO, ZERO)
    assert value == 0 and np.all(gradient == 0) and np.all(curvature == 0) and np.all(np.isnan(mixed))


def test_duplicate_rows():
    """Copies of a row give copies of the answers, and one zero row does not spoil its neighbours."""
    a = np.concatenate([ROW, ROW, ZERO, 0.3 * V[None]])
    c = np.ones((4, 4))
    for s, t in PAIRS[:4]:
        k = kernel(s, t)
        pull, value = k.pull(c, a, a), k.value(a, a)
        np.testing.assert_array_equal(pull[0], pull[1])
        np.testing.assert_array_equal(value[0, 0], value[0, 1])
        assert np.all(np.isfinite(pull[jnp.array([0, 1, 3])]))
