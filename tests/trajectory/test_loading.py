"""A run from its file: all that it had."""

import jax
import numpy as np
import pytest
import xarray as xr

import tutelage as tt
from tutelage.trajectory.dataset import save

PROBLEM = tt.Problem(
    inputs=tt.Gaussian(10**6),
    teacher=tt.TwoLayer("linear", first=[[1.0]]),
    student=tt.TwoLayer("linear", first=tt.GaussianRows(1e-3), width=1, trains=("first",)),
)
MOVES = tt.Flow(until=20.0)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    run = tt.run(PROBLEM, MOVES, seeds=2, certify=True).with_phases()
    run.save(path)
    return run, path


def same(one, other) -> bool:
    return all(np.array_equal(*pair) for pair in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_a_file_has_what_the_run_had(kept):
    run, path = kept
    read = tt.load(path)
    assert isinstance(read, tt.Run)
    xr.testing.assert_equal(read.dataset, run.dataset)
    assert read.last("loss").equals(run.last("loss")) and read.stopped == run.stopped
    assert read.phases == run.phases and read.certificate.records() == run.certificate.records()
    assert isinstance(read.final, tt.Weights) and same(read.final, run.final)
    assert read.seconds == run.seconds


def test_with_its_problem_it_has_its_oracle(kept):
    run, path = kept
    read = tt.load(path, problem=PROBLEM, dynamics=MOVES)
    assert same((read.start, read.teacher), (run.start, run.teacher))
    one = jax.tree.map(lambda leaf: leaf[0], read.final)
    assert float(read.oracle.loss(one)) == float(run.oracle.loss(one))
    more = tt.go_on(read, tt.Stage("more", tt.Flow(until=1.0)))
    assert np.array_equal(more.loss[:, 0], run.last("loss"))


def test_without_it_that_is_said(kept):
    read = tt.load(kept[1])
    with pytest.raises(tt.BadInput, match="load it with problem= and dynamics="):
        _ = read.oracle
    with pytest.raises(tt.BadInput, match="load it with problem= and dynamics="):
        _ = read.problem


def test_another_problem_or_dynamics_is_refused(kept):
    other = tt.Problem(tt.Gaussian(10**5), PROBLEM.teacher, PROBLEM.student)
    with pytest.raises(tt.BadInput, match="of a run with another problem"):
        tt.load(kept[1], problem=other, dynamics=MOVES)
    with pytest.raises(tt.BadInput, match="of a run with another dynamics"):
        tt.load(kept[1], problem=PROBLEM, dynamics=tt.Flow(until=21.0))
    with pytest.raises(tt.BadInput, match="pass both, or neither"):
        tt.load(kept[1], problem=PROBLEM)


def test_a_run_that_was_handed_its_start_is_not_prepared_anew(kept, tmp_path):
    run, _ = kept
    tt.go_on(run, tt.Stage("more", MOVES)).save(tmp_path / "more.nc")
    with pytest.raises(tt.BadInput, match="began from a start of its own"):
        tt.load(tmp_path / "more.nc", problem=PROBLEM, dynamics=MOVES)


def test_stages_are_read_too(tmp_path):
    run = tt.run(PROBLEM, [tt.Stage("a", tt.Descent(0.5, 10)), tt.Stage("b", tt.Flow(1.0))], seeds=2)
    run.save(tmp_path / "run.nc")
    read = tt.load(tmp_path / "run.nc")
    assert list(read.stages) == ["a", "b"] and same(read.stages["a"].final, run.stages["a"].final)
    xr.testing.assert_equal(read.dataset, run.dataset)


def test_what_is_no_run_is_told(tmp_path):
    save(xr.Dataset({"loss": ("time", [0.5, 0.25])}), tmp_path / "other.nc")
    with pytest.raises(tt.BadInput, match="not the file of a run"):
        tt.load(tmp_path / "other.nc")
    assert tt.load(tmp_path / "other.nc", tree=True).to_dataset().loss.size == 2
