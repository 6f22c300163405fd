"""First times of many thresholds: closed forms, every dynamics, the ends of a run, saving, threads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dynamics.loops import make_loop
from dynamics.mixtures import CROSSINGS, problem

import tutelage as tt
from tutelage.dynamics.events import End, cross
from tutelage.dynamics.flow import FlowStep
from tutelage.dynamics.loop import Limits
from tutelage.oracle.population import population_oracle
from tutelage.problem.networks import Weights
from tutelage.trajectory.observables import MIXTURE

TARGETS, BEGIN = np.array([1.0, 2.0, 4.0]), 0.1
LEVELS = np.array([0.05, 0.5, 0.99])


def _beyond_levels(view):
    """Each of three weights against each of three levels, as a matrix."""
    return jnp.max(view.weights.first, axis=1)[:, None] - LEVELS[None]


def _never(view):
    return jnp.max(view.weights.first, axis=1) - 5.0


LINES = (tt.Crossings("reached", _beyond_levels, ("student", "level")), tt.Crossings("never", _never, ("student",)))


def linear():
    """Three weights with `dw/dt = -(w - target)`: each level is reached at `log((target - start)/(target - level))`."""
    return tt.Problem(
        tt.Gaussian(3),
        tt.TwoLayer("linear", first=np.diag(TARGETS), second=np.eye(3)),
        tt.TwoLayer("linear", first=BEGIN * np.eye(3), second=np.eye(3), trains=("first",)),
    )


EXACT = np.where(LEVELS <= BEGIN, 0, np.log((TARGETS[:, None] - BEGIN) / (TARGETS[:, None] - LEVELS)))


# What the cubic is off by: an exponential changes by h^4/384 of itself over a step h. Tsit5 takes steps of up to 0.2
# here, Kvaerno5 of up to a tenth of the time (0.45), and the stabilised solver of up to 0.5 at its tolerance. To that
# comes the solver's own error, of up to 20 steps or so, over the speed at the threshold.
SOLVERS = [("explicit", 4e-6, 1e-8), ("stabilised", 2e-4, 1e-6), ("stiff", 1e-4, 1e-8)]


@pytest.mark.parametrize(("solver", "cubic", "rtol"), SOLVERS)
def test_times_in_a_flow(solver, cubic, rtol):
    run = tt.flow(linear(), until=6.0, solver=solver, record=tt.Record([6.0], crossings=LINES, observables=("loss",)))
    allowed = cubic + 20 * rtol / (TARGETS[:, None] - LEVELS)
    np.testing.assert_array_less(np.abs(run.reached.values[0] - EXACT), allowed)
    assert np.all(run.reached.values[0, :, 0] == 0)  # there at the start
    assert np.all(np.isnan(run.never))
    assert run.reached.dims == ("seed", "student", "level") and run.never.dims == ("seed", "student")


def test_a_smaller_tolerance_finds_them_closer():
    """Steps of up to 0.07."""
    record = tt.Record([6.0], observables=("loss",), crossings=LINES)
    run = tt.flow(linear(), until=6.0, solver="explicit", rtol=1e-11, record=record)
    np.testing.assert_allclose(run.reached.values[0], EXACT, rtol=0, atol=6e-8)


@pytest.mark.parametrize("schedule", [None, lambda n: 1 / (1 + n)], ids=["constant", "schedule"])
def test_times_in_descent_are_those_of_updates(schedule):
    run = tt.descend(
        linear(), step=0.2, steps=40, schedule=schedule, record=tt.Record("all", weights=True, crossings=LINES)
    )
    check_by_record(run)
    assert np.any(np.isnan(run.reached)) == (schedule is not None)  # those slow steps do not reach 0.99


def check_by_record(run):
    """Each time is the first recorded one at which the value is there."""
    values = run.weights_first.values.max(-1)[..., None] - LEVELS
    time = run.dataset["time"].values
    there = values >= 0
    expected = np.where(there.any(1), time[there.argmax(1)], np.nan)
    np.testing.assert_array_equal(run.reached.values, expected)


def test_times_in_sgd_are_those_of_updates():
    options = {"batch": 50, "seeds": 2, "record": tt.Record("all", weights=True, crossings=LINES), "law": "direct"}
    run = tt.sgd(linear(), step=0.2, steps=40, **options)
    check_by_record(run)
    assert np.isfinite(run.reached.values[:, 2]).all()


def test_the_first_time_stays():
    """A value that comes, goes and comes again was first there the first time."""
    times = jnp.full(1, jnp.nan)
    clock = np.linspace(0, 6, 61)
    ends = [End(jnp.asarray(t), jnp.asarray([np.sin(t) - 0.5]), jnp.asarray([np.cos(t)])) for t in clock]
    for before, after in zip(ends, ends[1:], strict=False):
        times = cross(times, before, after, after.clock)
    np.testing.assert_allclose(times, np.pi / 6, atol=0.1**4 / 384)


def test_a_jump_is_noted_at_its_end():
    before, after = (End(jnp.asarray(t), jnp.asarray(v), None) for t, v in ((1.0, [-1.0, -1.0]), (2.0, [1.0, -0.5])))
    np.testing.assert_array_equal(cross(jnp.full(2, jnp.nan), before, after, jnp.asarray(0.7)), [0.7, np.nan])


def test_a_run_that_an_event_stops_has_no_later_times():
    """The event lies inside a step, and thresholds further on in that step have not been crossed."""
    stop = tt.Event("stop", lambda view: jnp.max(view.weights.first[0]) - 0.5, stop=True)
    record = tt.Record([6.0], observables=("loss",), events=(stop,), crossings=(*LINES, AFTER))
    run = tt.flow(linear(), until=6.0, solver="explicit", record=record)
    end = float(run.stop_time[0])
    assert end == pytest.approx(EXACT[0, 1], abs=1e-6)
    found = run.reached.values[0]
    np.testing.assert_array_equal(np.isfinite(found), EXACT <= EXACT[0, 1])
    assert found.max(where=np.isfinite(found), initial=0) <= end  # the event's own threshold is among them
    assert np.all(np.isnan(run.after))


def _just_after(view):
    """1e-4 beyond the event, and hence in the same step."""
    return view.weights.first[:1, 0] - 0.5001


AFTER = tt.Crossings("after", _just_after, ("one",))
UNTIL, STOPS = 40.0, np.linspace(0, 40, 33)


def test_many_seeds_are_the_seeds_one_by_one():
    """The stabilised solver runs seeds in threads, by one compiled program: bit for bit the same."""
    several = tt.flow(problem(), until=UNTIL, seeds=[0, 1, 4], record=tt.Record(STOPS, crossings=CROSSINGS))
    for place, seed in enumerate((0, 1, 4)):
        alone = tt.flow(problem(), until=UNTIL, seeds=[seed], record=tt.Record(STOPS, crossings=CROSSINGS))
        for name in ("loss", "overlap_expert", "expert_time", "router_time", "solver_steps"):
            np.testing.assert_array_equal(several.dataset[name].values[place], alone.dataset[name].values[0])
    assert np.isfinite(several.expert_time).any() and np.isnan(several.expert_time).any()


def build():
    chosen = problem()
    starts = [chosen.begin(seed) for seed in (0, 1)]
    teacher = jax.tree.map(jnp.asarray, starts[0].teacher)
    start = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *(start.student for start in starts))
    return make_loop(
        FlowStep(jnp.array(1e-6), chosen.student.rates(), chosen.student.layers, "stabilised"),
        population_oracle(chosen, teacher),
        batched=False,
        teacher=teacher,
        start=start,
        stops=STOPS,
        observables=tuple((o.name, o.measure) for o in MIXTURE),
        crossings=CROSSINGS,
        limits=Limits(None, jnp.array(1e-14), jnp.array(1_000_000)),
        keys=np.zeros(2, np.uint64),
    )


def test_a_saved_run_goes_on_as_if_nothing_had_been(tmp_path):
    """Bit for bit, with the memory of the stabilised solver and the times of crossings."""
    whole, part, again = build(), build(), build()
    whole.follow()
    part.advance()
    assert not part.over
    part.save(tmp_path / "state.npz")
    again.restore(tmp_path / "state.npz")
    again.follow()
    for left, right in zip(jax.tree.leaves(whole.state), jax.tree.leaves(again.state), strict=True):
        np.testing.assert_array_equal(left, right)
    assert isinstance(whole.state.moment.weights, Weights) and np.isfinite(whole.state.crossed[0]).any()


def test_a_loss_that_is_watched_near_an_optimum_does_not_stop_the_run():
    """The quick form had lost the loss and the careful one had not lost the gradient: each handed over to the other,
    and the run stood still for ever."""
    scale = 1e-3
    teacher = tt.TwoLayer("relu", first=np.eye(1))
    rows = tt.GaussianRows(scale * 1000**-0.5)
    student = tt.TwoLayer("relu", first=rows, second=np.full((3, 1), scale), width=3)
    problem = tt.Problem(tt.Gaussian(1000), teacher, student)
    run = tt.flow(problem, until=60.0, solver="explicit", record=tt.Record(4, events=(tt.below(1e-2, "near"),)))
    assert 10 < run.event_time.item() < 20 and run.last("loss").item() < 1e-8
