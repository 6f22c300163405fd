"""Stationary points, their spectra, the classifier, pairs and lines of `both_layers`, against the exact oracle."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tutelage._errors import BadInput
from tutelage.papers.both_layers.batch import gradients, hessians, losses, network
from tutelage.papers.both_layers.classify import classify, nullity
from tutelage.papers.both_layers.landscape import (
    Kind,
    StationaryPoint,
    global_minimum,
    nonstrict_saddle,
    on_the_line,
    one_sided,
    paired_minimum,
    two_neurons,
)
from tutelage.papers.both_layers.pairs import pair_up
from tutelage.papers.both_layers.slices import (
    descent_coefficient,
    escape_correction,
    escape_rate,
    escape_steps,
    escape_time,
    line_slice,
    valley_loss,
)

A7 = np.array([0.6, -0.8, 0.3, 0.0, 1.1, -0.2, 0.5])
BASIS = np.random.default_rng(7).standard_normal((3, 3))


def values(second, first, target):
    """Loss and gradient norm of one network."""
    weights = network(np.asarray(second)[None], np.asarray(first)[None])
    target = jnp.atleast_2d(jnp.asarray(target))
    slope = gradients(target, weights)
    norm = math.sqrt(float(jnp.sum(slope.first**2) + jnp.sum(slope.second**2)))
    return float(losses(target, weights)[0]), norm


def hessian_of(point):
    weights = network(point.second[None], point.first[None])
    return np.asarray(hessians(jnp.asarray(point.target), weights)[0])


SMOOTH = {
    "global k=2": global_minimum(A7, (0.7, -1.4), (1.0, 1.0)),
    "global k=4": global_minimum(A7, (0.7, 1.2, -1.4, 0.5), (0.4, 0.6, 1.3, -0.3)),
    "saddle c=0.5": nonstrict_saddle(A7, 0.5, 0.8, 1.7),
    "saddle c=2": nonstrict_saddle(A7, 2.0, 1.3, 0.6),
    "saddle c=-1.5": nonstrict_saddle(A7, -1.5, 1.0, 1.0),
    "saddle c=-3": nonstrict_saddle(A7, -3.0, 0.9, 1.1),
    "saddle k=4": one_sided(A7, (1.0, 2.0, -0.5, 0.4), (0.9, 0.4, -0.4, 0.1)),
    "spurious k=2": one_sided(A7, (1.0, 2.0), (0.3, 0.7)),
    "spurious k=4, other side": one_sided(A7, (-1.0, -2.0, -0.3, -0.7), (0.3, 0.1, 0.2, 0.4)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_families_are_stationary_with_the_stated_level_and_spectrum(name):
    point = SMOOTH[name]
    loss, norm = values(point.second, point.first, point.target)
    hessian = hessian_of(point)
    size = float(np.sum(A7**2))
    assert norm < 1e-13 and loss == pytest.approx(point.level * size, abs=1e-14)
    found = np.linalg.eigvalsh(hessian)
    # Eigenvalues of a symmetric matrix move by at most the norm of its rounding error.
    np.testing.assert_allclose(found, point.eigenvalues, atol=1e-13 * np.max(np.abs(found)) * len(found))
    assert nullity(hessian) == point.nullity


def test_multiplicities_of_the_saddle_are_those_of_the_paper():
    # D.1: 0 with multiplicity d+2, (v1^2+v2^2)/2 with d-1, and one more.
    point = nonstrict_saddle(A7, 2.0, 1.3, 0.6)
    assert [count for _, count in point.spectrum] == [7 + 2, 7 - 1, 1]


def test_the_family_is_not_stationary_between():
    second, first = two_neurons(A7, -0.5)
    assert values(second, first, A7)[1] > 0.1
    with pytest.raises(BadInput, match="c > 0 or c < -1"):
        nonstrict_saddle(A7, -0.5)


def test_the_limit_in_the_caption_of_figure_1_is_not_stationary():
    # The caption has (a, 2a); the saddle is (2a, a).
    a = np.eye(7)[0]
    for first, level, slope in (([a, 2 * a], 1.25, math.sqrt(2)), ([2 * a, a], 0.25, 0.0)):
        weights = network([[1.0, -1.0]], [first])
        assert float(losses(jnp.asarray(a[None]), weights)[0]) == pytest.approx(level)
        found = np.linalg.norm(gradients(jnp.asarray(a[None]), weights).first)
        assert found == pytest.approx(slope, abs=1e-15)


def with_neuron_at_origin(point):
    """A one-sided point with one more neuron at (0, 0): stationary at level 1/4, a saddle, not twice differentiable."""
    second, first = (np.pad(x, ((0, 1), (0, 0))) for x in (point.second, point.first))
    return StationaryPoint(Kind.SADDLE, second, first, point.target, point.level)


def test_a_neuron_at_the_origin_opens_a_way_down():
    point = with_neuron_at_origin(one_sided(A7, (1.0, 2.0), (0.3, 0.7)))
    first, second = point.first.copy(), point.second.copy()
    for h in (1e-2, 1e-3):
        first[2], second[2] = -h * A7, -h
        drop = np.sum(A7**2) / 4 - values(second, first, A7)[0]
        # The degree-two term v f(-a, w) = -h^2 |a|^2/2, with the sign that lowers the loss.
        assert drop == pytest.approx(h**2 * np.sum(A7**2) / 2, rel=2 * h)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_paired_minimum_has_nullity_r_squared_plus_r(outputs):
    rng = np.random.default_rng(outputs)
    basis = np.eye(outputs) + 0.3 * rng.standard_normal((outputs, outputs))
    point = paired_minimum(rng.standard_normal((outputs, 7)), basis, np.full(outputs, 1.3))
    loss, norm = values(point.second, point.first, point.target)
    hessian = hessian_of(point)
    assert norm < 1e-12 and abs(loss) < 1e-13 and nullity(hessian) == outputs**2 + outputs


def test_bad_shares_are_refused():
    with pytest.raises(BadInput, match="sum to 1"):
        global_minimum(A7, (1.0, -1.0), (1.0, 0.9))
    with pytest.raises(BadInput, match="one side"):
        one_sided(A7, (1.0, -1.0), (0.5, 0.5))
    with pytest.raises(BadInput, match="non-zero v"):
        on_the_line(A7, (1.0, 0.0), (0.5, 0.5))
    with pytest.raises(BadInput, match="invertible"):
        paired_minimum(np.eye(2), np.ones((2, 2)))


@pytest.mark.parametrize("name", [*SMOOTH, "origin neuron"])
def test_classifier_names_every_family(name):
    point = SMOOTH[name] if name in SMOOTH else with_neuron_at_origin(SMOOTH["spurious k=2"])
    alive = np.any(point.first != 0, axis=1)
    loss, norm = values(point.second[alive], point.first[alive], point.target)
    assert classify(point.second, point.first, A7, loss=loss, gradient_norm=norm) is point.kind


def test_classifier_on_the_rest():
    second, first = two_neurons(A7, -0.5)
    loss, norm = values(second, first, A7)
    assert classify(second, first, A7, loss=loss, gradient_norm=norm) is Kind.NONE
    assert classify(second, first, A7, loss=loss, gradient_norm=math.nan) is Kind.NONE
    half = float(np.sum(A7**2)) / 2
    assert classify(np.zeros((2, 1)), np.zeros((2, 7)), A7, loss=half, gradient_norm=0.0) is Kind.ORIGIN
    assert classify(second, first, A7, loss=0.3 * half, gradient_norm=0.0) is Kind.OTHER
    with pytest.raises(BadInput, match="one output"):
        classify(np.ones((2, 2)), first, A7, loss=0.0, gradient_norm=0.0)


@pytest.mark.parametrize("size", [1e-2, 1e-5])
def test_classifier_knows_a_small_neuron_by_its_side(size):
    """A unit whose growing mode was small ends small; beside its own side it is part of a minimum, else of a saddle."""
    for sign, kind in ((1.0, Kind.SPURIOUS), (-1.0, Kind.NONSTRICT)):
        second = np.array([1.0, sign * size])
        first = np.array([[1.0 - sign * size**2, 0.0, 0.0], [size, 0.1 * size if size < 1e-4 else 1e-8, 0.0]])
        first[1, 1] = min(first[1, 1], 1e-8)
        assert classify(second, first, np.eye(3)[0], loss=0.25, gradient_norm=1e-9) is kind
    first[1, 1] = 1e-6
    assert classify(second, first, np.eye(3)[0], loss=0.25, gradient_norm=1e-9) is (Kind.OTHER)


def test_line_slice_is_the_loss():
    rng = np.random.default_rng(0)
    alpha = rng.uniform(-2, 3, (200, 2))
    first = alpha[:, :, None] * np.array([1.0, 0.0])
    found = losses(jnp.array([[1.0, 0.0]]), network(np.tile([1.0, -1.0], (200, 1)), first))
    np.testing.assert_allclose(np.asarray(found), line_slice(*alpha.T), atol=1e-14)


@pytest.mark.parametrize("same_sign", [False, True])
def test_valley_loss_is_the_loss_on_its_slice(same_sign):
    rng = np.random.default_rng(1)
    first = rng.standard_normal((200, 2, 2))
    a = np.array([1.0, 0.0])
    sign = 1.0 if same_sign else -1.0
    first[:, 1] = sign * (a - first[:, 0])
    found = losses(jnp.asarray(a[None]), network(np.tile([1.0, sign], (200, 1)), first))
    np.testing.assert_allclose(np.asarray(found), valley_loss(first, a, same_sign=same_sign), rtol=1e-12)


@pytest.mark.parametrize("c", [0.5, 2.0, -1.5])
def test_cubic_descent(c):
    eps = 1e-2
    first = np.outer([c + 1, c], np.eye(7)[0]) + eps * np.eye(7)[1]
    found = 0.25 - values([[1.0], [-1.0]], first, np.eye(7)[0])[0]
    # The next order of g(psi) is a relative psi^2/10 and the angle is near eps/(c(c+1)).
    assert found / eps**3 == pytest.approx(descent_coefficient(c), rel=1e-2)


def test_escape_rate_and_time():
    assert 1 / escape_rate(1.0, 1.0, 1.0) == pytest.approx(16 * math.pi)
    assert 1 / escape_rate(2.0, 0.5, 2.0, target=3.0) == pytest.approx(2 * math.pi * 36 * 3 * (4 + 0.25))
    assert escape_correction(1.0) == pytest.approx(9 / (8 * math.pi)) == escape_correction(-2.0)
    assert escape_steps(0.1, 1.0, step=0.01) == pytest.approx(100 * escape_time(0.1, 1.0))


@pytest.mark.parametrize(("c", "v"), [(1.0, (1.0, 1.0)), (-2.0, (0.7, 1.1)), (0.5, (1.2, 0.8))])
def test_the_time_of_escape_is_that_of_the_flow_up_to_a_constant(c, v):
    """By the flow, both layers learning: from ten times nearer what misses the logarithm is off by kappa ln 10 more."""
    misses = {}
    for eps in (0.01, 0.001):
        missed = [time(eps, c, *v) - flow_escape(c, v, eps) for time in (escape_time, leading)]
        misses[eps] = np.array(missed) * escape_rate(c, *v)
    drift, law = np.abs(misses[0.001] - misses[0.01]), escape_correction(c, *v) * math.log(10)
    assert drift[0] < 0.02 * law + 0.04 and drift[1] > 0.9 * law


def leading(eps, c, *v):
    return 1 / (escape_rate(c, *v) * eps)


def flow_escape(c, v, eps):
    """When the flow from a shift of eps falls below a loss of 0.2, in the plane, by the formulas (9), (11) and (12)."""

    def slopes(y):
        second, first = y[:2] * [1, -1], y[2:].reshape(2, 2)
        norms = np.linalg.norm(first, axis=1)
        units = first / norms[:, None]
        apart, together = (np.linalg.norm(units[0] + s * units[1]) for s in (-1, 1))
        theta = 2 * math.atan2(apart, together)
        # f(w, w') = w.w'/2 + |w||w'| g(theta)/(2 pi), so that nothing cancels at small angles.
        psi = math.sin(theta)
        one = first[1] / 2 + (norms[1] * psi * units[0] - theta * first[1]) / (2 * math.pi)
        other = first[0] / 2 + (norms[0] * psi * units[1] - theta * first[0]) / (2 * math.pi)
        pulls = np.stack([second[0] * first[0] / 2 + second[1] * one, second[1] * first[1] / 2 + second[0] * other])
        pulls -= np.array([0.5, 0.0])
        return second, first, pulls

    def speed(_, y):
        second, first, pulls = slopes(y)
        return np.concatenate([-np.sum(first * pulls, axis=1) * [1, -1], -(second[:, None] * pulls).ravel()])

    def left(_, y):
        loss = losses(jnp.eye(1, 2), network(y[None, :2] * [1, -1], y[2:].reshape(1, 2, 2)))
        return float(loss[0]) - 0.2

    left.terminal = True
    begin = np.array([*v, (c + 1) / v[0], eps / v[0], c / v[1], eps / v[1]])
    found = solve_ivp(speed, (0, 2 * leading(eps, c, *v)), begin, "LSODA", rtol=1e-8, atol=1e-11, events=left)
    return found.t_events[0][0]


def test_pair_finder_sees_through_a_permutation():
    rng = np.random.default_rng(2)
    point = paired_minimum(rng.standard_normal((3, 6)), BASIS, scales=[1.0, 1.1, 0.8])
    order = rng.permutation(6)
    found = pair_up(point.second[order], point.first[order], point.target)
    assert found.mutual and sorted(order[found.partner]) == list(range(6))
    assert np.all((order[found.partner] - order) % 6 == 3)
    assert max(*found.first_angle, *found.second_angle) < 1e-15 and found.residual < 1e-13
    gaps = np.sort(np.abs(np.linalg.norm(BASIS, axis=1) * (1 - np.array([1.0, 1.1, 0.8]))))
    np.testing.assert_allclose(np.sort(found.second_gap), gaps, atol=1e-14)


def test_pair_finder_reports_a_bent_pair():
    point = paired_minimum(np.eye(2, 4), np.eye(2))
    first = point.first + np.array([[0, 0, 1e-3, 0], [0] * 4, [0] * 4, [0] * 4])
    found = pair_up(point.second, first, point.target)
    assert max(found.first_angle) == pytest.approx(1e-3, rel=1e-3) and found.residual == pytest.approx(1e-3)
