"""What every dynamics must do: seeds apart, chunks, saving and restoring, one compilation, the limit of small steps."""

import functools

import jax
import numpy as np
import pytest
from scipy.stats import ortho_group
from tables import CLUSTERED, DYNAMICS, PLACED, members, solvers

import tutelage as tt
from tutelage.dynamics.base import AbstractDynamics
from tutelage.dynamics.checkpoint import Checkpoint
from tutelage.dynamics.driver import Loop

pytestmark = pytest.mark.usefixtures("quickly_compiled")
EVERY = pytest.mark.parametrize("name", DYNAMICS)
DIM, TEACHER = 8, tt.TwoLayer("erf", first=[[1.0]])
# Weights of order one that a seed draws, and the same for all seeds.
DRAWN = tt.Problem(tt.Gaussian(DIM), TEACHER, tt.TwoLayer("erf", first=tt.GaussianRows(0.4), width=2))
GIVEN = tt.Problem(tt.Gaussian(DIM), TEACHER, tt.TwoLayer("erf", first=[[0.3, 0.5, 0.0], [-0.2, 0.1, 0.4]]))
STEPPED = [name for name in DYNAMICS if "descent" in name]
SAMPLED = [name for name in DYNAMICS if name.startswith("sgd")]

COMPILED = []


def noted(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        COMPILED.append(event)


jax.monitoring.register_event_duration_secs_listener(noted)


@functools.cache
def whole(name) -> tt.Run:
    return run(name)


def run(name, seeds=None, problem=DRAWN, **changes) -> tt.Run:
    row = DYNAMICS[name]
    return row.move(problem, range(row.count) if seeds is None else seeds, **changes)


def same(one, other) -> bool:
    """Bit for bit, all that was recorded, and where each seed stopped."""
    names = set(one.dataset.variables) | set(other.dataset.variables)
    leaves = zip(jax.tree.leaves(one.final), jax.tree.leaves(other.final), strict=True)
    return all(one.dataset[name].equals(other.dataset[name]) for name in names) and all(
        np.array_equal(left, right) for left, right in leaves
    )


def apart(one, other, seeds=slice(None), others=slice(None)) -> float:
    """The largest difference of what is recorded of some seeds. Weights, overlaps and losses are all of order one."""
    names = ("loss", "overlap", "overlap_ss")
    return max(float(np.abs(one.dataset[n].values[seeds] - other.dataset[n].values[others]).max()) for n in names)


class Asked(Exception):
    """Stands in for a run of which only the question matters."""


def test_every_dynamics_is_in_the_table():
    for name, row in DYNAMICS.items():
        assert type(whole(name).asked.plan) is row.kind, name
    assert {row.kind for row in DYNAMICS.values()} | CLUSTERED | PLACED == members(AbstractDynamics)
    assert {name.partition(", ")[2] for name in DYNAMICS if name.startswith("flow")} == solvers()


@EVERY
def test_records_are_finite_and_double(name):
    found = whole(name)
    assert set(found.stopped) == {tt.StopReason.HORIZON} and np.all(found.recorded == found.dataset.sizes["time"])
    for variable in ("loss", "overlap", "overlap_ss", "time"):
        values = found.dataset[variable].values
        assert values.dtype == np.float64 and np.all(np.isfinite(values))
    assert len(np.unique(found.last("loss"))) == DYNAMICS[name].count
    assert {leaf.dtype for leaf in jax.tree.leaves(found.final)} == {np.dtype("float64")}


@EVERY
def test_a_seed_does_not_feel_the_others(name):
    """In a batch of other seeds it is the same bit for bit; by itself it is summed in another order."""
    row = DYNAMICS[name]
    seeds = [5, 2, 0, *range(70, 70 + row.count - 3)]
    other = run(name, seeds)
    assert apart(whole(name), other, [2, 0], [1, 2]) == 0


@EVERY
def test_a_seed_alone_in_other_chunks_is_the_same(name, monkeypatch):
    monkeypatch.setattr(Loop, "chunk", 5)
    assert apart(whole(name), run(name, [1]), [1], [0]) <= DYNAMICS[name].alone


@EVERY
@pytest.mark.parametrize("parts", [3, 20])
def test_where_chunks_are_cut_does_not_matter(name, parts, monkeypatch):
    monkeypatch.setattr(Loop, "PARTS", parts)
    assert same(whole(name), run(name))


@EVERY
def test_stopped_and_taken_up_again_is_never_stopped(name, tmp_path, monkeypatch):
    """Stopped before the fourth chunk, as by a crash; then the same run with the same file."""
    monkeypatch.setattr(Loop, "chunk", 5)
    kept = tmp_path / "run.npz"
    chunks = iter(range(3))

    def progress(label, done, total):
        if next(chunks, None) is None:
            raise Asked

    with pytest.raises(Asked):
        run(name, checkpoint=Checkpoint(kept, every=0.0), progress=progress)
    begun = []
    again = run(name, checkpoint=kept, progress=lambda label, done, total: begun.append(done))
    assert begun[0] > 0 and same(run(name), again)


@EVERY
def test_changed_scalars_compile_nothing(name):
    whole(name)
    run(name)  # what the first run left to be compiled on the way, such as copies to the host
    before = len(COMPILED)
    for changes in DYNAMICS[name].scalars:
        run(name, **changes)
    assert len(COMPILED) == before


def test_what_must_be_compiled_is_seen():
    before = len(COMPILED)
    run("descent", [0, 1])
    assert len(COMPILED) > before


@pytest.mark.parametrize("name", [name for name in DYNAMICS if name not in (*SAMPLED, "descent on data", "sphere")])
def test_rotated_and_renumbered_networks_learn_alike(name):
    """Of SGD only the law is the same, and data are drawn on the axes of input space."""
    turn, order = ortho_group.rvs(DIM, random_state=3), [1, 0]
    first = np.pad(GIVEN.student.first, ((0, 0), (0, DIM - 3)))[order] @ turn
    teacher = tt.TwoLayer("erf", first=np.eye(1, DIM) @ turn)
    plain, other = (
        run(name, problem=GIVEN),
        run(name, problem=tt.Problem(tt.Gaussian(DIM), teacher, tt.TwoLayer("erf", first=first))),
    )
    slack = max(DYNAMICS[name].alone, 1e-13)
    np.testing.assert_allclose(plain.loss, other.loss, atol=slack)
    np.testing.assert_allclose(plain.overlap.values[:, :, order], other.overlap.values, atol=slack)
    gram = plain.overlap_ss.values[:, :, order][..., order]
    np.testing.assert_allclose(gram, other.overlap_ss.values, atol=slack)


@pytest.mark.parametrize("name", [name for name in DYNAMICS if name.startswith("flow")])
def test_all_solvers_find_one_flow(name):
    """Each step is good to 1e-8, and there are some tens of them."""
    assert apart(whole(name), whole("flow, stiff")) < 1e-6


@pytest.mark.parametrize("name", STEPPED)
def test_descent_tends_to_flow_at_first_order(name):
    """The error halves with the step; the next order is of relative size of the step, 0.02."""
    limit = run("flow, explicit", **DYNAMICS[name].limit).last("overlap_ss").values
    errors = [np.abs(run(name, step=step).last("overlap_ss").values - limit).max() for step in (0.02, 0.01, 0.005)]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 1.0, atol=0.1)


@pytest.mark.parametrize("name", SAMPLED)
def test_the_mean_of_sgd_with_small_steps_is_the_flow(name):
    """Overlaps of two units with the teacher, mean of 64 seeds: within 4.5 standard errors (false alarms 5e-5 per row).

    The difference of order of the step is below half a standard error.
    """
    found = run(name, problem=GIVEN).last("overlap").values[:, :, 0]
    flow = run("flow, explicit", problem=GIVEN, time=0.25).overlap.values[0, :, :, 0]
    error = found.std(0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(0) - flow[-1]) < 4.5 * error)
    # Flow at twice the speed would be seen.
    assert np.all(np.abs(flow[-1] - flow[0]) > 9 * error)
