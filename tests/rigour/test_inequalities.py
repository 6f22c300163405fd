"""Inequalities: proved, refuted or undecided; the checker looks at every box again, and sees what was changed."""

import copy
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import tutelage as tt
from tutelage.papers.both_layers import inequalities as measured
from tutelage.papers.both_layers import lemmas
from tutelage.papers.relu_teachers import kernel
from tutelage.rigour import Standing, precision, verify
from tutelage.rigour.inequalities import _Search
from tutelage.rigour.verify.inequality import Case
from tutelage.rigour.verify.series import FUNCTIONS, Exact, as_ball, fraction

ask = tt.prove.inequality


@pytest.mark.parametrize(
    ("claim", "where"),
    [
        ("sin(t) >= t*cos(t)", {"t": (0, "pi")}),  # equal at 0, to the third order
        ("sin(t) <= 1", {"t": (0, "pi/2")}),  # equal at the other end, to the second
        ("x*y <= 1", {"x": (0, 1), "y": (0, 1)}),  # equal in a corner
        ("x**2*y + y >= 0", {"x": (0, 1), "y": (0, 1)}),  # equal on an edge
        ("log(1 + x) <= x", {"x": (0, "9/10")}),
        ("exp(x) >= 1 + x + x**2/2", {"x": (0, 2)}),
        ("asin(x) + acos(x) < 8/5", {"x": ("-1/2", "1/2")}),
        ("atan(x)*sqrt(1 + x**2) >= x*(1 - x**2/4)", {"x": (0, 1)}),
        ("x**2 + y**2 + z**2 + 1/10 > x*y + y*z + z*x", {"x": (-1, 1), "y": (-1, 1), "z": (-1, 1)}),
    ],
)
def test_what_is_true_is_proved_and_checked(claim, where):
    found = ask(claim, where)
    assert found.holds and "Proved" in repr(found) and not found.undecided
    verify.verify(json.loads(json.dumps(found.proof().content())))


@pytest.mark.parametrize(
    ("claim", "where"),
    [
        ("x*y <= 1/2", {"x": (0, 1), "y": (0, 1)}),
        ("sin(t) < t", {"t": (0, 1)}),  # equal in a corner
        ("cos(t) >= 1 - t**2/2 + t**4/25", {"t": (0, "pi")}),
        ("x**2 - x + 249999/1000000 >= 0", {"x": (0, 1)}),  # false near 1/2 only
    ],
)
def test_what_is_false_is_refuted_by_a_fraction(claim, where):
    found = ask(claim, where)
    assert found.holds is False and all(isinstance(x, Fraction) for x in found.counterexample.values())
    left, sign, right = claim.partition(">=" if ">=" in claim else "<=" if "<=" in claim else "<")
    values = {name: float(x) for name, x in found.counterexample.items()} | {"sin": math.sin, "cos": math.cos}
    gap = eval(left, values) - eval(right, values)
    assert gap < 0 if sign == ">=" else gap > 0 or (sign == "<" and gap == 0)
    assert "Refuted" in repr(found)
    verify.verify(json.loads(json.dumps(found.proof().content())))


def test_equality_inside_is_undecided_and_said_where():
    found = ask("(x - 1/3)**2 >= 0", {"x": (0, 1)}, most=200)
    assert found.holds is None and found.counterexample is None
    assert all(low <= 1 / 3 + 1e-6 and high >= 1 / 3 - 1e-6 for box in found.undecided for low, high in box.values())
    assert "Undecided" in repr(found)
    with pytest.raises(tt.prove.CannotEnclose, match="undecided"):
        found.proof()


@pytest.mark.parametrize(
    ("claim", "where", "words"),
    [
        ("x", {"x": (0, 1)}, "one inequality"),
        ("x >= z", {"x": (0, 1)}, "'z' cannot be read"),
        ("x >= 1/0", {"x": (0, 1)}, "divide by 0"),
        ("x >=", {"x": (0, 1)}, "cannot be read"),
        ("x >= 0 >= 1", {"x": (0, 1)}, "one inequality"),
        ("__import__('os') > 0", {"x": (0, 1)}, "cannot be read"),
        ("x**x > 0", {"x": (0, 1)}, "cannot be read"),
        ("x >= 0.5", {"x": (0, 1)}, "whole numbers"),
        ("x >= 0", {}, "one, two or three"),
        ("x >= 0", {name: (0, 1) for name in "abcx"}, "one, two or three"),
        ("x >= 0", {"x": (1, 0)}, "range is empty"),
        ("x >= 0", {"x": 3}, "two ends"),
        ("x >= 0", {"x": (0, math.nan)}, "finite number"),
        ("pi >= 0", {"pi": (0, 1)}, "name of a function"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(claim, where, words):
    with pytest.raises(tt.BadInput, match=words) as refused:
        ask(claim, where)
    assert "\n" not in str(refused.value)


# The checker.


def proved() -> dict:
    return json.loads(json.dumps(lemmas.lemma_13().content()))


def sealed(proof: dict) -> dict:
    proof["says"] = verify.KINDS[proof["kind"]].says(proof["data"])
    return proof | {"sha256": verify.seal(proof)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda case: case.update(claim="(1 - cos(s))/12 >= (sin(s) - s*cos(s))/(2*pi)"), "not positive|not rise"),
        (lambda case: case.update(claim=case["claim"].replace(">=", ">")), "may be 0"),
        (lambda case: case.update(claim=case["claim"].replace(">=", "<=")), "not positive|does not rise"),
        (lambda case: case["where"].update(s=["0", "pi"]), "not positive|not rise"),
        (lambda case: case["where"].update(s=["-1/10", "pi/2"]), "not 0 at an end|not positive|does not rise"),
        (lambda case: case["where"].update(s=["pi", "0"]), "empty"),
        (lambda case: case.update(cover="v"), "not positive"),
        (lambda case: case.update(cover=case["cover"][:-1]), "cannot be read"),
        (lambda case: case.update(cover=case["cover"] + "v"), "more boxes"),
        (lambda case: case.update(cover="0" * 100), "too often"),
        (lambda case: case.update(cover="x"), "cannot be read"),
        (lambda case: case.update(cover="1vv"), "cannot be read"),
        (lambda case: case.update(claim="s/0 >= 0"), "divide by 0"),
        (lambda case: case.update(claim="log(s) <= 1000"), "no value|not positive|cannot"),
    ],
)
def test_a_false_statement_about_a_range_is_refused(change, words):
    proof = proved()
    change(proof["data"]["inequalities"][0])
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


def test_an_empty_proof_is_refused():
    proof = proved()
    proof["data"]["inequalities"] = []
    with pytest.raises(verify.Refused, match="prove nothing"):
        verify.verify(sealed(proof))


@pytest.mark.parametrize(
    ("at", "words"),
    [({"x": "1/2", "y": "1/2"}, "not broken"), ({"x": "2", "y": "1"}, "not in the range"), ({"x": "1"}, "variables")],
)
def test_a_point_that_refutes_nothing_is_refused(at, words):
    proof = ask("x*y <= 1/2", {"x": (0, 1), "y": (0, 1)}).proof().content()
    proof = copy.deepcopy(proof)
    proof["data"]["at"] = at
    with pytest.raises(verify.Refused, match=words):
        verify.verify(sealed(proof))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_series_are_those_of_the_functions(function):
    """At an exact point and at a ball, against differences of the function itself, which is arb's."""
    for begin in (fraction(Fraction(1, 4)), arb("0.25")):
        with precision(256):
            found = [as_ball(x) for x in FUNCTIONS[function]([begin, fraction(1), fraction(0), fraction(0)])]
            h = arb(2) ** -60
            for sign in (1, -1):
                there = getattr(arb("0.25") + sign * h, function)()
                sum_ = sum(x * (sign * h) ** n for n, x in enumerate(found))
                assert abs(there - sum_) < arb(2) ** -225


def test_zeros_are_exact_where_they_are_known():
    exact = Exact({1: Fraction(1, 2)})
    assert not (exact + exact * fraction(-1)).terms and exact.ball().overlaps(arb.pi() / 2)
    sine, cosine = (FUNCTIONS[name]([exact, fraction(1)]) for name in ("sin", "cos"))
    assert [x.terms for x in sine] == [{0: 1}, {}] and [x.terms for x in cosine] == [{}, {0: -1}]


def test_search_and_checker_enclose_the_same():
    """Two ways to take derivatives over boxes."""
    let = lemmas.SLOPE
    case = Case({"claim": "2*C1 + C2*r >= 0", "where": {"s": ["1/10", "3"], "r": ["1/2", "1"]}, "let": let})
    search, draw = _Search(case, 1), np.random.default_rng(0)
    for _ in range(20):
        ends = [sorted(Fraction(int(n), 1024) for n in draw.choice(1024, 2, replace=False)) for _ in range(2)]
        box = tuple((first, last) for first, last in ends)
        jet, around = search.jet(box), case.balls(list(box))
        assert jet.value.overlaps(case.value(around))
        for number in range(2):
            slope = as_ball(case.series(around, number, 2)[1])
            assert slope.overlaps(jet.slope[number])
            assert 0.5 * float(slope.rad()) <= float(jet.slope[number].rad()) <= 2 * float(slope.rad())


# The lemmas: what is proved is what is measured.


def test_the_proved_coefficients_are_those_of_figure_4():
    theta = np.linspace(math.pi / 2, math.pi, 7)
    first = Case({"claim": "C1 >= 0", "where": {"s": ["0", "pi/2"]}, "let": lemmas.PL})
    both = Case({"claim": "2*C1 + C2 >= 0", "where": {"s": ["0", "pi/2"]}, "let": lemmas.PL})
    for angle in theta:
        at = [arb(math.pi - angle)]
        assert abs(float(first.value(at)) - measured.pl_curvature(angle)) < 1e-14
        assert abs(float(both.value(at)) - measured.pl_slack(angle)) < 1e-14


def test_lemma_12_is_the_least_over_all_targets():
    """Against the gradient of the loss, by a kernel in doubles, at the worst target."""
    draw, where = np.random.default_rng(0), {"s": ["0", "pi"], "r": ["0", "1"]}
    for angle, ratio in ((0.3, 1.0), (1.7, 0.4), (2.9, 1.0)):
        one, two = np.array([ratio, 0.0]), np.array([math.cos(angle), math.sin(angle)])
        slopes = [kernel.slope(a[None], b[None])[0, 0] for a, b in ((one, two), (two, one))]

        def excess(a, one=one, two=two, slopes=slopes):
            errors = (one - a, two + a)
            gradients = [error / 2 - slope for error, slope in zip(errors, slopes, strict=True)]
            return 2.5 * sum(e @ e for e in errors) - sum(g @ g for g in gradients)

        case = Case({"claim": "C1*(r**2 + 1) + C2*r >= 0", "where": where, "let": lemmas.SLOPE})
        least = float(case.value([arb(math.pi - angle), arb(ratio)]))
        # A quadratic in the target: its least value by a Newton step from any point.
        at, eye = draw.normal(size=2), np.eye(2)
        slope = np.array([(excess(at + e) - excess(at - e)) / 2 for e in eye])
        bend = np.array([[excess(at + e + f) - excess(at + e) - excess(at + f) + excess(at) for f in eye] for e in eye])
        assert abs(excess(at - np.linalg.solve(bend, slope)) - least) < 1e-12


def test_claims_show_what_is_proved():
    table = tt.papers.both_layers().check(only=("BL23",))
    assert table["BL23"].standing is Standing.PROVED and table["BL23"].verdict == "holds, proved"
    assert "By proof: 1 proved." in table.sentence
