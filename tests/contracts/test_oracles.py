"""What every oracle must do: its loss by definition, derivatives by differences, and the symmetries of the problem."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group
from tables import FRAME, HOMOGENEOUS, ORACLES, TEACHERS, UNITS, Seen, members, network, turned

import tutelage as tt
from tutelage.oracle.base import AbstractOracle
from tutelage.oracle.clustered import ClusterOracle
from tutelage.oracle.linearised import LinearisedOracle
from tutelage.problem.hidden import AbstractHidden, GatedHidden
from tutelage.problem.trees import flatten, unflatten

pytestmark = pytest.mark.usefixtures("quickly_compiled")
EVERY = pytest.mark.parametrize("name", ORACLES)
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
    assert {type(seen.oracle) for seen in made} == members(AbstractOracle) - {ClusterOracle, LinearisedOracle}
    assert {type(seen.student) for seen in made} == members(AbstractHidden)


@EVERY
def test_the_loss_is_half_the_mean_square(name):
    """Exactly on samples; for a population within 4.5 standard errors of 2e5 of them (false alarms: 7e-6 per row)."""
    (oracle, student, samples, added, law), weights, _ = measured(name)
    x = samples[0] if samples else jnp.asarray(np.random.default_rng(6).standard_normal((200_000, FRAME)))
    x = x if law is None else x @ law[0] + law[1][None]
    y = samples[1] if samples else taught(oracle, x)
    squares = 0.5 * np.sum((student(weights.first, weights.first @ x.T).T @ weights.second - y) ** 2, axis=1)
    slack = 1e-13 * np.mean(squares) if samples else 4.5 * np.std(squares) / np.sqrt(len(squares))
    losses, slopes = told(name)
    penalty = sum(0.5 * s * np.sum(layer**2) for s, layer in zip(added, (weights.first, weights.second), strict=True))
    assert abs(losses[0] - penalty - np.mean(squares)) < slack
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


@st.composite
def places(draw, name):
    """Weights of any direction, with rows from a twentieth to twice the usual length; at times two that are parallel,
    opposite, or nearly so."""
    like = measured(name).weights
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    first, second = rng.standard_normal(like.first.shape), rng.standard_normal(like.second.shape)
    first *= 2.0 ** rng.uniform(-5, 0.5, (len(first), 1))
    if sign := draw(st.sampled_from([0.0, 1.0, -1.0])):
        first[1] = sign * first[0] + draw(st.sampled_from([0.0, 1e-9, 1e-3])) * first[1]
    return tt.Weights(jnp.asarray(first), jnp.asarray(second))


def units_of(name, values):
    """A number, or a permutation, for each unit as one for each row."""
    return np.concatenate([values, values]) if isinstance(measured(name).seen.student, GatedHidden) else values


CONES = ("population, signs", "population, step student")
"""Kernels with the tip of a cone where rows align: 1e-9 beside it the direction of a slope is right to 1e-16/1e-9."""


def alike(name, place, expected, oracle=None, sizes=None, slack=1e-12):
    """Whether loss and gradient at a place are those expected; `sizes`: those of the gradient's entries."""
    slack = max(slack, 3e-6) if name in CONES else slack
    loss, slope = at(name, oracle or measured(name).seen.oracle, place)
    assert loss == pytest.approx(float(expected[0]), rel=slack, abs=slack / 10)
    goal = np.asarray(flatten(expected[1]))
    sizes = np.ones(len(goal)) if sizes is None else np.asarray(flatten(sizes))
    np.testing.assert_allclose(slope / sizes, goal / sizes, atol=slack * scale(goal / sizes))


def begun(name, place):
    """Loss and gradient of a place, the latter in the form of weights."""
    loss, slope = at(name, measured(name).seen.oracle, place)
    return loss, unflatten(jnp.asarray(slope), place)


@EVERY
@given(data=st.data())
def test_a_rotation_turns_the_gradient_and_nothing_else(name, data):
    """Sums of a few hundred terms in another order."""
    measured(name)  # compiled outside of the draw, where nothing may be random
    place, turn = data.draw(places(name)), ortho_group.rvs(FRAME, random_state=data.draw(st.integers(0, 10**6)))
    loss, slope = begun(name, place)
    alike(name, turned(place, turn), (loss, turned(slope, turn)), ORACLES[name](turn).oracle)


@EVERY
def test_the_loss_in_the_frame_is_that_in_the_whole_space(name):
    whole, (rows, outputs) = jax.jit(lambda oracle, place: oracle.loss(place)), shape(name)
    for seed in range(8):
        place = network(seed, rows, outputs, per_unit=rows // UNITS)
        into = ortho_group.rvs(FRAME + 3, random_state=seed)[:FRAME]
        found = whole(ORACLES[name](into).oracle, turned(place, into))
        assert float(found) == pytest.approx(begun(name, place)[0], rel=1e-12)


def shape(name):
    weights = measured(name).weights
    return len(weights.first), weights.second.shape[1]


@EVERY
@given(data=st.data())
def test_units_have_no_numbers(name, data):
    place, order = data.draw(places(name)), np.array(data.draw(st.permutations(range(UNITS))))
    rows = units_of(name, order) + np.repeat(np.arange(len(place.first) // UNITS), UNITS) * UNITS
    loss, slope = begun(name, place)
    other = tt.Weights(slope.first[rows], slope.second[order])
    alike(name, tt.Weights(place.first[rows], place.second[order]), (loss, other))


@pytest.mark.parametrize(
    "name", [name for name in ORACLES if "penalised" not in name]
)  # a penalty prefers two small units
@given(data=st.data(), part=st.floats(-2, 3))
def test_a_unit_may_be_split_in_two(name, data, part):
    """Two equal units share the outgoing weight of one, in any proportion: each moves by its share."""
    place = data.draw(places(name))
    last, count = UNITS - 1, len(place.first) // UNITS
    alone = place.second.at[last].set(0.0)
    rows = np.arange(len(place.first))
    rows[last::UNITS] = np.arange(count) * UNITS  # the last unit is the first once more
    first = place.first[rows]
    loss, slope = begun(name, tt.Weights(first, alone))
    shares = np.ones(UNITS)
    shares[[0, last]] = 1 - part, part
    second = alone.at[last].set(alone[0]) * shares[:, None]
    pull = slope.first[rows] * units_of(name, shares)[:, None]
    alike(name, tt.Weights(first, second), (loss, tt.Weights(pull, slope.second)))


@pytest.mark.parametrize("name", HOMOGENEOUS)
@given(data=st.data())
def test_lengths_of_rows_and_outgoing_weights_are_one_scale(name, data):
    """From a millionth to a million times as long, each unit by a factor of its own.

    Long rows make a shared kink take its grouped form. Where two rows are opposite, that subtracts two roots of a
    rounding error, and code that is not optimised computes these twice, in two roundings: sqrt(1e-16). What runs use is
    held to 1e-12 in tests/oracle/test_shared_kink.py.
    """
    place, degree = data.draw(places(name)), HOMOGENEOUS[name]
    slack = 1e-7 if name == "population, shared kink" else 1e-12
    factors = 10.0 ** np.array(data.draw(st.lists(st.floats(-6, 6), min_size=UNITS, max_size=UNITS)))
    rows = jnp.asarray(units_of(name, factors))[:, None]
    out = jnp.asarray(factors**-degree)[:, None]
    loss, slope = begun(name, place)
    sizes = tt.Weights(jnp.broadcast_to(1 / rows, place.first.shape), jnp.broadcast_to(1 / out, place.second.shape))
    other = tt.Weights(slope.first / rows, slope.second / out)
    alike(name, tt.Weights(place.first * rows, place.second * out), (loss, other), sizes=sizes, slack=slack)


@EVERY
def test_the_quick_form_is_right_where_it_is_not_strained(name):
    """Eight digits or more are left by definition; here, far from an optimum, nearly all."""
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
    return loss, slope, oracle.strained(weights, loss=loss, gradient=slope)
