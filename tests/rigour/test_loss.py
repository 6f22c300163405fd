"""The enclosed loss, gradient and Hessian beside the oracles, which share no code with them, and beside differences."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, arb_mat

import tutelage as tt
from tutelage.rigour.balls import box, precision
from tutelage.rigour.loss import Loss, State
from tutelage.rigour.networks import networks_of

PAIRS = [("relu", "relu", 2), ("erf", "relu", 1), ("he3", "he2", 2), ("leaky_relu:0.25", "erf", 1), ("abs", "he4", 1)]
pytestmark = pytest.mark.usefixtures("quickly_compiled")


def problem(student="relu", teacher="relu", *, outputs=1, trains=("first", "second"), seed=0, dim=4):
    draw = np.random.default_rng(seed)
    return tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer(teacher, first=draw.normal(size=(2, 3)), second=draw.normal(size=(2, outputs))),
        student=tt.TwoLayer(
            student, first=draw.normal(size=(3, 3)), second=draw.normal(size=(3, outputs)), trains=trains
        ),
    )


def loss_of(given, **more):
    return Loss(networks_of(given, "test", **more))


def numbers(matrix: arb_mat) -> np.ndarray:
    return np.array([[float(x) for x in row] for row in matrix.tolist()])


def both(given):
    """The enclosed loss at the start with the oracle's, and weights."""
    loss = loss_of(given)
    state = loss.start()
    weights = tt.Weights(jnp.asarray(numbers(state.first)), jnp.asarray(numbers(state.second)))
    target = tt.Weights(jnp.asarray(numbers(loss.target.first)), jnp.asarray(numbers(loss.target.second)))
    oracle = tt.PopulationOracle(
        student=given.student.activation, teacher=given.teacher.activation, target=target, form="plain"
    )
    return loss, state, oracle, weights


@pytest.mark.parametrize(("student", "teacher", "outputs"), PAIRS)
def test_value_gradient_and_hessian_are_those_of_the_oracle(student, teacher, outputs):
    loss, state, oracle, weights = both(problem(student, teacher, outputs=outputs))
    with precision(128):
        value, gradient, hessian = loss.value(state), loss.gradient(state), loss.hessian(state)
    assert float(value) == pytest.approx(float(oracle.loss(weights)), rel=1e-11)
    slope = oracle.gradient(weights)
    np.testing.assert_allclose(numbers(gradient.first), slope.first, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(numbers(gradient.second), slope.second, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(numbers(hessian), oracle.hessian(weights), rtol=1e-8, atol=1e-8)
    assert value.rad() < 1e-9


@pytest.mark.parametrize("trains", [("first",), ("second",)])
def test_a_layer_that_does_not_learn_has_no_gradient_and_no_rows(trains):
    both_layers, one = problem(), problem(trains=trains)
    full, part = loss_of(both_layers), loss_of(one)
    state = full.start()
    kept = range(3, 12) if trains == ("first",) else range(3)
    expected = numbers(full.hessian(state))[np.ix_(kept, kept)]
    np.testing.assert_allclose(numbers(part.hessian(state)), expected)
    still = part.gradient(state).second if trains == ("first",) else part.gradient(state).first
    assert all(entry == 0 for entry in still.entries())


def test_a_box_contains_its_points():
    loss = loss_of(problem("erf", "relu"))
    state, draw = loss.start(), np.random.default_rng(1)
    radius = arb("1e-3")
    wide = State(box(state.first, radius), box(state.second, radius))
    value, gradient, hessian = loss.value(wide), loss.gradient(wide), loss.hessian(wide)
    for _ in range(20):
        point = State(*(part + arb_mat(draw.uniform(-9e-4, 9e-4, (part.nrows(), part.ncols())).tolist())
                        for part in state))  # fmt: skip
        assert value.contains(loss.value(point)) and hessian.contains(loss.hessian(point))
        assert all(one.contains(other) for one, other in zip(gradient, loss.gradient(point), strict=True))


def test_curvature_outside_is_that_of_a_coordinate_more():
    given = problem("relu", "relu", trains=("first",))
    narrow = loss_of(given)
    wide = loss_of(given, start={"first": [[*row, 0] for row in numbers(narrow.start().first).tolist()]})
    full = numbers(wide.hessian(wide.start()))
    last = [3, 7, 11]
    np.testing.assert_allclose(numbers(narrow.outside(narrow.start())), full[np.ix_(last, last)], atol=1e-12)


def test_exact_weights_are_taken_as_they_are():
    given = problem()
    networks = networks_of(
        given, "test", start={"first": [["1/3", "0.1", 2]] * 3, "second": ["0.1", 1, Fraction(2, 7)]}
    )
    assert networks.student.first[0] == (Fraction(1, 3), Fraction(1, 10), Fraction(2))
    assert networks.student.second == ((Fraction(1, 10),), (Fraction(1),), (Fraction(2, 7),))
    assert networks.teacher.first[0][0] == Fraction(float(given.teacher.first[0, 0]))
    assert loss_of(given, start=[["1/3"] * 3] * 3).start().first[0, 0].rad() > 0


def test_a_law_gives_doubles_of_its_seed():
    given = tt.Problem(
        tt.Gaussian(10**6), tt.TwoLayer("relu", first=[[1.0]]),
        tt.TwoLayer("relu", first=tt.GaussianRows(1e-3), width=2),
    )  # fmt: skip
    found, drawn = networks_of(given, "test", seed=3), given.drawn(3)
    assert [[float(x) for x in row] for row in found.student.first] == np.asarray(drawn.student.first).tolist()


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ([[1, 2]], "has 1 rows"),
        ([[1] * 9] * 3, "rows have 9 entries, but inputs have 4"),
        ({"last": 1}, "only first and second"),
        ([[1, float("nan")]] * 3, "finite"),
        ({"second": [1, 2]}, "outgoing weights"),
        ("x", "matrix"),
    ],
)
def test_weights_that_do_not_fit_are_refused(start, words):
    with pytest.raises(tt.BadInput, match=words):
        networks_of(problem(), "test", start)


def test_problems_that_have_no_enclosed_loss_are_refused():
    several, plain = tt.TwoLayer(["relu", "erf"], first=np.eye(2)), tt.TwoLayer("relu", first=np.eye(2))
    with pytest.raises(tt.BadInput, match="several activations"):
        networks_of(tt.Problem(tt.Gaussian(2), plain, several), "test")
    with pytest.raises(tt.BadInput, match="penalty"):
        networks_of(tt.Problem(tt.Gaussian(2), plain, plain, penalty=tt.Penalty(second=0.1)), "test")
    with pytest.raises(tt.BadInput, match=r"tt\.Problem"):
        networks_of("relu", "test")
