"""Correlation, force and router field against quadrature over the inputs themselves, and differences on the sphere.

The quadrature knows nothing of Hermite coefficients: on coordinates whose first axis is the unit's own weight vector
the unit's argument is the first coordinate alone. There Gauss-Legendre on panels that end at the kink is used, and on
the other coordinates, in which the label is a polynomial of low degree, Gauss-Hermite, which is exact for it.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_hermitenorm

import tutelage as tt
from tutelage.problem.clusters import antipodal, orthogonal

LOCAL, SHARED, PART = [{0: 0.2, 1: 0.5, 3: 1.0}, {2: -1.0, 4: 0.7}], {2: 1.0, 3: -0.6}, (0.8, -1.1)
KINDS = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "abs": (np.abs, np.sign),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    "he3": (lambda z: z**3 - 3 * z, lambda z: 3 * z**2 - 3),
}
BIAS, OUTGOING = 0.35, -1.5


def skew(radius=1.4, weights=(0.3, 0.7)):
    """Three dimensions, five rows: teachers and means are not orthogonal to each other."""
    draw = np.random.default_rng(7)
    inputs = tt.Clusters(3, draw.normal(size=(2, 3)), radius, weights)
    return tt.Clustered(inputs, tt.Tasks(LOCAL, SHARED, PART, draw.normal(size=(3, 3))))


def one_cluster():
    return tt.Clustered(tt.Clusters(3, [[0.6, 0.0, 0.8]], 2.0), tt.Tasks([{1: 1.0, 3: 0.5}], {2: 1.0}, (0.7,)))


def unit_of(kind, count=1):
    return tt.Units(jnp.full(count, OUTGOING), jnp.full(count, BIAS), kind=tt.activation(kind))


def basis_of(w):
    """An orthogonal matrix with the first column w."""
    full = np.linalg.qr(np.column_stack([w, np.eye(len(w))]))[0]
    return full * np.where(np.arange(len(w)) == 0, np.sign(full[:, 0] @ w), 1.0)


def polynomial(orders, z):
    return sum(value * eval_hermitenorm(i, z) / math.sqrt(math.factorial(i)) for i, value in orders.items())


def nodes(dim, kink):
    """Points and weights for `E f(z)`, z standard normal in `dim` dimensions; the first coordinate may have a kink."""
    panels = np.unique(np.append(np.linspace(-12, 12, 25), np.clip(kink, -12, 12)))
    points, plain = np.polynomial.legendre.leggauss(16)
    middle, half = (panels[1:] + panels[:-1]) / 2, (panels[1:] - panels[:-1]) / 2
    first = (middle[:, None] + half[:, None] * points).ravel()
    first_weight = (half[:, None] * plain).ravel() * np.exp(-(first**2) / 2) / math.sqrt(2 * math.pi)
    # Five nodes are exact up to degree 9; labels times an input have degree 5.
    rest, rest_weight = np.polynomial.hermite_e.hermegauss(5)
    rest_weight = rest_weight / math.sqrt(2 * math.pi)
    others = np.array(list(itertools.product(rest, repeat=dim - 1))).reshape(-1, dim - 1)
    weight = np.array([math.prod(part) for part in itertools.product(rest_weight, repeat=dim - 1)])
    z = np.column_stack([np.repeat(first, len(others)), np.tile(others, (len(first), 1))])
    return z, np.outer(first_weight, weight).ravel()


def integrated(problem, local, shared, w, kind):
    """`E[y a s(u)]`, `E[y a s'(u) x]` and `E[y a s(u) x]`."""
    (value, slope), inputs, teacher = KINDS[kind], problem.inputs, problem.teacher
    dim, rows, basis = inputs.dim, np.asarray(problem.frame), basis_of(w)
    rows = np.pad(rows, ((0, 0), (0, dim - rows.shape[1])))
    count, total = inputs.count, [0.0, np.zeros(dim), np.zeros(dim)]
    for c in range(count):
        centre = inputs.radius * rows[count + 1 + c]
        z, weight = nodes(dim, -BIAS - centre @ w)
        x = z @ basis.T + centre
        y = polynomial(local[c], x @ rows[c]) + teacher.interference[c] * polynomial(shared, x @ rows[count])
        u = z[:, 0] + centre @ w + BIAS
        mass = OUTGOING * inputs.weights[c] * weight * y
        total[0] += np.sum(mass * value(u))
        total[1] += (mass * slope(u)) @ x
        total[2] += (mass * value(u)) @ x
    return total


def compared(problem, local, shared, w, kind):
    """Everything the oracle says of one unit, against the integrals."""
    rows = np.pad(np.asarray(problem.frame), ((0, 0), (0, problem.inputs.dim - problem.frame.shape[1])))
    oracle, units, overlaps = tt.ClusterOracle(problem), unit_of(kind), jnp.asarray(rows @ w)[None]
    found, turned = oracle.field(units, overlaps), oracle.turning(units, overlaps)
    correlation, turning, routing = integrated(problem, local, shared, w, kind)
    # Sums of terms as large as the integrals of |y| s |x|, up to 1e3 here, right to 1e-14 of it.
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(found.correlation[0], correlation, **close)
    across = np.eye(len(w)) - np.outer(w, w)
    np.testing.assert_allclose(across @ (np.asarray(found.force[0]) @ rows), across @ turning, **close)
    router = np.asarray(found.router[0])
    np.testing.assert_allclose(router[:-1] @ rows + router[-1] * w, routing, **close)
    np.testing.assert_allclose(turned[0], rows @ across @ turning, **close)


def directions(problem, seed=3):
    """A random unit vector, and those along, against and across the first task."""
    draw = np.random.default_rng(seed).normal(size=problem.inputs.dim)
    task = np.pad(problem.frame[0], (0, problem.inputs.dim - problem.frame.shape[1]))
    across = draw - task * (task @ draw)
    return {"random": draw / np.linalg.norm(draw), "aligned": task, "opposite": -task,
            "across": across / np.linalg.norm(across)}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["random", "aligned", "opposite", "across"])
def test_tasks_and_means_that_are_not_orthogonal(kind, where):
    problem = skew()
    gram = problem.frame @ problem.frame.T
    assert np.min(np.abs(gram)) > 1e-3 and problem.inputs.weights[0] != problem.inputs.weights[1]
    compared(problem, LOCAL, SHARED, directions(problem)[where], kind)


@pytest.mark.parametrize("kind", ["relu", "tanh"])
def test_zero_radius(kind):
    problem = skew(radius=0.0)
    compared(problem, LOCAL, SHARED, directions(problem)["random"], kind)


@pytest.mark.parametrize("where", ["random", "aligned"])
def test_one_cluster(where):
    problem = one_cluster()
    compared(problem, [{1: 1.0, 3: 0.5}], {2: 1.0}, directions(problem)[where], "relu")


@pytest.mark.parametrize("where", ["random", "aligned", "opposite", "across"])
def test_antipodal_means_in_as_many_dimensions_as_the_frame_has(where):
    problem = tt.Clustered(antipodal(4, 1.5), tt.Tasks(LOCAL, SHARED, PART))
    compared(problem, LOCAL, SHARED, directions(problem)[where], "relu")


def test_orthogonal_frame_in_its_own_dimension_and_along_a_mean():
    problem = tt.Clustered(orthogonal(5, 1.2, 2, (0.4, 0.6)), tt.Tasks(LOCAL, SHARED, PART))
    for w in (directions(problem)["random"], np.eye(5)[3]):
        compared(problem, LOCAL, SHARED, w, "relu")


def test_random_polynomials_by_their_cubic():
    """A random polynomial of one order is He_3 over sqrt(6)."""
    problem, signs = skew(), jnp.ones((1, 1))
    overlaps = jnp.asarray(problem.frame @ directions(problem)["random"])[None]
    drawn = tt.Units(jnp.full(1, OUTGOING), jnp.full(1, BIAS), signs, lowest=3)
    oracle = tt.ClusterOracle(problem)
    one, other = oracle.field(drawn, overlaps), oracle.field(unit_of("he3"), overlaps)
    for found, wanted in zip(one, other, strict=True):
        np.testing.assert_allclose(math.sqrt(6) * found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["relu", "tanh"])
def test_force_is_the_slope_of_the_correlation_on_the_sphere(kind):
    problem = skew()
    oracle, units = tt.ClusterOracle(problem), unit_of(kind)
    w = directions(problem)["random"]
    force = np.asarray(oracle.field(units, jnp.asarray(problem.frame @ w)[None]).force[0]) @ problem.frame
    h = 1e-3
    for tangent in basis_of(w)[:, 1:].T:
        turned = [
            float(oracle.field(units, jnp.asarray(problem.frame @ (math.cos(t) * w + math.sin(t) * tangent))[None])
                  .correlation[0])
            for t in (-2 * h, -h, h, 2 * h)
        ]  # fmt: skip
        slope = (turned[0] - 8 * turned[1] + 8 * turned[2] - turned[3]) / (12 * h)
        # h^4/30 of the fifth derivative, below 1e4, and rounding 1e-15/h.
        assert force @ tangent == pytest.approx(slope, abs=1e-9)


def test_climbing_raises_the_correlation_at_the_square_of_the_gradient():
    """The change of overlaps is that of the unit vector: along it the correlation grows as the gradient squared."""
    problem = skew()
    oracle, units, w = tt.ClusterOracle(problem), unit_of("relu"), directions(problem)["random"]
    overlaps = jnp.asarray(problem.frame @ w)[None]
    force = np.asarray(oracle.field(units, overlaps).force[0]) @ problem.frame
    across = force - w * (w @ force)
    step = oracle.turning(units, overlaps)
    np.testing.assert_allclose(step[0], problem.frame @ across, rtol=1e-12, atol=1e-13)
    _, grown = jax.jvp(lambda o: oracle.field(units, o).correlation, (overlaps,), (step,))
    assert float(grown[0]) == pytest.approx(across @ across, rel=1e-11)


def test_other_probabilities_of_the_clusters():
    """A field is linear in them; an expert that sees only one cluster has that cluster's."""
    problem = skew()
    oracle, units = tt.ClusterOracle(problem), unit_of("relu")
    overlaps = jnp.asarray(problem.frame @ directions(problem)["random"])[None]
    parts = [oracle.served(jnp.eye(2)[c]).field(units, overlaps) for c in range(2)]
    for whole, one, two in zip(oracle.field(units, overlaps), *parts, strict=True):
        np.testing.assert_allclose(whole, 0.3 * one + 0.7 * two, rtol=1e-13, atol=1e-14)
    assert np.all(parts[0].force[0, [1, 4]] == 0) and np.all(parts[1].force[0, [0, 3]] == 0)


def test_units_in_batches():
    """A leading axis of experts, and each unit by itself."""
    problem = skew()
    draw = np.random.default_rng(5)
    units = tt.Experts(3, 4, (1, 3), bias=0.5).units(draw)
    w = draw.normal(size=(3, 4, 3))
    overlaps = jnp.asarray(w / np.linalg.norm(w, axis=-1, keepdims=True) @ problem.frame.T)
    oracle = tt.ClusterOracle(problem)
    field = oracle.field(units, overlaps)
    assert field.correlation.shape == (3, 4) and field.force.shape == (3, 4, 5) and field.router.shape == (3, 4, 6)
    assert oracle.coefficients(units, overlaps, 6).shape == (3, 4, 2, 6)
    alone = tt.Units(units.outgoing[1, 2:3], units.bias[1, 2:3], units.signs[1, 2:3], lowest=1)
    for whole, one in zip(field, oracle.field(alone, overlaps[1, 2:3]), strict=True):
        np.testing.assert_allclose(whole[1, 2], one[0], rtol=1e-12, atol=1e-13)
