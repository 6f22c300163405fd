"""Several outputs under every verb: a network with one output, written along a direction of two, does the same."""

import numpy as np
import pytest
from tables import DYNAMICS

import tutelage as tt

ALONG = np.array([[0.6, -0.8]])
FIRST = np.array([[0.5, 0.1, -0.3], [-0.2, 0.4, 0.2]])
SECOND = np.array([[0.7], [-0.4]])


def problem(outputs):
    """`outputs` is 1, or 2: the same functions, along `ALONG`."""
    along = ALONG if outputs == 2 else np.ones((1, 1))
    teacher = tt.TwoLayer("erf", first=[[1.0, 0.0], [0.3, 0.9]], second=np.array([[1.0], [0.5]]) @ along)
    return tt.Problem(tt.Gaussian(30), teacher, tt.TwoLayer("erf", first=FIRST, second=SECOND @ along))


@pytest.mark.parametrize("name", ["descent", "heavy ball", "flow, explicit", "sgd", "descent on data"])
def test_two_outputs_are_one_along_a_direction(name):
    """To rounding, which the steps of a flow pass on up to its tolerance of 1e-8; SGD adds up its batches alike."""
    row = DYNAMICS[name]
    record = tt.Record(8, observables=("loss", "overlap", "second"))
    one, two = (row.move(problem(outputs), [0], record=record) for outputs in (1, 2))
    slack = 1e-7 if name.startswith("flow") else 1e-11
    np.testing.assert_allclose(two.loss, one.loss, rtol=slack)
    np.testing.assert_allclose(two.overlap, one.overlap, atol=slack)
    np.testing.assert_allclose(two.second, np.asarray(one.second) @ ALONG, atol=slack)
    assert two.second.sizes["output"] == 2


def test_two_outputs_are_certified_and_noisy_labels_are_drawn_for_each():
    run = tt.descend(problem(2), step=0.05, steps=20, certify=True)
    assert run.certificate.ok, run.certificate.sentence
    student, teacher = problem(2).student, problem(2).teacher
    noisy = tt.sgd(tt.Problem(tt.Gaussian(30), teacher, student, noise=0.5), step=0.01, steps=20, batch=4)
    assert np.isfinite(noisy.loss).all()
    # Along ALONG there is a signal; across it only noise, which moves the outgoing weights of that output.
    across = np.asarray(noisy.last("second"))[0] @ np.array([0.8, 0.6])
    assert 0 < np.abs(across).max() < 0.2
