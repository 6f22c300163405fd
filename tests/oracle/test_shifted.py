"""Hermite coefficients of shifted units, against adaptive quadrature by SciPy and mpmath, and their derivative rule."""

import math
from itertools import pairwise

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import eval_hermitenorm

import tutelage as tt
from tutelage.oracle.kernels.shifted import shifted
from tutelage.oracle.kernels.shifted import shifted_coefficients as coefficients
from tutelage.problem.activations import from_callable, leaky_relu, polynomial

COUNT = 8
SHIFTS = (-8.0, -2.3, -0.4, 0.0, 1.1, 8.0)


def bent(z):
    """Slopes jump at 1.3, and at 0."""
    return jnp.maximum(z - 1.3, 0.0) + 0.5 * jnp.abs(z) + jnp.sin(z)


KINDS = {
    "relu": (tt.activation("relu"), lambda z: max(z, 0.0)),
    "abs": (tt.activation("abs"), abs),
    "step": (tt.activation("step"), lambda z: 1.0 * (z > 0)),
    "leaky": (leaky_relu(0.2), lambda z: z if z > 0 else 0.2 * z),
    "linear": (tt.activation("linear"), lambda z: z),
    "polynomial": (polynomial([0.3, -1.0, 0.0, 2.0]), lambda z: 0.3 - z + 2 * z**3),
    "tanh": (tt.activation("tanh"), math.tanh),
    "sigmoid": (tt.activation("sigmoid"), lambda z: 1 / (1 + math.exp(-z))),
    "erf": (tt.activation("erf"), math.erf),
    "softplus": (tt.activation("softplus"), lambda z: max(z, 0) + math.log1p(math.exp(-abs(z)))),
    "kink elsewhere": (
        from_callable(bent, kinks=(0.0, 1.3)), lambda z: max(z - 1.3, 0.0) + 0.5 * abs(z) + math.sin(z),
    ),
}  # fmt: skip


def expected(function, shift, order, kinks):
    """`E[s(Z + shift) h_i(Z)]` by adaptive quadrature between the kinks; beyond 14 there is less than 1e-35."""

    def density(z):
        bell = math.exp(-z * z / 2) / math.sqrt(2 * math.pi * math.factorial(order))
        return function(z + shift) * eval_hermitenorm(order, z) * bell

    ends = [-14.0, *sorted(k - shift for k in kinks if abs(k - shift) < 14), 14.0]
    size = 1e-14 * max(1.0, *(abs(density(z)) for z in np.linspace(-8, 8, 65)))  # what rounding leaves
    parts = (quad(density, *pair, epsabs=10 * size, epsrel=1e-13, limit=400) for pair in pairwise(ends))
    return sum(part[0] for part in parts)


@pytest.mark.parametrize("name", KINDS)
def test_coefficients_by_adaptive_quadrature(name):
    kind, function = KINDS[name]
    found = np.asarray(coefficients(kind, jnp.asarray(SHIFTS), COUNT))
    for shift, row in zip(SHIFTS, found, strict=True):
        wanted = [expected(function, shift, i, kind.kinks) for i in range(COUNT)]
        # Both are sums of terms as large as the largest coefficient, right to 1e-13 of it, or of 1.
        np.testing.assert_allclose(row, wanted, rtol=0, atol=1e-12 * max(1.0, np.max(np.abs(wanted))))


def test_relu_to_many_digits():
    """The closed form against quadrature with 20 digits, up to a high order."""
    count, shift = 12, 0.7
    found = coefficients(tt.activation("relu"), jnp.asarray(shift), count)
    with mpmath.workdps(20):
        m = mpmath.mpf(shift)
        for i in range(count):

            def density(z, i=i):
                # He_i(z) = 2^(-i/2) H_i(z/sqrt 2)
                return (z + m) * mpmath.hermite(i, z / mpmath.sqrt(2)) / mpmath.sqrt(2) ** i * mpmath.npdf(z)

            wanted = mpmath.quad(density, [-m, 2, 6, 14]) / mpmath.sqrt(mpmath.factorial(i))
            # The recurrence rounds once per order, by 1e-16 of values up to 1.
            assert float(found[i]) == pytest.approx(float(wanted), abs=1e-14)


@pytest.mark.parametrize("name", ["relu", "tanh", "polynomial", "kink elsewhere"])
def test_derivative_rule(name):
    """`alpha_i'(m) = sqrt(i + 1) alpha_{i+1}(m)`, by fourth-order differences."""
    kind, h = KINDS[name][0], 1e-2
    table = np.asarray(coefficients(kind, jnp.asarray(0.6 + h * np.array([-2, -1, 0, 1, 2])), COUNT))
    slope = (table[0] - 8 * table[1] + 8 * table[3] - table[4]) / (12 * h)
    # h^4/30 of the fifth derivative, which is sqrt(5! binom(i+5, 5)) alpha_{i+5}: 3.3e-10 times at most 300.
    np.testing.assert_allclose(slope[:-1], np.sqrt(np.arange(1, COUNT)) * table[2, 1:], rtol=0, atol=1e-7)


@pytest.mark.parametrize("lowest", [0, 2])
def test_random_polynomials(lowest):
    draw = np.random.default_rng(0)
    signs, bias, outgoing = draw.choice([-1.0, 1.0], (3, 4)), draw.normal(size=3), np.array([1.0, -1.0, 2.0])
    units = tt.Units(jnp.asarray(outgoing), jnp.asarray(bias), jnp.asarray(signs), lowest=lowest)
    shift = draw.normal(size=(2, 3))
    z, weight = np.polynomial.hermite_e.hermegauss(16)  # exact up to degree 31
    weight = weight / math.sqrt(2 * math.pi)
    for count in (2, 9):  # fewer and more orders than the units have
        found = np.asarray(shifted(units, jnp.asarray(shift), count))
        assert found.shape == (2, 3, count)
        values = np.asarray(units.value(jnp.asarray(z[:, None, None] + shift)))
        table = np.stack([eval_hermitenorm(i, z) / math.sqrt(math.factorial(i)) for i in range(count)], axis=-1)
        wanted = np.einsum("q,qbu,qi->bui", weight, values, table) * outgoing[:, None]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.max(np.abs(wanted)))
        assert np.all(found[..., lowest + 4 :] == 0)


def test_bias_and_shift_add_up_and_outgoing_weights_multiply():
    kind = tt.activation("tanh")
    units = tt.Units(jnp.asarray([2.0, -1.0]), jnp.asarray([0.5, -0.3]), kind=kind)
    found = shifted(units, jnp.asarray([0.1, 0.2]), 5)
    for j, (outgoing, argument) in enumerate(((2.0, 0.6), (-1.0, -0.1))):
        np.testing.assert_allclose(found[j], outgoing * coefficients(kind, jnp.asarray(argument), 5), rtol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_orders(count):
    for kind in (KINDS[name][0] for name in ("relu", "polynomial", "erf")):
        found = coefficients(kind, jnp.asarray([0.3, -1.0]), count)
        assert found.shape == (2, count)
        np.testing.assert_allclose(found, coefficients(kind, jnp.asarray([0.3, -1.0]), 6)[:, :count], rtol=1e-13)


def test_without_a_shift_they_are_the_activations_own():
    for kind in (KINDS[name][0] for name in ("abs", "polynomial", "tanh")):
        own = kind.hermite(COUNT)
        # Both are right to 1e-13 of values up to 12, those of the cubic.
        np.testing.assert_allclose(coefficients(kind, jnp.asarray(0.0), COUNT), own.values, atol=1e-12)


def test_far_shifts_stay_finite():
    """ReLU far to the left is nothing, and far to the right the identity."""
    relu = tt.activation("relu")
    for shift, wanted in ((-40.0, [0.0, 0.0, 0.0]), (40.0, [40.0, 1.0, 0.0])):
        np.testing.assert_allclose(coefficients(relu, jnp.asarray(shift), 3), wanted, atol=1e-300)
