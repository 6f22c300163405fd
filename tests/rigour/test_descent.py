"""Proved descent beside exact rational iterates and beside the descent of the package; planted errors are seen."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat

import tutelage as tt
from tutelage._interrupt import ask_to_stop, gentle_signals
from tutelage.rigour import descent
from tutelage.rigour.balls import ball, precision
from tutelage.rigour.loss import State

STEP = Fraction(1, 7)


def lines(**more):
    """Linear units: their gradient is rational."""
    return tt.Problem(
        inputs=tt.Gaussian(2),
        teacher=tt.TwoLayer("linear", first=[[1.0, 0.5]]),
        student=tt.TwoLayer("linear", first=[[0.25, -1.0], [0.5, 0.75]], second=[1.0, -0.5], **more),
    )


def rational(steps: int, rates=(1, 1)) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Weights after so many updates of `f = sum a_i w_i.x`, in exact arithmetic."""
    first = [[Fraction(1, 4), Fraction(-1)], [Fraction(1, 2), Fraction(3, 4)]]
    second, target = [Fraction(1), Fraction(-1, 2)], [Fraction(1), Fraction(1, 2)]
    for _ in range(steps):
        error = [sum(a * w[n] for a, w in zip(second, first, strict=True)) - target[n] for n in range(2)]
        slope = [sum(e * x for e, x in zip(error, w, strict=True)) for w in first]
        first = [[x - STEP * rates[0] * a * e for x, e in zip(w, error, strict=True)]
                 for a, w in zip(second, first, strict=True)]  # fmt: skip
        second = [a - STEP * rates[1] * g for a, g in zip(second, slope, strict=True)]
    return first, second


def entry(layer, i, n):
    return lambda moment: getattr(moment, layer)[i][n]


WATCH = {f"first {i} {n}": entry("first", i, n) for i in range(2) for n in range(2)} | {
    f"second {i}": entry("second", i, 0) for i in range(2)
}


def contained(steps=6, rates=None, factors=(1, 1), trains=("first", "second")) -> bool:
    found = tt.prove.descend(lines(trains=trains), STEP, steps, watch=WATCH, rates=rates, radius=1e-30)
    first, second = rational(steps, factors)
    exact = {f"first {i} {n}": first[i][n] for i in range(2) for n in range(2)}
    exact |= {f"second {i}": second[i] for i in range(2)}
    return all(holds(found[name][steps], value) for name, value in exact.items())


def holds(found: arb, value: Fraction) -> bool:
    """Whether an exact number may be in a ball: not if it surely is not."""
    with precision(400):
        return found.overlaps(ball(value))


def test_enclosures_contain_the_exact_iterates():
    assert contained()
    assert contained(rates={"second": "1/3"}, factors=(1, Fraction(1, 3)))
    assert contained(trains=("first",), factors=(1, 0))


def without_radius(loss, state, sizes):
    return State(*(part.mid() for part in right(loss, state, sizes)))


def in_doubles(loss, state, sizes):
    parts = right(loss, state, sizes)
    return State(*(arb_mat([[float(x) for x in row] for row in part.tolist()]) for part in parts))


def other_step(loss, state, sizes):
    return right(loss, state, [size * arb("1.0000000000000000000001") for size in sizes])


right = descent.moved


@pytest.mark.parametrize("planted", [in_doubles, other_step])
def test_a_planted_error_is_seen(planted, monkeypatch):
    monkeypatch.setattr(descent, "moved", planted)
    assert not contained()


def test_a_dropped_radius_is_seen(monkeypatch):
    """At a low precision, where the exact number is not in a ball that is too small."""
    exact = rational(6)[0][0][0]

    def seen() -> arb:
        found = tt.prove.descend(lines(), STEP, 6, watch=WATCH, radius=1.0, bits=40, most_bits=40)
        return found["first 0 0"][6]

    assert holds(seen(), exact)
    monkeypatch.setattr(descent, "moved", without_radius)
    assert not holds(seen(), exact)


@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize("name", ["relu", "he2"])
def test_it_is_the_descent_of_the_package(name):
    problem = tt.Problem(
        inputs=tt.Gaussian(3),
        teacher=tt.TwoLayer(name, first=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]),
        student=tt.TwoLayer(name, first=[[0.5, 0.25, 0.0], [0.0, 0.5, 0.25], [0.25, 0.0, 1.0]], trains=("first",)),
    )
    proved = tt.prove.descend(problem, 0.03125, 40, at=[0, 10, 40], watch={"loss": tt.prove.Moment.loss})
    run = tt.descend(problem, step=0.03125, steps=40, record=[0, 10, 40])
    assert [float(x) for x in proved["loss"].values()] == pytest.approx(np.ravel(run.dataset["loss"].values), rel=1e-9)


def test_the_precision_is_raised_until_the_radius_is_met():
    found = tt.prove.descend(lines(), STEP, 30, bits=32, radius=1e-40)
    assert found.bits == 256 and found["loss"][30].rad() < 1e-40 * found["loss"][30]
    assert "after 30: " in repr(found) and "256 bits" in repr(found)


def test_progress_is_told():
    told = []
    tt.prove.descend(lines(), STEP, 3, progress=lambda *given: told.append(given))
    assert told == [("proved descent, 128 bits", 0, 3), ("proved descent, 128 bits", 3, 3)]


def test_it_can_be_stopped():
    def stop(label, done, total):
        ask_to_stop()

    with gentle_signals(), pytest.raises(KeyboardInterrupt, match="stopped after 0 updates"):
        tt.prove.descend(lines(), STEP, 3, progress=stop)


def test_about_a_centre_enclosures_contain_the_exact_iterates(monkeypatch):
    more = {"watch": WATCH, "at": [0, 6], "radius": 1e-12, "bits": 128, "most_bits": 128, "centred": True}
    first, second = rational(6)

    def holds_all() -> bool:
        found = tt.prove.descend(lines(), STEP, 6, **more)
        pairs = [(found[f"first {i} {n}"][6], first[i][n]) for i in range(2) for n in range(2)]
        return all(holds(*pair) for pair in [*pairs, *((found[f"second {i}"][6], second[i]) for i in range(2))])

    assert holds_all()
    monkeypatch.setattr(descent, "radii", lambda *given: arb(0))
    assert not holds_all()


def test_errors_about_a_centre_grow_as_the_hessian_says(monkeypatch):
    """Descent from a hill, where an error grows: without its growth the exact number is not in the ball."""
    problem = tt.Problem(
        tt.Gaussian(1), tt.TwoLayer("linear", first=[[1.0]]),
        tt.TwoLayer("linear", first=[[0.01]], second=[0.01]),
    )  # fmt: skip
    start = {"first": [["1/100"]], "second": ["1/100"]}
    w = Fraction(1, 100)
    for _ in range(9):
        w += Fraction(1, 4) * w * (1 - w * w)

    def holds_it() -> bool:
        found = tt.prove.descend(
            problem, "1/4", 9, start=start, watch={"w": entry("first", 0, 0)}, radius=1e-3, bits=32, most_bits=32,
            centred=True,
        )  # fmt: skip
        return holds(found["w"][9], w)

    assert holds_it()
    monkeypatch.setattr(descent, "stretch", lambda *given: arb("0.1"))
    monkeypatch.setattr(descent, "radii", lambda *given: arb(2) ** -60)
    assert not holds_it()


def test_thousands_of_long_updates_keep_their_digits_about_a_centre():
    problem = tt.Problem(
        tt.Gaussian(3), tt.TwoLayer("linear", first=[[1.0, 0, 0]]),
        tt.TwoLayer("relu", first=np.ones((2, 3)), second=[1.0, -1.0], trains=("first",)),
    )  # fmt: skip
    start = [["3/2", "1/10", 0], ["3/2", 0, "1/10"]]
    found = tt.prove.descend(problem, "1/10", 300, start=start, centred=True, most_bits=128)
    assert found.bits == 128 and found["loss"][300].rad() < 1e-13
    with pytest.raises(tt.prove.CannotEnclose):
        tt.prove.descend(problem, "1/10", 300, start=start, most_bits=128)
    balls = tt.prove.descend(problem, "1/10", 60, start=start, radius=1e-20)["loss"][60]
    assert balls.overlaps(tt.prove.descend(problem, "1/10", 60, start=start, centred=True)["loss"][60])


def test_units_above_their_cap_stand_still():
    watch = {"still": entry("first", 0, 1), "moves": entry("first", 1, 0)}
    cap = tt.Truncation(caps=(1.0, float("inf")), ends=(2,))  # the first student's square is 1.06, the second's 0.81
    found = tt.prove.descend(lines(), STEP, 3, watch=watch, at=[0, 1, 2, 3], truncation=cap)
    assert found["still"][2] == -1 and not found["still"][3].contains(-1)
    assert not found["moves"][1].contains(0.5)
    plain = tt.prove.descend(lines(), STEP, 1, watch=watch)
    assert found["moves"][1].overlaps(plain["moves"][1])
    edge = tt.Truncation(caps=(1.0625,))  # the first student is on it
    assert not tt.prove.descend(lines(), STEP, 1, watch=watch, truncation=edge)["still"][1].contains(-1)
    with pytest.raises(tt.BadInput, match="leave out centred"):
        tt.prove.descend(lines(), STEP, 1, truncation=cap, centred=True)


def test_a_moment_knows_norms_and_angles():
    watch = {
        "cosine": lambda moment: moment.cosine(0, 0),
        "norm": lambda moment: moment.norm(1),
        "gradient": tt.prove.Moment.gradient,
    }
    found = tt.prove.descend(lines(), STEP, 1, at=[0], watch=watch)
    first, error = np.array([[0.25, -1.0], [0.5, 0.75]]), np.array([-1.0, -1.875])
    gradient = np.concatenate([error, -0.5 * error, first @ error])
    assert float(found["cosine"][0]) == pytest.approx(first[0] @ [1, 0.5] / np.hypot(*first[0]) / np.hypot(1, 0.5))
    assert float(found["norm"][0]) == pytest.approx(np.hypot(0.5, 0.75))
    assert float(found["gradient"][0]) == pytest.approx(np.linalg.norm(gradient))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"most_bits": 128, "radius": 1e-60}, "allow more by most_bits"),
        ({"bits": 4}, "bits is 4"),
        ({"radius": 0}, "radius"),
        ({"at": [99]}, "at is 99"),
        ({"at": "all"}, "list of numbers of updates"),
        ({"watch": {"loss": 3}}, "a function of a Moment"),
        ({"watch": [1]}, "dictionary"),
        ({"watch": {"loss": lambda moment: float(moment.loss())}}, "a ball .* was expected"),
        ({"rates": {"third": 1}}, "first and second"),
        ({"rates": {"first": "nan"}}, "the rate of first"),
        ({"start": [[0, 0], [1, 1]]}, "zero"),
    ],
)
def test_what_cannot_be_is_one_sentence(more, words):
    problem = tt.Problem(tt.Gaussian(2), tt.TwoLayer("relu", first=[[1.0, 0.0]]), tt.TwoLayer("relu", first=np.eye(2)))
    with pytest.raises(tt.BadInput, match=words) as told:
        tt.prove.descend(problem, "1/10", 3, **more)
    assert "\n" not in str(told.value)
    with pytest.raises(tt.BadInput, match="step"):
        tt.prove.descend(problem, float("nan"), 3)
