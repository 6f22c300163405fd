"""Proved points beside eigenvalues of the oracle's Hessian; what cannot be proved is refused, and not taken as true."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, arb_mat

import tutelage as tt
from tutelage.rigour import points, spectra
from tutelage.rigour.gauge import null_space
from tutelage.rigour.loss import Loss
from tutelage.rigour.networks import networks_of
from tutelage.rigour.spectra import inertia

pytestmark = pytest.mark.usefixtures("quickly_compiled")
ONLY_FIRST = ("first",)
# A saddle of two he3 students with an erf teacher, up to a rotation of the second and third coordinate.
TURNED = [
    [-0.11130087237, -0.046054876184, 0.043627256892],
    [-0.11130087237, 0.046054876184, -0.043627256892],
]
FLAT = [[row[0], sign * np.hypot(*row[1:])] for row, sign in zip(TURNED, (1, -1), strict=True)]


def problem(student, teacher, first, target, *, dim=None, trains=ONLY_FIRST, second="ones"):
    first, target = np.array(first, float), np.array(target, float)
    return tt.Problem(
        tt.Gaussian(dim or first.shape[1]),
        tt.TwoLayer(teacher, first=target),
        tt.TwoLayer(student, first=first, second=second, trains=trains),
    )


@functools.cache
def spurious(k: int):
    """A minimum of as many relu students as orthonormal teachers that is not global, by descent in doubles."""
    first = np.eye(k)
    first[-1] = np.where(np.arange(k) == k - 1, -0.5, 0.3)
    return np.asarray(tt.descend(problem("relu", "relu", first, np.eye(k)), step=0.2, steps=4000).final.first[0])


def eigenvalues(given, first, second) -> np.ndarray:
    """Of the oracle's Hessian in all dimensions."""
    width = given.inputs.dim

    def wide(rows):
        return jnp.asarray(np.pad(rows, ((0, 0), (0, width - np.shape(rows)[1]))))

    target = tt.Weights(wide(given.teacher.first), jnp.asarray(given.teacher.second))
    oracle = tt.PopulationOracle(
        student=given.student.activation, teacher=given.teacher.activation, target=target, form="plain"
    )
    hessian = np.asarray(oracle.hessian(tt.Weights(wide(first), jnp.asarray(second))))
    units = len(second)
    begin = 0 if "second" in given.student.trains else units
    return np.linalg.eigvalsh(hessian[begin:, begin:])


def floats(rows):
    return np.array([[float(x) for x in row] for row in rows])


def agrees(given, **more):
    """The proved index and bound beside the eigenvalues of the oracle; the number of those that are 0."""
    found = tt.prove.stationary(given, **more)
    sizes = eigenvalues(given, floats(found.middle.first), floats(found.middle.second))
    still = np.abs(sizes) < 1e-9
    assert np.count_nonzero(still) == found.scalings + found.rotations
    assert found.index == np.count_nonzero(sizes[~still] < 0)
    least = sizes[~still].min()
    assert found.least < least + 1e-9 and found.least == pytest.approx(least, rel=1e-5, abs=1e-8)
    return found


def test_a_spurious_minimum_is_proved_strict_and_not_global():
    first = spurious(6)
    found = agrees(problem("relu", "relu", first, np.eye(6)))
    assert found.strict_minimum and found.loss > 0.025 and found.loss < 0.0251
    assert "a strict local minimum" in repr(found) and found.distance < 1e-6


def test_the_gradient_is_zero_there():
    first = spurious(6)
    given = problem("relu", "relu", first, np.eye(6))
    loss = Loss(networks_of(given, "test", tt.prove.stationary(given).middle.first))
    assert all(abs(x) < 1e-12 for x in loss.gradient(loss.start()).first.entries())


def test_more_coordinates_than_rows_have_count():
    """Outside the span of teachers and students the Hessian has a block for each coordinate."""
    first = spurious(6)
    given = problem("relu", "relu", first, np.eye(6), dim=8)
    assert agrees(given).strict_minimum


def test_a_saddle_has_its_index():
    found = agrees(problem("he3", "erf", FLAT, [[1.0, 0.0]]))
    assert found.index == 1 and found.rotations == 0 and not found.strict_minimum
    assert "a saddle of index 1" in repr(found)


def test_two_equal_students_at_a_point_that_is_degenerate_are_refused():
    """The Hessian has an eigenvalue 0 there, exactly."""
    with pytest.raises(tt.prove.CannotEnclose, match="isolated"):
        tt.prove.stationary(problem("erf", "erf", np.full((2, 2), 0.353553), np.eye(2)))


def test_scaling_between_layers_is_divided_out():
    first = [[1.0, 0.01], [0.0, 0.5]]
    found = agrees(problem("relu", "relu", first, np.eye(2), trains=("first", "second"), second=[1.0, 2.0]))
    assert found.scalings == 2 and found.strict_minimum and "2 scalings" in repr(found)


def test_units_that_are_not_homogeneous_have_no_such_gauge():
    found = agrees(problem("erf", "erf", np.eye(2) * 1.001, np.eye(2), trains=("first", "second")))
    assert found.scalings == 0 and found.strict_minimum


def test_rotations_outside_the_teachers_are_divided_out():
    teacher = [[1.0, 0.0, 0.0]]
    inside = agrees(problem("he3", "erf", TURNED, teacher))
    assert inside.rotations == 1 and inside.index == 1
    for dim in (3, 5):
        found = agrees(problem("he3", "erf", FLAT, [[1.0, 0.0]], dim=dim))
        assert found.rotations == dim - 2 and found.index >= 1
        assert found.loss.overlaps(inside.loss)


def test_roundings_outside_the_teachers_are_no_direction():
    found = agrees(problem("erf", "erf", [[1.001, 0.0, 1e-14, 0.0]], [[1.0, 0.0, 0.0, 0.0]]))
    assert found.rotations == 0 and found.strict_minimum


def test_students_within_the_teachers_span_are_not_rotated_however_coordinates_lie():
    for first in ([[0.98, 0.98, 0.0]], [[0.99, 0.98, 0.0]]):
        found = agrees(problem("erf", "erf", first, [[1.0, 1.0, 0.0]], dim=4))
        assert found.rotations == 0 and found.strict_minimum


def test_rows_with_several_outputs():
    given = tt.Problem(
        tt.Gaussian(2),
        tt.TwoLayer("relu", first=np.eye(2), second=[[1.0, 0.5], [0.25, -1.0]]),
        tt.TwoLayer("relu", first=[[1.0, 0.01], [0.0, 1.01]], second=[[1.0, 0.5], [0.25, -1.0]]),
    )
    found = tt.prove.stationary(given)
    assert found.scalings == 2 and found.strict_minimum and abs(found.loss) < 1e-25


NOT_ISOLATED = problem("relu", "relu", [[0.5, 0.0], [0.5, 0.0]], [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (NOT_ISOLATED, "isolated|cannot be decided|found near"),
        (problem("linear", "linear", np.eye(2), [[1.0, 0.0]], trains=("first", "second")), "isolated|near"),
        (problem("relu", "relu", [[5.0, 4.0], [3.0, -7.0]], np.eye(2)), "near|isolated|decided"),
    ],
)  # fmt: skip
def test_what_is_not_isolated_or_not_near_is_refused(given, words):
    with pytest.raises(tt.prove.CannotEnclose, match=words):
        tt.prove.stationary(given)


def test_the_test_of_inclusion_is_what_refuses_it(monkeypatch):
    monkeypatch.setattr(points, "inside", lambda one, other: True)
    monkeypatch.setattr(points, "inertia", lambda matrix: spectra.Inertia(0, 1.0))
    monkeypatch.setattr(points._Point, "polished", lambda self, begin: (begin, arb_mat(2, 2)))
    assert tt.prove.stationary(NOT_ISOLATED).strict_minimum  # a planted lie, which the tests above would see


def test_a_box_that_is_too_large_is_refused():
    first = spurious(6)
    with pytest.raises(tt.prove.CannotEnclose, match="into itself|cannot be|box"):
        tt.prove.stationary(problem("relu", "relu", first, np.eye(6)), radius="0.5")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"radius": 0}, "radius"),
        ({"bits": 8}, "bits"),
        ({"weights": [[0, 0]]}, "rows|zero"),
        ({"radius": "a"}, "radius"),
    ],
)
def test_bad_input_is_one_sentence(more, words):
    with pytest.raises(tt.BadInput, match=words):
        tt.prove.stationary(problem("relu", "relu", [[1.0, 0.0]], [[1.0, 0.0]]), **more)
    with pytest.raises(tt.BadInput, match="no layer"):
        tt.prove.stationary(problem("relu", "relu", [[1.0, 0.0]], [[1.0, 0.0]], trains=()))


def test_inertia_of_random_matrices():
    draw = np.random.default_rng(0)
    for size in (1, 4, 9):
        half = draw.normal(size=(size, size))
        matrix = half + half.T
        found, sizes = inertia(arb_mat(matrix.tolist())), np.linalg.eigvalsh(matrix)
        assert found.negative == np.count_nonzero(sizes < 0)
        assert found.least < sizes[0] and found.least == pytest.approx(sizes[0], rel=1e-6)


@pytest.mark.parametrize("matrix", [[[1, 1], [1, 1]], [[arb(0, 1e-9), 0], [0, 1]], [[arb.nan(), 0], [0, 1]]])
def test_an_inertia_that_is_not_sure_is_refused(matrix):
    with pytest.raises((tt.prove.CannotEnclose, np.linalg.LinAlgError)):
        inertia(arb_mat(matrix))


def test_null_spaces_are_exact():
    draw = np.random.default_rng(0)
    rows = networks_of(
        problem("relu", "relu", draw.normal(size=(1, 5)), draw.normal(size=(3, 5))), "test"
    ).teacher.first
    basis = null_space(rows)
    assert len(basis) == 2
    assert all(sum(x * y for x, y in zip(row, free, strict=True)) == 0 for row in rows for free in basis)


def test_the_end_of_a_run_is_taken_as_it_is():
    given = problem("erf", "erf", np.eye(2) * 1.1, np.eye(2))
    run = tt.descend(given, step=0.5, steps=300, seeds=2)
    found = tt.prove.stationary(given, run, seed=1)
    assert found.strict_minimum and found.distance < 1e-3
    with pytest.raises(tt.BadInput, match="counts from 0"):
        tt.prove.stationary(given, run, seed=2)
