"""Weights trained elsewhere: a loop in NumPy, seen by the laboratory."""

import numpy as np
import pytest

import tutelage as tt

DIM, STEP, STEPS = 6, 0.2, 30


def problem(width: int = 2) -> tt.Problem:
    student = tt.TwoLayer("linear", first=tt.GaussianRows(0.3), width=width)
    return tt.Problem(tt.Gaussian(DIM), tt.TwoLayer("linear", first=[[1.0, 0.5]]), student)


def trained(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Descent of a linear network by hand: its loss is half the square of `v.w - w*`."""
    draw, target = np.random.default_rng(seed), np.pad([1.0, 0.5], (0, DIM - 2))
    first, second, path = draw.normal(size=(2, DIM)), draw.normal(size=(2, 1)), []
    for _ in range(STEPS):
        path.append((first, second))
        error = second[:, 0] @ first - target
        first, second = first - STEP * second * error[None], second - STEP * (first @ error)[:, None]
    return tuple(np.stack(each) for each in zip(*path, strict=True))


class Tensor:
    """As one of PyTorch that takes part in a gradient: no array until it is detached."""

    def __init__(self, values):
        self.values = values

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self):
        return self

    def cpu(self):
        return self.values


def test_losses_overlaps_and_times_are_those_of_the_loop(tmp_path):
    paths = [trained(seed) for seed in range(3)]
    first, second = (np.stack(each) for each in zip(*paths, strict=True))
    seen = tt.observe(problem(), Tensor(first), Tensor(second), times=STEP * np.arange(STEPS), store=tmp_path)
    errors = np.einsum("stuo,stud->std", second, first) - np.pad([1.0, 0.5], (0, DIM - 2))
    np.testing.assert_allclose(seen.loss, 0.5 * np.sum(errors**2, -1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(seen.overlap.isel(teacher=0), first @ np.pad([1.0, 0.5], (0, DIM - 2)), atol=1e-12)
    np.testing.assert_allclose(seen.time, STEP * np.arange(STEPS))
    assert not tt.observe(problem(), first, second, times=STEP * np.arange(STEPS), store=tmp_path).computed
    assert tt.observe(problem(), first + 1e-9, second, times=STEP * np.arange(STEPS), store=tmp_path).computed
    assert seen.with_phases().phases and float(tt.at_most(seen.last("loss"), 1.0).measured) < 1.0


def test_a_fixed_layer_is_that_of_the_problem():
    student = tt.TwoLayer("linear", first=tt.GaussianRows(0.3), second=[[2.0]], width=1, trains=("first",))
    fixed = tt.Problem(tt.Gaussian(2), tt.TwoLayer("linear", first=[[1.0, 0.0]]), student)
    seen = tt.observe(fixed, [[[0.0, 0.0]], [[0.5, 0.0]]])
    np.testing.assert_allclose(seen.loss.squeeze(), [0.5, 0.0], atol=1e-15)


def test_outgoing_weights_that_nobody_knows_are_asked_for():
    student = tt.TwoLayer("linear", first=tt.GaussianRows(0.3), second=tt.GaussianEntries(1.0), width=1)
    drawn = tt.Problem(tt.Gaussian(2), tt.TwoLayer("linear", first=[[1.0, 0.0]]), student)
    with pytest.raises(tt.BadInput, match="outgoing weights are neither given"):
        tt.observe(drawn, [[[0.0, 0.0]]])


@pytest.mark.parametrize(
    ("first", "second", "times", "said"),
    [
        (np.ones((3, 2)), None, None, "Given: first is"),
        (np.ones((3, 3, DIM)), None, None, "first has shape"),
        (np.ones((3, 2, DIM + 1)), np.ones((3, 2, 1)), None, "first has shape"),
        (np.ones((3, 2, DIM)), np.ones((2, 2, 1)), None, "second has shape"),
        (np.ones((3, 2, DIM)), np.ones((3, 2, 1)), [0, 1], "3 places and there are 2 times"),
        (np.ones((3, 2, DIM)), np.ones((3, 2, 1)), [0, 2, 1], "increasing"),
    ],
)
def test_what_cannot_be_a_path_is_refused(first, second, times, said):
    with pytest.raises(tt.BadInput, match=said):
        tt.observe(problem(), first, second, times=times)
