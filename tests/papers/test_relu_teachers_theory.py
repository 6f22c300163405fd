"""Closed forms of `relu_teachers` against the oracle, finite differences, long arithmetic and sampling."""

import math

import equinox as eqx
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import chi2

from tutelage._errors import BadInput
from tutelage.analysis.angles import angles_between
from tutelage.oracle.population import PopulationOracle
from tutelage.papers.relu_teachers import chain
from tutelage.papers.relu_teachers.assumptions import assumptions, nearest
from tutelage.papers.relu_teachers.hessian import curvature, hessian, mixed
from tutelage.papers.relu_teachers.kernel import gradient, kernel, loss, slope
from tutelage.papers.relu_teachers.plateau import MeanDirection, Plateau, mean_direction
from tutelage.papers.relu_teachers.steps import Step, linear_matrix, linear_rates
from tutelage.papers.relu_teachers.symmetric import Symmetric
from tutelage.problem.networks import Weights

# k: theta_m (degrees), F, L(0), level, sum of norms, p_V, p_perp, gam_V/m, gam_perp/m, lmax/m; found by an independent
# script and checked there against numerical Hessians and runs. Printed to 4 or 5 decimals: half a unit of the last one.
TABLE = {
    2: (45.00, 4.7464, 0.65915, 0.08851, 1.5108, 0.4041, 0.7020, 0.2980, 0.1490, 0.45458),
    3: (54.74, 6.2362, 1.22746, 0.24236, 1.9851, 0.4108, 0.6072, 0.2946, 0.1964, 0.40673),
    4: (60.00, 7.6529, 1.95493, 0.47142, 2.4360, 0.3965, 0.5473, 0.3018, 0.2263, 0.37769),
    8: (69.30, 12.9483, 6.45634, 2.20950, 4.1216, 0.3395, 0.4221, 0.3303, 0.2890, 0.32525),
}
HALF_UNIT = np.array([5e-3, 5e-5, 5e-6, 5e-6, 5e-5, 5e-5, 5e-5, 5e-5, 5e-5, 5e-6]) * 1.01


def oracle(teacher):
    target = Weights(jnp.asarray(teacher), jnp.ones((len(teacher), 1)))
    return PopulationOracle(student="relu", teacher="relu", target=target)


def weights(first):
    return Weights(jnp.asarray(first), jnp.ones((len(first), 1)))


@eqx.filter_jit
def everything(teacher, first):
    students = weights(first)
    of = oracle(teacher)
    return of.loss(students), of.gradient(students).first, of.hessian(students)[len(first) :, len(first) :]


def generic(seed=0, students=4, teachers=3, columns=5):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((students, columns)), rng.standard_normal((teachers, columns))


def weak(seed=0, students=6, teachers=3, columns=7, norm=2.0):
    """Students that lean to a teacher each, and orthogonal teachers of one norm."""
    rng = np.random.default_rng(seed)
    first = 0.2 * rng.standard_normal((students, columns))
    first[np.arange(students), np.arange(students) % teachers] += 0.4
    return first, norm * np.eye(teachers, columns)


def central(f, at, width=1e-5):
    """Derivatives along every entry; error width^2 f'''/6 and 1e-16 f/width: about 1e-10 for values of order one."""
    steps = width * np.eye(at.size).reshape(at.size, *at.shape)
    return np.stack([(np.asarray(f(at + step)) - np.asarray(f(at - step))) / (2 * width) for step in steps])


# Kernel, gradient, Hessian --------------------------------------------------------------------------------------------


def test_loss_gradient_and_hessian_are_those_of_the_oracle():
    first, teacher = generic()
    level, pull, bend = everything(jnp.asarray(teacher), jnp.asarray(first))
    # Sums of some ten terms of order ten: a few 1e-15 of rounding.
    assert loss(first, teacher) == pytest.approx(float(level), rel=1e-13)
    np.testing.assert_allclose(gradient(first, teacher), pull, atol=1e-13)
    np.testing.assert_allclose(hessian(first, teacher), bend, atol=1e-12)


def test_gradient_and_hessian_are_derivatives():
    first, teacher = generic(1)
    np.testing.assert_allclose(central(lambda w: loss(w, teacher), first), gradient(first, teacher).ravel(), atol=1e-8)
    slopes = central(lambda w: gradient(w, teacher).ravel(), first)
    np.testing.assert_allclose(slopes, hessian(first, teacher), atol=1e-8)


def test_the_printed_hessian_is_wrong_off_the_diagonal():
    first, teacher = generic(1)
    gap = np.abs(hessian(first, teacher, printed=True) - hessian(first, teacher))
    blocks = gap.reshape(4, 5, 4, 5).max((1, 3))
    assert np.diag(blocks).max() == 0 and blocks[0, 1] > 0.02 and gap.max() > 0.1


def test_blocks_at_parallel_and_opposite_rows():
    row = np.array([[0.6, 0.8, 0.0]])
    np.testing.assert_allclose(mixed(row, 3 * row)[0, 0], np.eye(3) / 2, atol=1e-15)
    np.testing.assert_allclose(mixed(row, -row)[0, 0], 0, atol=1e-15)
    np.testing.assert_allclose(curvature(row, np.vstack([row, -row]))[0], 0, atol=1e-15)


def test_sharp_norms_of_the_blocks():
    first, teacher = generic(2)
    t = angles_between(first, teacher)
    found = np.linalg.norm(curvature(first, teacher), ord=2, axis=(2, 3))
    sizes = np.linalg.norm(teacher, axis=1) / np.linalg.norm(first, axis=1)[:, None]
    np.testing.assert_allclose(found, np.sin(t) * sizes / np.pi, rtol=1e-12)
    assert np.linalg.norm(mixed(first, teacher), ord=2, axis=(2, 3)).max() <= 0.5 + 1e-14


def test_mixed_block_is_a_second_moment():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 3))
    inputs = rng.standard_normal((200_000, 3))
    both = ((inputs @ a > 0) & (inputs @ b > 0)).astype(float)
    products = both[:, None, None] * inputs[:, :, None] * inputs[:, None, :]
    error = products.std(0) / math.sqrt(len(inputs))
    # Nine means, five standard errors each: a false alarm once in 2e5 seeds.
    assert np.all(np.abs(products.mean(0) - mixed(a[None], b[None])[0, 0]) <= 5 * error)


def test_kernel_in_long_arithmetic():
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, 4))
    with mpmath.workdps(40):
        u, v = mpmath.matrix(a.tolist()), mpmath.matrix(b.tolist())
        sizes = mpmath.norm(u) * mpmath.norm(v)
        t = mpmath.acos((u.T * v)[0] / sizes)
        value = sizes * (mpmath.sin(t) + (mpmath.pi - t) * mpmath.cos(t)) / (2 * mpmath.pi)
    assert kernel(a[None], b[None])[0, 0] == pytest.approx(float(value), rel=1e-14)


def test_euler_and_scaling():
    first, teacher = generic(5)
    inner = np.sum(first * gradient(first, teacher), axis=1)
    np.testing.assert_allclose(inner, kernel(first, first).sum(1) - kernel(first, teacher).sum(1), atol=1e-13)
    assert loss(3 * first, 3 * teacher) == pytest.approx(9 * loss(first, teacher), rel=1e-13)
    np.testing.assert_allclose(gradient(3 * first, 3 * teacher), 3 * gradient(first, teacher), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.ones(3), np.array([[1.0, np.nan]])])
def test_rows_that_have_no_gradient_are_refused(bad):
    with pytest.raises(BadInput, match="first"):
        gradient(bad, np.eye(2, 3))


# Plateau --------------------------------------------------------------------------------------------------------------


def escape_outside(at):
    """gam_perp: the rate of escape out of span V."""
    return at.students / (2 * at.force) * math.sqrt(at.teachers * (at.teachers - 1))


@pytest.mark.parametrize("k", TABLE)
def test_plateau_table(k):
    at, outside = Plateau(k, students=1), escape_outside(Plateau(k, students=1))
    found = (
        *(math.degrees(at.theta_m), at.force, at.loss_start, at.loss, at.sum_of_norms),
        *(at.decay_inside, at.decay_outside, at.gamma_inside, outside, at.lmax),
    )
    assert np.all(np.abs(np.array(found) - np.array(TABLE[k])) <= HALF_UNIT)


def test_one_teacher():
    at = Plateau(1, students=4, norm=2.0)
    assert at.force == pytest.approx(math.pi) and at.loss == 0 and at.sum_of_norms == pytest.approx(2.0)
    assert at.decay_outside == 1 and math.isnan(at.decay_inside) and math.isnan(at.gamma_inside)
    assert at.lmax == pytest.approx(2.0) and at.small_norm_time == pytest.approx(1 / 6)
    assert at.projection_rate == pytest.approx(1.0)  # nv/2


@pytest.mark.parametrize(("k", "copies"), [(2, 1), (2, 3), (3, 1), (4, 2), (8, 1)])
def test_plateau_is_a_saddle_with_the_stated_spectrum(k, copies):
    students, columns, norm = k * copies, k + 2, 1.5
    at = Plateau(k, students, norm)
    teacher = norm * np.eye(k, columns)
    first = np.tile(at.student_norm * teacher.sum(0) / np.linalg.norm(teacher.sum(0)), (students, 1))
    np.testing.assert_allclose(gradient(first, teacher), 0, atol=1e-13)
    assert loss(first, teacher) == pytest.approx(at.loss, rel=1e-12)
    spectrum = np.linalg.eigvalsh(hessian(first, teacher))
    negative = spectrum[spectrum < -1e-9]
    assert len(negative) == (students - 1) * (columns - 1)
    inside = (students - 1) * (k - 1)
    np.testing.assert_allclose(negative[:inside], -at.gamma_inside, rtol=1e-9)
    np.testing.assert_allclose(negative[inside:], -escape_outside(at), rtol=1e-9)


def test_plateau_against_the_oracle():
    at = Plateau(3, 4)
    teacher = np.eye(3, 5)
    first = np.tile(at.student_norm * teacher.sum(0) / math.sqrt(3), (4, 1))
    level, pull, bend = everything(jnp.asarray(teacher), jnp.asarray(first))
    assert float(level) == pytest.approx(at.loss, rel=1e-12)
    np.testing.assert_allclose(pull, 0, atol=1e-13)
    assert np.linalg.eigvalsh(bend)[0] == pytest.approx(-at.gamma_inside, rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("copies", [1, 2])
def test_lmax_and_the_flat_directions_of_the_minimum(k, copies):
    students, columns = k * copies, k + 1
    teacher = 2.0 * np.eye(k, columns)
    spectrum = np.linalg.eigvalsh(hessian(np.repeat(teacher / copies, copies, axis=0), teacher))
    assert spectrum[-1] == pytest.approx(Plateau(k, students, 2.0).lmax, rel=1e-12)
    assert np.sum(spectrum < 1e-9) == k * (copies - 1) * columns and spectrum[0] > -1e-12


def climb(first, teacher, factor):
    """The flow of students so small that they do not see each other, until norms have grown by `factor`."""

    def rates(_, flat):
        return slope(flat.reshape(first.shape), teacher).sum(1).ravel()

    time = np.linalg.norm(first, axis=1).max() * factor
    done = solve_ivp(rates, (0, time), first.ravel(), rtol=1e-11, atol=1e-14)
    return done.y[:, -1].reshape(first.shape)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_deviations_shrink_with_the_stated_powers(k):
    at, teacher = Plateau(k, 1), np.eye(k, k + 1)
    mean = teacher.sum(0) / math.sqrt(k)
    inside = np.eye(k, k + 1)[0] - np.eye(k, k + 1)[1] if k > 1 else np.zeros(2)
    for direction, power in ((np.eye(k + 1)[k], at.decay_outside), (inside, at.decay_inside)):
        if not np.any(direction):
            continue
        direction = direction / np.linalg.norm(direction)
        start = 1e-6 * (mean + 1e-5 * direction)
        end = climb(start[None], teacher, 1e3)[0]
        tilt = [np.dot(w, direction) / np.dot(w, mean) for w in (start, end)]
        growth = np.log(np.linalg.norm(end) / np.linalg.norm(start))
        # Terms of second order in a deviation of 1e-5, and the solver's 1e-11 against a deviation near 1e-7.
        assert -np.log(tilt[1] / tilt[0]) / growth == pytest.approx(power, abs=1e-4)


def test_growth_rate_and_small_norm_time():
    at, teacher = Plateau(2, 3, 2.0), 2.0 * np.eye(2)
    first = np.full((1, 2), 1e-12)
    rate = -gradient(first, teacher)[0]
    assert np.linalg.norm(rate) == pytest.approx(at.norm_rate, rel=1e-11)
    assert rate[0] == pytest.approx(at.projection_rate, rel=1e-11)
    assert at.small_norm_time * at.norm_rate == pytest.approx(2.0 / (3 * 3))
    assert at.escape_time(1e-3) == pytest.approx(math.log(1e3) / at.gamma_inside)


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_mean_direction_of_orthogonal_teachers_is_the_closed_form(k):
    general, closed = MeanDirection(1.5 * np.eye(k, k + 2)), Plateau(k, 5, 1.5)
    np.testing.assert_allclose(general.direction[:k], 1 / math.sqrt(k), rtol=1e-13)
    assert general.loss_start == pytest.approx(closed.loss_start, rel=1e-13)
    assert general.loss == pytest.approx(closed.loss, abs=1e-13)
    assert general.sum_of_norms == pytest.approx(closed.sum_of_norms, rel=1e-13)
    assert general.strength == pytest.approx(closed.norm_rate, rel=1e-13)
    inside = [closed.decay_inside] * (k - 1)
    np.testing.assert_allclose(1 - general.bends, np.array([closed.decay_outside] * 2 + inside), atol=1e-12)
    rates = [escape_outside(closed)] * 2 + [closed.gamma_inside] * (k - 1)
    np.testing.assert_allclose(general.escape_rates(5), rates, atol=1e-12)


def test_mean_direction_of_any_teachers_is_a_maximum_and_a_saddle_of_the_loss():
    teacher = np.array([[1.0, 0.0, 0.0], [0.3, 1.2, 0.0], [-0.2, 0.1, 0.7]])
    at = MeanDirection(teacher)
    rng = np.random.default_rng(6)
    others = rng.standard_normal((500, 3))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert kernel(others, teacher).sum(1).max() < at.strength
    first = np.tile(at.sum_of_norms / 4 * at.direction, (4, 1))
    np.testing.assert_allclose(gradient(first, teacher), 0, atol=1e-13)
    assert loss(first, teacher) == pytest.approx(at.loss, rel=1e-12)
    spectrum = np.linalg.eigvalsh(hessian(first, teacher))
    expected = np.sort(np.repeat(-at.escape_rates(4), 3))
    np.testing.assert_allclose(spectrum[: len(expected)], expected, rtol=1e-9)


def test_mean_direction_of_opposite_teachers_is_one_of_them():
    found = mean_direction([[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(np.abs(found), [1.0, 0.0], atol=1e-12)


def test_plateau_refuses_nothing_to_learn():
    with pytest.raises(BadInput, match="0 teachers"):
        Plateau(0, 3)
    with pytest.raises(BadInput, match="norm 0"):
        Symmetric(2, 1, 0)


# The symmetric plane --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "copies"), [(1, 3), (2, 1), (2, 3), (4, 2), (5, 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.1), (0.2, 0.2), (0.1, -0.05), (-0.1, 0.3), (1e-9, 3e-10)])
def test_the_plane_is_the_flow(k, copies, alpha, beta):
    plane, teacher = Symmetric(k, copies, 1.3), 1.3 * np.eye(k)
    if k == 1:
        beta = 0.0
    first = plane.weights(alpha, beta)
    full = -gradient(first, teacher)
    dalpha, dbeta = plane.field(alpha, beta)
    # atol: a few rounding errors of sums of k copies terms of order one; students of equal direction have an angle of
    # up to 1e-8 (the half-angle formula of nearly equal sides), which enters the field multiplied by 1 - cos = 1e-16.
    np.testing.assert_allclose(full, plane.weights(dalpha, dbeta), atol=2e-14)
    assert float(plane.loss(alpha, beta)) == pytest.approx(loss(first, teacher), abs=1e-13)


@pytest.mark.parametrize("k", [2, 3])
def test_the_field_is_the_slope_of_the_loss(k):
    plane = Symmetric(k, 2)
    at = np.array([0.21, 0.08])
    pull = central(lambda p: plane.loss(*p), at)
    sizes = np.array([2 * k, 2 * k * (k - 1)])
    np.testing.assert_allclose(-pull / sizes, np.array(plane.field(*at)), atol=1e-9)
    turned = central(lambda p: np.stack(plane.field(*p)), at).T
    np.testing.assert_allclose(plane.jacobian(*at), turned, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_fixed_points_rest_and_have_their_kinds(k):
    plane = Symmetric(k, 2, 1.7)
    origin, plateau, minimum = plane.fixed_points
    assert [p.kind for p in (origin, plateau, minimum)] == ["source", "saddle", "sink"]
    for point in (plateau, minimum):
        np.testing.assert_allclose(plane.field(point.alpha, point.beta), 0, atol=1e-13)
    assert max(plateau.rates) == pytest.approx(plane.plateau.gamma_inside, rel=1e-9)
    assert min(minimum.rates) == pytest.approx(-plane.plateau.lmax, rel=1e-9)
    assert plateau.loss == pytest.approx(plane.plateau.loss, rel=1e-12) and minimum.loss == 0


def test_one_teacher_has_no_saddle():
    origin, minimum = Symmetric(1, 4, 2.0).fixed_points
    assert minimum.kind == "sink" and minimum.alpha == 0.5 and minimum.rates == pytest.approx((-2.0,))
    alpha, beta = Symmetric(1, 4, 2.0).flow(0.1, 0.0, np.array([0.0, 0.5, 1.0]))
    # n alpha - nv decays like exp(-n s/2).
    np.testing.assert_allclose(alpha, 0.5 - 0.4 * np.exp(-2 * np.array([0.0, 0.5, 1.0])), rtol=1e-8)
    assert not np.any(beta)


def test_the_flow_passes_the_saddle_and_ends_at_the_minimum():
    plane = Symmetric(2, 3)
    alpha, beta = plane.flow(1e-6, 0.5e-6, np.array([1.2, 60.0]))
    level = plane.loss(alpha, beta)
    assert level[0] == pytest.approx(plane.plateau.loss, rel=0.02)
    assert alpha[1] == pytest.approx(1 / 3, rel=1e-6) and abs(beta[1]) < 1e-6


def test_a_start_below_double_rounding_lengthens_the_plateau_as_said():
    plane = Symmetric(2, 3)
    times = np.linspace(0.0, 12.0, 1201)
    leave = []
    for scale in (1e-12, 1e-15, 1e-18):
        alpha, beta = plane.flow(scale, 0.5 * scale, times)
        leave.append(times[np.argmax(np.arctan2(np.abs(beta), alpha) < math.radians(20))])
    # The grid of times is 0.01 fine, and the law is asymptotic.
    np.testing.assert_allclose(np.diff(leave), plane.plateau.lengthening(1e3), atol=0.03)


def test_flow_of_the_plane_is_flow_of_the_network():
    plane, teacher = Symmetric(3, 1), np.eye(3)
    alpha, beta = plane.flow(0.1, 0.02, np.array([0.0, 1.0, 3.0]))
    done = solve_ivp(
        lambda _, w: -gradient(w.reshape(3, 3), teacher).ravel(),
        *((0, 3.0), plane.weights(0.1, 0.02).ravel()),
        rtol=1e-10,
        atol=1e-12,
    )
    np.testing.assert_allclose(done.y[:, -1].reshape(3, 3), plane.weights(alpha[-1], beta[-1]), atol=1e-8)


def test_the_plane_has_no_field_at_the_origin():
    with pytest.raises(BadInput, match="origin"):
        Symmetric(2, 2).field([0.1, 0.0], [0.0, 0.0])


# The chain of parameters ----------------------------------------------------------------------------------------------


def test_chain_in_long_arithmetic():
    log10_eps1 = chain.log10_eps1(-25.0, teachers=2, students=6, power=2.0)
    log10_sigma = chain.log10_sigma(log10_eps1, 2, 6, 50, norm=3.0)
    with mpmath.workdps(30):
        eps2, k, m, d, nv = mpmath.mpf(10) ** -25, 2, 6, 50, 3
        eps1 = mpmath.sqrt((48 * mpmath.pi * eps2) ** (2 * k) * eps2**2 / (64 * m))
        sigma = eps1 ** (16 * k + 2) * nv / (10000 * m * mpmath.sqrt(d))
        eta = sigma * mpmath.sqrt(d) * eps1**2 / (100 * k**2 * nv)
        logs = [float(mpmath.log10(x)) for x in (eps1, sigma, eta)]
    found = (log10_eps1, log10_sigma, chain.log10_eta_first(log10_eps1, log10_sigma, 2, 50, norm=3.0))
    np.testing.assert_allclose(found, logs, rtol=1e-13)


def test_limits_on_eps2():
    assert [chain.EPS2_CLOCK, chain.EPS2_GROWTH] == pytest.approx([6.6e-3, 1.7e-11], rel=0.04)
    assert 48 * math.pi * chain.EPS2_CLOCK == pytest.approx(1, rel=1e-12)
    assert (49 * math.pi * chain.EPS2_GROWTH) ** (1 / 18) == pytest.approx(1 / 3, rel=1e-12)


def test_sigma_underflows_for_one_teacher_already():
    # Whatever C* is: with C* = 0 the bound on eps1 is loosest. Lemma 3 needs (49 pi eps2)^(1/18) <= eps2^0.05 as well,
    # so that eps2 is below 1.3e-22.
    assert (49 * math.pi * 2e-22) ** (1 / 18) > 2e-22**0.05 and (49 * math.pi * 1e-22) ** (1 / 18) < 1e-22**0.05
    found = chain.log10_sigma(chain.log10_eps1(-22.0, teachers=1, students=1, power=0.0), 1, 1, 50)
    assert found < -390 and 10**found == 0


def test_phase_times():
    assert chain.first_phase_time(0.15, 3, 6) == pytest.approx(0.0225 / 1800)
    second = chain.second_phase_time(0.15, 1e-4, 3, 6)
    assert second - chain.first_phase_time(0.15, 3, 6) == pytest.approx(0.25 * math.log(1 / (48 * math.pi * 1e-4)))
    with pytest.raises(BadInput, match="48 pi"):
        chain.second_phase_time(0.1, 0.01, 2, 4)


def test_step_of_the_literal_refutation():
    # k = 3, m = 6, d = 50, eps1 = 0.15: sigma 1.5e-47, eta 2.7e-51, T1 4.7e45 steps.
    log_eps1 = math.log10(0.15)
    sigma = chain.log10_sigma(log_eps1, 3, 6, 50)
    eta = chain.log10_eta_first(log_eps1, sigma, 3, 50)
    assert 10**eta == pytest.approx(2.7e-51, rel=0.02)
    assert chain.first_phase_time(0.15, 3, 6) / 10**eta == pytest.approx(4.7e45, rel=0.02)


def test_initial_norms():
    assert chain.norm_bounds(0.1, 100) == (0.5, 2.0)
    assert chain.norm_probability(5) == pytest.approx(0.939, abs=5e-4)
    assert chain.norm_probability(10) == pytest.approx(0.991, abs=5e-4)
    assert chain.norm_probability(20) == pytest.approx(0.9997, abs=5e-5)
    assert chain.norm_probability(7, 4) == pytest.approx((chi2.cdf(28, 7) - chi2.cdf(7 / 4, 7)) ** 4, rel=1e-12)


# Assumptions ----------------------------------------------------------------------------------------------------------


def made_start(zeta=1e-4, angle=0.7, sigma=1e-3, dim=50, counts=(2, 2)):
    """A start with Assumptions 1 to 3 by construction: cosines cos(angle) and sin(zeta), norms sigma sqrt d."""
    rows = []
    for label, count in enumerate(counts):
        for index in range(count):
            row = np.zeros(8)
            row[label], row[1 - label] = math.cos(angle), math.sin(zeta) * (-1) ** index
            row[2 + index] = math.sqrt(1 - row @ row)
            rows.append(sigma * math.sqrt(dim) * row)
    return np.array(rows), 3.0 * np.eye(2, 8)


def broken_conditions(found):
    """The conditions of Assumptions 1 to 3 and Lemma 1 that do not hold, one by one."""
    low, high = found.students / (3 * found.teachers), 3 * found.students / found.teachers
    held = {
        "A1a": found.zeta_own > 0,
        "A1b": 10 * found.teachers * found.zeta_other <= found.eps1**2,
        "A1c": found.eps1**2 < found.zeta_own**3,
        "A2a": found.cosine <= 1e-12,
        "A2b": found.spread <= 1e-12,
        "A3a": low <= min(found.counts),
        "A3b": max(found.counts) <= high,
        "L1a": found.s1 <= found.shortest,
        "L1b": found.longest <= found.s2,
    }
    return {name for name, holds in held.items() if not holds}


def test_assumptions_measure_what_was_made():
    first, teacher = made_start()
    found = assumptions(first, teacher, dim=50, sigma=1e-3, eps1=0.1)
    assert found.zeta_own == pytest.approx(math.pi / 2 - 0.7, rel=1e-12)
    assert found.zeta_other == pytest.approx(1e-4, rel=1e-9)
    assert found.crowding == pytest.approx(10 * 2 * 1e-4 / 0.01, rel=1e-9)
    assert found.own_ratio == pytest.approx(0.01 / (math.pi / 2 - 0.7) ** 3, rel=1e-12)
    assert found.counts == (2, 2) and found.cosine == 0 and found.spread == 0
    assert (found.s1, found.s2) == chain.norm_bounds(1e-3, 50)
    assert found.all and not broken_conditions(found)
    assert all(" holds: " in sentence for sentence in found.sentences()) and len(found.sentences()) == 4
    assert nearest(first, teacher).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("change", "broken", "names"),
    [
        ({"zeta": 1e-2}, "Assumption 1", {"A1b"}),
        ({"angle": 1.5}, "Assumption 1", {"A1c"}),
        ({"counts": (6, 1)}, "Assumption 3", {"A3a"}),
        ({"sigma": 1e-2}, "Lemma 1", {"L1b"}),
        ({"sigma": 1e-4}, "Lemma 1", {"L1a"}),
    ],
)
def test_a_broken_assumption_is_seen_and_only_that(change, broken, names):
    found = assumptions(*made_start(**change), dim=50, sigma=1e-3)
    wrong = [sentence for sentence in found.sentences() if "does not hold" in sentence]
    assert len(wrong) == 1 and wrong[0].startswith(broken) and not found.all
    assert broken_conditions(found) == names


def test_teachers_that_are_not_orthogonal_or_equal():
    first, teacher = made_start()
    teacher[1] *= 1.5
    assert assumptions(first, teacher, dim=50, sigma=1e-3).spread == pytest.approx(1 / 3)
    teacher[1, 0] = 0.1
    found = assumptions(first, teacher, dim=50, sigma=1e-3)
    assert found.cosine == pytest.approx(0.1 / math.hypot(0.1, 4.5)) and not found.orthogonal
    assert "does not hold" in found.sentences()[1]


def test_students_that_lean_away_and_a_teacher_without_students():
    found = assumptions([[-1.0, -0.2], [-1.0, -0.1]], np.eye(2), dim=2, sigma=1.0)
    assert found.zeta_own < 0 and found.own_ratio == math.inf and found.counts == (0, 2)
    assert not found.balanced and not found.weak_recovery


def test_one_teacher_has_no_other_angles():
    found = assumptions([[0.1, 0.05]], [[1.0, 0.0]], dim=2, sigma=0.1)
    assert found.zeta_other == 0 and found.crowding == 0 and found.cosine == 0 and found.balanced


# One step -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("students", "teachers"), [(6, 3), (3, 3), (4, 1), (5, 2)])
def test_one_step_identities(students, teachers):
    first, teacher = weak(7, students, teachers)
    step = Step(first, teacher, eta=0.03)
    moved = np.sum((step.after.first - first) * step.axes[step.tau], axis=1)
    # Sums of some fifty terms of order eta: 1e-16 each.
    np.testing.assert_allclose(step.rise, moved, atol=1e-15)
    np.testing.assert_allclose(step.predicted_rise, step.rise, atol=2e-15)
    np.testing.assert_allclose(step.predicted_H, step.after.H, atol=1e-14)
    np.testing.assert_allclose(step.H, -np.sum(step.residuals * step.axes, axis=1), atol=1e-14)
    np.testing.assert_allclose(step.I2 + step.I3, step.cosine_rise, atol=2e-15)


def test_the_printed_recursions_are_wrong():
    step = Step(*weak(7), eta=0.03)
    assert np.abs(step.printed_rise - step.rise).max() > 0.1 * np.abs(step.rise).max()
    assert np.abs(step.printed_H - step.after.H).max() > 1e-3


def test_first_order_term_by_vectors():
    step = Step(*weak(8), eta=0.02)
    unit = step.first / step.lengths[:, None]
    axis = step.axes[step.tau]
    lever = np.sum(unit * axis, axis=1)[:, None] * unit - axis
    vectors = step.eta / step.after.lengths * np.sum(lever * step.gradient, axis=1)
    np.testing.assert_allclose(step.I2, vectors, atol=1e-15)


def test_tau_may_be_frozen():
    first, teacher = weak(9)
    frozen = np.array([1, 1, 2, 0, 1, 2])
    step = Step(first, teacher, 0.03, frozen)
    np.testing.assert_allclose(step.predicted_H, step.after.H, atol=1e-14)
    np.testing.assert_allclose(step.predicted_rise, step.rise, atol=2e-15)
    assert step.after.tau.tolist() == frozen.tolist()
    with pytest.raises(BadInput, match="tau"):
        Step(first, teacher, 0.03, np.array([0, 1]))


def test_aligned_students_follow_the_linear_matrix():
    counts, teacher = (3, 1), 2.0 * np.eye(2)
    shares = np.array([[0.3, 0], [0.2, 0], [0.4, 0], [0, 0.7]])
    step = Step(shares, teacher, eta=0.01)
    # With every student on its axis Q vanishes up to the angle pi/2 between groups, which H takes into account.
    np.testing.assert_allclose(step.Q(), 0, atol=1e-16)
    np.testing.assert_allclose(step.after.H, linear_matrix(counts, 0.01) @ step.H, rtol=1e-14)
    balanced = np.linalg.eigvals(linear_rates((2, 2, 2)))
    np.testing.assert_allclose(np.sort(balanced), [2 * (np.pi - 1) / (2 * np.pi)] * 2 + [2 * (2 + np.pi) / (2 * np.pi)])


def test_one_teacher_decays_like_half_the_students():
    # (1 - eta m/2)^t: 0.1326 and 0.0176 after 100 and 200 steps for m = 4.
    assert linear_matrix([4], 0.01)[0, 0] ** 100 == pytest.approx(0.1326, abs=5e-5)
    assert linear_matrix([4], 0.01)[0, 0] ** 200 == pytest.approx(0.0176, abs=5e-5)


def test_residual_split_and_its_moments():
    first, teacher = weak(10, norm=1.0)
    step = Step(first, teacher, 0.1)
    inputs = np.random.default_rng(11).standard_normal((200_000, first.shape[1]))
    one, two = step.split(inputs)
    residual = np.maximum(inputs @ first.T, 0).sum(1) - np.maximum(inputs @ teacher.T, 0).sum(1)
    np.testing.assert_allclose(one + two, residual, atol=1e-13)
    assert one.min() >= 0
    for sample, exact in zip((one**2, two**2, one * two), step.split_moments, strict=True):
        # Five standard errors, three means: a false alarm once in 6e5 seeds.
        assert abs(sample.mean() - exact) <= 5 * sample.std() / math.sqrt(len(sample))
    e1, e2, e12 = step.split_moments
    assert e1 + e2 + 2 * e12 == pytest.approx(2 * loss(first, teacher), rel=1e-12)


def test_targets_add_up_to_the_teachers():
    step = Step(*weak(12), eta=0.1)
    np.testing.assert_allclose(step.member.T @ step.targets, step.teacher, atol=1e-14)
    lone = Step(0.5 * np.eye(2, 3), np.eye(2, 3), 0.1)
    np.testing.assert_allclose(lone.targets, np.eye(2, 3), atol=1e-15)
    # Half of each teacher is missing, so that w - w* = -w.
    inner = np.sum(gradient(lone.first, lone.teacher) * -lone.first)
    assert lone.descent_inner == pytest.approx(inner)
