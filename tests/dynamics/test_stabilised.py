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
from tutelage.oracle.mixture import units

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
    new = stepped(SOLVER, float(SOLVER.longest(memory)), memory)[0]
    assert np.all(np.isfinite(new)) and np.linalg.norm(new) < np.linalg.norm(START)
    assert np.all(np.isnan(stepped(SOLVER, 1.01 * float(SOLVER.longest(memory)), memory)[0]))


UNTIL, TIMES = 40.0, np.linspace(0, 40, 33)


def run(rtol, solver="stabilised", seed=4):
    options = {"until": UNTIL, "record": TIMES, "crossings": CROSSINGS, "seeds": [seed]}
    return tt.flow(problem(), solver=solver, rtol=rtol, **options)


def test_it_agrees_with_tsit5_and_the_error_falls_with_the_tolerance():
    """Overlaps along the run and times of events. An error made early grows with the race of the experts, which takes
    its time from it: by 1e3 here, so that a tolerance of 1e-8 leaves 1e-5.
    """
    right = run(1e-11, "explicit")
    names = ("overlap_expert", "overlap_router", "overlap_ss_expert", "expert_time", "router_time")
    assert np.isfinite(right.expert_time).any() and np.isfinite(right.router_time).any()
    errors = []
    for rtol in (1e-4, 1e-6, 1e-8):
        found = run(rtol)
        for name in ("expert_time", "router_time"):
            np.testing.assert_array_equal(np.isnan(found.dataset[name]), np.isnan(right.dataset[name]))
        gaps = [np.nanmax(np.abs(found.dataset[name].values - right.dataset[name].values)) for name in names]
        errors.append(max(gaps))
        np.testing.assert_allclose(found.norm_expert, right.norm_expert, rtol=0, atol=100 * rtol)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[1] < 3e-3 and errors[2] < 1e-4


def test_auto_gives_a_mixture_to_it():
    found = tt.flow(problem(), until=UNTIL, record=TIMES, crossings=CROSSINGS, seeds=[4])
    assert '"solver": "stabilised"' in found.dataset.attrs["settings"]
    assert '"rtol": 1e-06' in found.dataset.attrs["settings"]


@pytest.mark.parametrize("dim", [10**4, 10**12])
def test_a_race_from_a_tiny_overlap(dim):
    """One student, one teacher: `t = (1/g - 1/0.9 + atanh 0.9 - atanh g) / 4.5` from an overlap `g` of the experts.

    The routers' overlap enters at the end only, for about 0.1 of the time: 1e-3 of the whole at dim = 1e4.
    """
    teacher = tt.Mixture(routers=np.eye(1, 2), experts=np.eye(2)[1:])
    chosen = tt.Problem(tt.Gaussian(dim), teacher, tt.Mixture(start=tt.MixtureRows("unit"), width=1))
    starts = [chosen.begin(seed).student.first[1, 1] for seed in range(40)]
    seed = int(np.argmin(np.abs(np.sqrt(dim) * np.array(starts) - 1)))
    g = starts[seed]
    time = (1 / g - 1 / 0.9 + np.arctanh(0.9) - np.arctanh(g)) / 4.5
    found = tt.flow(chosen, until=1.1 * time, record=[1.1 * time], crossings=(REACHED,), seeds=[seed])
    assert float(found.reached[0, 0]) == pytest.approx(time, rel=1e-3)


def _nine_tenths(view):
    return (units(view.weights.first).expert @ units(view.teacher.first).expert.T - 0.9)[0]


REACHED = tt.Crossings("reached", _nine_tenths, ("teacher",))
