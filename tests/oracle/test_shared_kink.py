"""The grouped form of students like their teachers: against long arithmetic, the plain form, and a T^-3 law."""

import math
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import tutelage as tt
from tutelage.oracle.compensated import products, remainders
from tutelage.oracle.stable import shared_kink
from tutelage.oracle.stable.shared_kink import Groups
from tutelage.problem.activations import activation, leaky_relu

STUDENTS, TEACHERS, DIM = 8, 4, 7
UNITS = {s.name: s for s in (activation("relu"), activation("half_abs"), leaky_relu(0.25))}
LEAKY = leaky_relu(0.25).name


def oracle_of(target, name="relu"):
    return tt.PopulationOracle(student=UNITS[name], teacher=UNITS[name], target=target)


def grouped_form(weights, target, name):
    return Groups(weights, target, UNITS[name].atoms[0])


@partial(jax.jit, static_argnums=2)
def grouped(weights, target, name="relu"):
    form = grouped_form(weights, target, name)
    return form.loss(), form.gradient()


@jax.jit
def plain(weights, target):
    oracle = oracle_of(target)
    return oracle.floor() - oracle.drop(weights), oracle._plain_gradient(weights)


@jax.jit
def switched(weights, target):
    oracle = oracle_of(target)
    return oracle.loss(weights), oracle.gradient(weights)


def weights_of(first, second):
    return tt.Weights(jnp.asarray(first, float), jnp.asarray(second, float))


def teachers(rng, count, outputs, basis):
    """Unequal norms; on the axes, rotated, or also at other angles than right ones."""
    first = np.diag(rng.uniform(0.5, 2, count)) @ np.eye(count, DIM)
    if basis == "skew":
        first[:, :count] += 0.4 * rng.standard_normal((count, count))
    if basis != "axes":
        first = first @ np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    return first, np.ones((count, 1)) if outputs == 1 else rng.standard_normal((count, outputs))


def near_optimum(seed, basis, error, *, shape=(STUDENTS, TEACHERS, 1), even=False, balanced=True):
    """Students that share their teachers' vectors, moved by `error`; if `even`, half of them with the other sign.

    If balanced, they turn by angles of that order while each group's sum stays that of its teacher, to rounding: the
    loss is then of the order of the angle cubed, as at the end of training.
    """
    rng = np.random.default_rng(seed)
    students, count, outputs = shape
    target, out = teachers(rng, count, outputs, basis)
    group = np.arange(students) % count
    share = rng.uniform(0.5, 1.5, students)
    share /= np.bincount(group, share)[group]
    strength = np.ones(students) if outputs == 1 else rng.uniform(0.5, 2, students)
    moves = rng.standard_normal((students, DIM))
    if balanced:
        axes = target / np.linalg.norm(target, axis=1, keepdims=True)
        for label in range(count):
            own = group == label
            moves[own] -= np.outer(moves[own] @ axes[label], axes[label])
            moves[own] -= share[own] @ moves[own]
        moves *= (share / strength)[:, None]
    first = (share / strength)[:, None] * target[group] + error * moves
    first[::2] *= -1 if even else 1
    return weights_of(first, strength[:, None] * out[group]), weights_of(target, out)


def exact(weights, target, name="relu"):
    """Loss and gradient as the plain sum of arc-cosine kernels, in 70 digits on the same double-precision weights."""
    atom = UNITS[name].atoms[0]
    with mp.workdps(70):
        straight, bent = mp.mpf(atom.linear) ** 2, 2 * mp.mpf(atom.kink) ** 2 / mp.pi
        rows = [[mp.mpf(float(x)) for x in row] for row in (*weights.first, *target.first)]
        out = [[mp.mpf(float(x)) for x in row] for row in (*weights.second, *(-target.second))]
        norm = [mp.sqrt(mp.fdot(row, row)) for row in rows]
        students, loss = len(weights.first), mp.mpf(0)
        first, second = mp.zeros(students, len(rows[0])), mp.zeros(students, len(out[0]))
        for i, j in np.ndindex(len(rows), len(rows)):
            cos = mp.fdot(rows[i], rows[j]) / norm[i] / norm[j]
            theta = mp.mpf(0) if i == j else mp.acos(max(min(cos, mp.mpf(1)), mp.mpf(-1)))
            along = straight + bent * (mp.pi / 2 - theta)
            kernel = norm[i] * norm[j] * (along * mp.cos(theta) + bent * mp.sin(theta))
            both = mp.fdot(out[i], out[j])
            loss += both * kernel / 2
            if i < students:
                pull = bent * norm[j] * mp.sin(theta) / norm[i]
                for c in range(first.cols):
                    first[i, c] += both * (pull * rows[i][c] + along * rows[j][c])
                for c in range(second.cols):
                    second[i, c] += out[j][c] * kernel
        return loss, tt.Weights(*(jnp.array(x.tolist(), float) for x in (first, second)))


def loss_error(value, expected):
    return abs(float((mp.mpf(float(value)) - expected) / expected))


def gradient_error(slope, expected):
    size = math.sqrt(np.sum(expected.first**2) + np.sum(expected.second**2))
    return max(np.abs(slope.first - expected.first).max(), np.abs(slope.second - expected.second).max()) / size


def check_digits(weights, target, error, name="relu"):
    """The terms between groups are differences of remainders (angle^2) in a loss of the order of angle^3: an error of
    1e-16/angle, times a constant of about 10. Asked for: 1e-6 at a loss of 1e-26; 1e-9 in the gradient, whose terms
    do not cancel at all."""
    loss, gradient = exact(weights, target, name)
    value, slope = grouped(weights, target, name)
    assert loss_error(value, loss) < 1e-14 + 3e-15 / error
    assert loss < 1e-27 or loss_error(value, loss) < 1e-6
    assert gradient_error(slope, gradient) < 1e-13


@pytest.mark.parametrize("basis", ["axes", "rotated", "skew"])
@pytest.mark.parametrize("error", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
def test_against_long_arithmetic(basis, error):
    check_digits(*near_optimum(1, basis, error), error)


@pytest.mark.parametrize("name", ["half_abs", LEAKY])
@pytest.mark.parametrize("error", [1e-3, 1e-6, 1e-9])
def test_other_kinks_against_long_arithmetic(name, error):
    """Of |z|/2 the students have either sign."""
    for basis in ("axes", "skew"):
        check_digits(*near_optimum(2, basis, error, even=name == "half_abs"), error, name)


@pytest.mark.parametrize("error", [1e-4, 1e-8])
def test_several_outputs_and_a_group_of_one(error):
    """Signed outgoing weights of their own; three students of two teachers."""
    check_digits(*near_optimum(3, "skew", error, shape=(3, 2, 2)), error)


@pytest.mark.parametrize("error", [1e-3, 1e-8, 1e-12])
def test_where_the_sums_differ_too(error):
    """With residuals of the order of the angles the loss is that of the residuals, and right to rounding."""
    weights, target = near_optimum(4, "skew", error, balanced=False)
    loss, gradient = exact(weights, target)
    value, slope = grouped(weights, target)
    assert loss_error(value, loss) < 1e-13
    assert gradient_error(slope, gradient) < 1e-14


def with_loss(goal, seed, basis):
    """Near an optimum the loss goes with the cube of the angles."""
    trial = exact(*near_optimum(seed, basis, 1e-8))[0]
    return near_optimum(seed, basis, 1e-8 * float(goal / trial) ** (1 / 3))


@pytest.mark.parametrize("basis", ["axes", "rotated"])
def test_a_loss_of_1e_26_through_the_oracle(basis):
    """The switch is not seen: the oracle's own loss and gradient have the digits asked for.

    The planted error is what plain sums give there: multiples of 2^-52, among them 0 in one of five cases or so.
    """
    worst = 0.0
    for seed in range(5):
        weights, target = with_loss(1e-26, seed, basis)
        loss, gradient = exact(weights, target)
        assert float(loss) == pytest.approx(1e-26, rel=0.01)
        value, slope = switched(weights, target)
        assert loss_error(value, loss) < 1e-6
        assert gradient_error(slope, gradient) < 1e-9
        noise, wrong = plain(weights, target)
        assert loss_error(noise, loss) > 0.99 and gradient_error(wrong, gradient) > 1e-2
        worst = max(worst, loss_error(noise, loss))
    assert worst > 1e8


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-100, 1e-200])
def test_a_unit_left_behind(size):
    """A weak unit far from all teachers, as one that a small start leaves behind, beside students that have arrived.

    Its own gradient, of the order of the others' residual, has all its digits too.
    """
    weights, target = near_optimum(5, "rotated", 1e-8)
    unit = np.random.default_rng(6).standard_normal(DIM)
    first, second = weights.first.at[-1].set(size * unit), weights.second.at[-1].set(size)
    # The student it replaces leaves its vector to the other one of its group.
    first = first.at[STUDENTS - 1 - TEACHERS].add(weights.first[-1])
    loss, gradient = exact(weights := tt.Weights(first, second), target)
    value, slope = grouped(weights, target)
    assert loss_error(value, loss) < 1e-6
    assert gradient_error(slope, gradient) < 1e-13
    largest = max(np.abs(gradient.first[-1]).max(), 1e-300)
    assert np.abs(slope.first[-1] - gradient.first[-1]).max() < 1e-12 * largest


def test_fewer_students_than_teachers():
    """A teacher without students, or with one that it shares: nothing to gain, nothing lost."""
    rng = np.random.default_rng(7)
    weights, target = random_network(rng, 1), random_network(rng, 2)
    loss, gradient = exact(weights, target)
    value, slope = grouped(weights, target)
    assert loss_error(value, loss) < 1e-13
    assert gradient_error(slope, gradient) < 1e-13


def test_products_of_matrices_that_cancel():
    """Against rational arithmetic: 100 bits of the largest term."""
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal(7), rng.standard_normal(7)
    right[-1] = -(left[:-1] @ right[:-1]) / left[-1]
    expected = sum(Fraction(a) * Fraction(b) for a, b in zip(left, right, strict=True))
    assert 0 < abs(expected) < 1e-14
    value = float(jax.jit(products)(jnp.asarray(left)[None, :], jnp.asarray(right)[:, None])[0, 0])
    assert abs(Fraction(value) - expected) < abs(expected) * 2.0**-52 + 1e-29


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_products_of_any_size(size):
    left, right = np.random.default_rng(4).standard_normal((2, 5, 5))
    found = np.asarray(products(jnp.asarray(size * left), jnp.asarray(right)))
    np.testing.assert_allclose(found, size * (left @ right), rtol=1e-12)
    assert not np.any(products(jnp.zeros((2, 3)), jnp.ones((3, 2))))


def test_what_is_left_of_a_row_after_a_multiple_of_another():
    """Against rational arithmetic, of rows that agree in thirteen digits."""
    rng = np.random.default_rng(5)
    x, share = rng.standard_normal((6, 4)), rng.standard_normal(6)
    y = x / share[:, None] * (1 + 1e-13 * rng.standard_normal((6, 4)))
    found = np.asarray(jax.jit(remainders)(x, share, y))
    for i, j in np.ndindex(x.shape):
        expected = Fraction(x[i, j]) - Fraction(share[i]) * Fraction(y[i, j])
        assert abs(Fraction(float(found[i, j])) - expected) <= abs(expected) * Fraction(2.0**-50)


def random_network(rng, units):
    return weights_of(rng.standard_normal((units, DIM)), rng.standard_normal((units, 1)))


def random_pair(seed):
    rng = np.random.default_rng(seed)
    return random_network(rng, STUDENTS), random_network(rng, TEACHERS)


def assert_same(one, two, tolerance):
    assert float(one[0]) == pytest.approx(float(two[0]), rel=tolerance)
    np.testing.assert_allclose(one[1].first, two[1].first, atol=tolerance * np.abs(two[1].first).max())
    np.testing.assert_allclose(one[1].second, two[1].second, atol=tolerance * np.abs(two[1].second).max())


@pytest.mark.parametrize("seed", range(20))
def test_equal_to_the_plain_form_far_from_the_optimum(seed):
    """Students anywhere, of either sign: obtuse to their teachers, groups without students."""
    weights, target = random_pair(seed)
    assert_same(grouped(weights, target), plain(weights, target), 1e-12)


def axis(index, size=1.0):
    return size * np.eye(DIM)[index]


def test_equal_to_the_plain_form_on_the_edges():
    """Students on another group's axis or opposite to one, equal students, equal, opposite, parallel, absent teachers,
    and rows of 1e-200."""
    first = [axis(0), axis(1, -2), axis(1, -2), axis(0, -1), axis(2, 1e-9) + axis(3), axis(4), axis(4, 1e-200), axis(5)]
    weights = weights_of(first, np.array([[1.0, -0.5, 0.7, 1.2, 0.3, 0.9, -1.0, 0.6]]).T)
    for second in (axis(1), axis(0, -3), axis(0, 2), axis(0, 0)):
        target = weights_of([axis(0), second, axis(2), axis(3)], np.array([[1.0, -0.4, 0.8, 1.1]]).T)
        assert_same(grouped(weights, target), plain(weights, target), 1e-13)


def test_any_assignment_gives_the_same(monkeypatch):
    """So nothing jumps where a student changes its group, or leaves it."""
    weights, target = random_pair(5)
    expected = grouped(weights, target)

    @jax.jit
    def assigned(group, member):
        with monkeypatch.context() as patch:
            patch.setattr(shared_kink, "nearest", lambda cos, axes: group)
            patch.setattr(shared_kink, "belongs", lambda rest, strength, teacher: member)
            form = grouped_form(weights, target, "relu")
        return form.loss(), form.gradient()

    rng = np.random.default_rng(6)
    for share in (0.0, 0.5, 0.5, 1.0, 1.0, 1.0):
        group, member = rng.integers(0, TEACHERS, STUDENTS), rng.random(STUDENTS) < share
        assert_same(assigned(jnp.asarray(group), jnp.asarray(member)), expected, 1e-12)


def test_the_order_of_units_does_not_matter():
    weights, target = near_optimum(6, "skew", 1e-6)
    students, masters = np.array([5, 0, 7, 2, 4, 1, 6, 3]), np.array([2, 0, 3, 1])
    value, slope = grouped(weights, target)
    moved = weights_of(weights.first[students], weights.second[students])
    other, turned = grouped(moved, weights_of(target.first[masters], target.second[masters]))
    assert float(other) == pytest.approx(float(value), rel=3e-9)  # 3e-15/error, as above
    np.testing.assert_allclose(turned.first, slope.first[students], atol=1e-13 * np.abs(slope.first).max())


def test_nothing_jumps_at_the_switch():
    """Toward an optimum, on one ray: plain far away, grouped near it. Where the plain one is used it has the digits
    that are promised: 11 of a loss and 10 of a gradient, less one for the sum of many terms."""
    (end, target), move = near_optimum(7, "rotated", 0.0), np.random.default_rng(7).standard_normal((STUDENTS, DIM))
    kinds = set()
    for error in np.geomspace(1e-8, 1e-1, 60):
        weights = tt.Weights(end.first + error * move, end.second)
        chosen, one, two = switched(weights, target), plain(weights, target), grouped(weights, target)
        bare, slope = bool(chosen[0] == one[0]), bool(jnp.all(chosen[1].first == one[1].first))
        assert bare or float(chosen[0]) == pytest.approx(float(two[0]), rel=1e-13)
        kinds |= {("loss", bare), ("gradient", slope)}
        if bare:
            assert float(one[0]) == pytest.approx(float(two[0]), rel=1e-10)
        if slope:
            np.testing.assert_allclose(one[1].first, two[1].first, atol=1e-9 * np.abs(two[1].first).max())
    assert len(kinds) == 4


def test_batches_choose_for_each_member():
    """One seed near its optimum and one far from it: each gets its own form."""
    close, target = near_optimum(8, "rotated", 1e-8)
    far = random_network(np.random.default_rng(8), STUDENTS)
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), close, far)
    loss, slope = jax.jit(jax.vmap(lambda w: switched(w, target)))(both)
    one, other = switched(close, target), switched(far, target)
    np.testing.assert_allclose(loss, [one[0], other[0]], rtol=1e-6)  # 3e-15/error
    np.testing.assert_allclose(slope.first[0], one[1].first, atol=1e-13 * np.abs(one[1].first).max())
    np.testing.assert_allclose(slope.first[1], other[1].first, atol=1e-14 * np.abs(other[1].first).max())


@pytest.mark.parametrize("start", [random_pair(9), near_optimum(9, "rotated", 1e-2)], ids=["anywhere", "close"])
def test_zero_rows_are_not_hidden(start):
    """nan if the unit is used, finite if its outgoing weight is zero; all else as in the plain form."""
    weights, target = start
    first = weights.first.at[1].set(0.0)
    for second in (weights.second, weights.second.at[1].set(0.0)):
        value, slope = grouped(tt.Weights(first, second), target)
        other, expected = plain(tt.Weights(first, second), target)
        assert float(value) == pytest.approx(float(other), rel=1e-12)
        np.testing.assert_array_equal(np.isnan(slope.first), np.isnan(expected.first))
        assert np.isnan(slope.first[1]).all() == bool(second[1, 0] != 0)
        np.testing.assert_allclose(slope.first, expected.first, atol=1e-12, equal_nan=True)
        np.testing.assert_allclose(slope.second, expected.second, atol=1e-12)


def test_hessian_is_the_derivative_of_the_grouped_gradient():
    """Central differences at angles of 1e-2 with steps of 1e-6: (1e-6/1e-2)^2 of the Hessian."""
    weights, target = near_optimum(10, "rotated", 1e-2)
    direction = jnp.asarray(np.random.default_rng(10).standard_normal((STUDENTS, DIM)))
    hessian = jax.jit(lambda w: oracle_of(target).hessian(w))(weights)[STUDENTS:, STUDENTS:]
    step = 1e-6
    slopes = [grouped(tt.Weights(weights.first + s * step * direction, weights.second), target)[1] for s in (1, -1)]
    numeric = (slopes[0].first - slopes[1].first) / (2 * step)
    np.testing.assert_allclose(hessian @ direction.ravel(), numeric.ravel(), atol=1e-6)


def test_which_activations_are_grouped():
    target = weights_of([[1.0, 0.0]], [[1.0]])
    pairs = {("relu", "relu"), ("abs", "abs"), ("half_abs", "half_abs")}
    for pair in pairs | {("relu", "linear"), ("abs", "relu"), ("erf", "erf"), ("linear", "linear")}:
        oracle = tt.PopulationOracle(student=pair[0], teacher=pair[1], target=target)
        assert oracle.on_groups == (pair in pairs)
    assert oracle_of(target, LEAKY).on_groups


def test_long_flow_reaches_the_cubic_law_with_its_constant():
    """One teacher, two students: L s^3 -> (8 pi^2/3) a^2 (1-a)^2, with a : 1-a the split of norms.

    At s = 1e8 the loss is 1e-24, eight decades below what plain sums can see, and angles are 1e-8. The law is reached
    like 1/s, so 1e-5 at s = 1e6 leaves the error of the solver, of the order of STRIDE^5.
    """
    problem = tt.Problem(
        inputs=tt.Gaussian(50),
        teacher=tt.TwoLayer("relu", first=[[1.0]]),
        student=tt.TwoLayer("relu", first=[[0.3, 0.1, 0.0], [0.1, 0.0, 0.2]], trains=("first",)),
    )
    names = ("loss", "first_norm")
    run = tt.flow(
        problem, until=1e8, solver="stiff", record=tt.Record(20, observables=names), stop=tt.Stop(gradient=0.0)
    )
    norms = np.asarray(run.first_norm)[0, -1]
    share = norms[0] / norms.sum()
    assert 0.1 < share < 0.9 and abs(share - 0.5) > 0.01
    late = np.asarray(run.time) > 3e6
    law = np.asarray(run.loss)[0, late] * np.asarray(run.time)[late] ** 3
    assert len(law) >= 3
    np.testing.assert_allclose(law, 8 * np.pi**2 / 3 * share**2 * (1 - share) ** 2, rtol=1e-4)


def test_opposite_students_of_uneven_lengths():
    """What a unit computes does not change if its row is longer and its outgoing weight is smaller in proportion.

    Long rows make the oracle take the grouped form far from any optimum. There two students that are exactly opposite
    leave nothing but rounding of an angle, and it must not be seen.
    """
    target = tt.Weights(jnp.asarray(np.random.default_rng(1).standard_normal((2, 4))), jnp.array([[1.0], [-0.5]]))
    careful = tt.PopulationOracle(student="relu", teacher="relu", target=target)
    draw = np.random.default_rng(0)
    first = draw.standard_normal((200, 3, 4)) * 2.0 ** draw.uniform(-5, 0.5, (200, 3, 1))
    first[:, 1] = -first[:, 0]
    second = draw.standard_normal((200, 3, 1))
    even = tt.Weights(jnp.asarray(first), jnp.asarray(second))
    factor = jnp.array([1.0, 1.0, 1e3])[None, :, None]
    ask = jax.jit(
        lambda oracle, places: jax.lax.map(lambda place: (oracle.loss(place), oracle.gradient(place)), places)
    )
    loss, slope = ask(careful.quick(), even)
    other, pull = ask(careful, tt.Weights(even.first * factor, even.second / factor))
    np.testing.assert_allclose(other, loss, rtol=1e-12)
    np.testing.assert_allclose(pull.first * factor, slope.first, atol=1e-12)
    np.testing.assert_allclose(pull.second / factor, slope.second, atol=1e-12)


def test_many_directions_take_tables_of_pairs_and_no_more():
    """Pairs x directions, of chords or of the pulls of residuals, would be 810,000 numbers for the students alone."""
    students, teachers, directions = 90, 10, 100
    blank = lambda units: tt.Weights(jnp.zeros((units, directions)), jnp.zeros((units, 1)))  # noqa: E731
    program = grouped.lower(blank(students), blank(teachers)).compile()
    assert program.memory_analysis().temp_size_in_bytes < 8 * 80 * students * (students + teachers)
