"""The force on a neuron: against the library's oracle, explicit tensors, and where rows are parallel."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage._errors import BadInput
from tutelage.oracle.population import PopulationOracle
from tutelage.papers.beyond_ntk import field
from tutelage.papers.beyond_ntk.constants import coefficient
from tutelage.problem.networks import Weights

UNITS = {"abs": ("abs", 1.0), "relu": ("relu", 1.0), "relu2": ("relu", 2.0)}


def population(seed=0, count=6, dim=5, teachers=4):
    """Particles, masses, teacher weights and teachers that are not orthogonal."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((teachers, dim))
    drawn = rng.standard_normal((count, dim)), rng.uniform(1, 2, count) / count, rng.uniform(1, 2, teachers) / teachers
    return tuple(map(jnp.asarray, (*drawn, rows / np.linalg.norm(rows, axis=1, keepdims=True))))


@partial(jax.jit, static_argnames="variant")
def library(particles, masses, a, teachers, variant):
    """L and its gradient as twice those of the library's network with second weights `p |w|`, which move with w."""
    name, factor = UNITS[variant]
    oracle = PopulationOracle(student=name, teacher="abs", target=Weights(teachers, a[:, None]))
    norm = jnp.linalg.norm(particles, axis=1, keepdims=True)
    weights = Weights(particles, factor * masses[:, None] * norm)
    slope = oracle.gradient(weights)
    return 2 * oracle.loss(weights), 2 * (slope.first + slope.second * factor * masses[:, None] * particles / norm)


@pytest.mark.parametrize("variant", UNITS)
def test_loss_and_field_are_those_of_the_library(variant):
    w, masses, a, teachers = population()
    value, slope = library(w, masses, a, teachers, variant)
    # Two closed forms in float64, of numbers of order ten.
    np.testing.assert_allclose(field.loss(w, masses, a, teachers, variant), value, rtol=1e-13)
    found = masses[:, None] * field.field(w, w, masses, a, teachers, variant)
    np.testing.assert_allclose(found, slope, atol=1e-13)


@pytest.mark.parametrize("variant", UNITS)
def test_the_field_is_the_difference_quotient_of_the_loss(variant):
    w, masses, a, teachers = population(1)
    direction = np.random.default_rng(2).standard_normal(w.shape)

    def at(step):
        return float(field.loss(w + step * direction, masses, a, teachers, variant))

    h = 1e-3  # fourth order: h^4 = 1e-12 times a fifth derivative; rounding 1e-16/h
    slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    found = jnp.sum(masses[:, None] * field.field(w, w, masses, a, teachers, variant) * direction)
    np.testing.assert_allclose(found, slope, atol=2e-10)


def test_orders_add_up_to_the_field():
    w, masses, a, teachers = population(3)
    v = jnp.asarray(np.random.default_rng(4).standard_normal((3, 5)))
    low = sum(field.order_field(v, w, masses, a, k, teachers, "relu2") for k in (0, 1, 2, 4, 6))
    norms = jnp.linalg.norm(w, axis=1) ** 2
    rest = field.pull(v, w, masses * norms, above=6) - field.pull(v, teachers, a, above=6)
    np.testing.assert_allclose(low + 2 * rest, field.field(v, w, masses, a, teachers, "relu2"), atol=1e-12)


def test_the_pull_above_an_order_is_its_series():
    w, weights, *_ = (np.asarray(each) for each in population(5, dim=20))
    v = np.random.default_rng(6).standard_normal((3, 20))
    unit, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (v, w))
    cosine = unit @ other.T
    assert np.max(np.abs(cosine)) < 0.65
    series = np.zeros_like(v)
    for k in range(8, 80, 2):  # 0.65^80 = 1e-15
        across = np.linalg.norm(v, axis=1, keepdims=True) * ((k * cosine ** (k - 1) * weights) @ other)
        series += coefficient(k) * (((2 - k) * cosine**k @ weights)[:, None] * v + across)
    found = field.pull(*map(jnp.asarray, (v, w, weights)), above=6)
    np.testing.assert_allclose(found, series, atol=1e-14)


def order_loss(w, masses, a, order, teachers):
    """`|T_k|^2` by cosines."""
    norm = jnp.linalg.norm(w, axis=1)
    unit = jnp.concatenate([w / norm[:, None], teachers])
    signed = jnp.concatenate([masses * norm**2, -a])
    return signed @ (unit @ unit.T) ** order @ signed


@pytest.mark.parametrize("order", [0, 2, 4])
def test_order_losses_are_squares_of_tensors_and_their_slopes_the_order_fields(order):
    w, masses, a, teachers = population(5, dim=3)
    norm = np.linalg.norm(w, axis=1, keepdims=True)

    def powers(rows):
        """Tensor powers of the rows, flattened."""
        found = np.ones((len(rows), 1))
        for _ in range(order):
            found = np.einsum("np,nq->npq", found, rows).reshape(len(rows), -1)
        return found

    tensor = (masses * norm[:, 0] ** 2) @ powers(np.asarray(w) / norm) - a @ powers(np.asarray(teachers))
    value, slope = jax.jit(jax.value_and_grad(lambda now: order_loss(now, masses, a, order, teachers)))(w)
    np.testing.assert_allclose(value, np.sum(tensor**2), rtol=1e-12)
    found = masses[:, None] * field.order_field(w, w, masses, a, order, teachers)
    np.testing.assert_allclose(found, coefficient(order) * slope, atol=1e-13)


def test_parallel_opposite_and_zero_rows():
    w, masses, a, _ = population(6, teachers=5)
    v = jnp.concatenate([2.0 * w[:1], -3.0 * w[:1], jnp.zeros((1, 5))])
    near = v + jnp.asarray([[1e-9, 0, 0, 0, 0]])
    forces = field.field(v, w, masses, a)
    # The field has a bounded derivative (Hessian of K), so 1e-9 away it differs by some 1e-8.
    np.testing.assert_allclose(field.field(near[:2], w, masses, a), forces[:2], atol=1e-7)
    # |z| cannot tell w from -w, and the field grows in proportion to v.
    np.testing.assert_allclose(forces[1], -1.5 * forces[0], rtol=1e-14)
    assert np.all(np.asarray(forces[2]) == 0)
    still = jnp.concatenate([w, jnp.zeros((1, 5))])
    with_zero = field.field(w, still, jnp.append(masses, 1.0), a)
    np.testing.assert_allclose(with_zero, field.field(w, w, masses, a), atol=1e-15)


def test_snapped_angles_are_right_apart_from_nearly_parallel_rows():
    w, masses, *_ = population(7, count=30)
    unit = w / jnp.linalg.norm(w, axis=1, keepdims=True)
    exact, snapped = (field.pull(unit, 3.0 * unit, masses, snap=snap) for snap in (False, True))
    # Generic pairs: rounding of the cosine over the sine, 1e-16 x 30; equal rows count as equal.
    np.testing.assert_allclose(snapped, exact, atol=1e-14)
    tilted = unit + 1e-8 * jnp.roll(unit, 1, axis=1)
    gap = field.pull(unit, tilted, masses, snap=True) - field.pull(unit, tilted, masses)
    assert float(jnp.max(jnp.abs(gap))) < 1e-7 * float(jnp.max(masses))


def test_bad_input_is_refused():
    w, masses, a, teachers = population()
    with pytest.raises(BadInput, match="order is 3"):
        field.order_field(w, w, masses, a, 3)
    with pytest.raises(BadInput, match="teachers of shape"):
        field.field(w, w, masses, a, teachers[:2])
