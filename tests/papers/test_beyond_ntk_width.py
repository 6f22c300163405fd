"""Finite against infinite width: networks and tracers, first-order terms, the claims and the figure."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from tutelage._errors import BadInput
from tutelage.analysis.claims import Verdict
from tutelage.papers.beyond_ntk import field, orbits, perturbation, width
from tutelage.papers.beyond_ntk.checks import width as checks
from tutelage.papers.beyond_ntk.evidence import Evidence
from tutelage.papers.beyond_ntk.figures import width as figure
from tutelage.papers.beyond_ntk.settings import BeyondNtkSettings
from tutelage.present.figures import draw
from tutelage.trajectory.dataset import save

BY_ID = {claim.id: claim for claim in checks.CLAIMS}


@pytest.fixture(scope="module")
def found():
    """The comparison of the quick claims, made once."""
    return width.sized(full=False)


def test_networks_are_descent_in_their_own_field():
    rng = np.random.default_rng(0)
    batch = jnp.asarray(rng.standard_normal((2, 7, 4)) / 2)
    a = jnp.asarray([0.1, 0.2, 0.3, 0.4])
    path = width.networks(batch, a, step=0.1, times=(0.0, 1.0))
    for index, one in enumerate(batch):
        for _ in range(10):
            one = one - 0.1 * field.field(one, one, jnp.full(7, 1 / 7), a)
        np.testing.assert_allclose(path[-1, index], one, atol=1e-14)


def test_a_network_that_is_a_whole_population_has_no_error():
    base = jnp.asarray(np.random.default_rng(1).standard_normal((3, 4)) / 2)
    a, signs, times = jnp.full(4, 0.25), orbits.full_group(4), (0.0, 2.0, 4.0)
    whole = orbits.orbit(base, signs)
    _, twins = orbits.simulate(base, jnp.full(3, 1 / 3), signs, a, step=0.2, times=times, tracers=whole)
    path = width.networks(whole[None], a, step=0.2, times=times)
    # Twenty steps with rounding errors of 1e-16.
    np.testing.assert_allclose(path[:, 0], twins, atol=1e-13)


def test_comparison_begins_without_error_and_with_the_loss_of_the_start(found):
    assert np.all(found.mean[:, 0] == 0)
    assert found.mean.shape == found.largest.shape == (len(found.widths), len(found.times))
    starts = np.random.default_rng(0).standard_normal((max(found.widths), found.dim)) / np.sqrt(found.dim)
    m = max(found.widths)
    whole = field.loss(jnp.asarray(starts), jnp.full(m, 1 / m), jnp.full(found.dim, 1 / found.dim))
    np.testing.assert_allclose(found.losses[m][0, 0], whole, rtol=1e-12)
    # The losses of orders up to 8 of the population are most of its loss, and none is negative.
    assert all(np.all(each > -1e-15) for each in found.orders.values())
    assert 80 <= found.escape <= 95


def test_growth_is_the_rate_of_an_exponential(found):
    square = {m: np.exp(0.03 * found.times)[None, None] * np.ones((1, m, 1)) for m in found.widths}
    made = dataclasses.replace(found, square=square)
    np.testing.assert_allclose(made.growth(20, 60), 0.03)
    np.testing.assert_allclose(made.slopes, 0, atol=1e-12)


def test_largest_is_within_the_network():
    square = np.ones((2, 4, 1))
    square[0, 0] = 5.0  # a mean of 2 in the first network
    made = width.Comparison(4, np.zeros(1), {4: square}, {}, np.zeros(1), {})
    np.testing.assert_allclose(made.largest, [[2.5]])


def test_a_plateau_that_is_not_left_has_no_escape():
    made = width.Comparison(16, np.arange(3.0), {}, {}, np.full(3, 1.0), {})
    assert np.isnan(made.escape)


def test_expected_error_by_sampling():
    # E |xi|^2 for xi = -(d/2) T v, with T the error of the second moments of m Gaussian neurons.
    rng, dim, m = np.random.default_rng(2), 6, 50
    drawn = rng.standard_normal((400, m, dim)) / np.sqrt(dim)
    error = np.einsum("nmi,nmj->nij", drawn, drawn) / m - np.eye(dim) / dim
    v = rng.standard_normal((400, dim)) / np.sqrt(dim)
    square = np.sum((dim / 2 * np.einsum("nij,nj->ni", error, v)) ** 2, axis=1)
    # Five standard errors: a false alarm in a million. The factor in time goes to 1.
    assert abs(m * square.mean() - width.expected_error(dim, 1e3)) < 5 * m * square.std() / 20
    # While T is new it is learned at the rate b_2/d in v: xi = -b_2 T v t.
    ratio = width.expected_error(dim, 1e-4) / width.expected_error(dim, 1e3)
    np.testing.assert_allclose(np.sqrt(ratio), 2 * (4 / np.pi) / dim * 1e-4, rtol=1e-3)


def test_widths_must_share_the_starts():
    with pytest.raises(BadInput, match="divide the largest"):
        width.compare(4, (3, 8), 4, (0.0,))


def test_sixteen_terms_by_differences_of_explicit_sums():
    rng = np.random.default_rng(3)
    w, xi = rng.standard_normal((2, 4, 3))
    a, half = np.array([0.2, 0.3, 0.5]), 2

    def force(now):
        """Order 4 by loops: B_1 X - B_2 <X, vbar> vbar with c_4 = 1/(12 pi)."""
        found = np.zeros_like(now)
        for i, v in enumerate(now):
            r = np.linalg.norm(v)
            x = -a * v**3 / r**2
            for u in now:
                x = x + (u @ v) ** 3 / (u @ u * r**2) * u / len(now)
            found[i] = (8 * x - 4 * (x @ v) * v / r**2) / (12 * np.pi)
        return found

    h = 1e-3
    slope = (8 * (force(w + h * xi) - force(w - h * xi)) - force(w + 2 * h * xi) + force(w - 2 * h * xi)) / (12 * h)
    # Fourth-order differences: h^4 = 1e-12 times a fifth derivative of order 100.
    np.testing.assert_allclose(perturbation.high_terms(w, xi, a, half).sum(0), slope, atol=1e-9)


@pytest.mark.parametrize("id", BY_ID)
def test_claims_hold(id, found):
    assert BY_ID[id].check(Evidence()).verdict is Verdict.HOLDS


def changed(change):
    """The comparison with other errors: `change(square, m, times)`."""

    def plant(old):
        def sized(full):
            made = old(full)
            square = {m: change(each, m, made.times) for m, each in made.square.items()}
            return dataclasses.replace(made, square=square)

        return sized

    return plant


def longer(old):
    """Neurons beyond the bound."""
    return lambda *args: {name: (3 * w, law) for name, (w, law) in old(*args).items()}


def test_laws_keep_to_the_bound():
    for w, law in checks.laws(6, 4.0, np.random.default_rng(5)).values():
        assert np.max(np.sum(w**2, axis=1)) == pytest.approx(4.0) and law.sum() == pytest.approx(1.0)


def one_neuron(square, m, times):
    square = square.copy()
    square[:, 0] += (m if m == 128 else 0) * square.mean(1)
    return square


def second(change):
    """A pair of sides of an identity, with the first one wrong."""
    return lambda old: lambda *args: (change(old(*args)[0]), old(*args)[1])


def term(number):
    """One of the sixteen terms a little wrong."""

    def plant(old):
        def terms(*args):
            found = old(*args)
            found[number] *= 1 + 1e-6
            return found

        return terms

    return plant


PLANTS = [
    ("C6", checks, "start_losses", lambda old: lambda *args: 1.3 * old(*args)),
    ("C6", checks, "start_loss", lambda old: lambda dim, m: old(dim, m) + 0.5 / m),
    ("C6", checks, "plateau", lambda old: lambda dim: 0.7 * old(dim)),
    ("C6:laws", checks, "laws", longer),
    ("C6:laws", checks, "_deviations", lambda old: lambda *args: tuple(4 * part for part in old(*args))),
    ("C22", width, "sized", changed(lambda square, m, times: square * m**0.3)),
    ("C22", width, "sized", changed(lambda square, m, times: square * np.exp(0.02 * times))),
    ("C22", width, "sized", changed(one_neuron)),
    ("C22:level", width, "sized", changed(lambda square, m, times: 1.5 * square)),
    *(("C23", perturbation, f"claim_b{n}", second(lambda side: side * (1 + 1e-9))) for n in (1, 2, 3)),
    ("C23", perturbation, "low_terms", lambda old: lambda *args: old(*args) * (1 + 1e-9)),
    ("C23", perturbation, "first_terms", lambda old: lambda *args: old(*args) * (1 + 1e-9)),
    *(("C23", perturbation, "high_terms", term(number)) for number in range(16)),
    ("C24", perturbation, "claim_b8", second(lambda side: side * (1 + 1e-9))),
    ("C24", perturbation, "high_terms", term(15)),
    ("C24", perturbation, "claim_b8", lambda old: lambda *args: tuple(-side for side in old(*args))),
]


@pytest.mark.parametrize(("id", "module", "name", "change"), PLANTS)
def test_planted_errors_fail(id, module, name, change, found, monkeypatch):
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    assert BY_ID[id].check(Evidence()).verdict is Verdict.FAILS


def test_every_claim_has_a_plant():
    assert {plant[0] for plant in PLANTS} == set(BY_ID)


def test_figure(found, tmp_path):
    path = tmp_path / "figure.nc"
    save(figure.compute(BeyondNtkSettings(), "quick"), path)
    sheet = figure.sheet(xr.load_dataset(path))
    scaled, widths, slope, largest, losses, orders = sheet.panels
    assert [series.label for series in losses.series] == ["m = 32", "m = 64", "m = 128", "infinite"]
    # Times m, the widths lie on each other: within 20%, which is four standard deviations of 136 squares in 4 networks.
    curves = np.stack([series.y for series in scaled.series[:3]])[:, 1:]
    assert np.all(np.ptp(curves, axis=0) < 0.25 * curves.mean(0))
    np.testing.assert_allclose(scaled.series[3].y[-1], (16 + 1) / 4, rtol=1e-6)
    assert all(
        mark.at == found.escape for panel in (scaled, slope, largest, losses, orders) for mark in panel.marks if mark.at
    )
    # Wider networks have a lower loss, and infinite width the lowest.
    assert np.all(np.diff(np.stack([series.y for series in losses.series]), axis=0) < 0)
    assert len(widths.series) == 4 and "d = 16" in sheet.caption
    draw(sheet)
