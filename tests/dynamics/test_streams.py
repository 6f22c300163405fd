"""Streams of clustered samples: the same whatever the chunks, and of the right law in both precisions.

Statistical tests have a false-alarm rate of `LEVEL` each, shared out among their quantities; seeds are fixed.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import eval_hermitenorm

import tutelage as tt
from tutelage.dynamics.random import key_of, normal_rows
from tutelage.dynamics.streams import stream

LEVEL = 1e-4
SAMPLES, DIM, NOISE, RADIUS = 20_000, 5, 0.4, 1.7
MEANS = np.array([[0.6, 0.8, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, -1.0, 0.0, 0.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
LOCAL, SHARED, PART = [{1: 1.0}, {2: -1.0}, {3: 0.5}], {2: 0.7}, np.array([1.0, -1.0, 2.0])
PRECISIONS = ["float64", "float32"]


def problem(noise=NOISE):
    return tt.Clustered(tt.Clusters(DIM, MEANS, RADIUS, WEIGHTS), tt.Tasks(LOCAL, SHARED, PART), noise)


@pytest.fixture(scope="module")
def many():
    """All samples in each precision, as NumPy arrays."""
    found = {}
    for precision in PRECISIONS:
        data = samples(stream(problem(), seed=3, phase=1, precision=precision), 0, SAMPLES)
        found[precision] = type(data)(*map(np.asarray, data))
    return found


@eqx.filter_jit
def _samples(data, start, count):
    return data.samples(start, count)


def samples(data, start, count):
    """Compiled once for each count, with a start that is not known beforehand, as training does it."""
    return _samples(data, jnp.asarray(start), count)


def limit(quantities):
    """What the largest of so many standard normals passes with probability `LEVEL` at most."""
    return stats.norm.isf(LEVEL / (2 * quantities))


def equal(one, two):
    for left, right in zip(one, two, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_chunks_do_not_matter_to_the_last_bit(precision):
    data = stream(problem(), seed=0, phase=1, precision=precision)
    whole, numbers = samples(data, 0, 100), data.uniforms(0, 100, 3)
    for pieces in ((65, 2, 33), (33, 65, 2)):
        starts = np.cumsum((0, *pieces))[:-1].tolist()
        parts = [samples(data, start, count) for start, count in zip(starts, pieces, strict=True)]
        equal(whole, [jnp.concatenate(leaves) for leaves in zip(*parts, strict=True)])
        parts = [data.uniforms(start, count, 3) for start, count in zip(starts, pieces, strict=True)]
        np.testing.assert_array_equal(numbers, jnp.concatenate(parts))
    # Compiled code for one sample alone has no vectors, and other last bits.
    close = 100 * float(jnp.finfo(precision).eps)
    for left, right in zip(samples(data, 66, 1), whole, strict=True):
        np.testing.assert_allclose(left[0], right[66], rtol=close, atol=close)


def test_a_sample_depends_on_its_number_far_on_too():
    data, far = stream(problem(), seed=0, phase=1), 2**30 - 33
    last = samples(data, far, 33)
    equal([leaf[4:6] for leaf in last], samples(data, far + 4, 2))
    assert not np.any(np.isin(last.inputs, samples(data, 0, 33).inputs))


def test_columns_of_router_numbers_do_not_depend_on_how_many_there_are():
    data = stream(problem(), seed=0, phase=1)
    np.testing.assert_array_equal(data.uniforms(5, 10, 2), data.uniforms(5, 10, 7)[:, :2])


def test_precisions_share_clusters_and_labels_follow_their_own_inputs(many):
    np.testing.assert_array_equal(many["float64"].cluster, many["float32"].cluster)
    assert many["float32"].inputs.dtype == many["float32"].labels.dtype == np.float32
    for precision, close in (("float64", 1e-12), ("float32", 1e-4)):  # a dozen roundings of values up to 100
        x, cluster = np.asarray(many[precision].inputs, float), many[precision].cluster

        def he(order, z):
            return eval_hermitenorm(order, z) / math.sqrt(math.factorial(order))

        own = np.stack([he(1, x[:, 0]), -he(2, x[:, 1]), 0.5 * he(3, x[:, 2])], axis=1)
        wanted = own[np.arange(SAMPLES), cluster] + PART[cluster] * 0.7 * he(2, x[:, 3])
        np.testing.assert_allclose(many[precision].clean, wanted, rtol=close, atol=close)


def test_clusters_are_as_frequent_as_they_should_be(many):
    counts = np.bincount(many["float64"].cluster, minlength=3)
    assert stats.chisquare(counts, SAMPLES * WEIGHTS).pvalue > LEVEL


@pytest.mark.parametrize("precision", PRECISIONS)
def test_inputs_are_standard_normal_about_the_means(many, precision):
    data = many[precision]
    centre = RADIUS * np.pad(MEANS, ((0, 0), (0, 1)))
    plain = np.asarray(data.inputs, float) - centre[data.cluster]
    for column in plain.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > LEVEL / (3 * DIM)
    # Means have standard error 1/sqrt n; second moments of different columns the same, of one column sqrt 2 times it.
    size = math.sqrt(SAMPLES)
    assert np.max(np.abs(plain.mean(axis=0))) * size < limit(3 * DIM)
    second = (plain.T @ plain / SAMPLES - np.eye(DIM)) * size / (1 + 0.42 * np.eye(DIM))
    assert np.max(np.abs(second)) < limit(3 * DIM * (DIM + 1) / 2)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_one_cluster_has_its_own_mean(many, precision):
    data = many[precision]
    for c in range(3):
        own = np.asarray(data.inputs, float)[data.cluster == c]
        gap = (own.mean(axis=0) - RADIUS * np.append(MEANS[c], 0.0)) * math.sqrt(len(own))
        assert np.max(np.abs(gap)) < limit(3 * DIM)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_label_noise_is_normal_and_independent_of_the_inputs(many, precision):
    data = many[precision]
    noise = np.asarray(data.labels, float) - np.asarray(data.clean, float)
    assert stats.kstest(noise / NOISE, stats.norm.cdf).pvalue > LEVEL / 3
    plain = np.asarray(data.inputs, float)
    plain = (plain - plain.mean(axis=0)) / plain.std(axis=0)
    seen = noise / NOISE @ plain / math.sqrt(SAMPLES)
    assert np.max(np.abs(seen)) < limit(3 * DIM)
    groups = [noise[data.cluster == c] for c in range(3)]
    assert stats.kruskal(*groups).pvalue > LEVEL / 3


def test_without_noise_labels_are_clean():
    data = samples(stream(problem(noise=0.0), seed=0, phase=1), 0, 33)
    np.testing.assert_array_equal(data.labels, data.clean)


def test_router_numbers_are_uniform_and_independent_of_the_samples(many):
    data, drawn = many["float64"], np.asarray(stream(problem(), seed=3, phase=1).uniforms(0, SAMPLES, 2))
    assert np.all((drawn > 0) & (drawn <= 1))
    scores = math.sqrt(12) * (drawn - 0.5)
    for column in drawn.T:
        assert stats.kstest(column, stats.uniform.cdf).pvalue > LEVEL / 6
        groups = [column[data.cluster == c] for c in range(3)]
        assert stats.kruskal(*groups).pvalue > LEVEL / 6
    others = np.column_stack([data.inputs, data.labels - data.clean])
    others = (others - others.mean(axis=0)) / others.std(axis=0)
    seen = np.append((scores.T @ others).ravel(), scores[:, 0] @ scores[:, 1]) / math.sqrt(SAMPLES)
    assert np.max(np.abs(seen)) < limit(3 * len(seen))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_phases_seeds_and_neighbours_are_uncorrelated(many, precision):
    """Products of independent standard normals have mean 0 and variance 1."""
    centre, shape = RADIUS * np.pad(MEANS, ((0, 0), (0, 1))), (SAMPLES, DIM)
    streams = [many[precision]]
    streams += [samples(stream(problem(), seed, phase, precision), 0, SAMPLES) for seed, phase in ((3, 2), (4, 1))]
    first, *others = [np.asarray(data.inputs, float) - centre[np.asarray(data.cluster)] for data in streams]
    pairs = [(first, other) for other in others] + [(first[lag:], first[:-lag]) for lag in (1, 2, 3)]
    seen = [np.sum(one * two) / math.sqrt(one.size) for one, two in pairs]
    # Columns against other columns: a column may not be another one of the next phase.
    seen += [(one.T @ two / math.sqrt(len(one))).ravel() for one, two in pairs]
    seen = np.concatenate([np.ravel(value) for value in seen])
    assert np.max(np.abs(seen)) < limit(len(seen))
    assert first.shape == shape and not np.any(np.isin(first[:100], np.concatenate(others)))


def test_every_seed_and_phase_has_a_key_of_its_own():
    keys = [int(key_of(seed, phase)) for seed in range(20) for phase in range(6)]
    assert len(set(keys)) == len(keys) and all(key % 2 for key in keys)


@pytest.mark.parametrize("columns", [1, 7])
@pytest.mark.parametrize("dtype", [float, jnp.float32])
def test_normal_rows_depend_on_their_number_alone(columns, dtype):
    key, rows = jnp.asarray(key_of(1)), jnp.asarray([9, 4, 100], jnp.uint64)
    whole = normal_rows(key, rows, 2, columns, dtype)
    assert whole.shape == (3, columns) and whole.dtype == jnp.dtype(dtype)
    for row, number in zip(whole, rows, strict=True):
        np.testing.assert_array_equal(row, normal_rows(key, number[None], 2, columns, dtype)[0])
    assert len(np.unique(np.asarray(whole))) == whole.size
    assert not np.any(np.isin(whole, normal_rows(key, rows, 1, columns, dtype)))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_tails_of_normal_rows(precision):
    """Beyond 4 there are 6.3e-5 of all."""
    drawn = np.asarray(normal_rows(jnp.asarray(key_of(2)), jnp.arange(20_000, dtype=jnp.uint64), 0, 100, precision))
    far = int(np.sum(np.abs(drawn) > 4))
    assert stats.binomtest(far, drawn.size, 2 * stats.norm.sf(4)).pvalue > LEVEL


def test_one_cluster_in_as_many_dimensions_as_the_teacher_sees():
    tasks = tt.Tasks([{1: 1.0}], {2: 1.0}, (1.0,))
    data = samples(stream(tt.Clustered(tt.Clusters(2, [0.0, 1.0], 50.0), tasks), seed=0, phase=1), 0, 20)
    assert data.inputs.shape == (20, 2) and np.all(data.cluster == 0)
    # A standard normal is beyond 8 once in 1e15.
    assert np.max(np.abs(data.inputs[:, 1] - 50.0)) < 8 and np.max(np.abs(data.inputs[:, 0])) < 8


def test_other_precisions_are_refused():
    with pytest.raises(tt.BadInput, match="precision is 'float16'"):
        stream(problem(), seed=0, phase=1, precision="float16")
