"""Students and teachers that jump: what can be learned from them, and what samples cannot teach."""

import numpy as np
import pytest

import tutelage as tt
from tutelage._errors import BadInput


def test_a_step_teacher_is_learned_by_steps_and_by_smooth_units():
    """A flow of the direction: `K = (2/pi) arcsin(rho)` pulls with strength 2/pi, so the angle is gone at a known time.

    With a fixed outgoing weight 1 and a row of length r that keeps its length, `d theta/dt = -(2/pi)/r^2`.
    """
    student = tt.TwoLayer("sign", first=[[np.cos(1.0), np.sin(1.0)]], trains=("first",))
    problem = tt.Problem(tt.Gaussian(10**9), tt.TwoLayer("sign", first=[[1.0]]), student)
    run = tt.flow(problem, until=1.0)
    assert float(run.last("overlap_angle")[0, 0, 0]) == pytest.approx(1 - 2 / np.pi, abs=1e-7)
    smooth = tt.TwoLayer("tanh", first=tt.GaussianRows(1e-5), width=1)
    run = tt.flow(tt.Problem(tt.Gaussian(10**9), tt.TwoLayer("step", first=[[1.0]]), smooth), until=30.0)
    assert float(run.last("overlap_cos")[0, 0, 0]) > 0.999


@pytest.mark.parametrize("verb", ["sgd", "data"])
def test_samples_have_no_slope_to_follow(verb):
    student = tt.TwoLayer("step", first=tt.GaussianRows(0.1), width=2)
    problem = tt.Problem(tt.Gaussian(20), tt.TwoLayer("relu", first=[[1.0]]), student)
    with pytest.raises(BadInput, match="slope of 0"):
        tt.sgd(problem, step=0.1, steps=3, batch=4) if verb == "sgd" else tt.descend(
            problem, step=0.1, steps=3, data=30
        )
    only_second = tt.TwoLayer("step", first=tt.GaussianRows(0.1), width=2, trains=("second",))
    problem = tt.Problem(tt.Gaussian(20), tt.TwoLayer("relu", first=[[1.0]]), only_second)
    run = (
        tt.sgd(problem, step=0.1, steps=3, batch=4)
        if verb == "sgd"
        else tt.descend(problem, step=0.1, steps=3, data=30)
    )
    assert np.isfinite(run.loss).all()


def test_a_run_of_steps_certifies_itself():
    """In long arithmetic; by samples, of the loss, since single ones have no slope; and the Hessian by differences."""
    student = tt.TwoLayer("step", first=tt.GaussianRows(0.1), width=2)
    problem = tt.Problem(tt.Gaussian(50), tt.TwoLayer("relu", first=[[1.0]]), student)
    certificate = tt.descend(problem, step=0.01, steps=50, seeds=2, certify=True).certificate
    assert certificate.ok and {check.route.split()[-1] for check in certificate.rows} >= {
        "samples",
        "differences",
        "digits",
    }
