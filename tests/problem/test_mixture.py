"""Mixtures of experts as input: laws of their first weights, and one sentence for everything that cannot be used."""

import re

import numpy as np
import pytest
from scipy import stats

import tutelage as tt
from tutelage._errors import BadInput
from tutelage.problem.frame import stream
from tutelage.problem.initial import agreeing_signs

KINDS = ("iid", "unit", "orthonormal", "flipped")
TEACHER = tt.Mixture(routers=np.eye(1, 2), experts=np.eye(2)[1:])


def start(kind, dim, width, seed=0, **options):
    problem = tt.Problem(tt.Gaussian(dim), TEACHER, tt.Mixture(start=tt.MixtureRows(kind), width=width))
    return np.asarray(problem.begin(seed, **options).student.first)


def plain(kind, width, dim, seed):
    """Routers and experts in all coordinates, from iid Gaussian vectors, as one writes it down."""
    return tt.MixtureRows(kind).rows(stream(seed, 0).standard_normal((2 * width, dim)), np.zeros((0, dim)), dim)


@pytest.mark.parametrize("dim", [14, 15, 10**3, 10**12])
@pytest.mark.parametrize("kind", KINDS)
def test_routers_are_orthogonal_to_their_experts(kind, dim):
    routers, experts = np.split(start(kind, dim, 6), 2)
    np.testing.assert_allclose(np.sum(routers * experts, axis=1), 0, atol=1e-14)


@pytest.mark.parametrize("kind", ["unit", "orthonormal"])
def test_norms_are_one(kind):
    np.testing.assert_allclose(np.linalg.norm(start(kind, 40, 5), axis=1), 1, rtol=1e-14)


def test_orthonormal_and_nearest():
    """Loewdin: orthonormal, and the nearest such rows: for the nearest, `rows @ given.T` is symmetric and positive."""
    given, found = start("iid", 40, 5), start("orthonormal", 40, 5)
    np.testing.assert_allclose(found @ found.T, np.eye(10), atol=1e-14)
    polar = found @ given.T
    np.testing.assert_allclose(polar, polar.T, atol=1e-14)
    assert np.linalg.eigvalsh(polar).min() > 0


def test_orthonormal_keeps_overlaps_to_leading_order():
    """With anything else they change by a part of the order of the overlaps removed, `sqrt(10 / dim)` here."""
    given, found = start("unit", 10**8, 5), start("orthonormal", 10**8, 5)
    np.testing.assert_allclose(found[:, :2], given[:, :2], rtol=0, atol=10 / 10**8)


def test_flips_make_experts_agree():
    """Signs only; each flip raises the sum of overlaps, and at the end no single flip would."""
    given, found = (np.split(start(kind, 200, 12), 2) for kind in ("iid", "flipped"))
    np.testing.assert_array_equal(found[0], given[0])
    signs = np.sum(found[1] * given[1], axis=1) / np.sum(given[1] ** 2, axis=1)
    np.testing.assert_allclose(np.abs(signs), 1, rtol=1e-14)
    before, after = (experts @ experts.T for experts in (given[1], found[1]))
    assert after.sum() > before.sum()
    assert np.all(after.sum(1) - np.diag(after) >= -1e-14)


def test_flips_of_a_known_case():
    gram = np.array([[1.0, -0.5, 0.2], [-0.5, 1.0, -0.3], [0.2, -0.3, 1.0]])
    assert (agreeing_signs(gram)[0] * agreeing_signs(gram)).tolist() == [1, -1, 1]
    assert agreeing_signs(np.ones((1, 1))).tolist() == [1]


LEVEL = 1e-4  # false-alarm rate of one test of a law, shared out among its quantities; seeds are fixed
DRAWS, WIDTH = 2000, 2


@pytest.mark.parametrize(("kind", "dim"), [("iid", 7), ("iid", 5), ("unit", 7), ("orthonormal", 7), ("flipped", 7)])
def test_the_law_in_the_frame_is_that_of_vectors(kind, dim):
    """All inner products among students and with teachers, by Kolmogorov-Smirnov tests of 2000 draws each."""
    few = quantities(np.stack([start(kind, dim, WIDTH, seed) for seed in range(DRAWS)]))
    all_ = quantities(np.stack([plain(kind, WIDTH, dim, seed) for seed in range(DRAWS, 2 * DRAWS)]))
    varied = [i for i in range(few.shape[1]) if np.ptp(few[:, i]) > 1e-9]
    p = len(varied) * min(stats.ks_2samp(few[:, i], all_[:, i]).pvalue for i in varied)
    assert p > LEVEL
    longer = quantities(np.stack([1.2 * plain(kind, WIDTH, dim, seed) for seed in range(DRAWS)]))
    assert min(stats.ks_2samp(few[:, i], longer[:, i]).pvalue for i in varied) < LEVEL / len(varied)


def quantities(first):
    gram = first @ first.transpose(0, 2, 1)
    return np.concatenate([first[:, :, :2].reshape(len(first), -1), gram[:, *np.triu_indices(gram.shape[1])]], axis=1)


def test_iid_moments():
    """`E|w|^2 = 1` and `E|v|^2 = 1 - 1/dim`: a router has lost a direction. Five standard errors, 1e-6."""
    squares = np.stack([np.sum(plain("iid", 1, 4, seed) ** 2, axis=1) for seed in range(4000)])
    errors = 5 * squares.std(0) / np.sqrt(4000)
    np.testing.assert_array_less(np.abs(squares.mean(0) - [0.75, 1.0]), errors)


ONE = {"routers": [[1.0, 0.0]], "experts": [[0.0, 1.0]]}
BAD = {
    "a router without expert": (lambda: tt.Mixture(routers=[[1.0]]), "pass both routers and experts"),
    "an expert without router": (lambda: tt.Mixture(experts=[[1.0]], width=1), "pass both routers and experts"),
    "vectors and a law": (lambda: tt.Mixture(**ONE, start=tt.MixtureRows()), "or a law of rows as start with width"),
    "nothing": (lambda: tt.Mixture(), "width is None, but without routers a number of units was expected"),
    "width 0": (lambda: tt.Mixture(width=0), "width is 0, but a whole number of at least 1"),
    "a law that is none": (lambda: tt.Mixture(start="iid", width=2), "start is 'iid', but a law of rows was expected"),
    "numbers": (lambda: tt.Mixture(routers=[[1.0]], experts=[[1.0], [2.0]]), "there are 1 routers and 2 experts"),
    "width differs": (lambda: tt.Mixture(**ONE, width=3), "width is 3 but there are 1 routers; leave width out"),
    "a zero vector": (lambda: tt.Mixture(routers=[[0.0]], experts=[[1.0]]), "is the zero vector"),
    "not a matrix": (lambda: tt.Mixture(routers=[1.0], experts=[[1.0]]), r"routers has shape (1,)"),
    "not numbers": (lambda: tt.Mixture(routers=[["a"]], experts=[[1.0]]), "routers could not be read as numbers"),
    "not finite": (lambda: tt.Mixture(routers=[[1.0]], experts=[[np.nan]]), "experts holds a value that is not finite"),
    "a kink": (lambda: tt.Mixture("relu", width=1), "the gate 'relu' has a kink, but a smooth one was expected"),
    "no such gate": (lambda: tt.Mixture("sigmoyd", width=1), "did you mean 'sigmoid'?"),
    "a gate that is a number": (lambda: tt.Mixture(3, width=1), "An activation is 3"),
    "half a degree": (lambda: tt.Mixture(degree=2.5, width=1), "degree is 2.5, but a whole number from 0 to 20"),
    "a negative degree": (lambda: tt.Mixture(degree=-1, width=1), "degree is -1, but a whole number"),
    "a degree that is a truth value": (lambda: tt.Mixture(degree=True, width=1), "degree is True"),
    "a high degree": (lambda: tt.Mixture(degree=21, width=1), "degree is 21"),
    "outputs": (lambda: tt.Mixture(width=2, second=[1.0]), "Mixture: second has shape (1,) but width is 2"),
    "outputs by name": (lambda: tt.Mixture(width=2, second="one"), "Mixture: second is 'one'"),
    "parts": (lambda: tt.Mixture(width=2, trains=("gates",)), "trains names ['gates'], but the parts are"),
    "rates": (lambda: tt.Mixture(width=2).rates({"first": 2.0}), "Unknown part of a mixture 'first'"),
    "kind of rows": (lambda: tt.MixtureRows("idd"), "did you mean 'iid'?"),
    "two dimensions": (lambda: start("iid", 2, 1), "dim is 2, but at least 3 was expected"),
    "no room": (lambda: start("orthonormal", 7, 4), "8 rows cannot be orthogonal in dim 7"),
    "an odd number of rows": (
        lambda: tt.MixtureRows().rows(np.ones((3, 5)), np.zeros((0, 5)), 5),
        "3 rows cannot be as many routers as experts",
    ),
    "two kinds of network": (
        lambda: tt.Problem(tt.Gaussian(5), TEACHER, tt.TwoLayer("erf", first=np.eye(2))),
        "the teacher is a Mixture and the student a TwoLayer; both must be of one kind",
    ),
    "numbers of outputs": (
        lambda: tt.Problem(tt.Gaussian(5), TEACHER, tt.Mixture(width=2, outputs=2)),
        "the teacher has 1 outputs and the student 2",
    ),
    "a random teacher": (
        lambda: tt.Problem(tt.Gaussian(5), tt.Mixture(width=2), tt.Mixture(width=2)),
        "the teacher's weights must be given as arrays",
    ),
    "noise": (lambda: tt.Problem(tt.Gaussian(5), TEACHER, TEACHER, noise=-1.0), "noise is -1.0"),
    "too small a space": (lambda: tt.Problem(tt.Gaussian(1), TEACHER, TEACHER).begin(0), "dim is 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_sentence(case):
    call, words = BAD[case]
    with pytest.raises(BadInput, match=re.escape(words)) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_what_trains_and_how_fast():
    """Factors a row: routers, then experts; a part that does not train stays, whatever its rate."""
    student = tt.Mixture(width=2, trains=("experts", "second"))
    rates = student.rates({"experts": 3.0, "routers": 5.0})
    assert rates.first.tolist() == [[0.0], [0.0], [3.0], [3.0]] and float(rates.second) == 1.0
    assert student.layers == ("first", "second")
    assert tt.Mixture(width=2, trains=("second",)).layers == ("second",)
    assert tt.Mixture(width=2, trains=("routers",)).layers == ("first",)


def test_given_vectors_may_have_any_number_of_columns():
    mixture = tt.Mixture(routers=[[1.0]], experts=[[0.0, 0.0, 2.0]], width=1)
    assert mixture.first.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
    assert (mixture.rows, mixture.width, mixture.outputs) == (2, 1, 1)
