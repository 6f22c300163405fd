"""Stages 1.1 and 2 of `beyond_ntk` as reduced equations: against closed forms, other solvers and the exact force.

Every claim about them is seen to change its verdict on a planted error.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from papers.figures import again
from scipy.integrate import solve_ivp
from tables import conditions_are_told

from tutelage._errors import BadInput
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import late, masses, mixture, warmup
from tutelage.papers.beyond_ntk.checks import stage1, stage2
from tutelage.papers.beyond_ntk.constants import B0, B2, RATE1, RATE2, TAIL
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.field import field, order_field
from tutelage.papers.beyond_ntk.figures import masses as masses_figure
from tutelage.papers.beyond_ntk.figures import warmup as warmup_figure
from tutelage.papers.beyond_ntk.masses import Masses
from tutelage.papers.beyond_ntk.orbits import full_group, orbit
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.present.figures import draw

RNG = np.random.default_rng(6)
CLAIMS = {claim.id: claim for claim in stage1.CLAIMS + stage2.CLAIMS}
QUICK = Evidence()


# Stage 1.1.


def test_warmup_of_one_direction_is_the_logistic_curve():
    times = np.array([0.0, 0.1, 0.5, 2.0])
    exact = 1 / (1 + (1 / 0.2 - 1) * np.exp(-2 * (B0 + B2) * times))
    # The solver's 1e-10, over some hundred steps.
    np.testing.assert_allclose(warmup.flow([0.2], [1.0], times)[:, 0], exact, rtol=1e-8)


def test_warmup_flow_is_the_limit_of_small_steps():
    a = warmup.spaced(5, 3.0)
    start, until = RNG.uniform(0.05, 0.4, 5), 2.0
    ends = [warmup.descent(start, a, until / n, n)[-1] for n in (4000, 8000)]
    exact = warmup.flow(start, a, [0.0, until])[-1]
    # The error of descent halves with the step; taken out to first order, what is left is of second order.
    np.testing.assert_allclose(ends[1], exact, rtol=2e-3)
    np.testing.assert_allclose(2 * ends[1] - ends[0], exact, rtol=1e-6)


def test_pull_is_the_exact_force_of_orders_0_and_2():
    base, a = RNG.standard_normal((3, 4)) / 2, warmup.spaced(4, 2.0)
    everyone = orbit(jnp.asarray(base), full_group(4))
    population = everyone, jnp.full(len(everyone), 1 / len(everyone)), jnp.asarray(a)
    force = sum(order_field(jnp.asarray(base), *population, order) for order in (0, 2))
    np.testing.assert_allclose(force, warmup.pull(np.mean(base**2, axis=0), a) * base, rtol=0, atol=1e-14)


def test_spectrum_is_that_of_the_jacobian():
    a, h = warmup.spaced(7, 3.0), 1e-6

    def velocity(q):
        return -2 * q * warmup.pull(q, a)

    jacobian = np.stack([(velocity(a + h * e) - velocity(a - h * e)) / (2 * h) for e in np.eye(7)], axis=1)
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(-jacobian).real), warmup.spectrum(a), rtol=1e-8)
    uniform = warmup.spectrum(np.full(30, 1 / 30))
    np.testing.assert_allclose(uniform, [2 * B2 / 30] * 29 + [2 * B0 + 2 * B2 / 30], rtol=1e-13)


def test_excess_counts_signs_apart():
    found = warmup.excess([[0.5, 0.2], [0.1, 0.6]], [0.4, 0.6])
    np.testing.assert_allclose(found.zero, B0 * np.array([-0.3, -0.3]), rtol=1e-14)
    np.testing.assert_allclose(found.plus, B2 * np.array([0.1, 0.0]), atol=1e-15)
    np.testing.assert_allclose(found.minus, B2 * np.array([0.4, 0.3]), rtol=1e-14)


def test_bad_starts_are_refused():
    with pytest.raises(BadInput, match="positive second moments"):
        warmup.flow([0.5, 0.0], [0.5, 0.5], [0.0, 1.0])
    with pytest.raises(BadInput, match="more than 1"):
        warmup.largest_first_step(1.0, 30)
    with pytest.raises(BadInput, match="not positive"):
        masses.flow(Masses(np.full(2, 0.5), np.zeros(2)), np.full(2, 0.5), [0.0, 1.0])


# Stage 2.


def some_masses(dim):
    a = warmup.spaced(dim, 2.0)
    return Masses(*(a * RNG.uniform(0.2, 0.9, dim) for _ in range(2))), a


def test_mass_flow_by_another_solver():
    start, a = some_masses(6)

    def change(_, y):
        return y * np.concatenate(masses.rates(Masses(*np.split(y, 2)), a))

    times = np.array([0.0, 1.0, 10.0, 40.0])
    plain = solve_ivp(change, (0, 40), np.concatenate(start), "DOP853", times, rtol=1e-11, atol=1e-14).y.T
    np.testing.assert_allclose(np.hstack(masses.flow(start, a, times)), plain, rtol=1e-7)


def test_equal_coordinates_are_solved_once_and_rightly():
    a = np.array([0.1, 0.3, 0.1, 0.3, 0.2])
    start, times = Masses(0.7 * a, 0.2 * a), [0.0, 5.0, 50.0]
    grouped = masses.flow(start, a, times)
    # Moved apart by 1e-9, each coordinate is a kind of its own.
    apart = masses.flow(start, a * (1 + 1e-9 * np.arange(5)), times)
    np.testing.assert_allclose(np.hstack(grouped), np.hstack(apart), rtol=1e-7)


def test_mass_recursion_has_the_flow_as_its_limit():
    start, a = some_masses(4)
    ends = [np.hstack(masses.descent(start, a, 2.0 / n, n))[-1] for n in (4000, 8000)]
    exact = np.hstack(masses.flow(start, a, [0.0, 2.0]))[-1]
    np.testing.assert_allclose(2 * ends[1] - ends[0], exact, rtol=1e-6)


def test_tail_of_the_mass_equation_as_tabulated():
    times, path, a = late.tail()
    scaled = np.interp(np.log(stage2.LAW_TIMES), np.log(times[1:]), times[1:] * RATE2 * path.beta[1:, 0])
    # Interpolated between 80 records per decade.
    np.testing.assert_allclose(scaled, [3.44, 1.34, 1.11, 1.03, 1.005], atol=0.006)
    assert masses.loss(path, a)[-1] == pytest.approx(masses.law_loss(times[-1], 100), rel=0.02)


@pytest.mark.parametrize("dim", [3, 100])
def test_law_of_beta_for_any_dim(dim):
    a = np.full(dim, 1 / dim)
    end = masses.flow(Masses(0.5 * a, 0.5 * a), a, [0.0, 1e5 * dim]).beta[-1]
    # What is left is of order log(t)/t in units of d/C_2: 1e-4.
    np.testing.assert_allclose(end, masses.law(1e5 * dim, dim), rtol=1e-3)


def test_a_neuron_on_an_axis_and_a_dense_one_have_the_rates_of_their_masses():
    start, a = some_masses(5)
    found = masses.rates(start, a)
    # Q of an axis is (4/pi)(pi/2 - 1) - (8/pi - 2) = 4(1 - 3/pi) times a - gamma.
    np.testing.assert_allclose(np.diag(masses.neuron_rates(np.eye(5), start, a)), found.gamma, rtol=1e-12)
    large = np.full((1, 400), 0.05)
    wide = Masses(*(np.full(400, 1 / 800) for _ in range(2)))
    weights = np.full(400, 1 / 400)
    gap = masses.neuron_rates(large, wide, weights) - masses.rates(wide, weights).beta
    assert np.max(np.abs(gap)) < 1e-5  # B_14 a vbar^2 = 1.3e-6


def test_tau_is_the_rate_of_the_total():
    start, a = some_masses(5)
    rate = masses.rates(start, a)
    total = (start.beta * rate.beta + start.gamma * rate.gamma) / start.total
    np.testing.assert_allclose(masses.tau(start, a) - masses.imbalance(start, a), total, rtol=1e-12)


def test_potential_and_its_bound_on_the_loss():
    start, a = some_masses(7)
    printed, net = (masses.potential(start, a, share=2.0, net=net) for net in (False, True))
    over = start.total - a
    others = max(np.abs(masses.tau(start, a)).max(), start.beta.max() / 2)
    assert printed == pytest.approx(max(others, 1.1 * B0 * max(over[over > 0].sum(), -over[over < 0].sum())), rel=1e-12)
    assert net == pytest.approx(max(others, 1.1 * B0 * abs(over.sum())), rel=1e-12)
    assert printed > others and printed > net  # the excess decides, and excess and lack cancel in the net sum
    for dim in (1, 3, 30):
        for _ in range(50):
            a = warmup.spaced(dim, 2.0) if dim > 1 else np.ones(1)
            some = Masses(*(a * RNG.uniform(0, 1.5, dim) for _ in range(2)))
            for share in (1.0, 4.0):
                value = masses.potential(some, a, share=share, net=True)
                assert masses.loss(some, a) <= masses.loss_share(share) * dim * value**2


def test_exact_force_and_loss_of_a_mixture():
    start, a = some_masses(8)
    at = mixture.mixture(start, a, RNG, count=2)
    np.testing.assert_allclose(at.masses.beta, start.beta, rtol=1e-13)
    dense = orbit(jnp.asarray(at.dense), full_group(8))
    population = jnp.concatenate([dense, jnp.asarray(np.diag(np.sqrt(start.gamma)))])
    each = jnp.concatenate([jnp.full(len(dense), 1 / len(dense)), jnp.ones(8)])
    v = RNG.standard_normal((3, 8))
    exact = np.asarray(field(jnp.asarray(v), population, each, jnp.asarray(a)))
    # Only orders from 10 on differ, which have less than 1% of the weight.
    np.testing.assert_allclose(at.force(v), exact, rtol=0, atol=0.01 * np.abs(exact).max())
    np.testing.assert_allclose(at.rates(v), -2 * at.force(v) / v, rtol=1e-12)


def test_loss_of_masses_is_that_of_the_population_to_leading_order():
    gaps = []
    for dim in (32, 128):
        at = stage2.stage_two(dim)
        gaps.append(dim * abs(at.loss() - float(masses.loss(at.masses, at.weights))))
    # Dense neurons have 3 c_4 (sum beta)^2/d^2 and more of order 4; both terms are of order 1/d^2.
    assert gaps[0] < 0.1 * TAIL and gaps[1] < gaps[0] / 2


# Claims.

HERE = (
    "C30",
    "C17:law",
    "C18",
    "C18:printed",
    "C18:neuron",
    "C19",
    "C19:unequal",
    "C19:net",
    "C19:growth",
    "C19:law",
)


@pytest.mark.parametrize("id", HERE)
def test_verdict(id):
    found = CLAIMS[id].check(QUICK)
    assert found.verdict is CLAIMS[id].expected and conditions_are_told(CLAIMS[id], found)


def forgotten_order_two(monkeypatch):
    monkeypatch.setattr(stage1.warmup, "largest_step", lambda weights: 2 / B0)


def weak_axes(monkeypatch):
    """C_2 is too small, in the equation but not in the population."""
    monkeypatch.setattr(masses, "RATE2", RATE2 / 4)
    monkeypatch.setattr(stage2, "late", late.late.__wrapped__)


def halved_in_print(monkeypatch):
    monkeypatch.setattr(stage2, "RATE2", RATE2 / 2)


def doubled_signal(monkeypatch):
    monkeypatch.setattr(masses, "signal", lambda v, a, honest=masses.signal: 2 * honest(v, a))


def always(net):
    def plant(monkeypatch, honest=masses.potential):
        monkeypatch.setattr(masses, "potential", lambda *args, **options: honest(*args, **options | {"net": net}))

    return plant


def doubled_law(monkeypatch):
    monkeypatch.setattr(masses, "law", lambda *args, honest=masses.law: 2 * honest(*args))


PLANTED = {
    "C30": forgotten_order_two, "C17:law": weak_axes, "C18": weak_axes,
    "C18:printed": halved_in_print, "C18:neuron": doubled_signal, "C19": weak_axes, "C19:unequal": always(net=True),
    "C19:net": always(net=False), "C19:growth": always(net=True), "C19:law": doubled_law,
}  # fmt: skip


@pytest.mark.parametrize("id", HERE)
def test_verdict_on_a_planted_error(id, monkeypatch):
    PLANTED[id](monkeypatch)
    other = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}
    assert CLAIMS[id].check(QUICK).verdict is other[CLAIMS[id].expected]


# Figures.


def test_figure_of_stage_2(tmp_path):
    dataset = again(masses_figure.compute(BeyondNtkSettings(), "quick"), tmp_path)
    sheet = masses_figure.sheet(dataset)
    assert [panel.title for panel in sheet.panels][:2] == ["Masses of a coordinate", "Loss"]
    # The last record is at C_2 t/d = 3600: the law is near, and the total of a coordinate is a.
    assert dataset["beta"].values[-1] == pytest.approx(dataset["law"].values[-1], rel=0.01)
    np.testing.assert_allclose(dataset["beta"] + dataset["gamma"], 1.0, atol=2e-3)
    # The printed sum is of order d times a few 1/d at T_3, and the net one of order 1/(d log d).
    rise = np.log(dataset["printed"] / dataset["net"]).values
    assert rise[0] < 0.1 and np.all(np.diff(rise) > 0.5)
    draw(sheet)


def test_figure_of_the_warm_up(tmp_path):
    dataset = again(warmup_figure.compute(BeyondNtkSettings(), "quick"), tmp_path)
    sheet = warmup_figure.sheet(dataset)
    assert len(sheet.panels) == 3 and "d = 64" in sheet.caption
    np.testing.assert_allclose(dataset["law_moment"].values[-1], dataset["factor"].values[[0, 32, 63]], rtol=0.01)
    # With the orders from 4 on, the moments follow those without to some 1/d.
    np.testing.assert_allclose(dataset["seen_moment"].values[-1], dataset["law_moment"].values[-1], rtol=1 / 64)
    draw(sheet)


def test_constants_of_claim_a10():
    assert (RATE1, RATE2) == (pytest.approx(8 / math.pi), pytest.approx(0.36056, abs=1e-5))
