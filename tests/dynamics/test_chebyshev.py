"""RKC2: its polynomials against NumPy's, order, error estimate, stability, the spectral radius, diffrax around it."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import chebyshev

import tutelage.problem  # noqa: F401  (switches float64 on)
from tutelage.dynamics.chebyshev import GROWTH, MARGIN, RKC2, Memory

SOLVER = RKC2()
LINEAR = diffrax.ODETerm(lambda t, y, rates: -rates * y)
RATES = jnp.asarray(np.geomspace(1, 1000, 9))
ROUNDING = 2.0**-52


@jax.jit
def advance(y, memory, width, rates):
    return SOLVER.step(LINEAR, 0.0, width, y, rates, memory, jnp.array(False))


@jax.jit
def begin(y, rates):
    return SOLVER.init(LINEAR, 0.0, 1.0, y, rates)


def forced(memory, stages, width):
    """The same memory with a bound for which a step of this width takes just so many stages."""
    return memory._replace(bound=jnp.asarray(0.9999 * (stages**2 - 1) / GROWTH / width))


def polynomial(stages, z):
    """The stability polynomial `1 - b T_s(w0) + b T_s(w0 + w1 z)`, from NumPy's Chebyshev series."""
    series = np.eye(stages + 1)[stages]
    w0 = 1 + 2 / 13 / stages**2
    value, first, second = (chebyshev.chebval(w0, chebyshev.chebder(series, k)) for k in range(3))
    b = second / first**2
    return 1 - b * value + b * chebyshev.chebval(w0 + first / second * z, series)


@pytest.mark.parametrize("stages", [2, 3, 8, 60, 250])
def test_a_step_is_the_stability_polynomial(stages):
    """Rounding errors of a recurrence of `s` terms grow as `s^2`, in either evaluation.

    Against long arithmetic the solver is off by up to 12 roundings times `s^2`, NumPy by up to 23; `y` reaches two.
    """
    width, y = 0.65 * (stages**2 - 1) / 1000, jnp.linspace(-1.0, 2.0, 9)
    memory = forced(begin(y, RATES), stages, width)
    assert SOLVER.stages(width, memory.bound) == stages
    new, error, _, memory, _ = advance(y, memory, width, RATES)
    z = -width * np.asarray(RATES)
    expected = polynomial(stages, z)
    bound = 70 * stages**2 * ROUNDING
    np.testing.assert_allclose(new, expected * y, rtol=0, atol=bound)
    np.testing.assert_allclose(memory.velocity, -RATES * new, rtol=1e-15)
    # The estimate of the paper; here `h F = z y`, which is as large as `z`.
    np.testing.assert_allclose(
        error, (0.8 * (1 - expected) + 0.4 * z * (1 + expected)) * y, rtol=0, atol=bound * (1 + np.abs(z).max())
    )


def test_time_is_seen_at_the_right_nodes():
    """A method of order two integrates `1 + 2 t` exactly, whatever the stages: a condition on all its nodes.

    The tolerance is that of the polynomial.
    """
    term = diffrax.ODETerm(lambda t, y, args: (1 + 2 * t) * jnp.ones_like(y))
    memory = Memory(jnp.full(2, 1.6), jnp.array([1.0, 0.0]), jnp.zeros(()))
    step = jax.jit(lambda m: SOLVER.step(term, 0.3, 1.0, jnp.zeros(2), None, m, jnp.array(False))[0])
    for stages in (2, 5, 40):
        new = step(forced(memory, stages, 0.7))
        np.testing.assert_allclose(new, 0.7 + 1.0 - 0.09, rtol=70 * stages**2 * ROUNDING)


def test_nodes_of_the_stages():
    """`c_j = w1 T_j'' / T_j'` and `c_1 = c_2 / (4 w0)`; then the end twice, for the velocity and for the radius."""
    seen = []
    term = diffrax.ODETerm(lambda t, y, args: seen.append(float(t)) or -y)
    memory = Memory(-jnp.ones(2), jnp.array([1.0, 0.0]), jnp.zeros(()))
    with jax.disable_jit():
        SOLVER.step(term, 0.0, 1.0, jnp.ones(2), None, forced(memory, 6, 1.0), False)
    w0 = 1 + 2 / 13 / 36
    slopes = [[chebyshev.chebval(w0, chebyshev.chebder(np.eye(7)[j], k)) for k in (1, 2)] for j in range(2, 7)]
    nodes = np.array([second / first for first, second in slopes])
    nodes /= nodes[-1]
    np.testing.assert_allclose(seen, [nodes[0] / (4 * w0), *nodes, 1.0], rtol=1e-13)


def test_order_two_and_an_error_estimate_of_order_three():
    """`y' = -y^2 cos t` has `y = 1 / (1 + sin t)`. The next order's part is a step's size: some per cent."""
    term = diffrax.ODETerm(lambda t, y, args: -(y**2) * jnp.cos(t))

    @jax.jit
    def solve(count):
        width, y = 1.0 / count, jnp.ones(1)

        def body(i, carry):
            y, memory, _ = carry
            memory = memory._replace(bound=20 / width)  # six stages at any width: one method
            new, error, _, memory, _ = SOLVER.step(term, i * width, (i + 1) * width, y, None, memory, jnp.array(False))
            return new, memory, error

        return jax.lax.fori_loop(0, count, body, (y, SOLVER.init(term, 0.0, width, y, None), y))

    ends, _, estimates = zip(*(solve(n) for n in (32, 64, 128)), strict=True)
    wrong = np.abs(np.ravel(ends) - 1 / (1 + np.sin(1.0)))
    np.testing.assert_allclose(wrong[:-1] / wrong[1:], 4, rtol=0.1)
    estimates = np.abs(np.ravel(estimates))
    np.testing.assert_allclose(estimates[:-1] / estimates[1:], 8, rtol=0.1)


def test_a_step_a_hundred_times_beyond_the_explicit_limit_decays():
    """Inside its range the polynomial lies between a third and 0.96: all parts shrink and none changes its sign."""
    y = jnp.ones(9)
    memory = begin(y, RATES)
    for _ in range(10):
        new, _, _, memory, _ = advance(y, memory, 100 * 2 / 1000, RATES)
        assert np.all((new > 0) & (new < 0.96 * y))
        y = new


def test_number_of_stages():
    widths = np.array([0.0, 1e-3, 1.0, 7.0, 400.0, 1e3])
    expected = np.maximum(np.ceil(np.sqrt(1 + 1.54 * widths * 30)), 2)
    np.testing.assert_array_equal([int(SOLVER.stages(float(width), 30.0)) for width in widths], expected)
    for most in (2, 7, 250):
        solver = RKC2(most)
        longest = solver.longest(jnp.asarray(30.0))
        assert solver.stages(longest, 30.0) == most
        assert solver.stages(1.01 * longest, 30.0) == -1
    assert SOLVER.stages(jnp.inf, 1.0) == SOLVER.stages(1.0, jnp.nan) == -1
    assert np.isinf(SOLVER.longest(0.0))


def test_a_step_that_needs_too_many_stages_is_refused():
    y = jnp.ones(9)
    new, error, _, memory, _ = advance(y, begin(y, RATES), 50.0, RATES)
    assert np.all(np.isnan(new)) and np.all(np.isposinf(error))


def matrix(eigenvalues):
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((len(eigenvalues),) * 2))[0]
    return jnp.asarray((turn * eigenvalues) @ turn.T)


def test_the_spectral_radius_is_bounded_from_the_start():
    """A radius of either sign, in a dense spectrum: what 15 iterations leave to be found is less than the margin."""
    measure = jax.jit(lambda a, y: SOLVER.init(diffrax.ODETerm(lambda t, y, a: -a @ y), 0.0, 1.0, y, a).bound)
    inner = np.linspace(-1, 3, 59)
    for radius in (3.0, 3.2, 30.0, -30.0, 3e6):
        assert 1 <= measure(matrix(np.append(inner, radius)), jnp.ones(60)) / abs(radius) <= MARGIN * (1 + 1e-6)
    assert 1 <= measure(matrix(np.append(inner, 30.0)), jnp.zeros(60)) / 30 <= MARGIN * (1 + 1e-6)
    assert 1 <= measure(matrix(np.append(inner, 30.0)), 1e-8 * jnp.ones(60)) / 30 <= MARGIN * (1 + 1e-6)


def test_the_spectral_radius_follows_the_jacobian():
    """The curvature jumps to 30 in a direction without curvature before, and back."""
    before, after = matrix(np.r_[np.linspace(0, 2.4, 60)]), matrix(np.r_[30.0, np.linspace(0, 2.4, 60)[1:]])
    term = diffrax.ODETerm(lambda t, y, args: -jnp.where((t > 0.0995) & (t < 0.1995), after, before) @ y)

    @jax.jit
    def bounds(y):
        def body(carry, i):
            t = i * 1e-3
            y, _, _, memory, _ = SOLVER.step(term, t, t + 1e-3, carry[0], None, carry[1], jnp.array(False))
            return (y, memory), memory.bound

        start = (y, SOLVER.init(term, 0.0, 1e-3, y, None))
        return jax.lax.scan(body, start, jnp.arange(300.0))[1]

    seen = bounds(jnp.ones(60))
    assert np.all((seen[:98] >= 2.4) & (seen[:98] <= MARGIN * 2.4))
    # A kick of 0.03 shared by 60 directions is 0.004 in the new one, and grows 12.5 times at each iteration: three.
    assert np.all((seen[104:198] >= 30) & (seen[104:198] <= MARGIN * 30 * (1 + 1e-6)))
    # Back at five per cent a step: 49 of them for a factor of 12.5.
    assert seen[240] > MARGIN * 2.4 and np.all((seen[255:] >= 2.4) & (seen[255:] <= MARGIN * 2.4))


def test_a_bound_far_too_low_is_seen_and_mended():
    """The step is unstable and its error says so. The memory stays and the width shrinks, until two stages do."""
    y = jnp.full(9, 1e-6).at[0].set(1.0)
    memory, width, tolerance = begin(y, RATES), 0.2, 1e-2
    assert np.max(np.abs(advance(y, memory, width, RATES)[1])) < tolerance
    low = memory._replace(bound=memory.bound / 1000)
    rejected = 0
    while np.max(np.abs((step := advance(y, low, width, RATES))[1])) > tolerance:
        rejected, width = rejected + 1, width / 5
    # Two stages reach as far as 2 over the radius: three fifths of the start are below it.
    assert 1 <= rejected <= 3
    assert 1000 <= step[3].bound <= MARGIN * 1000 * (1 + 1e-6)


def test_diffrax_solves_with_it():
    """A flow that contracts at most adds up local errors, each of mean square below the tolerance over ten variables.

    They go as the tolerance and the steps as its inverse cube root: 21 times less in all, of which we ask for seven.
    Twelve stages are few enough for steps to be refused.
    """
    a, y, times = matrix(np.linspace(0, 300, 10)), jnp.linspace(-1.0, 1.0, 10), jnp.linspace(0.0, 2.0, 9)
    term = diffrax.ODETerm(lambda t, y, a: -a @ y - y**3)

    def solve(solver, rtol):
        control = diffrax.ClipStepSizeController(diffrax.PIDController(rtol=rtol, atol=rtol), step_ts=times)
        save = diffrax.SaveAt(ts=times)
        return diffrax.diffeqsolve(
            term, solver, 0.0, 2.0, 0.01, y, a, saveat=save, stepsize_controller=control, max_steps=2048
        )

    exact = solve(diffrax.Tsit5(), 1e-11).ys
    mine = jax.jit(lambda rtol: solve(RKC2(12), rtol))
    wrong = []
    for rtol in (1e-4, 1e-6):
        solution = mine(rtol)
        wrong.append(np.max(np.abs(solution.ys - exact)))
        # Both tolerances, with `y` within one.
        assert wrong[-1] < np.sqrt(10) * 2 * rtol * int(solution.stats["num_accepted_steps"])
    assert wrong[1] < wrong[0] / 7


def test_a_batch_is_its_members():
    """Members of different stiffness take different numbers of stages; each is what it is alone, up to rounding.

    Up to 61 stages and fields up to 1000: 1e-11 for the step. A difference quotient has half of the digits.
    """
    rates = jnp.array([1.0, 30.0, 1000.0])[:, None] * RATES[None] / 1000
    y = jnp.linspace(0.5, 1.0, 9)
    memories = [begin(y, r) for r in rates]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *memories)
    assert len({int(SOLVER.stages(2.0, m.bound)) for m in memories}) == 3
    together = jax.jit(jax.vmap(lambda m, r: advance(y, m, 2.0, r)))(stacked, rates)
    for k, memory in enumerate(memories):
        new, error, _, after, _ = advance(y, memory, 2.0, rates[k])
        np.testing.assert_allclose(together[0][k], new, rtol=0, atol=1e-11)
        np.testing.assert_allclose(together[1][k], error, rtol=0, atol=1e-11)
        np.testing.assert_allclose(together[3].velocity[k], after.velocity, rtol=0, atol=1e-11)
        np.testing.assert_allclose(together[3].direction[k], after.direction, rtol=0, atol=1e-7)
        np.testing.assert_allclose(together[3].bound[k], after.bound, rtol=1e-7)


def test_edges():
    """A zero field, the origin, a single variable: no step is anything but right."""
    still = diffrax.ODETerm(lambda t, y, args: 0 * y)
    for y in (jnp.ones(3), jnp.zeros(3)):
        memory = SOLVER.init(still, 0.0, 1.0, y, None)
        new, error, _, memory, _ = SOLVER.step(still, 0.0, 1e9, y, None, memory, False)
        np.testing.assert_array_equal(new, y)
        np.testing.assert_array_equal(error, 0)
        assert memory.bound == 0 and np.all(np.isfinite(memory.direction))
    one = jnp.array([2.0])
    assert begin(one, jnp.array([5.0])).bound == pytest.approx(5 * MARGIN, rel=1e-6)
