"""Training on streams: the same bits however it is cut, the same numbers as Algorithm 1, saved and resumed."""

import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage import _interrupt
from tutelage.dynamics import spherical
from tutelage.dynamics.base import Prepared
from tutelage.dynamics.blocks import Rule
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Loop
from tutelage.dynamics.loop import Limits
from tutelage.dynamics.spherical import SEGMENT, ExpertWeights, Learner, SphericalStep, on_segments
from tutelage.dynamics.staging import stacked
from tutelage.dynamics.streams import stream
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.clusters import antipodal
from tutelage.problem.routers import Threshold, Top1

DIM, EXPERTS, WIDTH = 8, 3, 4
TASKS = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
PROBLEM = tt.Clustered(antipodal(DIM, 3.0), TASKS)
RULE = Rule(jnp.asarray(1e-3), jnp.asarray(1 / WIDTH))
LENGTH = 3 * SEGMENT + 1000


def learner(seed=0, theta=None, router=None, precision="float64", **how):
    units, first = tt.Experts(EXPERTS, WIDTH, "relu").draw(np.random.default_rng(seed), DIM)
    theta = jnp.zeros((EXPERTS, DIM)) if theta is None else jnp.asarray(theta)
    data = stream(PROBLEM, seed, 1, precision)
    return Learner(data, units, jnp.asarray(first, precision), theta, router or Top1(), **how)


def course(learners=None, rule=RULE, samples=LENGTH, identity=""):
    """A loop over the stream of each learner."""
    learners = learners or [learner()]
    weights = stacked([ExpertWeights(each.first, each.units, each.theta) for each in learners])
    one = learners[0]
    step = SphericalStep(PROBLEM, rule, samples, one.router, one.weighted, one.stream.precision)
    keys = np.stack([np.asarray(each.stream.key) for each in learners])
    prepared = Prepared(step, ClusterOracle(PROBLEM), False, jnp.asarray(PROBLEM.frame), weights, keys, scored=False)
    return Loop(
        prepared,
        stops=on_segments(np.array([SEGMENT]), samples).astype(float),
        observables=(("first", lambda view: view.weights.first),),
        limits=Limits(None, None, jnp.asarray(10**9)),
        identity=identity,
    )


@pytest.fixture(scope="module")
def whole():
    made = course()
    made.follow()
    return made


def final(made):
    return list(np.asarray(made.state.moment.weights.first))


def looped(each, samples, step):
    """Algorithm 1 for ReLU units, one sample after the other."""
    drawn = each.stream.samples(0, samples)
    scores = drawn.inputs.astype(each.theta.dtype) @ each.theta.T
    seen = np.asarray(each.router.chosen(scores, each.stream.uniforms(0, samples, EXPERTS)))
    first, a = np.array(each.first, float), np.asarray(each.units.outgoing)
    for x, y, mine in zip(np.asarray(drawn.inputs), np.asarray(drawn.labels), seen, strict=True):
        for m in np.flatnonzero(mine):
            u = first[m] @ x
            g = step * y * a[m] * (u > 0)
            first[m] += g[:, None] * (x - u[:, None] * first[m])
            first[m] /= np.linalg.norm(first[m], axis=1, keepdims=True)
    return first


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunks_do_not_change_a_bit(monkeypatch, whole, chunk):
    monkeypatch.setattr(spherical, "CHUNK", chunk)
    cut = course()
    cut.follow()
    assert np.array_equal(final(cut)[0], final(whole)[0])
    assert np.array_equal(cut.records()["first"], whole.records()["first"])


def test_seeds_side_by_side_are_seeds_alone(whole):
    both = course([learner(0), learner(1)])
    both.follow()
    assert np.array_equal(final(both)[0], final(whole)[0])
    assert not np.array_equal(final(both)[0], final(both)[1])


@pytest.mark.parametrize("routed", [False, True])
def test_it_is_algorithm_1(routed):
    # At random (Phase I: all scores are zero), and by a router of which several experts may see a sample (Phase III).
    theta = np.random.default_rng(2).standard_normal((EXPERTS, DIM)) if routed else None
    each = learner(theta=theta, router=Threshold() if routed else None)
    made = course([each], samples=3000)
    made.follow()
    plain = looped(each, 3000, 1e-3)
    assert np.abs(plain - np.asarray(each.first)).max() > 0.05
    # A thousand updates per expert, rounding errors of 1e-16 each, which add up.
    assert np.abs(final(made)[0] - plain).max() < 1e-12


def test_large_experts_on_all_cores_are_the_same(monkeypatch, whole):
    monkeypatch.setattr(spherical, "LARGE", 1)
    alone = course()
    alone.follow()
    # One expert without a batch axis is another program: the order of additions may differ.
    assert np.abs(final(alone)[0] - final(whole)[0]).max() < 1e-11


def test_a_saved_run_goes_on_with_the_same_bits(monkeypatch, whole, tmp_path):
    monkeypatch.setattr(spherical, "CHUNK", 1)
    half = course()
    for _ in range(3):  # the start, the first segment, and the second, which has no record
        half.advance()
    half.save(tmp_path / "half.npz")
    again = course()
    again.restore(tmp_path / "half.npz")
    assert again.position == half.position == 2 and float(again.state.moment.clock[0]) == 2 * SEGMENT
    again.follow()
    assert np.array_equal(final(again)[0], final(whole)[0])
    assert np.array_equal(again.records()["first"], whole.records()["first"])


def test_a_stop_is_obeyed_between_chunks(monkeypatch, whole, tmp_path):
    monkeypatch.setattr(spherical, "CHUNK", 1)
    kept = Checkpoint(tmp_path / "kept.npz", every=1e9)
    halted = course()
    with _interrupt.gentle_signals():
        _interrupt.ask_to_stop()
        with pytest.raises(_interrupt.Interrupted):
            halted.follow(checkpoint=kept)
    assert halted.position == 1  # the start is recorded, and nothing else
    again = course()
    assert Checkpoint(tmp_path / "kept.npz").resume(again)
    again.follow()
    assert np.array_equal(final(again)[0], final(whole)[0])


def test_another_run_s_state_is_refused(tmp_path):
    one, other = course(identity="one"), course(identity="other")
    one.save(tmp_path / "one.npz")
    with pytest.raises(tt.BadInput, match="different run"):
        other.restore(tmp_path / "one.npz")
    (tmp_path / "one.npz").write_bytes(b"PK nothing")
    with pytest.raises(tt.BadInput, match="cannot be read"):
        one.restore(tmp_path / "one.npz")


def test_a_segment_with_a_vanishing_coefficient_is_done_again_safely():
    # The first sample of a segment is made such that 1 - g u = 0 for a unit of the second expert.
    each = learner(theta=np.zeros((EXPERTS, DIM)), router=Threshold())
    samples = each.stream.samples(0, SEGMENT)
    w = each.first[1, 0]
    x = samples.inputs.at[0].set(3 * w + 0.1 * samples.inputs[0])
    label = each.units.outgoing[1, 0] / (1e-3 * (w @ x[0]))
    gates = jnp.zeros((EXPERTS, SEGMENT)).at[:, :64].set(1.0)
    rigged = samples._replace(inputs=x, labels=samples.labels.at[0].set(label))
    moved = np.asarray(spherical.segment(RULE, each.units, each.first, rigged, gates))
    first, a = np.array(each.first), np.asarray(each.units.outgoing)
    for sample, y in zip(np.asarray(x)[:64], np.asarray(rigged.labels)[:64], strict=True):
        u = first @ sample
        g = 1e-3 * y * a * (u > 0)
        first += g[..., None] * (sample - u[..., None] * first)
        first /= np.linalg.norm(first, axis=-1, keepdims=True)
    assert not spherical._apart(RULE, each.units, each.first, rigged, gates, careful=False)[1][1]
    assert np.abs(moved - first).max() < 1e-10


def test_samples_beyond_the_end_are_not_seen():
    short, shorter = course(samples=500), course(samples=499)
    for made in (short, shorter):
        made.follow()
    assert np.abs(final(short)[0] - final(shorter)[0]).max() > 0
    assert np.abs(final(short)[0] - looped(learner(), 500, 1e-3)).max() < 1e-13


def test_squared_loss_of_a_mixture_is_that_of_all_active_experts():
    theta = np.random.default_rng(2).standard_normal((EXPERTS, DIM))
    each = learner(theta=theta, router=Threshold())
    made = course([each], Rule(jnp.asarray(1e-2), jnp.asarray(1 / WIDTH), "squared"), samples=600)
    made.follow()
    drawn = each.stream.samples(0, 600)
    first, a = np.array(each.first), np.asarray(each.units.outgoing)
    for x, y in zip(np.asarray(drawn.inputs), np.asarray(drawn.labels), strict=True):
        active = theta @ x >= 0
        u = first @ x
        said = np.sum(active[:, None] * a * np.maximum(u, 0)) / WIDTH
        g = 1e-2 * (y - said) * a * (u > 0) * active[:, None]
        first += g[..., None] * (x - u[..., None] * first)
        first /= np.linalg.norm(first, axis=-1, keepdims=True)
    assert np.abs(final(made)[0] - first).max() < 1e-12


def test_weighted_gates_scale_the_step():
    # At theta = 0 the softmax weight is 1/3: three times the step undoes it, up to rounding.
    made = course([learner(weighted=True)], Rule(jnp.asarray(3e-3), jnp.asarray(1 / WIDTH)), samples=2000)
    plain = course(samples=2000)
    for each in (made, plain):
        each.follow()
    assert np.abs(final(made)[0] - final(plain)[0]).max() < 1e-12


def test_single_precision_follows_for_a_while():
    short = course([learner(precision="float32")], samples=1000)
    short.follow()
    assert final(short)[0].dtype == np.float32
    # The samples are other ones (32 random bits each): learning is the same in kind only. Norms are exact to rounding.
    assert np.abs(np.linalg.norm(final(short)[0], axis=-1) - 1).max() < 1e-6
    assert np.abs(final(short)[0] - looped(learner(precision="float32"), 1000, 1e-3)).max() < 1e-4


def test_records_are_on_whole_segments():
    assert on_segments(np.array([1, SEGMENT, SEGMENT + 1, 10**9]), 10 * SEGMENT + 5).tolist() == [
        0, SEGMENT, 2 * SEGMENT, 10 * SEGMENT + 5,
    ]  # fmt: skip


def test_bad_learners_are_refused():
    good = learner()
    with pytest.raises(tt.BadInput, match="router"):
        Learner(good.stream, good.units, good.first, good.theta)
    with pytest.raises(tt.BadInput, match="weighted"):
        tt.Spherical(samples=100, step=1e-3, weighted=True, loss="squared")


def test_events_are_refused():
    problem = PROBLEM.taught_to(tt.Experts(1, 2))
    with pytest.raises(tt.BadInput, match="watches no events"):
        tt.run(problem, tt.Spherical(samples=100, step=1e-3), record=tt.Record(events=(tt.below(0.1),)))
