"""Units that see a mean: their kernels by integration in the plane, by long arithmetic, by differences and at edges."""

import functools
import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from oracle import quadrature
from scipy import stats

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.oracle.kernels import kernel, layer_kernel
from tutelage.oracle.kernels.edges import Corner
from tutelage.oracle.kernels.means import MeanKernel
from tutelage.problem import activations as act
from tutelage.problem.assorted import layer_units
from tutelage.problem.trees import flatten, unflatten

pytestmark = pytest.mark.usefixtures("quickly_compiled")
KINKED = [("relu", "linear"), ("relu", "erf"), ("abs", "tanh"), ("relu", "he3"), ("abs", "softplus")]
SMOOTH = [("erf", "erf"), ("erf", "linear"), ("tanh", "he3"), ("he3", "he3"), ("erf", "softplus"), ("softplus", "he2")]
# The means are in front.
A = jnp.array([[0.4, 0.3, -0.4, 0.2]])
B = jnp.array([[-0.7, 0.2, 0.3, 0.4], [0.5, -0.5, 0.1, 0.1]])
C = jnp.array([[1.0, -0.7]])


def shifted(name, mean):
    """The activation with its argument moved, as a function with a kink somewhere."""
    s = tt.activation(name)
    return act.from_callable(lambda z: s(z + mean), f"{name} moved by {mean}", [k - mean for k in s.kinks])


@pytest.mark.parametrize(("s", "t"), KINKED + SMOOTH)
def test_pairs_against_integration_in_the_plane(s, t):
    """Which knows means only as activations that are moved. It is right to a few roundings, and to 1e-11 where a kink
    is off the origin; where two are, it does not see their corner: these have thirty digits below."""
    slack = 1e-11 if (s, t) in KINKED else 3e-13
    k, a = MeanKernel(tt.activation(s), tt.activation(t)), np.asarray(A)[0]
    value, gradient, mixed = k.value(A, B), k.gradient(A, B), k.mixed(A, B)
    for place, b in enumerate(np.asarray(B)):
        expected = quadrature.expectation(shifted(s, a[0]), shifted(t, b[0]), a[1:], b[1:])
        assert float(value[0, place]) == pytest.approx(expected.value, abs=slack, rel=slack)
        np.testing.assert_allclose(gradient[0, place, 1:], expected.gradient, atol=slack, rtol=slack)
        np.testing.assert_allclose(mixed[0, place, 1:, 1:], expected.mixed, atol=slack, rtol=slack)


def differences(f, x, h=1e-3):
    """Of fourth order: their error is a thirtieth of `h^4` fifth derivatives, and roundings over `h`."""
    moves = h * jnp.eye(x.shape[1])[:, None]
    far, near = (np.stack([f(x + j * e) - f(x - j * e) for e in moves], -1) for j in (2, 1))
    return (8 * near - far) / (12 * h)


@pytest.mark.parametrize(("s", "t"), [("relu", "relu"), ("erf", "relu"), ("relu", "he3"), ("tanh", "erf"),
                                      ("softplus", "relu"), ("erf", "step")])  # fmt: skip
def test_derivatives_are_differences(s, t):
    k = MeanKernel(tt.activation(s), tt.activation(t))
    value, gradient = (jax.jit(lambda a, b, ask=ask: ask(a, b)) for ask in (k.value, k.gradient))
    slope = np.asarray(gradient(A, B))
    np.testing.assert_allclose(slope, differences(lambda a: np.asarray(value(a, B)), A), atol=3e-10)
    curved = np.einsum("pq,pqmn->pmn", C, differences(lambda a: np.asarray(gradient(a, B)), A))
    np.testing.assert_allclose(k.curvature(C, A, B), curved, atol=1e-9)
    np.testing.assert_allclose(k.mixed(A, B), differences(lambda b: np.asarray(gradient(A, b)), B), atol=1e-9)
    np.testing.assert_allclose(k.pull(C, A, B), np.einsum("pq,pqn->pn", C, slope), atol=1e-14)


ROW = np.array([0.4, -0.5, 0.3])
PLACES = np.stack(
    [[0.2, 0.3, 0.5], 1.3 * ROW, ROW, -0.7 * ROW, [0.5, 0.4, 0.0], ROW + 1e-9 * np.array([0.0, 1.0, 0.0])]
)


@pytest.mark.parametrize(("s", "t"), [("relu", "relu"), ("erf", "tanh"), ("abs", "he2"), ("relu", "softplus")])
def test_means_of_zero_are_no_means(s, t):
    """All derivatives, with rows aligned, equal, opposite, orthogonal and a billionth apart, to a few roundings of
    1e-15 over the square of the smallest norm, 0.5."""
    plain, ours = kernel(s, t), MeanKernel(tt.activation(s), tt.activation(t))
    a, b = jnp.asarray(ROW[None]), jnp.asarray(PLACES)
    c = jnp.linspace(-1, 1, len(b))[None]
    wide = [jnp.pad(rows, ((0, 0), (1, 0))) for rows in (a, b)]
    np.testing.assert_allclose(ours.value(*wide), plain.value(a, b), atol=1e-14)
    np.testing.assert_allclose(ours.gradient(*wide)[..., 1:], plain.gradient(a, b), atol=1e-14)
    np.testing.assert_allclose(ours.pull(c, *wide)[..., 1:], plain.pull(c, a, b), atol=1e-14)
    np.testing.assert_allclose(ours.mixed(*wide)[..., 1:, 1:], plain.mixed(a, b), atol=3e-14)
    np.testing.assert_allclose(ours.curvature(c, *wide)[..., 1:, 1:], plain.curvature(c, a, b), atol=3e-14)


def long_moment(level, mean, width):
    """`E[s_level(mean + width z)]` in long arithmetic: of the sign or of |z|."""
    if width == 0:
        return mpmath.sign(mean) if level == 0 else abs(mean)
    h = mean / width
    sign = mpmath.erf(h / mpmath.sqrt(2))
    return sign if level == 0 else mean * sign + 2 * width * mpmath.npdf(h)


def long_kernel(levels, a, b):
    """`E[s(u) t(v)]` with 30 digits: one integral over what is common to both."""
    with mpmath.workdps(30):
        (m, alpha), (n, beta, theta) = (list(map(mpmath.mpf, each)) for each in (a, b))
        along, across = beta * mpmath.cos(theta), beta * mpmath.sin(theta)
        edges = [-m / alpha if alpha else mpmath.mpf(0), -n / along if along else mpmath.mpf(0)]
        near = [edges[1] + j * abs(across / along) for j in (-8, -2, 2, 8)] if along else []
        cuts = sorted({mpmath.mpf(-14), mpmath.mpf(14), *(e for e in (*edges, *near) if abs(e) < 14), mpmath.mpf(0)})

        def inside(z):
            return long_moment(levels[0], m + alpha * z, 0) * long_moment(levels[1], n + along * z, across)

        return mpmath.quad(lambda z: inside(z) * mpmath.npdf(z), cuts)


EDGES = {
    "generic": ((0.3, 0.8), (-0.5, 1.1, 1.0)),
    "parallel, other means": ((0.3, 0.8), (-0.5, 1.1, 0.0)),
    "parallel, the same place": ((0.4, 0.8), (0.55, 1.1, 0.0)),
    "nearly the same": ((0.4, 0.8), (0.4 + 1e-9, 0.8, 1e-9)),
    "a thousandth apart": ((0.4, 0.8), (0.4, 0.8, 1e-3)),
    "opposite": ((0.3, 0.8), (0.5, 1.1, float(np.pi))),
    "orthogonal": ((0.3, 0.8), (-0.5, 1.1, float(np.pi / 2))),
    "only a bias": ((-0.3, 0.0), (0.5, 1.1, 0.0)),
    "hardly more than a bias": ((-0.3, 1e-8), (0.5, 1.1, 0.5)),
    "one mean is zero": ((0.0, 0.8), (0.5, 1.1, 0.7)),
    "no means": ((0.0, 0.8), (0.0, 1.1, 0.7)),
    "large means": ((50.0, 0.8), (-30.0, 1.1, 0.7)),
    "means of many widths": ((6.0, 0.8), (-5.0, 0.9, 2.0)),
    "long rows": ((3.0, 100.0), (-20.0, 150.0, 0.3)),
}


@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("levels", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_kinks_and_jumps_against_thirty_digits(levels, case):
    """To 1e-15 of the terms, which are products of lengths and means."""
    a, b = EDGES[case]
    rows = np.array([[a[0], a[1], 0.0]]), np.array([[b[0], b[1] * np.cos(b[2]), b[1] * np.sin(b[2])]])
    names = [("sign", "abs")[level] for level in levels]
    found = float(MeanKernel(*map(tt.activation, names)).value(*map(jnp.asarray, rows))[0, 0])
    size = np.prod([(1 + np.hypot(*each[:2])) ** level for level, each in zip(levels, (a, b), strict=True)])
    # Cosine and sine of the angle are rounded too, which moves the second row by 1e-16 of itself.
    assert found == pytest.approx(float(long_kernel(levels, a, b)), abs=2e-15 * size)


def test_quadrants_of_a_normal_law():
    """`E[sign sign]` beside SciPy's distribution function, at 300 random means and correlations."""
    draw = np.random.default_rng(0)
    h, k, r = 2 * draw.standard_normal(300), 2 * draw.standard_normal(300), draw.uniform(-0.99, 0.99, 300)
    found = Corner(*map(jnp.asarray, (h, k, r, np.sqrt(1 - r**2))))(0, 0)
    below = [
        stats.multivariate_normal([0, 0], [[1, each], [each, 1]]).cdf([x, y])
        for x, y, each in zip(h, k, r, strict=True)
    ]
    expected = 4 * np.array(below) - 2 * stats.norm.cdf(h) - 2 * stats.norm.cdf(k) + 1
    np.testing.assert_allclose(found, expected, atol=3e-14)


def test_a_unit_that_sees_only_its_bias_moves_with_the_slope_there():
    """At a zero vector with a mean the kernel is smooth: `s(m) E t`, with the gradient `s'(m) E[t'] b`."""
    k, row = MeanKernel(act.relu, act.relu), jnp.array([[2.0, 0.0, 0.0]])
    b = jnp.array([[0.5, 0.6, -0.8]])
    slope = np.asarray(k.gradient(row, b)[0, 0])
    value, share = stats.norm.pdf(0.5) + 0.5 * stats.norm.cdf(0.5), stats.norm.cdf(0.5)
    np.testing.assert_allclose(slope, [value, 0.6 * share, -0.8 * share], atol=1e-15)
    assert np.all(np.isfinite(k.mixed(row, b))) and np.all(np.isfinite(k.curvature(jnp.ones((1, 1)), row, b)))
    off = k.gradient(-row, b)  # a ReLU that is off
    np.testing.assert_allclose(off, 0.0, atol=1e-15)


def test_a_row_of_zeros_has_no_slope_at_a_kink():
    zero, b = jnp.zeros((1, 3)), jnp.ones((1, 3))
    assert np.all(np.isnan(MeanKernel(act.relu, act.erf).gradient(zero, b)))
    assert np.all(np.isfinite(MeanKernel(act.relu, act.erf).pull(jnp.zeros((1, 1)), zero, b)))
    assert np.all(np.isfinite(MeanKernel(act.erf, act.relu).gradient(zero, b)))


def test_the_bound_of_a_series_holds_and_is_stated():
    """A series of 12 terms beside one of 128; the rows are long enough that it matters."""
    softplus = act.from_callable(lambda z: jax.nn.softplus(3 * z), "steep")
    short, long = (MeanKernel(softplus, act.relu, terms) for terms in (12, 128))
    a, b = 2.0 * jnp.asarray(A), 2.0 * jnp.asarray(B)
    off = np.abs(np.asarray(short.value(a, b) - long.value(a, b)))
    assert np.all(off <= np.asarray(short.error(a, b))) and off.max() > 1e-8
    assert "error(a, b)" in long.accuracy and "quadrature" in long.accuracy
    assert "closed form" in MeanKernel(act.relu, act.erf).accuracy


@functools.cache
def problem(student="relu", teacher="relu", dim=6, width=3, **changes):
    inputs = tt.Gaussian(dim, **{"covariance": [4.0, 0.25], "mean": [0.5, -1.0, 0.3]} | changes)
    taught = tt.TwoLayer(teacher, first=[[0.8, 0.3, 0.0, 0.5], [-0.4, 0.9, 0.2, 0.0]], biases=[0.6, -0.3])
    learning = tt.TwoLayer(student, first=tt.GaussianRows(0.5), second=tt.GaussianEntries(0.5), width=width,
                           biases=tt.GaussianEntries(0.4))  # fmt: skip
    return tt.Problem(inputs, taught, learning)


@pytest.mark.parametrize(
    ("student", "teacher"), [("relu", "relu"), ("erf", "step"), ("tanh", "he2"), ("softplus", "erf")]
)
def test_losses_are_those_of_samples(student, teacher):
    """Within 4.5 standard errors of 4e5 samples (false alarms: 7e-6), by a loop that knows of biases only."""
    asked = problem(student, teacher)
    start, draw = asked.begin(3, full=True), np.random.default_rng(0)
    x = draw.standard_normal((400_000, 6))
    x[:, :2] *= [2.0, 0.5]
    x[:, :3] += [0.5, -1.0, 0.3]

    def said(network, weights):
        bias, rows = np.asarray(weights.first)[:, :1], np.asarray(weights.first)[:, 1:]
        return np.asarray(network.activation(rows @ x.T + bias)).T @ np.asarray(weights.second)

    squares = 0.5 * np.sum((said(asked.student, start.student) - said(asked.teacher, start.teacher)) ** 2, axis=1)
    loss = float(tt.oracle.population_oracle(asked, start.teacher).loss(start.student))
    assert abs(loss - squares.mean()) < 4.5 * squares.std() / np.sqrt(len(squares))
    np.testing.assert_allclose(said(asked.teacher, start.teacher)[:9], asked.teacher.output(x[:9]), rtol=1e-12)


def at_the_teacher(asked):
    start = asked.begin(0)
    return tt.oracle.population_oracle(asked, start.teacher), start.teacher


@pytest.mark.parametrize("name", ["relu", "erf"])
def test_at_the_teacher_all_vanishes_and_the_hessian_is_there(name):
    """Rows that are equal to the teachers': the kernels' edge. Differences with steps of 1e-5 in a random direction
    leave roundings of 1e-11; the third derivative of a ReLU there is bounded, and leaves 1e-5."""
    oracle, there = at_the_teacher(problem(name, name))
    assert abs(float(oracle.loss(there))) < 1e-15
    assert float(jnp.max(jnp.abs(flatten(oracle.gradient(there))))) < 1e-15
    hessian = np.asarray(oracle.hessian(there))
    assert np.min(np.linalg.eigvalsh(hessian)) > -1e-13
    y = flatten(there)
    move = np.random.default_rng(1).standard_normal(len(y))
    up, down = (flatten(oracle.gradient(unflatten(y + sign * 1e-5 * move, there))) for sign in (1, -1))
    np.testing.assert_allclose(hessian @ move, (up - down) / 2e-5, atol=1e-4)


def test_layers_of_several_kinds():
    units = layer_units(["relu", "erf"])
    found = layer_kernel(units, units, means=True).value(B, B)
    for (i, s), (j, t) in itertools.product(enumerate(["relu", "erf"]), repeat=2):
        one = MeanKernel(tt.activation(s), tt.activation(t)).value(B[i : i + 1], B[j : j + 1])
        assert float(found[i, j]) == pytest.approx(float(one[0, 0]), abs=1e-15)


def test_a_linear_unit_learns_bias_and_mean_as_its_equation_says():
    """`d(w - w*)/dt = -(C + m m^T)(w - w*)`, with the constant as an input of mean 1 and variance 0."""
    inputs = tt.Gaussian(10**6, covariance=[4.0, 0.25], mean=[0.5, -1.0])
    student = tt.TwoLayer("linear", first=np.zeros((1, 2)), biases=0.0, trains=("first",))
    teacher = tt.TwoLayer("linear", first=[[1.0, 0.5]], biases=[2.0])
    run = tt.flow(tt.Problem(inputs, teacher, student), until=1.0, record=tt.Record(weights=True))
    mean = np.array([1.0, 0.5, -1.0])
    sizes, axes = np.linalg.eigh(np.diag([0.0, 4.0, 0.25]) + np.outer(mean, mean))
    left = (axes * np.exp(-sizes)) @ axes.T @ np.array([2.0, 1.0, 0.5])
    np.testing.assert_allclose(run.last("weights_first")[0, 0, :3], [2.0, 1.0, 0.5] - left, atol=1e-7)
    assert float(run.last("bias")[0, 0]) == pytest.approx(2.0 - left[0], abs=1e-7)
    assert float(run.last("overlap")[0, 0, 0]) == pytest.approx(1.25 - left[1] - 0.5 * left[2], abs=1e-7)


def test_every_dimension_is_the_same_problem():
    rows = np.random.default_rng(2).standard_normal((2, 4)) / 2

    def run(dim):
        student = tt.TwoLayer("erf", first=rows, biases=[0.1, -0.2], trains=("first",))
        teacher = tt.TwoLayer("erf", first=[[1.0, 0.5]], biases=[0.5])
        return tt.descend(tt.Problem(tt.Gaussian(dim, mean=[0.5]), teacher, student), step=0.5, steps=20)

    small, large = run(4), run(10**9)
    np.testing.assert_allclose(small.loss, large.loss, rtol=1e-11)
    np.testing.assert_allclose(small.bias, large.bias, atol=1e-12)


def test_samples_that_are_given_and_samples_that_are_drawn():
    """Of a million drawn samples the loss is that of the population within five standard errors of about 1e-3."""
    asked = problem("erf", "erf")
    start = asked.begin(3, full=True)
    exact = float(tt.oracle.population_oracle(asked, start.teacher).loss(start.student))
    drawn = tt.oracle.draw(asked, start.teacher, 100_000, 0)
    assert np.all(np.asarray(drawn.x)[:, 0] == 1.0)
    assert float(drawn.loss(start.student)) == pytest.approx(exact, rel=0.02)
    x = np.random.default_rng(0).standard_normal((50, 6))
    options = {"step": 0.1, "steps": 3, "record": "all"}
    run = tt.descend(asked, data=(x, asked.teacher.output(x)), seeds=[3], **options)
    wide = tt.EmpiricalOracle(
        student="erf", x=np.pad(x, ((0, 0), (1, 0)), constant_values=1.0), y=asked.teacher.output(x)
    )
    assert float(run.loss[0, 0]) == pytest.approx(float(wide.loss(start.student)), rel=1e-12)
    assert float(run.loss[0, -1]) < float(run.loss[0, 0])


def test_a_run_certifies_itself_and_is_observed():
    asked = problem("erf", "relu", width=2)
    run = tt.descend(asked, step=0.05, steps=5, certify=True, record=tt.Record("all", weights=True))
    assert run.certificate.ok, run.certificate.sentence
    assert {"samples", "network", "differences"} <= {row.route.split()[-1] for row in run.certificate.rows}
    named = tt.descend(asked, step=0.05, steps=5, record=tt.Record("all", observables=("loss", "bias", "overlap")))
    np.testing.assert_array_equal(named.overlap, run.overlap)
    start = asked.begin(0, full=True).student
    first = np.asarray(start.first)[None]
    seen = tt.observe(asked, first[..., 1:], np.asarray(start.second)[None], biases=first[..., 0])
    exact = tt.oracle.population_oracle(asked, asked.begin(0, full=True).teacher).loss(start)
    assert float(seen.loss[0, 0]) == pytest.approx(float(exact), rel=1e-12)
    np.testing.assert_array_equal(seen.bias[0, 0], first[0, :, 0])


def test_constants_are_exact_and_equal_laws_are_equal():
    law = tt.Gaussian(5, [[2.0, 0.3], [0.3, 1.0]], [0.5]).with_constant()
    assert np.all(law.root[0] == 0) and np.all(law.root[:, 0] == 0) and law.centre.tolist() == [1.0, 0.5, 0.0]
    np.testing.assert_allclose(law.root @ law.root, law.covariance, atol=1e-15)
    assert tt.Gaussian(5, mean=[1.0]) == tt.Gaussian(5, mean=[1]) != tt.Gaussian(5, mean=[1.0, 0.0])
    assert hash(tt.Gaussian(5, mean=[1.0])) == hash(tt.Gaussian(5, mean=[1])) and tt.Gaussian(5).standard
    one, same, other = (tt.TwoLayer("relu", first=[[1.0]], biases=b) for b in (0.5, [0.5], [0.6]))
    assert one == same != other != tt.TwoLayer("relu", first=[[1.0]]) and "biases=<array (1,)>" in repr(one)


RELU = tt.TwoLayer("relu", first=[[1.0, 0.0]])
LIFTED = tt.TwoLayer("relu", first=[[1.0]], biases=1.0)
BROKEN = tt.activation(lambda z: jnp.where(z > 0, z, jnp.cos(z) - 1), kinks=(0,))


def with_mean(student, teacher=RELU, **options):
    return tt.flow(tt.Problem(tt.Gaussian(3, mean=[1.0]), teacher, student), until=1.0, **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tt.Gaussian(3, mean=[[1.0]]), "at most 3"),
        (lambda: tt.Gaussian(3, mean=[1.0] * 4), "4 entries"),
        (lambda: tt.Gaussian(3, mean=[np.nan]), "finite"),
        (lambda: tt.TwoLayer("relu", first=[[1.0]], biases=[1.0, 2.0]), "2 biases and 1 units"),
        (lambda: tt.TwoLayer("relu", first=[[1.0]], biases="a"), "a law of entries"),
        (lambda: tt.TwoLayer("relu", first=[[1.0]], biases=0.0, tied=True), "tied"),
        (lambda: tt.TwoLayer("relu", first=[[0.0]], biases=0.0), "no derivative"),
        (lambda: tt.Problem(tt.Gaussian(3), tt.TwoLayer("erf", first=[[1.0]], biases=1.0), RELU), "biases=0.0"),
        (lambda: tt.Problem(tt.Gaussian(3), tt.TwoLayer("erf", first=[[1.0]], biases=tt.GaussianEntries(1.0)),
                            tt.TwoLayer("erf", first=[[1.0]], biases=0.0)), "given as arrays"),
        (lambda: with_mean(tt.TwoLayer("sign", first=[[1.0]])), "no population gradient"),
        (lambda: with_mean(tt.TwoLayer(BROKEN, first=[[1.0]])), "only piecewise linear"),
        (lambda: with_mean(RELU, record=tt.Record(observables=("loss_order",))), "standard inputs"),
        (lambda: tt.atlas(tt.Problem(tt.Gaussian(3, mean=[1.0]), RELU, RELU), 2), "a mean or a covariance"),
        (lambda: tt.atlas(tt.Problem(tt.Gaussian(3), RELU, LIFTED), 2), "have biases"),
        (lambda: tt.observe(problem(), np.ones((1, 3, 6)), np.ones((1, 3, 1))), "not given"),
        (lambda: MeanKernel(act.relu, act.step).mixed(A, B), "there is none"),
    ],
)  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(BadInput, match=words):
        make()


def test_zero_rows_may_have_biases():
    assert tt.TwoLayer("relu", first=[[0.0]], biases=1.0).output([[3.0]]).tolist() == [[1.0]]
