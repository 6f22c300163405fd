"""Problems: what they accept, what they refuse, and where they begin."""

import numpy as np
import pytest

import tutelage as tt


def linear(rows):
    return tt.TwoLayer("linear", first=rows)


def test_given_weights_are_reduced_exactly():
    rng = np.random.default_rng(0)
    teacher, student = rng.standard_normal((2, 30)), rng.standard_normal((3, 30))
    problem = tt.Problem(
        inputs=tt.Gaussian(30), teacher=tt.TwoLayer("relu", first=teacher), student=tt.TwoLayer("relu", first=student)
    )
    start = problem.begin(0)
    rows = np.concatenate([start.teacher.first, start.student.first])
    assert rows.shape == (5, 5)
    np.testing.assert_allclose(rows @ rows.T, np.concatenate([teacher, student]) @ np.concatenate([teacher, student]).T)


def test_means_are_kept_and_shared():
    law = tt.GaussianRows(0.0, mean=((1.5,),))
    problem = tt.Problem(
        inputs=tt.Gaussian(100), teacher=linear([[1.0]]), student=tt.TwoLayer("relu", first=law, width=2)
    )
    start = problem.begin(0)
    np.testing.assert_allclose(start.student.first @ start.teacher.first.T, [[1.5], [1.5]])


def test_full_start_has_all_coordinates():
    problem = tt.Problem(
        inputs=tt.Gaussian(12),
        teacher=linear([[1.0]]),
        student=tt.TwoLayer("relu", first=tt.GaussianRows(1.0), width=2),
    )
    assert problem.begin(0, full=True).student.first.shape == (2, 12)


def test_same_seed_same_start():
    problem = tt.Problem(
        inputs=tt.Gaussian(1e6),
        teacher=linear([[1.0]]),
        student=tt.TwoLayer("relu", first=tt.SphereRows(2.0), second=tt.GaussianEntries(0.5), width=3),
    )
    one, two, other = problem.begin(4).student, problem.begin(4).student, problem.begin(5).student
    np.testing.assert_array_equal(one.first, two.first)
    assert not np.allclose(one.first, other.first)
    np.testing.assert_allclose(np.linalg.norm(one.first, axis=1), 2.0, rtol=1e-14)


REFUSED = {
    "dim is -3": lambda: tt.Gaussian(-3),
    "dim is 2.5": lambda: tt.Gaussian(2.5),
    "dim is nan": lambda: tt.Gaussian(float("nan")),
    "second has shape \\(3,\\) but width is 2": lambda: tt.TwoLayer("relu", first=np.eye(2), second=[1.0, 1.0, 1.0]),
    "row 1 of first is zero": lambda: tt.TwoLayer("relu", first=[[1.0, 0.0], [0.0, 0.0]]),
    "Unknown activation 'rellu': did you mean 'relu'": lambda: tt.TwoLayer("rellu", first=np.eye(2)),
    "width is 3 but first has 2 rows": lambda: tt.TwoLayer("relu", first=np.eye(2), width=3),
    "the number of units is open": lambda: tt.TwoLayer("relu", first=tt.GaussianRows(1.0)),
    "not finite": lambda: tt.TwoLayer("relu", first=[[np.inf]]),
    "trains names \\['third'\\]": lambda: tt.TwoLayer("relu", first=np.eye(2), trains=("third",)),
    "outputs and the student": lambda: tt.Problem(
        inputs=tt.Gaussian(4),
        teacher=linear([[1.0]]),
        student=tt.TwoLayer("relu", first=np.eye(2), second=np.ones((2, 2))),
    ),
    "noise is -1": lambda: tt.Problem(
        inputs=tt.Gaussian(4), teacher=linear([[1.0]]), student=linear([[1.0]]), noise=-1.0
    ),
    "must be given as arrays": lambda: tt.Problem(
        inputs=tt.Gaussian(4), teacher=tt.TwoLayer("relu", first=tt.GaussianRows(1.0), width=1), student=linear([[1.0]])
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_is_one_clear_sentence(message):
    with pytest.raises(tt.BadInput, match=message):
        REFUSED[message]()


def test_a_zero_row_is_fine_where_the_activation_is_smooth():
    assert tt.TwoLayer("erf", first=[[0.0, 0.0]]).width == 1


SPHERE = {"first": tt.SphereRows(0.1), "width": 3}


def test_networks_are_shown_by_what_they_are():
    shown = repr(tt.Problem(tt.Gaussian(10), linear([[1.0, 0.0]]), tt.TwoLayer("relu", **SPHERE, tied=True)))
    assert "student=TwoLayer('relu', tied=True, width=3, first=SphereRows(norm=0.1), second=<array (3, 1)>" in shown
    assert repr(tt.Mixture("probit", width=2)).startswith("Mixture('probit', degree=3, width=2, first=MixtureRows(")
    long = tt.WeakRecoveryRows(0.1, toward=tuple(map(tuple, np.eye(100).tolist())))
    assert len(repr(tt.TwoLayer("relu", first=long, width=100))) < 250


def test_networks_with_the_same_content_are_equal():
    one, two = (tt.TwoLayer("relu", first=[[1.0, 2.0]]) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert tt.Problem(tt.Gaussian(9), one, two) == tt.Problem(tt.Gaussian(9), two, one)
    assert tt.TwoLayer("relu", **SPHERE) == tt.TwoLayer(activation="relu", **SPHERE)
    assert tt.Mixture(width=2) == tt.Mixture(width=2)


@pytest.mark.parametrize(
    "other",
    [
        tt.TwoLayer("relu", first=[[1.0, 3.0]]),
        tt.TwoLayer("abs", first=[[1.0, 2.0]]),
        tt.TwoLayer("relu", first=[[1.0, 2.0]], second=[2.0]),
        tt.TwoLayer("relu", first=[[1.0, 2.0]], trains=("first",)),
        tt.TwoLayer("relu", first=[[1.0, 2.0]], tied=True),
        tt.TwoLayer("relu", first=tt.SphereRows(), width=1),
        tt.Mixture(width=1),
        "relu",
    ],
    ids=str,
)
def test_networks_with_other_content_are_not(other):
    assert tt.TwoLayer("relu", first=[[1.0, 2.0]]) != other
