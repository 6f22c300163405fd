"""Inputs with a covariance: by sampling, by differences, by hand, and at any dimension."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.oracle.empirical import draw
from tutelage.oracle.population import population_oracle
from tutelage.problem.trees import flatten, unflatten

pytestmark = pytest.mark.usefixtures("quickly_compiled")
RANDOM = np.random.default_rng(5)
MIX = RANDOM.standard_normal((3, 3))
COVARIANCE = MIX @ MIX.T


def problem(dim=5, covariance=COVARIANCE, student="relu", teacher="erf", **changes):
    taught = tt.TwoLayer(
        teacher, first=np.random.default_rng(1).standard_normal((2, 4))[:, :dim] / 2, second=[1.0, -0.5]
    )
    learning = tt.TwoLayer(student, first=tt.GaussianRows(0.5), second=tt.GaussianEntries(0.5), width=3, **changes)
    return tt.Problem(tt.Gaussian(dim, covariance), taught, learning)


@pytest.mark.parametrize("tied", [False, True])
def test_the_loss_is_that_of_inputs_with_this_covariance(tied):
    """Within 4.5 standard errors of 4e5 samples (false alarms: 7e-6)."""
    asked = problem(tied=tied)
    start = asked.begin(3, full=True)
    x = np.random.default_rng(0).multivariate_normal(np.zeros(3), COVARIANCE, 400_000)
    x = np.concatenate([x, np.random.default_rng(1).standard_normal((400_000, 2))], axis=1)
    outputs = [
        np.asarray(network.hidden(w.first, w.first @ x.T)).T @ np.asarray(w.second)
        for network, w in ((asked.student, start.student), (asked.teacher, start.teacher))
    ]
    squares = 0.5 * np.sum((outputs[0] - outputs[1]) ** 2, axis=1)
    loss = float(population_oracle(asked, start.teacher).loss(start.student))
    assert abs(loss - squares.mean()) < 4.5 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize("student", ["relu", "tanh"])
def test_derivatives_are_differences(student):
    """Central differences, step 1e-5."""
    asked = problem(student=student)
    start = asked.begin(3)
    oracle, y, step = population_oracle(asked, start.teacher), flatten(start.student), 1e-5

    @jax.jit
    def at(places):
        def one(v):
            w = unflatten(v, start.student)
            return oracle.loss(w), flatten(oracle.gradient(w))

        return jax.vmap(one)(places)

    up, down = (at(y[None] + sign * step * jnp.eye(len(y))) for sign in (1, -1))
    gradient, hessian = ((high - low) / (2 * step) for high, low in zip(up, down, strict=True))
    np.testing.assert_allclose(flatten(oracle.gradient(start.student)), gradient, atol=1e-8)
    np.testing.assert_allclose(jax.jit(lambda made, w: made.hessian(w))(oracle, start.student), hessian, atol=1e-7)


def test_every_dimension_is_the_same_problem():
    """Given rows in the first coordinates: at dim 4 and at 1e9 the flow is the same, up to rounding."""
    rows = np.random.default_rng(2).standard_normal((2, 4))

    def run(dim):
        student = tt.TwoLayer("tanh", first=rows, trains=("first",))
        teacher = tt.TwoLayer("erf", first=[[1.0, 0.5]])
        return tt.flow(tt.Problem(tt.Gaussian(dim, COVARIANCE), teacher, student), until=2.0)

    small, large = run(4), run(10**9)
    np.testing.assert_allclose(small.loss, large.loss, rtol=1e-12)
    np.testing.assert_allclose(small.overlap, large.overlap, rtol=1e-10)


def test_a_linear_student_learns_each_direction_at_the_speed_of_its_variance():
    """`dw/dt = C (w* - w)`: after time t the error along an axis of variance c is exp(-c t) of what it was."""
    variances = np.array([4.0, 1.0, 0.25])
    student = tt.TwoLayer("linear", first=np.zeros((1, 3)), trains=("first",))
    problem = tt.Problem(tt.Gaussian(10**6, variances), tt.TwoLayer("linear", first=[[1.0, 1.0, 1.0]]), student)
    run = tt.flow(problem, until=1.0, record=tt.Record(weights=True), stop=tt.Stop(gradient=0.0))
    np.testing.assert_allclose(run.last("weights_first")[0, 0], 1 - np.exp(-variances), atol=1e-7)


def test_the_identity_is_no_covariance():
    """In other coordinates of the frame: the same losses, to rounding that a flow carries on."""
    taught = tt.TwoLayer("relu", first=[[1.0, 2.0, 0.0, 1.0]])
    start = tt.TwoLayer("relu", first=[[0.3, -0.2, 0.5, 0.1], [0.0, 0.4, 0.1, -0.6]])
    plain, other = (tt.Problem(tt.Gaussian(9, c), taught, start) for c in (None, np.eye(4)))
    one, two = (tt.flow(each, until=3.0) for each in (plain, other))
    np.testing.assert_allclose(one.loss, two.loss, rtol=1e-7)


def test_a_run_certifies_itself():
    certificate = tt.descend(problem(dim=50), step=0.05, steps=40, certify=True).certificate
    assert certificate.ok, certificate.sentence
    assert {"samples", "network"} <= {row.route.split()[-1] for row in certificate.rows}


def test_samples_have_the_covariance():
    """The loss on 40 000 of them: its standard error is about 1 % of it, and five of these are allowed."""
    asked = problem(dim=20, covariance=[16.0, 9.0, 4.0])
    start = asked.begin(3, full=True)
    sampled = float(draw(asked, start.teacher, 40_000, 0).loss(start.student))
    assert sampled == pytest.approx(float(population_oracle(asked, start.teacher).loss(start.student)), rel=0.05)
    plain = tt.Problem(tt.Gaussian(20), asked.teacher, asked.student)
    other = float(population_oracle(plain, start.teacher).loss(start.student))
    assert sampled != pytest.approx(other, rel=0.3)  # standard inputs would be seen


def test_equal_inputs_are_equal():
    assert tt.Gaussian(5, [1.0, 2.0]) == tt.Gaussian(5, np.diag([1.0, 2.0])) != tt.Gaussian(5)
    assert hash(tt.Gaussian(5, [1.0, 2.0])) == hash(tt.Gaussian(5, np.diag([1.0, 2.0])))
    np.testing.assert_allclose(
        tt.Gaussian(5, COVARIANCE).root @ tt.Gaussian(5, COVARIANCE).root, COVARIANCE, atol=1e-14
    )


MIXED = tt.Mixture(routers=[[1.0, 0.0]], experts=[[0.0, 1.0]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tt.Gaussian(3, np.ones((2, 3))), "shape"),
        (lambda: tt.Gaussian(1, [1.0, 2.0]), "at most 1 rows"),
        (lambda: tt.Gaussian(3, [[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (lambda: tt.Gaussian(3, [1.0, -1.0]), "eigenvalue -1"),
        (lambda: tt.Gaussian(3, ["a"]), "variances"),
        (lambda: tt.run(problem(student="erf"), tt.Ode(rate=0.1, until=1.0)), "a covariance; standard"),
        (lambda: tt.Problem(tt.Gaussian(3, [2.0]), MIXED, MIXED), "mixture"),
        (lambda: tt.flow(problem(), until=1.0, record=tt.Record(observables=("loss_order",))), "standard inputs"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(BadInput, match=words):
        make()
