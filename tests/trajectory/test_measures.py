"""Numbers of a run by name: where they come from, how they are reduced, what is censored, and what a run must have."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.dynamics.events import below
from tutelage.dynamics.snapshot import Snapshot
from tutelage.trajectory.findings import Phase
from tutelage.trajectory.measures import Measure, Measured, foreseen, named, needed, phase_times
from tutelage.trajectory.running import perform

TIMES = np.array([[[1.0, np.nan], [3.0, 2.0]], [[4.0, 5.0], [6.0, 7.0]], [[np.nan, np.nan], [np.nan, np.nan]]])


def _early(view):
    return view.loss - 0.1


def _late(view):
    return view.loss - 0.2


EARLY, LATE = tt.Event("early", _early), tt.Event("late", _late)


@pytest.fixture(scope="module")
def run():
    """Two units on a linear target, 60 updates, one event that comes and one that does not; times of our own."""
    events = (below(0.49, "moved"), below(1e-300, "never"))
    found = tt.papers.both_layers(scale=0.3, steps=60).descend(
        seeds=3, record=tt.Record([0, 20, 40, 60], events=events)
    )
    cross = xr.Variable(("seed", "student", "teacher_b"), TIMES, {"long_name": "of our own"})
    return dataclasses.replace(found, dataset=found.dataset.assign(cross_time=cross))


def test_an_observable_at_the_end_and_its_extremes(run):
    loss = run.dataset["loss"].values
    np.testing.assert_array_equal(named("final_loss").measured(run).values, loss[:, -1])
    np.testing.assert_array_equal(named("largest_loss").measured(run).values, loss.max(1))
    np.testing.assert_array_equal(named("smallest_loss").measured(run).values, loss.min(1))


def test_the_end_of_a_seed_that_stopped_early_is_its_own_last_record():
    found = tt.papers.both_layers(scale=0.3, steps=60).descend(
        seeds=4, record=tt.Record("all", events=(below(0.1, stop=True),))
    )
    assert len(set(found.dataset["recorded"].values)) > 1
    loss = found.dataset["loss"].values
    last = [row[np.isfinite(row)][-1] for row in loss]
    np.testing.assert_array_equal(named("final_loss").measured(found).values, last)


@pytest.mark.parametrize(("reducer", "over"), [("max", np.max), ("min", np.min), ("mean", np.mean), ("sum", np.sum)])
def test_further_axes_are_reduced(run, reducer, over):
    norms = run.dataset["first_norm"].values[:, -1]
    np.testing.assert_allclose(named(f"final_first_norm.{reducer}").measured(run).values, over(norms, axis=1))


def test_the_last_of_several_times_has_come_only_when_all_have(run):
    found = named("cross_time.max")
    assert found.kind == "time"
    np.testing.assert_array_equal(found.measured(run).values, [np.nan, 7.0, np.nan])


def test_the_first_of_several_times_has_come_when_one_has(run):
    np.testing.assert_array_equal(named("cross_time.min").measured(run).values, [1.0, 4.0, np.nan])


def test_counts_are_of_entries_that_came_and_are_no_times(run):
    found = named("cross_time.count")
    assert found.kind == "number"
    np.testing.assert_array_equal(found.measured(run).values, [3, 4, 0])


def test_times_that_did_not_come_are_censored_where_the_seed_ended(run):
    found = named("cross_time.max").measured(run)
    stop = run.dataset["stop_time"].values
    np.testing.assert_array_equal(found.limit, [stop[0], np.inf, stop[2]])


def test_a_number_that_is_missing_is_not_censored(run):
    gone = Measure("gone", "gone", lambda run: np.full(3, np.nan))
    assert np.isinf(gone.measured(run).limit).all()


def test_events_are_measures_by_their_name(run):
    found = named("moved").measured(run)
    np.testing.assert_array_equal(found.values, run.dataset["event_time"].sel(event="moved").values)
    assert np.isfinite(found.values).all() and np.isnan(named("never").measured(run).values).all()


def test_variables_with_one_value_a_seed_are_measures(run):
    np.testing.assert_array_equal(named("solver_steps").measured(run).values, [60, 60, 60])


def test_those_of_the_paper_come_first(run):
    mine = Measure("final_loss", "mine", lambda run: np.zeros(3))
    assert named("final_loss", (mine,)) is mine


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("final_los", "final_loss"),
        ("loss", "final_loss"),
        ("final_solver_steps", "solver_steps"),
        ("move", "moved"),
        ("final_overlap", "final_overlap.max"),
        ("cross_time", "cross_time.max or cross_time.min"),
    ],
)
def test_what_a_run_does_not_have_is_refused_with_a_suggestion(run, name, words):
    with pytest.raises(BadInput, match=words):
        named(name).measured(run)


def test_what_a_run_will_have_is_known_before_it(run):
    """With its events, what is recorded on request only, and dims of one's own; of stages it is not known."""
    own = (tt.Observable("pair", lambda view: view.weights.first[:, :2], ("student", "side")),)
    asked = dataclasses.replace(
        run.asked,
        record=tt.Record(3, observables=("loss_order",), own=own, events=(below(0.49, "moved"),),
                         crossings=(tt.Crossings("past", lambda view: view.weights.first[:, 0], ("student",)),)),
    )  # fmt: skip
    foretold, done = foreseen(asked), perform(asked)
    dims = {name: each.dims for name, each in foretold.dataset.data_vars.items()}
    assert {name: dims[name] for name in done.dataset.data_vars} == {
        name: each.dims for name, each in done.dataset.data_vars.items()
    }
    for name in ("moved", "final_pair.max", "past.min", "stop_time", "largest_loss_order.max", "final_loss"):
        assert named(name).measured(foretold).values.shape == (1,)
    for name in ("final_pair", "past", "event_time", "stopped", "never", "final_nothing"):
        with pytest.raises(BadInput):
            named(name).measured(foretold)
    assert foreseen(dataclasses.replace(asked, plan=(tt.Stage("only", asked.plan),))) is None


def test_an_unknown_reducer_is_refused_before_any_run():
    with pytest.raises(BadInput, match=r"max"):
        named("final_overlap.maxx")


@pytest.mark.parametrize("values", [0.0, np.zeros(2), np.zeros((3, 1))])
def test_a_measure_has_one_number_a_seed(run, values):
    with pytest.raises(BadInput, match=r"one number per seed, \(3,\)"):
        Measure("odd", "odd", lambda run: values).measured(run)


def test_a_measure_may_know_its_own_limits(run):
    own = Measured(np.array([1.0, np.nan, 2.0]), np.array([np.inf, 5.0, np.inf]))
    assert Measure("own", "own", lambda run: own, kind="time").measured(run) is own


def test_limits_of_its_own_must_fit_too(run):
    own = Measured(np.zeros(2), np.zeros(2))
    with pytest.raises(BadInput, match="one number per seed"):
        Measure("own", "own", lambda run: own).measured(run)


def test_phases_are_times_seed_by_seed(run):
    rows = [Phase("growth", 0.0, 7.0, seed=2), Phase("growth", 0.0, 5.0, seed=0)]
    found = dataclasses.replace(run, phases=(*rows, Phase("other", 0.0, 1.0, seed=1)))
    np.testing.assert_array_equal(phase_times(found, "growth"), [5.0, np.nan, 7.0])
    assert np.isnan(phase_times(dataclasses.replace(run, phases=()), "growth")).all()


def _measure(**needs):
    return Measure("any", "any", lambda run: np.zeros(1), **needs)


def test_a_run_records_what_any_measure_reads():
    both = [_measure(observables=("overlap",), records=2), _measure(observables=("second", "overlap"), records=9)]
    assert needed(both) == tt.Record(9, observables=("loss", "overlap", "second"))


def test_a_measure_that_does_not_say_what_it_reads_gets_everything():
    assert needed([_measure(observables=(), records=2), _measure()]) == tt.Record()
    assert needed([named("largest_loss")]) == tt.Record(observables=("loss",))


def test_events_that_are_read_are_watched_for_once():
    found = needed([_measure(events=(EARLY,)), _measure(events=(EARLY, LATE))])
    assert found == tt.Record(events=(EARLY, LATE))


def test_a_run_stops_only_when_all_measures_may_and_then_when_all_do(run):
    assert needed([_measure(stop=EARLY), _measure()]).events is None
    (enough,) = needed([_measure(stop=EARLY), _measure(stop=LATE)]).events

    class Seen(Snapshot):
        loss = jnp.asarray(0.15)

        def __init__(self):
            """Nothing else is looked at."""

    assert enough.stop and math.isclose(float(enough.when(Seen())), -0.05)


def test_the_same_measures_ask_for_equal_needed():
    """Else every cell of a sweep would be compiled anew."""
    first, second = (needed([_measure(stop=EARLY), _measure(stop=LATE)]) for _ in range(2))
    assert first == second and hash(first.events) == hash(second.events)
