"""The frame keeps inner products, and draws Gaussian rows with the right joint law at any dimension."""

import numpy as np
import pytest
from scipy import stats

import tutelage as tt
from tutelage.problem.frame import Frame, anchor, orthonormalise, reduce_rows, stream


def grams(frame: Frame, count: int, seed: int = 0) -> np.ndarray:
    draw = stream(seed, 0)
    return np.stack([(rows := frame.gaussian(draw)) @ rows.T for _ in range(count)])


def test_reduction_keeps_inner_products_and_shortens():
    rows = np.random.default_rng(0).standard_normal((3, 50))
    short = reduce_rows(rows)
    assert short.shape == (3, 3)
    np.testing.assert_allclose(short @ short.T, rows @ rows.T, rtol=1e-14)
    assert np.all(np.diag(short) >= 0)


def test_duplicate_rows_are_reduced_to_duplicates():
    row = np.random.default_rng(1).standard_normal(20)
    short = reduce_rows(np.stack([row, row, -row]))
    np.testing.assert_allclose(short[0], short[1], atol=1e-14)
    np.testing.assert_allclose(short[0], -short[2], atol=1e-14)


@pytest.mark.parametrize("dim", [7, 40])
def test_gaussian_rows_have_the_law_of_full_vectors(dim):
    """Overlaps in the frame against overlaps of real vectors: two-sample Kolmogorov-Smirnov on 6 entries.

    False-alarm rate 6 x 1e-4 for the two cases together 1.2e-3, with the seed fixed.
    """
    anchored, free, count = 2, 3, 4000
    frame = Frame(dim, anchored, free, full=False)
    short = grams(frame, count)
    real = np.random.default_rng(5).standard_normal((count, free, dim))
    long = real @ real.transpose(0, 2, 1)
    for i, j in [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]:
        assert stats.ks_2samp(short[:, i, j], long[:, i, j]).pvalue > 1e-4


def test_a_wrong_degree_of_freedom_would_be_seen():
    """The planted error: the frame of dimension 7 against vectors of dimension 8."""
    short = grams(Frame(7, 2, 3, full=False), 4000)
    real = np.random.default_rng(5).standard_normal((4000, 3, 8))
    long = real @ real.transpose(0, 2, 1)
    assert stats.ks_2samp(short[:, 2, 2], long[:, 2, 2]).pvalue < 1e-4


def test_astronomic_dimension():
    """At d = 1e12 the norms of rows concentrate: |w|^2/d = 1 +- 1.4e-6 (one standard deviation)."""
    gram = grams(Frame(10**12, 1, 3, full=False), 200) / 1e12
    np.testing.assert_allclose(gram[:, range(3), range(3)], 1.0, atol=1e-5)  # seven standard deviations
    assert np.abs(gram[:, 0, 1]).max() < 1e-5


def test_dimension_equal_to_the_frame_and_below_it():
    assert Frame(5, 2, 3, full=False).size == 5
    assert Frame(4, 2, 3, full=False).size == 4
    assert Frame(4, 2, 3, full=False).gaussian(stream(0, 0)).shape == (3, 4)


def test_orthonormal_rows():
    rows = orthonormalise(Frame(10**9, 1, 4, full=False).gaussian(stream(3, 0)))
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-14)


def test_seeds_and_purposes_give_different_streams():
    values = {float(stream(seed, purpose).standard_normal()) for seed in range(4) for purpose in range(2)}
    assert len(values) == 8


def test_too_long_a_vector_is_refused():
    with pytest.raises(tt.BadInput, match="5 entries but dim is 3"):
        anchor(3, np.ones((1, 5)), 0, full=False)
