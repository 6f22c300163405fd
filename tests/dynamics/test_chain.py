"""The chain of single neurons: in law the same as SGD with samples of all dimensions, however it is cut."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.dynamics import neuron_sgd
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.neurons import in_basis, neurons_at
from tutelage.problem.clusters import Clusters, antipodal, orthogonal
from tutelage.problem.units import Experts, Units

ORDERS = [{3: 0.6, 4: 0.8}, {4: -1.0}]


def problem_of(dim, means="orthogonal", noise=0.0, directions=None):
    inputs = orthogonal(dim, 1.5, 2, weights=(0.6, 0.4)) if means == "orthogonal" else antipodal(dim, 1.5)
    return tt.Clustered(inputs, tt.Tasks(ORDERS, {4: 1.0}, (1.0, -1.0), directions), noise)


def walk(problem, units, start, *, samples, records=1, served=None, seed=0, **moves):
    """The run of one seed, recorded at equal distances."""
    at = np.arange(records + 1) * samples // records
    begin = neurons_at(problem, units, start, served)
    return tt.run(problem, tt.NeuronSgd(samples, **moves), start=begin, record=at, seeds=[seed])


def ends(found):
    """Overlaps at the end, (unit, row)."""
    return found.last("overlap").values[0, 0]


def units_of(kind, count):
    draw = np.random.default_rng(1)
    law = Experts(1, count, "relu", 0.5) if kind == "relu" else Experts(1, count, (3, 4))
    units = law.units(draw)
    signs = None if units.signs is None else units.signs[0]
    return Units(units.outgoing[0], units.bias[0], signs, units.kind, units.lowest)


def direct(problem, units, start, step, samples, seed, served=None):
    """Literal spherical SGD in all dimensions: a step along the tangent, then division by the length."""
    draw = np.random.default_rng(seed)
    w = start.copy()
    count, dim = w.shape
    means = np.pad(problem.inputs.means, ((0, 0), (0, dim - problem.inputs.means.shape[1])))
    weights = problem.inputs.weights if served is None else served
    for _ in range(samples):
        cluster = draw.choice(len(means), count, p=weights)
        x = draw.standard_normal((count, dim)) + problem.inputs.radius * means[cluster]
        y = np.asarray(problem.teacher.labels(jnp.asarray(x), jnp.asarray(cluster)))
        y = y + problem.noise * draw.standard_normal(count)
        u = np.sum(w * x, axis=1)
        g = step * y * np.asarray(units.outgoing) * np.asarray(units.slope(jnp.asarray(u)))
        w = w + g[:, None] * (x - u[:, None] * w)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    frame = np.pad(problem.frame, ((0, 0), (0, dim - problem.frame.shape[1])))
    return w @ frame.T


def common_start(problem, count):
    """All neurons at one place, with overlaps of order one, so that the law after few samples says much."""
    dim, columns = problem.inputs.dim, problem.frame.shape[1]
    w = np.ones(dim) / np.sqrt(dim)
    w[:columns] += 0.3 * np.arange(1, columns + 1)
    w = np.tile(w / np.linalg.norm(w), (count, 1))
    return w, w[:, :columns] @ problem.frame.T


SLANTED = np.array([[1.0, 0.0, 0.0], [0.3, 1.0, 0.0], [0.0, -0.2, 1.0]])
CASES = {
    "relu": dict(kind="relu", problem=problem_of(12, noise=0.3), served=None),
    "polynomial": dict(kind="polynomial", problem=problem_of(12), served=None),
    "slanted": dict(kind="relu", problem=problem_of(9, "antipodal", directions=SLANTED), served=(0.2, 0.8)),
    "no room": dict(kind="relu", problem=problem_of(4, "antipodal"), served=None),
    "little room": dict(kind="relu", problem=problem_of(5, "antipodal"), served=None),
    "room for two": dict(kind="relu", problem=problem_of(6, "antipodal"), served=None),
}


@pytest.mark.parametrize("name", CASES)
def test_same_law_as_sgd_in_all_dimensions(name):
    case, count, samples, step = CASES[name], 2500, 40, 0.02
    problem, units = case["problem"], units_of(case["kind"], count)
    w, start = common_start(problem, count)
    left = direct(problem, units, w, step, samples, 0, case["served"])
    found = walk(problem, units, start, step=step, samples=samples, served=case["served"], seed=1)
    # At most 5 rows in each of 6 cases; each test raises a false alarm with probability 1e-4: 0.3% for all.
    for row in range(start.shape[1]):
        assert ks_2samp(left[:, row], ends(found)[:, row]).pvalue > 1e-4, row
    assert np.std(left[:, 0]) > 0.03  # the law is no point
    inside = np.linalg.lstsq(in_basis(problem.frame), ends(found).T, rcond=None)[0]
    # 40 roundings of length 1, and the solution of a small system.
    np.testing.assert_allclose(np.sum(inside**2, axis=0) + found.last("beyond").values[0, 0] ** 2, 1.0, atol=1e-13)


def test_law_differs_with_another_step():
    """The test above can fail: a step larger by a fifth is seen."""
    case, count = CASES["relu"], 2500
    units = units_of("relu", count)
    w, start = common_start(case["problem"], count)
    left = direct(case["problem"], units, w, 0.02, 40, 0)
    right = ends(walk(case["problem"], units, start, step=0.024, samples=40, seed=1))
    assert min(ks_2samp(left[:, row], right[:, row]).pvalue for row in range(5)) < 1e-4


def test_a_walk_may_be_cut_anywhere(monkeypatch):
    problem, units = problem_of(20), units_of("relu", 8)
    start, levels = common_start(problem, 8)[1], (0.2, 0.6)
    whole = walk(problem, units, start, step=0.01, samples=150, records=3, levels=levels)
    np.testing.assert_array_equal(whole.time, [0, 50, 100, 150])
    part = walk(problem, units, start, step=0.01, samples=50, levels=levels)
    rest = tt.go_on(part, tt.Stage("rest", tt.NeuronSgd(100, 0.01, levels)))
    for name in ("overlap", "beyond", "hit_time"):
        np.testing.assert_array_equal(rest.last(name), whole.last(name))
    monkeypatch.setattr(neuron_sgd, "BLOCK", 17)
    other = walk(problem, units, start, step=0.01, samples=150, levels=levels)
    # Compiled loops of another length may round otherwise.
    np.testing.assert_allclose(ends(other), ends(whole), atol=1e-13)
    np.testing.assert_array_equal(other.last("hit_time"), whole.last("hit_time"))


def test_seeds_alone_and_together_and_taken_up_again(tmp_path):
    problem = problem_of(20).taught_to(Experts(2, 4))
    moves, at = tt.NeuronSgd(150, 0.01), np.arange(0, 151, 10)
    both = tt.run(problem, moves, seeds=[3, 5], record=at)
    alone = tt.run(problem, moves, seeds=[5], record=at)
    np.testing.assert_array_equal(alone.overlap[0], both.overlap[1])
    assert both.overlap.dims == ("seed", "time", "expert", "unit", "row")

    def stop(label, done, total):
        if done > 0:
            raise KeyboardInterrupt

    kept = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        tt.run(problem, moves, seeds=[3, 5], record=at, checkpoint=Checkpoint(kept, every=0.0), progress=stop)
    again = tt.run(problem, moves, seeds=[3, 5], record=at, checkpoint=kept)
    assert again.dataset.drop_attrs().equals(both.dataset.drop_attrs())


def test_an_event_is_found_at_its_sample():
    problem, units = problem_of(20), units_of("relu", 8)
    start = neurons_at(problem, units, common_start(problem, 8)[1])
    first = tt.Event("first", lambda view: jnp.max(jnp.abs(view.weights.inside[0])) - 0.45, stop=True)
    found = tt.run(problem, tt.NeuronSgd(200, 0.02, (0.45,)), start=start, record=tt.Record((200,), events=(first,)))
    path = walk(problem, units, common_start(problem, 8)[1], step=0.02, samples=200, levels=(0.45,))
    assert float(found.event_time[0, 0]) == np.min(path.last("hit_time").values[..., 0]) == float(found.stop_time[0])


def test_hits_are_first_passages_and_stop_a_walk():
    problem, units = problem_of(20), units_of("relu", 8)
    start = common_start(problem, 8)[1]
    path = walk(problem, units, start, step=0.02, samples=200, records=200, levels=(0.45, 0.5))
    passed = np.abs(path.overlap.values[0, :, 0])[None] >= np.array([0.45, 0.5])[:, None, None, None]
    told = np.where(passed.any(1), path.time.values[passed.argmax(1)], np.inf)
    np.testing.assert_array_equal(path.last("hit_time").values[0, :, 0], told)
    assert np.isfinite(told).any() and (told > 0).any() and np.isinf(told).any()
    ready = walk(problem, units, start, step=0.02, samples=10**6, levels=(0.05, 0.1), until=(0, 1))
    assert float(ready.stop_time[0]) < 10**6
    assert np.isfinite(ready.last("hit_time").values[0, 1, 0, :, :2]).any(1).all()


def test_any_dimension():
    """An axis that neither labels nor means know is turned by noise alone: its overlap keeps its law on the sphere."""
    dim, count = 10**9, 2500
    problem = tt.Clustered(antipodal(dim, 0.0), problem_of(9, "antipodal").teacher)
    start = Experts(1, count).overlaps(np.random.default_rng(0), dim, 4)[0] @ in_basis(problem.frame).T
    found = walk(problem, units_of("relu", count), start, step=3e-6, samples=200)
    before, after = np.sqrt(dim) * start[:, 3], np.sqrt(dim) * ends(found)[:, 3]
    assert np.corrcoef(before, after)[0, 1] < 0.9  # it has moved by its own size
    # 2500 standard normals: their mean square is 1 up to 4 standard errors of sqrt(2/2500), but for 6e-5 of seeds.
    assert abs(np.mean(after**2) - 1) < 4 * np.sqrt(2 / count)


def test_bad_input_is_refused():
    problem, units, still = problem_of(20, "antipodal"), units_of("relu", 2), np.zeros((2, 5))
    small = problem_of(4, "antipodal")  # the frame spans all dimensions
    for word, about, given, change in (
        ("shape", problem, np.zeros((2, 4)), {}),
        ("no unit vector", problem, [[0, 0, 0, 0.1, 0.1]] * 2, {}),
        ("no unit vector", problem, [[1, 1, 0, 0, 0]] * 2, {}),
        ("length 1", small, still, {}),
        ("served", problem, still, {"served": (1.0,)}),
        ("served", problem, still, {"served": (0.0, 0.0)}),
        ("samples is 1073741824", problem, still, {"samples": 2**30}),
        ("above 0", problem, still, {"step": 0.0}),
    ):
        with pytest.raises(BadInput, match=f"(?i){word}"):
            walk(about, units, given, **{"step": 0.1, "samples": 1} | change)
    with pytest.raises(BadInput, match="no student"):
        tt.run(problem, tt.NeuronSgd(1, 0.1))


def test_basis_of_a_dependent_frame():
    frame = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.6, -0.8, 0.0], [0.0, 0.0, 1.0]])
    rows = in_basis(frame)
    assert rows.shape == (4, 3)
    np.testing.assert_allclose(rows @ rows.T, frame @ frame.T, atol=1e-15)


def test_clusters_by_given_weights_are_those_served():
    """With only the second cluster served, the first task, which it does not have, is not learnt."""
    problem = tt.Clustered(Clusters(30, np.eye(5)[3:], 1.0), tt.Tasks([{1: 1.0}, {1: 1.0}], {1: 0.0}, (0.0, 0.0)))
    units = Units(jnp.ones(50), jnp.zeros(50), jnp.ones((50, 1)), lowest=1)
    found = walk(problem, units, np.zeros((50, 5)), step=0.01, samples=1000, served=(0.0, 1.0))
    means = np.mean(ends(found), axis=0)
    assert abs(means[0]) < 0.1 and means[1] > 0.8
