"""The short form of the soak test (`make soak`): a few kills, and every result equal to its reference."""

from pathlib import Path

import pytest

from benchmarks.soak import soak


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds worker processes through /proc")
def test_results_of_killed_jobs_are_those_of_jobs_left_alone(tmp_path):
    facts = soak(["descent", "larger sweep"], 6, tmp_path, seed=1)
    assert sum(facts["kills"].values()) == 6 and facts["differences"] == 0
    # In the second store of the references, and in at least one that was disturbed.
    assert facts["results_compared"] >= 4
