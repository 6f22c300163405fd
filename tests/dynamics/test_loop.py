"""The one loop: descent and flow, stop reasons, events, solvers, saving; on small problems with known answers."""

import dataclasses
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dynamics.loops import make_loop

import tutelage as tt
from tutelage import StopReason
from tutelage.dynamics import driver
from tutelage.dynamics.descent import DescentStep
from tutelage.dynamics.driver import Loop
from tutelage.dynamics.flow import FlowStep
from tutelage.dynamics.loop import Limits, advance
from tutelage.oracle.population import population_oracle
from tutelage.problem.networks import Rates


def linear_problem(dim=10**6, scale=1e-3, trains=("first",)):
    """dw/dt = -(w - a): everything about it is known in closed form."""
    return tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=tt.GaussianRows(scale), width=1, trains=trains),
    )


def relu_problem(dim=50, scale=1e-2, width=2):
    signs = tuple(1.0 if i % 2 == 0 else -1.0 for i in range(width))
    return tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer(
            "relu",
            first=tt.GaussianRows(scale / dim**0.5),
            second=tt.ChiEntries(scale / dim**0.5, dim, signs),
            width=width,
        ),
    )


def test_descent_is_the_recursion_written_out():
    problem = relu_problem()
    run = tt.descend(problem, step=0.1, steps=30, seeds=2, record=tt.Record("all", weights=True))
    oracle = population_oracle(problem, run.teacher)
    for seed in range(2):
        weights = jax.tree.map(lambda leaf, s=seed: leaf[s], run.start)
        for n in range(30):
            np.testing.assert_allclose(run.weights_first.values[seed, n], weights.first, rtol=1e-12)
            slope = oracle.gradient(weights)
            weights = jax.tree.map(lambda w, g: w - 0.1 * g, weights, slope)
        np.testing.assert_allclose(run.final.first[seed], weights.first, rtol=1e-12)
    np.testing.assert_allclose(run.dataset["time"], 0.1 * np.arange(31), rtol=1e-14)


def test_reduced_and_full_trajectories_agree():
    """Weights given as d-long vectors are reduced to three coordinates; a run in all d coordinates agrees to 1e-12."""
    rng = np.random.default_rng(0)
    dim, first = 30, 0.1 * rng.standard_normal((2, 30))
    target = rng.standard_normal(30)
    target /= np.linalg.norm(target)
    problem = tt.Problem(
        inputs=tt.Gaussian(dim),
        teacher=tt.TwoLayer("linear", first=target[None]),
        student=tt.TwoLayer("relu", first=first, second=[0.1, -0.1]),
    )
    short = tt.descend(problem, step=0.1, steps=400)
    assert short.start.first.shape[-1] == 3
    start = problem.begin(0, full=True)
    weights = jax.tree.map(jnp.asarray, start.student)
    oracle = population_oracle(problem, jax.tree.map(jnp.asarray, start.teacher))
    step = jax.jit(lambda w: jax.tree.map(lambda x, g: x - 0.1 * g, w, oracle.gradient(w)))
    for _ in range(400):
        weights = step(weights)
    gram = np.asarray(weights.first @ weights.first.T)
    np.testing.assert_allclose(short.last("overlap_ss").values[0], gram, rtol=1e-12)
    np.testing.assert_allclose(short.final.second[0], weights.second, rtol=1e-12)
    np.testing.assert_allclose(short.last("overlap").values[0, :, 0], weights.first @ target, rtol=1e-12)


@pytest.mark.parametrize("solver", ["explicit", "stiff"])
def test_flow_follows_the_closed_form(solver):
    run = tt.flow(linear_problem(), until=30.0, seeds=3, solver=solver, rtol=1e-8)
    time = run.dataset["time"].values
    start = np.asarray(run.start.first)[:, 0]
    parallel = 1 + (start[:, :1] - 1) * np.exp(-time)
    exact = 0.5 * (parallel - 1) ** 2 + 0.5 * np.sum(start[:, 1:] ** 2, 1)[:, None] * np.exp(-2 * time)
    reached = np.isfinite(run.loss.values)
    # Error control holds the weights, hence the root of the loss, to a few times the tolerance.
    np.testing.assert_allclose(np.sqrt(run.loss.values[reached]), np.sqrt(exact[reached]), atol=5e-8)
    if solver == "explicit":  # steps are kept short enough to follow the decay to rounding, its rate right to 1e-4
        np.testing.assert_allclose(run.loss.values[reached], exact[reached], rtol=2 * 30 * 1e-4)


@pytest.mark.parametrize("solver", ["explicit", "stabilised"])  # the scale of each; stiff has that of explicit
def test_a_small_start_is_followed_as_closely_as_a_large_one(solver):
    """The absolute tolerance is `rtol` of the start's own scale: `dv/dt = v (1 - v^2)` from 1e-7, layers in balance.

    Each step is good to 1e-8 of v or of the start, and errors add up over some tens of steps. An absolute tolerance of
    1e-8 itself is a tenth of the start, and the escape comes at another time.
    """
    small, until = 1e-7, 17.0
    problem = tt.Problem(
        inputs=tt.Gaussian(10),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=[[small]], second=[small]),
    )
    run = tt.flow(problem, until=until, solver=solver, rtol=1e-8, record=8)
    time = run.dataset["time"].values
    exact = 1 / np.sqrt(1 + (small**-2 - 1) * np.exp(-2 * time))
    np.testing.assert_allclose(run.second.values[0, :, 0, 0], exact, rtol=1e-6)
    assert 0.5 < exact[-1] < 0.999


def test_descent_tends_to_flow_at_first_order():
    problem, until = relu_problem(scale=0.3), 6.0
    exact = tt.flow(problem, until=until, rtol=1e-11).final
    errors = []
    for steps in (300, 600, 1200):
        run = tt.descend(problem, step=until / steps, steps=steps, record=2)
        errors.append(float(jnp.max(jnp.abs(run.final.first - exact.first))))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 1.0, atol=0.05)  # the next order is step/2 relative: 0.01 here


def test_explicit_and_stiff_agree_on_event_times():
    """Near a saddle pointwise comparison means little; the times at which levels are crossed must agree."""
    levels = [tt.below(0.4), tt.below(0.1), tt.below(1e-6)]
    runs = [
        tt.flow(relu_problem(), until=60.0, seeds=2, solver=s, record=tt.Record(events=levels))
        for s in ("explicit", "stiff")
    ]
    np.testing.assert_allclose(runs[0].event_time, runs[1].event_time, rtol=1e-4)
    assert list(runs[0].event_time["event"].values) == [level.name for level in levels]


def test_event_time_is_found_inside_the_step():
    run = tt.flow(linear_problem(scale=1e-9), until=20.0, record=tt.Record(events=[tt.below(0.125)]))
    assert float(run.event_time.squeeze()) == pytest.approx(np.log(2), abs=1e-7)  # (1 - e^-t)... (1/2)(1/2)^2


def test_a_stopping_event_stops_there():
    run = tt.flow(linear_problem(scale=1e-9), until=20.0, record=tt.Record(events=[tt.below(0.125, stop=True)]))
    assert run.stopped == (StopReason.EVENT,)
    assert float(run.stop_time[0]) == pytest.approx(np.log(2), abs=1e-7)
    assert float(run.final.first[0, 0, 0]) == pytest.approx(0.5, abs=1e-7)


def test_descent_event_is_an_update():
    run = tt.descend(linear_problem(scale=1e-12), step=0.5, steps=20, record=tt.Record("all", events=[tt.below(0.126)]))
    assert float(run.event_time.squeeze()) == 0.5  # after one update the weight is 1/2 and the loss 1/8


def test_event_true_at_the_start_happens_at_time_zero():
    run = tt.flow(linear_problem(), until=1.0, record=tt.Record(events=[tt.below(10.0)]))
    assert float(run.event_time.squeeze()) == 0.0


def test_stop_reasons():
    assert tt.descend(linear_problem(), step=0.5, steps=10).stopped == (StopReason.HORIZON,)
    assert tt.descend(linear_problem(), step=0.5, steps=200).stopped == (StopReason.CONVERGED,)
    assert tt.descend(linear_problem(), step=0.5, steps=200, stop=tt.Stop(loss=1e-3)).stopped == (StopReason.CONVERGED,)
    capped = tt.flow(linear_problem(), until=30.0, stop=tt.Stop(steps=5))
    assert capped.stopped == (StopReason.CAP,)
    assert all(reason.sentence.endswith(".") for reason in StopReason)


def test_one_bad_seed_does_not_spoil_the_others():
    """One start is infinite: that seed says so, and the others are those of a run without it."""
    problem = linear_problem()
    good = tt.descend(problem, step=0.5, steps=40, seeds=[0, 2], record=10)
    loop = spoiled_loop(problem)
    loop.follow()
    assert [reason.name for reason in loop.final_reasons()] == ["HORIZON", "NONFINITE", "HORIZON"]
    np.testing.assert_array_equal(np.asarray(loop.state.moment.weights.first)[[0, 2]], np.asarray(good.final.first))


def spoiled_loop(problem):
    starts = [problem.begin(seed) for seed in (0, 1, 2)]
    first = np.stack([start.student.first for start in starts])
    first[1, 0, 0] = np.inf
    second = np.stack([start.student.second for start in starts])
    teacher = jax.tree.map(jnp.asarray, starts[0].teacher)
    ones = Rates(jnp.array(1.0), jnp.array(1.0))
    return make_loop(
        DescentStep(jnp.array(0.5), ones, ("first",)),
        population_oracle(problem, teacher),
        batched=False,
        teacher=teacher,
        start=tt.Weights(jnp.asarray(first), jnp.asarray(second)),
        stops=np.array([0.0, 10.0, 40.0]),
        observables=(),
        limits=Limits(None, jnp.array(0.0), jnp.array(1000)),
    )


def test_divergence_is_non_finite_and_keeps_the_last_finite_weights():
    run = tt.descend(relu_problem(), step=50.0, steps=500, seeds=2)
    assert set(run.stopped) == {StopReason.NONFINITE}
    assert np.isfinite(np.asarray(run.final.first)).all()


def test_frozen_and_slowed_layers():
    problem = relu_problem()
    frozen = dataclasses.replace(
        problem,
        student=tt.TwoLayer(
            "relu", first=problem.student.first, second=problem.student.second, width=2, trains=("first",)
        ),
    )
    run = tt.descend(frozen, step=0.1, steps=20)
    np.testing.assert_array_equal(run.final.second, run.start.second)
    slowed = tt.descend(problem, step=1e-3, steps=1, rates={"second": 0.25})
    plain = tt.descend(problem, step=1e-3, steps=1)
    moved = (slowed.final.second - slowed.start.second) / (plain.final.second - plain.start.second)
    np.testing.assert_allclose(moved, 0.25, rtol=1e-9)
    np.testing.assert_array_equal(slowed.final.first, plain.final.first)


def test_schedule_changes_step_and_time():
    halving = lambda n: 0.5**n  # noqa: E731
    run = tt.descend(linear_problem(scale=1e-9), step=0.5, steps=3, schedule=halving, record="all")
    np.testing.assert_allclose(run.dataset["time"], [0.0, 0.5, 0.75, 0.875])
    weight = 1 - 0.5 * 0.75 * 0.875
    assert float(run.final.first[0, 0, 0]) == pytest.approx(weight, abs=1e-7)


def test_auto_turns_to_the_stiff_solver_for_long_horizons():
    """Slow and fast modes a factor 1e4 apart, to time 1e6: explicit steps would be 1e10/3."""
    problem = tt.Problem(
        inputs=tt.Gaussian(100),
        teacher=tt.TwoLayer("linear", first=[[1.0]]),
        student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), second=[1.0, 0.01], width=2, trains=("first",)),
    )
    run = tt.flow(problem, until=1e6, stop=tt.Stop(gradient=0.0))
    assert '"solver": "stiff"' in run.dataset.attrs["settings"]
    assert int(run.solver_steps[0]) < 200_000
    assert float(run.last("loss")[0]) < 1e-20


def test_horizon_of_1e8():
    run = tt.flow(relu_problem(), until=1e8, seeds=2)
    assert set(run.stopped) == {StopReason.CONVERGED}
    assert float(run.last("loss").max()) < 1e-25


@pytest.mark.parametrize("kind", ["descent", "flow"])
def test_saved_and_restored_runs_are_bit_identical(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(Loop, "chunk", 16)
    whole, resumed = build(kind), build(kind)
    whole.follow()
    for _ in range(3):
        resumed.advance()
    resumed.save(tmp_path / "state.npz")
    again = build(kind)
    again.restore(tmp_path / "state.npz")
    again.follow()
    for left, right in zip(jax.tree.leaves(whole.state), jax.tree.leaves(again.state), strict=True):
        np.testing.assert_array_equal(left, right)
    left, right = whole.records(), again.records()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])
    np.testing.assert_array_equal(whole.event_times, again.event_times)


def build(kind):
    problem = relu_problem()
    starts = [problem.begin(seed) for seed in range(2)]
    stack = lambda *leaves: jnp.asarray(np.stack(leaves))  # noqa: E731
    teacher = jax.tree.map(jnp.asarray, starts[0].teacher)
    ones = Rates(jnp.array(1.0), jnp.array(1.0))
    layers = ("first", "second")
    dynamics = (
        DescentStep(jnp.array(0.1), ones, layers) if kind == "descent" else FlowStep(jnp.array(1e-8), ones, layers)
    )
    end = 600.0 if kind == "descent" else 60.0
    return make_loop(
        dynamics,
        population_oracle(problem, teacher),
        batched=False,
        teacher=teacher,
        start=jax.tree.map(stack, *[start.student for start in starts]),
        stops=np.concatenate([[0.0], np.unique(np.round(np.geomspace(1, end, 80)))]),
        observables=(("loss", lambda view: view.loss),),
        events=[tt.below(0.1)],
        limits=Limits(None, jnp.array(1e-14), jnp.array(10_000)),
    )


def near_the_teachers():
    """Three students a hair from two ReLU teachers: the plain loss soon loses its digits."""
    teacher = tt.TwoLayer("relu", first=np.eye(2))
    student = tt.TwoLayer("relu", first=[[1.1, 0.02], [0.01, 0.5], [-0.02, 0.4]], trains=("first",))
    problem = tt.Problem(inputs=tt.Gaussian(9), teacher=teacher, student=student)
    start = jax.tree.map(jnp.asarray, problem.begin(0))
    ones = Rates(jnp.array(1.0), jnp.array(1.0))
    return make_loop(
        DescentStep(jnp.array(0.3), ones, ("first",)),
        population_oracle(problem, start.teacher),
        batched=False,
        teacher=start.teacher,
        start=jax.tree.map(lambda leaf: leaf[None], start.student),
        stops=np.concatenate([[0.0], np.unique(np.round(np.geomspace(1, 100_000, 100)))]),
        observables=(("loss", lambda view: view.loss), ("first", lambda view: view.weights.first)),
        limits=Limits(None, jnp.array(0.0), jnp.array(1_000_000)),
    )


def test_a_run_takes_the_grouped_form_when_the_plain_one_is_strained(tmp_path, monkeypatch):
    monkeypatch.setattr(Loop, "chunk", 4)
    loop = near_the_teachers()
    forms, times, asked = [], [], Loop._carefully
    monkeypatch.setattr(Loop, "_carefully", lambda *lost: times.append(len(forms)) or asked(*lost))
    while not loop.over:
        loop.advance()
        forms.append(int(loop.state.form[0]))
        loop.save(tmp_path / f"{len(forms)}.npz")
    # Records need more digits than steps, and sooner.
    assert forms[0] == 0 and forms[-1] == 1 and times[0] < forms.index(1)
    rows = {name: np.concatenate([row[name][0] for row in loop.rows]) for name in ("loss", "first")}
    careful = jax.vmap(lambda w: loop.oracle.loss(tt.Weights(w, jnp.ones((3, 1)))))(rows["first"])
    # Before the switch the plain loss has at least eleven digits, after it the careful one is recorded.
    np.testing.assert_allclose(rows["loss"], careful, rtol=1e-10)
    assert rows["loss"][-1] < 1e-6
    # Restored on either side of the switch, the run ends bit-identical.
    for saved in (forms.index(1), forms.index(1) + 1):
        again = near_the_teachers()
        again.restore(tmp_path / f"{saved}.npz")
        again.follow()
        np.testing.assert_array_equal(np.concatenate([row["loss"][0] for row in again.rows]), rows["loss"])


def test_a_loss_that_overflows_ends_a_run():
    """Weights of 1e160 are finite, their squares are not."""
    problem = tt.Problem(
        inputs=tt.Gaussian(5),
        teacher=tt.TwoLayer("relu", first=[[1.0]]),
        student=tt.TwoLayer("relu", first=[[1e160]], trains=("first",)),
    )
    run = tt.descend(problem, step=1e-3, steps=5)
    assert run.stopped == (StopReason.NONFINITE,)


def test_a_foreign_state_is_refused(tmp_path):
    build("descent").save(tmp_path / "state.npz")
    with pytest.raises(tt.BadInput, match="different run"):
        spoiled_loop(linear_problem()).restore(tmp_path / "state.npz")


def test_a_changed_scalar_compiles_nothing():
    problem = linear_problem()
    tt.descend(problem, step=0.5, steps=20, seeds=3)
    before = advance._program._cache_size()
    tt.descend(linear_problem(dim=10**9, scale=1e-5), step=0.25, steps=20, seeds=3)
    tt.descend(problem, step=0.5, steps=20, seeds=3, stop=tt.Stop(gradient=1e-3))
    assert advance._program._cache_size() == before


def test_data_drawn_and_given():
    problem = relu_problem(dim=10, scale=1e-1)
    drawn = tt.descend(problem, step=0.1, steps=50, seeds=2, data=60)
    assert drawn.batched and drawn.start.first.shape[-1] == 10
    x, y = np.asarray(drawn.oracle.x[1]), np.asarray(drawn.oracle.y[1])
    given = tt.descend(problem, step=0.1, steps=50, seeds=[1], data=(x, y))
    np.testing.assert_allclose(given.loss.values[0], drawn.loss.values[1], rtol=1e-12)


def test_own_observable_in_one_line():
    run = tt.descend(
        linear_problem(),
        step=0.5,
        steps=5,
        record=tt.Record(own={"size": lambda view: jnp.abs(view.weights.first).max()}),
    )
    assert run.size.dims == ("seed", "time")


REFUSED = {
    "step is nan": {"step": float("nan"), "steps": 3},
    "steps is 0": {"step": 0.1, "steps": 0},
    "seeds is 0": {"step": 0.1, "steps": 3, "seeds": 0},
    "Unknown layer 'secnd': did you mean 'second'": {"step": 0.1, "steps": 3, "rates": {"secnd": 1.0}},
    "Unknown observable 'los': did you mean 'loss'": {
        "step": 0.1,
        "steps": 3,
        "record": tt.Record(observables=("los",)),
    },
    "record is 'every'": {"step": 0.1, "steps": 3, "record": "every"},
    "record must hold numbers between 0 and 3": {"step": 0.1, "steps": 3, "record": [1, 9]},
    "used twice": {"step": 0.1, "steps": 3, "record": tt.Record(own={"loss": lambda view: view.loss})},
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_arguments(message):
    with pytest.raises(tt.BadInput, match=message):
        tt.descend(linear_problem(), **REFUSED[message])


def test_bad_flow_arguments():
    with pytest.raises(tt.BadInput, match="Unknown solver 'stif': did you mean 'stiff'"):
        tt.flow(linear_problem(), until=1.0, solver="stif")
    with pytest.raises(tt.BadInput, match="until is -1"):
        tt.flow(linear_problem(), until=-1.0)
    with pytest.raises(tt.BadInput, match="is for descent"):
        tt.flow(linear_problem(), until=1.0, record="all")


@pytest.mark.parametrize(
    ("dynamics", "factorises"),
    [
        (tt.Descent(step=0.1, steps=3), False),
        (tt.Flow(until=0.1, solver="explicit"), False),
        (tt.Flow(until=0.1, solver="stiff"), True),
        (tt.Sgd(step=1e-7, steps=3, batch=2), True),
    ],
)
def test_programs_that_factorise_run_one_at_a_time(monkeypatch, dynamics, factorises):
    """Two of them at once may wait for each other for ever, with jaxlib 0.10."""

    class Lock(nullcontext):
        def __enter__(self):
            held.append(True)

    held = []
    monkeypatch.setattr(driver, "one_factorisation", Lock())
    tt.run(linear_problem(), dynamics, seeds=2)
    assert bool(held) == factorises
