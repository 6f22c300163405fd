"""The flow of a network's first-order expansion, against its solution in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import tutelage as tt
from tutelage.problem.trees import flatten

TEACHER = tt.TwoLayer("erf", first=[[1.0, 0.0], [0.0, 1.0]], second=[1.0, -0.5])


def problem(dim: int, scale: float = 1.0, trains=("first", "second")) -> tt.Problem:
    student = tt.TwoLayer("erf", first=tt.GaussianRows(0.5), second=[scale, -scale, scale], width=3, trains=trains)
    return tt.Problem(tt.Gaussian(dim), TEACHER, student)


@pytest.mark.parametrize("trains", [("first",), ("first", "second")])
def test_it_is_the_exponential_of_the_metric(trains):
    """`w - w0 = -(1 - exp(-t G)) G^+ g`, of the parts that train."""
    until = 3.0
    run = tt.run(problem(6, trains=trains), tt.KernelFlow(until, rtol=1e-10), seeds=2)
    for seed in range(2):
        oracle = jax.tree.map(lambda leaf, seed=seed: leaf[seed], run.oracle)
        start, final = (jax.tree.map(lambda leaf, seed=seed: leaf[seed], each) for each in (run.start, run.final))
        moving = np.ones(flatten(start).size, bool)
        moving[: start.second.size] = "second" in trains
        metric = np.asarray(oracle.metric)[np.ix_(moving, moving)]
        slope = np.asarray(flatten(oracle.slope))[moving]
        # The integral of exp(-s G) g from 0 to t, as a block of one exponential.
        blocks = np.zeros((len(slope) + 1,) * 2)
        blocks[:-1, :-1], blocks[:-1, -1] = -metric * until, -slope * until
        wanted = expm(blocks)[:-1, -1]
        np.testing.assert_allclose(np.asarray(flatten(final) - flatten(start))[moving], wanted, atol=2e-9)
        assert np.all(np.asarray(flatten(final) - flatten(start))[~moving] == 0)


def test_the_dimension_is_only_a_number():
    """Beyond the frame the metric is a multiple of one, and nothing pulls there."""
    small = tt.run(problem(5), tt.KernelFlow(2.0), start=_start(5))
    large = tt.run(problem(10**9), tt.KernelFlow(2.0), start=_start(5))
    np.testing.assert_array_equal(small.loss, large.loss)
    wide = tt.run(problem(9), tt.KernelFlow(2.0), start=_start(9))
    np.testing.assert_allclose(wide.loss, small.loss, rtol=1e-9)


def _start(columns: int) -> tt.Start:
    draw = np.random.default_rng(0)
    first = np.zeros((1, 3, columns))
    first[..., :5] = draw.standard_normal((1, 3, 5))
    teacher = np.pad(np.eye(2), ((0, 0), (0, columns - 2)))
    second = jnp.asarray([[[1.0], [-1.0], [1.0]]])
    return tt.Start(
        tt.Weights(jnp.asarray(teacher), jnp.asarray([[1.0], [-0.5]])), tt.Weights(jnp.asarray(first), second)
    )


def test_a_large_student_is_lazy():
    """Units in pairs that cancel at the start: with outgoing weights c, weights move by 1/c, and losses as much."""
    rows = np.random.default_rng(1).standard_normal((2, 4))
    apart = []
    for scale in (4.0, 16.0):
        student = tt.TwoLayer(
            "erf", first=np.concatenate([rows, rows]), second=scale * np.repeat([1.0, -1.0], 2), trains=("first",)
        )
        until = 2 / scale**2
        times = tt.Record(np.linspace(0, until, 9)[1:])
        moves = tt.Flow(until), tt.KernelFlow(until)
        flow, kernel = (tt.run(tt.Problem(tt.Gaussian(8), TEACHER, student), each, record=times) for each in moves)
        apart.append(float((np.abs(flow.loss - kernel.loss) / flow.loss[0, 0]).max()))
        assert flow.last("loss")[0] < 0.9 * flow.loss[0, 0]
    assert apart[0] > 1e-4 and 2.5 < apart[0] / apart[1] < 20.0


def test_what_has_no_metric_is_refused():
    penalised = tt.Problem(tt.Gaussian(4), TEACHER, problem(4).student, penalty=tt.Penalty(first=0.1))
    with pytest.raises(tt.BadInput, match="KernelFlow is for plain two-layer networks"):
        tt.run(penalised, tt.KernelFlow(1.0))
