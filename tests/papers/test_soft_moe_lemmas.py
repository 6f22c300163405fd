"""Lemmas of Appendices C and D, Theorem 4 around the minimum, and claims on samples: each turns on a planted error."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from papers.figures import again, shown

from tutelage.analysis import lines
from tutelage.analysis.claims import Interval, Verdict
from tutelage.papers.soft_moe import samples, softmax
from tutelage.papers.soft_moe.checks import auxiliary, neighbourhood
from tutelage.papers.soft_moe.checks import samples as counted
from tutelage.papers.soft_moe.checks.units import paper
from tutelage.papers.soft_moe.figures import samples as pruning_figure
from tutelage.papers.soft_moe.figures.beyond import samples as figure
from tutelage.papers.soft_moe.figures.beyond import softmax as softmax_figure
from tutelage.papers.soft_moe.settings import SoftMoeSettings

CLAIMS = {claim.id: claim for claim in (*auxiliary.CLAIMS, *neighbourhood.CLAIMS, *counted.CLAIMS)}
EVIDENCE = SimpleNamespace(settings=SoftMoeSettings(), size="quick")


def judged(id):
    return CLAIMS[id].check(EVIDENCE)


class TestRoutes:
    """Formulas against quadrature in as many variables as there are."""

    def test_derivatives_of_the_sigmoid(self):
        z, step = np.linspace(-3, 3, 13), 1e-5
        for order in range(4):
            slope = (auxiliary.sigmoid(order, z + step) - auxiliary.sigmoid(order, z - step)) / (2 * step)
            np.testing.assert_allclose(auxiliary.sigmoid(order + 1, z), slope, atol=1e-9)

    @pytest.mark.parametrize("ranks", [(0, 0), (1, 0), (2, 0), (1, 1)])
    def test_averages_of_gradients(self, ranks):
        rows = auxiliary._rows(0.3, -0.2, 0.1, 0.25, -0.15, 0.2)
        dots = rows @ rows.T  # of v1, v2, w1, w2
        moment = auxiliary.moments(
            auxiliary.pairs(dots[0, 1], dots[2, 3], (dots[0, 2], dots[1, 3]), (dots[0, 3], dots[1, 2]))
        )
        orders = (1, 0), (1, 1)
        one, two = (rows[None, 0], rows[None, 2]), (rows[None, 1], rows[None, 3])
        found = auxiliary.averaged(moment, one, two, orders, *ranks)[0]
        np.testing.assert_allclose(found, self.by_quadrature(rows, orders, *ranks), atol=1e-7)

    def by_quadrature(self, rows, orders, left, right):
        places, weights = auxiliary.nodes(28)
        x = np.stack(np.meshgrid(*[places] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
        mass = np.prod(np.meshgrid(*[weights] * 4, indexing="ij"), axis=0).ravel()
        parts = [self.gradients(x, rows[[n, n + 2]], orders[n], rank) for n, rank in ((0, left), (1, right))]
        return np.einsum("n,n...->...", mass, np.einsum("na,nb->nab", *(p.reshape(len(x), -1) for p in parts))).reshape(
            (4,) * (left + right)
        )

    def gradients(self, x, unit, orders, rank):
        v, w = unit
        term = lambda a, b: auxiliary.sigmoid(orders[0] + a, x @ v) * auxiliary.expert(orders[1] + b, x @ w)  # noqa: E731
        if rank == 0:
            return term(0, 0)
        if rank == 1:
            return term(1, 0)[:, None] * v + term(0, 1)[:, None] * w
        mixed = np.outer(v, w) + np.outer(w, v)
        own = term(2, 0)[:, None, None] * np.outer(v, v) + term(0, 2)[:, None, None] * np.outer(w, w)
        return own + term(1, 1)[:, None, None] * mixed

    def test_the_form_is_that_of_differences(self):
        rows, exact, step = neighbourhood.near(0.1, 0), neighbourhood._exact(), 1e-5
        x = np.random.default_rng(0).standard_normal(rows.shape)
        moved = (exact.gradient(rows + step * x) - exact.gradient(rows - step * x)) / (2 * step)
        scaled = np.repeat([1.0, 0.4], neighbourhood.TEACHERS)[:, None] * x
        expected = float(np.sum(scaled * moved))
        assert x.ravel() @ neighbourhood.form(rows, 1.0, 0.4) @ x.ravel() == pytest.approx(expected, rel=1e-6)

    def test_states_lie_at_the_distance(self):
        rows = neighbourhood.near(0.1, 3)
        np.testing.assert_allclose(np.linalg.norm(rows - np.eye(*rows.shape), axis=1), 0.05, rtol=1e-12)

    def test_the_multiplier_gives_a_lower_bound(self):
        matrix = neighbourhood.form(neighbourhood.near(0.1, 0), 1.0, 1.0)
        across = neighbourhood.tangential(neighbourhood.near(0.1, 0))
        bound, rng = neighbourhood.least(matrix, across, 0.9), np.random.default_rng(0)
        for _ in range(200):
            x = rng.standard_normal(len(matrix))
            x = across @ x + 0.3 * rng.uniform() * (x - across @ x)
            if x @ across @ x >= 0.9 * x @ x:
                assert x @ matrix @ x >= bound * (x @ x)


@pytest.mark.parametrize("id", [id for id in CLAIMS if id not in ("SM-T2:samples", "SM-SGD", "SM-SOFTMAX")])
def test_verdicts(id):
    assert judged(id).verdict is CLAIMS[id].expected


def swap(where, name, make):
    """Replace a function or a value of a module by what is made of it."""
    return lambda monkeypatch: monkeypatch.setattr(where, name, make(getattr(where, name)))


def plus(amount):
    """A function whose result is larger."""
    return lambda old: lambda *args: old(*args) + amount


def moments_plus(amount):
    def make(old):
        return lambda seen: (lambda moment: lambda *orders: moment(*orders) + amount)(old(seen))

    return make


def other_constants(**parts):
    """The paper's constants with other methods."""

    def plant(monkeypatch):
        real = paper()
        shown = {
            name: getattr(real, name) for name in ("correlation", "square", "c_s1", "c_s2", "slope_square", "ratio")
        }
        changed = {name: change(shown[name]) for name, change in parts.items()}
        monkeypatch.setattr(auxiliary, "paper", lambda: SimpleNamespace(**shown | changed | {"gate": real.gate}))

    return plant


def close_units(old):
    def two(tag):
        own, _, near = old(tag)
        return own / 6, near, near

    return two


PLANTS = [
    ("SM-L18", swap(auxiliary, "stein", lambda old: lambda *args: 1.001 * old(*args))),
    ("SM-L20", swap(auxiliary, "_log_square", plus(0.2))),
    ("SM-L22", swap(auxiliary, "moments", moments_plus(1e-3))),
    ("SM-L22:printed", swap(auxiliary, "_of_two", close_units)),
    (
        "SM-EQ24:printed",
        swap(auxiliary, "_of_two", lambda old: lambda tag: [part ** (4 / 3) for part in np.abs(old(tag))]),
    ),
    ("SM-L23", swap(auxiliary, "state", lambda old: lambda epsilon, distance: old(epsilon, math.sqrt(distance)))),
    ("SM-L23:printed", swap(auxiliary, "state", lambda old: lambda epsilon, distance: old(epsilon, distance**2))),
    ("SM-L24", swap(auxiliary, "moments", moments_plus(1e-3))),
    ("SM-L25", swap(auxiliary, "moments", moments_plus(1e-3))),
    ("SM-L27", swap(auxiliary, "sigmoid", lambda old: lambda order, z: 9 * old(order, z))),
    ("SM-L29", other_constants(correlation=plus(0.1))),
    ("SM-L30", other_constants(correlation=plus(1.0))),
    ("SM-L30:printed", swap(auxiliary, "lemma_30", lambda old: lambda printed: old(False))),
    ("SM-L31", other_constants(correlation=plus(1.0))),
    ("SM-T4", swap(neighbourhood, "APART", lambda old: (2.0, 1.9))),
    ("SM-T4:comparable", swap(neighbourhood, "form", lambda old: lambda *args: old(*args) - 0.1 * np.eye(32))),
    ("SM-T4:edge", swap(neighbourhood, "form", lambda old: lambda rows, alpha, beta: old(rows, 1.05 * alpha, beta))),
]
"""Claims, and a planted error that turns each; one as printed is turned by the corrected formula."""


@pytest.mark.parametrize(("id", "plant"), PLANTS)
def test_planted_errors_are_seen(monkeypatch, id, plant):
    assert judged(id).verdict is CLAIMS[id].expected
    plant(monkeypatch)
    assert judged(id).verdict is not CLAIMS[id].expected


class TestSamples:
    def test_many_examples_prune_like_the_population_and_few_do_not(self):
        found = [samples.same_experts(8, seed, (8, 3000)) for seed in range(3)]
        assert not any(few for few, _ in found) and all(many for _, many in found)

    def test_noise_of_one_example(self):
        """Odd moments vanish: 9 E[He_3^2 He_2^2] = 9 * 372 by the moments of a normal number, and 9 E[He_2^2] = 18."""
        places, weights = auxiliary.nodes(60)
        square, fourth = (float(weights @ auxiliary.sigmoid(0, places) ** power) for power in (2, 4))
        assert samples.variance() == pytest.approx(9 * 372 * fourth + 18 * square * 6 * square, rel=1e-10)

    def test_without_noise_the_law_is_that_of_the_flow(self):
        dial, start = 1e-9, 2.0
        assert samples.foretold(dial, np.array([start]), copies=1)[0] * dial == pytest.approx(
            1 / (4.5 * start), rel=0.02
        )

    def test_a_number_that_few_have_reached_is_not_known(self):
        assert samples.reached(np.array([1.0, 2.0, np.inf, np.inf])) == 1.0
        assert math.isinf(samples.reached(np.array([1.0, np.inf, np.inf, np.inf, np.inf])))

    def test_sgd_recovers_and_is_censored(self):
        found = samples.learning(16, 0.01, 3)
        assert found.examples.shape == (3,) and np.all(found.scaled > 1)

    @pytest.mark.parametrize(("share", "verdict"), [(1.0, Verdict.HOLDS), (0.5, Verdict.FAILS)])
    def test_pruning_claim(self, monkeypatch, share, verdict):
        table = np.full((2, len(samples.COUNTS["quick"])), round(share * 24))
        monkeypatch.setattr(counted, "agreements", lambda size: table)
        monkeypatch.setattr(counted, "DRAWS", {"quick": 24})
        assert judged("SM-T2:samples").verdict is verdict

    @pytest.mark.parametrize(("slope", "verdict"), [(2.1, Verdict.HOLDS), (1.4, Verdict.FAILS)])
    def test_exponent_claim(self, monkeypatch, slope, verdict):
        known = lines.Estimate(slope, Interval(slope - 0.3, slope + 0.3, 0.95))
        monkeypatch.setattr(counted, "exponent", lambda size: known)
        reached = SimpleNamespace(scaled=np.array([1.0, math.inf]))
        monkeypatch.setattr(counted, "learning", lambda *args: reached)
        assert judged("SM-SGD").verdict is verdict

    def test_figures(self, monkeypatch, tmp_path):
        for where in (samples, figure, counted):
            monkeypatch.setattr(where, "DIMS", {"quick": (16, 24)})
            monkeypatch.setattr(where, "STARTS", {"quick": 4})
        for where in (samples, figure):
            monkeypatch.setattr(where, "OTHERS", 16)
            monkeypatch.setattr(where, "DIALS", {"quick": (0.01,)})
        shown(figure.FIGURE, again(figure.compute(SoftMoeSettings(), "quick"), tmp_path))
        for where in (samples, pruning_figure):
            monkeypatch.setattr(where, "WIDTHS", {"quick": (8,)})
            monkeypatch.setattr(where, "DRAWS", {"quick": 2})
            monkeypatch.setattr(where, "COUNTS", {"quick": (30, 1000)})
        samples.agreements.cache_clear()
        shown(pruning_figure.FIGURE, again(pruning_figure.compute(SoftMoeSettings(), "quick"), tmp_path))
        samples.agreements.cache_clear()


class TestSoftmax:
    def test_shares_against_samples(self):
        """Means over 400 000 draws lie within five standard errors: a false alarm in a million."""
        for m in (3, 25):
            x = np.exp(np.random.default_rng(m).standard_normal((400_000, m)))
            p = x / x.sum(1, keepdims=True)
            for drawn, exact in (
                (p[:, 0] ** 2, softmax.shares(m).square),
                (p[:, 0] * p[:, 1], softmax.shares(m).cross),
            ):
                assert abs(drawn.mean() - exact) < 5 * drawn.std() / math.sqrt(len(drawn))
            assert softmax.shares(m).error < 1e-9

    @pytest.mark.parametrize("gate", softmax.GATES)
    def test_forces_against_the_sampled_gradient(self, gate):
        """Two students with overlap rho, all routers orthogonal: `dI2/dt = -36 E[p_1 p_2] rho^2 (1 - rho^2)`."""
        rho, axes = -0.4, jnp.eye(10)
        experts = axes[3:6].at[1].set(rho * axes[3] + math.sqrt(1 - rho**2) * axes[4])
        rows = softmax.Rows(axes[:3], experts)
        teacher = softmax.Rows(axes[6:8], axes[8:10])
        slope = jax.jit(jax.grad(lambda rows, x: softmax.loss(gate, rows, teacher, x)))
        found = []
        for key in range(40):
            down = slope(rows, jax.random.normal(jax.random.key(key), (20_000, 10))).experts
            found.append(float(-(down[0] @ experts[1] + down[1] @ experts[0])))
        expected = -36 * softmax.forces(gate, 3, 2).student * rho**2 * (1 - rho**2)
        # The mean of 40 batches, within five of its standard errors.
        assert abs(np.mean(found) - expected) < 5 * np.std(found) / math.sqrt(40)
        assert np.std(found) / math.sqrt(40) < 0.1 * abs(expected)

    def test_claim_and_figure(self, monkeypatch, tmp_path):
        monkeypatch.setattr(softmax, "RECORDS", 3)
        monkeypatch.setattr(softmax, "UNTIL", 6.0)
        softmax.sampled.cache_clear()
        shown(softmax_figure.FIGURE, again(softmax_figure.compute(SoftMoeSettings(), "quick"), tmp_path))
        assert judged("SM-SOFTMAX").verdict is Verdict.HOLDS
        monkeypatch.setattr(counted, "sampled", lambda gate, size: softmax.sampled(*OTHER[gate], size))
        assert judged("SM-SOFTMAX").verdict is Verdict.FAILS
        softmax.sampled.cache_clear()


OTHER = {"softmax": ("sigmoid",), "sigmoid": ("softmax",)}
