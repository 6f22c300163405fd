"""What every oracle must do: its loss by definition, derivatives by differences, and the symmetries of the problem."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group
from tables import FRAME, ORACLES, TEACHERS, UNITS, Seen, members, network, turned

import tutelage as tt
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.clustered import ClusterOracle
from tutelage.problem.hidden import AbstractHidden, GatedHidden
from tutelage.problem.trees import flatten, unflatten

pytestmark = pytest.mark.usefixtures("quickly_compiled")
EVERY = pytest.mark.parametrize("name", ORACLES)
TURN = ortho_group.rvs(FRAME, random_state=3)
INTO = ortho_group.rvs(FRAME + 3, random_state=4)[:FRAME]
STEP = 1e-5  # of differences


class Measured(NamedTuple):
    """One oracle at one generic place; `ask(oracle, places)` gives losses and gradients, compiled once for each row."""

    seen: Seen
    weights: tt.Weights
    ask: Any


@functools.cache
def measured(name) -> Measured:
    seen = ORACLES[name](np.eye(FRAME))
    outputs = seen.samples[1].shape[1] if seen.samples else seen.oracle.target.second.shape[1]
    gated = isinstance(seen.student, GatedHidden)
    weights = network(5, 2 * UNITS if gated else UNITS, outputs, per_unit=2 if gated else 1)

    def one(oracle, y):
        place = unflatten(y, weights)
        return oracle.loss(place), flatten(oracle.gradient(place))

    # The oracle is an argument: another with other numbers compiles nothing.
    return Measured(seen, weights, jax.jit(lambda oracle, places: jax.lax.map(functools.partial(one, oracle), places)))


@functools.cache
def told(name):
    """Loss and gradient at the place, and a small step up and then down in each parameter."""
    seen, weights, ask = measured(name)
    y = np.asarray(flatten(weights))
    moves = STEP * np.eye(len(y))
    return tuple(map(np.asarray, ask(seen.oracle, np.concatenate([y[None], y + moves, y - moves]))))


def at(name, oracle, weights):
    """Loss and gradient somewhere else, in a batch of the size that was compiled for."""
    y = np.asarray(flatten(weights))
    loss, slope = measured(name).ask(oracle, np.broadcast_to(y, (2 * len(y) + 1, len(y))))
    return float(loss[0]), np.asarray(slope[0])


def difference(values) -> np.ndarray:
    up, down = np.split(values[1:], 2)
    return (up - down) / (2 * STEP)


def test_every_oracle_is_in_the_table():
    # The gradient of clustered inputs is that on the sphere, not of free weights: tests/oracle/test_clustered.py.
    made = [measured(name).seen for name in ORACLES]
    assert {type(seen.oracle) for seen in made} == members(AbstractOracle) - {ClusterOracle}
    assert {type(seen.student) for seen in made} == members(AbstractHidden)


@EVERY
def test_the_loss_is_half_the_mean_square(name):
    """Exactly on samples; for a population within 4.5 standard errors of 2e5 of them (false alarms: 7e-6 per row)."""
    (oracle, student, samples), weights, _ = measured(name)
    x = samples[0] if samples else jnp.asarray(np.random.default_rng(6).standard_normal((200_000, FRAME)))
    y = samples[1] if samples else taught(oracle, x)
    squares = 0.5 * np.sum((student(weights.first, weights.first @ x.T).T @ weights.second - y) ** 2, axis=1)
    slack = 1e-13 * np.mean(squares) if samples else 4.5 * np.std(squares) / np.sqrt(len(squares))
    losses, slopes = told(name)
    assert abs(losses[0] - np.mean(squares)) < slack
    assert (losses.dtype, slopes.dtype) == (np.float64, np.float64) and oracle.accuracy


def taught(oracle, x):
    teacher = oracle.sides[1]
    return teacher(oracle.target.first, oracle.target.first @ x.T).T @ oracle.target.second


@EVERY
def test_derivatives_are_differences(name):
    """Central differences: 1e-10 of third derivatives, and roundings over 1e-5."""
    losses, slopes = told(name)
    numeric = difference(losses)
    np.testing.assert_allclose(slopes[0], numeric, atol=3e-9 * scale(numeric))
    seen, weights, _ = measured(name)
    found = np.asarray(jax.jit(lambda oracle, place: oracle.hessian(place))(seen.oracle, weights))
    numeric = difference(slopes)
    np.testing.assert_allclose(found, numeric, atol=1e-8 * scale(numeric))
    np.testing.assert_allclose(found, found.T, atol=1e-12 * scale(numeric))


def scale(values) -> float:
    return 1 + float(np.max(np.abs(values)))


@EVERY
def test_a_rotation_turns_the_gradient_and_nothing_else(name):
    """Sums of a few hundred terms in another order."""
    weights, (losses, slopes) = measured(name).weights, told(name)
    loss, slope = at(name, ORACLES[name](TURN).oracle, turned(weights, TURN))
    expected = flatten(turned(unflatten(jnp.asarray(slopes[0]), weights), TURN))
    assert loss == pytest.approx(losses[0], rel=1e-12)
    np.testing.assert_allclose(slope, expected, atol=1e-12 * scale(expected))


@EVERY
def test_the_loss_in_the_frame_is_that_in_the_whole_space(name):
    whole = jax.jit(lambda oracle, place: oracle.loss(place))
    found = whole(ORACLES[name](INTO).oracle, turned(measured(name).weights, INTO))
    assert float(found) == pytest.approx(told(name)[0][0], rel=1e-12)


@EVERY
def test_units_have_no_numbers(name):
    (oracle, student, _), weights, _ = measured(name)
    losses, slopes = told(name)
    order = np.array([2, 0, 1])
    rows = np.concatenate([order, UNITS + order]) if isinstance(student, GatedHidden) else order
    loss, slope = at(name, oracle, tt.Weights(weights.first[rows], weights.second[order]))
    before = unflatten(jnp.asarray(slopes[0]), weights)
    expected = flatten(tt.Weights(before.first[rows], before.second[order]))
    assert loss == pytest.approx(losses[0], rel=1e-12)
    np.testing.assert_allclose(slope, expected, atol=1e-12 * scale(expected))


@EVERY
def test_the_quick_form_is_right_where_it_is_not_strained(name):
    """Ten digits or more are left by definition; here, far from an optimum, nearly all."""
    seen, weights, _ = measured(name)
    quick = seen.oracle.quick()
    if jax.tree.structure(quick) == jax.tree.structure(seen.oracle):
        return  # it has no other form
    loss, slope, strained = asked(quick, weights)
    losses, slopes = told(name)
    assert not strained and float(loss) == pytest.approx(losses[0], rel=1e-12)
    np.testing.assert_allclose(flatten(slope), slopes[0], atol=1e-12 * scale(slopes[0]))
    # At the teacher itself everything has cancelled.
    same = tt.Weights(jnp.ones((UNITS, FRAME)), jnp.full((UNITS, 1), 1 / UNITS))
    target = tt.Weights(jnp.ones((TEACHERS, FRAME)), jnp.full((TEACHERS, 1), 1 / TEACHERS))
    assert asked(eqx.tree_at(lambda made: made.target, quick, target), same)[2]


@jax.jit
def asked(oracle, weights):
    loss, slope = oracle.loss(weights), oracle.gradient(weights)
    return loss, slope, oracle.strained(weights, loss, slope)
