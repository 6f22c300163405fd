"""Definition 1 as observables of a run: against the index sets of `induction` on the weights of the same run."""

import numpy as np
import pytest

import tutelage as tt
from tutelage.papers.soft_moe.checks.induction import inductive
from tutelage.papers.soft_moe.induction import BETA_6, Course
from tutelage.papers.soft_moe.observed import ERRORS, induction
from tutelage.papers.soft_moe.settings import SoftMoeSettings

SETTINGS = {"dim": 10**7, "teachers": 2, "students": 6, "until": 900.0}
NAMES = {
    **{f"eps_{n}": word for n, word in zip(range(1, 6), ("one", "two", "three", "four", "five"), strict=True)},
    **{"eps_forward": "forward", "eps_among": "among", "eps_backward": "backward_1", "eps_idle": "backward_3"},
}


@pytest.fixture(scope="module", params=["iid", "orthonormal"])
def both(request):
    """A run with its errors, and its courses made of recorded weights."""
    settings = SoftMoeSettings(**SETTINGS, init=request.param)
    record = tt.Record(60, own=ERRORS, weights=True)
    run = tt.papers.soft_moe(**settings.model_dump(exclude_none=True)).flow(seeds=2, record=record)
    data, teacher = run.dataset, np.asarray(run.teacher.first)
    time, rows = data["time"].values, data["weights_first"].values
    crossed = data["expert_time"].values, data["router_time"].values
    return run, [Course(settings, time, rows[n], teacher, crossed[0][n], crossed[1][n]) for n in range(2)]


def test_errors_are_those_of_the_index_sets(both):
    run, courses = both
    for seed, course in enumerate(courses):
        for level in course.levels:
            at = run.dataset.isel(seed=seed, level=level - 1)
            for name, attribute in NAMES.items():
                expected = getattr(course.errors(level), attribute)
                np.testing.assert_allclose(at[name], expected, rtol=1e-9, atol=1e-14, err_msg=name)
            for name, expected in zip(("gamma_router", "gamma_expert"), course.own(level), strict=True):
                np.testing.assert_allclose(at[name], expected, rtol=1e-9, atol=1e-14)


def test_t_c_and_condition_2_are_those_of_the_claims(both):
    run, courses = both
    found = induction(run)
    for seed, course in enumerate(courses):
        assert found.attrs["bound"] == pytest.approx(course.bound) and found.attrs["beta_6"] == BETA_6
        for level in course.levels:
            at = found.isel(seed=seed, level=level - 1)
            np.testing.assert_allclose(at["sum_1"], course.errors(level).sum_1, rtol=1e-9)
            np.testing.assert_allclose(at["sum_2"], course.errors(level).sum_2, rtol=1e-9)
            assert np.nan_to_num(float(at["t_c"]), nan=np.inf) == course.t_c(level)
        assert found["condition_2"].values[seed, 0] and found["condition_2"].values[seed, 1] == inductive(course)


def test_one_large_error_is_seen_from_its_record_on(both):
    run, _ = both
    data = run.dataset.copy(deep=True)
    data["eps_3"][:, 5] = 1.0
    found = induction(tt.Run(data, asked=run.asked))
    assert (found["t_c"] <= data["time"][5]).all() and (found["sum_2"][:, 5:] >= 1).all()
    assert (found["sum_1"][:, 5] < 1).all()


def test_a_run_without_errors_is_refused():
    run = tt.papers.soft_moe(dim=12, teachers=1, students=2, until=0.3).flow(record=2)
    with pytest.raises(tt.BadInput, match="own=ERRORS"):
        induction(run)
