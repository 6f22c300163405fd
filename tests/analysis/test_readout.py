"""Ridge regression of the second layer against a plain solution, its split into groups, and the errors it reports."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage._errors import BadInput
from tutelage.analysis.readout import errors, ridge
from tutelage.dynamics.streams import stream
from tutelage.problem.clusters import Clustered, Tasks, antipodal
from tutelage.problem.routers import Threshold, TopK
from tutelage.problem.units import Experts, Units

EXPERTS, WIDTH, DIM = 3, 5, 6


def laboratory(noise=0.5):
    tasks = Tasks(local=[{2: 1.0}, {1: -1.0}], shared={2: 1.0}, interference=(1.0, -1.0))
    data = stream(Clustered(antipodal(DIM, 3.0), tasks, noise), seed=3, phase=4)
    units, first = Experts(EXPERTS, WIDTH, "relu", bias=1.0).draw(np.random.default_rng(1), DIM)
    return data, units, first


@eqx.filter_jit
def batch(data, begin, count):
    return data.samples(begin, count)


def router(mixed=0.0):
    """Expert 1 sees one side of the axis of the means and experts 0 and 2 the other, unless rows are `mixed`."""
    theta = np.zeros((EXPERTS, DIM))
    theta[:, 3] = (1.0, -1.0, 1.0)
    theta[:, 4] = mixed
    return theta


def gates_of(theta, x, kind):
    scores = x @ theta.T
    if kind == "threshold":
        return (scores >= 0).astype(float)
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    keep = scores >= np.sort(scores, axis=1)[:, -2:-1]
    return weights * keep


@pytest.mark.parametrize(
    ("kind", "rule"), [("threshold", Threshold()), ("top two", TopK(2))], ids=["threshold", "top-k"]
)
def test_it_is_the_least_squares_solution(kind, rule):
    data, units, first = laboratory()
    theta, count, penalty = router(mixed=(0.3, 0.1, -0.2)), 2500, 1e-3
    x, y = (np.asarray(part) for part in batch(data, jnp.asarray(50), count)[:2])
    gates = gates_of(theta, x, kind)
    pre = np.einsum("sd,mjd->smj", x, first) + np.asarray(units.bias)
    features = (gates[:, :, None] * np.maximum(pre, 0) / WIDTH).reshape(count, -1)
    stacked = np.vstack([features / np.sqrt(count), np.sqrt(penalty) / WIDTH * np.eye(EXPERTS * WIDTH)])
    expected = np.linalg.lstsq(stacked, np.append(y / np.sqrt(count), np.zeros(EXPERTS * WIDTH)), rcond=None)[0]
    found = ridge(data, units, first, samples=count, penalty=penalty, theta=theta, router=rule, begin=50)
    # Normal equations of condition about 1e4 lose four digits of sixteen, and some by the size of the weights.
    np.testing.assert_allclose(found.outgoing.ravel(), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert found.idle == np.mean(~gates.any(axis=1))


def test_groups_that_never_meet_are_solved_alone_with_the_same_result():
    data, units, first = laboratory()
    options = {"samples": 900, "penalty": 1e-3, "theta": router()}
    parts, whole = (ridge(data, units, first, split=split, **options) for split in (True, False))
    assert parts.groups == ((0, 2), (1,)) and whole.groups == ((0, 1, 2),)
    np.testing.assert_allclose(parts.outgoing, whole.outgoing, rtol=1e-10, atol=1e-12)
    assert ridge(data, units, first, **options | {"theta": router(mixed=(0.0, 1.0, 0.0))}).groups == ((0, 1, 2),)


def test_an_expert_that_sees_nothing_has_weights_of_zero():
    data, units, first = laboratory()
    theta = np.concatenate([router()[:2], np.zeros((1, DIM))])
    found = ridge(data, units, first, samples=500, penalty=1e-3, theta=theta, router=Threshold(1e-9))
    assert found.groups == ((0,), (1,), (2,))
    assert not found.outgoing[2].any() and np.abs(found.outgoing[:2]).min() > 0


def test_without_a_router_every_expert_counts():
    data, units, first = laboratory()
    joined = Units(units.outgoing.reshape(1, -1), units.bias.reshape(1, -1), kind=units.kind)
    one = ridge(data, joined, first.reshape(1, -1, DIM), samples=600, penalty=1e-3)
    three = ridge(data, units, first, samples=600, penalty=1e-3)
    # 1/15 instead of 1/5 stands in front of the same sum. With equal lambda J^2 the function is the same.
    np.testing.assert_allclose(one.outgoing.ravel(), 3 * three.outgoing.ravel(), rtol=1e-8)


def test_errors_are_plain_means():
    data, units, first = laboratory()
    theta, count = router(mixed=(0.2, 0.0, 0.5)), 2500
    found = errors(data, units, first, samples=count, theta=theta, begin=11)
    drawn = batch(data, jnp.asarray(11), count)
    x, clean, cluster = (np.asarray(part) for part in (drawn.inputs, drawn.clean, drawn.cluster))
    gates = gates_of(theta, x, "threshold")
    pre = np.einsum("sd,mjd->smj", x, first) + np.asarray(units.bias)
    said = np.sum(gates * np.mean(np.asarray(units.outgoing) * np.maximum(pre, 0), axis=2), axis=1)
    miss = np.abs(said - clean)
    for some, absolute, squared in (
        (np.full(count, True), found.absolute, found.squared),
        (cluster == 1, found.absolute_by_cluster[1], found.squared_by_cluster[1]),
    ):
        for estimate, values in ((absolute, miss[some]), (squared, miss[some] ** 2)):
            assert estimate.value == pytest.approx(values.mean(), rel=1e-10)
            assert estimate.error == pytest.approx(values.std() / np.sqrt(len(values)), rel=1e-6)
    assert found.zero == pytest.approx(np.abs(clean).mean(), rel=1e-10)
    assert found.idle == pytest.approx(np.mean(~gates.any(axis=1)), abs=1e-12)
    assert 0 < found.idle < 0.5


def test_ridge_learns_what_its_features_can_say():
    data, units, first = laboratory(noise=0.0)
    wide, rows = Experts(EXPERTS, 60, "relu", bias=2.0).draw(np.random.default_rng(2), DIM)
    theta = router()
    found = ridge(data, wide, rows, samples=8000, penalty=1e-6, theta=theta)
    after = errors(data, found.put(wide), rows, samples=4000, theta=theta, begin=8000)
    # Functions of degree two in six dimensions, by 60 or 120 units: far better than nothing.
    assert after.absolute.value < 0.25 * after.zero


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"penalty": 0.0}, "penalty is 0.0"),
        ({"samples": 0}, "0 samples"),
        ({"theta": np.zeros((2, DIM))}, "theta has shape"),
    ],
)
def test_bad_input_is_refused(wrong, words):
    data, units, first = laboratory()
    with pytest.raises(BadInput, match=words):
        ridge(data, units, first, **{"samples": 100, "penalty": 1e-3} | wrong)


def test_dependent_features_need_a_penalty():
    data, units, first = laboratory()
    twins = np.broadcast_to(first[:, :1], first.shape).copy()
    same = Units(units.outgoing, jnp.zeros((EXPERTS, WIDTH)), kind=units.kind)
    with pytest.raises(BadInput, match="raise it"):
        ridge(data, same, twins, samples=200, penalty=1e-300)
