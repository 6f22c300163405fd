"""Clustered inputs and their teachers: labels written out, frames, exponents, and what is refused."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_hermitenorm

import tutelage as tt
from tutelage.problem.clusters import antipodal, lowest, orthogonal

LOCAL, SHARED = [{1: 0.3, 4: 1.0}, {3: -2.0}], {0: 0.5, 2: 1.5}


def polynomial(orders, z, monic=False):
    """The sum written out, by SciPy's polynomials."""
    roots = {i: 1.0 if monic else math.sqrt(math.factorial(i)) for i in orders}
    return sum(value * eval_hermitenorm(i, z) / roots[i] for i, value in orders.items())


@pytest.mark.parametrize("monic", [False, True])
def test_labels_are_those_of_the_formula(monic):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(3, 3))
    tasks = tt.Tasks(LOCAL, SHARED, (0.7, -1.2), rows, monic=monic)
    x, cluster = 1.5 * draw.normal(size=(40, 6)), draw.integers(0, 2, 40)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    seen = x[:, :3] @ unit.T
    wanted = [
        polynomial(LOCAL[c], seen[n, c], monic) + (0.7, -1.2)[c] * polynomial(SHARED, seen[n, 2], monic)
        for n, c in enumerate(cluster)
    ]
    found = tasks.labels(jnp.asarray(x), jnp.asarray(cluster))
    # Terms of up to a hundred, a dozen roundings.
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    # The entries that the teacher does not see may be left out.
    np.testing.assert_allclose(tasks.labels(jnp.asarray(x[:, :3]), jnp.asarray(cluster)), found, rtol=1e-13)
    single = tasks.labels(jnp.asarray(x, jnp.float32), jnp.asarray(cluster))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, wanted, rtol=1e-4, atol=1e-4)


def test_tasks_are_on_the_axes_unless_placed():
    tasks = tt.Tasks(LOCAL, SHARED, (1.0, 1.0))
    np.testing.assert_array_equal(tasks.directions, np.eye(3))
    assert tasks.orders == 5 and tasks.local.shape == (2, 5)


@pytest.mark.parametrize(
    ("local", "shared", "exponent"),
    [([{4: 1.0}, {4: 1.0}], {4: 1.0}, 4), ([{4: 1.0}, {5: 1.0}], {3: 1.0}, 3), ([{0: 2.0, 2: 0.0}], {0: 1.0}, 0),
     ([{0: 2.0, 3: 1.0}], {}, 3)],
)  # fmt: skip
def test_exponents(local, shared, exponent):
    assert tt.Tasks(local, shared, [1.0] * len(local)).exponent == exponent


def test_lowest_order_of_one_function():
    assert [lowest(row) for row in ([5.0], [1.0, 0.0, -2.0, 1.0], [0.0, 0.0])] == [0, 2, 0]


def test_frame_has_tasks_and_then_means():
    problem = tt.Clustered(tt.Clusters(9, [[3.0, 4.0], [0.0, 2.0]], 2.0), tt.Tasks(LOCAL, SHARED, (1.0, 1.0)))
    np.testing.assert_allclose(problem.frame, [*np.eye(3), [0.6, 0.8, 0.0], [0.0, 1.0, 0.0]], rtol=1e-15)
    assert problem.tasks == ("w1", "w2", "wg")
    problem = tt.Clustered(orthogonal(7, 1.0, 3), tt.Tasks([{1: 1.0}] * 3, {2: 1.0}, (1.0, 0.0, 0.0)))
    np.testing.assert_array_equal(problem.frame, np.eye(7))


def test_antipodal_means_are_opposite_and_off_the_tasks():
    clusters = antipodal(10, 3.0)
    np.testing.assert_array_equal(clusters.means, [[0, 0, 0, 1], [0, 0, 0, -1]])
    np.testing.assert_array_equal(clusters.weights, [0.5, 0.5])


def test_weights_are_made_to_add_up():
    np.testing.assert_allclose(tt.Clusters(3, np.eye(3), 0.0, weights=(1, 2, 5)).weights, [0.125, 0.25, 0.625])
    assert tt.Clusters(1, [1.0], 2.0).count == 1


PLAIN = tt.Tasks([{1: 1.0}, {1: 1.0}], {1: 1.0}, (1.0, 1.0))
REFUSED = {
    "a zero mean": (lambda: tt.Clusters(5, [[1.0, 0.0], [0.0, 0.0]], 1.0), "none of them zero"),
    "a mean with nan": (lambda: tt.Clusters(5, [[1.0, np.nan]], 1.0), "finite numbers"),
    "no means": (lambda: tt.Clusters(5, [], 1.0), "none of them zero"),
    "ragged means": (lambda: tt.Clusters(5, [[1.0, 0.0], [1.0]], 1.0), "one row of finite numbers for each"),
    "long means": (lambda: tt.Clusters(2, np.eye(3), 1.0), "3 entries but dim is 2"),
    "a radius below 0": (lambda: tt.Clusters(5, np.eye(2), -1.0), "radius is -1.0"),
    "an infinite radius": (lambda: tt.Clusters(5, np.eye(2), np.inf), "radius is inf"),
    "no dimension": (lambda: tt.Clusters(0, np.eye(2), 1.0), "dim is 0"),
    "too many weights": (lambda: tt.Clusters(5, np.eye(2), 1.0, (1, 1, 1)), "2 positive numbers"),
    "a weight of 0": (lambda: tt.Clusters(5, np.eye(2), 1.0, (1, 0)), "2 positive numbers"),
    "an infinite weight": (lambda: tt.Clusters(5, np.eye(2), 1.0, (1, np.inf)), "2 positive numbers"),
    "no tasks": (lambda: tt.Tasks([], {}, []), "no local tasks"),
    "half an order": (lambda: tt.Tasks([{2.5: 1.0}], {}, [1.0]), "an order is 2.5"),
    "an order below 0": (lambda: tt.Tasks([{-1: 1.0}], {}, [1.0]), "an order is -1"),
    "a name as order": (lambda: tt.Tasks([{"a": 1.0}], {}, [1.0]), "an order is 'a'"),
    "a coefficient of nan": (lambda: tt.Tasks([{2: np.nan}], {}, [1.0]), "coefficient of order 2 is nan"),
    "few interferences": (lambda: tt.Tasks([{1: 1.0}] * 2, {}, [1.0]), "2 finite numbers"),
    "an interference of nan": (lambda: tt.Tasks([{1: 1.0}], {}, [np.nan]), "1 finite numbers"),
    "few directions": (lambda: tt.Tasks([{1: 1.0}] * 2, {}, [1.0, 1.0], np.eye(2)), "2 directions were given"),
    "other clusters": (lambda: tt.Clustered(tt.Clusters(5, np.eye(3), 1.0), PLAIN), "3 clusters but 2 local tasks"),
    "a small dimension": (lambda: tt.Clustered(tt.Clusters(2, np.eye(2), 1.0), PLAIN), "dim is 2"),
    "noise below 0": (lambda: tt.Clustered(antipodal(5, 1.0), PLAIN, noise=-0.1), "noise is -0.1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_one_sentence(case):
    make, words = REFUSED[case]
    with pytest.raises(tt.BadInput, match=words) as caught:
        make()
    text = str(caught.value)
    assert text.endswith(".") and ". " not in text
