"""The constants of the T^-3 law of `relu_teachers`, against the loss itself, its flow, and closed forms."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tutelage._errors import BadInput
from tutelage.papers.relu_teachers.hessian import hessian
from tutelage.papers.relu_teachers.kernel import gradient, loss
from tutelage.papers.relu_teachers.local import (
    group_constant,
    groups_of,
    lojasiewicz,
    measured_constant,
    pair_constant,
    rate,
    rate_from,
    simplex_constant,
    simplex_energy,
)
from tutelage.papers.relu_teachers.slow import (
    SlowState,
    _drift,
    _unit,
    energy,
    force,
    shares_of,
    slow_levels,
    slow_state,
)
from tutelage.papers.relu_teachers.steps import Step


def network(state, time, norm=1.0):
    """The students of one teacher (axis 0) in a self-similar state at flow time `time`."""
    return norm * np.hstack([state.shares[:, None], state.across / time]), norm * np.eye(1, state.across.shape[1] + 1)


def residual(state):
    """|Z - force(Z)|/|Z|, zero for an exact solution."""
    size = np.linalg.norm(state.across)
    return float(np.linalg.norm(_drift(state.across, state.shares)) / size)


def growth(state):
    """The largest rate per unit of ln s at which a deviation grows; 0 (rotations) if the state attracts."""
    at, size = state.across, state.across.size
    # Central differences of a drift with bounded second derivatives: error of the order of 1e-6^2 and 1e-16/1e-6.
    nudges = 1e-6 * np.eye(size).reshape(size, *at.shape)
    pairs = [_drift(at + nudge, state.shares) - _drift(at - nudge, state.shares) for nudge in nudges]
    matrix = np.stack([pair.ravel() for pair in pairs]) / 2e-6
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])


def attracts(state):
    return growth(state) < 1e-6


def simplex_state(students):
    """The regular simplex of equal students."""
    shares = shares_of(np.ones(students))
    corners = np.linalg.svd(np.eye(students) - 1 / students)[0][:, : students - 1]
    return SlowState(shares, _unit(corners - corners.mean(0), shares))


def slow(shares, *, dim=None, seed=0):
    """`slow_state` from random rows; `dim` is the dimension of the inputs, and by default it does not bind."""
    columns = len(shares) - 1 if dim is None else min(dim - 1, len(shares) - 1)
    return slow_state(shares, np.random.default_rng(seed).standard_normal((len(shares), columns)))


def attractors(shares, starts):
    """The different self-similar states that random starts reach, by rising constant."""
    distinct = []
    for state in sorted((slow(shares, seed=seed) for seed in range(starts)), key=lambda state: state.constant):
        if attracts(state) and (not distinct or state.constant > distinct[-1].constant * (1 + 1e-6)):
            distinct.append(state)
    return distinct


def test_table_of_simplex_constants():
    table = {2: 1.644934, 3: 0.909478, 4: 0.513169, 5: 0.311723, 6: 0.201992, 8: 0.098100, 10: 0.054649, 20: 0.008089}
    for n, value in table.items():
        assert simplex_constant(n) == pytest.approx(value, abs=5.01e-7)
    assert simplex_constant(2) == pytest.approx(math.pi**2 / 6, rel=1e-14) and simplex_constant(1) == 0
    # For many equal students C(n) n^3 tends to 1/(27 A^2) with A = (sqrt 8 - 2)/(12 pi).
    assert simplex_constant(10**6) * 1e18 == pytest.approx(76.7, abs=0.05)
    with pytest.raises(BadInput, match="1 students"):
        simplex_energy(1)


@pytest.mark.parametrize("share", [0.5, 0.3, 0.1, 0.01])
def test_pairs_by_the_slow_flow(share):
    # Newton's method ends at rounding level; the constant is quadratic in what is left.
    assert slow([share, 1 - share]).constant == pytest.approx(pair_constant(share), rel=1e-11)
    assert group_constant([share, 1 - share], [[1.0], [-1.0]]) == pair_constant(share)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_simplex_by_the_slow_force(n):
    state = simplex_state(n)
    assert residual(state) < 1e-13 and state.constant == pytest.approx(simplex_constant(n), rel=1e-12)
    edges = state.across * n
    gaps = np.linalg.norm(edges[:, None] - edges[None], axis=-1)[np.triu_indices(n, 1)]
    assert np.ptp(gaps) < 1e-12 * gaps.max()


def test_the_simplex_attracts_up_to_five_students_only():
    for n in (2, 3, 4, 5):
        # 1e-9: central differences.
        assert abs(growth(simplex_state(n))) < 1e-8 and attracts(simplex_state(n))
    assert growth(simplex_state(6)) == pytest.approx(0.04626, abs=1e-5)
    assert growth(simplex_state(10)) == pytest.approx(0.2925, abs=1e-4)
    # Three equal students always find it; from four on there are other attractors, with a student on the teacher.
    assert [state.constant for state in attractors([1, 1, 1], starts=4)] == pytest.approx([simplex_constant(3)])
    four = [state.constant for state in attractors([1, 1, 1, 1], starts=4)]
    assert four == pytest.approx([0.511581, simplex_constant(4)], abs=1e-6)


def test_the_slow_force_is_the_slope_of_the_energy():
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.3, 0.2])
    across = rng.standard_normal((3, 2))
    across -= across.mean(0)
    found, width = np.zeros_like(across), 1e-6
    for index in np.ndindex(*across.shape):
        step = np.zeros_like(across)
        step[index] = width
        found[index] = (energy(across + step, shares) - energy(across - step, shares)) / (2 * width)
    # Central differences: 1e-12 f''' and 1e-16 f/width, with values of order ten.
    np.testing.assert_allclose(force(across, shares), found - found.mean(0), atol=1e-7)
    assert np.sum(across * force(across, shares)) == pytest.approx(3 * energy(across, shares))


@pytest.mark.parametrize("shares", [[0.5, 0.3, 0.2], [0.8, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1], [0.25] * 4])
def test_the_cubic_form_is_the_loss(shares):
    state = slow(shares)
    assert residual(state) < 1e-9 and attracts(state)
    errors = []
    for time in (1e2, 1e3):
        first, teacher = network(state, time, norm=2.0)
        errors.append(loss(first, teacher) * time**3 / 4 / state.constant - 1)
    # The next terms of the loss have two more powers of the slopes, some 1/time each: a factor 100 between the two.
    # At time 1e3 the plain sum has lost 1e-16/1e-9 of its digits.
    assert abs(errors[0]) < 0.02 and abs(errors[1]) < 0.02 * abs(errors[0]) + 1e-6


def test_the_flow_of_the_network_reaches_the_constant():
    state = slow([0.5, 0.35, 0.15])
    first, teacher = network(state, 50.0)
    first[:, 1:] *= np.array([[1.2], [0.8], [1.1]])  # off the slow manifold, and not self-similar

    def rates(_, flat):
        return -gradient(flat.reshape(first.shape), teacher).ravel()

    def bends(_, flat):
        return -hessian(flat.reshape(first.shape), teacher)

    done = solve_ivp(rates, (50.0, 2e4), first.ravel(), method="Radau", jac=bends, rtol=1e-7, atol=1e-13)
    last = done.y[:, -1].reshape(first.shape)
    target = measured_constant(last, teacher)
    seen = rate_from(np.linalg.norm(gradient(last, teacher)), loss(last, teacher))
    # Loss near 1e-13: its plain sum is good to 1e-3, the slow state to (50/2e4)^0.39 of the deviation, squared.
    assert float(seen) == pytest.approx(rate(target), rel=5e-3)
    assert target == pytest.approx(slow(last[:, 0]).constant, rel=1e-6)


def test_students_of_a_network_leave_the_simplex_at_the_stated_rate():
    state = simplex_state(6)
    nudge = np.random.default_rng(1).standard_normal(state.across.shape)
    start = slow_turn(state, nudge)
    first, teacher = network(SlowState(state.shares, state.across + 1e-3 * start), 100.0)

    def rates(_, flat):
        return -gradient(flat.reshape(first.shape), teacher).ravel()

    def bends(_, flat):
        return -hessian(flat.reshape(first.shape), teacher)

    span = (100.0, 1000.0)
    done = solve_ivp(rates, span, first.ravel(), method="Radau", jac=bends, rtol=1e-8, atol=1e-13)
    before, after = (uneven(done.y[:, at].reshape(first.shape)) for at in (0, -1))
    # Corrections are of the order of the slopes (0.03 at first) times the rate itself.
    assert math.log(after / before) / math.log(10) == pytest.approx(growth(state), rel=0.04)


def slow_turn(state, nudge):
    """The part of a deviation that grows fastest, by the power method on the cubic flow; of the size of the state."""
    for _ in range(400):
        there = [state.across + sign * 1e-6 * nudge - state.across.mean(0) for sign in (1, -1)]
        moved = [at - force(at, state.shares) for at in there]
        nudge = nudge - nudge.mean(0) + 0.7 * (moved[0] - moved[1]) / 2e-6
        nudge = nudge / np.linalg.norm(nudge)
    return nudge * np.linalg.norm(state.across)


def uneven(first):
    """The spread of the distances between slopes, relative to their mean; zero on a simplex."""
    slopes = first[:, 1:] / first[:, :1]
    gaps = np.linalg.norm(slopes[:, None] - slopes[None], axis=-1)[np.triu_indices(len(first), 1)]
    return gaps.std() / gaps.mean()


def test_levels_before_the_constant_is_reached():
    state = slow([0.5, 0.3, 0.2])
    times = np.array([0.0, 1.0, 9.0])
    # From Z at s = 1 the level is C/s^3.
    np.testing.assert_allclose(slow_levels([0.5, 0.3, 0.2], state.across, times), state.constant / (1 + times) ** 3)


def test_small_dimensions_have_other_constants():
    flat = slow([1, 1, 1], dim=2)
    assert flat.across.shape == (3, 1) and residual(flat) < 1e-12
    # On a line: slopes +Y, 0, -Y by symmetry, E = (1/(12 pi))(2 (1/9)(8 + 1 + 1) - 2 (2/3)) Y^3 = c Y^3 and
    # |Z|^2 = 2 Y^2/9 = 3 E fixes Y = 2/(27 c).
    c = (20 / 9 - 4 / 3) / (12 * math.pi)
    assert flat.constant == pytest.approx(c * (2 / (27 * c)) ** 3, rel=1e-10)
    assert slow([1, 1, 1], dim=3).constant == pytest.approx(simplex_constant(3), rel=1e-10)


def test_sums_of_groups():
    assert group_constant([1.0], [[0.0]]) == 0
    assert rate(0.0) == math.inf and lojasiewicz(0.0) == math.inf


@pytest.mark.parametrize(("k", "n"), [(1, 4), (2, 3), (4, 3)])
def test_lojasiewicz_in_both_forms(k, n):
    form = 3 * simplex_energy(n) ** (1 / 3) * math.sqrt(n) * k ** (-1 / 6) * 2.0 ** (-1 / 3)
    assert lojasiewicz(k * simplex_constant(n), 2.0) == pytest.approx(form, rel=1e-13)


def test_predictions_seen_in_runs():
    # (k, m) = (1, 4), (2, 6), (4, 12): gradient ratios; c_hat for (2,4), (2,6), (4,8), (4,12).
    ratios = [lojasiewicz(k * simplex_constant(m // k)) for k, m in ((1, 4), (2, 6), (4, 12))]
    assert ratios == pytest.approx([1.936, 1.568, 1.397], abs=5e-4)
    rates = [rate(k * simplex_constant(m // k)) for k, m in ((2, 4), (2, 6), (4, 8), (4, 12))]
    assert rates == pytest.approx([0.672, 0.819, 0.534, 0.650], abs=1e-3)


def test_lemma_4_tends_to_three_losses():
    first, teacher = network(simplex_state(3), 300.0)
    step = Step(first, teacher, 0.1)
    # r = 0 here and the students are balanced; what is left is of the order of the slopes, 1/300 times ten.
    assert step.descent_inner / loss(first, teacher) == pytest.approx(3, abs=0.01)


def test_groups_of_students():
    first = np.array([[0.5, 0.01], [0.02, 1.0], [0.5, -0.01]])
    groups = groups_of(first, 2.0 * np.eye(2))
    assert [group.tolist() for group in groups] == [[0.5, 0.5], [1.0]]
    assert measured_constant(first, np.eye(2)) == pytest.approx(pair_constant(0.5))
    with pytest.raises(BadInput, match="no student"):
        measured_constant(first[[0, 2]], np.eye(2))


def test_constant_of_measured_slopes_in_any_frame():
    state = slow([0.5, 0.3, 0.2])
    first, teacher = network(state, 1e4, norm=3.0)
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((7, 7)))[0]
    wide = (np.pad(first, ((0, 0), (0, 4))) @ turn, np.pad(teacher, ((0, 0), (0, 4))) @ turn)
    # A rotation costs 1e-16 against slopes of 1e-4.
    assert measured_constant(*wide) == pytest.approx(state.constant, rel=1e-9)


def test_bad_shares():
    with pytest.raises(BadInput, match="positive"):
        slow_state([0.5, -0.1], [[1.0], [-1.0]])
    with pytest.raises(BadInput, match="one line"):
        slow_state([0.5, 0.5], np.zeros((2, 1)))
