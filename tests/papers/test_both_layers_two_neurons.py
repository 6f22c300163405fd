"""Observables of two neurons with signs (+,-)."""

import numpy as np
import pytest

from tutelage.papers.both_layers.two_neurons import TwoNeurons, angle_between

STATE = TwoNeurons(np.array([0.5, -2.0]), np.array([[3.0, 4.0, 0.0], [-1.0, 0.0, 1.0]]), np.array([2.0, 0.0, 0.0]))


def test_observables_by_hand():
    assert STATE.magnitudes.tolist() == [0.5, 2.0] and STATE.size == 2.0
    np.testing.assert_allclose(STATE.norms, [5.0, np.sqrt(2)])
    np.testing.assert_allclose(STATE.along, [3.0, 1.0])  # w_2 is measured along -a
    np.testing.assert_allclose(STATE.across, [4.0, 1.0])
    np.testing.assert_allclose(STATE.angles, [np.arctan2(4, 3), np.pi / 4])
    # h_1 = v_1 w_1 - a = (-0.5, 2, 0), h_2 = v_2 w_2 + a = (0, 0, 2)
    np.testing.assert_allclose(STATE.error, [np.hypot(0.5, 2), 2.0])
    assert STATE.error_squared == pytest.approx(4.25 + 4.0)
    np.testing.assert_allclose(STATE.imbalance, [25 - 0.25, 2 - 4])


def test_drift_is_the_change_of_the_imbalance_in_one_update():
    # Exact when w.grad_w = v grad_v, so such gradients are made up.
    step, in_first = 0.1, np.array([[0.3, -0.2, 0.5], [0.1, 0.7, -0.4]])
    in_second = np.sum(STATE.first * in_first, axis=-1) / STATE.second
    moved = TwoNeurons(STATE.second - step * in_second, STATE.first - step * in_first, STATE.target)
    np.testing.assert_allclose(moved.imbalance - STATE.imbalance, STATE.drift(in_second, in_first, step), atol=1e-13)


@pytest.mark.parametrize("small", [1e-3, 1e-9])
def test_angles_near_the_ends(small):
    u = np.array([1.0, 0.0])
    assert angle_between(u, np.array([1.0, small])) == pytest.approx(np.arctan(small), rel=1e-6)
    assert np.pi - angle_between(u, np.array([-1.0, small])) == pytest.approx(np.arctan(small), rel=1e-6)


def test_leading_axes_are_kept():
    many = TwoNeurons(np.tile(STATE.second, (4, 5, 1)), np.tile(STATE.first, (4, 5, 1, 1)), STATE.target)
    assert many.angles.shape == (4, 5, 2) and many.error_squared.shape == (4, 5) and many.angle.shape == (4, 5)
