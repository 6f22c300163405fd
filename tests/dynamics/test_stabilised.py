"""The solver of mixtures: which method makes a step, agreement with Tsit5, error against tolerance, tiny overlaps."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dynamics.mixtures import CROSSINGS, problem

import tutelage as tt
from tutelage.dynamics.chebyshev import RKC2
from tutelage.dynamics.stabilised import SHORT, Stabilised
from tutelage.oracle.mixture import MixtureOracle, units
from tutelage.problem.networks import Weights

SOLVER = Stabilised()
DECAY = diffrax.ODETerm(lambda t, y, args: -jnp.array([1.0, 10.0, 100.0]) * y)
START = jnp.array([1.0, -1.0, 0.5])


@pytest.fixture(scope="module")
def memory():
    return jax.jit(lambda y: SOLVER.init(DECAY, 0.0, 0.1, y, None))(START)


def stepped(solver, width, state):
    return jax.jit(lambda w, s: solver.step(DECAY, 0.0, w, START, None, s, jnp.array(False)))(width, state)


def test_a_short_step_is_one_of_tsit5(memory):
    width = 0.99 * SHORT / float(memory.bound)
    new, error, _, after, _ = stepped(SOLVER, width, memory)
    other = stepped(diffrax.Tsit5(), width, (jnp.array(False), memory.velocity))
    np.testing.assert_array_equal(new, other[0])
    np.testing.assert_array_equal(error, other[1])
    np.testing.assert_allclose(after.velocity, DECAY.vf(0.0, new, None), rtol=1e-15)
    assert SOLVER.error_order_of(DECAY, width, memory) == 5


def test_a_long_step_is_one_of_rkc2(memory):
    width = 1.01 * SHORT / float(memory.bound)
    new, error, _, after, _ = stepped(SOLVER, width, memory)
    other = stepped(RKC2(), width, memory)
    np.testing.assert_array_equal(new, other[0])
    np.testing.assert_array_equal(error, other[1])
    np.testing.assert_array_equal(after.velocity, other[3].velocity)
    assert SOLVER.error_order_of(DECAY, width, memory) == 3


def test_the_longest_step_can_be_made(memory):
    new = stepped(SOLVER, float(SOLVER.longest(memory.bound)), memory)[0]
    assert np.all(np.isfinite(new)) and np.linalg.norm(new) < np.linalg.norm(START)
    assert np.all(np.isnan(stepped(SOLVER, 1.01 * float(SOLVER.longest(memory.bound)), memory)[0]))


UNTIL, TIMES = 40.0, np.linspace(0, 40, 33)
OPTIONS = {"until": UNTIL, "record": tt.Record(TIMES, crossings=CROSSINGS), "seeds": [0]}


def run(rtol):
    return tt.flow(problem(), solver="stabilised", rtol=rtol, **OPTIONS)


@jax.jit
def by_tsit5(teacher, first):
    """The experts' and routers' overlaps with the teachers, from diffrax's own loop around Tsit5."""
    oracle = MixtureOracle(problem().student.hidden, problem().teacher.hidden, Weights(teacher, jnp.ones((2, 1))))
    term = diffrax.ODETerm(lambda t, y, args: -oracle.gradient(Weights(y, jnp.ones((2, 1)))).first)
    controller = diffrax.PIDController(rtol=1e-11, atol=1e-13)
    saved = diffrax.SaveAt(ts=TIMES)
    path = diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, UNTIL, None, first, saveat=saved, stepsize_controller=controller, max_steps=20_000
    ).ys
    met = units(teacher)
    return jax.vmap(lambda y: jnp.stack([units(y).expert @ met.expert.T, units(y).router @ met.router.T]))(path)


def test_it_agrees_with_tsit5_and_the_error_falls_with_the_tolerance():
    """Errors are of the order of the tolerance times the length of the run, and so is the drift of the norms, which
    the flow itself leaves as they are. The times of thresholds are right to about ten times that, those of rare long
    steps to what the cubic through their ends makes of them.
    """
    fine = run(1e-10)
    right = np.moveaxis(np.asarray(by_tsit5(fine.teacher.first, fine.start.first[0])), 1, 0)
    errors = []
    for rtol in (1e-4, 1e-6, 1e-8):
        found = run(rtol)
        gaps = [np.abs(found.overlap_expert.values[0] - right[0]), np.abs(found.overlap_router.values[0] - right[1])]
        errors.append(max(gap.max() for gap in gaps))
        assert errors[-1] < 40 * rtol
        np.testing.assert_allclose(found.norm_expert, 1, rtol=0, atol=4 * rtol)
        for name in ("expert_time", "router_time"):
            times, fine_times = found.dataset[name].values, fine.dataset[name].values
            assert np.isfinite(fine_times).any()
            np.testing.assert_allclose(times, fine_times, rtol=0, atol=40 * rtol + 1e-5 * (rtol > 1e-7))
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_auto_gives_a_mixture_to_it():
    found = tt.flow(problem(), **OPTIONS)
    assert '"solver": "stabilised"' in found.dataset.attrs["settings"]
    assert '"rtol": 1e-06' in found.dataset.attrs["settings"]


@pytest.mark.parametrize("dim", [10**4, 10**12])
def test_a_race_from_a_tiny_overlap(dim):
    """One student, one teacher: `t = (1/g - 1/0.9 + atanh 0.9 - atanh g) / 4.5` from an overlap `g` of the experts.

    The routers' overlap enters at the end only, for about 0.1 of the time: 1e-3 of the whole at dim = 1e4.
    """
    teacher = tt.Mixture(routers=np.eye(1, 2), experts=np.eye(2)[1:])
    chosen = tt.Problem(tt.Gaussian(dim), teacher, tt.Mixture(start=tt.MixtureRows("unit"), width=1))
    starts = [float(chosen.begin(seed).student.first[1, 1]) for seed in range(40)]
    seed = int(np.argmin(np.abs(np.sqrt(dim) * np.array(starts) - 1)))
    g = starts[seed]
    time = (1 / g - 1 / 0.9 + np.arctanh(0.9) - np.arctanh(g)) / 4.5
    found = tt.flow(chosen, until=1.1 * time, seeds=[seed], record=tt.Record([1.1 * time], crossings=(REACHED,)))
    assert float(found.reached[0, 0]) == pytest.approx(time, rel=1e-3)


def _nine_tenths(view):
    return (units(view.weights.first).expert @ units(view.teacher.first).expert.T - 0.9)[0]


REACHED = tt.Crossings("reached", _nine_tenths, ("teacher",))
