"""One start whose flow was followed by another program (DOP853 at tolerance 1e-9): the same draw, the same story."""

import numpy as np
import pytest

import tutelage as tt
from tutelage.papers.soft_moe.events import CROSSINGS
from tutelage.papers.soft_moe.matching import generalised, greedy

STUDENTS, TEACHERS, DIM = 25, 5, 1000
TIMES = [0.0, 2.5, 5.0, 10.0, 15.0, 20.0, 37.5, 75.0, 112.0]
LOSSES = [26.40, 10.54, 5.27, 4.30, 2.04, 1.78, 1.43, 1e-4, 0.0]  # as recorded, to the digits shown


def _start(seed):
    """iid experts and routers in the frame, in the order in which that program drew them."""
    draw, rows = np.random.default_rng(seed), 2 * STUDENTS
    onto = draw.standard_normal((rows, 2 * TEACHERS))
    beyond = np.zeros((rows, rows))
    for i in range(rows):
        beyond[i, :i] = draw.standard_normal(i)
        beyond[i, i] = np.sqrt(draw.chisquare(DIM - 2 * TEACHERS - i))
    experts, routers = np.split(np.hstack([onto, beyond]) / np.sqrt(DIM), 2)
    axes = experts / np.linalg.norm(experts, axis=1, keepdims=True)
    return routers - np.sum(routers * axes, axis=1, keepdims=True) * axes, experts


@pytest.fixture(scope="module")
def start():
    return _start(0)


@pytest.fixture(scope="module")
def run(start):
    axes = np.eye(2 * TEACHERS)
    problem = tt.Problem(
        tt.Gaussian(DIM),
        tt.Mixture(routers=axes[:TEACHERS], experts=axes[TEACHERS:]),
        tt.Mixture(routers=start[0], experts=start[1]),
    )
    return tt.flow(problem, until=TIMES[-1], record=tt.Record(TIMES, crossings=CROSSINGS))


def test_the_loss_comes_down_as_recorded(run):
    # Half a unit of the last digit recorded, and what rtol = 1e-6 leaves where the loss falls fast.
    np.testing.assert_allclose(run.loss.values[0], LOSSES, atol=0.006, rtol=2e-3)


def test_teachers_are_recovered_when_and_by_whom_they_were(run):
    times = np.nanmin(run.expert_time.values[0], axis=0)
    np.testing.assert_allclose(times[[2, 3, 4, 1, 0]], [3.2, 4.05, 9.75, 37.4, 44.6], atol=0.06)
    np.testing.assert_allclose(np.nanmin(run.router_time.values[0], axis=0)[[2, 3, 4]], [8.9, 14.5, 17.9], atol=0.06)


def test_the_greedy_list_and_the_pair_that_spoils_it(run, start):
    experts = start[1]
    products = experts[:, TEACHERS : 2 * TEACHERS]
    assert [pair.teacher for pair in greedy(products).pairs] == [4, 2, 3, 0, 1]
    assert {pair.student for pair in greedy(products).pairs[3:]} == {19, 6}
    assert 2.0 < run.pair_time.values[0, 19, 6] <= 2.05  # recorded as the first of the times 0, 0.05, 0.1, ...
    norms = np.linalg.norm(experts, axis=1)
    cosines = experts @ experts.T / np.outer(norms, norms)
    pairs = generalised(products / norms[:, None], cosines, norms).annihilations
    assert (6, 19) in [(pair.first, pair.second) for pair in pairs]


def test_at_the_end_each_teacher_has_one_student_and_the_rest_cancel(run):
    last = run.last("overlap_expert").values[0]
    winners = last.argmax(0)
    assert last.max(0) == pytest.approx(np.ones(TEACHERS), abs=1e-5)
    unused = np.setdiff1d(np.arange(STUDENTS), winners)
    between = run.last("overlap_ss_expert").values[0][np.ix_(unused, unused)]
    assert between.min(1) == pytest.approx(-np.ones(20), abs=1e-3)
