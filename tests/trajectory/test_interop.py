"""A run for other tools: a table, a file, and phases by one call."""

import numpy as np
import pytest

import tutelage as tt
from tutelage.analysis import Milestone, milestones


@pytest.fixture(scope="module")
def run():
    """A linear unit from 1e-3: its overlap is `1 - exp(-t)`, its loss rests at 1/2 and then falls as `exp(-2 t)`."""
    student = tt.TwoLayer("linear", first=[[0.0, 1e-3]], second=[1.0], trains=("first",))
    problem = tt.Problem(tt.Gaussian(100), tt.TwoLayer("linear", first=[[1.0]]), student)
    return tt.flow(problem, until=10.0, seeds=2, record=tt.Record(100, observables=("loss", "overlap")))


def test_phases_are_those_of_the_loss(run):
    found = run.with_phases()
    assert run.phases == () and [(phase.name, phase.seed) for phase in found.phases] == [
        ("plateau", 0), ("linear convergence", 0), ("plateau", 1), ("linear convergence", 1)
    ]  # fmt: skip
    fit = found.phases[1].fit
    assert fit is not None and fit.slope == pytest.approx(-2.0, rel=1e-3)
    assert "phases" in found.dataset.attrs


def test_a_detector_of_ones_own(run):
    half = milestones([Milestone("half", lambda one: one["overlap"].values[:, 0, 0] >= 0.5)])
    phases = run.with_phases(half).phases
    assert [phase.name for phase in phases] == ["half", "half"]
    assert 0 <= phases[0].end - np.log(2) <= phases[0].uncertainty


def test_a_table_has_a_row_for_each_seed_and_time(run):
    frame = run.to_dataframe()
    assert len(frame) == 2 * run.dataset.sizes["time"]
    np.testing.assert_array_equal(frame["overlap[student=0,teacher=0]"], run.overlap.values.ravel())


def test_a_file_has_the_dataset(run, tmp_path):
    run.to_netcdf(tmp_path / "run.nc")
    assert tt.load(tmp_path / "run.nc").dataset.equals(run.dataset)
