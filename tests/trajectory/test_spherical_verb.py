"""`tt.spherical`: names on every axis, resumed runs, one sentence for bad input."""

import numpy as np
import pytest

import tutelage as tt
from tutelage import _interrupt
from tutelage.problem.clusters import antipodal

TASKS = tt.Tasks(local=[{4: 1.0}, {4: -1.0}], shared={4: 1.0}, interference=(1.0, -1.0))
PROBLEM = tt.Clustered(antipodal(8, 3.0), TASKS)
ASKED = {"samples": 30_000, "step": 1e-3, "record": 4}


@pytest.fixture(scope="module")
def run():
    return tt.spherical(PROBLEM, tt.Experts(2, 3), seeds=[3, 5], **ASKED)


def test_the_dataset_has_names_and_norms(run):
    assert run.overlap.dims == ("seed", "time", "expert", "unit", "row")
    assert run.overlap["row"].values.tolist() == ["w1", "w2", "wg", "v1", "v2"]
    assert run.seed.values.tolist() == [3, 5]
    assert run.time.values.tolist() == [0, 8192, 16384, 24576, 30_000]
    assert np.allclose(np.linalg.norm(run.final.first, axis=-1), 1, atol=1e-13)
    assert np.array_equal(run.overlap.values[:, -1, ..., :3], np.asarray(run.final.first)[..., :3])
    assert np.array_equal(run.best.values, np.abs(run.overlap.values[..., :3]).max(-2))
    assert run.summary()["seeds"] == 2


def test_each_seed_is_its_own(run):
    alone = tt.spherical(PROBLEM, tt.Experts(2, 3), seeds=[5], **ASKED)
    assert np.array_equal(alone.overlap.values[0], run.overlap.values[1])
    assert not np.array_equal(run.overlap.values[0], run.overlap.values[1])


def test_a_stopped_run_is_taken_up_again(run, tmp_path):
    path = tmp_path / "kept.npz"
    with _interrupt.gentle_signals():
        _interrupt.ask_to_stop()
        with pytest.raises(_interrupt.Interrupted):
            tt.spherical(PROBLEM, tt.Experts(2, 3), seeds=[3, 5], checkpoint=path, **ASKED)
    assert path.is_file()
    again = tt.spherical(PROBLEM, tt.Experts(2, 3), seeds=[3, 5], checkpoint=path, **ASKED)
    assert np.array_equal(again.overlap.values, run.overlap.values)
    with pytest.raises(tt.BadInput, match="different run"):
        tt.spherical(PROBLEM, tt.Experts(2, 3), seeds=[3, 5], checkpoint=path, **ASKED | {"step": 2e-3})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step": 0.0}, "above 0"),
        ({"samples": 0}, "samples is 0"),
        ({"batch": 5}, "divisor"),
        ({"theta": np.zeros((3, 8)), "router": tt.Top1()}, "experts, dim"),
        ({"router": tt.Top1()}, "router needs theta"),
    ],
)
def test_bad_input_is_one_sentence(change, said):
    with pytest.raises(tt.BadInput, match=said):
        tt.spherical(PROBLEM, tt.Experts(2, 3), **ASKED | change)
