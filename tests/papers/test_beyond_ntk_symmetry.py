"""Infinite width by symmetry: groups of signs, orbits and power sums, by enumeration; and the claims about them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tutelage._errors import BadInput
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import field, orbits, powers
from tutelage.papers.beyond_ntk.checks import symmetry
from tutelage.papers.beyond_ntk.constants import B0, B2, coefficient
from tutelage.papers.beyond_ntk.evidence import Evidence

BY_ID = {claim.id: claim for claim in symmetry.CLAIMS}


def base_population(seed=0, count=4, dim=5):
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((count, dim)) / np.sqrt(dim)
    masses, a = rng.uniform(1, 2, count), rng.uniform(1, 2, dim)
    return tuple(map(jnp.asarray, (base, masses / masses.sum(), a / a.sum())))


def everyone(base, masses, signs):
    """All images as plain particles."""
    return orbits.orbit(base, signs), jnp.tile(masses, len(signs)) / len(signs)


def balanced(signs, columns):
    """Whether these columns take all their values equally often."""
    words = (signs[:, columns] > 0) @ (1 << np.arange(len(columns)))
    return len(set(np.bincount(words, minlength=2 ** len(columns)))) == 1


@pytest.mark.parametrize("dim", [6, 16, 30, 64])
def test_strength_of_the_hadamard_group(dim):
    rng = np.random.default_rng(dim)
    signs = orbits.hadamard_group(dim)
    # A linear code: balanced columns are independent ones, so a wrong field or a repeated column shows at once.
    assert all(balanced(signs, rng.choice(dim, 3, replace=False)) for _ in range(100))
    assert len(signs) == 2 * 2 ** (dim - 1).bit_length()


def test_strength_is_no_higher():
    assert not all(balanced(orbits.hadamard_group(8), columns) for columns in itertools.combinations(range(8), 4))


@pytest.mark.parametrize("make", [orbits.full_group, orbits.hadamard_group])
def test_signs_are_a_group_with_negatives(make):
    signs = make(6)
    rows = {tuple(row) for row in signs}
    assert {tuple(-row) for row in signs} == rows
    assert {tuple(one * other) for one in signs[:8] for other in signs} == rows
    assert np.all(signs[0] == 1)


@pytest.mark.parametrize("make", [orbits.full_group, orbits.hadamard_group])
@pytest.mark.parametrize("variant", ["abs", "relu2"])
def test_field_and_loss_of_an_orbit_are_those_of_all_its_particles(make, variant):
    base, masses, a = base_population()
    signs = make(5)
    whole, spread = everyone(base, masses, signs)
    found = orbits.orbit_field(base, base, masses, signs, a)
    images = np.asarray(field.field(whole, whole, spread, a, variant=variant)).reshape(len(signs), *base.shape)
    np.testing.assert_allclose(images, signs[:, None, :] * np.asarray(found), atol=1e-14)
    np.testing.assert_allclose(
        orbits.orbit_loss(base, masses, signs, a), field.loss(whole, spread, a, variant=variant), atol=1e-15
    )


def test_all_signs_make_order_four_exact_and_strength_three_does_not():
    base, masses, a = base_population(dim=8)
    full = powers.order_field(base, base, masses, a, 4)
    gaps = {}
    for make in (orbits.full_group, orbits.hadamard_group):
        whole, spread = everyone(base, masses, make(8))
        gaps[make] = float(jnp.max(jnp.abs(field.order_field(base, whole, spread, a, 4) - full)))
    assert gaps[orbits.full_group] < 1e-15 < 1e-5 < gaps[orbits.hadamard_group]


def test_exact_orders_leave_a_small_error_of_the_signs():
    base, masses, a = base_population(count=16, dim=10)
    true = orbits.orbit_field(base, base, masses, orbits.full_group(10), a)
    high = true - sum(powers.order_field(base, base, masses, a, k) for k in (0, 2))
    signs = orbits.hadamard_group(10)
    errors = [
        float(jnp.linalg.norm(orbits.orbit_field(base, base, masses, signs, a, exact) - true) / jnp.linalg.norm(high))
        for exact in (-2, 4, 8)
    ]
    # Orders from 10 on are a sixth of those from 4 on in the kernel, and smaller signs average well.
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]
    assert errors[2] < 0.03
    # Power sums and the full group are two ways to one field.
    np.testing.assert_allclose(orbits.orbit_field(base, base, masses, orbits.full_group(10), a, 8), true, atol=1e-13)


def test_moments_by_enumeration_and_as_printed_polynomials():
    rng = np.random.default_rng(1)
    w, v = (jnp.asarray(rng.uniform(-0.5, 0.5, (3, 5))) for _ in range(2))
    moments = powers.sign_moments(w, v, powers.LARGEST)
    sums = jnp.einsum("gk,vk,wk->gvw", jnp.asarray(orbits.full_group(5)), v, w)
    for half, found in enumerate(moments):
        # Alternating terms grow like factorials: half the digits are left at order 16.
        np.testing.assert_allclose(found, jnp.mean(sums ** (2 * half), axis=0), atol=1e-15, rtol=1e-7)
    s2, s4, s6, s8 = (v**k @ (w**k).T for k in (2, 4, 6, 8))
    np.testing.assert_allclose(moments[2], 3 * s2**2 - 2 * s4, rtol=1e-12)
    np.testing.assert_allclose(moments[3], 15 * s2**3 - 30 * s2 * s4 + 16 * s6, rtol=1e-12)
    eighth = 105 * s2**4 - 420 * s4 * s2**2 + 140 * s4**2 + 448 * s6 * s2 - 272 * s8
    np.testing.assert_allclose(moments[4], eighth, rtol=1e-11)


@pytest.mark.parametrize("order", [0, 2, 4, 8])
def test_order_losses_by_enumeration_and_their_slopes(order):
    base, masses, a = base_population(2)
    whole, spread = everyone(base, masses, orbits.full_group(5))
    norm = jnp.linalg.norm(whole, axis=1)
    unit, signed = jnp.concatenate([whole / norm[:, None], jnp.eye(5)]), jnp.concatenate([spread * norm**2, -a])
    tensor = signed @ (unit @ unit.T) ** order @ signed
    np.testing.assert_allclose(powers.order_loss(base, masses, a, order), tensor, atol=1e-14)
    slope = jax.grad(lambda now: coefficient(order) * powers.order_loss(now, masses, a, order))(base)
    np.testing.assert_allclose(masses[:, None] * powers.order_field(base, base, masses, a, order), slope, atol=1e-14)


def test_simulated_orbit_follows_descent_of_all_particles():
    base, masses, a = base_population(3, count=3, dim=4)
    signs = orbits.full_group(4)
    whole, spread = everyone(base, masses, signs)
    path, tracers = orbits.simulate(base, masses, signs, a, step=0.2, times=(0.0, 2.0, 6.0), tracers=whole[:5])
    for _ in range(30):
        whole = whole - 0.2 * field.field(whole, whole, spread, a)
    # Thirty steps, each with a rounding error of 1e-16 that descent does not enlarge much.
    np.testing.assert_allclose(path[-1], whole[:3], atol=1e-13)
    np.testing.assert_array_equal(path[0], base)
    # A neuron without mass that starts on one with mass goes with it, and so do images.
    np.testing.assert_allclose(tracers[-1], whole[:5], atol=1e-13)


def test_power_sum_descent_on_orders_zero_and_two_is_the_recursion_of_second_moments():
    base, masses, a = base_population(4, count=6, dim=5)
    path = powers.simulate(base, masses, a, step=0.1, times=(0.0, 5.0), orders=(0, 2))
    q = masses @ base**2
    for _ in range(50):
        q = q * (1 - 0.1 * (B0 * (jnp.sum(q) - 1) + B2 * (q - a))) ** 2
    np.testing.assert_allclose(masses @ path[-1] ** 2, q, rtol=1e-12)


def test_power_sums_to_order_eight_are_near_the_orbit():
    base, masses, a = base_population(5, count=8, dim=5)
    times = (0.0, 4.0)
    full, _ = orbits.simulate(base, masses, orbits.full_group(5), a, step=0.2, times=times)
    short = powers.simulate(base, masses, a, step=0.2, times=times)
    # Orders from 10 on weigh 0.7% of the kernel. Their force moved neurons by 0.02 at most here.
    assert 1e-4 < np.max(np.abs(full[-1] - short[-1])) < 0.05


def test_the_quasi_random_base_has_the_moments_of_its_law():
    base = orbits.gaussian_base(256, 16, seed=3)
    # Random draws would have relative errors of sqrt(2/256) = 9% in each of the 16 second moments.
    np.testing.assert_allclose(jnp.mean(base**2, axis=0), 1 / 16, rtol=0.05)
    assert float(jnp.min(base)) >= 0


def test_field_at_the_start_is_that_of_a_large_population():
    a = base_population(6, dim=8)[2]
    v = jnp.asarray(np.random.default_rng(7).standard_normal((6, 8)) / np.sqrt(8))
    base = orbits.gaussian_base(2048, 8, seed=1)
    base = base / jnp.sqrt(8 * jnp.mean(base**2, axis=0))  # second moments 1/d, as in the law
    whole = orbits.orbit_field(v, base, jnp.full(2048, 1 / 2048), orbits.full_group(8), a)
    low, high = symmetry.start_field(v, a)
    # Halving the number of neurons or another seed changes the field by some 5e-5; the high orders are 0.007.
    np.testing.assert_allclose(low + high, whole, atol=2e-4)
    assert float(jnp.max(jnp.abs(high))) > 0.005


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: orbits.full_group(11), "d = 11"),
        (lambda: orbits.hadamard_group(1), "d = 1"),
        (lambda: orbits.halves(orbits.full_group(3)[:4]), "negatives"),
        (lambda: powers.order_field(jnp.ones((1, 2)), jnp.ones((1, 2)), jnp.ones(1), jnp.ones(2), 5), "order is 5"),
        (lambda: powers.segments((2.0, 1.0), 0.5), "increasing"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(BadInput, match=words):
        call()


@pytest.mark.parametrize("id", BY_ID)
def test_claims_have_their_expected_verdicts(id):
    assert BY_ID[id].check(Evidence()).verdict is BY_ID[id].expected


def biased(old):
    """A field that is not odd in each coordinate."""
    return lambda v, *args, **options: old(v, *args, **options) + 1e-9


def off(factor):
    return lambda old: lambda *args, **options: factor * old(*args, **options)


PLANTS = {
    "C3": [(field, "field", biased)],
    "C4": [
        (symmetry, "B0", lambda old: old * (1 + 1e-9)),
        (symmetry, "B2", lambda old: old * (1 + 1e-9)),
        (field, "order_field", biased),
    ],
    "C5": [
        (powers, "order_field", lambda _: lambda v, base, masses, a, k: symmetry.printed_field(base, masses, a, k)),
        (powers, "order_field", off(1 + 1e-9)),
    ],
    "C5:printed": [
        (symmetry, "printed_field", lambda _: lambda base, masses, a, k: powers.order_field(base, base, masses, a, k))
    ],
    "C8": [
        (symmetry, "start_field", lambda old: lambda v, a: (old(v, a)[0], sum(old(v, a)))),
        (symmetry, "start_field", lambda old: lambda v, a: (v * old(v, a)[0], old(v, a)[1])),
    ],
}


@pytest.mark.parametrize(("id", "plant"), [(id, plant) for id, plants in PLANTS.items() for plant in plants])
def test_planted_errors_change_the_verdict(id, plant, monkeypatch):
    module, name, change = plant
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    other = Verdict.HOLDS if BY_ID[id].expected is Verdict.FAILS else Verdict.FAILS
    assert BY_ID[id].check(Evidence()).verdict is other


def test_every_claim_has_a_plant():
    assert set(PLANTS) == set(BY_ID)
