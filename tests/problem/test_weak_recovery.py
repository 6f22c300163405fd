"""Starts that lean towards a target each, in the frame and in all coordinates.

Statistical tests use 1800 rows of a fixed seed each and fail at a Kolmogorov-Smirnov p-value below 1e-4: the chance of
a false alarm is 1e-4 a comparison, and there are 14 of them.
"""

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import tutelage as tt

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ALARM = 1e-4


def rows(dim, law, *, teacher=AXES, width=6, seeds=300, full=False):
    student = tt.TwoLayer("relu", first=law, width=width)
    problem = tt.Problem(tt.Gaussian(dim), tt.TwoLayer("relu", first=teacher), student)
    return np.stack([problem.begin(seed, full=full).student.first for seed in range(seeds)])


def cosines(first, teacher=AXES):
    teacher = np.asarray(teacher)
    padded = np.pad(teacher, ((0, 0), (0, first.shape[-1] - teacher.shape[1])))
    unit = first / np.linalg.norm(first, axis=-1, keepdims=True)
    return unit @ (padded / np.linalg.norm(padded, axis=1, keepdims=True)).T


@pytest.mark.parametrize("dim", [4, 50, 10**8, 10**12])
def test_norms_angles_and_cross_cosines_have_their_laws(dim):
    first = rows(dim, tt.WeakRecoveryRows(1e-3, AXES, angle=(0.2, 1.0), zeta=0.02))
    square = (np.linalg.norm(first, axis=-1).ravel() / 1e-3) ** 2
    low, high = chi2.cdf(dim / 4, dim), chi2.cdf(4 * dim, dim)
    assert kstest((chi2.cdf(square, dim) - low) / (high - low), "uniform").pvalue > ALARM
    seen = cosines(first)
    own = np.eye(3, dtype=bool)[np.arange(6) % 3]
    assert kstest(np.arccos(seen[:, own].ravel()), "uniform", args=(0.2, 0.8)).pvalue > ALARM
    width = math.sin(0.02)
    assert kstest(seen[:, ~own].ravel(), "uniform", args=(-width, 2 * width)).pvalue > ALARM


def test_directions_outside_the_targets_are_those_of_gaussian_vectors():
    """In law the frame and all coordinates agree: the cosine of two rows beyond the targets is that of dim - 3."""
    law = tt.WeakRecoveryRows(1.0, AXES)
    cosine = []
    for full in (False, True):
        outside = rows(8, law, seeds=900, full=full)[:, :2, 3:]
        unit = outside / np.linalg.norm(outside, axis=-1, keepdims=True)
        cosine.append(np.sum(unit[:, 0] * unit[:, 1], axis=-1))
    # A cosine c of random directions in 5 dimensions: (1 + c)/2 is Beta(2, 2).
    for values in cosine:
        assert kstest((1 + values) / 2, "beta", args=(2, 2)).pvalue > ALARM


def test_a_wrong_law_is_seen():
    """The planted error: the norms of chi_dim without the cut, at dim 4, where the cut takes 6 %."""
    first = rows(4, tt.GaussianRows(1e-3))
    square = (np.linalg.norm(first, axis=-1).ravel() / 1e-3) ** 2
    low, high = chi2.cdf(1, 4), chi2.cdf(16, 4)
    assert kstest(np.clip((chi2.cdf(square, 4) - low) / (high - low), 0, 1), "uniform").pvalue < ALARM


def test_angles_are_right_for_targets_that_are_not_orthogonal():
    teacher = ((2.0, 0.0), (1.0, 1.0))
    first = rows(10, tt.WeakRecoveryRows(0.1, teacher, angle=0.9, zeta=0.1), teacher=teacher, width=4, seeds=20)
    seen = cosines(first, teacher)
    own = np.eye(2, dtype=bool)[np.arange(4) % 2]
    # Two sums of a dozen rounded terms: a few 1e-16.
    np.testing.assert_allclose(seen[:, own], math.cos(0.9), rtol=1e-14)
    assert np.abs(seen[:, ~own]).max() <= math.sin(0.1)


def test_zero_zeta_and_counts():
    first = rows(10, tt.WeakRecoveryRows(1e-47, AXES, angle=0.5, zeta=0.0, counts=(1, 2, 3)), seeds=1)
    seen = cosines(first)[0]
    expected = np.repeat(np.eye(3), (1, 2, 3), axis=0) * math.cos(0.5)
    np.testing.assert_allclose(seen, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "dim", "words"),
    [
        ({"angle": 1.6}, 10, "below pi/2"),
        ({"zeta": -0.1}, 10, "below pi/2"),
        ({"counts": (1, 2)}, 10, "there are 3 targets"),
        ({"counts": (1, 2, 1)}, 10, "there are 6 units"),
        ({"zeta": 1.5, "angle": 0.1}, 10, "lower zeta"),
        ({}, 3, "more than the 3 targets"),
    ],
)
def test_bad_laws_are_refused_in_one_sentence(change, dim, words):
    with pytest.raises(tt.BadInput, match=words):
        rows(dim, tt.WeakRecoveryRows(**{"std": 1.0, "toward": AXES} | change), seeds=1)
