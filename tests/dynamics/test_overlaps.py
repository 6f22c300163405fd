"""The reduced flow of overlaps: against a fine fixed step, finite differences, closed solutions and its invariants."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.neurons import initial, neurons_at
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import antipodal, orthogonal

DIM, COUNT = 60, 32  # one number of units and few numbers of records, so that programs are compiled once


def tasks(order=4, directions=None):
    return tt.Tasks([{order: 1.0}, {order: -1.0}], {order: 1.0}, (1.0, -1.0), directions)


def skewed():
    """Tasks and means that are not orthogonal among themselves."""
    axes = np.eye(6)
    rows = axes[:3] + 0.3 * np.random.default_rng(1).standard_normal((3, 3)) @ axes[:3]
    means = np.stack([axes[3], 0.4 * axes[3] + axes[4]])
    return tt.Clustered(tt.Clusters(DIM, means, 1.5, [0.4, 0.6]), tasks(directions=rows))


PROBLEMS = {
    "orthogonal": tt.Clustered(orthogonal(DIM, 1.0, 2), tasks()),
    "antipodal": tt.Clustered(antipodal(DIM, 2.0), tasks()),
    "skewed": skewed(),
}


def drawn(problem, kind="relu", bias=0.5, seed=3, width=COUNT):
    units, start = initial(problem, tt.Experts(1, width, kind, bias), np.random.default_rng(seed))
    return units, start


def flown(problem, units, start, until, at=(), served=None, **moves):
    """The run of one seed: at the end of it, or at times."""
    begin = neurons_at(problem, units, start, served)
    return tt.run(problem, tt.NeuronFlow(until, **moves), start=begin, record=(*at, until))


def last(found, name):
    return found.last(name).values[0]


def reference(problem, units, start, until, steps):
    """Classical Runge-Kutta with a fixed step; the force is a central difference of the correlation."""
    oracle, eye = ClusterOracle(problem), 1e-5 * np.eye(start.shape[-1])
    gram = problem.frame @ problem.frame.T

    correlation = eqx.filter_jit(oracle.field)

    def velocity(o):
        around = np.stack([o + row for row in eye] + [o - row for row in eye])
        both = np.asarray(correlation(units, jnp.asarray(around)).correlation)
        force = np.moveaxis(both[: len(eye)] - both[len(eye) :], 0, -1) / 2e-5
        return force @ gram - o * np.sum(o * force, axis=-1, keepdims=True)

    o, h = start.copy(), until / steps
    for _ in range(steps):
        a = velocity(o)
        b = velocity(o + h / 2 * a)
        c = velocity(o + h / 2 * b)
        o = o + h / 6 * (a + 2 * b + 2 * c + velocity(o + h * c))
    return o


@pytest.mark.parametrize("name", PROBLEMS)
def test_against_a_fine_fixed_step(name):
    problem = PROBLEMS[name]
    units, start = drawn(problem)
    start = start * 2.0 / np.sqrt(np.maximum(1.0, 12 * np.sum(start**2, -1, keepdims=True)))  # to see them move
    found = flown(problem, units, start, 20.0, rtol=1e-10)
    seen = reference(problem, units, start, 20.0, 200)
    assert np.abs(seen - start).max() > 0.02
    # Differences with h = 1e-5 are right to 1e-10 and the steps of 0.1 to 1e-7; over a time of 20 that grows tenfold.
    np.testing.assert_allclose(last(found, "overlap"), seen, rtol=0, atol=1e-6)


def test_escape_time_of_the_closed_solution():
    """One cluster served, `a h_4`: d kappa/dt = 4 kappa^3 (1 - kappa^2) if kappa is the only overlap."""
    problem = PROBLEMS["orthogonal"]
    units, _ = drawn(problem, (4, 4), 0.0)
    good = np.asarray(units.outgoing * units.signs[..., 0])[0] > 0
    start = np.zeros((1, COUNT, 5))
    start[..., 0] = 1e-3
    found = flown(problem, units, start, 1e7, served=(1.0, 0.0), rtol=1e-9)
    crossed, final = last(found, "cross_time"), last(found, "overlap")

    def clock(x):  # the integral of 1/(4 x^3 (1 - x^2))
        return -1 / (8 * x**2) + np.log(x) / 4 - np.log(1 - x**2) / 8

    # Errors of the steps, 1e-9 each over some hundred, are doubled by the power law of the escape; its interpolation
    # in the last step, of width 1 beside 125000, adds less.
    np.testing.assert_allclose(crossed[0, good, 0], clock(0.5) - clock(1e-3), rtol=1e-6)
    np.testing.assert_allclose(final[0, good, 0], 1.0, atol=1e-6)  # at rest to 100 rtol
    assert np.isinf(crossed[0, ~good]).all() and np.isinf(crossed[..., 1:]).all()
    # The others decay: d kappa/dt = -4 kappa^3 (1 + kappa^2) up to kappa^2 = 1e-6.
    np.testing.assert_allclose(final[0, ~good, 0], (1e6 + 8 * 1e7) ** -0.5, rtol=1e-5)


def test_invariants_and_outcomes_in_a_billion_dimensions():
    problem = tt.Clustered(antipodal(10**9, 3.0), tasks())
    units, start = drawn(problem, bias=0.0)
    times = np.geomspace(1e3, 1e16, 9)
    found = flown(problem, units, start, 1e17, times)
    overlaps, final, settled = found.overlap.values[0], last(found, "overlap"), last(found, "settle_time")
    # |o|^2, the mean counted once, is the squared norm of a unit vector's part; rtol 1e-7 a step.
    norms = np.sum(overlaps[..., :4] ** 2, axis=-1)
    assert norms.max() <= 1 + 1e-5
    np.testing.assert_allclose(overlaps[..., 3], -overlaps[..., 4], atol=1e-12)
    # ReLU without biases and antipodal means: the correlation has nothing of the global task, each neuron learns one
    # local task, which the sign of its coefficient names. -0.0814 is the coefficient of order 4.
    assert np.isfinite(settled).all()
    expected = np.where(np.asarray(units.outgoing) < 0, 0, 1)
    np.testing.assert_array_equal(np.argmax(np.abs(final), axis=-1), expected)
    assert (np.take_along_axis(np.abs(final), expected[..., None], -1) > 0.999).all()
    assert last(found, "largest")[..., 2].max() <= np.abs(start[..., 2]).max() * 1.01
    # Records of a unit at rest are its end.
    there = settled < times[-1]
    np.testing.assert_array_equal(overlaps[-2][there], final[there])


def test_starts_that_do_not_move():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem, (4, 4), 0.0)
    start = np.zeros_like(start)
    start[0, 1, 0], start[0, 2, 0], start[0, 3, 2] = 1.0, -1.0, 1.0
    found = flown(problem, units, start, 100.0)
    np.testing.assert_array_equal(last(found, "overlap"), start)
    np.testing.assert_array_equal(last(found, "settle_time"), np.zeros((1, COUNT)))
    crossed = last(found, "cross_time")
    assert crossed[0, 1, 0] == 0 and np.isinf(crossed[0, 0]).all()


def test_records_do_not_change_the_way():
    """Each neuron at a pace of its own: records, and the end, are at its own times."""
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem)
    plain = last(flown(problem, units, start, 1e3, rtol=1e-9), "overlap")
    pace = np.linspace(0.5, 1.0, COUNT)
    times = np.linspace(0, 1e3, 9)
    found = flown(problem, units, start, 1e3, times, times=times, rtol=1e-9, pace=pace)
    np.testing.assert_array_equal(found.overlap.values[0, 0], start)
    np.testing.assert_array_equal(last(found, "noted"), found.overlap.values[0])
    np.testing.assert_allclose(last(found, "overlap")[0, -1], plain[0, -1], atol=1e-6)
    half = last(flown(problem, units, start, 500.0, rtol=1e-9), "overlap")
    np.testing.assert_allclose(last(found, "overlap")[0, 0], half[0, 0], atol=1e-6)


def test_seeds_alone_and_together_and_taken_up_again(tmp_path):
    problem = PROBLEMS["orthogonal"].taught_to(tt.Experts(2, COUNT // 2))
    moves, at = tt.NeuronFlow(1e3), np.linspace(0, 1e3, 9)
    both = tt.run(problem, moves, seeds=[3, 5], record=at)
    alone = tt.run(problem, moves, seeds=[5], record=at)
    # Sums in another order change steps that are good to 1e-7.
    np.testing.assert_allclose(alone.overlap[0], both.overlap[1], atol=1e-6)
    assert both.overlap.dims == ("seed", "time", "expert", "unit", "row")

    def stop(label, done, total):
        if done > 0:
            raise KeyboardInterrupt

    kept = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        tt.run(problem, moves, seeds=[3, 5], record=at, checkpoint=Checkpoint(kept, every=0.0), progress=stop)
    again = tt.run(problem, moves, seeds=[3, 5], record=at, checkpoint=kept)
    assert again.dataset.drop_attrs().equals(both.dataset.drop_attrs())


def test_experts_are_served_what_they_are_sent():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem, (4, 4), 0.0, width=COUNT // 2)
    units, start = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), (units, jnp.asarray(start)))
    sent = last(flown(problem, units, start, 1e4, served=[[1.0, 0.0], [0.3, 0.7]]), "overlap")
    for expert, served in enumerate(([1.0, 0.0], [0.3, 0.7])):
        alone = flown(problem, units.expert(expert), start[expert], 1e4, served=served)
        np.testing.assert_allclose(last(alone, "overlap")[0], sent[expert], atol=1e-5)  # 100 steps of 1e-7


def test_halt_ends_a_unit_where_it_crosses():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem, (4, 4), 0.0)
    halt = np.zeros(start.shape, bool)
    halt[..., :2] = True
    found = flown(problem, units, start, 1e9, threshold=0.3, halt=halt)
    top = np.abs(last(found, "overlap")[..., :2]).max(-1)
    assert ((top >= 0.3) & (top < 0.9)).all()
    assert np.isinf(last(found, "settle_time")).all()


def test_flips_are_seen():
    """ReLU's alpha_4 changes its sign where |b + rho nu| crosses 1: a unit with a bias of 0.9 drifts across."""
    problem = tt.Clustered(orthogonal(100, 3.0, 2), tasks())
    units, start = drawn(problem, bias=1.5)
    found = flown(problem, units, start, 1e8)
    shift = np.asarray(units.bias)[..., None] + 3.0 * np.stack([start, last(found, "overlap")])[..., 3:]
    ends = (np.abs(shift[0]) < 1) != (np.abs(shift[1]) < 1)
    flips = np.isfinite(last(found, "flip_time")[..., 4])
    assert ends.any() and flips[ends].all()  # those that end on the other side have crossed
    assert not flips.all()


@pytest.mark.parametrize(
    "change, word",
    [
        ({"until": 0.0}, "until"),
        ({"until": np.inf}, "until"),
        ({"rtol": 0.1}, "rtol"),
        ({"times": [2.0, 1.0]}, "ascend"),
        ({"times": [200.0]}, "ascend"),
        ({"at": [200.0]}, "between 0 and 100"),
        ({"start": np.ones((1, COUNT, 5))}, "No unit vector"),
        ({"start": np.full((1, COUNT, 5), np.nan)}, "finite numbers"),
        ({"start": np.zeros((COUNT, 5))}, "shape"),
    ],
)
def test_bad_input(change, word):
    problem = PROBLEMS["antipodal"]
    units, start = drawn(problem)
    with pytest.raises(BadInput, match=word):
        flown(**{"problem": problem, "units": units, "start": start, "until": 100.0} | change)


def test_overlaps_that_contradict_the_frame_are_refused():
    problem = PROBLEMS["antipodal"]
    units, start = drawn(problem)
    start[..., 4] = start[..., 3]  # but v_2 = -v_1
    with pytest.raises(BadInput, match="No unit vector"):
        flown(problem, units, start, 100.0)


def test_too_many_steps_end_a_run():
    problem = PROBLEMS["orthogonal"]
    units, start = drawn(problem)
    begin = neurons_at(problem, units, start)
    found = tt.run(problem, tt.NeuronFlow(1e6), start=begin, record=(1e6,), stop=tt.Stop(steps=3))
    assert found.stopped == (tt.StopReason.CAP,)


def test_nothing_is_watched_between_records():
    """After a step neurons are at times of their own, so that an event would be seen at no time."""
    problem = PROBLEMS["orthogonal"].taught_to(tt.Experts(1, 2))
    event = tt.Event("large", lambda view: jnp.max(view.weights.overlaps) - 0.5)
    with pytest.raises(BadInput, match="watches no events"):
        tt.run(problem, tt.NeuronFlow(1.0), record=tt.Record(events=(event,)))
