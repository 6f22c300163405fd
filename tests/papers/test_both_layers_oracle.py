"""Loss, gradient and Hessian of ReLU students of a linear target: stored values, and a quadrature in the plane."""

import jax.numpy as jnp
import numpy as np
import pytest

from tutelage.papers.both_layers.batch import gradients, hessians, losses, network, sample_gradients
from tutelage.papers.both_layers.oriented import oriented_gradient, oriented_loss
from tutelage.papers.both_layers.quadrature import planar_gradient, planar_loss, planar_nodes

# Computed from the closed forms (8)-(14) and checked against quadrature, sampling and finite differences.
ONE_OUTPUT = {
    "second": [[0.7], [-0.4]],
    "first": [[1, 2, -1], [-0.5, 1, 0.3]],
    "target": [[1.0, 0.0, 2.0]],
    "loss": 3.436746494936686,
    "in_second": [[2.283066421338], [0.236633762658]],
    "in_first": [[-0.079344193386, 0.362364782396, -0.952761123531], [0.113245019868, -0.184383701403, 0.487842354246]],
    "trace": 4.331446685009365,
    "ends": (-1.22942701396, 4.340286021142),
}
TWO_OUTPUTS = {
    "second": [[0.7, 0.2], [-0.4, 0.5], [0.3, -0.6]],
    "first": [[1, 2, -1], [-0.5, 1, 0.3], [0.2, -0.1, 0.9]],
    "target": [[1.0, 0.0, 2.0], [0.0, -1.0, 0.5]],
    "loss": 4.644595843330874,
    "in_second": [
        [2.332655370024, 2.146989075956],
        [0.293248570428, 0.805237173792],
        [-0.830778863425, -0.405582687927],
    ],
    "in_first": [
        [-0.060194873058, 0.556240632677, -1.009970181911],
        [0.072289282774, 0.242538372539, 0.263084758578],
        [-0.043359066756, -0.393680015369, -0.040644704952],
    ],
    "trace": 9.792485580838099,
    "ends": (-1.352773430947, 4.546245889726),
}


@pytest.mark.parametrize("case", [ONE_OUTPUT, TWO_OUTPUTS])
def test_stored_values(case):
    weights = network(np.array(case["second"])[None], np.array(case["first"])[None])
    target = jnp.array(case["target"])
    assert float(losses(target, weights)[0]) == pytest.approx(case["loss"], rel=1e-14)
    slope = gradients(target, weights)
    # The stored gradients have twelve decimals.
    np.testing.assert_allclose(slope.second[0], case["in_second"], atol=6e-13)
    np.testing.assert_allclose(slope.first[0], case["in_first"], atol=6e-13)
    hessian = np.asarray(hessians(target, weights)[0])
    assert np.trace(hessian) == pytest.approx(case["trace"], rel=1e-13)
    assert np.linalg.eigvalsh(hessian)[[0, -1]] == pytest.approx(case["ends"], abs=6e-12)


@pytest.mark.parametrize(("width", "outputs"), [(2, 1), (4, 1), (6, 3), (5, 2)])
def test_planar_quadrature(width, outputs):
    rng = np.random.default_rng(width)
    second, first = rng.standard_normal((width, outputs)), rng.standard_normal((width, 2))
    target = rng.standard_normal((outputs, 2))
    weights = network(second[None], first[None])
    scale = planar_loss(second, first, target)
    # Both routes are exact to rounding; the sums have a few hundred terms.
    assert float(losses(jnp.asarray(target), weights)[0]) == pytest.approx(scale, rel=1e-13)
    slope, expected = gradients(jnp.asarray(target), weights), planar_gradient(second, first, target)
    np.testing.assert_allclose(slope.second[0], expected[0], atol=1e-13 * scale)
    np.testing.assert_allclose(slope.first[0], expected[1], atol=1e-13 * scale)


def test_planar_nodes_integrate_degree_two_exactly():
    nodes, weights = planar_nodes([[1.0, 0.3]])
    np.testing.assert_allclose(nodes.T @ (weights[:, None] * nodes), np.eye(2), atol=1e-14)
    inside = nodes @ np.array([1.0, 0.3]) > 0
    np.testing.assert_allclose(np.sum(weights[inside]), 1.0, rtol=1e-14)  # E|x|^2 on a half-plane


def test_any_orientation_gives_the_stored_values():
    second, first, target = (np.array(TWO_OUTPUTS[name]) for name in ("second", "first", "target"))
    for sides in ([1, 1, 1], [1, -1, 1], [-1, -1, 1]):
        assert oriented_loss(second, first, target, sides) == pytest.approx(TWO_OUTPUTS["loss"], rel=1e-14)
        in_second, in_first = oriented_gradient(second, first, target, sides)
        np.testing.assert_allclose(in_second, TWO_OUTPUTS["in_second"], atol=6e-13)
        np.testing.assert_allclose(in_first, TWO_OUTPUTS["in_first"], atol=6e-13)


def test_oriented_loss_resolves_what_the_naive_form_cannot():
    # At distance eps from the optimum L = (|h_1|^2 + |h_2|^2)/4 - ..., of order eps^2 = 1e-20.
    eps = 1e-10
    first = np.array([[1.0, eps], [-1.0, 0.0]])
    assert oriented_loss([[1.0], [-1.0]], first, [[1.0, 0.0]], [1, -1]) == pytest.approx(eps**2 / 4, rel=1e-9)


def test_sample_gradients_tend_to_the_population_gradient():
    second, first, target = (np.array(ONE_OUTPUT[name]) for name in ("second", "first", "target"))
    x = np.random.default_rng(0).standard_normal((200_000, 3))
    slope = sample_gradients(jnp.asarray(x), jnp.asarray(x @ target.T), network(second[None], first[None]))
    # Summands have standard deviations of about 5, so five standard errors are 0.06; a false alarm in 100000.
    np.testing.assert_allclose(slope.second[0], ONE_OUTPUT["in_second"], atol=0.06)
    np.testing.assert_allclose(slope.first[0], ONE_OUTPUT["in_first"], atol=0.06)
