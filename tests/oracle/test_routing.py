"""Routing probabilities and the population router against sampling, and against cases with a formula."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from tutelage._errors import BadInput
from tutelage.oracle import routing
from tutelage.oracle.routing import effective_rank, expected_router, passing, winning
from tutelage.problem.clusters import Clustered, Clusters, Tasks, orthogonal
from tutelage.problem.outputs import expert_outputs
from tutelage.problem.units import Experts

DIM = 7
MEANS = [[0, 0, 0, 1.0, 0.3], [0, 0, 0, 0.2, 1.0]]


def inputs():
    return Clusters(DIM, MEANS, radius=1.5, weights=(0.3, 0.7))


def scores(theta, cluster, count):
    """Scores of Gaussian inputs around a centre, without the library."""
    centre = np.zeros(DIM)
    centre[:5] = 1.5 * np.array(MEANS[cluster]) / np.linalg.norm(MEANS[cluster])
    return (centre + np.random.default_rng(cluster).standard_normal((count, DIM))) @ theta.T


@pytest.fixture
def theta():
    return np.random.default_rng(4).standard_normal((4, DIM))


def test_passing_and_winning_are_what_sampling_says(theta):
    count = 200_000
    law, best = passing(theta, inputs(), level=0.4), winning(theta, inputs())
    for cluster in range(2):
        drawn = scores(theta, cluster, count)
        won = np.bincount(np.argmax(drawn, axis=1), minlength=4) / count
        # Five standard deviations each, 16 comparisons: a false alarm in 1e5 seeds; the seeds are fixed.
        spread = 5 * np.sqrt(0.25 / count)
        assert np.max(np.abs(np.mean(drawn >= 0.4, axis=0) - law[cluster])) < spread
        assert np.max(np.abs(won - best.value[cluster])) < spread
    np.testing.assert_allclose(best.value.sum(axis=1), 1.0, atol=1e-4)


def test_two_experts_have_a_formula(theta):
    gap = theta[0] - theta[1]
    centres = 1.5 * np.asarray(inputs().means) @ gap[:5]
    np.testing.assert_allclose(
        winning(theta[:2], inputs()).value[:, 0], norm.cdf(centres / np.linalg.norm(gap)), atol=1e-9
    )


def test_many_experts_are_sampled_with_an_honest_error(theta, monkeypatch):
    exact = winning(theta, inputs()).value
    monkeypatch.setattr(routing, "ORTHANTS", 0)
    found = winning(theta, inputs(), samples=100_000)
    assert np.max(np.abs(found.value - exact) / found.error) < 5
    assert 1e-4 < found.error.max() < 2e-3


def test_equal_rows_share():
    row = np.random.default_rng(0).standard_normal(DIM)
    found = winning(np.stack([row, row, -row]), inputs()).value
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-12)
    np.testing.assert_allclose(found[:, 2], passing(-row[None], inputs())[:, 0], atol=0.006)  # 5 sd of 200000 draws


def test_a_router_of_zeros_passes_what_the_level_says():
    zeros = np.zeros((3, DIM))
    assert passing(zeros, inputs()).tolist() == [[1.0] * 3] * 2
    assert passing(zeros, inputs(), level=0.1).tolist() == [[0.0] * 3] * 2
    np.testing.assert_allclose(winning(zeros, inputs()).value, 1 / 3)


def clustered():
    tasks = Tasks(
        local=[{2: 1.0}, {3: 0.8}, {2: -0.5, 3: 0.5}], shared={2: 0.7}, interference=(1.0, -1.0, 0.5),
        directions=[[1, 0, 0, 0], [0.3, 1, 0, 0], [0, 0, 1, 0], [0, 0.2, 0, 1]],
    )  # fmt: skip
    return Clustered(orthogonal(9, 1.2, 3, weights=(0.5, 0.3, 0.2)), tasks)


@pytest.mark.parametrize("activation", ["relu", (2, 3)])
def test_the_population_router_is_the_mean_over_samples(activation):
    problem = clustered()
    units, first = Experts(3, 2, activation, bias=0.5).draw(np.random.default_rng(8), 9)
    law = expected_router(problem, units, first, step=2.0)
    draw, batches = np.random.default_rng(0), []
    for _ in range(40):
        cluster = draw.choice(3, 4000, p=problem.inputs.weights)
        centre = np.pad(np.asarray(problem.inputs.means), ((0, 0), (0, 2)))[:, :9] * 1.2
        x = jnp.asarray(draw.standard_normal((4000, 9)) + centre[cluster])
        y = np.asarray(problem.teacher.labels(x, jnp.asarray(cluster)))
        f = np.asarray(expert_outputs(units, first, x))
        batches.append(2.0 / 9 * ((f - f.mean(1, keepdims=True)) * y[:, None]).T @ np.asarray(x) / 4000)
    error = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    # Student's t with 39 degrees of freedom, 27 entries: 6 is passed once in 1e5 seeds.
    assert np.max(np.abs(np.mean(batches, axis=0) - law) / error) < 6
    assert np.max(np.abs(law) / error) > 15
    np.testing.assert_allclose(law.sum(axis=0), 0.0, atol=1e-14)


def test_effective_rank_counts_directions():
    rows = np.eye(6)
    pair = np.stack([rows[0], rows[0], rows[0], rows[1]])  # squares 3 and 1: exp of the entropy of (3/4, 1/4)
    shares = np.array([0.75, 0.25])
    assert effective_rank([pair])[0] == pytest.approx(np.exp(-np.sum(shares * np.log(shares))), rel=1e-12)


def test_bad_shapes_are_refused():
    with pytest.raises(BadInput, match="A router has shape"):
        passing(np.zeros((3, 2)), inputs())
    units, first = Experts(2, 2).draw(np.random.default_rng(0), 5)
    with pytest.raises(BadInput, match="population: first has shape"):
        expected_router(clustered(), units, first)
