"""Numbers of runs that a sweep may ask for."""

import numpy as np
import pytest
import xarray as xr

import tutelage as tt
from tutelage.papers.cluster_moe import sweeps
from tutelage.papers.cluster_moe.result import sharply


def made(**changes):
    """Two experts, sharply routed to clusters 1 and 2, of which the second does not know the global task."""
    overlap = np.zeros((1, 2, 2, 3, 5))
    overlap[0, -1, 0] = [[0.95, 0, 0, 0, 0], [0, 0, -0.97, 0, 0], [0, 0, 0, 0, 0]]
    overlap[0, -1, 1] = [[0, -0.99, 0, 0, 0], [0, 0, 0.3, 0, 0], [0, 0, 0, 0, 0]]
    vanilla = np.zeros((1, 2, 4, 5))
    vanilla[0, -1, :, 2] = [0.01, -0.6, 0.02, 0.0]
    data = {
        "overlap": (("seed", "expert_time", "expert", "unit", "row"), overlap),
        "vanilla_overlap": (("seed", "vanilla_time", "vanilla_unit", "row"), vanilla),
        "sharp": (("seed", "expert"), np.array([[True, True]])),
        "served": (("seed", "expert"), np.array([[1, 2]])),
        "error": (("seed", "network"), np.array([[0.2, 0.8]])),
        "stop_time": ("seed", np.array([1e6])),
    }
    coords = {"seed": [0], "row": ["w1", "w2", "wg", "v1", "v2"], "cluster": [1, 2], "network": ["moe", "vanilla"]}
    return tt.Run(xr.Dataset(data | changes, coords=coords), 1.0)


def value(name, run):
    return tt.papers.cluster_moe.measure(name).measured(run).values.tolist()


def test_measures_say_what_they_say():
    run = made()
    assert value("error", run) == [0.2]
    assert value("error_ratio", run) == [0.25]
    assert value("sharp_experts", run) == [2.0]
    assert value("recovered", run) == [0.5]
    assert value("global_overlap", run) == [0.6]
    assert value("global_share", run) == [0.25]


def test_an_expert_that_is_not_sharp_does_not_count():
    run = made(sharp=(("seed", "expert"), np.array([[True, False]])))
    assert value("recovered", run) == [1.0]
    nobody = made(sharp=(("seed", "expert"), np.array([[False, False]])))
    assert np.isnan(value("recovered", nobody)[0])


def test_what_a_run_does_not_have_is_said():
    run = made()
    bare = tt.Run(run.dataset.drop_vars(["error", "vanilla_overlap"]), 1.0)
    with pytest.raises(tt.BadInput, match="second layer"):
        sweeps.error(bare)
    with pytest.raises(tt.BadInput, match="vanilla_width"):
        sweeps.global_overlap(bare)


def test_sharp_means_one_cluster_and_no_other():
    seen = np.array([[0.95, 0.95, 0.5, 0.05], [0.05, 0.95, 0.05, 0.91]])
    assert sharply(seen).tolist() == [True, False, False, True]
