"""Formulas of `both_layers` against values computed by other means, and against plain gradient descent."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.papers.both_layers import constants
from tutelage.papers.both_layers.batch import linear_target
from tutelage.papers.both_layers.inequalities import (
    Contraction,
    loss_root,
    loss_slack,
    pl_curvature,
    pl_root,
    pl_slack,
    sharp_loss_lower,
    sharp_pl,
    stationarity_gap,
    worst_target,
)
from tutelage.papers.both_layers.laws import failure_law, plateau_level, success_law
from tutelage.papers.both_layers.reduced import local_rates, scalar_loss, scalar_map
from tutelage.papers.both_layers.start import (
    alignment_time,
    both_signs,
    growing_modes,
    growth_time,
    logarithmic_start,
)

TARGET = np.array([1.0, 0.0, 0.0])


@eqx.filter_jit
def gradient(target, weights):
    return linear_target(target).gradient(weights)


@eqx.filter_jit
def loss(target, weights):
    return linear_target(target).loss(weights)


def descend(second, first, target, step, steps):
    """Plain gradient descent, one jitted gradient at a time."""
    second = np.asarray(second, float).reshape(len(first), -1)
    for _ in range(steps):
        slope = gradient(jnp.asarray(target), tt.Weights(jnp.asarray(first), jnp.asarray(second)))
        first, second = first - step * np.asarray(slope.first), second - step * np.asarray(slope.second)
    return second, first


def test_constants_outside_double_range_are_kept_as_logarithms():
    # sigma_0 = 1/(8 e^{2 alpha}) with alpha = 65/tan(pi/20) = 410.394...
    assert constants.ALPHA == pytest.approx(410.394, abs=5e-4)
    assert constants.LOG_SIGMA0 / math.log(10) == pytest.approx(-357.37, abs=5e-3)
    assert constants.C9 == pytest.approx(404.080, abs=5e-4) and constants.CHAT4 == pytest.approx(0.0012183, abs=5e-8)


def linear_start(second, first, target, *, step, tau, log_scale=0.0):
    """Both layers after `tau` steps of the linearised dynamics, from `exp(log_scale)` times the given weights."""
    shape = np.shape(second)
    first, target = np.asarray(first, float), np.atleast_2d(np.asarray(target, float))
    second = np.asarray(second, float).reshape(len(first), len(target))
    left, sizes, right = np.linalg.svd(target, full_matrices=False)
    rate = step * sizes / 2
    grown = np.exp(log_scale + tau * np.log1p(rate)) * (second @ left + first @ right.T) / 2
    shrunk = np.exp(log_scale + tau * np.log1p(-rate)) * (second @ left - first @ right.T) / 2
    still = np.exp(log_scale) * (first - (first @ right.T) @ right)
    return ((grown + shrunk) @ left.T).reshape(shape), (grown - shrunk) @ right + still


def test_linear_start_follows_descent():
    rng = np.random.default_rng(0)
    second, first = 1e-8 * rng.standard_normal((2, 1)), 1e-8 * rng.standard_normal((2, 3))
    at = descend(second, first, TARGET, 0.1, 150)
    predicted = linear_start(second, first, TARGET, step=0.1, tau=150)
    # The weights end near 1e-5: the terms left out are their squares, 1e-10 relative.
    for found, expected in zip(at, predicted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-20)


def test_linear_start_with_several_outputs_follows_descent():
    rng = np.random.default_rng(1)
    target = np.array([[2.0, 0.0, 0.0], [0.3, 0.5, 0.0]])
    second, first = 1e-8 * rng.standard_normal((3, 2)), 1e-8 * rng.standard_normal((3, 3))
    at = descend(second, first, target, 0.1, 40)
    for found, expected in zip(at, linear_start(second, first, target, step=0.1, tau=40), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-20)


def test_logarithmic_start_agrees_with_the_linear_one_where_both_exist():
    rng = np.random.default_rng(6)
    second, first = rng.standard_normal(3), rng.standard_normal((3, 4))
    target = np.array([0.5, -1.0, 0.0, 0.2])
    v, w = linear_start(second, first, target, step=0.1, tau=60, log_scale=-20.0)
    state = logarithmic_start(second, first, target, step=0.1, tau=60, log_scale=-20.0)
    np.testing.assert_allclose(state.side * np.exp(state.log_second), v, rtol=1e-12)
    along = w @ target / np.linalg.norm(target)
    across = np.linalg.norm(w - np.outer(along, target / np.linalg.norm(target)), axis=1)
    np.testing.assert_allclose(state.angle, np.arctan2(across, state.side * along), rtol=1e-10)
    assert np.all(np.log(np.abs(np.sum(w**2, axis=1) - v**2)) <= state.log_imbalance + 1e-9)


def test_growing_modes_and_the_sign_rule():
    modes = growing_modes([[0.1, -0.2], [0.1, -0.2]], [[[0.0, 1], [0.1, 1]], [[0.0, 1], [0.3, 1]]], [1.0, 0.0])
    np.testing.assert_allclose(modes, [[0.1, -0.1], [0.1, 0.1]])
    assert both_signs(modes).tolist() == [True, False]


def test_alignment_time_of_the_symmetric_start():
    # From v = |w_perp|, s = 0, s(tau) is sinh(tau ln(1+m)) up to O(m): the law is asinh(1/tan c4)/ln(1+m) = 52.1.
    assert alignment_time([1.0], [[0.0, 1.0]], [1.0, 0.0], step=0.1) == 53
    assert math.asinh(1 / math.tan(math.pi / 20)) / math.log(1.05) == pytest.approx(52.1, abs=0.01)


def test_alignment_time_is_seen_in_descent():
    rng = np.random.default_rng(3)
    second, first = 1e-8 * np.array([[1.0], [-1.2]]), 1e-8 * rng.standard_normal((2, 3))
    predicted = alignment_time(second, first, TARGET, step=0.1)
    angles = []
    for steps in (predicted - 1, predicted):
        _, at = descend(second, first, TARGET, 0.1, steps)
        side = np.sign(growing_modes(second, first, TARGET))
        angles.append(max(math.atan2(math.hypot(*w[1:]), s * w[0]) for w, s in zip(at, side, strict=True)))
    assert angles[0] > math.pi / 20 >= angles[1]


def test_alignment_time_counts_from_the_last_violation():
    # It starts inside the cone with v of the wrong sign, leaves it while v turns round, and comes back.
    second, first = [-0.95], [[1.0, 0.15]]
    time = alignment_time(second, first, [1.0, 0.0], step=0.1)
    _, at = linear_start(second, first, [1.0, 0.0], step=0.1, tau=0)
    assert math.atan2(0.15, at[0, 0]) < math.pi / 20 and time > 50


def test_a_neuron_without_growing_mode_is_refused():
    with pytest.raises(BadInput, match="never aligns"):
        alignment_time([-1.0], [[1.0, 0.5]], [1.0, 0.0], step=0.1)


def test_growth_time_is_logarithmic_in_the_scale():
    times = [growth_time([s, -s], [[0, s], [0, s]], [1.0, 0.0], step=0.1) for s in (1e-4, 1e-8)]
    assert times[1] - times[0] == pytest.approx(math.log(1e4) / math.log(1.05), rel=1e-12)
    assert growth_time([1.0], [[0.0, 1.0]], [1.0, 0.0], step=0.1, log_scale=math.log(1e-8)) == pytest.approx(times[1])


def test_scalar_map_tends_to_the_logistic_curve_at_first_order():
    # Euler's method for z' = z(1-z^2)/2: halving the step halves the error.
    end = 1 / math.sqrt(1 + (1 / 0.1**2 - 1) * math.exp(-8))
    errors = [abs(scalar_map(0.1, round(8 / step), step=step)[-1] - end) for step in (0.02, 0.01, 0.005)]
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1) and errors[1] / errors[2] == pytest.approx(2, abs=0.05)


def test_scalar_loss_is_the_loss_of_aligned_neurons():
    z = np.array([0.4, 0.9])
    pair = tt.Weights(jnp.array([[z[0], 0, 0], [-z[1], 0, 0]]), jnp.array([[z[0]], [-z[1]]]))
    assert float(loss(jnp.asarray(TARGET), pair)) == pytest.approx(float(scalar_loss(z)), rel=1e-14)


def test_local_rates_at_an_unbalanced_optimum():
    across, along = local_rates(0.8, 1.25, step=0.05)
    assert across == pytest.approx(0.984) and along == pytest.approx(0.9449375)


def test_rescaling_maps_descent_to_descent():
    rng = np.random.default_rng(4)
    second, first = rng.standard_normal((2, 1)), rng.standard_normal((2, 3))
    plain = descend(second, first, TARGET, 0.1, 20)
    root = math.sqrt(7.0)
    scaled = descend(root * second, root * first, 7.0 * np.asarray(TARGET), 0.1 / 7.0, 20)
    for small, large in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(large, root * small, rtol=1e-12)


def test_success_laws():
    assert [success_law(k) for k in (2, 3, 4, 5)] == [0.5, 0.75, 0.875, 0.9375]
    assert [round(failure_law(d), 3) for d in (2, 3, 5, 8)] == [0.25, 0.165, 0.073, 0.022]
    assert failure_law(60) < 2.0**-28


def test_plateau_level_is_the_loss_of_three_neurons_at_120_degrees():
    turn = np.array([0, 2, 4]) * np.pi / 3
    directions = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    losses = []
    for size in np.linspace(0.5, 1.5, 201):
        weights = tt.Weights(jnp.asarray(np.sqrt(size) * directions), jnp.asarray(np.sqrt(size) * directions))
        losses.append(float(loss(jnp.eye(2), weights)))
    # A parabola through a grid of spacing 0.005 is read to about its curvature times spacing^2/8.
    assert min(losses) == pytest.approx(plateau_level(), abs=1e-5) and plateau_level() == pytest.approx(
        0.15825, abs=5e-6
    )


FIGURE_4 = {0.0: 0, 0.5: -0.001950, 1.0: -0.003405, math.pi / 2: 0.003276, 2.0: 0.013649, 2.5: 0.016395, 3.0: 0.001954}
FIGURE_5 = {0.0: -0.1, 0.5: -0.069742, math.pi / 2: 0.040845, 2.0: 0.047661, 2.5: 0.026328, math.pi: 0.0}


@pytest.mark.parametrize(("function", "values"), [(pl_slack, FIGURE_4), (loss_slack, FIGURE_5)])
def test_figures_4_and_5(function, values):
    for theta, value in values.items():
        assert float(function(theta)) == pytest.approx(value, abs=6e-7)


def test_extrema_and_roots_of_figures_4_and_5():
    extrema = (pl_slack, 0, 0.928), (lambda t: -pl_slack(t), 0, 2.330), (lambda t: -loss_slack(t), 0.1, 0.6 * math.pi)
    for function, low, place in extrema:
        grid = np.linspace(low, math.pi, 10**5)
        assert grid[np.argmin(function(grid))] == pytest.approx(place, abs=1e-3)
    assert float(pl_slack(0.928)) == pytest.approx(-0.003471, abs=1e-6)
    assert float(pl_slack(2.330)) == pytest.approx(0.017741, abs=1e-6)
    slope = np.diff(loss_slack(0.6 * math.pi + np.array([-1e-4, 0.0, 1e-4])))
    assert slope[0] > 0 > slope[1] and slope[0] == pytest.approx(-slope[1], rel=1e-2)
    assert pl_root() == pytest.approx(1.39792, abs=5e-6) and loss_root() == pytest.approx(1.08666, abs=5e-6)


def test_sharp_constants():
    assert sharp_pl() == pytest.approx(0.0826592, abs=5e-8)
    assert 1 / sharp_loss_lower(math.pi / 2) == pytest.approx(11.008, abs=5e-4)
    grid = sharp_loss_lower(np.linspace(math.pi / 2, 3.1, 200))
    assert np.all(np.diff(grid) > 0) and grid[0] == pytest.approx((math.pi / 2 - 1) / (2 * math.pi))
    assert np.min(pl_curvature(np.linspace(math.pi / 2, math.pi, 100))) == pytest.approx(0.0353, abs=1e-4)


@pytest.mark.parametrize(("theta", "rho"), [(1.1, 0.7), (2.0, 1.0), (2.6, 3.0)])
def test_slacks_are_minima_over_the_target(theta, rho):
    """Random targets never go below the closed form, and the stated minimiser attains it."""
    first = np.array([[rho, 0.0, 0.0], [math.cos(theta), math.sin(theta), 0.0]])
    weights = tt.Weights(jnp.asarray(first), jnp.array([[1.0], [-1.0]]))

    def slacks(target):
        value = float(loss(jnp.asarray(target), weights))
        slope = np.asarray(gradient(jnp.asarray(target), weights).first)
        error = np.sum((first[0] - target) ** 2) + np.sum((first[1] + target) ** 2)
        return float(np.sum(slope**2)) - 0.05 * value, value - 0.05 * error

    rng = np.random.default_rng(5)
    seen = np.array([slacks(rng.standard_normal(3)) for _ in range(50)])
    assert np.all(seen[:, 0] >= float(pl_slack(theta, rho)) - 1e-12)
    middle = (first[0] - first[1]) / 2
    if rho == 1.0:
        assert slacks(middle)[1] == pytest.approx(float(loss_slack(theta)), abs=1e-13)
    best = np.append(worst_target(theta, rho), 0.0)
    assert slacks(best)[0] == pytest.approx(float(pl_slack(theta, rho)), abs=1e-14)


def test_stationarity_gap_vanishes_only_at_stationary_directions():
    assert stationarity_gap([[[1.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]]) == pytest.approx(0.0)
    assert stationarity_gap([[1.0, 0.0], [0.0, 1.0]]) == pytest.approx((math.pi / 2 - 1) / (2 * math.pi) * math.sqrt(2))


def test_contraction_of_the_last_phase():
    bound = Contraction()
    assert bound.largest_deviation == pytest.approx(7.7e-4, abs=1e-5) and bound.rate == pytest.approx(8e-4, abs=1e-5)
    assert bound.factor(bound.largest_step) == pytest.approx(1 - bound.rate * bound.largest_step)
    assert Contraction(deviation=2 * bound.largest_deviation).linear < 0
