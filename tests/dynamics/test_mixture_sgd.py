"""Online SGD of a mixture: the law in a few coordinates against vectors written out in NumPy, and its limits.

Statistical tests compare the distributions of all inner products over thousands of seeds by Kolmogorov-Smirnov tests,
with `LEVEL` shared out among the quantities of a test; seeds are fixed, so that a test that passes goes on passing.
"""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special, stats

import tutelage as tt
from tutelage.dynamics.online import OnlineStep
from tutelage.dynamics.random import key_of
from tutelage.oracle.population import population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.hidden import GatedHidden

LEVEL = 1e-4  # false-alarm rate of one test
COUNT, STEP, STEPS = 2500, 0.05, 3


def make(dim=8, outputs=1, noise=0.0, trains=("routers", "experts"), hidden=None, degree=3):
    """Two students, one teacher that is not orthogonal; the frame has 2 + 4 columns."""
    draw = np.random.default_rng(3)
    teacher = tt.Mixture(degree=degree, routers=[[1.0, 0.0]], experts=[[0.6, 0.8]], second=np.ones((1, outputs)))
    routers, experts = draw.standard_normal((2, 2, dim)) / 2
    second = 1 + 0.3 * draw.standard_normal((2, outputs))
    student = tt.Mixture(degree=degree, routers=routers, experts=experts, second=second, trains=trains)
    if hidden is not None:
        student.hidden = hidden
    return tt.Problem(tt.Gaussian(dim), teacher, student, noise=noise)


def unit(first, x):
    """Routers' and experts' inputs and the norms, for runs (run, row, dim) and samples (run, sample, dim)."""
    norm = np.linalg.norm(first, axis=-1)
    seen = x @ first.swapaxes(-1, -2) / norm[:, None]
    return norm, *np.split(seen, 2, axis=-1)


def reference(problem, batch, count=COUNT, momentum=0.0):
    """`count` runs of SGD in all dimensions; the gradient of a unit vector is that of its vector, projected."""
    draw = np.random.default_rng(11)
    student, teacher = problem.student, problem.teacher
    first, second = (np.repeat(part[None], count, 0) for part in (student.first, student.second))
    dim = problem.inputs.dim
    target = np.repeat(np.pad(teacher.first, ((0, 0), (0, dim - teacher.first.shape[1])))[None], count, 0)
    rates, outer = np.asarray(student.rates().first), float(student.rates().second)
    speed = np.zeros_like(first)
    for _ in range(STEPS):
        x = draw.standard_normal((count, batch, dim))
        _, router, expert = unit(target, x)
        labels = special.expit(router) * (expert**3 - 3 * expert) @ teacher.second
        labels = labels + problem.noise * draw.standard_normal(labels.shape)
        norm, router, expert = unit(first, x)
        gate, bump = special.expit(router), expert**3 - 3 * expert
        residual = (gate * bump) @ second - labels
        errors = residual @ second.swapaxes(1, 2)
        inside = np.concatenate([errors * gate * (1 - gate) * bump, errors * gate * (3 * expert**2 - 3)], axis=-1)
        free = inside.swapaxes(1, 2) @ x / batch
        axis = first / norm[..., None]
        slope = (free - np.sum(free * axis, axis=-1, keepdims=True) * axis) / norm[..., None]
        speed = momentum * speed + slope
        second = second - STEP * outer * (gate * bump).swapaxes(1, 2) @ residual / batch
        first = first - STEP * rates * speed
    return quantities(first, second, target[0])


def quantities(first, second, target):
    """Inner products with the teacher and among the students, norms included, and output weights."""
    gram = first @ first.swapaxes(1, 2)
    parts = [first @ target.T, gram[:, *np.triu_indices(4)], second]
    return np.concatenate([part.reshape(len(first), -1) for part in parts], axis=1)


def ours(problem, batch, count=COUNT, **options):
    options = {"step": STEP, "record": tt.Record([STEPS], observables=("norm_expert",))} | options
    run = tt.sgd(problem, steps=STEPS, batch=batch, seeds=count, **options)
    return quantities(np.asarray(run.final.first), np.asarray(run.final.second), np.asarray(run.teacher.first))


def worst(left, right):
    """The smallest p-value over the quantities that vary, times their number."""
    varied = [i for i in range(left.shape[1]) if np.ptp(right[:, i]) > 1e-9]
    assert len(varied) >= 10
    still = np.setdiff1d(np.arange(left.shape[1]), varied)
    np.testing.assert_allclose(left[:, still], right[:, still], rtol=0, atol=1e-6)
    return len(varied) * min(stats.ks_2samp(left[:, i], right[:, i]).pvalue for i in varied)


ALL = ("routers", "experts", "second")
CASES = {  # a batch below (1) and above (8) the number of vectors: the two forms of the factor
    "two dimensions more than the frame": ({}, 8, {}),
    "one example": ({}, 1, {}),
    "dim is the frame": ({"dim": 6}, 8, {}),
    "experts only": ({"trains": ("experts",)}, 8, {}),
    "single precision": ({}, 8, {"dtype": "float32"}),
    "direct": ({}, 8, {"law": "direct"}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_law_is_that_of_direct_sampling(case):
    setting, batch, options = CASES[case]
    problem = make(**setting)
    assert worst(ours(problem, batch, **options), reference(problem, batch)) > LEVEL


def test_label_noise_of_all_parts_and_its_absence_is_seen():
    noisy, silent = (make(outputs=2, noise=noise, trains=ALL) for noise in (6.0, 0.0))
    found = ours(noisy, 8)
    assert worst(found, reference(noisy, 8)) > LEVEL
    assert worst(found, reference(silent, 8)) < LEVEL


def test_momentum():
    momentum = {"optimiser": optax.sgd(STEP, momentum=0.8), "step": None}
    found = ours(make(), 8, **momentum)
    assert worst(found, reference(make(), 8, momentum=0.8)) > LEVEL
    assert worst(found, reference(make(), 8)) < LEVEL


class Adrift(GatedHidden):
    """A planted error: what a sample pulls along a row is not taken off."""

    def back(self, first, seen, errors):
        inside, along = super().back(first, seen, errors)
        return inside, 0 * along


def test_a_missing_part_along_the_row_is_seen():
    hidden = make().student.hidden
    found = ours(make(hidden=Adrift(hidden.gate, hidden.degree)), 8)
    assert worst(found, reference(make(), 8)) < LEVEL


def dynamics(batch, precision="float64"):
    rates = make().student.rates()
    return OnlineStep(jnp.array(STEP), rates, None, jnp.array(2.0), ("first",), batch, 1, precision=precision)


def settled(problem):
    """The oracle and the start in the coordinates of online SGD, with a spare one for each row."""
    start = problem.begin(0)
    taught, learning = settle(problem.inputs.dim, *(np.asarray(each.first) for each in start))
    taught, learning = (np.pad(rows, ((0, 0), (0, 4))) for rows in (taught, learning))
    weights = [
        tt.Weights(jnp.asarray(a), jnp.asarray(b))
        for a, b in ((taught, start.teacher.second), (learning, start.student.second))
    ]
    return population_oracle(problem, weights[0]), weights[1]


@eqx.filter_jit
def updated(online, oracle, weights):
    """The first gradient, in the frame's columns and those beyond, and the vectors after it."""
    moment = online.supplied(online.seeded(online.begin(oracle, weights), jnp.asarray(key_of(0))))
    return online._gradient(oracle, moment)["first"], online.step(oracle, moment, jnp.array(1.0))[0].weights.first


def test_norms_grow_by_the_square_of_the_update():
    """Each update is orthogonal to its vector on every batch, not just in the mean: norms only ever grow."""
    oracle, weights = settled(make())
    for precision, error in (("float64", 1e-13), ("float32", 1e-4)):  # single precision: 1e-7 of terms of up to 1e3
        gradient, after = updated(dynamics(8, precision), oracle, weights)
        inside = np.sum(gradient * np.asarray(weights.first), axis=1)
        np.testing.assert_allclose(inside, 0, atol=error * np.abs(gradient).max())
        growth = np.sum(after**2, axis=1) - np.sum(np.asarray(weights.first) ** 2, axis=1)
        np.testing.assert_allclose(growth, STEP**2 * np.sum(gradient**2, axis=1), rtol=10 * error, atol=error)


@pytest.mark.parametrize("degree", [1, 2])
def test_the_mean_update_is_the_population_gradient(degree):
    """Changes of the inner products with the teacher are linear in the update: 8 z-scores, 2e-5 in all at 4.7.

    For He3 that would take millions of samples: with these, its whole gradient is 4.5 standard errors.
    """
    change, mean = one_update(degree, 128)
    errors = change.std(0) / np.sqrt(COUNT)
    assert np.abs((change.mean(0) - mean) / errors).max() < 4.7
    assert np.abs(mean / errors).max() > 10  # so that a gradient of zero would be seen


def test_batches_average_the_noise():
    """The variance goes with one over the batch. A variance is known to `sqrt((kurtosis - 1) / count)` of itself, and
    8 ratios are within 4.7 of that (2e-5). With He1, since the kurtosis of updates of He3 is not known well enough.
    """
    small, large = (one_update(1, batch)[0] for batch in (8, 128))
    squares = [(stats.kurtosis(change, axis=0, fisher=False) - 1) / COUNT for change in (small, large)]
    allowed = 4.7 * np.sqrt(sum(squares))
    assert allowed.max() < np.log(2)  # so that a factor of two would be seen
    assert np.all(np.abs(np.log(small.var(0) / large.var(0) / 16)) < allowed)


@functools.cache
def one_update(degree, batch):
    """How one update changes the inner products with the teacher, for all seeds, and what the gradient says."""
    problem = make(degree=degree)
    oracle, weights = settled(problem)
    target = np.asarray(oracle.target.first)
    run = tt.sgd(
        problem, step=STEP, steps=1, batch=batch, seeds=COUNT, record=tt.Record([1], observables=("norm_expert",))
    )
    overlaps = np.asarray(run.final.first) @ np.asarray(run.teacher.first).T
    change = overlaps - np.asarray(weights.first) @ target.T
    return change, -STEP * np.asarray(oracle.gradient(weights).first) @ target.T


def test_given_rates_of_parts():
    """Routers at twice the speed and experts at rest, in descent, flow and SGD."""
    problem = make()
    for run in (
        tt.sgd(problem, step=STEP, steps=1, batch=8, rates={"experts": 0.0, "routers": 2.0}, law="direct"),
        tt.descend(problem, step=STEP, steps=1, rates={"experts": 0.0, "routers": 2.0}),
    ):
        moved = np.asarray(run.final.first - run.start.first)[0]
        assert np.all(moved[2:] == 0) and np.all(np.abs(moved[:2]).max(1) > 0)
    once = tt.descend(problem, step=STEP, steps=1)
    twice = np.asarray(run.final.first - run.start.first)[0, :2]
    np.testing.assert_allclose(twice, 2 * np.asarray(once.final.first - once.start.first)[0, :2], rtol=0, atol=1e-15)
