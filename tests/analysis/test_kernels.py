"""What kernels and features can reach: every formula by a second route, and the edges."""

import math
from itertools import islice, product

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import eval_chebyt, eval_gegenbauer

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.analysis.kernels.features import random_directions, random_features_loss, tangent_features_loss
from tutelage.analysis.kernels.hardness import (
    block_constant,
    block_weight,
    collision_probability,
    disjoint_partitions,
    hard_teacher,
    hardness_bound,
    random_partition,
    sign_coefficient,
)
from tutelage.analysis.kernels.harmonics import (
    energies,
    even_degrees,
    feature_bound,
    harmonics,
    isotropic,
    isotropic_excess,
    legendre,
    mean_abs,
    power,
)
from tutelage.analysis.kernels.hermite import hermite_tail, teacher_power
from tutelage.analysis.kernels.ridge import KERNELS, GaussianKernel, kernel_ridge
from tutelage.analysis.kernels.solve import explained
from tutelage.analysis.kernels.zonal import Profile, Series


def network(first, second):
    return tt.Weights(first=jnp.asarray(first, float), second=jnp.asarray(second, float)[:, None])


def uniform(dim):
    return network(np.eye(dim), np.full(dim, 1 / dim))


# Harmonics.


def sphere_mean(dim, function):
    """`E f(t)` for a coordinate of a uniform direction, by the angle: the weight is then smooth for all d >= 2."""
    weight = [quad(lambda u, p=p: p(math.cos(u)) * math.sin(u) ** (dim - 2), 0, math.pi / 2)[0]
              + quad(lambda u, p=p: p(math.cos(u)) * math.sin(u) ** (dim - 2), math.pi / 2, math.pi)[0]
              for p in (function, lambda t: 1.0)]  # fmt: skip
    return weight[0] / weight[1]


def test_counts_add_up_to_homogeneous_polynomials():
    for dim in (2, 3, 7, 40):
        for degree in range(9):
            together = sum(harmonics(dim, low) for low in range(degree % 2, degree + 1, 2))
            assert together == math.comb(dim + degree - 1, degree)
    assert [harmonics(2, degree) for degree in (0, 1, 2, 9)] == [1, 2, 2, 2]


def test_legendre_polynomials_are_those_of_two_three_and_more_dimensions():
    t = np.linspace(-1, 1, 11)
    for degree, values in enumerate(islice(legendre(2, t), 9)):
        np.testing.assert_allclose(values, eval_chebyt(degree, t), atol=1e-13)
    for dim in (3, 10):
        half = dim / 2 - 1
        for degree, values in enumerate(islice(legendre(dim, t), 9)):
            np.testing.assert_allclose(values, eval_gegenbauer(degree, half, t) / eval_gegenbauer(degree, half, 1.0),
                                       atol=1e-13)  # fmt: skip


def abs_coefficient(dim, degree):
    """`mu_l` of an even degree, as the package steps to it from the degree before."""
    return next(islice(even_degrees(dim), degree // 2, None)).coefficient


@pytest.mark.parametrize("dim", [2, 3, 10, 20])
def test_coefficients_of_abs_by_quadrature(dim):
    for degree in (0, 2, 4, 8):
        found = sphere_mean(dim, lambda t, n=degree: abs(t) * float(next(islice(legendre(dim, t), n, None))))
        # quad's own aim is 1.5e-8 relative of the larger of the parts; the integrands are smooth, so it does better.
        assert abs_coefficient(dim, degree) == pytest.approx(found, abs=1e-12)


def printed_coefficient(dim, degree):
    """`mu_l` by Gamma functions, in long arithmetic."""
    half = degree // 2
    sign = (-1) ** (half - 1)
    top = mpmath.mpf(2) ** (1 - degree) * mpmath.factorial(degree - 2)
    top *= mpmath.binomial(degree + mpmath.mpf(dim - 3) / 2, half - 1) * mpmath.gamma(mpmath.mpf(dim) / 2)
    return sign * top / (mpmath.sqrt(mpmath.pi) * mpmath.gamma(degree + mpmath.mpf(dim - 1) / 2))


@pytest.mark.parametrize("dim", [2, 5, 40, 10**6])
def test_coefficients_of_abs_in_long_arithmetic(dim):
    with mpmath.workdps(40):
        for degree in (2, 4, 20, 40):
            assert abs_coefficient(dim, degree) == pytest.approx(float(printed_coefficient(dim, degree)), rel=1e-12)


@pytest.mark.parametrize("dim", [2, 3, 39, 40, 41, 1000, 10**6, 10**12])
def test_isotropic_part_keeps_its_digits(dim):
    with mpmath.workdps(60):
        x = mpmath.mpf(dim) / 2
        ratio = mpmath.exp(mpmath.loggamma(x) - mpmath.loggamma(x + mpmath.mpf(1) / 2))
        exact = 2 * x / mpmath.pi * ratio**2
        # Below 40 it is a difference of numbers of order one, of size 1/(pi d): 40 eps.
        assert isotropic_excess(dim) == pytest.approx(float(exact - 2 / mpmath.pi), rel=1e-13)
        assert mean_abs(dim) == pytest.approx(float(mpmath.sqrt(exact / dim)), rel=1e-15)


def test_shares_follow_from_counts_and_coefficients():
    for dim in (2, 3, 20):
        for one in islice(even_degrees(dim), 8):
            assert one.harmonics == harmonics(dim, one.degree)
            assert one.share == pytest.approx(dim * one.harmonics * abs_coefficient(dim, one.degree) ** 2, rel=1e-12)
        # What is left behind degree l falls as l^-3.
        assert 1 - sum(one.share for one in islice(even_degrees(dim), 400)) == pytest.approx(0, abs=1e-7)


def test_energies_add_up_to_the_power():
    a = np.random.default_rng(0).uniform(-1, 1, 3)
    found = [energy for _, energy in islice(energies(3, a), 400)]
    assert min(found) >= 0 and sum(found) == pytest.approx(power(a), abs=1e-6)
    assert power(a) == pytest.approx(teacher_power(network(np.eye(3), a)), rel=1e-13)
    # By the Legendre polynomials of the cosines.
    a = np.array([0.5, 0.3, 0.2])
    forms = (a @ values @ a for values in islice(legendre(6, np.eye(3)), 0, 12, 2))
    for (one, energy), form in zip(islice(energies(6, a), 6), forms, strict=True):
        assert energy == pytest.approx(one.share * form, abs=1e-15)


# The bound for any features.


def test_bound_in_the_plane_by_hand():
    # |cos| has the Fourier coefficients (2/pi)/(l^2 - 1), each for two harmonics, and E|x|^2 = 2.
    whole, first, second = 1.0, 2 * (2 / math.pi) ** 2, 2 * (2 / (3 * math.pi)) ** 2
    assert feature_bound(2, [1.0], 0) == pytest.approx(whole)
    assert feature_bound(2, [1.0], 1) == pytest.approx(whole - first, rel=1e-13)
    assert feature_bound(2, [1.0], 2) == pytest.approx(whole - first - second, rel=1e-12)
    assert feature_bound(2, [1.0], 3) == pytest.approx(whole - first - 2 * second, rel=1e-12)
    assert feature_bound(2, [1.0], 1e12) == 0 == feature_bound(20, np.full(20, 1 / 20), math.inf)


@pytest.mark.parametrize("a", [[0.2] * 5, [1.0, 0, 0, 0, 0], [0.5, -0.4, 0.1, 0.3, 0.2]])
def test_bound_is_what_the_sorted_eigenvalues_leave(a):
    values = []
    for one, energy in islice(energies(5, a), 14):
        values += [energy / one.harmonics] * one.harmonics
    ordered = np.sort(values)[::-1]
    for count in (1, 2, 20, 100, 700):
        # 14 degrees hold the 700 largest eigenvalues.
        assert feature_bound(5, a, count) == pytest.approx(power(a) - ordered[:count].sum(), rel=1e-11)


def test_bound_of_uniform_weights_is_known_and_large_dimensions_keep_digits():
    # Beyond the mean all that is left is the plateau: 2/pi + (1 - 2/pi)/d - d mu_0^2, since degree 2 is empty.
    for dim in (10, 20, 30, 100):
        level = 2 / math.pi + (1 - 2 / math.pi) / dim - isotropic(dim)
        assert feature_bound(dim, np.full(dim, 1 / dim), 1) == pytest.approx(level, rel=1e-11)
    assert 10**6 * feature_bound(10**6, np.full(10**6, 1e-6), 10**9) == pytest.approx(1 - 3 / math.pi, rel=1e-5)
    counts = [0, 1, 5, 300, 1000.5, 10**4, 10**8, 10**16]
    found = [feature_bound(20, np.full(20, 0.05), count) for count in counts]
    assert found == sorted(found, reverse=True) and found[-1] > 0


def test_bad_teachers_are_refused():
    for call, match in (
        (lambda: feature_bound(1, [1.0], 3), "at least 2 dimensions"),
        (lambda: feature_bound(2, [1.0] * 3, 3), "cannot be orthonormal"),
        (lambda: feature_bound(2, [1.0], -1), "features is -1"),
        (lambda: feature_bound(2, [1.0], math.nan), "features is nan"),
        (lambda: feature_bound(2, [[1.0]], 3), r"shape \(1, 1\)"),
    ):
        with pytest.raises(BadInput, match=match):
            call()


def test_hermite_tails():
    def coefficients(count):
        found = [2 / math.pi]
        for k in range(0, count, 2):
            found += [0.0, found[k] * (k - 1) ** 2 / ((k + 1) * (k + 2))]
        return np.array(found)

    rng = np.random.default_rng(1)
    rows, a = random_directions(4, 3, rng), rng.uniform(-1, 1, 4)
    cosines = rows @ rows.T
    for degree in (0, 1, 2, 5, 6):
        kept = sum(c * a @ cosines**k @ a for k, c in enumerate(coefficients(degree + 2)) if k <= degree)
        assert hermite_tail(network(rows, a), degree) == pytest.approx(
            teacher_power(network(rows, a)) - kept, abs=1e-14
        )


# Features. In the plane all of them are |x| times a function of the angle.

GRID = (np.arange(20_000) + 0.5) * (2 * math.pi / 20_000)
CIRCLE = np.stack([np.cos(GRID), np.sin(GRID)], axis=1)


def fitted(features, target):
    """`E|x|^2 = 2` times the mean square that least squares leave on the circle."""
    return 2 * np.mean((features @ np.linalg.lstsq(features, target, rcond=None)[0] - target) ** 2)


def test_features_by_least_squares_on_the_circle():
    rng = np.random.default_rng(2)
    rows, teacher = random_directions(3, 2, rng), network(random_directions(2, 2, rng), [0.7, -0.4])
    target = np.abs(CIRCLE @ np.asarray(teacher.first).T) @ np.asarray(teacher.second)[:, 0]
    seen = CIRCLE @ rows.T
    tangent = np.concatenate([np.sign(seen) * CIRCLE[:, k : k + 1] for k in range(2)], axis=1)
    # The grid cuts each jump at one of 20000 points: 1e-4 of the features' size, squared where they meet.
    assert random_features_loss(rows, teacher) == pytest.approx(fitted(np.abs(seen), target), abs=1e-6)
    assert tangent_features_loss(rows, teacher) == pytest.approx(fitted(tangent, target), abs=1e-4)


@pytest.mark.parametrize("loss", [random_features_loss, tangent_features_loss])
def test_features_at_the_edges(loss):
    rng, teacher = np.random.default_rng(3), uniform(4)
    rows = random_directions(6, 4, rng)
    assert loss(np.zeros((0, 4)), teacher) == pytest.approx(power(np.full(4, 0.25)), rel=1e-14)
    # Doubled, opposite and nearly equal ones add nothing; the solve is then by eigenvectors, right to 1e-13 or so, and
    # leaves out directions whose square is below 24 eps: nearly equal ones, 1e-9 apart, move a loss by 1e-9 at most.
    alone = loss(rows, teacher)
    for more in (rows, -rows, rows + 1e-9):
        assert loss(np.concatenate([rows, more]), teacher) == pytest.approx(alone, abs=2e-9)
    # With the teacher's own directions among them nothing is left.
    assert loss(np.concatenate([rows, np.eye(4)]), teacher) == pytest.approx(0, abs=1e-12)
    with pytest.raises(BadInput, match="zero vector"):
        loss(np.zeros((1, 4)), teacher)
    with pytest.raises(BadInput, match=r"\(features, 4\)"):
        loss(np.eye(3), teacher)


def test_explained_is_the_projection():
    rng = np.random.default_rng(4)
    table = rng.standard_normal((50, 6))
    target = rng.standard_normal(50)
    held = np.sum((table @ np.linalg.lstsq(table, target, rcond=None)[0]) ** 2)
    assert explained(table.T @ table, table.T @ target) == pytest.approx(held, rel=1e-12)
    twice = np.concatenate([table, table], axis=1)
    assert explained(twice.T @ twice, twice.T @ target) == pytest.approx(held, rel=1e-12)
    assert explained(np.zeros((0, 0)), np.zeros(0)) == 0


# Ridge regression.


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "rbf"])
@pytest.mark.parametrize("dim", [3, 20])
def test_series_of_a_profile_is_the_profile(name, dim):
    profile = KERNELS[name].profile
    t = np.linspace(-0.6, 0.6, 13)
    # Away from the ends: there the kink leaves terms that fall only as a power of the degree. Inside they also
    # oscillate, and fall with |P_l|, 400^-1 for d = 3 and much faster for d = 20.
    np.testing.assert_allclose(Series.of(dim, profile.weights(dim))(t), profile(t), atol=2e-5 if dim == 3 else 1e-12)


def test_profiles_are_averages_over_random_units():
    rng = np.random.default_rng(5)
    w, (x, y) = rng.standard_normal((400_000, 3)), rng.standard_normal((2, 3))
    seen = w @ x, w @ y
    for name, unit, slope in (("abs", np.abs, np.sign), ("relu", lambda z: np.maximum(z, 0), lambda z: z > 0)):
        for kernel, terms in (
            ("arc", unit(seen[0]) * unit(seen[1])),
            ("ntk", slope(seen[0]) * slope(seen[1]) * (x @ y)),
        ):
            found = KERNELS[f"{kernel}-{name}"].value(x[None], y[None])[0, 0]
            # 5 standard errors: a false alarm in 6e-7 of draws, and the seed is fixed.
            assert abs(found - np.mean(terms)) < 5 * np.std(terms) / math.sqrt(len(w))


@pytest.mark.parametrize("name", [*KERNELS, "narrow"])
def test_population_loss_of_ridge_regression_by_sampling(name):
    rng = np.random.default_rng(6)
    kernel = GaussianKernel(1.5) if name == "narrow" else KERNELS[name]
    teacher = network(random_directions(3, 4, rng) * [[1.0], [2.0], [0.5]], [0.5, -0.3, 0.8])

    def labels(x):
        return np.abs(x @ np.asarray(teacher.first).T) @ np.asarray(teacher.second)[:, 0]

    x, test = rng.standard_normal((60, 4)), rng.standard_normal((60_000, 4))
    ridges, gram = (0.01, 1.0), kernel.value(x, x)
    for ridge, loss in zip(ridges, kernel_ridge(kernel, x, labels(x), teacher, ridges), strict=True):
        shifted = gram + ridge * np.trace(gram) / len(x) * np.eye(len(x))
        errors = (kernel.value(test, x) @ np.linalg.solve(shifted, labels(x)) - labels(test)) ** 2
        # 5 standard errors, in 12 comparisons: a false alarm in 1e-5 of draws, and the seed is fixed.
        assert abs(loss - np.mean(errors)) < 5 * np.std(errors) / math.sqrt(len(test))


def test_ridge_at_the_edges():
    teacher = uniform(3)
    x = np.random.default_rng(8).standard_normal((40, 3))
    y = np.abs(x).mean(axis=1)
    # An infinite ridge predicts 0.
    assert kernel_ridge("rbf", x, y, teacher, ridges=(1e12,))[0] == pytest.approx(teacher_power(teacher), rel=1e-9)
    zero = np.concatenate([np.zeros((1, 3)), x])
    assert kernel_ridge("arc-abs", zero, np.abs(zero).mean(axis=1), teacher, ridges=(1e-3,))[0] > 0
    twice = np.concatenate([x, x])
    with pytest.raises(BadInput, match="singular"):
        kernel_ridge("ntk-abs", twice, np.concatenate([y, y]), teacher, ridges=(0.0,))
    for call, match in (
        (lambda: kernel_ridge("arc-asb", x, y, teacher), "did you mean 'arc-abs'"),
        (lambda: kernel_ridge("rbf", x[:, :2], y, teacher), r"\(samples, 3\)"),
        (lambda: kernel_ridge("rbf", x[:0], y[:0], teacher), "at least one sample"),
    ):
        with pytest.raises(BadInput, match=match):
            call()


def test_blocks_do_not_change_the_loss(monkeypatch):
    rng, teacher = np.random.default_rng(9), uniform(3)
    x = rng.standard_normal((50, 3))
    y = np.abs(x).mean(axis=1)
    whole = kernel_ridge("ntk-relu", x, y, teacher, ridges=(0.01,))[0]
    monkeypatch.setattr("tutelage.analysis.kernels.ridge._BLOCK", 350)  # seven rows at a time
    assert kernel_ridge("ntk-relu", x, y, teacher, ridges=(0.01,))[0] == pytest.approx(whole, abs=1e-13)


@pytest.mark.parametrize("name", ["arc-relu", "ntk-abs", "rbf"])
def test_many_samples_are_solved_by_iteration(name, monkeypatch):
    x = np.random.default_rng(15).standard_normal((80, 5))
    y, teacher = np.abs(x).mean(axis=1), uniform(5)
    direct = kernel_ridge(name, x, y, teacher, ridges=(1e-3, 1.0))
    monkeypatch.setattr("tutelage.analysis.kernels.ridge._DIRECT", 79)
    found = kernel_ridge(name, x, y, teacher, ridges=(1e-3, 1.0))
    # Residuals of 1e-8 of the labels, over the smallest eigenvalue: at most 1e-5 of the coefficients.
    np.testing.assert_allclose(found, direct, rtol=1e-4)


def test_weights_of_a_profile_add_up_to_its_value_at_one():
    # The tangent kernel's fall as a power of the degree, which leaves 4e-3 beyond degree 400.
    assert Profile(kink=1.0).weights(10).sum() == pytest.approx(1, abs=1e-6)
    assert Profile(turn=1.0).weights(10).sum() == pytest.approx(1, abs=5e-3)


# Hard teachers.


def test_block_constant_by_enumeration():
    # r = 2: (kap(1) - kap(0))/2.
    assert block_constant(2) == pytest.approx((1 - 2 / math.pi) / 2, rel=1e-15)
    # By its definition: E_delta prod(delta) kap(mean delta), over all signs delta. The sum cancels to 1e-16.
    for size in (2, 4, 8):
        signs = np.array(list(product([1.0, -1.0], repeat=size)))
        rho = signs.mean(axis=1)
        kernel = 2 / math.pi * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho))
        assert block_constant(size) == pytest.approx(np.mean(signs.prod(axis=1) * kernel), abs=1e-16)
    # Ever smaller, and positive: with few digits the sum would be noise.
    assert 16 * block_constant(16) == pytest.approx(7.445e-7, rel=1e-3) and 0 < block_constant(32) < 1e-12
    mu = np.random.default_rng(10).standard_normal((1000, 2))
    np.testing.assert_allclose(sign_coefficient(mu), np.min(np.abs(mu), axis=1), atol=1e-15)


def test_partitions_share_no_block():
    rng = np.random.default_rng(11)
    for dim, size, count in ((4, 2, 3), (8, 2, 7), (16, 4, 40)):
        found = disjoint_partitions(dim, size, count, rng)
        blocks = [block for one in found for block in one]
        assert len(found) == count <= math.comb(dim - 1, size - 1)
        assert len(set(blocks)) == len(blocks)
        assert all(sorted(sum(one, ())) == list(range(dim)) for one in found)
    assert len(disjoint_partitions(4, 2, 100, rng)) == math.comb(3, 1) == 3
    assert disjoint_partitions(4, 2, 0, rng) == []


def test_a_block_meets_a_given_one_as_seldom_as_said():
    rng = np.random.default_rng(12)
    draws = 20_000
    # Any of the d/r blocks may be the given one.
    hits = sum((0, 1) in random_partition(6, 2, rng) for _ in range(draws)) / draws
    chance = 3 * collision_probability(6, 2)
    # 5 standard errors: a false alarm in 6e-7 of draws, and the seed is fixed.
    assert abs(hits - chance) < 5 * math.sqrt(chance * (1 - chance) / draws)


def test_hard_teachers_live_on_their_partition():
    rng = np.random.default_rng(13)
    drawn = hard_teacher(random_partition(16, 4, rng), rng)
    np.testing.assert_allclose(drawn.directions @ drawn.directions.T, np.eye(16), atol=1e-15)
    for index, block in enumerate(drawn.partition):
        rows = drawn.directions[4 * index : 4 * index + 4]
        assert set(np.flatnonzero(np.any(rows != 0, axis=0)).tolist()) == set(block)
        np.testing.assert_allclose(np.abs(rows[:, list(block)]), 0.5)
    assert drawn.weights.sum() == pytest.approx(1) and np.all((drawn.weights >= 1 / 32) & (drawn.weights <= 2 / 16))
    blocks = drawn.weights.reshape(4, 4).sum(axis=1)
    assert drawn.block_weight == pytest.approx(block_constant(4) * np.sum(blocks**2))
    # r = 2: the weights of a block count against each other.
    assert block_weight([0.5, 0.25, 0.25, 0.0], 2) == pytest.approx(block_constant(2) * 0.125)


def test_hardness_bound():
    weights = np.random.default_rng(14).uniform(1, 2, 30)
    for count in (0, 1, 10, 29):
        assert hardness_bound(weights, count) >= weights.mean() - count / 30 * weights.max() - 1e-15
    assert hardness_bound(weights, 0) == pytest.approx(weights.mean())
    assert hardness_bound(weights, 30) == hardness_bound(weights, 100) == 0
    with pytest.raises(BadInput, match="-1 features"):
        hardness_bound(weights, -1)


@pytest.mark.parametrize(("dim", "size"), [(9, 3), (10, 4), (8, 4), (4, 1)])
def test_impossible_blocks_are_refused(dim, size):
    with pytest.raises(BadInput, match="block size"):
        random_partition(dim, size, np.random.default_rng(0))
