"""Gates, mixtures and tied units in balls, beside quadrature, differences and closed forms."""

import itertools

import numpy as np
import pytest
from flint import arb, arb_mat
from mpmath import exp, mp, mpf, quad, sinh, sqrt
from mpmath import pi as PI

import tutelage as tt
from tutelage.problem.activations import activation
from tutelage.rigour import gates
from tutelage.rigour.balls import precision
from tutelage.rigour.gates import Overlap, gate_of, hermite
from tutelage.rigour.loss import State
from tutelage.rigour.losses import loss_of
from tutelage.rigour.networks import networks_of
from tutelage.rigour.series import bent

BITS = 192
EDGES = [-30, -12, -4, 0, 4, 12, 30]
FAR = arb("1e-40")


def number(value: mpf) -> arb:
    return arb(mp.nstr(value, 48))


def holds(found: arb, expected: arb) -> bool:
    """Whether a number that is known to 40 digits may be in a ball."""
    return found.is_finite() and (found + arb(0, 1) * FAR).overlaps(expected)


def coefficient(k: int, slope: int) -> mpf:
    """By the Fourier transform of the gate's slope, whose sign alternates."""
    return (
        (-1) ** (k // 2)
        / (2 * PI)
        * quad(lambda w: w ** (k - 1) * (PI * w / slope / sinh(PI * w / slope) if w else 1) * exp(-w * w / 2), EDGES)
    )


@pytest.mark.parametrize(("name", "slope", "times"), [("sigmoid", 1, 1), ("tanh", 2, 2)])
def test_hermite_coefficients_are_those_of_long_arithmetic(name, slope, times):
    with mp.workdps(50), precision(BITS):
        found = hermite(gate_of(activation(name)), BITS)
        for k in (1, 3, 21):
            expected = number(times * coefficient(k, slope))
            assert abs(found[k] - expected) < FAR * abs(expected) * 100 and found[k].rel_accuracy_bits() > 150
        assert found[0].contains(arb(1) / 2 if name == "sigmoid" else 0) and found[2] == 0


def moment(left: str, right: str, sign: int) -> mpf:
    """`E[p(z) q(sign z)]`: G_00 at 1 and at -1."""
    functions = {
        "sigmoid": lambda z: 1 / (1 + exp(-z)),
        "tanh": mp.tanh,
        "probit": lambda z: mp.erfc(-z / sqrt(2)) / 2,
        "he2": lambda z: z * z - 1,
    }
    p, q = functions[left], functions[right]
    return quad(lambda z: p(z) * q(sign * z) * exp(-z * z / 2), EDGES) / sqrt(2 * PI)


PAIRS = [("sigmoid", "sigmoid"), ("probit", "sigmoid"), ("tanh", "probit"), ("he2", "sigmoid"), ("he2", "he2")]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_overlaps_are_those_of_long_arithmetic_at_their_ends(left, right):
    with mp.workdps(50), precision(BITS):
        overlap = Overlap(gate_of(activation(left)), gate_of(activation(right)))
        for sign in (1, -1):
            found, expected = overlap.at(0, 0, arb(sign)), number(moment(left, right, sign))
            assert holds(found, expected) and found.rad() < 1e-18


@pytest.mark.parametrize(("left", "right"), PAIRS[:3])
def test_the_tail_is_needed_and_enough(left, right, monkeypatch):
    """With few terms the ball still holds the value; without the tail's bound it does not."""
    monkeypatch.setattr(gates, "TERMS", 61)
    hermite.cache_clear()
    with mp.workdps(50), precision(BITS):
        pair, expected = (gate_of(activation(left)), gate_of(activation(right))), number(moment(left, right, 1))
        assert holds(Overlap(*pair).at(0, 0, arb(1)), expected)
        monkeypatch.setattr(Overlap, "_tail", lambda *given: arb(0))
        assert not holds(Overlap(*pair).at(0, 0, arb(1)), expected)
    hermite.cache_clear()


def test_cosines_end_at_one():
    assert gates.within(arb(1, 1e-3)).contains(1) and gates.within(arb(1, 1e-3)) < 1.0001
    assert gates.within(arb.nan()).is_nan()


@pytest.mark.parametrize("name", ["relu", "softplus"])
def test_gates_that_are_not_known_are_refused(name):
    with pytest.raises(tt.BadInput, match="use"):
        gate_of(activation(name))


def mixtures(degrees=(3, 3), gate="sigmoid", taught="sigmoid", *, student=None, teacher=None, **more):
    draw = np.random.default_rng(0)
    parts = student or (draw.normal(size=(2, 3)), draw.normal(size=(2, 3)))
    goal = teacher or (draw.normal(size=(1, 3)), draw.normal(size=(1, 3)))
    return tt.Problem(
        tt.Gaussian(len(parts[0][0])),
        tt.Mixture(taught, degree=degrees[1], routers=goal[0], experts=goal[1], second=[1.5]),
        tt.Mixture(gate, degree=degrees[0], routers=parts[0], experts=parts[1], second=[1.0, -0.5], **more),
    )


def by_quadrature(problem, size: int = 40) -> float:
    """The loss by Gauss-Hermite quadrature in three inputs."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    grid = np.array(list(itertools.product(nodes, repeat=3)))
    weight = np.prod(list(itertools.product(weights / np.sqrt(2 * np.pi), repeat=3)), axis=1)

    def output(net):
        routers, experts = np.split(net.first / np.linalg.norm(net.first, axis=1, keepdims=True), 2)
        polynomial = np.polynomial.hermite_e.HermiteE.basis(net.hidden.degree)
        return (1 / (1 + np.exp(-grid @ routers.T)) * polynomial(grid @ experts.T)) @ net.second[:, 0]

    return float(weight @ (output(problem.student) - output(problem.teacher)) ** 2 / 2)


@pytest.mark.parametrize("degrees", [(3, 3), (2, 3)])
def test_the_loss_of_a_mixture_is_that_of_quadrature(degrees):
    problem = mixtures(degrees)
    loss = loss_of(networks_of(problem, "test"))
    assert float(loss.value(loss.start())) == pytest.approx(by_quadrature(problem), rel=1e-7)


EDGE_CASES = {
    "equal": ([[1, 2, 0], [1, 2, 0]], [[2, -1, 1], [2, -1, 1]]),
    "opposite": ([[1, 2, 0], [1, 2, 0]], [[2, -1, 1], [-2, 1, -1]]),
    "router along expert": ([[1, 2, 0], [0, 0, 1]], [[2, 4, 0], [0, 0, -3]]),
    "orthogonal": ([[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 2]]),
}


@pytest.mark.parametrize("name", EDGE_CASES)
def test_degenerate_units_are_enclosed(name):
    problem = mixtures(student=EDGE_CASES[name])
    loss = loss_of(networks_of(problem, "test"))
    assert float(loss.value(loss.start())) == pytest.approx(by_quadrature(problem), rel=1e-7)
    assert all(x.is_finite() for part in loss.gradient(loss.start()) for x in part.entries())


def flat(state: State) -> list[arb]:
    return state.second.entries() + state.first.entries()


def nudged(state: State, n: int, by: arb) -> State:
    entries, count = flat(state), len(state.second.entries())
    entries[n] += by
    first, second = state
    return State(
        arb_mat(first.nrows(), first.ncols(), entries[count:]), arb_mat(second.nrows(), second.ncols(), entries[:count])
    )


def differ(loss, places) -> float:
    """How far gradient and Hessian are from difference quotients, relative to their sizes."""
    state, step, worst = loss.start(), arb("1e-20"), 0.0
    gradient, hessian = flat(loss.gradient(state)), loss.hessian(state).tolist()
    for n in places:
        up, down = nudged(state, n, step), nudged(state, n, -step)
        worst = max(worst, abs(float((loss.value(up) - loss.value(down)) / (2 * step) - gradient[n])))
        pairs = zip(hessian[n], flat(loss.gradient(up)), flat(loss.gradient(down)), strict=True)
        worst = max(worst, *(abs(float((x - y) / (2 * step) - h)) for h, x, y in pairs))
    return worst


TRAINED = ("routers", "experts", "second")


@pytest.mark.parametrize(("degrees", "gate", "taught"), [((3, 3), "sigmoid", "sigmoid"), ((2, 4), "probit", "erf")])
def test_gradient_and_hessian_of_a_mixture_are_difference_quotients(degrees, gate, taught, monkeypatch):
    with precision(256):
        problem = mixtures(degrees, gate, taught, trains=TRAINED)
        loss = loss_of(networks_of(problem, "test"))
        assert differ(loss, [0, 3, 9]) < 1e-30
        right = loss.within.overlap.at
        monkeypatch.setattr(
            loss.within.overlap, "at", lambda a, b, rho: right(a, b, rho) * (arb("1.000001") if a else 1)
        )
        assert differ(loss, [3]) > 1e-9


def test_a_box_contains_its_points():
    loss, draw = loss_of(networks_of(mixtures(trains=TRAINED), "test")), np.random.default_rng(1)
    state = loss.start()
    wide = State(*(part + arb_mat([[arb(0, 1e-4)] * part.ncols()] * part.nrows()) for part in state))
    value, gradient = loss.value(wide), flat(loss.gradient(wide))
    for _ in range(3):
        point = State(*(
            part + arb_mat(draw.uniform(-9e-5, 9e-5, (part.nrows(), part.ncols())).tolist()) for part in state
        ))  # fmt: skip
        assert value.contains(loss.value(point))
        assert all(x.contains(y) for x, y in zip(gradient, flat(loss.gradient(point)), strict=True))


def test_parts_that_have_coordinates_of_their_own_keep_them():
    apart = ([[1, 2, 0, 0], [0, 1, 0, 0]], [[0, 0, 1, 1], [0, 0, 2, -1]])
    networks = networks_of(mixtures(student=apart, teacher=([[1, 0, 0, 0]], [[0, 0, 1, 0]])), "test")
    full, moving = loss_of(networks), loss_of(networks, moving=True)
    wide = State(full.start().first + arb_mat([[arb(0, 1e-6)] * 4] * 4), full.start().second)
    for x, y, z in zip(*(flat(each.gradient(state)) for each, state in
                         ((full, full.start()), (moving, full.start()), (moving, wide))), strict=True):  # fmt: skip
        assert x.overlaps(y) and z.contains(y) and abs(x - y) < 1e-9
    still = [row[2:] if i < 2 else row[:2] for i, row in enumerate(moving.gradient(wide).first.tolist())]
    assert all(x.is_zero() for row in still for x in row)
    other = networks_of(mixtures((3, 2), student=apart, teacher=([[1, 0, 0, 0]], [[0, 0, 1, 0]])), "test")
    drift = loss_of(other, moving=True).gradient(loss_of(other).start()).first.tolist()
    assert any(not x.contains(0) for x in drift[0][2:])  # of unlike degrees routers are pulled to experts


def test_mixtures_descend_and_flow_and_have_stationary_points():
    problem = mixtures()
    start = {"routers": [["1/2", "1", "0"]] * 2, "experts": [["1", "0", "1/3"], ["0", "1", "1/7"]]}
    seen = tt.prove.descend(problem, "1/100", 2, start=start, at=[0, 2])["loss"]
    assert seen[2] < seen[0]
    goal = ([[1.0, 0, 0]], [[0, 1.0, 0]])
    one = tt.Problem(
        tt.Gaussian(5), tt.Mixture(routers=goal[0], experts=goal[1]), tt.Mixture(routers=goal[0], experts=goal[1])
    )
    point = tt.prove.stationary(one, [[1, "1e-3", 0], [0, 1, 0]], radius="1e-8")
    assert point.strict_minimum and point.loss.contains(0) and point.scalings == 2
    with pytest.raises(tt.BadInput, match="together"):
        tt.prove.descend(problem, "1/100", 1, start={"routers": [[1, 0, 0]] * 2})
    with pytest.raises(tt.prove.CannotEnclose, match="zero"):
        tt.prove.descend(problem, "1/100", 1, start={"routers": [[0, 0, 0]] * 2, "experts": [[1, 0, 0]] * 2})


def tied(student="relu", teacher="relu", which=(True, True), trains=("first", "second")):
    draw = np.random.default_rng(0)
    return tt.Problem(
        tt.Gaussian(3),
        tt.TwoLayer(teacher, first=draw.normal(size=(2, 3)), second=[1.0, -0.5], tied=which[1]),
        tt.TwoLayer(student, first=draw.normal(size=(2, 3)), second=[1.0, 0.7], tied=which[0], trains=trains),
    )


@pytest.mark.parametrize(
    ("student", "teacher", "which"),
    [("relu", "relu", (True, True)), ("erf", "relu", (True, False)), ("he3", "abs", (False, True))],
)
def test_gradient_and_hessian_of_tied_units_are_difference_quotients(student, teacher, which):
    with precision(256):
        loss = loss_of(networks_of(tied(student, teacher, which), "test"))
        assert differ(loss, range(8)) < 1e-30
        series = bent(loss.along, *loss.start(), ["second", "first"])
        assert all(abs(x) < 1e-60 for x in (series - loss.hessian(loss.start())).entries())
        first = loss_of(networks_of(tied(student, teacher, which, ("first",)), "test"))
        rows = [row[2:] for row in loss.hessian(loss.start()).tolist()[2:]]
        assert all(abs(x) < 1e-60 for x in (first.hessian(first.start()) - arb_mat(rows)).entries())


def test_tied_units_have_the_loss_of_plain_ones():
    relu = tt.TwoLayer("relu", first=[[1.0]], tied=True)
    loss = loss_of(networks_of(tt.Problem(tt.Gaussian(1), relu, relu), "test", start=[[3]]))
    assert loss.value(loss.start()).contains(16) and loss.value(loss.start()).rad() < 1e-10  # (9 - 1)^2/4
    found = tt.prove.flow(tt.Problem(tt.Gaussian(1), relu, relu), "1/2", start=[["1/2"]], rates={"second": 0})
    # w^2 = u obeys u' = 2 u (1 - u): logistic.
    with precision(200):
        growth = arb(1).exp()
        expected = (1 - growth / (3 + growth)) ** 2 / 4
        assert found["loss"][found.until].overlaps(expected)


def test_a_tied_row_of_zero_has_a_value_but_no_gradient():
    problem = tied()
    loss = loss_of(networks_of(problem, "test", start=[[0, 0, 0], [1, 2, 3]]))
    assert loss.value(loss.start()).is_finite()
    with pytest.raises(tt.prove.CannotEnclose, match="zero"):
        loss.gradient(loss.start())
