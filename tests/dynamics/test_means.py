"""Online SGD on inputs with a covariance, a mean and a constant: the law against loops in NumPy with whole vectors.

As in `test_online.py`, Kolmogorov-Smirnov tests over thousands of seeds, with fixed seeds; here beside inner products
the coordinates that are not standard are compared, which no rotation may touch. Each case is a false alarm with
probability `LEVEL`, and there are sixteen.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from dynamics.test_online import KEYS, LEVEL, NUMPY, STEP, STEPS, narrow, replicas, worst

import tutelage as tt
from tutelage.dynamics.online import OnlineStep
from tutelage.oracle.population import population_oracle
from tutelage.problem.frame import settle
from tutelage.problem.networks import Rates

MIX = np.array([[1.2, 0.3, 0.0], [0.3, 0.6, -0.4], [0.0, -0.4, 0.9]])
COVARIANCE = MIX @ MIX
MEAN = np.array([0.5, -1.0])
COUNT = 4000


def make(name="relu", dim=9, units=3, covariance=COVARIANCE, mean=None, biases=None, trains=("first", "second")):
    draw = np.random.default_rng(3)
    target = np.zeros((2, dim))
    target[:, :4] = [[1.0, 0.0, 0.3, 0.5], [0.6, 0.8, 0.0, -0.2]]
    lifts = ({}, {}) if biases is None else ({"biases": [0.4, -0.7]}, {"biases": biases})
    start, second = draw.standard_normal((units, dim)) / 3, 1.0 + 0.3 * draw.standard_normal(units)
    return tt.Problem(
        tt.Gaussian(dim, covariance, mean),
        tt.TwoLayer(name, first=target, **lifts[0]),
        tt.TwoLayer(name, first=start, second=second, trains=trains, **lifts[1]),
    )


def drawn(draw, inputs, shape, biased):
    """Whole inputs by a Cholesky factor, and a 1 in front if units have biases."""
    x = draw.standard_normal((*shape, inputs.dim))
    if inputs.covariance is not None:
        kept = len(inputs.covariance)
        x[..., :kept] = x[..., :kept] @ np.linalg.cholesky(inputs.covariance).T
    if inputs.mean is not None:
        x[..., : len(inputs.mean)] += inputs.mean
    return np.concatenate([np.ones((*shape, 1)), x], axis=-1) if biased else x


def reference(problem, batch, count=COUNT):
    draw = np.random.default_rng(11)
    s, slope = NUMPY[problem.student.activation.name]
    start = problem.drawn(0, full=True)
    target, out = start.teacher.first, start.teacher.second
    first, second = (np.repeat(layer[None], count, 0) for layer in (start.student.first, start.student.second))
    for _ in range(STEPS):
        x = drawn(draw, problem.inputs, (count, batch), problem.biased)
        pre = x @ first.transpose(0, 2, 1)
        residual = s(pre) @ second - s(x @ target.T) @ out
        errors = slope(pre) * (residual @ second.transpose(0, 2, 1))
        first, second = (
            first - STEP / batch * errors.transpose(0, 2, 1) @ x,
            second - STEP / batch * s(pre).transpose(0, 2, 1) @ residual,
        )
    return seen(first, second, target, problem.law.kept)


def seen(first, second, target, kept):
    gram = first @ first.transpose(0, 2, 1)
    parts = first @ target.T, first[..., :kept], second, gram[:, *np.triu_indices(gram.shape[1])]
    return np.concatenate([part.reshape(len(first), -1) for part in parts], axis=1)


def ours(problem, batch, law="exact", kind=OnlineStep, dtype="float64"):
    start, inputs = problem.drawn(0, full=True), problem.law
    teacher, student = start.teacher.first, start.student.first
    if law == "exact":
        teacher, student = settle(inputs.dim, teacher, student, kept=inputs.kept)
    frame = narrow(inputs.dim, *student.shape, batch)
    teacher, student = (np.pad(rows, ((0, 0), (0, frame.columns - rows.shape[1]))) for rows in (teacher, student))
    dynamics = kind(
        jnp.array(STEP), Rates(jnp.array(1.0), jnp.array(1.0)), None,
        jnp.array(float(frame.outside)) if frame.outside else None, problem.student.trains, batch, frame.ahead,
        precision=dtype, root=jnp.asarray(inputs.root),
        mean=None if inputs.mean is None else jnp.asarray(inputs.centre),
    )  # fmt: skip
    oracle = population_oracle(problem, tt.Weights(jnp.asarray(teacher), jnp.asarray(start.teacher.second)))
    begin = tt.Weights(jnp.asarray(student), jnp.asarray(start.student.second))
    end = replicas(dynamics, oracle, begin, KEYS[:COUNT], STEPS)
    return seen(np.asarray(end.first), np.asarray(end.second), teacher, inputs.kept)


# Three coordinates are kept, the teachers have two more, the students three: 8 are the frame (9 with a bias).
CASES = {
    "a covariance": ({}, 8, {}),
    "a covariance, one example": ({}, 1, {}),
    "a covariance, erf": ({"name": "erf"}, 8, {}),
    "a covariance, dim is the frame": ({"dim": 8}, 8, {}),
    "a covariance, dim is the frame, one example": ({"dim": 8}, 1, {}),
    "a covariance, dim below the frame": ({"dim": 5}, 8, {}),
    "a covariance, many dimensions": ({"dim": 50}, 8, {}),
    "a covariance, many dimensions, direct": ({"dim": 50}, 8, {"law": "direct"}),
    "a singular covariance": ({"covariance": [0.0, 4.0]}, 8, {}),
    "a mean": ({"covariance": None, "mean": MEAN}, 8, {}),
    "a mean and a covariance": ({"mean": MEAN}, 1, {}),
    "a mean, single precision": ({"mean": MEAN}, 8, {"dtype": "float32"}),
    "biases": ({"covariance": None, "biases": [0.2, -0.5, 0.0]}, 8, {}),
    "biases and a mean, dim is the frame": ({"dim": 8, "mean": MEAN, "biases": 0.3}, 8, {}),
    "biases and a mean, many dimensions": ({"dim": 50, "mean": MEAN, "biases": 0.3}, 1, {}),
    "biases and a mean, direct": ({"dim": 50, "mean": MEAN, "biases": 0.3}, 8, {"law": "direct"}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_law_is_that_of_whole_vectors(case):
    setting, batch, options = CASES[case]
    problem = make(**setting)
    smooth = {"covariance": np.diag([1e-300, 4.0])} if setting.get("covariance") == [0.0, 4.0] else {}
    direct = make(**setting | smooth)  # which has a Cholesky factor
    assert worst(ours(problem, batch, **options), reference(direct, batch)) > LEVEL


class Uncentred(OnlineStep):
    """A planted error: the mean is forgotten."""

    def _coloured(self, inputs):
        return super()._coloured(inputs) - jnp.pad(self.mean, (0, len(inputs) - len(self.mean)))[:, None]


class Squared(OnlineStep):
    """A planted error: the covariance in place of its root."""

    def _coloured(self, inputs):
        return super()._coloured(super()._coloured(inputs))


def test_planted_errors_are_seen():
    problem = make(mean=0.3 * MEAN)
    right = reference(problem, 8)
    assert worst(ours(problem, 8, kind=Uncentred), right) < LEVEL
    problem = make()
    assert worst(ours(problem, 8, kind=Squared), reference(problem, 8)) < LEVEL


@pytest.mark.parametrize("law", ["exact", "direct"])
def test_the_verb_draws_from_the_law(law):
    """The first update, of many examples, is the population gradient: 12 z-scores below 5, false alarms 7e-6."""
    problem, seeds, step = make("erf", dim=30, mean=MEAN, biases=0.3), 300, 1e-3
    run = tt.sgd(problem, step=step, steps=1, batch=64, seeds=seeds, law=law, record=tt.Record("all", weights=True))
    start = problem.begin(0, full=True)
    slope = population_oracle(problem, start.teacher).gradient(start.student).first
    moved = np.diff(run.weights_first.values, axis=1)[:, 0, :, :4] / -step  # the bias, and what is kept
    bound = 5 * moved.std(0) / np.sqrt(seeds)
    assert np.all(np.abs(moved.mean(0) - np.asarray(slope)[:, :4]) < bound)
    assert run.bias.dims == ("seed", "time", "student")


def test_any_dimension():
    """From w = 0 one example moves a linear unit to step (t.x) x, whose part outside is about dim long."""
    dim = 10**9
    student = tt.TwoLayer("linear", first=[[0.0]], trains=("first",), biases=0.0)
    teacher = tt.TwoLayer("linear", first=[[1.0]], biases=[1.0])
    problem = tt.Problem(tt.Gaussian(dim, covariance=[4.0], mean=[1.0]), teacher, student)
    run = tt.sgd(problem, step=1 / dim, steps=1, batch=1, seeds=50, record="all")
    square, along = run.last("overlap_ss").values.squeeze(), run.last("bias").values.squeeze()
    np.testing.assert_allclose(square, dim * along**2, rtol=6 * np.sqrt(2 / dim))  # |x|^2 = dim, six standard errors


def test_who_cannot_says_so():
    student = tt.TwoLayer("erf", first=tt.SphereRows(1.0), width=1, trains=("first",))
    problem = tt.Problem(tt.Gaussian(9, mean=MEAN), tt.TwoLayer("erf", first=[[1.0]]), student)
    for dynamics in (tt.Sphere(samples=10, step=0.1), tt.Ode(rate=0.1, until=1.0)):
        with pytest.raises(tt.BadInput, match="inputs have a mean or a covariance; standard inputs"):
            tt.run(problem, dynamics)
