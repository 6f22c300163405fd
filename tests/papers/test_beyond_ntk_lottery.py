"""Stage 1.2 of `beyond_ntk`: the direction equation, the sets of the lottery, and populations that race.

The equation is compared with other solvers, with the exact force of an isotropic bulk and with series; every claim is
seen to change its verdict on a planted error.
"""

import dataclasses
import math

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp

from tutelage._errors import BadInput
from tutelage.analysis import isotropic
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import directions, lottery, races, warmup
from tutelage.papers.beyond_ntk.checks import stage1
from tutelage.papers.beyond_ntk.constants import coefficient
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.field import pull
from tutelage.papers.beyond_ntk.figures import lottery as figure
from tutelage.papers.beyond_ntk.masses import Masses
from tutelage.papers.beyond_ntk.mixture import mixture
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.present.figures import draw
from tutelage.trajectory.dataset import save

RNG = np.random.default_rng(12)
CLAIMS = {claim.id: claim for claim in stage1.CLAIMS}
QUICK = Evidence()


def units(count, dim):
    v = RNG.standard_normal((count, dim))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


# The direction equation.


def test_velocity_is_the_exact_force_in_an_isotropic_bulk():
    dim, a = 12, np.full(12, 1 / 12)
    v = 1.3 * units(5, dim)
    # G(v) = 4 E|w|^2 kap_0 v - 2 grad_v sum_r a_r K(v, e_r), here with E|w|^2 = 0.9.
    force = -4 * 0.9 * isotropic(dim) * v + 2 * np.asarray(pull(jnp.asarray(v), jnp.eye(dim), jnp.asarray(a)))
    unit = v / 1.3
    radial = np.sum(force * unit, axis=1)
    across = (force - radial[:, None] * unit) / 1.3
    np.testing.assert_allclose(across, directions.velocity(unit, a), rtol=0, atol=1e-15)


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_hitting_times_by_another_solver(ratio):
    dim, a, until = 16, warmup.spaced(16, ratio), 200.0
    v = units(12, dim)
    found, last = directions.hits(v, a, until), directions.turned(v, a, until)

    def change(_, y):
        return directions.velocity(y[None], a)[0]

    def event(_, y):
        return np.max(y**2) - 0.5

    for number, row in enumerate(v):
        plain = solve_ivp(change, (0, until), row, "DOP853", rtol=1e-12, atol=1e-14, events=event)
        crossed = plain.t_events[0]
        assert (len(crossed) > 0 or np.max(row**2) >= 0.5) == np.isfinite(found.time[number])
        if len(crossed):
            # The step is 1/32 of an e-folding: h^4/120 of it a step is 1e-8.
            assert found.time[number] == pytest.approx(crossed[0], rel=1e-6)
            assert found.winner[number] == np.argmax(np.abs(plain.y_events[0][0]))
        np.testing.assert_allclose(last[number], plain.y[:, -1], atol=1e-6)
    assert 3 <= np.isfinite(found.time).sum()


def test_the_largest_coordinate_wins_for_equal_weights_and_need_not_for_unequal_ones():
    v = units(300, 10)
    equal = directions.hits(v, np.full(10, 0.1), 200.0)
    won = equal.winner >= 0
    assert won.mean() > 0.5 and np.array_equal(equal.winner[won], np.argmax(np.abs(v), axis=1)[won])
    other = directions.hits(v, warmup.spaced(10, 3.0), 200.0)
    assert np.any(other.winner[won] != equal.winner[won])


def test_a_start_beyond_the_level_has_won_and_a_bad_level_is_refused():
    found = directions.hits([[0.1, -0.9]], [0.5, 0.5], 10.0)
    assert found.time.tolist() == [0.0] and found.winner.tolist() == [1]
    with pytest.raises(BadInput, match="1/2 <= level < 1"):
        directions.hits([[1.0, 0.0]], [0.5, 0.5], 1.0, level=0.4)
    with pytest.raises(BadInput, match="no direction"):
        directions.turned([[1.0, 0.0], [0.0, 0.0]], [0.5, 0.5], 1.0)


def test_signal_by_its_series_and_its_power():
    a, v = warmup.spaced(6, 2.0), units(4, 6) * [[0.2], [0.9], [1.0], [2.0]]
    unit = v / np.linalg.norm(v, axis=1, keepdims=True)
    with mpmath.workdps(30):
        for row, found in zip(unit, directions.signal(unit, a), strict=True):
            shared = sum(w * _b2(x) for w, x in zip(a, row, strict=True))
            wanted = [float(w * _b1(x) - shared) for w, x in zip(a, row, strict=True)]
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-17)
    series = sum(4 * coefficient(k) * (np.abs(unit) ** k @ a) * np.sum(v**2, axis=1) for k in range(4, 2000, 2))
    # The tail of the series is that of sum 4 c_k, below 1e-4, only for a neuron on an axis; here vbar < 0.99.
    np.testing.assert_allclose(directions.signal_power(v, a), series, rtol=1e-6)


def _b1(x):
    x = mpmath.mpf(float(x))
    return 4 / mpmath.pi * (mpmath.asin(x) / x - 1)


def _b2(x):
    x = mpmath.mpf(float(x))
    return 8 / mpmath.pi * (1 - mpmath.sqrt(1 - x**2)) - 4 / mpmath.pi * x * mpmath.asin(x)


# The sets.


def test_typical_starts():
    dim = 50
    a = np.full(dim, 1 / dim)
    flat = np.full((1, dim), 1 / math.sqrt(dim))
    assert lottery.typical(flat, a).tolist() == [True]
    # One large entry, and more than 1 + log d that are not small; all else is as it should be.
    for start in (np.eye(1, dim) * 1.2, flat * (2.5 * (np.arange(dim) < 8))):
        assert not lottery.typical(start, a)[0]
    tilted, first = np.where(np.arange(dim) < 25, 1.9, 0.1) / dim, np.arange(dim) < 25
    heavy = np.where(first, 1.4, 0.2)[None] / math.sqrt(dim)
    assert lottery.typical(heavy, a)[0] and not lottery.typical(heavy, tilted)[0]  # the weighted norm is off
    long = np.sqrt(np.where(first, 0.9, 2.9)[None] / dim)
    assert long**2 @ tilted * dim == pytest.approx(1.0) and not lottery.typical(long, tilted)[0]  # the norm is off


def test_bars_are_where_the_cubic_law_blows_up_at_the_horizon():
    a, horizon = warmup.spaced(9, 2.0), 70.0
    level = lottery.bars(a, horizon).level
    # At T_1 the squares have taken the factor a_i d (Claim A.2, corrected).
    np.testing.assert_allclose(directions.blow_up_time(9 * a * level, a), horizon, rtol=1e-13)
    with pytest.raises(BadInput, match="positive time"):
        lottery.bars(a, 0.0)


def test_sets_as_defined_one_by_one():
    start = RNG.standard_normal((500, 6)) / math.sqrt(6)
    bars = lottery.Bars(RNG.uniform(0.4, 0.6, 6), RNG.uniform(0.05, 0.15, 6))
    inside = RNG.uniform(size=500) < 0.8
    found = lottery.tickets(start, bars, inside)
    low, high = bars.level - bars.margin, bars.level + bars.margin
    for n, v in enumerate(start**2):
        for i in range(6):
            others = [r for r in range(6) if r != i]
            assert found.potential[n, i] == (inside[n] and v[i] >= low[i])
            assert found.good[n, i] == (inside[n] and v[i] >= high[i] and all(v[j] < low[j] for j in others))
            assert found.bad[n, i] == (inside[n] and v[i] >= low[i] and any(v[r] >= low[r] for r in others))
    assert set(found.kind) == {0, 1, 2, 3}


def test_measures_of_the_sets_by_counting():
    dim, level, count = 20, 5.0, 40_000
    kind = lottery.tickets(
        np.random.default_rng(4).standard_normal((count, dim)), lottery.Bars(np.full(dim, level), np.full(dim, 1.25))
    )
    found = lottery.measures(dim, level)
    for seen, law in ((kind.good, found.good), (kind.bad, found.bad)):
        share = float(seen.mean())
        # Entries of one neuron are nearly independent; 5 standard deviations of their mean: false alarms below 1e-6.
        assert abs(share - law) < 5 * math.sqrt(float(law) * dim / (count * dim))


def test_fates():
    start = [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]
    assert [lottery.FATES[f] for f in lottery.fates(start, [1, 1, -1])] == ["its own", "another", "none"]


# Populations that race.


@pytest.fixture(scope="module")
def run():
    return races.race(races.PLANS["quick"])


def test_population_starts_with_orders_0_and_2_learned(run):
    np.testing.assert_allclose(np.mean(run.base[0] ** 2, axis=0), 1 / 32, rtol=1e-12)
    kinds = run.kind[run.plan.width :]
    assert [int(np.sum(kinds == k)) for k in range(4)] == [run.plan.tracers] * 4
    assert np.sum(np.isfinite(run.hits.time)) > 20


def test_hits_of_a_population_are_read_off_its_path():
    plan = races.Plan(dim=3, width=1, tracers=0)
    three = np.array([[[0.5, 0.5, 0.5]], [[0.62, 0.5, 0.5]], [[1.0, 0.5, 0.5]]])
    one = races.Race(plan, np.array([0.0, 1.0, 2.0]), three, np.zeros((3, 0, 3)))
    shares = 0.62**2 / (0.62**2 + 0.5), 1 / 1.5
    assert (
        one.hits.time[0] == pytest.approx(1 + (0.5 - shares[0]) / (shares[1] - shares[0])) and one.hits.winner[0] == 0
    )


# Claims.

HERE = (
    "C11", "C12", "C12:printed", "C13", "C14", "C15", "C15:bad", "C15:bad32", "C15:bad128", "C15:tickets",
    "C15:unequal", "C15:network", "C16", "C16:printed", "C16:here",
)  # fmt: skip


@pytest.mark.parametrize("id", HERE)
def test_verdict(id):
    assert CLAIMS[id].check(QUICK).verdict is CLAIMS[id].expected


def replaced_run(monkeypatch, name, **changes):
    honest = getattr(races, name)

    def planted(*args):
        found = honest(*args)
        return dataclasses.replace(found, **{key: change(found) for key, change in changes.items()})

    monkeypatch.setattr(races, name, planted)


def grown(monkeypatch):
    replaced_run(monkeypatch, "warmup", base=lambda run: 2 * run.base)


def as_printed(monkeypatch):
    def base(run):
        return np.stack([run.base[0], run.weights * len(run.weights) * run.base[0]])

    replaced_run(monkeypatch, "warmup", base=base)


def isotropic_bulk(monkeypatch):
    """Order 2 is not learned."""

    def flat(masses):
        return Masses(np.full_like(masses.beta, 1 / len(masses.beta)), masses.gamma)

    monkeypatch.setattr(stage1, "mixture", lambda masses, a, rng: mixture(flat(masses), a, rng))


def doubled_power(monkeypatch):
    honest = directions.signal_power
    monkeypatch.setattr(directions, "signal_power", lambda v, a: 2 * honest(v, a))


def kinds_by_chance(monkeypatch):
    honest = races.tables

    def moved(size):
        return {name: np.roll(table, 1, axis=0) for name, table in honest(size).items()}

    monkeypatch.setattr(races, "tables", moved)


def every_kind(name):
    def plant(monkeypatch, honest=races.by_direction_equation):
        def told(dim, count):
            start, kind, hits = honest(dim, count)
            return start, np.full_like(kind, lottery.KINDS.index(name)), hits

        monkeypatch.setattr(races, "by_direction_equation", told)

    return plant


def turned_about(name):
    """Tickets are read off other neurons."""

    honest = getattr(races, name)

    def plant(monkeypatch):
        def planted(plan):
            found = dataclasses.replace(honest(plan))
            found.__dict__["foretold"] = directions.Hits(*(part[::-1] for part in honest(plan).foretold))
            return found

        monkeypatch.setattr(races, name, planted)

    return plant


def large_neurons(monkeypatch):
    """The threshold of the second bullet is passed by neurons of every kind."""

    def base(run):
        return np.stack([run.base[0], 30 * run.base[-1]])

    replaced_run(monkeypatch, "race", base=base, tracers=lambda run: run.tracers[[0, -1]])


def swapped(monkeypatch):
    honest = lottery.measures
    monkeypatch.setattr(lottery, "measures", lambda *args: lottery.Measures(*honest(*args)[::-1]))


PLANTED = {
    "C11": grown, "C12": as_printed, "C12:printed": as_printed, "C13": isotropic_bulk, "C14": doubled_power,
    "C15": kinds_by_chance, "C15:bad": large_neurons, "C15:bad32": every_kind("bad"), "C15:bad128": every_kind("other"),
    "C15:tickets": turned_about("race"), "C15:unequal": turned_about("race"), "C15:network": turned_about("network"),
    "C16": swapped, "C16:printed": swapped, "C16:here": swapped,
}  # fmt: skip


@pytest.mark.parametrize("id", HERE)
def test_verdict_on_a_planted_error(id, monkeypatch):
    PLANTED[id](monkeypatch)
    other = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS, Verdict.NOT_APPLICABLE: Verdict.FAILS}
    assert CLAIMS[id].check(QUICK).verdict is other[CLAIMS[id].expected]


def test_cubic_constant_is_seen(monkeypatch):
    monkeypatch.setattr(directions, "RATE4", directions.RATE4 / 2)
    assert CLAIMS["C13"].check(QUICK).verdict is Verdict.FAILS


# Figure.


def test_figure(tmp_path):
    path = tmp_path / "figure.nc"
    save(figure.compute(BeyondNtkSettings(), "quick"), path)
    dataset = xr.load_dataset(path)
    sheet = figure.sheet(dataset)
    assert {"Population", "Network of 200 neurons"} < {panel.title for panel in sheet.panels}
    table = next(panel.fields[0] for panel in sheet.panels if panel.fields)
    np.testing.assert_allclose(table.values.sum(1), 100)
    assert table.rows[-1].startswith("good") and table.values[-1, 0] == 100  # all good ones win their own
    assert dataset["population"].values.sum() == dataset.sizes["neuron"]
    draw(sheet)
