"""Pruning: every step against the risk summed anew, and against samples; edges; refitting; runs of all kinds."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import tutelage as tt
from tutelage.analysis.pruning import gram_of, prune, prune_run, quadratic
from tutelage.oracle.mixture import Gram
from tutelage.problem.networks import Weights

UNIT = tt.Mixture(routers=[[1.0, 0.0]], experts=[[0.0, 1.0]]).hidden
ALONE = 1.760274215148558  # 6 E[sigmoid^2]: the risk of a unit that nobody else overlaps with


def random_gram(seed: int, students: int, teachers: int) -> Gram:
    draw = np.random.default_rng(seed)
    features = draw.standard_normal((students + teachers, 12)) / 3
    whole = features @ features.T
    return Gram(whole[:students, :students], whole[:students, students:], whole[students:, students:])


def mixture(students: np.ndarray, teachers: np.ndarray) -> tuple[Gram, tt.MixtureOracle, Weights]:
    """Rows are routers, then experts."""
    oracle = tt.MixtureOracle(UNIT, UNIT, tt.Weights(jnp.asarray(teachers), jnp.ones((len(teachers) // 2, 1))))
    weights = tt.Weights(jnp.asarray(students), jnp.ones((len(students) // 2, 1)))
    return gram_of(oracle, weights)[0], oracle, weights


def axes(*which: int) -> np.ndarray:
    return np.eye(24)[list(which)]


def by_brute_force(risk, units: int, order: int, tolerance: float) -> tuple[tuple[int, ...], list[float]]:
    """The rule of Eqs. (7), (8) word for word, for a risk that is any function of the kept units."""
    kept, history = tuple(range(units)), [risk(tuple(range(units)))]
    while True:
        for size in range(1, order + 1):
            options = [tuple(i for i in kept if i not in gone) for gone in itertools.combinations(kept, size)]
            if options and min(map(risk, options)) - history[-1] < tolerance:
                kept = min(options, key=risk)
                history.append(risk(kept))
                break
        else:
            return kept, history


@pytest.mark.parametrize("order, tolerance", [(1, 0.0), (1, 0.3), (2, 0.0), (2, 0.3)])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_every_step_is_that_of_the_risk_summed_anew(seed, outputs, order, tolerance):
    gram = random_gram(seed, 7, 3)
    draw = np.random.default_rng(100 + seed)
    second, target = draw.standard_normal((7, outputs)), draw.standard_normal((3, outputs))

    def risk(kept):
        weights = np.concatenate([second[list(kept)], -target])
        whole = np.block([[gram.students, gram.cross], [gram.cross.T, gram.teachers]])
        rows = [*kept, 7, 8, 9]
        return float(np.sum((weights @ weights.T) * whole[np.ix_(rows, rows)]))

    found = prune(gram, second=second, target=target, order=order, tolerance=tolerance)
    kept, history = by_brute_force(risk, 7, order, tolerance)
    assert found.kept == kept
    # Sums of some fifty products of order one.
    np.testing.assert_allclose(found.risk, history, atol=1e-12)
    assert sorted(found.kept + found.removed) == list(range(7)) and found.tau == 7 - len(kept)
    assert found.refused >= tolerance


def test_risk_is_twice_the_loss_and_agrees_with_samples():
    draw = np.random.default_rng(3)
    gram, oracle, weights = mixture(draw.standard_normal((6, 5)), draw.standard_normal((4, 5)))
    form = quadratic(gram)
    assert form.risk(range(3)) == pytest.approx(2 * float(oracle.loss(weights)), abs=1e-13)
    x = draw.standard_normal((5, 2 * 10**5))
    own = np.asarray(UNIT(weights.first, weights.first @ x))
    taught = np.asarray(UNIT(oracle.target.first, oracle.target.first @ x)).sum(0)
    for kept in ((0, 1, 2), (1,), ()):
        errors = (own[list(kept)].sum(0) - taught) ** 2
        spread = errors.std() / np.sqrt(errors.size)
        # 4.5 standard errors, three comparisons: a false alarm in 1 of 50000 (the seed is fixed).
        assert abs(form.risk(kept) - errors.mean()) < 4.5 * spread


def test_units_that_overlap_with_nobody_leave_one_by_one():
    gram, *_ = mixture(axes(0, 10, 11, 12, 1, 13, 14, 15), axes(0, 1))
    found = prune(gram)
    assert found.kept == (0,) and found.tau == 3
    np.testing.assert_allclose(found.drops, ALONE, atol=1e-12)
    assert found.risk[-1] == pytest.approx(0, abs=1e-13)
    assert found.refused == pytest.approx(ALONE, abs=1e-12)


def test_where_nothing_is_learned_everything_goes():
    gram, *_ = mixture(np.eye(24)[10:24], np.eye(24)[:10])
    found = prune(gram)
    assert found.kept == () and found.tau == 7
    assert found.risk[-1] == pytest.approx(5 * ALONE, abs=1e-12)
    assert found.refused == np.inf


def test_of_two_copies_one_stays():
    gram, *_ = mixture(axes(0, 0, 1, 1), axes(0, 1))
    found = prune(gram)
    assert len(found.kept) == 1 and found.risk[-1] == pytest.approx(0, abs=1e-13)


def test_a_pair_that_cancels_is_only_removed_as_a_pair():
    students = np.concatenate([axes(0, 2, 2, 1, 3), -axes(3)])
    gram, *_ = mixture(students, axes(0, 1))
    single, double = prune(gram), prune(gram, order=2, tolerance=1e-9)
    assert single.kept == (0, 1, 2) and single.refused == pytest.approx(ALONE, abs=1e-12)
    assert double.kept == (0,) and double.steps in (((1, 2),), ((2, 1),))
    assert double.risk[-1] == pytest.approx(0, abs=1e-13)


def test_tolerance_lets_a_small_rise_pass():
    gram = Gram(np.diag([1.0, 1e-4]), np.array([[1.0, 0.0], [0.0, 1e-4]]), np.diag([1.0, 1e-4]))
    assert prune(gram).kept == (0, 1)
    assert prune(gram, tolerance=0.9e-4).kept == (0, 1)
    assert prune(gram, tolerance=1.1e-4).kept == (0,)
    assert prune(gram, tolerance=1.1e-4).risk[-1] == pytest.approx(1e-4, rel=1e-9)


def test_output_weights_and_importances_count():
    gram, *_ = mixture(axes(0, 10, 1, 11), axes(0, 1))
    # Removing the first changes the risk by (2 s t - s^2) 6 E[sigmoid^2].
    for second, target, kept in ((1.9, 1.0, (0,)), (2.1, 1.0, ()), (-1.0, 1.0, ()), (1.0, 0.4, ()), (1.0, 0.6, (0,))):
        assert prune(gram, second=[second, 1.0], target=[target]).kept == kept


@pytest.mark.parametrize(
    "options, match",
    [
        ({"order": 3}, "order is 3"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"second": [1.0]}, "second has shape"),
        ({"second": np.ones((4, 2))}, "2 outputs"),
    ],
)
def test_bad_input_is_said(options, match):
    with pytest.raises(tt.BadInput, match=match):
        prune(random_gram(0, 4, 2), **options)


class TestRuns:
    """A two-layer run, population and on samples, and a mixture with and without its weights."""

    @staticmethod
    def two_layer(weights=False, **options):
        teacher = tt.TwoLayer("erf", first=np.eye(2, 3), second=[1.0, 0.5])
        student = tt.TwoLayer("erf", first=tt.GaussianRows(0.7), second="ones", width=4)
        return tt.descend(
            tt.Problem(tt.Gaussian(6), teacher, student),
            step=0.1,
            steps=20,
            seeds=[3, 5],
            record=tt.Record(4, weights=weights),
            **options,
        )

    @staticmethod
    def mixtures(weights=False, **options):
        teacher = tt.Mixture(routers=np.eye(2, 4), experts=np.eye(4)[2:], second=[1.0, 0.7])
        problem = tt.Problem(tt.Gaussian(9), teacher, tt.Mixture(start=tt.MixtureRows("iid"), width=4))
        return tt.descend(problem, step=0.1, steps=20, seeds=[3, 5], record=tt.Record(4, weights=weights), **options)

    @pytest.mark.parametrize("data", [None, 200])
    @pytest.mark.parametrize("kind", ["two_layer", "mixtures"])
    def test_the_first_risk_is_twice_the_loss(self, kind, data):
        run = getattr(self, kind)(weights=True, data=data)
        for which, seed in enumerate((3, 5)):
            for row, time in enumerate(run.time.values):
                found = prune_run(run, at=float(time), seed=seed, order=2)
                assert found.risk[0] == pytest.approx(2 * float(run.loss[which, row]), rel=1e-10)
                assert np.all(found.drops > 0)
        ended = prune_run(run, seed=5)
        assert ended.risk[0] == pytest.approx(2 * float(run.last("loss")[1]), rel=1e-10)

    def test_overlaps_serve_where_weights_were_not_recorded(self):
        with_weights, without = self.mixtures(weights=True), self.mixtures()
        for time in with_weights.time.values[:-1]:
            one, other = (prune_run(run, at=float(time), seed=5) for run in (with_weights, without))
            assert one.kept == other.kept
            np.testing.assert_allclose(one.risk, other.risk, atol=1e-12)

    def test_what_cannot_be_pruned_is_said(self):
        run = self.two_layer()
        with pytest.raises(tt.BadInput, match="weights=True"):
            prune_run(run, at=0.5)
        with pytest.raises(tt.BadInput, match="no seed 4"):
            prune_run(run, seed=4)
        with pytest.raises(tt.BadInput, match="at is -1"):
            prune_run(run, at=-1.0)
        assert prune_run(run, at=1e9).risk[0] == pytest.approx(2 * float(run.last("loss")[0]), rel=1e-10)
