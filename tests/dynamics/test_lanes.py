"""Seeds in lanes: who runs with whom, in which form of the oracle, and what it costs those beside them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.dynamics import AbstractStep, Limits, Loop, Moment, driver
from tutelage.dynamics.descent import DescentStep
from tutelage.dynamics.driver import lane_size
from tutelage.oracle.population import population_oracle

TEACHER = np.eye(2)
NEAR = [[1 + 1e-9, 0.0], [0.0, 1 - 1e-9]]
FAR = [[0.7, 0.4], [-0.3, 1.2]]


def loop_of(rows, step=None, steps=40, **options):
    student = tt.TwoLayer("relu", first=np.asarray(rows[0]), trains=("first",))
    problem = tt.Problem(tt.Gaussian(5), tt.TwoLayer("relu", first=TEACHER), student)
    prepared = tt.Descent(step=0.05, steps=steps).prepare(problem, list(range(len(rows))))
    start = tt.Weights(jnp.asarray(rows, float), jnp.ones((len(rows), len(rows[0]), 1)))
    columns = prepared.start.first.shape[-1]
    start = tt.Weights(jnp.pad(start.first, ((0, 0), (0, 0), (0, columns - start.first.shape[-1]))), start.second)
    return Loop(
        prepared._replace(start=start, step=step or prepared.step),
        stops=np.arange(0.0, steps + 1, 4),
        observables=(("loss", lambda view: view.loss),),
        limits=Limits(None, jnp.array(0.0), jnp.array(10**6)),
        **options,
    )


@pytest.mark.parametrize(("weights", "seeds", "expected"), [
    (480, 1, 1), (480, 64, 8), (64, 64, 32), (64, 3, 2), (4, 10**4, 256), (10**6, 64, 1),
])  # fmt: skip
def test_a_lane_is_a_power_of_two_that_fits_the_cache(weights, seeds, expected, monkeypatch):
    monkeypatch.setattr(driver.os, "cpu_count", lambda: 2)
    assert lane_size(weights, seeds) == expected


def test_a_seed_that_needs_the_grouped_form_changes_its_lane_and_nobody_elses():
    loop = loop_of([FAR, NEAR, FAR])
    alone = loop_of([FAR, FAR, FAR])
    loop.follow()
    alone.follow()
    assert loop.state.form.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(loop.records()["loss"][0], alone.records()["loss"][0])
    assert np.all(loop.records()["loss"][1] < 1e-17)  # which is far below the rounding of a plain sum


def test_seeds_that_have_ended_are_in_no_lane(monkeypatch):
    sizes = []
    real = Loop._in_lanes
    monkeypatch.setattr(Loop, "chunk", 2)

    def counted(loop, lanes, *rest):
        sizes.append(sum(map(len, lanes)))
        return real(loop, lanes, *rest)

    loop = loop_of([FAR, TEACHER.tolist(), FAR])  # the second is at its optimum: its gradient is 0
    monkeypatch.setattr(Loop, "_in_lanes", counted)
    loop.follow()
    assert loop.final_reasons()[1] == tt.StopReason.CONVERGED
    assert sizes[0] == 3 and max(sizes[8:]) == 2
    assert loop.records()["_reached"][1].sum() == 1


def test_where_nothing_is_to_be_gained_the_plain_form_stays():
    """In a minimum of positive loss: with one student of two teachers, the grouped form has no more digits."""
    student = tt.TwoLayer("relu", first=[[0.5, 0.5]], trains=("first",))
    problem = tt.Problem(tt.Gaussian(5), tt.TwoLayer("relu", first=TEACHER), student)
    run = tt.descend(problem, step=0.2, steps=4000, record=50, stop=tt.Stop(gradient=0.0))
    assert float(run.last("loss")[0]) > 0.01 and float(run.last("gradient_norm")[0]) < 1e-13
    loop = loop_of([[[0.5, 0.5]]], steps=4000)
    loop.follow()
    assert loop.state.form.tolist() == [2]


class Silent(AbstractStep):
    """A step of one's own that says nothing of strain."""

    def begin(self, oracle, weights):
        return Moment(weights, jnp.zeros(()), jnp.zeros(()), ())

    def step(self, oracle, moment, limit):
        weights = jax.tree.map(lambda w, g: w - 0.05 * g, moment.weights, oracle.gradient(moment.weights))
        weights = tt.Weights(weights.first, moment.weights.second)
        return Moment(weights, moment.clock + 1, 0.05 * (moment.clock + 1), ()), jnp.array(True), jnp.array(False)


def test_a_step_that_says_nothing_of_strain_has_the_oracle_in_full():
    told, silent = loop_of([NEAR]), loop_of([NEAR], Silent())
    assert isinstance(told.step, DescentStep) and len(told.forms) == 3 and silent.forms == (silent.oracle,)
    told.follow()
    silent.follow()
    np.testing.assert_allclose(silent.records()["loss"], told.records()["loss"], rtol=1e-9)


def test_a_diverging_run_ends_at_its_last_finite_loss():
    """Weights of 1e160 are finite, their squares are not."""
    loop = loop_of([FAR, (1e160 * np.asarray(FAR)).tolist()])
    loop.follow()
    assert loop.final_reasons() == (tt.StopReason.HORIZON, tt.StopReason.NONFINITE)
    assert not loop.records()["_reached"][1].any()


def test_the_forms_of_an_oracle_agree():
    """Far from an optimum and near it, to the digits that a plain sum has."""
    rng = np.random.default_rng(2)
    problem = tt.Problem(
        tt.Gaussian(9), tt.TwoLayer("relu", first=TEACHER), tt.TwoLayer("relu", first=tt.GaussianRows(1.0), width=3)
    )
    oracle = population_oracle(problem, tt.Weights(jnp.eye(2, 5), jnp.ones((2, 1))))
    for size in (1.0, 1e-3):
        first = jnp.eye(3, 5).at[2].set(jnp.array([0.0, 1.0, 0.0, 0.0, 0.0])) * 0.5 + size * rng.standard_normal((3, 5))
        weights = tt.Weights(first, jnp.array([[2.0], [1.0], [1.0]]))
        slopes = [form.gradient(weights) for form in (oracle, *oracle.forms())]
        for slope in slopes[1:]:
            np.testing.assert_allclose(slope.first, slopes[0].first, atol=1e-14)
            np.testing.assert_allclose(slope.second, slopes[0].second, atol=1e-14)
