"""Fits of laws: against NumPy where there is a closed form, against planted truths where there is noise."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import binom, norm, t

from tutelage._errors import BadInput
from tutelage.analysis.scaling import bootstrap, choose, compare, fit
from tutelage.analysis.scaling.laws import LAWS, Law
from tutelage.analysis.scaling.likelihood import Sample, derivatives, maximise

DIM = np.geomspace(1e3, 1e8, 6)


def powers(rng, seeds, exponent=0.5, noise=0.2, coupled=0.0, x=DIM):
    """A power law; `coupled` is the spread of each seed's own exponent."""
    logs = np.log(x)[:, None] - np.log(x).mean()
    own = coupled * rng.normal(size=seeds) * logs
    return 3.0 * np.exp(exponent * logs + own + noise * rng.normal(size=(x.size, seeds)))


def censor(values, horizon):
    late = values >= horizon
    return np.where(late, np.nan, values), np.where(late, horizon, np.inf)


# ---- without censoring


@pytest.mark.parametrize(("name", "of"), [("power", np.log), ("exponential", np.asarray)])
def test_uncensored_fits_are_numpys_least_squares(name, of):
    x = np.array([1.0, 2.0, 3.0, 5.0, 8.0])
    rng = np.random.default_rng(0)
    y = 2.0 * np.exp(0.4 * of(x)[:, None] + 0.3 * rng.normal(size=(5, 7)))
    y[0, :3] = np.nan  # the rows then weigh differently
    found = fit(x, y, law=name, resamples=0)
    known = np.isfinite(y)
    slope, height = np.polyfit(np.repeat(of(x), known.sum(1)), np.log(y[known]), 1)
    # Newton's last step is quadratic: what is left is the rounding of two solvers of a problem of condition 10.
    np.testing.assert_allclose([found.estimates["a"], found.estimates["b"]], [np.exp(height), slope], rtol=1e-9)
    rest = np.log(y) - np.log(found.predict(x))[:, None]
    np.testing.assert_allclose(found.sigma, np.sqrt(np.nanmean(rest**2)), rtol=1e-9)
    np.testing.assert_allclose(found.log_likelihood, np.nansum(norm.logpdf(rest, scale=found.sigma)), rtol=1e-9)
    assert found.aic == pytest.approx(6 - 2 * found.log_likelihood)
    assert (found.used, found.censored, found.missing) == (32, 0, 3)


@pytest.mark.parametrize(("name", "power"), [("constant", 0.0), ("sqrt", 0.5), ("linear", 1.0)])
def test_fixed_powers_are_geometric_means(name, power):
    y = powers(np.random.default_rng(1), 5)
    found = fit(DIM, y, law=name, resamples=0)
    assert found.estimates["a"] == pytest.approx(np.exp(np.mean(np.log(y / DIM[:, None] ** power))), rel=1e-9)


def test_the_logarithmic_law_finds_the_minimum_of_squares_and_stays_positive():
    rng = np.random.default_rng(2)
    x = np.geomspace(10, 1e5, 7)
    y = (-4.0 + 2.0 * np.log(x[:, None])) * np.exp(0.1 * rng.normal(size=(7, 6)))
    found = fit(x, y, law="logarithmic", resamples=50)

    def squares(v):
        prediction = v[0] + v[1] * np.log(x)
        return np.inf if prediction.min() <= 0 else ((np.log(y) - np.log(prediction)[:, None]) ** 2).sum()

    other = minimize(squares, [-4.0, 2.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
    # The simplex stops at 1e-14 of the squares, where parameters are known to about the root of it.
    np.testing.assert_allclose(list(found.estimates.values()), other.x, rtol=1e-5)
    assert (found.predict(x) > 0).all() and found.intervals["b"].low < 2.0 < found.intervals["b"].high


def test_resampled_fits_equal_fits_of_repeated_seeds():
    """The weights of the bootstrap against really repeating the columns, censoring included."""
    values, limit = censor(powers(np.random.default_rng(3), 6), 20.0)
    picked = np.array([0, 0, 2, 3, 5, 5])
    weights = np.bincount(picked, minlength=6)[None].astype(float)
    quick = maximise(LAWS["power"], Sample.of(DIM, values, limit, weights), np.array([1.0, 0.4]))
    slow = fit(DIM, values[:, picked], limit[:, picked], resamples=0)
    np.testing.assert_allclose(quick.parameters[0], list(slow.estimates.values()), rtol=1e-8)
    assert quick.likelihood[0] == pytest.approx(slow.log_likelihood, rel=1e-10)


# ---- the likelihood and its derivatives


@pytest.mark.parametrize("name", ["power", "exponential", "logarithmic", "sqrt"])
def test_gradients_are_finite_differences(name):
    law = LAWS[name]
    x = np.array([2.0, 3.0, 5.0, 9.0])
    values, limit = censor(powers(np.random.default_rng(4), 5, x=x), 3.5)
    assert np.isfinite(limit).sum() >= 4
    sample = Sample.of(x, values, limit, np.ones((1, 5)))
    moved, inverse = law.moved([2.0, 0.3][: len(law.parameters)])[None], np.array([4.0])

    def both(at, inverse):
        return derivatives(sample, law.log(x, at) - sample.middle, law.jacobian(x, at), inverse)

    gradient, curvature = both(moved, inverse)

    def likelihood(v):  # in the change of the parameters over s, and 1/s
        return float(sample.likelihood(law.log(x, moved + v[None, :-1] / v[-1]), v[-1:])[0])

    here = np.append(np.zeros(len(law.parameters)), inverse)
    # Forward differences of step 1e-7 on a likelihood of order 10: 1e-6 by the second derivative, of order 100.
    np.testing.assert_allclose(gradient[0], approx_fprime(here, likelihood, 1e-7), rtol=1e-4, atol=1e-4)
    assert np.linalg.eigvalsh(curvature[0]).min() > 0
    if name == "logarithmic":
        return  # its logarithm is not linear: the curvature leaves out the bend of the law on purpose

    def slopes(v):
        at = moved + v[None, :-1] / v[-1]
        own = both(at, v[-1:])[0][0]
        # The gradient there is in changes from there; back to changes from here: 1/s moves the parameters too.
        own[-1] -= own[:-1] @ (v[:-1] / v[-1])
        return own

    seen = -np.array([approx_fprime(here, lambda v, i=i: slopes(v)[i], 1e-7) for i in range(here.size)])
    np.testing.assert_allclose(curvature[0], seen, rtol=1e-3, atol=1e-3)


def test_slopes_by_differences_equal_the_formulas():
    power = LAWS["power"]
    plain = Law("plain", "a x^b", ("a", "b"), power.predict, power.start, positive=("a",))
    moved = np.array([[0.3, 0.5], [1.0, -0.2]])
    # Central differences with step 6e-6 have errors of rounding over step, about 1e-10.
    np.testing.assert_allclose(plain.jacobian(DIM, moved), power.jacobian(DIM, moved), rtol=1e-8)


def test_censored_likelihood_is_the_sum_of_its_terms():
    values, limit = censor(powers(np.random.default_rng(5), 8), 10.0)
    found = fit(DIM, values, limit, resamples=0)
    centre, s = np.log(found.predict(DIM))[:, None], found.sigma
    known, late = np.isfinite(values), np.isfinite(limit)
    terms = norm.logpdf(np.log(values), centre, s)[known].sum() + norm.logsf(np.log(limit), centre, s)[late].sum()
    assert found.log_likelihood == pytest.approx(terms, rel=1e-10)
    for factor in (0.97, 1.03):  # and it is a maximum in each direction
        worse = norm.logpdf(np.log(values), centre, s * factor)[known].sum()
        worse += norm.logsf(np.log(limit), centre, s * factor)[late].sum()
        assert worse < terms


@pytest.mark.parametrize("start", [(1e-3, 3.0), (1e6, -2.0), (1.0, 0.0)])
def test_the_maximum_is_found_from_anywhere(start):
    values, limit = censor(powers(np.random.default_rng(6), 8), 5.0)
    sample = Sample.of(DIM, values, limit, np.ones((1, 8)))
    found = maximise(LAWS["power"], sample, np.array(start))
    best = fit(DIM, values, limit, resamples=0)
    assert found.converged[0]
    np.testing.assert_allclose(found.parameters[0], list(best.estimates.values()), rtol=1e-6)


# ---- censoring


def test_a_planted_exponent_is_found_where_most_late_values_are_censored():
    """Dropping what is censored, or taking the limit for the value, must be seen to be wrong."""
    values = powers(np.random.default_rng(7), 200, noise=0.8)
    some, limit = censor(values, np.quantile(values, 0.6))
    right = fit(DIM, some, limit, resamples=200, level=0.999)
    dropped = fit(DIM, some, resamples=200, level=0.999)
    replaced = fit(DIM, np.where(np.isnan(some), limit, some), resamples=200, level=0.999)
    assert 0.5 in right.intervals["b"]  # false alarm once in 1000, with the seed fixed never
    assert 0.5 not in dropped.intervals["b"] and dropped.estimates["b"] < 0.45
    assert 0.5 not in replaced.intervals["b"] and replaced.estimates["b"] < 0.45
    # Standard errors of sigma are about 0.8 / sqrt(2 x 720) = 0.02.
    assert abs(right.sigma - 0.8) < 0.1 and dropped.sigma < 0.75
    assert (right.used, right.censored, right.missing) == (720, 480, 0)


def test_a_row_that_is_all_censored_takes_part():
    values, limit = censor(powers(np.random.default_rng(8), 40), 25.0)
    assert np.isnan(values[-1]).all()
    found = fit(DIM, values, limit, resamples=200, level=0.999)
    without = fit(DIM[:-1], values[:-1], limit[:-1], resamples=200, level=0.999)
    assert 0.5 in found.intervals["b"] and found.censored == without.censored + 40
    assert found.estimates["b"] >= without.estimates["b"]  # "above" can only pull it up


def test_a_limit_that_contradicts_an_exact_fit_widens_the_noise():
    x = np.array([1.0, 2.0, 4.0])
    values, limit = np.tile(x[:, None], (1, 3)), np.full((3, 3), np.inf)
    values[1, 0], limit[1, 0] = np.nan, 10.0
    found = fit(x, values, limit, resamples=0)
    assert found.sigma > 0.1 and math.isfinite(found.log_likelihood)


@pytest.mark.parametrize("exponent", [-1.5, 1.5])
def test_laws_far_from_the_truth_are_fitted_too(exponent):
    """Over decades a logarithm all but vanishes at one end, and an exponential overflows where all is censored."""
    x = np.geomspace(1.0, 1e9, 8)
    values, limit = censor(powers(np.random.default_rng(22), 6, exponent, x=x), 3.0)
    found = compare(x, values, limit, resamples=20)
    assert found.best == "power" and all(math.isfinite(value) for value in found.aic.values())


# ---- intervals


@pytest.mark.parametrize("seeds", [4, 16])
@pytest.mark.parametrize("horizon", [np.inf, 30.0])
def test_intervals_cover_as_often_as_they_say(seeds, horizon):
    """Coupled seeds. Of 200 intervals of 90 % the number that cover lies in a binomial interval: false alarm 1e-3.

    The bootstrap is not exact, so 2 % are granted on each side; ordinary percentiles of 4 seeds cover 75 %.
    """
    trials, level = 200, 0.9
    rng = np.random.default_rng(9)
    covered = 0
    for trial in range(trials):
        values, limit = censor(powers(rng, seeds, coupled=0.03), horizon)
        covered += 0.5 in fit(DIM, values, limit, level=level, resamples=200, seed=trial).intervals["b"]
    assert binom.ppf(5e-4, trials, level - 0.02) <= covered <= binom.ppf(1 - 5e-4, trials, level + 0.02)


def test_plain_percentiles_would_not_cover(monkeypatch):
    """The check above can fail: intervals that are not stretched are seen to be too short."""
    monkeypatch.setattr(bootstrap, "stdtrit", lambda n, p: norm.ppf(p) * math.sqrt(n / (n + 1)))
    rng = np.random.default_rng(9)
    fits = [fit(DIM, powers(rng, 4, coupled=0.03), level=0.9, resamples=200, seed=k) for k in range(200)]
    assert sum(0.5 in each.intervals["b"] for each in fits) < binom.ppf(5e-4, 200, 0.88)


def test_the_interval_of_a_mean_is_students():
    """Of a constant, in logarithms: mean +- t sd / sqrt(seeds).

    The percentiles of 20000 resamples are known to 2 %, and those of a mean of 8 differ as much from a normal one's.
    """
    own = norm.ppf((np.arange(8) + 0.5) / 8)
    found = fit([1.0, 2.0], np.exp(np.tile(own, (2, 1))), law="constant", resamples=20_000).intervals["a"]
    half = t.ppf(0.975, 7) * own.std(ddof=1) / math.sqrt(8)
    np.testing.assert_allclose(np.log([found.low, found.high]), [-half, half], rtol=0.04)


def test_seeds_are_drawn_jointly():
    """A spread of whole seeds does not shrink with more x; intervals from single entries would be far shorter."""
    x = np.geomspace(1e3, 1e8, 40)
    found = fit(x, powers(np.random.default_rng(10), 30, noise=0.01, coupled=0.05, x=x))
    width = found.intervals["b"].high - found.intervals["b"].low
    # 2 t_29 0.05 / sqrt(30) = 0.037; the standard deviation of 30 draws is known to 13 %, three of them allowed.
    assert width == pytest.approx(0.037, rel=0.4)


def test_one_seed_has_no_interval_and_says_so():
    found = fit(DIM, powers(np.random.default_rng(11), 1))
    assert np.isnan(found.intervals["b"].low) and np.isnan(found.intervals["b"].high)
    assert "no interval: one seed has no spread, 1 seed, 0 of 6 censored" in found.sentence
    assert json.loads(json.dumps(found.record(), allow_nan=False))["intervals"]["b"]["low"] is None


def test_resamples_without_the_few_known_values_give_no_interval():
    """Only one seed knows a second x: a third of the resamples do not have it."""
    values = np.array([[1.0, 1.1, 0.9, 1.2], [2.0, np.nan, np.nan, np.nan]])
    limit = np.where(np.isnan(values), 1.5, np.inf)
    found = fit(np.array([1.0, 2.0]), values, limit, resamples=500)
    assert "resamples do not determine the law" in found.note and np.isnan(found.intervals["b"].high)


def test_the_same_seed_gives_the_same_interval():
    y = powers(np.random.default_rng(12), 8)
    assert fit(DIM, y).record() == fit(DIM, y).record()
    assert fit(DIM, y, seed=1).intervals != fit(DIM, y).intervals


# ---- comparison


@pytest.mark.parametrize("truth", ["sqrt", "logarithmic"])
@pytest.mark.parametrize("horizon", [0.6, 1.0])
def test_square_root_and_logarithm_are_told_apart_both_ways(truth, horizon):
    x = np.geomspace(100, 1e4, 6)
    curve = 0.5 * np.sqrt(x) if truth == "sqrt" else -15 + 6 * np.log(x)
    y = curve[:, None] * np.exp(0.25 * np.random.default_rng(13).normal(size=(6, 32)))
    values, limit = censor(y, np.quantile(y, horizon) * (1 + 1e-9))
    found = compare(x, values, limit, laws=("sqrt", "logarithmic"), resamples=200)
    other = ({"sqrt", "logarithmic"} - {truth}).pop()
    assert found.best == truth and found.differences[other] > 4
    assert found.sentence.startswith(f"{truth} beats {other}: AIC lower by")
    assert found.shares[truth] > 0.9 and sum(found.shares.values()) == pytest.approx(1)
    assert sum(found.weights.values()) == pytest.approx(1)
    assert [row["law"] for row in found.records()] == [truth, other]
    json.dumps(found.records(), allow_nan=False)


def test_coupled_seeds_make_aic_too_sure():
    """Each seed has an exponent of its own, 1/2 on average, so that entries of one seed err together.

    With independent entries a difference above 10 against the truth has probability P(chi2_1 > 12) = 5e-4: four such in
    60 would be a chance of 3e-8. Resampling is less sure than the weights are, and the interval of the exponent is
    right: fewer than 50 of 60 intervals of 95 % cover with probability 1e-4.
    """
    rng = np.random.default_rng(14)
    draws = [powers(rng, 32, noise=0.05, coupled=0.03) for _ in range(60)]
    found = [compare(DIM, y, laws=("sqrt", "power"), resamples=100) for y in draws]
    sure = [each for each in found if each.differences["sqrt"] > 10]
    assert len(sure) >= 4
    assert sum(each.shares["sqrt"] > 3 * each.weights["sqrt"] for each in sure) > 0.7 * len(sure)
    assert sum(0.5 in fit(DIM, y, resamples=200).intervals["b"] for y in draws) >= 50


def test_all_laws_are_compared_by_default():
    found = compare(DIM, powers(np.random.default_rng(15), 16), resamples=50)
    assert {law.name for law in found.laws} == set(LAWS)
    assert found.best in ("sqrt", "power") and found.differences[found.best] == 0


def test_one_law_or_one_seed_is_said():
    y = powers(np.random.default_rng(16), 1)
    assert compare(DIM, y, laws=("power",)).sentence == "power is the only law compared."
    found = compare(DIM, y, laws=("power", "constant"))
    assert "could not be resampled" in found.sentence and found.records()[0]["share"] is None


def test_laws_that_cannot_be_fitted_are_left_out_and_said():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.exp(0.5 * x[:, None] + 0.1 * np.random.default_rng(23).normal(size=(4, 8)))
    found = compare(x, y, resamples=20)
    assert found.best == "exponential" and set(found.left_out) == {"power", "logarithmic", "sqrt", "linear"}
    assert found.sentence.endswith("Not fitted: power, logarithmic, sqrt, linear.")
    assert "needs x above 0" in found.left_out["power"]
    with pytest.raises(BadInput, match="needs x above 0"):
        compare(x, y, laws=("power", "sqrt"))


# ---- a law of one's own, and words


def test_a_law_of_ones_own():
    rng = np.random.default_rng(17)
    x = np.array([2.0, 3.0, 5.0, 9.0, 17.0])
    y = 4.0 / (x[:, None] - 1.0) * np.exp(0.02 * rng.normal(size=(5, 12)))
    gap = Law("gap", "a / (x - c)", ("a", "c"), lambda x, a, c: a / (x - c), lambda x, y: (1.0, 0.0), positive=("a",))
    found = fit(x, y, law=gap, level=0.999, names=("time", "width"))
    assert 4.0 in found.intervals["a"] and 1.0 in found.intervals["c"]
    assert found.sentence.startswith("time = a / (x - c) of x = width with a = ")
    assert "99.9 % intervals a " in found.sentence and ", c " in found.sentence
    assert compare(x, y, laws=(gap, "power"), resamples=20).best == "gap"


def test_sentences():
    y = powers(np.random.default_rng(18), 32, noise=0.05)
    found = fit(DIM, y, names=("recovery_time", "dim"))
    (a, b), ends = found.estimates.values(), found.intervals
    assert found.sentence == (
        f"recovery_time = {a:.5f} dim^{b:.3f} (95 % intervals a {ends['a'].low:.5f} to {ends['a'].high:.5f}, "
        f"b {ends['b'].low:.3f} to {ends['b'].high:.3f}, 32 seeds, 0 of 192 censored)"
    )
    y[0, 0] = np.nan
    assert fit(DIM, y).sentence.endswith("0 of 191 censored, 1 missing)")
    assert fit(DIM / 1e6, y, law="exponential").sentence.startswith("y = ")
    assert fit(DIM, y, law="logarithmic").sentence.count(" to ") == 2
    assert fit(DIM, 1 / y, law="logarithmic").expression.count(" - ") == 1  # not "+ -"


@pytest.mark.parametrize(("asked", "truth", "rejected"), [("power", "logarithmic", True), ("power", "sqrt", False)])
def test_a_law_that_was_asked_for_is_beside_the_best_and_rejected_if_the_data_say_so(asked, truth, rejected):
    rng = np.random.default_rng(20)
    y = (2 + np.log(DIM) if truth == "logarithmic" else np.sqrt(DIM))[:, None] * np.exp(0.02 * rng.normal(size=(6, 16)))
    found = choose(DIM, y, asked=asked, names=("time", "dim"), resamples=200)
    assert (found.best.law.name, found.asked.law.name, found.rejected) == (truth, asked, rejected)
    assert found.sentences[0] == found.best.sentence and found.sentences[1].startswith("Asked for: time = ")
    assert f"{'' if rejected else 'not '}rejected (AIC higher by" in found.sentences[1]
    assert found.record()["law"] == truth and found.record()["asked"]["rejected"] is rejected
    own = choose(DIM, y, asked=truth, names=("time", "dim"), resamples=200)
    assert own.asked is None and not own.rejected and own.best == found.best


def test_values_without_noise_fit():
    found = fit(DIM, 2.0 * np.sqrt(DIM)[:, None] * np.ones(4))
    assert found.estimates["b"] == pytest.approx(0.5, abs=1e-12) and found.sigma < 1e-11
    assert "x^0.500 (95 % intervals a 2.00 to 2.00, b 0.500 to 0.500" in found.sentence


# ---- what cannot be fitted


def test_bad_input_is_one_sentence():
    y = powers(np.random.default_rng(19), 3)
    nothing = np.full_like(y, np.nan)
    cases = [
        (lambda: fit(DIM, nothing, np.full_like(y, 5.0)), r"all 18 are censored: nothing can be fitted"),
        (lambda: fit(DIM, nothing), r"all are missing: nothing can be fitted"),
        (lambda: fit([2.0], y[:1]), r"at least 2 of its values, but there is only x = 2"),
        (lambda: fit([2.0, 2.0], y[:2]), r"at least 2 of its values"),
        (lambda: fit(DIM, np.where(y > y.min(), y, 0.0)), r"needs positive finite values, but got 0 at x = 1000"),
        (lambda: fit(DIM, np.where(y > y.min(), y, np.inf)), r"positive finite values, but got inf"),
        (lambda: fit(DIM - 1e3, y), r"needs x above 0, but got x = 0"),
        (lambda: fit(DIM * np.nan, y), r"finite x"),
        (lambda: fit(DIM, y[0]), r"shape \(x, seed\), but got \(6,\), \(3,\)"),
        (lambda: fit(DIM, y, law="pwer"), r"did you mean 'power'"),
        (lambda: fit(DIM, y, level=95), r"between 0 and 1, but got 95"),
        (lambda: fit(DIM[:2], y[:2, :1]), r"over 2 in all, but there are 2 at 2"),
        (lambda: fit(DIM[:2], np.stack([y[0], nothing[0]]), np.full((2, 3), 9.0)), r"at 1 \(3 more are censored\)"),
        (lambda: compare(DIM, y, laws=("power", "power")), r"must differ in name"),
    ]
    for call, words in cases:
        with pytest.raises(BadInput, match=words):
            call()


def test_a_law_that_starts_outside_its_range_does_not_converge_and_says_so():
    bad = Law("bad", "-a", ("a",), lambda x, a: -a + 0 * x, lambda x, y: (1.0,))
    with pytest.raises(BadInput, match="did not converge"):
        fit(DIM, powers(np.random.default_rng(20), 3), law=bad)


def test_a_limit_of_zero_says_nothing():
    y = powers(np.random.default_rng(21), 3)
    y[0, 0] = np.nan
    assert fit(DIM, y, np.zeros_like(y)).record() == fit(DIM, y).record()
