"""Proved flow beside closed forms and long arithmetic; planted errors are seen, and what cannot be is refused."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat
from mpmath import acos, mp, mpf, odefun, pi, sqrt

import tutelage as tt
from tutelage.rigour import flow, tubes
from tutelage.rigour.balls import precision
from tutelage.rigour.losses import loss_of
from tutelage.rigour.networks import networks_of

Instant = tt.prove.Instant


def line(first=((0.0,),), second=(1.0,), trains=("first",)):
    """A linear student of `x`: everything is an exponential."""
    student = tt.TwoLayer("linear", first=first, second=second, trains=trains)
    return tt.Problem(tt.Gaussian(1), tt.TwoLayer("linear", first=[[1.0]]), student)


def entry(now):
    return now.first[0][0]


def exponential(found: arb, at: arb) -> bool:
    """Whether `1 - exp(-at)` may be in a ball."""
    with precision(400):
        return found.overlaps(1 - (-at).exp())


def after_two(**more) -> arb:
    return tt.prove.flow(line(), 2, watch={"w": entry}, radius=1e-25, **more)["w"][2]


def test_a_linear_student_is_an_exponential():
    found = after_two()
    assert exponential(found, arb(2)) and found.rad() < 1e-25
    with precision(200):
        assert not exponential(found, arb(2) + arb("1e-20"))


def test_layers_have_rates():
    found = after_two(rates={"first": "1/3"})
    with precision(400):
        assert exponential(found, arb(2) / 3)
    with pytest.raises(tt.BadInput, match="no layer moves"):
        after_two(rates={"first": 0})


def test_a_neuron_along_its_teacher_is_an_exponential():
    relu = tt.TwoLayer("relu", first=[[1.0]])
    problem = tt.Problem(tt.Gaussian(9), relu, tt.TwoLayer("relu", first=[[0.5]], trains=("first",)))
    found = tt.prove.flow(problem, "3", watch={"w": entry}, at=[0, "3/2", 3], radius=1e-20)["w"]
    assert found[0] == 0.5
    with precision(400):
        for at in (Fraction(3, 2), Fraction(3)):  # the loss is (w - 1)^2/4
            assert found[at].overlaps(1 - (arb(-at.numerator) / (2 * at.denominator)).exp() / 2)


def test_a_neuron_in_the_plane_is_that_of_long_arithmetic():
    relu = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    problem = tt.Problem(tt.Gaussian(2), relu, tt.TwoLayer("relu", first=[[0.25, 0.5]], trains=("first",)))
    found = tt.prove.flow(problem, 1, watch={f"w{n}": lambda now, n=n: now.first[0][n] for n in (0, 1)}, radius=1e-15)

    def velocity(t, w):
        size = sqrt(w[0] ** 2 + w[1] ** 2)
        angle, sine = acos(w[0] / size), abs(w[1]) / size
        slope = [x / 2 - sine * x / size / (2 * pi) for x in w]
        return [-(slope[0] - (pi - angle) / (2 * pi)), -slope[1]]

    with mp.workdps(30):
        expected = odefun(velocity, 0, [mpf("0.25"), mpf("0.5")])(1)
        for n in (0, 1):
            assert abs(mpf(found[f"w{n}"][1].mid().str(25, radius=False)) - expected[n]) < mpf("1e-15")


right = flow._Path.terms


def without_remainder(path, column, order):
    """The last coefficient over a box is dropped."""
    terms = right(path, column, order)
    wide = any(x.rad() > 0 for x in column.entries())
    return [*terms[:-1], arb_mat(column.nrows(), 1)] if wide else terms


def with_another_sign(path, column, order):
    return [term * (-1) ** (n == 5) for n, term in enumerate(right(path, column, order))]


def rounded(path, column, order):
    return [arb_mat([[float(x)] for x in term.entries()]) for term in right(path, column, order)]


@pytest.mark.parametrize("planted", [without_remainder, with_another_sign, rounded])
def test_a_planted_error_is_seen(planted, monkeypatch):
    monkeypatch.setattr(flow._Path, "terms", planted)
    assert not exponential(after_two(), arb(2))


def test_an_error_that_does_not_grow_is_seen(monkeypatch):
    """Near the top of a hill: two exact starts that are 2^-40 apart, of which one is in the other's first ball."""
    problem = line([[1 / 8]], [1 / 8], ("first", "second"))
    loss = loss_of(networks_of(problem, "test"), moving=True)

    def end(shift: arb, error: arb) -> arb_mat:
        path = flow._Path(loss, [arb(1), arb(1)], Fraction(1, 2**40), 128, 60)
        path.centre = path.centre + arb_mat([[shift], [shift]])
        path.error = error
        while path.time < 1:
            path.step(Fraction(1))
        return path.column

    nudge = arb(2) ** -40
    with precision(128):
        inside = end(arb(0), 2 * nudge)
        assert all(x.contains(y) for x, y in zip(inside.entries(), end(nudge, arb(0)).entries(), strict=True))
        monkeypatch.setattr(flow, "largest", lambda matrix: arb(-2))
        inside = end(arb(0), 2 * nudge)
        assert not all(x.overlaps(y) for x, y in zip(inside.entries(), end(nudge, arb(0)).entries(), strict=True))


def test_the_largest_eigenvalue_is_bounded():
    draw = np.random.default_rng(0)
    for size in (1, 3, 6):
        half = draw.normal(size=(size, size))
        matrix = half + half.T
        wide = arb_mat([[x + arb(0, 1e-3) for x in row] for row in arb_mat(matrix.tolist()).tolist()])
        noise = draw.uniform(-1e-3, 1e-3, (size, size))
        most = np.linalg.eigvalsh(matrix + (noise + noise.T) / 2)[-1]
        assert most < tubes.largest(wide) < np.linalg.eigvalsh(matrix)[-1] + 1e-2
    with pytest.raises(tt.prove.CannotEnclose):
        tubes.largest(arb_mat([[arb.nan()]]))


def test_progress_is_told_and_the_result_says_what_was_seen():
    told = []
    found = tt.prove.flow(line(), 1, progress=lambda *given: told.append(given))
    assert told[0][0].startswith("proved flow") and told[0][1] == 0 and told[-1][1:] == (1000, 1000)
    assert "loss at 1: [0.0676" in repr(found) and found.taken > 0 and found["loss"][1] < 0.07


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"until": 0}, "a time above 0"),
        ({"until": "x"}, "until"),
        ({"at": [2]}, "times from 0 to 1"),
        ({"at": "1"}, "list of times"),
        ({"watch": {"loss": 3}}, "a function of an Instant"),
        ({"watch": {"loss": lambda now: 0.5}}, "a ball .* was expected"),
        ({"rates": {"third": 1}}, "first and second"),
        ({"rates": {"first": -1}}, "below 0"),
        ({"radius": 1e-300}, "allow more by most_bits"),
        ({"bits": 8}, "bits"),
    ],
)
def test_what_cannot_be_is_one_sentence(more, words):
    with pytest.raises(tt.BadInput, match=words) as told:
        tt.prove.flow(line(), **({"until": 1} | more))
    assert "\n" not in str(told.value)


def test_parallel_rows_in_a_plane_are_refused():
    relu = tt.TwoLayer("relu", first=[[1.0, 0.0]])
    student = tt.TwoLayer("relu", first=[[0.5, 0.0]], trains=("first",))
    with pytest.raises(tt.prove.CannotEnclose, match="parallel"):
        tt.prove.flow(tt.Problem(tt.Gaussian(2), relu, student), 1)
