"""The theory of `soft_moe`: constants, moments, laws, curvature, and the claims about them.

Constants are compared with mpmath and closed forms, laws and matrices with the exact gradient, and every claim is seen
to fail on a planted error.
"""

import dataclasses
import itertools
import math
from types import SimpleNamespace

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from papers.figures import again
from scipy.integrate import solve_ivp

from tutelage._errors import BadInput
from tutelage.analysis.claims import Verdict
from tutelage.papers.soft_moe.checks import kernel, local, units
from tutelage.papers.soft_moe.constants import Constants, correlation, logistic_coefficients
from tutelage.papers.soft_moe.exact import Exact
from tutelage.papers.soft_moe.figures.router import fig3a, fig3b
from tutelage.papers.soft_moe.graphs import graphs, hermite_moment
from tutelage.papers.soft_moe.growth import predicted_time
from tutelage.papers.soft_moe.lambdas import Lambdas
from tutelage.papers.soft_moe.laws import breaking_time, pair_times, sharing_time
from tutelage.papers.soft_moe.local import growth_rate, linearisation, spectrum, tuning_rate
from tutelage.papers.soft_moe.settings import SoftMoeSettings
from tutelage.papers.soft_moe.single import Single
from tutelage.present.figures import draw
from tutelage.problem.activations import activation, sigmoid
from tutelage.problem.networks import Weights

PAPER = Constants.of("sigmoid", 3)
CLAIMS = {claim.id: claim for claim in kernel.CLAIMS + local.CLAIMS}

# c_k / sqrt(k!) of the sigmoid by mpmath with 40 digits.
NORMALISED = {
    1: 0.20662096414190704, 3: -0.025473257907323417, 5: 0.0058770606000134374, 7: -0.0017266562875681669,
    9: 5.877891678784451e-4, 11: -2.2198956078952706e-4, 15: -3.9445557461863922e-5, 21: 4.2718903398439595e-6,
    31: -1.9145090972850248e-7, 41: 1.3640786545828255e-8, 61: 1.5818062537374185e-10, 101: 1.3065657163981419e-13,
}  # fmt: skip


@pytest.fixture(scope="module")
def evidence():
    settings = SoftMoeSettings()
    return SimpleNamespace(settings=settings, single=Single(settings))


# Constants.


def gaussian(function):
    """E[function(z)] by mpmath, 25 digits."""
    with mpmath.workdps(25):
        density = lambda z: function(z) * mpmath.npdf(z)  # noqa: E731
        return float(mpmath.quad(density, [-14, -7, -3, 0, 3, 7, 14]))


def logistic(z):
    return 1 / (1 + mpmath.exp(-z))


def slope(z):
    return logistic(z) * (1 - logistic(z))


def bend(z):
    return slope(z) * (1 - 2 * logistic(z))


def test_constants_by_quadrature_and_as_tabulated():
    moments = [gaussian(lambda z: logistic(z) ** 2), gaussian(lambda z: slope(z) ** 2)]
    moments += [gaussian(lambda z: logistic(z) * bend(z)), gaussian(lambda z: z * logistic(z) * slope(z))]
    # Sums of some fifty positive terms.
    np.testing.assert_allclose([PAPER.square, PAPER.slope_square, PAPER.bend, PAPER.c_s2], moments, rtol=1e-14)
    table = [0.293379035858093, 0.0448362413501944, -0.0136379993705648, 0.0311982419796296]
    np.testing.assert_allclose([PAPER.square, PAPER.slope_square, PAPER.bend, PAPER.c_s2], table, rtol=3e-15)
    found = [PAPER.c_s0, PAPER.c_s1, PAPER.quantum, PAPER.mean]
    np.testing.assert_allclose(found, [0.586758071716186, 0.269017448101166, 0.880137107574279, 0.5], rtol=2e-15)
    assert PAPER.ratio == pytest.approx(2.18112, abs=1e-5)


def test_coefficients_of_the_sigmoid():
    odd, library = logistic_coefficients(80), np.asarray(sigmoid.hermite(102).values)
    for k, value in NORMALISED.items():
        assert odd[k // 2] == pytest.approx(value, rel=1e-13)
        # The library's own are right to 1.3e-15 absolutely, which is what its kernels need.
        assert library[k] == pytest.approx(value, rel=1e-13, abs=2e-18 if k > 21 else 0)
    assert np.array_equal(np.sign(odd), (-1.0) ** np.arange(80))
    for k, value in {1: 0.206620964141907, 3: -0.0623964839592593, 5: 0.0643799732490444}.items():
        assert PAPER.coefficient(k) == pytest.approx(value, rel=1e-13)


def test_correlations_of_the_sigmoid():
    assert correlation(sigmoid, 0, 0, -1.0) == pytest.approx(PAPER.coefficient(1), rel=1e-14)  # pi(-z) = 1 - pi(z)
    rho = np.linspace(-1, 1, 2001)
    values = PAPER.correlation(1, 3, rho)
    assert values.max() == pytest.approx(-0.0128924216747, rel=1e-11) and np.argmax(values) == 1000
    assert values.min() == pytest.approx(-0.0153060711305, rel=1e-11)
    assert np.all(np.sign(PAPER.correlation(0, 2, rho[rho != 0])) == -np.sign(rho[rho != 0]))  # Lemma 29
    # Price: the derivative of G_ab is G_(a+1, b+1).
    h = 1e-5
    change = (PAPER.correlation(0, 2, rho[1:-1] + h) - PAPER.correlation(0, 2, rho[1:-1] - h)) / (2 * h)
    np.testing.assert_allclose(change, values[1:-1], atol=1e-10)


def test_correlations_of_the_normal_distribution_function_in_closed_form():
    gate, rho = activation("probit"), np.array([-0.9, 0.0, 0.4, 0.99])
    np.testing.assert_allclose(correlation(gate, 0, 0, rho), 0.25 + np.arcsin(rho / 2) / (2 * math.pi), rtol=1e-13)
    np.testing.assert_allclose(correlation(gate, 1, 1, rho), 1 / (2 * math.pi * np.sqrt(4 - rho**2)), rtol=1e-13)
    assert Constants.of("probit", 4).quantum == pytest.approx(4, rel=1e-14)  # 4!/2 E[Phi^2], and E[Phi^2] = 1/3
    assert Constants.of("constant").ratio == math.inf


# Lemma 1.


@pytest.mark.parametrize("degrees", [(2, 2, 2), (3, 1, 2, 2), (4, 2, 1, 3), (1, 1, 1), (0, 0)])
def test_graphs_are_all_graphs(degrees):
    edges = list(itertools.combinations(range(len(degrees)), 2))
    every = itertools.product(range(max(degrees) + 1), repeat=len(edges))
    ends = lambda counts, i: sum(n for edge, n in zip(edges, counts, strict=True) if i in edge)  # noqa: E731
    wanted = {counts for counts in every if all(ends(counts, i) == k for i, k in enumerate(degrees))}
    found = [tuple(graph[edge] for edge in edges) for graph in graphs(degrees)]
    assert len(found) == len(set(found)) and set(found) == wanted


# Laws.


def test_law_of_one_pair_is_the_exact_flow():
    a, b, g1, g2 = 0.9, 1.1, -0.02, 0.1
    loss = Exact(PAPER, units.TEACHERS, units.FRAME, taught=(1.0, 0.0))
    (v, w), idle = local.pair_state(g1, g2, np.zeros(3)), np.eye(units.FRAME)[6:]
    rows = np.stack([a * v, idle[0], b * w, idle[1]])

    def velocity(_, state):
        return -loss.gradient(state.reshape(rows.shape), second=(1.0, 0.0)).ravel()

    # The teacher's router is axis 0 and its expert axis 2.
    events = [lambda _, state: state.reshape(rows.shape)[2, 2] / b - 0.9, lambda _, state: state[0] / a - 0.9]
    flow = solve_ivp(velocity, (0, 12), rows.ravel(), events=events, rtol=1e-9, atol=1e-10)
    # Errors per step of 1e-8, over some 100 steps.
    np.testing.assert_allclose(pair_times(PAPER, g2, g1, a=a, b=b), np.ravel(flow.t_events), rtol=1e-6)


def test_lag_of_the_router_has_a_limit():
    lags = [pair_times(PAPER, g).lag for g in (1e-2, 1e-3, 1e-4)]
    np.testing.assert_allclose(lags, 5.4947, atol=1e-4)
    # Longer routers are slower; a router alone needs int dg / (6 G_11 (1 - g^2)) = 5.6428 to 0.9.
    assert pair_times(PAPER, 1e-3, a=2.0).lag == pytest.approx(4 * 5.6428, rel=0.02)
    found = pair_times(PAPER, 1e-3)
    assert found.expert == pytest.approx(float(predicted_time(1e-3)), rel=1e-3)
    with pytest.raises(BadInput, match="g2 is 0.95"):
        pair_times(PAPER, 0.95)


def test_slow_laws_for_degree_three_only():
    np.testing.assert_allclose(breaking_time(PAPER, [0.1, 0.05, 0.025]), [13.0, 52.2, 208.6], atol=0.06)
    assert float(sharing_time(PAPER, -0.05)) == pytest.approx(26.1, abs=0.05)
    with pytest.raises(BadInput, match="degree is 5"):
        breaking_time(Constants.of("sigmoid", 5), 0.1)


def test_four_students_represent_one_teacher():
    # The opposites of four corners of a regular pentagon: the sum of He_3 over all five is nothing.
    angles = 2 * math.pi * np.arange(1, 5) / 5
    students = -np.stack([np.cos(angles), np.sin(angles)], axis=1)
    loss = Exact(PAPER, 1, 3)  # the teacher's router is axis 0, its expert axis 1
    rows = np.concatenate([np.tile(np.eye(1, 3), (4, 1)), np.insert(students, 0, 0.0, axis=1)])
    weights = Weights(jnp.asarray(rows), jnp.ones((4, 1)))
    # Of 25 terms of order 1.
    assert abs(float(loss.oracle.loss(weights))) < 1e-13 and np.abs(loss.gradient(rows)).max() < 1e-13


def test_start_of_a_journey_has_the_overlaps_meant():
    dim = 100
    router, expert = Single(SoftMoeSettings()).vectors(dim)
    np.testing.assert_allclose([router @ router, expert @ expert, router @ expert], [1, 1, 0], atol=1e-15)
    overlaps = [router[0], expert[1], router[1], expert[0]]  # gamma1, gamma2, zeta1, zeta2
    np.testing.assert_allclose(overlaps, np.array([0.8, 0.5, -0.6, 0.4]) / 10, atol=1e-16)


# Linearisation and curvature.


@pytest.mark.parametrize(("gate", "degree"), [("sigmoid", 3), ("probit", 2), ("softplus", 3)])
def test_linearisation_is_that_of_the_exact_flow(gate, degree):
    constants = Constants.of(gate, degree)
    for case in ((0.95, 0.93, 1.0, 1.0), (0.6, 0.8, 0.9, 1.2)):
        exact = local.exact_linearisation(constants, *case)
        np.testing.assert_allclose(linearisation(constants, *case), exact, atol=1e-8 * np.abs(exact).max())


def test_eigenvalues_at_recovery_as_tabulated():
    found = np.sort(np.linalg.eigvals(linearisation(PAPER)).real)
    np.testing.assert_allclose(found, [-6.47267, -5.54984, -1.81441], atol=6e-6)
    side = np.linspace(0.9, 1, 21)
    assert growth_rate(linearisation(PAPER, *np.meshgrid(side, side))).max() == pytest.approx(-1.497, abs=5e-4)


@pytest.mark.parametrize(("gate", "degree"), [("probit", 2), ("tanh", 4)])
def test_spectrum_for_other_units(gate, degree):
    constants, a, b = Constants.of(gate, degree), np.array([0.7]), np.array([1.4])
    loss = Exact(constants, 1, 4)
    found = np.linalg.eigvalsh(loss.hessian(np.concatenate([a, b])[:, None] * loss.teacher))
    np.testing.assert_allclose(found, spectrum(constants, 4, a, b), atol=1e-13 * found.max())


def test_rate_of_fine_tuning():
    assert tuning_rate(PAPER) == 2 * PAPER.c_s1
    assert tuning_rate(PAPER, [0.9, 1.2], [1.0, 1.1]) == pytest.approx(2 * PAPER.c_s1 / 1.44, rel=1e-14)
    # Very long experts are slower than the routers.
    assert tuning_rate(PAPER, 1.0, 10.0) < 2 * 9 * PAPER.c_s0 / 100 + 1e-12


# Claims.


@pytest.mark.parametrize("id", CLAIMS)
def test_claim_has_the_verdict_known(id, evidence):
    claim = CLAIMS[id]
    finding = claim.check(evidence)
    assert finding.verdict is claim.expected, finding
    assert claim.expected is Verdict.HOLDS or (claim.explanation and not claim.must_hold)


ABOUT_ANY = {f"SM-{lemma}{form}" for lemma in ("L1", "L26", "L28") for form in ("", ":printed")}
"""Of algebra, whatever the units are."""


@pytest.mark.parametrize("id", sorted(set(CLAIMS) - ABOUT_ANY))
@pytest.mark.parametrize("other", [{"gate": "probit"}, {"degree": 4}])
def test_claims_about_the_papers_units_do_not_speak_of_others(id, other):
    finding = CLAIMS[id].check(SimpleNamespace(settings=SoftMoeSettings(**other), single=None))
    assert finding.verdict is Verdict.NOT_APPLICABLE and str(next(iter(other.values()))) in finding.detail


def test_measured_values(evidence):
    measured = {id: CLAIMS[id].check(evidence).measured for id in CLAIMS}
    assert measured["SM-C2"] == pytest.approx(6.508, abs=5e-4)
    assert measured["SM-S3"] == pytest.approx(-1.497, abs=5e-4)
    assert measured["SM-S3:printed"] == pytest.approx(5.13, abs=5e-3)
    assert measured["SM-L7"] == pytest.approx(2, abs=0.05)
    # Times to |x| = 1/2 by another integrator of other software: 32.4 and 22.8.
    plus, minus = evidence.single.sharing[:2]
    assert (plus.observed, minus.observed) == (pytest.approx(32.4, abs=0.1), pytest.approx(22.8, abs=0.1))
    assert evidence.single.sharing[2].loss == pytest.approx(0.4836, abs=2e-4)


def scaled(function, factor):
    return lambda *args, **options: factor * function(*args, **options)


def spoiled(place):
    """Lambdas of which one is 1% too large."""
    exact = kernel.lambdas
    return lambda *args: Lambdas(*(part * (1.01 if i == place else 1) for i, part in enumerate(exact(*args))))


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("id", ["SM-L5", "SM-L6", "SM-EQ10"])
def test_lemmas_notice_a_wrong_moment(id, place, evidence, monkeypatch):
    monkeypatch.setattr(kernel, "lambdas", spoiled(place))
    assert CLAIMS[id].check(evidence).verdict is Verdict.FAILS


@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_lemma_21_notices_a_wrong_moment(place, evidence, monkeypatch):
    monkeypatch.setattr(kernel, "lambdas", spoiled(place))
    assert CLAIMS["SM-L21"].check(evidence).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("id", "module", "name", "factor"),
    [
        ("SM-A3", kernel, "logistic_coefficients", -1.0),
        ("SM-L1", kernel, "hermite_moment", 1 + 1e-10),
        ("SM-S3", local, "linearisation", 1.001),
        ("SM-H", local, "spectrum", 1 + 1e-9),
        ("SM-L26", local, "projection_jacobian", 1.001),
        ("SM-L8", local, "predicted_time", 1.03),
        ("SM-L28", local, "triples", -1.0),
    ],
)
def test_claims_notice_a_wrong_factor(id, module, name, factor, evidence, monkeypatch):
    monkeypatch.setattr(module, name, scaled(getattr(module, name), factor))
    assert CLAIMS[id].check(evidence).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        ("SM-A3", {"gate": activation("softplus")}),
        ("SM-C1", {"slope_square": 0.1}),
        ("SM-C2", {"slope_square": 0.051}),
        ("SM-L5", {"gate": activation("probit")}),
        ("SM-L6", {"bend": PAPER.bend * 1.01}),
        ("SM-H", {"slope_square": PAPER.slope_square * 1.0001}),
        ("SM-S3", {"bend": PAPER.bend * 1.01}),
    ],
)
def test_claims_notice_wrong_constants(id, wrong, evidence, monkeypatch):
    planted = dataclasses.replace(PAPER, **wrong)
    monkeypatch.setattr(kernel, "paper", lambda: planted)
    monkeypatch.setattr(local, "paper", lambda: planted)
    if id == "SM-L5":  # moments of one gate, leading terms of another
        exact = kernel.lambdas
        monkeypatch.setattr(kernel, "lambdas", lambda _, pairs: exact(PAPER, pairs))
    assert CLAIMS[id].check(evidence).verdict is Verdict.FAILS


RIGHT = {
    "SM-L1:printed": (
        kernel,
        "hermite_moment",
        lambda old: lambda orders, covariance, printed: old(orders, covariance),
    ),
    "SM-EQ10:printed": (kernel, "gradient_of_10", lambda old: lambda rows, teacher, printed: old(rows, teacher)),
    "SM-S3:printed": (local, "printed_linearisation", lambda old: linearisation),
    "SM-L28:printed": (local, "triples", lambda old: lambda count: old(count) * np.eye(3)),
    "SM-L26:printed": (local, "projection_jacobian", lambda old: lambda v, g, printed: old(v, g)),
    "SM-C1:theorem4": (kernel, "paper", lambda old: lambda: dataclasses.replace(old(), slope_square=0.02)),
    "SM-L7": (
        local,
        "_pull_between",
        lambda old: lambda epsilon: (old(epsilon)[0] - 4.5 * old(epsilon)[1] ** 2, old(epsilon)[1]),
    ),
}
"""What is put right in the evidence of claims that fail."""


@pytest.mark.parametrize("id", RIGHT)
def test_a_claim_that_fails_holds_where_it_is_put_right(id, evidence, monkeypatch):
    module, name, mend = RIGHT[id]
    assert CLAIMS[id].check(evidence).verdict is Verdict.FAILS
    monkeypatch.setattr(module, name, mend(getattr(module, name)))
    assert CLAIMS[id].check(evidence).verdict is Verdict.HOLDS


def test_quadrature_is_the_gradient_of_the_oracle():
    """A third route: the oracle's exact gradient."""
    rows = kernel._state()
    exact = Exact(PAPER, 1, kernel.DIM).gradient(rows)
    np.testing.assert_allclose(kernel.gradient_by_quadrature(rows, np.eye(2, kernel.DIM)), exact, atol=1e-12)


def test_mended_lemma_7_notices_a_wrong_force(evidence, monkeypatch):
    monkeypatch.setattr(local.Growth, "of", lambda settings: local.Growth(mean=0.51))
    assert CLAIMS["SM-L7:mended"].check(evidence).verdict is Verdict.FAILS


@pytest.mark.parametrize("wrong", [{"router_time": 0.0}, {"router_time": 1e9}])
def test_lag_notices_a_router_at_a_wrong_time(wrong, evidence):
    journeys = tuple(dataclasses.replace(one, **wrong) for one in evidence.single.journeys)
    planted = SimpleNamespace(settings=evidence.settings, single=SimpleNamespace(journeys=journeys))
    assert CLAIMS["SM-LAG"].check(planted).verdict is Verdict.FAILS


@pytest.mark.parametrize("spoil", ["falls", "late"])
def test_lemma_8_notices_an_overlap_that_falls_or_is_late(spoil, evidence):
    one = evidence.single.journeys[1]
    overlap = one.overlap.copy()
    if spoil == "falls":
        overlap[5] = overlap[4] - 1e-6
        planted = dataclasses.replace(one, overlap=overlap)
    else:
        planted = dataclasses.replace(one, half_time=1.4 * one.half_time)
    single = SimpleNamespace(journeys=(planted,))
    assert CLAIMS["SM-L8"].check(SimpleNamespace(settings=evidence.settings, single=single)).verdict is Verdict.FAILS


@pytest.mark.parametrize("kind", ["breaking", "sharing"])
def test_slow_laws_notice_a_factor_of_two(kind, evidence):
    runs = tuple(dataclasses.replace(one, predicted=2 * one.predicted) for one in getattr(evidence.single, kind))
    planted = SimpleNamespace(settings=evidence.settings, single=SimpleNamespace(**{kind: runs}))
    assert CLAIMS[f"SM-X2:{kind}"].check(planted).verdict is Verdict.FAILS
    never = tuple(dataclasses.replace(one, observed=math.nan) for one in getattr(evidence.single, kind))
    planted = SimpleNamespace(settings=evidence.settings, single=SimpleNamespace(**{kind: never}))
    assert CLAIMS[f"SM-X2:{kind}"].check(planted).verdict is Verdict.FAILS


# Figures.


@pytest.fixture(scope="module")
def figures():
    return {figure.id: figure.compute(SoftMoeSettings(), "quick") for figure in (fig3a, fig3b)}


def test_figure_3a_is_even_negative_and_sampled(figures, tmp_path):
    data = again(figures["fig3a"], tmp_path)
    exact = data["exact"].values
    np.testing.assert_allclose(exact, exact[::-1], atol=1e-17)
    assert exact.max() < 0 and exact.argmax() == 100
    # 21 points within 4.5 standard errors: a false alarm in 7000 (the seed is fixed).
    score = (data["mean"].values - np.interp(data["rho_sampled"], data["rho"], exact)) / data["error"].values
    assert np.abs(score).max() < 4.5 and np.abs(score).max() > 0.5
    sheet = fig3a.sheet(data)
    assert sheet.names == ("exact series", "$10^5$ samples") and "negative everywhere" in sheet.caption
    draw(sheet)


def test_figure_3b_has_two_bars_and_the_level_needed(figures, tmp_path):
    data = again(figures["fig3b"], tmp_path)
    score = (data["mean"].values - data["exact"].values) / data["error"].values
    assert np.abs(score).max() < 4.5  # a false alarm in 70000
    sheet = fig3b.sheet(data)
    (panel,) = sheet.panels
    np.testing.assert_allclose([s.high[0] for s in panel.series[:2]], [PAPER.square, PAPER.slope_square])
    assert panel.marks[0].level == pytest.approx(3.3 * PAPER.slope_square)
    assert "6.5433" in sheet.caption and "holds" in sheet.caption
    draw(sheet)


@pytest.mark.parametrize("gate", ["constant", "softplus"])
def test_figures_of_other_gates(gate):
    for figure in (fig3a, fig3b):
        draw(figure.sheet(figure.compute(SoftMoeSettings(gate=gate), "quick")))


def test_moment_formula_of_two_variables():
    assert hermite_moment((4, 4), [[1.0, 0.5], [0.5, 1.0]]) == pytest.approx(24 * 0.5**4, rel=1e-15)
    assert hermite_moment((3, 2), [[1.0, 0.5], [0.5, 1.0]]) == 0
