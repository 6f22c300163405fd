"""Online SGD: the law against direct sampling written out in NumPy, edges of the dimension, noise, keys, saving.

Statistical tests compare the distributions of all overlaps over thousands of seeds by Kolmogorov-Smirnov tests, with
`LEVEL` shared out among the quantities of a test; all seeds are fixed, so that a test that passes goes on passing.
"""

import functools
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from dynamics.loops import make_loop
from scipy import special, stats

import tutelage as tt
from tutelage.dynamics import random
from tutelage.dynamics.driver import Loop
from tutelage.dynamics.loop import Limits
from tutelage.dynamics.online import Frame, OnlineStep, chi
from tutelage.oracle.population import population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.networks import Rates

LEVEL = 1e-4  # false-alarm rate of one statistical test; there are about 40
STEPS, STEP = 3, 0.3
NUMPY = {
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
    "abs": (np.abs, np.sign),
    "erf": (special.erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
}


def make(name="relu", dim=9, units=3, outputs=1, noise=0.0, trains=("first", "second"), teachers=2):
    draw = np.random.default_rng(3)
    target = np.zeros((teachers, dim))
    target[:, :2] = [[1.0, 0.0], [0.6, 0.8], [1.0, 0.0]][:teachers]
    second = 1.0 + 0.3 * draw.standard_normal((units, outputs))
    return tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer(name, first=target, second=np.ones((teachers, outputs))),
        student=tt.TwoLayer(name, first=draw.standard_normal((units, dim)) / 3, second=second, trains=trains),
        noise=noise,
    )


def reference(problem, batch, count, step=STEP, steps=STEPS, see=None):
    """`count` runs of SGD with all `dim` coordinates, as one writes it in NumPy: the overlaps, or what `see` sees."""
    draw = np.random.default_rng(11)
    s, slope = NUMPY[problem.student.activation.name]
    target, out = problem.teacher.first, problem.teacher.second
    first = np.repeat(problem.student.first[None], count, 0)
    second = np.repeat(problem.student.second[None], count, 0)
    for _ in range(steps):
        x = draw.standard_normal((count, batch, problem.inputs.dim))
        pre = x @ first.transpose(0, 2, 1)
        labels = s(x @ target.T) @ out
        labels = labels + problem.noise * draw.standard_normal(labels.shape)
        residual = s(pre) @ second - labels
        errors = slope(pre) * (residual @ second.transpose(0, 2, 1))
        moves = errors.transpose(0, 2, 1) @ x, s(pre).transpose(0, 2, 1) @ residual
        if "first" in problem.student.trains:
            first = first - step / batch * moves[0]
        if "second" in problem.student.trains:
            second = second - step / batch * moves[1]
    return (see or overlaps)(first, second, target)


def overlaps(first, second, target):
    return quantities(first @ target.T, first @ first.transpose(0, 2, 1), second)


def beyond_teachers(first, second, target):
    """Inner products of the units without their parts along the teachers, who have the first two columns."""
    rest = first[..., 2:]
    gram = rest @ rest.transpose(0, 2, 1)
    return gram[:, *np.triu_indices(gram.shape[1])]


def quantities(teacher, own, second):
    upper = np.triu_indices(own.shape[1])
    return np.concatenate([teacher.reshape(len(own), -1), own[:, *upper], second.reshape(len(own), -1)], axis=1)


def narrow(dim, rows, columns, batch, *, learns=True, ahead=2):
    """No more columns than there must be, with spare ones for a few updates: all coordinates would be quicker here."""
    spare = ahead * min(batch, rows) if learns and dim > columns else 0
    return Frame(columns + spare, dim - columns if spare else 0, ahead)


def ours(
    problem, batch, count, step=STEP, steps=STEPS, kind=OnlineStep, more=0, law="exact", dtype="float64", see=overlaps,
    ahead=2,
):  # fmt: skip
    """The same by the dynamics, from the same start; `kind` and `more` degrees of freedom are for planted errors."""
    dim, first = problem.inputs.dim, problem.teacher.first
    teacher, student = settle(dim, first, problem.student.first) if law == "exact" else (first, problem.student.first)
    frame = narrow(dim, *student.shape, batch, ahead=ahead)
    teacher, student = (np.pad(rows, ((0, 0), (0, frame.columns - rows.shape[1]))) for rows in (teacher, student))
    dynamics = kind(
        jnp.array(step),
        Rates(jnp.array(1.0), jnp.array(1.0)),
        jnp.array(problem.noise) if problem.noise else None,
        jnp.array(float(frame.outside + more)) if frame.outside else None,
        problem.student.trains,
        batch,
        ahead,
        precision=dtype,
    )
    oracle = population_oracle(problem, tt.Weights(jnp.asarray(teacher), jnp.asarray(problem.teacher.second)))
    start = tt.Weights(jnp.asarray(student), jnp.asarray(problem.student.second))
    end = replicas(dynamics, oracle, start, KEYS[:count], steps)
    return see(np.asarray(end.first), np.asarray(end.second), teacher)


KEYS = jnp.asarray(np.stack([random.key_of(seed) for seed in range(4000)]))


@eqx.filter_jit
def replicas(dynamics, oracle, start, keys, steps):
    def one(key):
        begin = dynamics.seeded(dynamics.begin(oracle, start), key)
        return jax.lax.fori_loop(0, steps, lambda _, now: taken(dynamics, oracle, now), begin).weights

    return jax.vmap(one)(keys)


def taken(dynamics, oracle, moment):
    """One step further, with fresh random numbers if they are due."""
    moment = jax.lax.cond(dynamics.spent(moment), lambda now: dynamics.supplied(now), lambda now: now, moment)
    return dynamics.step(oracle, moment, moment.clock)[0]


def worst(left, right):
    """The smallest p-value over the quantities, times their number.

    With one example all units may be inactive, and an overlap stays what it was: rounded, so that equal is equal.
    """
    left, right = left.round(9), right.round(9)
    varied = [i for i in range(left.shape[1]) if np.ptp(right[:, i]) > 0]
    return len(varied) * min(stats.ks_2samp(left[:, i], right[:, i]).pvalue for i in varied)


COUNT = {1: 4000, 8: 4000, 512: 1200}


@pytest.mark.parametrize("batch", [1, 8, 512])
@pytest.mark.parametrize("name", ["relu", "erf", "abs"])
def test_the_law_is_that_of_direct_sampling(name, batch):
    problem, count = make(name), COUNT[batch]
    assert worst(ours(problem, batch, count), reference(problem, batch, count)) > LEVEL


# Each batch is below (1) or above (8) the number of units: the two forms of the factor.
OTHERS = {
    "dim is the frame": ({"dim": 5}, 8, {}),
    "one dimension more": ({"dim": 6}, 8, {}),
    "one dimension more, one example": ({"dim": 6}, 1, {}),
    "two dimensions more": ({"dim": 7}, 8, {}),
    "two dimensions more, one example": ({"dim": 7}, 1, {}),
    "dim below units and teachers": ({"dim": 4}, 8, {}),
    "equal teachers, first layer only": ({"teachers": 3, "trains": ("first",)}, 8, {}),
    "single precision": ({}, 8, {"dtype": "float32"}),
    "direct": ({}, 8, {"law": "direct"}),
    "spare columns for one update": ({}, 1, {"ahead": 1}),
    "spare columns for three updates, of which the space has two": ({"dim": 7}, 1, {"ahead": 3}),
    "many examples, spare columns for three updates": ({}, 8, {"ahead": 3}),
    "many examples in single precision": ({}, 64, {"dtype": "float32", "ahead": 1}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_the_law_in_other_settings(case):
    setting, batch, options = OTHERS[case]
    problem = make(**setting)
    assert worst(ours(problem, batch, 4000, **options), reference(problem, batch, 4000)) > LEVEL


def test_label_noise_is_in_the_law_and_its_absence_is_seen():
    noisy, silent = (make(outputs=2, noise=noise) for noise in (2.0, 0.0))
    found = ours(noisy, 8, 4000)
    assert worst(found, reference(noisy, 8, 4000)) > LEVEL
    assert worst(found, reference(silent, 8, 4000)) < LEVEL


def test_a_wrong_step_is_seen():
    assert worst(ours(make(), 8, 4000, step=1.2 * STEP), reference(make(), 8, 4000)) < LEVEL


class TooWide(OnlineStep):
    """A planted error: the part outside the frame larger by a half."""

    def _outside(self, *where):
        return 1.5 * super()._outside(*where)


def in_the_teachers_span(name, units):
    """Units that start in the span of the teachers, with a frame of one dimension less than the space.

    All that the units then have beyond the teachers is noise, with `units + 1` degrees of freedom at every batch size:
    those of the columns of the frame, and one outside. Nothing larger hides it.
    """
    draw = np.random.default_rng(5)
    problem = make(name, dim=2 + units + 1, units=units, trains=("first",))
    first = np.pad(0.3 * draw.standard_normal((units, 2)), ((0, 0), (0, units + 1)))
    student = tt.TwoLayer(name, first=first, second=problem.student.second, trains=("first",))
    return tt.Problem(inputs=problem.inputs, teacher=problem.teacher, student=student)


@pytest.mark.parametrize("batch", [1, 8, 512])
@pytest.mark.parametrize("name", ["relu", "erf", "abs"])
def test_degrees_of_freedom_and_factors_outside_the_frame(name, batch):
    # With one example the size of the noise is itself left to chance: one unit, so that 2 degrees stand against 3.
    problem, count = in_the_teachers_span(name, 1 if batch == 1 else 2), 4000 if batch < 512 else 1500
    options = {"steps": 2, "see": beyond_teachers}
    once = {"ahead": 1, **options}  # after a turn one dimension is outside again, in which all errors are
    right = reference(problem, batch, count, **options)
    assert worst(ours(problem, batch, count, **once), right) > LEVEL
    assert worst(ours(problem, batch, count, more=1, **once), right) < LEVEL
    assert worst(ours(problem, batch, count, kind=TooWide, **once), right) < LEVEL


def test_the_mean_update_is_the_population_gradient():
    """Inner products with the teachers and outgoing weights are linear in the update; 9 z-scores, 2e-6 in all."""
    problem, count = make(), 4000
    before = quantities(*start_of(problem, count))
    change = ours(problem, 8, count, step=0.1, steps=1) - before
    teacher, student = settle(9, problem.teacher.first, problem.student.first)
    oracle = population_oracle(problem, tt.Weights(jnp.asarray(teacher), jnp.asarray(problem.teacher.second)))
    slope = oracle.gradient(tt.Weights(jnp.asarray(student), jnp.asarray(problem.student.second)))
    linear = np.r_[0:6, 12:15]
    exact = np.concatenate([np.ravel(slope.first @ teacher.T), np.ravel(slope.second)])
    error = change[:, linear].std(0) / np.sqrt(count)
    assert np.all(np.abs(change[:, linear].mean(0) + 0.1 * exact) < 5.2 * error)


def start_of(problem, count):
    first, second = problem.student.first, problem.student.second
    parts = first @ problem.teacher.first.T, first @ first.T, second
    return (np.repeat(part[None], count, 0) for part in parts)


@pytest.mark.parametrize("dim", [10**3, 10**9, 10**12])
def test_any_dimension(dim):
    """From w = 0 one example moves a linear unit to step (t.x) x: |w|^2 / (w.t) = step |x|^2, which is about dim."""
    problem = tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=[[0.0]], trains=("first",)),
    )
    run = tt.sgd(problem, step=1 / dim, steps=1, batch=1, seeds=50, record="all")
    square = (run.last("overlap_ss").squeeze() / run.last("overlap").squeeze()).values
    degrees = stats.chi2(dim)
    assert stats.kstest(square * dim, degrees.cdf).pvalue > LEVEL
    assert np.ptp(square) > 0


def test_settled_coordinates_keep_all_inner_products():
    draw = np.random.default_rng(0)
    for teachers, students, columns, dim in [(2, 3, 3, 50), (3, 2, 9, 9), (4, 2, 2, 3), (1, 4, 30, 30), (3, 3, 5, 5)]:
        rows = draw.standard_normal((teachers + students, columns))
        teacher, student = settle(dim, rows[:teachers], rows[teachers:])
        both = np.concatenate([teacher, student])
        own = min(teachers, columns)
        assert both.shape[1] == own + min(students, dim - own)
        assert not teacher[:, own:].any()
        np.testing.assert_allclose(both @ both.T, rows @ rows.T, atol=1e-13 * columns)


def test_seeds_are_streams_of_their_own():
    problem = make(dim=10**6)
    options = {"step": 1e-6, "steps": 40, "batch": 5}
    whole, again = (tt.sgd(problem, seeds=4, **options) for _ in range(2))
    np.testing.assert_array_equal(whole.loss, again.loss)
    alone = tt.sgd(problem, seeds=[2], **options)
    np.testing.assert_allclose(whole.loss[2], alone.loss[0], rtol=1e-12)  # sums in another order
    assert len(np.unique(np.asarray(whole.last("loss")))) == 4
    sparse = tt.sgd(problem, seeds=4, record=2, **options)
    np.testing.assert_array_equal(whole.final.second, sparse.final.second)


def test_chunks_saving_and_restoring_change_nothing(tmp_path, monkeypatch):
    whole, other, resumed = build(), build(), build()
    whole.follow()
    with monkeypatch.context() as longer:
        longer.setattr(Loop, "chunk", 7)
        other.follow()
    for _ in range(2):
        resumed.advance()
    resumed.save(tmp_path / "state.npz")
    again = build()
    again.restore(tmp_path / "state.npz")
    again.follow()
    for loop in (other, again):
        for left, right in zip(jax.tree.leaves(whole.state), jax.tree.leaves(loop.state), strict=True):
            np.testing.assert_array_equal(left, right)


def settled(problem):
    """The oracle, and start and teacher in the coordinates of online SGD, with spare ones for two updates of three."""
    teacher, student = settle(problem.inputs.dim, problem.teacher.first, problem.student.first)
    teacher, student = (np.pad(rows, ((0, 0), (0, 6))) for rows in (teacher, student))
    target = tt.Weights(jnp.asarray(teacher), jnp.asarray(problem.teacher.second))
    start = tt.Weights(jnp.asarray(student), jnp.asarray(problem.student.second))
    return population_oracle(problem, target), start, target


def online(size, noise=None, **options):
    ones = Rates(jnp.array(1.0), jnp.array(1.0))
    return OnlineStep(jnp.array(size), ones, noise, jnp.array(995.0), ("first", "second"), 5, 2, **options)


def build():
    oracle, start, target = settled(make(dim=1000, noise=0.1))
    return make_loop(
        online(1e-3, jnp.array(0.1)),
        oracle,
        batched=False,
        teacher=target,
        start=jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), start),
        stops=np.arange(60.0),
        observables=(("loss", lambda view: view.loss),),
        events=[tt.below(0.3)],
        limits=Limits(None, jnp.array(0.0), jnp.array(1000)),
        keys=np.stack([random.key_of(seed) for seed in (0, 1)]),
    )


def test_frozen_and_slowed_layers():
    options = {"step": 1e-2, "steps": 1, "batch": 3, "record": "all"}
    run = tt.sgd(make(dim=50, trains=("second",)), **options)
    np.testing.assert_array_equal(run.final.first, run.start.first)
    assert not np.array_equal(run.final.second, run.start.second)
    run = tt.sgd(make(dim=50, trains=("first",)), **options)
    np.testing.assert_array_equal(run.final.second, run.start.second)
    plain, slow = (tt.sgd(make(dim=50), rates={"first": rate}, **options) for rate in (1.0, 0.25))
    moved = [np.diff(r.overlap.values, axis=1) for r in (slow, plain)]
    np.testing.assert_allclose(moved[0], 0.25 * moved[1], rtol=1e-9, atol=1e-14)  # differences of numbers about 1
    halved = tt.sgd(make(dim=50), schedule=lambda n: 0.5 + 0 * n, **options)
    half = tt.sgd(make(dim=50), **(options | {"step": 5e-3}))
    np.testing.assert_allclose(halved.overlap_ss, half.overlap_ss, rtol=1e-12)


def test_a_schedule_counts_updates_from_zero():
    """With factors that differ from update to update, each update is a plain one with its own step."""
    size, factors = 1e-3, [1.0, 0.5, 0.25]
    oracle, start, _ = settled(make(dim=1000))
    scheduled, plain = online(size, schedule=lambda n: 0.5**n), [online(size * factor) for factor in factors]
    left = right = plain[0].seeded(plain[0].begin(oracle, start), KEYS[0])
    for each in plain:
        left, right = once(scheduled, oracle, left), once(each, oracle, right)
        for one, other in zip(jax.tree.leaves(left.weights), jax.tree.leaves(right.weights), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    assert float(left.time) == pytest.approx(size * sum(factors), rel=1e-15) and left.clock == len(factors)


@eqx.filter_jit
def once(dynamics, oracle, moment):
    return taken(dynamics, oracle, moment)


def test_dead_and_equal_units_stay_so():
    """A unit without outgoing weight gets no gradient, and two equal units get the same one."""
    problem = tt.Problem(
        inputs=tt.Gaussian(100),
        teacher=tt.TwoLayer("relu", first=[[1.0]]),
        student=tt.TwoLayer(
            "relu", first=[[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]], second=[0.0, 1.0, 1.0], trains=("first",)
        ),
    )
    run = tt.sgd(problem, step=1e-2, steps=50, batch=16)
    gram = run.last("overlap_ss").values[0]
    assert gram[0, 0] == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(gram[1, 1:], gram[2, 1:], rtol=1e-12)
    assert gram[1, 1] != pytest.approx(0.5, rel=1e-3)


def test_a_stopping_event_and_a_certificate():
    run = tt.sgd(
        make(dim=50), step=1e-2, steps=500, batch=10, certify=True, record=tt.Record(events=[tt.below(1.0, stop=True)])
    )
    assert run.stopped == (tt.StopReason.EVENT,)
    assert run.certificate.ok
    assert '"dynamics": "sgd"' in run.dataset.attrs["settings"]


def test_another_dimension_or_step_compiles_nothing():
    from tutelage.dynamics.loop import advance

    tt.sgd(make(dim=10**3), step=1e-4, steps=5, batch=4)
    before = advance._program._cache_size()
    tt.sgd(make(dim=10**4), step=1e-5, steps=5, batch=4)
    assert advance._program._cache_size() == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normals_are_normal(dtype):
    keys = [jnp.asarray(random.key_of(seed)) for seed in (0, 1)]
    draw = jax.jit(lambda key, step: random.normals(key, step, 0, (200_000,), dtype))
    samples = [np.asarray(draw(key, jnp.array(float(step)))) for key in keys for step in (0, 1)]
    for sample in samples:
        assert stats.kstest(sample, "norm").pvalue > LEVEL / 4
        assert stats.kstest(sample[0::2] * sample[1::2], samples[0][1::2] * samples[1][0::2]).pvalue > LEVEL / 4
    correlation = np.corrcoef(np.concatenate([samples, np.square(samples)]))[np.triu_indices(8, 1)]
    assert np.abs(correlation).max() * np.sqrt(200_000) < 5.5  # 28 pairs: 1e-6


def test_bits_are_those_of_the_published_generator():
    key = int(random.key_of(5))
    got = random.random_bits(jnp.asarray(random.key_of(5)), jnp.array(7), 2, jnp.arange(3, dtype=jnp.uint64))
    assert [int(word) for word in got] == [squares64((7 << 34) + (2 << 32) + place, key) for place in range(3)]

    short = random.short_random_bits(jnp.asarray(random.key_of(5)), jnp.array(7), 2, jnp.arange(3, dtype=jnp.uint64))
    assert [int(word) for word in short] == [squares32((7 << 34) + (2 << 32) + place, key) for place in range(3)]


def squares32(counter, key):
    """Widynski's four rounds in plain integers."""
    return rounds(counter, key)[2] >> 32


def squares64(counter, key):
    """Widynski's five rounds in plain integers."""
    y, mask, x = rounds(counter, key)
    turned = (x >> 32 | x << 32) & mask
    return x ^ (((turned * turned + y) & mask) >> 32)


def rounds(counter, key):
    """The first term, the mask of 64 bits, and the state after four rounds."""
    mask = 2**64 - 1
    x = y = counter * key & mask
    z = (y + key) & mask
    for term in (y, z, y):
        x = (x * x + term) & mask
        x = (x >> 32 | x << 32) & mask
    return y, mask, (x * x + z) & mask


def test_chi_variables():
    degrees = np.array([0.0, 1.0, 2.0, 3.0, 7.0, 1e9])
    key = jnp.asarray(random.key_of(0))
    sample = jax.jit(jax.vmap(lambda step: chi(key, step, jnp.asarray(degrees))))(jnp.arange(20_000.0))
    assert not np.any(sample[:, 0])
    for column, count in zip(np.asarray(sample).T[1:], degrees[1:], strict=True):
        assert stats.kstest(column**2, stats.chi2(count).cdf).pvalue > LEVEL / 5


REFUSED = {
    "batch is 0": {"batch": 0},
    "batch is 2.5": {"batch": 2.5},
    "Unknown law 'exakt': did you mean 'exact'": {"law": "exakt"},
    "Unknown dtype 'float16'": {"dtype": "float16"},
    "steps is 2147483648": {"steps": 2**31},
    "step is -1": {"step": -1.0},
    "neither a step nor an optimiser": {"step": None},
    "leave out step and schedule": {"optimiser": optax.sgd(0.1)},
    "one of optax was expected": {"step": None, "optimiser": "sgd"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_arguments(message):
    with pytest.raises(tt.BadInput, match=message):
        tt.sgd(make(), **({"step": 0.1, "steps": 3, "batch": 2} | REFUSED[message]))


def clipped(size):
    return optax.chain(optax.clip_by_global_norm(size), optax.sgd(STEP))


OPTIMISERS = {
    "clipping": clipped(1.0),
    "momentum": optax.sgd(STEP / 3, momentum=0.8, nesterov=True),
    "decay and trust": optax.chain(optax.add_decayed_weights(0.5), optax.scale_by_trust_ratio(), optax.sgd(0.1)),
}


@functools.cache
def seen(law, case):
    """Overlaps after a few updates with an optimiser; each law has its own seeds."""
    seeds = range(2000) if law == "exact" else range(2000, 4000)
    options = {"steps": 4, "batch": 8, "record": tt.Record(2, observables=("overlap", "overlap_ss"))}
    with mock.patch("tutelage.dynamics.online.frame_of", narrow):
        run = tt.sgd(make(), optimiser=OPTIMISERS[case], law=law, seeds=seeds, **options)
    parts = run.last("overlap").transpose("seed", "student", "teacher"), run.last("overlap_ss"), run.final.second
    return quantities(*(np.asarray(part) for part in parts))


@pytest.mark.parametrize("case", OPTIMISERS)
def test_the_law_with_an_optimiser(case):
    assert worst(seen("exact", case), seen("direct", case)) > LEVEL


class ClippedByAPart(OnlineStep):
    """A planted error: the norm that is clipped leaves out what is outside the frame."""

    def _moves(self, layers, gradient, state, size):
        rank, first = self._spare(tt.Weights(**layers))
        norm = jnp.sqrt(jnp.sum(gradient["first"][:, :first] ** 2) + jnp.sum(gradient["second"] ** 2))
        return jax.tree.map(lambda leaf: -STEP * leaf / jnp.maximum(norm, 1.0), gradient), state


class Unturned(OnlineStep):
    """A planted error: a momentum that stays behind when the weights turn."""

    def _turned(self, moment):
        return super()._turned(moment)._replace(carry=moment.carry)


@pytest.mark.parametrize(("case", "planted"), [("clipping", ClippedByAPart), ("momentum", Unturned)])
def test_an_error_with_an_optimiser_is_seen(monkeypatch, case, planted):
    monkeypatch.setattr("tutelage.dynamics.online.OnlineStep", planted)
    assert worst(seen.__wrapped__("exact", case), seen("direct", case)) < LEVEL


def test_sgd_of_optax_is_plain_sgd():
    # Fewer examples than units: where more examples leave units dependent, rounding decides which factor is found.
    options = {"steps": 30, "batch": 2, "seeds": 2, "rates": {"second": 0.5}}
    plain = tt.sgd(make(dim=1000), step=1e-3, **options)
    other = tt.sgd(make(dim=1000), optimiser=optax.sgd(1e-3), **options)
    np.testing.assert_allclose(plain.loss, other.loss, rtol=1e-11)  # 30 updates, each to rounding
    np.testing.assert_allclose(plain.overlap_ss, other.overlap_ss, rtol=1e-11, atol=1e-13)
    assert other.time[-1] == 30


AXES = {
    "adam": optax.adam(1e-2),
    "signs": optax.sign_sgd(1e-2),
    "entries": optax.chain(optax.clip(100.0), optax.sgd(1e-2)),
    "dimensions": optax.chain(optax.clip_by_block_rms(1.0), optax.sgd(1e-2)),
    "noise": optax.noisy_sgd(1e-2, key=jax.random.key(0)),
    "columns": optax.adafactor(1e-2),
}


@pytest.mark.parametrize("case", AXES)
def test_an_optimiser_of_the_axes_is_refused(case):
    with pytest.raises(tt.BadInput, match='use law="direct"'):
        tt.sgd(make(), optimiser=AXES[case], steps=3, batch=2)


def test_any_optimiser_goes_with_direct_sampling():
    run = tt.sgd(make(), optimiser=optax.adam(2e-2), steps=200, batch=20, law="direct")
    assert run.last("loss")[0] < 0.5 * run.loss[0, 0]


def test_an_optimiser_may_train_one_layer():
    for layer, other in (("first", "second"), ("second", "first")):
        problem = make(dim=50, trains=(layer,))
        run = tt.sgd(problem, optimiser=optax.sgd(1e-2, momentum=0.5), steps=3, batch=4, certify=True)
        np.testing.assert_array_equal(getattr(run.final, other), getattr(run.start, other))
        assert run.certificate.ok
