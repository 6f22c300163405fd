"""Moments of gated units: against quadrature in four dimensions, at the edges, under Price's rules; known numbers."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.oracle.kernels import gated
from tutelage.oracle.kernels.gated import GatedKernel, Moments, Overlaps, Units, overlaps, series
from tutelage.problem.activations import activation, from_callable, sigmoid


def wave(z):
    """Neither even nor odd, like no gate that has a name."""
    return 0.3 + jnp.sin(z + 0.4)


# What the gates are, from other sources than the package.
GATES = {
    "sigmoid": lambda z: 1 / (1 + jnp.exp(-z)),
    "probit": jax.scipy.stats.norm.cdf,
    "erf": jax.scipy.special.erf,
    "tanh": jnp.tanh,
    "softplus": lambda z: jnp.logaddexp(z, 0.0),
    "constant": jnp.ones_like,
    "wave": wave,
}


def gate(name):
    return from_callable(wave) if name == "wave" else activation(name)


# The trapezoid rule for an analytic function times a normal density: the poles of tanh, at pi/2 from the real axis,
# cost exp(-2 pi (pi/2) / STEP) = 7e-18; the normal density ends at 1e-26.
STEP = 0.25
GRID = np.arange(-11, 11 + STEP / 2, STEP)
NODES, MASS = np.polynomial.hermite_e.hermegauss(8)  # exact for polynomials up to degree 15, and 10 is needed


@functools.cache
def tabulated(name, order):
    """The derivative of a gate of some order, compiled."""
    function = GATES[name]
    for _ in range(order):
        function = jax.grad(function)
    return jax.jit(jax.vmap(function))


def hermite(degree, z):
    return np.polynomial.hermite_e.hermeval(z, np.eye(degree + 1)[degree])


def quadrature(names, orders, degrees, left, right):
    """`K_ab^{PQ}` for one pair of units `(v, w)`: z1 and z2 on a grid, z3 and z4 at Gauss-Hermite nodes."""
    lower = np.linalg.qr(np.stack([left[0], right[0], left[1], right[1]]).T, mode="r").T
    lower = np.pad(lower, ((0, 0), (0, 4 - lower.shape[1])))
    x, y = (part.ravel() for part in np.meshgrid(GRID, GRID))
    density = STEP**2 / (2 * math.pi) * np.exp(-(x**2 + y**2) / 2)
    kept = density > 1e-26
    x, y, density = x[kept], y[kept], density[kept]
    inside = lower[:, :1] * x + lower[:, 1:2] * y
    first, second = (np.asarray(tabulated(*what)(z)) for *what, z in zip(names, orders, inside[:2], strict=True))
    s, t = (part.ravel() for part in np.meshgrid(NODES, NODES))
    outside = lower[2:, 2:3] * s + lower[2:, 3:] * t
    third, fourth = (hermite(p, inside[2 + i][:, None] + outside[i]) for i, p in enumerate(degrees))
    weight = np.outer(MASS, MASS).ravel() / (2 * math.pi)
    return float((density * first * second) @ ((third * fourth) @ weight))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def random_units(seed, count, dim=5):
    rows = unit(np.random.default_rng(seed).standard_normal((2, count, dim)))
    return Units(jnp.asarray(rows[0]), jnp.asarray(rows[1]))


def by_quadrature(names, orders, degrees, left, right):
    return np.array(
        [
            [quadrature(names, orders, degrees, one, two) for two in zip(*map(np.asarray, right), strict=True)]
            for one in zip(*map(np.asarray, left), strict=True)
        ]
    )


def size(degrees):
    """The rms of the two Hermite polynomials, of which the moments are inner products (gates are of order one)."""
    return math.sqrt(math.prod(map(math.factorial, degrees)))


LEFT, RIGHT = random_units(0, 2), random_units(1, 1)
CASES = [("sigmoid", "sigmoid", p, p) for p in range(6)] + [
    ("probit", "probit", 3, 3), ("erf", "erf", 5, 5), ("tanh", "tanh", 4, 4), ("softplus", "softplus", 3, 3),
    ("constant", "constant", 2, 2), ("wave", "wave", 5, 5), ("sigmoid", "sigmoid", 3, 5), ("wave", "wave", 2, 3),
    ("sigmoid", "wave", 3, 4), ("constant", "tanh", 3, 1), ("probit", "softplus", 0, 2), ("erf", "sigmoid", 5, 0),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two", "p", "q"), CASES)
def test_against_quadrature(one, two, p, q):
    found = GatedKernel((gate(one), gate(two)), (p, q)).value(LEFT, RIGHT)
    right = by_quadrature((one, two), (0, 0), (p, q), LEFT, RIGHT)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-12 * size((p, q)))


@pytest.mark.parametrize("name", ["sigmoid", "wave"])
def test_all_moments_of_loss_and_gradient_against_quadrature(name):
    """The six kernels of the paper (its lambdas), for He3."""
    moment = Moments((gate(name), gate(name)), (3, 3), overlaps(LEFT, RIGHT))
    for orders, degrees in [((0, 0), (3, 3)), ((1, 1), (3, 3)), ((1, 0), (2, 3)), ((0, 1), (2, 3)), ((1, 0), (3, 2))]:
        right = by_quadrature((name, name), orders, degrees, LEFT, RIGHT)
        np.testing.assert_allclose(moment(*orders, *degrees), right, rtol=0, atol=1e-12 * size(degrees))


def edge(sign_v, sign_w, own):
    """A unit with `v.w = own`, and one with plus or minus the same vectors."""
    v, w = np.eye(4)[0], np.array([own, math.sqrt(1 - own**2), 0, 0])
    return Units(jnp.asarray([v]), jnp.asarray([w])), Units(jnp.asarray([sign_v * v]), jnp.asarray([sign_w * w]))


@pytest.mark.parametrize("own", [0.0, 0.3, 1.0, -1.0])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_units_that_are_equal_or_opposite(signs, own):
    left, right = edge(*signs, own)
    for name, degree in (("sigmoid", 3), ("wave", 4)):
        found = GatedKernel((gate(name), gate(name)), (degree, degree)).value(left, right)
        expected = by_quadrature((name, name), (0, 0), (degree, degree), left, right)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * size((degree, degree)))


def test_orthogonal_units_and_the_weight_of_one():
    """Without overlaps `K = 0`; with itself a unit has `p! E[gate^2]`, and the routers alone make `G_00(0) = c_0^2`."""
    axes = jnp.eye(6)
    kernel = GatedKernel((sigmoid, sigmoid), (3, 3))
    one, two = Units(axes[:1], axes[1:2]), Units(axes[2:3], axes[3:4])
    assert kernel.value(one, two)[0, 0] == 0
    weight = tt.Mixture(width=1).hidden.weight
    np.testing.assert_allclose(kernel.value(one, one)[0, 0], weight, rtol=1e-14)
    np.testing.assert_allclose(kernel.value(one, Units(axes[2:3], axes[1:2]))[0, 0], 6 / 4, rtol=1e-14)


# How a moment changes with an overlap (Price): factor, orders and degrees of the moment it becomes.
PRICE = {
    "routers": lambda p, q: (1, (1, 1), (p, q)),
    "experts": lambda p, q: (p * q, (0, 0), (p - 1, q - 1)),
    "own_left": lambda p, q: (p, (1, 0), (p - 1, q)),
    "cross_left": lambda p, q: (q, (1, 0), (p, q - 1)),
    "cross_right": lambda p, q: (p, (0, 1), (p - 1, q)),
    "own_right": lambda p, q: (q, (0, 1), (p, q - 1)),
}


@pytest.mark.parametrize("rho", [-1.0, -0.4, 0.0, 1.0])
@pytest.mark.parametrize("field", PRICE)
def test_price(field, rho):
    """The formula is a polynomial in the overlaps, whose derivatives hold for any numbers, also those of no vectors."""
    values = dict(zip(Overlaps._fields, jnp.array([rho, -0.7, 0.3, 0.5, -0.2, 0.6])[:, None, None], strict=True))
    factor, orders, lower = PRICE[field](3, 3)
    gates = (gate("wave"), gate("wave"))
    above = Moments(gates, (3, 3), Overlaps(**values))(*orders, *lower)
    below = lambda x: Moments(gates, (3, 3), Overlaps(**values | {field: x}), 6)(0, 0, 3, 3)  # noqa: E731
    slope = jax.jvp(below, (values[field],), (jnp.ones((1, 1)),))[1]
    np.testing.assert_allclose(slope, factor * above, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degrees", [(3, 3), (0, 2), (2, 0), (0, 0), (1, 4)])
@pytest.mark.parametrize("right", [RIGHT, Units(LEFT.router[:1], LEFT.expert[:1])], ids=["another", "itself"])
def test_pull_is_the_derivative(degrees, right):
    """Against differences of order four of the value in the left vectors, with the right ones at rest.

    With step 2e-3 they are off by 2e-11/30 times the fifth derivative and by rounding over the step, 1e-13.
    """
    kernel = GatedKernel((sigmoid, sigmoid), degrees)
    c = jnp.array([[1.3], [-0.4]])
    found = np.concatenate(kernel.pull(c, LEFT, right))
    start, step = np.concatenate(LEFT), 2e-3
    slope = np.zeros_like(start)
    for place in np.ndindex(*start.shape):
        for factor, steps in ((8, 1), (-8, -1), (-1, 2), (1, -2)):
            moved = start.copy()
            moved[place] += steps * step
            value = kernel.value(Units(*jnp.split(jnp.asarray(moved), 2)), right)
            slope[place] += factor * float(jnp.sum(c * value)) / (12 * step)
    np.testing.assert_allclose(found, slope, rtol=0, atol=1e-9 * size(degrees))


NORMALISED = {  # c_k / sqrt(k!) of the logistic function, from 40 digits
    0: 0.5, 1: 0.20662096414190704, 2: 0.0, 3: -0.025473257907323417, 5: 0.0058770606000134374,
    7: -0.0017266562875681669, 9: 5.877891678784451e-4, 11: -2.2198956078952706e-4, 15: -3.9445557461863922e-5,
    21: 4.2718903398439595e-6, 31: -1.9145090972850248e-7, 41: 1.3640786545828255e-8, 61: 1.5818062537374185e-10,
    101: 1.3065657163981419e-13,
}  # fmt: skip


def test_hermite_coefficients_of_the_sigmoid():
    found = gated._hermite(sigmoid)
    for k, value in NORMALISED.items():
        assert abs(found[k] - value) <= 2e-15 * abs(value) + 1e-17, k


def function(a, b):
    """`G_ab` of the sigmoid, as a function of rho."""
    table = series(sigmoid, sigmoid, 8, (a + b) % 2)
    return lambda rho: np.asarray(table(jnp.atleast_2d(jnp.asarray(rho)))[table.places[a, b]])[0]


def test_constants_of_the_sigmoid():
    """E[pi^2], E[pi'^2], E[pi pi''], G_00 at -1 and 0, and Assumption 3: G_13 is even and negative."""
    np.testing.assert_allclose(function(0, 0)([1.0, 0.0]), [0.293379035858093, 0.25], rtol=0, atol=1e-15)
    np.testing.assert_allclose(function(0, 0)([-1.0]), 0.20662096414190704, rtol=0, atol=1e-15)  # = E[pi']
    np.testing.assert_allclose(function(1, 1)([1.0]), 0.0448362413501944, rtol=0, atol=1e-15)
    np.testing.assert_allclose(function(0, 2)([1.0]), -0.0136379993705648, rtol=0, atol=1e-15)
    slope = function(1, 3)(np.linspace(-1, 1, 2001))
    np.testing.assert_allclose([slope.max(), slope.min()], [-0.0128924216747, -0.0153060711305], rtol=0, atol=1e-13)
    np.testing.assert_allclose(slope, slope[::-1], rtol=1e-13)


@pytest.mark.parametrize(
    ("total", "counts"), [(0, (26, 34)), (2, (32, 41)), (4, (38, 49)), (6, (46, 59)), (8, (56, 71))]
)
def test_where_the_series_can_be_cut(total, counts):
    """How many terms leave a rest of 1e-12, or 1e-14, at |rho| = 1, for the worst orders of each sum."""
    table = np.abs(gated._coefficients(sigmoid, sigmoid, [(a, total - a) for a in range(total + 1)]))
    rest = np.cumsum(table[:, ::-1], axis=1)[:, ::-1].max(0)
    assert tuple(int(np.flatnonzero(rest > tail).max()) + 1 for tail in (1e-12, 1e-14)) == counts


@pytest.mark.parametrize(("name", "most"), [("sigmoid", 110), ("probit", 70), ("tanh", 400), ("constant", 2)])
def test_number_of_terms(name, most):
    """Enough for rounding at |rho| = 1, not many more: what is left out is below 1e-16 of the largest value."""
    found = series(activation(name), activation(name), 8, 0)
    count = found.even.shape[1] + found.odd.shape[1]
    assert count <= most
    table = np.abs(gated._coefficients(activation(name), activation(name), list(found.places)))
    assert np.all(table[:, count:].sum(1) <= 1e-16 * table.sum(1))


def test_a_gate_that_is_too_steep_is_refused():
    """The series of sigmoid(5 z) is not done after 600 terms; cut there, He3 moments would be off by 1e-3."""
    steep = from_callable(lambda z: jax.nn.sigmoid(5 * z), name="steep")
    with pytest.raises(BadInput, match="steep is too steep for its series of 600 terms"):
        GatedKernel((steep, steep), (3, 3)).value(LEFT, RIGHT)
