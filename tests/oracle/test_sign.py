"""Kernels of signs and steps: against integration in the plane, long arithmetic, differences and erf of steep slope."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from oracle import quadrature

import tutelage as tt
from tutelage.oracle.kernels import kernel
from tutelage.problem import activations as act
from tutelage.problem.atoms import ErfMixture

pytestmark = pytest.mark.usefixtures("quickly_compiled")
A = jnp.array([[0.3, -0.4, 0.2], [0.1, 0.5, -0.2]])
B = jnp.array([[0.2, 0.3, 0.4], [-0.5, 0.1, 0.1]])
C = jnp.array([[1.0, -0.7], [0.4, 2.0]])
OTHERS = {
    **{name: tt.activation(name) for name in ("sign", "step", "relu", "abs", "erf", "tanh", "he3", "softplus")},
    "broken": tt.activation(lambda z: jnp.where(z > 0, 1 + z, -jnp.cos(z)), kinks=(0,)),
}
ORDERED = [
    *(("sign", name) for name in OTHERS),
    *((name, "sign") for name in OTHERS if name != "sign"),
    ("step", "step"),
]


@pytest.mark.parametrize(("s", "t"), ORDERED)
def test_values_are_the_expectation(s, t):
    """Both routes are good to a few roundings of numbers of size one."""
    s, t = OTHERS[s], OTHERS[t]
    expected = [[quadrature.expectation(s, t, a, b).value for b in B] for a in A]
    np.testing.assert_allclose(kernel(s, t).value(A, B), expected, atol=3e-13)


@pytest.mark.parametrize(("s", "t"), ORDERED)
def test_derivatives_are_differences(s, t):
    """Fourth-order differences, step 1e-3: an error of 1e-12 times a fifth derivative, which goes with |row|^-5."""
    k, h = kernel(OTHERS[s], OTHERS[t]), 1e-3
    value, gradient = jax.jit(k.value), jax.jit(k.gradient)

    def difference(f, direction):
        far, near = (f(-2 * direction) - f(2 * direction)), (f(direction) - f(-direction))
        return np.asarray(8 * near + far) / (12 * h)

    steps = h * jnp.eye(3)[:, None]
    slopes = np.stack([difference(lambda e: value(A + e, B), e) for e in steps], axis=-1)
    curvature = np.stack([difference(lambda e: gradient(A + e, B), e) for e in steps], axis=-1)
    mixed = np.stack([difference(lambda e: gradient(A, B + e), e) for e in steps], axis=-1)
    np.testing.assert_allclose(gradient(A, B), slopes, atol=3e-7)
    np.testing.assert_allclose(k.mixed(A, B), mixed, atol=3e-6)
    np.testing.assert_allclose(k.curvature(C, A, B), np.einsum("pq,pqmn->pmn", C, curvature), atol=3e-6)
    np.testing.assert_allclose(k.pull(C, A, B), np.einsum("pq,pqn->pn", C, gradient(A, B)), atol=1e-13)


@pytest.mark.parametrize(("s", "t"), [("sign", "erf"), ("erf", "sign"), ("sign", "sign"), ("step", "tanh")])
def test_a_sign_is_a_steep_erf(s, t):
    """Of slope 1e5 on rows of length 1/2 the difference is of relative order (slope |row|)^-2, 4e-10."""

    def steep(name):
        if name not in ("sign", "step"):
            return tt.activation(name)
        mixture = ErfMixture((1.0 if name == "sign" else 0.5,), (1e5,))
        return act.Activation(
            "steep", (mixture, *(a for a in tt.activation(name).atoms if not isinstance(a, act.Sign)))
        )

    k, near = kernel(s, t), kernel(steep(s), steep(t))
    for name in ("value", "gradient", "mixed"):
        np.testing.assert_allclose(getattr(k, name)(A, B), getattr(near, name)(A, B), atol=3e-8)
    np.testing.assert_allclose(k.curvature(C, A, B), near.curvature(C, A, B), atol=3e-8)


@pytest.mark.parametrize("theta", [0.0, 1e-9, 0.3, float(mpmath.pi / 2), 3.0, float(mpmath.pi)])
def test_values_in_long_arithmetic(theta):
    a, b = jnp.array([[0.7, 0.0]]), 1.3 * jnp.array([[np.cos(theta), np.sin(theta)]])
    for t, other in (("sign", mpmath.sign), ("erf", mpmath.erf)):
        exact = quadrature.expectation_mp(mpmath.sign, other, 0.7, 1.3, theta, digits=20)
        assert abs(float(kernel("sign", t).value(a, b)[0, 0]) - float(exact)) < 1e-14
        assert abs(float(kernel(t, "sign").value(b, a)[0, 0]) - float(exact)) < 1e-14


def test_aligned_opposite_and_zero_rows():
    """A cone has no slope at its tip: the mean of all directions is given. A zero row has a value and nothing else."""
    k, row = kernel("sign", "sign"), jnp.array([[0.6, 0.8]])
    places = jnp.concatenate([row, 3 * row, -0.1 * row, jnp.array([[-0.8, 0.6], [0.0, 0.0]])])
    np.testing.assert_allclose(k.value(row, places)[0], [1, 1, -1, 0, 0], atol=1e-15)
    slope = k.gradient(row, places)[0]
    np.testing.assert_allclose(slope[:3], 0)
    assert np.linalg.norm(slope[3]) == pytest.approx(2 / np.pi)
    assert np.all(np.isnan(k.gradient(jnp.zeros((1, 2)), row)))
    for s, t in (("sign", "erf"), ("erf", "sign")):
        k = kernel(s, t)
        assert not np.any(np.isnan(k.gradient(row, places)))
        assert bool(np.all(np.isnan(k.gradient(jnp.zeros((1, 2)), row)))) == (s == "sign")
        assert float(k.value(jnp.zeros((1, 2)), row)[0, 0]) == float(k.value(row, jnp.zeros((1, 2)))[0, 0]) == 0
    noisy = row + jnp.array([[0.0, 2e-16]])  # aligned to rounding, which must not choose a direction
    np.testing.assert_allclose(kernel("sign", "sign").gradient(row, noisy), 0)
    # The tip itself: half a turn of the small angle costs 2/pi of it, on either side.
    turned = jnp.array([[0.6 - 0.8e-7, 0.8 + 0.6e-7]])
    k = kernel("sign", "sign")
    assert float(1 - k.value(row, turned)[0, 0]) == pytest.approx(2 / np.pi * 1e-7, rel=1e-6)
