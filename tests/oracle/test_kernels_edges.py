"""Kernels where formulas break: parallel, opposite, orthogonal, equal and zero rows, and norms from 1e-12 to 1e6."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from oracle import quadrature

from tutelage.oracle.geometry import angles, rows, square_chords
from tutelage.oracle.kernels import kernel
from tutelage.problem import activations as act

PAIRS = [("relu", "relu"), ("abs", "relu"), ("relu", "he4"), ("sigmoid", "relu"), ("tanh", "erf"), ("he3", "tanh")]
U = jnp.array([0.6, 0.0, 0.8])
V = jnp.array([0.0, 1.0, 0.0])
DIRECTIONS = {
    "parallel": U,
    "opposite": -U,
    "orthogonal": V,
    "nearly parallel": U + 1e-9 * V,
    "nearly opposite": -U + 1e-9 * V,
}


def everything(k, a, b, c=1.0):
    """One pair of rows: value, gradient, mixed, curvature, pull. Another row stands beside `b`, with the weight 0."""
    a, b, c = jnp.asarray(a)[None], jnp.stack([jnp.asarray(b), jnp.ones(3)]), jnp.array([[c, 0.0]])
    return k.value(a, b)[0, 0], k.gradient(a, b)[0, 0], k.mixed(a, b)[0, 0], k.curvature(c, a, b)[0], k.pull(c, a, b)[0]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("s", "t"), PAIRS)
def test_directions(s, t, direction):
    a, b = 0.9 * U, 1.7 * DIRECTIONS[direction]
    ours, expected = everything(kernel(s, t), a, b), quadrature.expectation(s, t, a, b)
    # Sizes are of order one (He_4 at norm 1.7: fifty); both routes are good to a few roundings of that.
    for mine, theirs in zip(ours, (*expected, expected.gradient), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=5e-13, rtol=5e-13)


@pytest.mark.parametrize("norms", [(1e-12, 1e-12), (1e-12, 1.0), (1.0, 1e6), (1e6, 1e6), (1e6, 1e-12)])
@pytest.mark.parametrize(("s", "t"), [("relu", "relu"), ("erf", "erf"), ("erf", "linear"), ("abs", "he4")])
def test_norms(s, t, norms):
    """Relative to the size of each answer, at every combination of short and long rows."""
    # The natural size of a derivative is that of the value over the norms it is taken in.
    s_size, t_size = (
        float(kernel(f, f).value(*2 * [r * U[None]])[0, 0]) ** 0.5 for f, r in zip((s, t), norms, strict=True)
    )
    sizes = s_size * t_size / np.array([1, norms[0], norms[0] * norms[1], norms[0] ** 2, norms[0]])
    sizes[3] = max(sizes[3], t_size / norms[0])  # s'' of a long row is one up and one down, and integrates to less
    # The rays of the integration are placed to 1e-16, which a long row magnifies by its norm.
    accuracy = 1e-12 + 1e-15 * max(norms)
    for direction in (U, 0.8 * U + 0.6 * V, -U):
        a, b = norms[0] * U, norms[1] * direction
        ours, expected = everything(kernel(s, t), a, b), quadrature.expectation(s, t, a, b)
        for mine, theirs, size in zip(ours, (*expected, expected.gradient), sizes, strict=True):
            assert np.max(np.abs(mine - theirs)) <= accuracy * max(size, float(np.max(np.abs(theirs))))


@pytest.mark.parametrize("angle", [0.0, 1e-3, 3.0])
@pytest.mark.parametrize("norms", [(1e6, 2e6), (1e6, 0.5), (3.0, 1e6)])
def test_long_rows_of_erf(norms, angle):
    """In long arithmetic, where `F_c b + 2 F_qa a` and `q_a q_b - c^2` would lose up to all digits in double."""
    a, b = np.array([norms[0], 0.0, 0.0]), norms[1] * np.array([np.cos(angle), np.sin(angle), 0.0])

    def exact(*w):
        dot = sum(x * y for x, y in zip(w[:3], w[3:], strict=True))
        spread = (1 + 2 * sum(x**2 for x in w[:3])) * (1 + 2 * sum(y**2 for y in w[3:]))
        return 2 / mpmath.pi * mpmath.atan2(2 * dot, mpmath.sqrt(spread - 4 * dot**2))

    def derivative(*places):
        orders = tuple(places.count(i) for i in range(6))
        return float(mpmath.diff(exact, tuple(map(mpmath.mpf, (*a, *b))), orders))

    with mpmath.workdps(120):
        gradient = np.array([derivative(i) for i in range(3)])
        mixed = np.array([[derivative(i, j) for j in range(3, 6)] for i in range(3)])
        curvature = np.array([[derivative(i, j) for j in range(3)] for i in range(3)])
    ours = everything(kernel("erf", "erf"), a, b)
    # Relative to the largest entry. A unit row is right to 1e-16, so an angle of 1e-3 to 1e-13 of itself.
    for mine, theirs in zip(ours[1:], (gradient, mixed, curvature, gradient), strict=True):
        assert np.max(np.abs(mine - theirs)) <= 1e-12 * np.max(np.abs(theirs))


def test_relu_opposite_keeps_relative_accuracy():
    """At the angle pi - psi the value is psi^3 / (6 pi): no digits may be lost to cancellation."""
    for psi in [1e-1, 1e-3, 1e-5]:
        b = jnp.array([[-np.cos(psi), np.sin(psi), 0.0]])
        with mpmath.workdps(40):
            x, y = mpmath.mpf(float(b[0, 0])), mpmath.mpf(float(b[0, 1]))
            angle = mpmath.atan2(y, -x)
            exact = mpmath.hypot(x, y) * (mpmath.sin(angle) - angle * mpmath.cos(angle)) / (2 * mpmath.pi)
        value = float(kernel("relu", "relu").value(jnp.array([[1.0, 0.0, 0.0]]), b)[0, 0])
        # The chord carries a rounding of the unit rows, eps / psi of itself, and the value goes with its cube.
        assert abs(value / float(exact) - 1) < 1e-15 / psi + 1e-15


def test_angle_of_equal_rows_is_zero_exactly():
    a = jnp.asarray(np.random.default_rng(0).normal(size=(6, 5)))
    arc = angles(rows(a), rows(jnp.concatenate([a, 2 * a, -a])))
    near = np.asarray(arc.near)
    assert all(np.all(near[np.arange(6), np.arange(6) + shift] == 0) for shift in (0, 6, 12))
    assert np.all(np.asarray(arc.sign)[np.arange(6), np.arange(6) + 12] == -1)


def test_small_angles_have_relative_accuracy():
    """Where arccos of the dot product has lost everything."""
    for psi in [1e-3, 1e-6, 1e-9]:
        a, b = jnp.array([[1.0, 0.0]]), jnp.array([[np.cos(psi), np.sin(psi)]])
        assert float(angles(rows(a), rows(b)).near[0, 0]) == pytest.approx(psi, rel=1e-15 / psi + 1e-15)
        assert float(angles(rows(a), rows(-b)).near[0, 0]) == pytest.approx(psi, rel=1e-15 / psi + 1e-15)


def test_long_and_short_rows_do_not_overflow():
    a = jnp.array([[3e-200, 4e-200], [3e150, 4e150]])
    np.testing.assert_allclose(rows(a).norm, [5e-200, 5e150], rtol=1e-15)
    np.testing.assert_allclose(rows(a).unit, [[0.6, 0.8]] * 2, rtol=1e-15)
    gradient = kernel("relu", "relu").gradient(a[:1], jnp.array([[0.0, 1.0]]))[0, 0]
    np.testing.assert_allclose(gradient, kernel("relu", "relu").gradient(jnp.array([[3.0, 4.0]]), jnp.eye(2)[1:])[0, 0])


ZERO = jnp.zeros(3)
ROW = 0.8 * U


@pytest.mark.parametrize("t", ["relu", "he4", "sigmoid", "linear", "he3", "erf"])
@pytest.mark.parametrize("s", ["relu", "abs"])
def test_zero_row_of_a_kinked_activation(s, t):
    """`K(a, b)` near `a = 0` is `|a|` times a function of direction: no derivative, unless that function vanishes."""
    k = kernel(s, t)
    value, gradient, mixed, curvature, pull = everything(k, ZERO, ROW)
    assert value == 0
    has_even_part = t in ("relu", "he4", "sigmoid")
    for derivative in (gradient, pull, curvature):
        assert np.all(np.isnan(derivative)) == has_even_part
    # The even part of the sigmoid is a constant, which the mixed derivative does not see.
    assert np.all(np.isnan(mixed)) == (t in ("relu", "he4"))
    if not has_even_part:  # only the linear part is left, and its kernel is linear in a
        np.testing.assert_allclose(gradient, k.gradient(V[None], ROW[None])[0, 0], atol=1e-14)
    for derivative in everything(k, ZERO, ROW, c=0.0)[3:]:
        np.testing.assert_array_equal(derivative, 0.0)  # a coefficient that is exactly 0 asks for nothing


@pytest.mark.parametrize("t", ["relu", "erf", "sigmoid", "he4"])
@pytest.mark.parametrize("s", ["relu", "erf", "he3", "sigmoid"])
def test_derivative_at_the_other_rows_zero(s, t):
    """`K(a, 0) = t(0) E[s(a.x)]`: smooth in `a` whatever `t` is."""
    value, gradient, _, curvature, pull = everything(kernel(s, t), ROW, ZERO)
    expected = quadrature.expectation(s, act.polynomial([float(act.activation(t)(0.0))]), ROW, ROW)
    np.testing.assert_allclose(value, expected.value, atol=1e-13)
    np.testing.assert_allclose(gradient, expected.gradient, atol=1e-13)
    np.testing.assert_allclose(pull, expected.gradient, atol=1e-13)
    np.testing.assert_allclose(curvature, expected.curvature, atol=1e-13)


@pytest.mark.parametrize("t", ["erf", "he3", "sigmoid"])
@pytest.mark.parametrize("s", ["erf", "he3", "sigmoid"])
def test_zero_row_of_a_smooth_activation(s, t):
    """At `a = 0` a smooth kernel is smooth: `s'(0) E[t x]`, `s'(0) E[t' x x^T]` and `s''(0) E[t x x^T]`."""
    for b in (ROW, ZERO):
        ours, expected = everything(kernel(s, t), ZERO, b), quadrature.expectation(s, t, ZERO, b)
        for mine, theirs in zip(ours, (*expected, expected.gradient), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-13)


def test_both_rows_zero():
    """`K(a, 0) = 0` for ReLU, so its gradient in `a` is 0 even at `a = 0`; the mixed derivative does not exist."""
    value, gradient, mixed, curvature, _ = everything(kernel("relu", "relu"), ZERO, ZERO)
    assert value == 0 and np.all(gradient == 0) and np.all(curvature == 0) and np.all(np.isnan(mixed))


def test_duplicate_rows():
    """Copies of a row give copies of the answers, and one zero row does not spoil its neighbours."""
    a = jnp.stack([ROW, ROW, ZERO, 0.3 * V])
    c = jnp.ones((4, 4))
    for s, t in PAIRS[:4]:
        k = kernel(s, t)
        pull, value = k.pull(c, a, a), k.value(a, a)
        np.testing.assert_array_equal(pull[0], pull[1])
        np.testing.assert_array_equal(value[0, 0], value[0, 1])
        assert np.all(np.isfinite(pull[jnp.array([0, 1, 3])]))


@pytest.mark.parametrize("directions", [64, 65, 300])
def test_chords_in_many_directions(directions):
    """Beyond 64 they are summed row by row."""
    draw = np.random.default_rng(0)
    u, v = draw.standard_normal((40, directions)), draw.standard_normal((30, directions))
    sign = draw.choice([-1.0, 1.0], (40, 30))
    expected = np.sum((u[:, None] - sign[:, :, None] * v) ** 2, axis=2)
    np.testing.assert_allclose(square_chords(*map(jnp.asarray, (sign, u, v))), expected, rtol=1e-13)
