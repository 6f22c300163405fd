"""The long-arithmetic loss against quadrature, against the kernels in use, and against golden values."""

import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from tutelage.analysis.certificates.enclosure import Enclosed
from tutelage.analysis.certificates.long_arithmetic import Precise, expectation, parts, value
from tutelage.oracle.kernels import kernel
from tutelage.problem.activations import activation, leaky_relu, polynomial
from tutelage.rigour import CannotEnclose

NAMES = ("linear", "relu", "abs", "erf", "he2", "he3", "he4", "sign", "step", "erf_over_sqrt2")
A, B = np.array([0.5, 0.3, 0.1]), np.array([-0.2, 0.6, 0.5])


def by_formula(s, t, a=A, b=B):
    gram = (mp.mpf(float(x)) for x in (a @ a, b @ b, a @ b))
    return float(expectation(parts(activation(s)), parts(activation(t)), *gram))


def by_quadrature(s, t, a=A, b=B):
    """`E[s(u) t(v)]` in polar coordinates, by Gauss-Legendre over the radius to 13 and the angle between kinks."""
    spread = np.linalg.norm(a)
    slope, rest = a @ b / spread, np.sqrt(b @ b - (a @ b) ** 2 / (a @ a))
    radius, mass = np.polynomial.legendre.leggauss(120)
    radius = 6.5 * (radius + 1)
    mass = 6.5 * mass * radius * np.exp(-(radius**2) / 2)
    kinks = np.sort(np.mod([np.pi / 2, -np.pi / 2, *(np.arctan2(-slope, rest) + np.array([0, np.pi]))], 2 * np.pi))
    node, width = np.polynomial.legendre.leggauss(60)
    total = 0.0
    for low, high in zip(kinks, [*kinks[1:], kinks[0] + 2 * np.pi], strict=True):
        angle = (low + high) / 2 + (high - low) / 2 * node
        u = radius[:, None] * np.cos(angle) * spread
        v = radius[:, None] * (slope * np.cos(angle) + rest * np.sin(angle))
        values = np.asarray(activation(s)(jnp.asarray(u)) * activation(t)(jnp.asarray(v)))
        total += mass @ values @ width * (high - low) / 2
    return total / (2 * np.pi)


@pytest.mark.parametrize("s", NAMES)
def test_expectations_agree_with_quadrature_and_kernels(s):
    for t in NAMES:
        mine = by_formula(s, t)
        # Between the kinks all is analytic, so the quadrature is right to rounding of values up to about 1e2.
        assert abs(mine - by_quadrature(s, t)) < 1e-13, t
        used = float(kernel(s, t).value(jnp.asarray(A)[None], jnp.asarray(B)[None])[0, 0])
        assert abs(mine - used) < 1e-14 * max(1, abs(mine)), t


@pytest.mark.parametrize("s", NAMES)
def test_values(s):
    for z in (-1.5, 0.0, 0.4):
        assert abs(float(value(parts(activation(s)), z)) - float(activation(s)(z))) < 1e-15 * 10


def test_other_activations():
    assert abs(by_formula(leaky_relu(0.25), "relu") - by_quadrature(leaky_relu(0.25), "relu")) < 1e-12
    cubic = polynomial([0.3, -1.0, 0.0, 2.0])
    assert abs(by_formula(cubic, "abs") - by_quadrature(cubic, "abs")) < 1e-12
    assert parts(activation("tanh")) is None and parts(activation(jnp.sin)) is None


def test_zero_rows_and_parallel_rows():
    zero = np.zeros(3)
    assert by_formula("relu", "relu", zero, B) == 0 and by_formula("abs", "he2", zero, B) == 0
    assert abs(by_formula("relu", "relu", B, B) - B @ B / 2) < 1e-15
    assert abs(by_formula("relu", "relu", B, -B)) < 1e-15


# Golden values of `both_layers`: G1 (one output) and G2 (two).
GOLDEN = {
    "G1": (
        [[0.7], [-0.4]], [[1, 2, -1], [-0.5, 1, 0.3]], [[1, 0, 2]], 3.436746494936686,
        [[-0.079344193386, 0.362364782396, -0.952761123531], [0.113245019868, -0.184383701403, 0.487842354246]],
    ),
    "G2": (
        [[0.7, 0.2], [-0.4, 0.5], [0.3, -0.6]], [[1, 2, -1], [-0.5, 1, 0.3], [0.2, -0.1, 0.9]],
        [[1, 0, 2], [0, -1, 0.5]], 4.644595843330874,
        [[-0.060194873058, 0.556240632677, -1.009970181911], [0.072289282774, 0.242538372539, 0.263084758578],
         [-0.043359066756, -0.393680015369, -0.040644704952]],
    ),
}  # fmt: skip


def problem(name):
    second, first, target, loss, slope = (np.array(x, float) for x in GOLDEN[name])
    outgoing = np.concatenate([second, -np.eye(len(target))])
    parts_ = parts(activation("relu")), parts(activation("linear"))
    return Precise(*parts_, np.concatenate([first, target]), outgoing, len(first)), loss, slope


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_loss_and_gradient(name):
    precise, loss, slope = problem(name)
    assert abs(precise.loss()[0] - loss) < 1e-14 * loss
    for i, j in np.ndindex(slope.shape):
        move = np.zeros_like(slope)
        move[i, j] = 1
        # Twelve decimals are known.
        assert abs(precise.derivative(move, np.zeros((len(slope), precise.second.shape[1])))[0] - slope[i, j]) < 6e-13


def test_magnitudes_bound_the_sums():
    precise, loss, slope = problem("G2")
    value_, terms = precise.loss()
    assert terms > value_
    derivative, terms = precise.derivative(slope, np.zeros((3, 2)))
    assert abs(derivative - np.sum(slope**2)) < 1e-11 and terms > abs(derivative)


def test_off_line_vanishes_on_a_line():
    first = np.outer([1.0, -2.0, 0.5, 1.0], [0.6, 0.8, 0])
    shapes = parts(activation("relu")), parts(activation("linear"))
    on = Precise(*shapes, first, np.ones((4, 1)), 3)
    assert on.off_line() < 1e-40
    first[1] += [0, 0, 0.1]
    assert Precise(*shapes, first, np.ones((4, 1)), 3).off_line() > 1e-5


@pytest.mark.parametrize(("student", "teacher"), [("relu", "relu"), ("relu", "linear"), ("erf", "erf"), ("he3", "abs")])
def test_balls_enclose_what_long_arithmetic_finds(student, teacher):
    """Other formulas: a derivative of kernels there, a central difference of long arithmetic here. Also for 0."""
    shapes, draw = (parts(activation(student)), parts(activation(teacher))), np.random.default_rng(0)
    first, second, turn = draw.normal(size=(5, 3)), draw.normal(size=(5, 2)), draw.normal(size=(3, 3))
    precise = Precise(*shapes, first, second, 3)
    balls = Enclosed(precise, activation(student), activation(teacher))
    for one, other in (
        (balls.loss(), precise.loss()),
        (balls.derivative(turn, second[:3]), precise.derivative(turn, second[:3])),
    ):
        assert np.allclose(one, other, rtol=1e-12, atol=0)
    assert balls.route == "ball arithmetic" and precise.route == "50 digits"
    if student == teacher:
        same = Precise(*shapes, first[[0, 0]], np.array([[1.0], [-1.0]]), 1)
        assert abs(Enclosed(same, activation(student), activation(teacher)).loss()[0]) < 1e-40


def test_balls_leave_what_they_cannot_enclose():
    """A gradient where a kinked unit is zero has no ball; sign units have no kernel in balls."""
    shapes = parts(activation("relu")), parts(activation("relu"))
    precise = Precise(*shapes, np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [-1.0]]), 1)
    with pytest.raises(CannotEnclose):
        Enclosed(precise, activation("relu"), activation("relu")).derivative(np.ones((1, 2)), np.ones((1, 1)))
    with pytest.raises(CannotEnclose):
        Enclosed(precise, activation("sign"), activation("relu"))
