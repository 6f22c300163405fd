"""Blocks of spherical SGD against plain loops, for every loss, batch and activation, and where coefficients vanish."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.dynamics import blocks
from tutelage.dynamics.blocks import BLOCK, Block, Rule, quick, safe, together

DIM, WIDTH = 12, 6


def network(kind, seed=0, bias=0.5, width=WIDTH):
    units, first = tt.Experts(1, width, kind, bias).draw(np.random.default_rng(seed), DIM)
    return units.expert(0), jnp.asarray(first[0])


def data(seed=1, count=BLOCK, gates=None):
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((count, DIM))
    x[:, 0] += 2 * draw.choice([-1.0, 1.0], count)
    y = (x[:, 1] ** 3 - 3 * x[:, 1]) / 6**0.5 + 0.3 * draw.standard_normal(count)
    each = np.ones((count, 1)) if gates is None else gates
    return Block(jnp.asarray(x), jnp.asarray(y), jnp.asarray(each))


def looped(rule, units, first, block):
    """Project the gradient of the loss, step, normalise; the gradient by automatic differentiation."""

    def output(w, x, gate):
        return rule.share * jnp.sum(gate * units.outgoing * units.value(w @ x))

    def update(w, piece):
        gradient = jnp.zeros_like(w)
        for x, y, gate in zip(*piece, strict=True):
            factor = y - output(w, x, gate) if rule.loss == "squared" else y
            gradient = gradient + factor * jax.grad(output)(w, x, gate) / rule.share / rule.batch
        tangent = gradient - jnp.sum(gradient * w, axis=1, keepdims=True) * w
        moved = w + rule.step * tangent
        return moved / jnp.linalg.norm(moved, axis=1, keepdims=True)

    step = jax.jit(update)
    for start in range(0, len(block.labels), rule.batch):
        first = step(first, jax.tree.map(lambda leaf, at=start: leaf[at : at + rule.batch], block))
    return np.asarray(first)


def rule(loss="correlation", batch=1, step=0.05):
    return Rule(jnp.asarray(step), jnp.asarray(1 / WIDTH), loss, batch)


CASES = [
    ("relu", "correlation", 1),
    ("relu", "squared", 1),
    ("relu", "correlation", 8),
    ("tanh", "squared", 4),
    ((3, 5), "correlation", 1),
    ((2, 3), "squared", 2),
]


@pytest.mark.parametrize(("kind", "loss", "batch"), CASES)
def test_a_block_is_the_plain_loop(kind, loss, batch):
    units, first = network(kind)
    block, how = data(), rule(loss, batch, 0.05 if isinstance(kind, str) else 0.004)
    plain = looped(how, units, first, block)
    moved, good = quick(how, units, first, block)
    assert good
    assert np.abs(plain - np.asarray(first)).max() > 0.01  # something was learned
    # 64 updates of numbers of size 1, each with rounding errors of some 1e-16 that steps may double.
    assert np.abs(np.asarray(moved) - plain).max() < 1e-12
    assert np.abs(np.asarray(safe(how, units, first, block)) - plain).max() < 1e-12
    assert np.abs(np.linalg.norm(moved, axis=1) - 1).max() < 1e-13


@pytest.mark.parametrize("wrong", ["no_norm", "no_projection", "late_label"])
def test_the_comparison_would_notice(monkeypatch, wrong):
    units, first = network("relu")
    block, how = data(), rule()
    plain = looped(how, units, first, block)
    true = blocks._moved
    if wrong == "no_norm":
        monkeypatch.setattr(blocks, "_moved", lambda g, pre, own: (true(g, pre, own)[0], 1.0))
    elif wrong == "no_projection":
        monkeypatch.setattr(blocks, "_moved", lambda g, pre, own: (0 * true(g, pre, own)[0], true(g, pre, own)[1]))
    else:
        block = block._replace(labels=jnp.roll(block.labels, 1))
    assert np.abs(np.asarray(quick(how, units, first, block)[0]) - plain).max() > 1e-3


def test_gates_of_zero_change_nothing():
    units, first = network("relu")
    seen = np.ones((BLOCK, 1))
    seen[::3] = 0
    block = data(gates=seen)
    kept = jax.tree.map(lambda leaf: leaf[np.flatnonzero(seen[:, 0])], block)
    moved = np.asarray(quick(rule(), units, first, block)[0])
    assert np.abs(moved - looped(rule(), units, first, kept)).max() < 1e-12
    still = np.asarray(quick(rule(), units, first, block._replace(gates=jnp.zeros((BLOCK, 1))))[0])
    assert np.array_equal(still, np.asarray(first))


def test_gates_of_single_units_in_the_squared_loss():
    units, first = network("relu")
    gates = np.random.default_rng(5).choice([0.0, 1.0], (BLOCK, WIDTH))
    block, how = data(gates=gates), rule("squared")
    moved = np.asarray(quick(how, units, first, block)[0])
    assert np.abs(moved - looped(how, units, first, block)).max() < 1e-12


def vanishing():
    """A step with `g u = 1` for the first unit: `1 - g u` is zero, and its direction after it is that of x alone."""
    units, first = network("relu", bias=0.0)
    block = data()
    x = block.inputs.at[0].set(3 * first[0] + 0.5 * block.inputs[0])
    u = float(first[0] @ x[0])
    labels = block.labels.at[0].set(float(units.outgoing[0]) / (0.05 * u))
    return units, first, Block(x, labels, block.gates)


def test_a_coefficient_that_vanishes_is_noticed_and_done_safely():
    units, first, block = vanishing()
    assert not quick(rule(), units, first, block)[1]
    plain = looped(rule(), units, first, block)
    assert np.abs(np.asarray(safe(rule(), units, first, block)) - plain).max() < 1e-11


def test_only_the_expert_in_need_is_marked():
    bad, other = vanishing(), (*network("relu", seed=3, bias=0.0), data(7))
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), bad, other)
    moved, good = together(rule(), *both)
    assert good.tolist() == [False, True]
    careful, all_good = together(rule(), *both, careful=True)
    assert all_good.all()
    for rows, (units, first, block) in zip((careful[0], moved[1]), (bad, other), strict=True):
        assert np.abs(np.asarray(rows) - looped(rule(), units, first, block)).max() < 1e-11


def test_large_steps_do_not_overflow():
    units, first = network("relu")
    moved = np.asarray(safe(rule(step=40.0), units, first, data()))
    assert np.isfinite(moved).all()
    assert np.abs(np.linalg.norm(moved, axis=1) - 1).max() < 1e-10


def test_single_precision_is_as_good_as_it_can_be():
    units, first = network("relu")
    block = data()
    short = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), (first, block))
    moved = np.asarray(quick(rule(), units, *short)[0])
    assert moved.dtype == np.float32
    # 64 updates with rounding errors of 6e-8, on numbers up to 10.
    assert np.abs(moved - looped(rule(), units, first, block)).max() < 1e-4


def test_aligned_duplicate_and_opposite_units_stay_what_they_are():
    units, first = network("relu", bias=0.0)
    twin = first.at[1].set(first[0]).at[2].set(-first[0])
    same = eqx.tree_at(lambda u: u.outgoing, units, jnp.ones(WIDTH))
    moved = np.asarray(quick(rule(), same, twin, data())[0])
    assert np.array_equal(moved[0], moved[1])
    assert not np.array_equal(moved[0], -moved[2])


@pytest.mark.parametrize("change", [{"loss": "other"}, {"batch": 3}, {"batch": 0}, {"batch": 128}])
def test_bad_rules_are_refused(change):
    with pytest.raises(tt.BadInput, match="expected"):
        rule(**change)
