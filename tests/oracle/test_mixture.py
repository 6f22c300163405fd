"""The loss of a mixture and its derivatives: sampling, differences, the spectrum at the teacher, exact degeneracies.

Almost all tests share one shape (two students, two teachers, eight coordinates), so that little is compiled.
"""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from scipy.integrate import solve_ivp

import tutelage as tt
from tutelage.oracle.mixture import EmpiricalMixture, units
from tutelage.problem.frame import reduce_rows
from tutelage.problem.hidden import GatedHidden
from tutelage.problem.trees import flatten, unflatten

QUANTUM = 0.880137107574279  # 3 E[sigmoid^2]: what a unit without overlaps costs
AXES = np.eye(8)
SIGMOID = tt.Mixture(width=1).hidden
PROBIT = tt.Mixture("probit", degree=2, width=1).hidden


def weights(first, second=None):
    first = jnp.asarray(first, float)
    return tt.Weights(first, jnp.ones((len(first) // 2, 1)) if second is None else jnp.asarray(second, float))


def orthonormal(student=SIGMOID, teacher=SIGMOID):
    return tt.MixtureOracle(student, teacher, weights(AXES[:4]))


def crooked():
    """Another gate and another degree in the teacher, whose vectors are not orthogonal; two outputs."""
    first = np.random.default_rng(5).standard_normal((4, 8))
    return tt.MixtureOracle(SIGMOID, PROBIT, weights(first, [[1.0, -0.5], [0.7, 0.4]]))


ORACLES = {"one kind": orthonormal(), "two kinds, two outputs": crooked()}


def somewhere(oracle, seed=1):
    """Vectors of norms from 0.5 to 3, in no special position."""
    draw = np.random.default_rng(seed)
    first = draw.standard_normal((4, 8)) * np.array([0.2, 0.5, 1.0, 0.3])[:, None]
    return weights(first, draw.standard_normal((2, oracle.target.second.shape[1])))


@eqx.filter_jit
def loss_and_slope(oracle, w):
    return jax.value_and_grad(oracle.loss)(w)


@eqx.filter_jit
def gradient(oracle, w):
    return oracle.gradient(w)


@eqx.filter_jit
def hessian(oracle, w):
    return oracle.hessian(w)


def loss(oracle, w):
    return float(loss_and_slope(oracle, w)[0])


def unit(first, x, name, degree):
    """The units' values in NumPy."""
    gate = {"sigmoid": special.expit, "probit": stats.norm.cdf}[name]
    v, w = np.split(first / np.linalg.norm(first, axis=1, keepdims=True), 2)
    return gate(x @ v.T) * np.polynomial.hermite_e.hermeval(x @ w.T, np.eye(degree + 1)[degree])


@pytest.mark.parametrize("name", ORACLES)
def test_loss_against_sampling(name):
    """A million samples: the mean of a heavy-tailed variable (degree six) with its own error; 5 of them is 6e-7."""
    oracle = ORACLES[name]
    w = somewhere(oracle)
    x = np.random.default_rng(2).standard_normal((1_000_000, 8))
    teacher = unit(np.asarray(oracle.target.first), x, oracle.teacher.gate.name, oracle.teacher.degree)
    out = unit(np.asarray(w.first), x, "sigmoid", 3) @ np.asarray(w.second) - teacher @ np.asarray(oracle.target.second)
    draws = 0.5 * np.sum(out**2, axis=1)
    assert abs(loss(oracle, w) - draws.mean()) < 5 * draws.std() / 1000
    assert draws.std() / 1000 < 0.02 * draws.mean()  # so that 10 % would be seen


@pytest.mark.parametrize("name", ORACLES)
def test_gradient(name):
    """Against autodiff of the loss (rounding only), and against differences of order four in all parameters.

    Vectors are not of unit length: each gradient is orthogonal to its vector, and goes with one over its length
    (Eq. 10, where the printed norm of an expert's gradient is that of its router). Differences are off by
    (2e-3)^4 / 30 = 5e-13 fifth derivatives, of up to 1e4 for vectors of length 0.5.
    """
    oracle = ORACLES[name]
    w = somewhere(oracle)
    found, slope = gradient(oracle, w), loss_and_slope(oracle, w)[1]
    np.testing.assert_allclose(flatten(found), flatten(slope), rtol=0, atol=1e-12)
    y, step = np.asarray(flatten(w)), 1e-3
    moved = lambda i, n: loss(oracle, unflatten(jnp.asarray(y + n * step * np.eye(len(y))[i]), w))  # noqa: E731
    weighted = lambda i: sum(f * moved(i, n) for f, n in ((8, 1), (-8, -1), (-1, 2), (1, -2)))  # noqa: E731
    differences = [weighted(i) / (12 * step) for i in range(len(y))]
    np.testing.assert_allclose(flatten(found), differences, rtol=0, atol=5e-9)
    np.testing.assert_allclose(np.sum(found.first * w.first, axis=1), 0, atol=1e-13)
    lengths = jnp.array([2.0, 0.5, 3.0, 0.1])[:, None]
    other = gradient(oracle, tt.Weights(lengths * w.first, w.second))
    np.testing.assert_allclose(other.first * lengths, found.first, rtol=0, atol=1e-12)


def test_hessian_against_differences_of_the_gradient():
    oracle = ORACLES["two kinds, two outputs"]
    w = somewhere(oracle)
    y, step = np.asarray(flatten(w)), 1e-3
    at = lambda z: np.asarray(flatten(gradient(oracle, unflatten(jnp.asarray(z), w))))  # noqa: E731
    rows = []
    for axis in step * np.eye(len(y)):
        near, far = (at(y + n * axis) - at(y - n * axis) for n in (1, 2))
        rows.append((8 * near - far) / (12 * step))
    found = hessian(oracle, w)
    np.testing.assert_allclose(found, np.array(rows), rtol=0, atol=1e-7)  # 5e-13 of a sixth derivative of up to 1e5
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-11)


def test_spectrum_at_the_teacher():
    """Per expert: 0 twice (norms), C_S1 and 9 C_S0 each dim - 2 times, and a block of two (Theorem 4, corrected)."""
    square, slope, both = 0.293379035858093, 0.0448362413501944, 0.0311982419796296
    block = [[42 * slope, 18 * both], [18 * both, 18 * square + 36 * both]]
    one = [0.0, 0.0, *np.linalg.eigvalsh(block), *6 * [6 * slope], *6 * [18 * square]]
    found = np.asarray(hessian(orthonormal(), weights(AXES[:4])))[2:, 2:]  # without the output weights
    np.testing.assert_allclose(np.linalg.eigvalsh(found), np.sort(2 * one), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(block), [1.814409729, 6.472671772], atol=1e-9)


def test_the_loss_is_zero_at_the_teacher_with_any_norms_and_order():
    oracle = orthonormal()
    first = np.array([2.0, 0.3, 1.0, 5.0])[:, None] * AXES[[1, 0, 3, 2]]
    assert abs(loss(oracle, weights(first))) < 1e-14
    assert np.abs(flatten(gradient(oracle, weights(first)))).max() < 1e-13


def test_units_without_overlaps_cost_a_quantum_each():
    assert abs(loss(orthonormal(), weights(AXES[4:])) - 4 * QUANTUM) < 1e-13
    importance = tt.MixtureOracle(SIGMOID, SIGMOID, weights(AXES[:4], [[2.0], [-0.5]]))
    assert abs(loss(importance, weights(AXES[4:])) - (2 + 4 + 0.25) * QUANTUM) < 1e-13


def test_fewer_students_than_teachers():
    """One student at a teacher's place leaves the other teacher's quantum."""
    found = orthonormal().loss(weights(AXES[[0, 2]]))
    assert abs(float(found) - QUANTUM) < 1e-14


def test_equal_students_move_alike():
    oracle, w = orthonormal(), somewhere(orthonormal())
    twins = tt.Weights(w.first[jnp.array([0, 0, 2, 2])], jnp.ones((2, 1)))
    found = gradient(oracle, twins).first
    np.testing.assert_allclose(found[::2], found[1::2], rtol=0, atol=1e-15 * np.abs(found).max())


def test_an_odd_expert_and_its_output_may_change_sign():
    oracle, w = orthonormal(), somewhere(orthonormal())
    flipped = tt.Weights(w.first.at[2].multiply(-1), w.second.at[0].multiply(-1))
    assert abs(loss(oracle, flipped) - loss(oracle, w)) < 1e-14


def test_output_weights_have_an_exact_optimum():
    """The loss is quadratic in them: with `(students) a = (cross) a*` from `gram` their gradient vanishes."""
    oracle, w = crooked(), somewhere(crooked())
    gram = oracle.gram(w)
    best = jnp.linalg.solve(gram.students, gram.cross @ oracle.target.second)
    found = gradient(oracle, tt.Weights(w.first, best))
    np.testing.assert_allclose(found.second, 0, atol=1e-12)
    assert loss(oracle, tt.Weights(w.first, best)) < loss(oracle, w)


# Exact degeneracies, with eight students of which those with output weight 0 do not take part; one shape again.
def planar(angles, routers=None, second=None):
    """Students with experts at these angles in the plane of axes 1 and 2, all with router axis 0 unless given."""
    pad = 8 - len(angles)
    experts = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ np.eye(4)[1:3]
    routers = np.repeat(np.eye(4)[:1], len(angles), 0) if routers is None else np.asarray(routers, float)
    first = [np.pad(part, ((0, pad), (0, 0)), mode="edge") for part in (routers, experts)]
    return weights(np.concatenate(first), np.pad(np.ones(len(angles)), (0, pad))[:, None])


ALONE = tt.MixtureOracle(SIGMOID, SIGMOID, weights(np.eye(4)[:2], [[0.0]]))
ONE = tt.MixtureOracle(SIGMOID, SIGMOID, weights(np.eye(4)[:2]))


@pytest.mark.parametrize("corners", [2, 4, 5, 7])
def test_polygons_cancel(corners):
    """`sum_k He3(u_k.x) = 0` over the corners of a regular polygon, but for the triangle; a pair is the case of two."""
    polygon = planar(0.3 + 2 * np.pi * np.arange(corners) / corners)
    assert abs(loss(ALONE, polygon)) < 1e-13
    np.testing.assert_allclose(flatten(gradient(ALONE, polygon)), 0, atol=1e-13)


def test_triangles_do_not_cancel():
    assert loss(ALONE, planar(0.3 + 2 * np.pi * np.arange(3) / 3)) > 0.5


def test_four_students_can_be_one_teacher():
    """The other corners of a pentagon, with signs: at 36 and 108 degrees to both sides of the teacher's expert."""
    students = planar(np.deg2rad([36, -36, 108, -108]))
    assert abs(loss(ONE, students)) < 1e-13
    np.testing.assert_allclose(gradient(ONE, students).first, 0, atol=1e-13)


def test_an_annihilated_pair_adds_nothing():
    one = planar([0.4])
    three = planar([0.4, 1.1, 1.1 + np.pi])
    assert abs(loss(ONE, three) - loss(ONE, one)) < 1e-13
    np.testing.assert_allclose(gradient(ONE, three).first[0], gradient(ONE, one).first[0], atol=1e-13)


def test_opposite_routers_make_an_expert_without_a_gate():
    """`sigmoid(z) + sigmoid(-z) = 1`: with `(v, w)` and `(-v, w)` the loss does not depend on `v`."""
    draw = np.random.default_rng(8)
    found = []
    for _ in range(2):
        v = draw.standard_normal(4)
        found.append(loss(ONE, planar([0.7, 0.7], routers=[v, -v])))
        assert abs(loss(ALONE, planar([0.7, 0.7], routers=[v, -v])) - 3) < 1e-13  # 1/2 E[He3^2]
    assert abs(found[0] - found[1]) < 1e-13


def problem(dim, kind="iid", **options):
    teacher = tt.Mixture(routers=np.eye(2, 4), experts=np.eye(4)[2:])
    return tt.Problem(tt.Gaussian(dim), teacher, tt.Mixture(start=tt.MixtureRows(kind), width=2, **options))


@pytest.mark.parametrize("dim", [8, 9, 10**9, 10**12])
def test_starts_in_any_dimension(dim):
    """Overlaps are of size 1/sqrt(dim); at first order only those of a router with an expert's router pair enter."""
    start = problem(dim).begin(seed=3)
    first = np.asarray(start.student.first)
    assert first.shape == (4, 8)
    router, expert = units(jnp.asarray(first))
    np.testing.assert_allclose(np.sum(router * expert, axis=1), 0, atol=1e-15)
    if dim >= 10**9:
        oracle = orthonormal()
        assert abs(loss(oracle, weights(first)) - 4 * QUANTUM) < 100 / dim**1.5 + 1e-13  # leading term 6 c_0^2 I2^3
        np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, atol=6 / np.sqrt(dim))


def test_full_and_reduced_flow_are_one():
    """30 dimensions against the eight of the frame: all inner products agree along the flow, and norms stay.

    The solver is asked for 1e-10; an error early in the run grows with the flow itself, by less than e^10 up to t = 4.
    """
    start = problem(30).begin(seed=1, full=True)
    rows = np.concatenate([start.teacher.first, start.student.first])
    grams = []
    for coordinates in (rows, reduce_rows(rows)):
        oracle = tt.MixtureOracle(SIGMOID, SIGMOID, weights(coordinates[:4]))

        def velocity(t, y, oracle=oracle, shape=coordinates[4:].shape):
            return -np.asarray(gradient(oracle, weights(y.reshape(shape))).first).ravel()

        end = solve_ivp(velocity, (0, 4), coordinates[4:].ravel(), method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
        moved = np.concatenate([coordinates[:4], end.reshape(4, -1)])
        grams.append(moved @ moved.T)
    np.testing.assert_allclose(grams[0], grams[1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.diag(grams[0])[4:], np.sum(start.student.first**2, axis=1), rtol=1e-8)
    assert np.abs(grams[0] - rows @ rows.T).max() > 0.3  # it went somewhere


def test_a_data_set():
    """Loss and gradient on samples against NumPy and differences; Hessian against the gradient's derivative."""
    draw = np.random.default_rng(4)
    x, y = draw.standard_normal((50, 8)), draw.standard_normal((50, 2))
    oracle, w = EmpiricalMixture(SIGMOID, jnp.asarray(x), jnp.asarray(y)), somewhere(crooked())
    residual = unit(np.asarray(w.first), x, "sigmoid", 3) @ np.asarray(w.second) - y
    assert abs(float(oracle.loss(w)) - np.sum(residual**2) / 100) < 1e-13
    move = unflatten(jnp.asarray(draw.standard_normal(flatten(w).size)), w)
    shifted = [jax.tree.map(lambda a, b, s=s: a + s * b, w, move) for s in (1e-5, -1e-5)]
    slope = (oracle.loss(shifted[0]) - oracle.loss(shifted[1])) / 2e-5
    found = flatten(oracle.gradient(w))
    assert abs(float(slope - found @ flatten(move))) < 1e-6 * abs(float(slope))  # 1e-10 of a third derivative
    second = (flatten(oracle.gradient(shifted[0])) - flatten(oracle.gradient(shifted[1]))) / 2e-5
    np.testing.assert_allclose(oracle.hessian(w) @ flatten(move), second, rtol=0, atol=1e-6 * np.abs(second).max())


@pytest.mark.parametrize("hidden", [SIGMOID, PROBIT, GatedHidden(SIGMOID.gate, 0)], ids=lambda h: f"he{h.degree}")
def test_hidden_units_and_their_derivatives(hidden):
    """Values on samples in NumPy, and `back` against autodiff, for vectors of any length; single precision stays so."""
    draw = np.random.default_rng(6)
    first, x, errors = (jnp.asarray(draw.standard_normal(s)) for s in ((4, 5), (5, 30), (2, 30)))
    value = lambda f: hidden(f, f @ x)  # noqa: E731
    np.testing.assert_allclose(
        value(first), unit(np.asarray(first), np.asarray(x.T), hidden.gate.name, hidden.degree).T, atol=1e-13
    )
    inside, along = hidden.back(first, first @ x, errors)
    found = inside @ x.T + along[:, None] * first
    np.testing.assert_allclose(found, jax.vjp(value, first)[1](errors)[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.sum(found * first, axis=1), 0, atol=1e-12)
    single = [leaf.astype("float32") for leaf in (first, first @ x, errors)]
    inside, along = hidden.back(*single)
    assert hidden(*single[:2]).dtype == inside.dtype == along.dtype == "float32"
    np.testing.assert_allclose(hidden.weight, math.factorial(hidden.degree) * square_of(hidden.gate.name), rtol=1e-13)


@functools.cache
def square_of(name):
    z = np.arange(-12, 12, 0.1)
    values = {"sigmoid": special.expit, "probit": stats.norm.cdf}[name](z)
    return float(np.sum(values**2 * stats.norm.pdf(z)) * 0.1)
