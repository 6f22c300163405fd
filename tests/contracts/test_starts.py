"""What every law of initial weights must do: moments of overlaps by theory, the frame against all coordinates, edges.

Statistical tests have fixed seeds and the false-alarm rates that they state.
"""

import functools

import numpy as np
import pytest
from scipy import stats
from tables import ENTRIES, STARTS, TAUGHT, members

import tutelage as tt
from tutelage.problem.initial import AbstractEntries, AbstractRows

EVERY = pytest.mark.parametrize("name", STARTS)
DIM, SEEDS = 11, 2000


def problem(name, dim):
    row = STARTS[name]
    if isinstance(row.law, tt.MixtureRows):
        teacher = tt.Mixture(routers=np.eye(1, 2), experts=np.eye(2)[1:])
        return tt.Problem(tt.Gaussian(dim), teacher, tt.Mixture(start=row.law, width=row.rows // 2))
    return tt.Problem(tt.Gaussian(dim), tt.TwoLayer("relu", first=np.eye(TAUGHT)), student(first=row.law))


def student(**parts):
    return tt.TwoLayer("relu", **{"first": tt.GaussianRows(1.0), "width": 3} | parts)


def gram(start):
    rows = np.concatenate([start.teacher.first, start.student.first])
    return rows @ rows.T


@functools.cache
def grams(name, full=False):
    drawn = problem(name, DIM)
    return np.stack([gram(drawn.begin(seed + 10**6 * full, full=full)) for seed in range(SEEDS)])


def test_every_law_is_in_the_tables():
    assert {type(row.law) for row in STARTS.values()} == members(AbstractRows)
    assert {type(law) for law, _ in ENTRIES.values()} == members(AbstractEntries)


@EVERY
def test_overlaps_have_their_moments(name):
    """Means and variances of all entries, each within 5 standard errors: 42 at most, false alarms 2.4e-5 per row."""
    row, seen = STARTS[name], grams(name)
    mean, spread = row.mean(DIM), row.spread(DIM)
    told = np.isfinite(mean)
    error = np.where(np.isfinite(spread), spread, seen.std(0)) / np.sqrt(SEEDS)
    # Entries without spread are exact to rounding.
    assert np.all((np.abs(seen.mean(0) - mean) <= 5 * error + 1e-12)[told])
    told = np.isfinite(spread)
    squares = (seen - np.where(np.isfinite(mean), mean, seen.mean(0))) ** 2
    error = squares.std(0) / np.sqrt(SEEDS)
    assert np.all((np.abs(squares.mean(0) - spread**2) <= 5 * error + 1e-24)[told])


@EVERY
def test_the_frame_has_the_law_of_all_coordinates(name):
    """Kolmogorov-Smirnov tests of at most 21 entries, at 1e-5 each: false alarms 2e-4 per row."""
    one, other = grams(name).round(9), grams(name, full=True).round(9)
    places = zip(*np.triu_indices(one.shape[1]), strict=True)
    assert (
        min(stats.ks_2samp(one[:, i, j], other[:, i, j]).pvalue for i, j in places if np.ptp(one[:, i, j]) > 0) > 1e-5
    )


@EVERY
@pytest.mark.parametrize("dim", ["least", 10**9])
def test_edges_of_the_dimension(name, dim):
    """As many dimensions as vectors, and any number of them: the frame then has a column for each vector."""
    row = STARTS[name]
    dim = row.least if dim == "least" else dim
    begun = problem(name, dim).begin(0)
    vectors = TAUGHT + row.rows + len(row.law.mean)
    assert begun.student.first.shape[1] <= min(dim, vectors) and np.all(np.isfinite(gram(begun)))
    own = np.diag(row.mean(dim))[TAUGHT:]
    if dim == 10**9:  # norms concentrate: 5 standard deviations of 1/sqrt(dim/2)
        np.testing.assert_allclose(np.diag(gram(begun))[TAUGHT:], own, rtol=5 * np.sqrt(2 / dim))


@EVERY
def test_a_seed_is_a_draw(name):
    for full in (False, True):
        one, again, other = (problem(name, DIM).begin(seed, full=full).student.first for seed in (3, 3, 4))
        np.testing.assert_array_equal(one, again)
        assert not np.allclose(one, other)


@pytest.mark.parametrize("name", ENTRIES)
def test_outgoing_weights_have_their_law(name):
    """A Kolmogorov-Smirnov test of each unit at 1e-5: false alarms 3e-5 per row."""
    law, laws = ENTRIES[name]
    made = tt.Problem(tt.Gaussian(DIM), tt.TwoLayer("relu", first=np.eye(TAUGHT)), student(second=law))
    seen = np.stack([made.begin(seed).student.second[:, 0] for seed in range(SEEDS)])
    assert all(stats.kstest(seen[:, unit], laws[unit].cdf).pvalue > 1e-5 for unit in range(3))
    # A seed is a draw, and units are drawn apart.
    np.testing.assert_array_equal(made.begin(5).student.second[:, 0], seen[5])
    assert np.all(np.abs(np.corrcoef(seen.T) - np.eye(3)) < 5 / np.sqrt(SEEDS))
