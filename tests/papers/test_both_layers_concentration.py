"""The search for the largest deviation of sample moments."""

import numpy as np
import pytest

from tutelage.papers.both_layers.concentration import (
    _smoothed_slopes,
    deviation_norm,
    mean_moment,
    search_supremum,
)


def test_mean_moment_against_samples():
    rng = np.random.default_rng(0)
    w, other = rng.standard_normal((2, 4))
    x = rng.standard_normal((400_000, 4))
    kept = x[(x @ w >= 0) & (x @ other >= 0)]
    # An entry has variance at most E x^4 = 3, so five standard errors are 0.014: a false alarm in 100000.
    np.testing.assert_allclose(kept.T @ kept / len(x), mean_moment(w, other), atol=0.014)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_mean_moment_at_the_edges(sign):
    w = np.array([0.6, 0.8, 0.0])
    np.testing.assert_allclose(mean_moment(w, sign * w), np.eye(3) / 2 if sign > 0 else 0.0, atol=1e-15)


def enumerate_plane(x):
    """S in the plane, at both sides of every edge of every cell on which the indicators are constant.

    Within a cell M is constant and E M moves smoothly, so only a little of the supremum can be missed.

    """
    edges = np.concatenate([np.arctan2(x[:, 1], x[:, 0]) + s * np.pi / 2 for s in (1, -1)])
    angles = np.concatenate([edges - 1e-9, edges + 1e-9])
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    on = (units @ x.T >= 0).astype(float)
    features = np.stack([x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2])
    moments = np.einsum("pi,fi,qi->fpq", on, features, on, optimize=True) / len(x)
    return float(np.max(planar_norm(moments - planar_mean(angles))))


def planar_mean(angles):
    """Entries (xx, xy, yy) of E M for all pairs of planar directions."""
    difference = angles[:, None] - angles[None]
    theta = np.abs((difference + np.pi) % (2 * np.pi) - np.pi)
    # The unit sum lies half-way between the two directions, the unit difference at a right angle to it.
    middle = 2 * np.arctan2(
        np.sin(angles)[:, None] + np.sin(angles)[None], np.cos(angles)[:, None] + np.cos(angles)[None]
    )
    part = np.sin(theta) * np.stack([np.cos(middle), np.sin(middle), -np.cos(middle)])
    part[[0, 2]] += np.pi - theta
    return part / (2 * np.pi)


def planar_norm(entries):
    """Spectral norm of symmetric 2x2 matrices given as (xx, xy, yy)."""
    xx, xy, yy = entries
    return np.abs(xx + yy) / 2 + np.hypot((xx - yy) / 2, xy)


def testplanar_mean_is_the_mean_moment():
    angles = np.array([0.3, 1.9, 4.0])
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    table = planar_mean(angles)
    for i in range(3):
        for j in range(3):
            moment = mean_moment(units[i], units[j])
            np.testing.assert_allclose(table[:, i, j], [moment[0, 0], moment[0, 1], moment[1, 1]], atol=1e-14)


@pytest.mark.parametrize("samples", [100, 200])
def test_search_against_enumeration_in_the_plane(samples):
    x = np.random.default_rng(samples).standard_normal((samples, 2))
    exact = enumerate_plane(x)
    found = search_supremum(x, rng=np.random.default_rng(1), restarts=12)
    # The search is a lower bound, found within 5 %; the enumeration only looks at the ends of cells, hence the 1 %.
    assert 0.95 * exact <= found.value <= 1.01 * exact
    assert found.value > found.random
    assert found.value == pytest.approx(deviation_norm(x, found.w, found.other))


def test_smoothed_slopes_against_finite_differences():
    from scipy.special import expit

    rng = np.random.default_rng(3)
    x, (w, other, u) = rng.standard_normal((50, 3)), (v / np.linalg.norm(v) for v in rng.standard_normal((3, 3)))

    def value(w, other):
        empirical = np.mean(expit(5 * x @ w) * expit(5 * x @ other) * (x @ u) ** 2)
        return empirical - u @ mean_moment(w, other) @ u

    h = 1e-6
    for index, tangent in ((0, np.cross(w, u)), (1, np.cross(other, u))):
        moved = [(w + s * h * tangent, other) if index == 0 else (w, other + s * h * tangent) for s in (1, -1)]
        expected = (value(*moved[0]) - value(*moved[1])) / (2 * h)
        # Central differences of step 1e-6 are right to about 1e-9.
        assert _smoothed_slopes(x, w, other, u, 5.0, False)[index] @ tangent == pytest.approx(expected, abs=1e-8)
