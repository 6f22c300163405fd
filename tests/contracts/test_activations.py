"""What every activation must do: derivatives, Hermite coefficients, kernels, precision."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle.quadrature import expectation
from tables import ACTIVATIONS, family, known_activations, members

from tutelage.oracle.kernels import SumKernel, kernel, layer_kernel
from tutelage.oracle.kernels.base import AbstractKernel
from tutelage.oracle.kernels.edges import EdgeKernel
from tutelage.oracle.kernels.means import MeanKernel
from tutelage.oracle.kernels.offset import Offset
from tutelage.oracle.kernels.series import SeriesKernel
from tutelage.problem.assorted import layer_units
from tutelage.problem.atoms import Atom

pytestmark = pytest.mark.usefixtures("quickly_compiled")
EVERY = pytest.mark.parametrize("name", ACTIVATIONS)
ROW = np.array([0.4, -0.5, 0.3])
PLACES = {
    "generic": np.array([0.2, 0.3, 0.5]),
    "aligned": 1.3 * ROW,
    "opposite": -0.7 * ROW,
    "orthogonal": np.array([0.5, 0.4, 0.0]),
    "zero": np.zeros(3),
}
LEFT, RIGHT = np.stack([ROW, np.zeros(3)]), np.stack(list(PLACES.values()))


def test_every_activation_is_in_the_table():
    assert known_activations() == {family(name) for name in ACTIVATIONS}


def test_every_atom_and_every_kernel_is_met():
    atoms = {type(atom) for activation in ACTIVATIONS.values() for atom in activation.atoms}
    pairs = [kernel(one, other) for one, other in itertools.product(ACTIVATIONS.values(), repeat=2)]
    kernels = {type(part) for pair in pairs for part in (pair, *getattr(pair, "parts", ()))}
    kernels.add(
        type(layer_kernel(layer_units(["relu", "erf"]), layer_units("linear")))
    )  # tests/oracle/test_assorted.py
    # Units that see a mean: tests/oracle/test_means.py.
    assert atoms | {Offset} == members(Atom)
    assert kernels | {MeanKernel, EdgeKernel} == members(AbstractKernel)


@EVERY
def test_derivatives_are_those_of_the_values(name):
    """Fourth-order differences, step 1e-3: their error is 3e-14 fifth derivatives and 1e-13 of the values."""
    activation, h = ACTIVATIONS[name], 1e-3
    z = np.linspace(-1.9, 1.9, 20)  # kinks, at 0 and at 0.4, are at least 0.1 away
    for order, fn in enumerate((activation, activation.derivative)):
        slope = (activation.derivative, activation.second_derivative)[order](z)
        far, near = fn(z - 2 * h) - fn(z + 2 * h), fn(z + h) - fn(z - h)
        # The size of the highest derivative of a Hermite polynomial goes with its factorial.
        scale = 1 + np.abs(np.asarray(slope)).max()
        np.testing.assert_allclose(slope, (8 * near + far) / (12 * h), atol=1e-8 * scale)


def rule(kinks, scale):
    """Nodes and weights of `E[f(z)]`, in panels of a half that end where `scale z` is at a kink."""
    edges = np.unique(np.concatenate([np.linspace(-13, 13, 53), np.asarray(kinks, float) / scale]))
    points, weights = np.polynomial.legendre.leggauss(20)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    z = (middle[:, None] + half[:, None] * points).ravel()
    return z, (half[:, None] * weights).ravel() * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


@EVERY
def test_the_hermite_series_is_that_of_the_values(name):
    """Its coefficients are projections of the values, and what a part of the series leaves is what Parseval says."""
    activation, count, scale = ACTIVATIONS[name], 16, 1.7
    found = activation.hermite(count, scale)
    z, weight = rule(activation.kinks, scale)
    basis = np.polynomial.hermite_e.hermevander(z, count - 1) / np.sqrt([math.factorial(k) for k in range(count)])
    value = np.asarray(activation(scale * z))
    size = weight @ value**2
    # Both are sums of 1e3 terms, each good to rounding; those of a polynomial of degree 12 are 1e3 times its size.
    slack = found.error + 1e-12 * math.sqrt(size)
    np.testing.assert_allclose(found.values, (weight * value) @ basis, atol=slack)
    left = weight @ (value - basis @ np.asarray(found.values)) ** 2
    assert left == pytest.approx(size - float(jnp.sum(found.values**2)), abs=20 * slack * (1 + math.sqrt(size)))


@EVERY
def test_the_kernel_is_the_expectation_everywhere(name):
    """`E[s(a.x) s(b.x)]`, against integration in the plane of two rows, which may also be parallel or zero."""
    activation = ACTIVATIONS[name]
    k = kernel(activation, activation)
    expected = np.array([[expectation(activation, activation, a, b).value for b in RIGHT] for a in LEFT])
    value, left_out = jax.jit(lambda a, b: (k.value(a, b), error(k, a, b)))(LEFT, RIGHT)
    # Both routes are good to a few hundred roundings of the largest values; a series says what it leaves out. Kinks
    # away from 0 are seen by the radii of the integration and not by its angles, which costs it some digits.
    slack = 1e-13 + 1e-12 * np.abs(expected).max() + np.asarray(left_out) + 1e-9 * any(activation.kinks)
    assert np.all(np.abs(value - expected) <= slack), dict(zip(PLACES, (value - expected).T, strict=True))


def error(k, a, b):
    return k.error(a, b) if isinstance(k, SeriesKernel | SumKernel) else jnp.zeros(())


@EVERY
def test_values_have_the_precision_of_their_arguments(name):
    """Whole numbers are taken as double precision."""
    activation = ACTIVATIONS[name]
    z = jnp.linspace(-1.9, 1.9, 20)
    for fn in (activation, activation.derivative, activation.second_derivative):
        double, single = fn(z), fn(z.astype(jnp.float32))
        assert (double.dtype, single.dtype, fn(1).dtype) == (jnp.float64, jnp.float32, jnp.float64)
        # Alternating sums of a Hermite polynomial lose digits that grow with its order.
        scale = 1 + np.abs(np.asarray(double)).max()
        np.testing.assert_allclose(single, double, atol=3e-5 * scale)


@EVERY
def test_equal_activations_are_one_to_the_compiler(name):
    activation = ACTIVATIONS[name]
    again = type(activation)(activation.name, activation.atoms, activation.kinks, activation.direct)
    assert activation == again and hash(activation) == hash(again)
