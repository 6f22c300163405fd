"""Routers: which experts are chosen, how ties fall, and the factors.

Statistical tests have a false-alarm rate of `LEVEL` each; seeds are fixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

import tutelage as tt

LEVEL = 1e-4
SAMPLES = 20_000


def drawn(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).uniform(size=shape))


def normal(shape, seed=1):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("router", [tt.Top1(), tt.TopK(1)], ids=["Top1", "TopK"])
def test_the_highest_score_is_chosen(router):
    scores = normal((50, 6))
    chosen = np.asarray(router.chosen(scores, drawn((50, 6))))
    np.testing.assert_array_equal(chosen, np.arange(6) == np.argmax(np.asarray(scores), axis=1)[:, None])


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_exactly_k_are_chosen_and_they_are_the_highest(k):
    # Of whole numbers many are equal. An expert that is shut off has minus infinity.
    scores = np.random.default_rng(2).integers(-1, 3, (300, 6)).astype(float)
    scores = jnp.asarray(np.where(scores < 0, -np.inf, scores))
    chosen = np.asarray(tt.TopK(k).chosen(scores, drawn((300, 6))))
    assert np.all(chosen.sum(axis=1) == k)
    low = np.where(chosen, scores, np.inf).min(axis=1)
    high = np.where(chosen, -np.inf, scores).max(axis=1)
    assert np.all(low >= high)


def test_ties_are_drawn_uniformly():
    """All six experts at the start; and the three that share the highest score."""
    for scores, tied in ((np.zeros(6), range(6)), (np.array([1.0, 0.0, 1.0, -2.0, 1.0, 0.5]), (0, 2, 4))):
        table = jnp.asarray(np.tile(scores, (SAMPLES, 1)))
        chosen = np.asarray(tt.Top1().chosen(table, drawn(table.shape)))
        counts = chosen.sum(axis=0)
        assert counts.sum() == SAMPLES and counts[list(tied)].sum() == SAMPLES
        assert stats.chisquare(counts[list(tied)]).pvalue > LEVEL / 2


def test_ties_at_the_edge_of_k_are_drawn_uniformly():
    """One is above; every pair of the other four is as frequent as any other."""
    table = jnp.asarray(np.tile([0.0, 0.0, 1.0, 0.0, 0.0], (SAMPLES, 1)))
    chosen = np.asarray(tt.TopK(3).chosen(table, drawn(table.shape)))
    assert np.all(chosen[:, 2])
    pairs = chosen[:, [0, 1, 3, 4]] @ np.array([1, 2, 4, 8])
    values, counts = np.unique(pairs, return_counts=True)
    assert len(values) == 6 and stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("gap", [0.3, 0.9])
def test_noise_overturns_a_gap_as_often_as_it_should(gap):
    """`gap + U < U'` with probability `(1 - gap)^2/2`, U and U' uniform on [0, 1]; here all in units of the noise."""
    noise = 2.5
    table = jnp.asarray(np.tile([noise * gap, 0.0], (SAMPLES, 1)))
    chosen = np.asarray(tt.Top1(noise).chosen(table, drawn(table.shape)))
    second = int(chosen[:, 1].sum())
    assert stats.binomtest(second, SAMPLES, (1 - gap) ** 2 / 2).pvalue > LEVEL


def test_noise_smaller_than_the_gap_changes_nothing_and_leaves_the_factor():
    scores = jnp.asarray(np.random.default_rng(3).permuted(np.tile(np.arange(5.0), (200, 1)), axis=1))
    uniforms = drawn(scores.shape)
    quiet, noisy = tt.Top1(), tt.Top1(0.99)
    np.testing.assert_array_equal(quiet.gates(scores, uniforms), noisy.gates(scores, uniforms))
    loud = tt.Top1(100.0)
    chosen = np.asarray(loud.chosen(scores, uniforms))
    assert not np.array_equal(chosen, quiet.chosen(scores, uniforms))
    # Sums of five exponentials.
    wanted = np.where(chosen, softmax(np.asarray(scores), axis=1), 0.0)
    np.testing.assert_allclose(loud.gates(scores, uniforms), wanted, rtol=1e-14)


@pytest.mark.parametrize("router", [tt.Top1(), tt.TopK(3), tt.TopK(5)], ids=["Top1", "three", "all"])
def test_factors_are_softmax_weights_among_all_experts(router):
    scores, uniforms = 30 * normal((40, 5)), drawn((40, 5))
    gates = np.asarray(router.gates(scores, uniforms))
    chosen = np.asarray(router.chosen(scores, uniforms))
    # exp of an argument of 100 is right to 100 roundings.
    np.testing.assert_allclose(gates, np.where(chosen, softmax(np.asarray(scores), axis=1), 0.0), rtol=1e-13, atol=0)


def test_threshold_takes_all_from_its_level_on():
    scores = jnp.asarray([[0.5, 0.2, 0.7], [0.1, 0.2, 0.3]])
    gates = tt.Threshold(0.5).gates(scores, drawn(scores.shape))
    np.testing.assert_array_equal(gates, [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert np.all(tt.Threshold().chosen(jnp.zeros((2, 3)), drawn((2, 3))))
    assert tt.Threshold().gates(scores.astype(jnp.float32), drawn((2, 3))).dtype == jnp.float32


@pytest.mark.parametrize("router", [tt.Top1(), tt.Top1(0.5), tt.TopK(2), tt.Threshold(0.1)])
def test_compiled_routers_choose_the_same(router):
    scores, uniforms = normal((30, 4)), drawn((30, 4))
    np.testing.assert_array_equal(jax.jit(router.chosen)(scores, uniforms), router.chosen(scores, uniforms))


REFUSED = {
    "none": (lambda: tt.TopK(0), "k is 0"),
    "half": (lambda: tt.TopK(1.5), "k is 1.5"),
    "more than there are": (lambda: tt.TopK(4).chosen(jnp.zeros((2, 3)), drawn((2, 3))), "only 3 experts"),
    "noise below 0": (lambda: tt.Top1(-0.1), "noise is -0.1"),
    "infinite noise": (lambda: tt.Top1(np.inf), "noise is inf"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_one_sentence(case):
    make, words = REFUSED[case]
    with pytest.raises(tt.BadInput, match=words) as caught:
        make()
    text = str(caught.value)
    assert text.endswith(".") and ". " not in text
