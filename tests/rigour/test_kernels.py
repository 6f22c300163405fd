"""Enclosed kernels contain the values of long arithmetic, and boxes contain their points; planted errors are seen."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, fmpq
from mpmath import mpf
from rigour import sweep

import tutelage as tt
from tutelage.problem.activations import activation, leaky_relu
from tutelage.rigour import kernels
from tutelage.rigour.balls import CannotEnclose, exact, exact_rows, hull, inside, precision, root
from tutelage.rigour.forms import form_of
from tutelage.rigour.kernels import Kernel, meeting

RELU = form_of(activation("relu"))
SAMPLE = 270  # every kind of pair thirty times


def row(*values):
    return [arb(v) for v in values]


def test_enclosures_contain_values_of_long_arithmetic():
    assert sweep.misses(SAMPLE) == []


def wrong_sign(met):
    return -arb.atan2(met.c, met.across)


def without_radius(met):
    return arb.atan2(met.c, met.across).mid()


def rounded(met):
    return arb(float(arb.atan2(met.c, met.across).mid()))


@pytest.mark.parametrize("planted", [wrong_sign, without_radius, rounded])
def test_a_planted_error_is_seen(planted, monkeypatch):
    monkeypatch.setattr(kernels, "lean", planted)
    assert sweep.misses(SAMPLE)


def test_a_wrong_block_is_seen(monkeypatch):
    right = kernels._mixed_arc
    monkeypatch.setattr(kernels, "_mixed_arc", lambda *given: right(*given).transpose() * arb("1.001"))
    assert any("Hessian" in one for one in sweep.misses(SAMPLE))


def test_a_radius_that_is_dropped_beyond_the_gradient_is_seen(monkeypatch):
    monkeypatch.setattr(kernels, "hull", lambda least, most: (arb(least) + arb(most)) / 2)
    assert any("box" in one for one in sweep.misses(SAMPLE))


@pytest.mark.parametrize(("name", "along", "against"), [("relu", 0.5, 0), ("abs", 1, -1)])
def test_parallel_rows_are_exact(name, along, against):
    kernel = Kernel(form_of(activation(name)), form_of(activation(name)))
    a, b = row(3, 4), row(6, 8)
    assert kernel.value(meeting(a, b)).contains(50 * arb(along)) and kernel.value(meeting(a, b)).rad() < 1e-10
    for other, size in ((b, along), ([-x for x in b], against)):
        same, mixed = kernel.blocks(a, other)
        assert same.contains(arb_mat(2, 2)) and mixed.contains(arb_mat([[size, 0], [0, size]]))
        assert all(entry.rad() < 1e-10 for block in (same, mixed) for entry in block.entries())


def test_leaky_relu_is_what_it_is_made_of():
    leaky, minus = form_of(leaky_relu(0.25)), form_of(leaky_relu(-1.0))
    a, b = row(1, 2, -1), row(-2, 1, 3)
    flipped = [-x for x in b]
    relus = Kernel(RELU, RELU)
    expected = (
        relus.value(meeting(a, b))
        + relus.value(meeting([-x for x in a], flipped)) / 16
        - (relus.value(meeting(a, flipped)) + relus.value(meeting([-x for x in a], b))) / 4
    )
    assert Kernel(leaky, leaky).value(meeting(a, b)).overlaps(expected)
    assert minus == form_of(activation("abs"))


def test_a_function_of_one_row_is_tighter_than_a_pair_and_agrees():
    for name in ("relu", "erf", "he3"):
        form = form_of(activation(name))
        a = [x + arb(0, 1e-3) for x in row(1, 2)]
        met = meeting(a, a)
        alone = Kernel(form, form).alone(met.p)
        assert alone.value.overlaps(Kernel(form, form).value(met))
        slopes = Kernel(form, form).slopes(met)
        assert (2 * alone.slope[0]).overlaps((slopes.onto_a + slopes.onto_b) * 2)


def test_a_zero_row_has_a_value_but_no_gradient():
    zero, b = row(0, 0), row(1, 2)
    kernel = Kernel(RELU, RELU)
    assert kernel.value(meeting(zero, b)) == 0 and kernel.value(meeting(b, zero)) == 0
    slopes = kernel.slopes(meeting(b, zero))
    assert all((slopes.onto_a * x + slopes.onto_b * y) == 0 for x, y in zip(b, zero, strict=True))
    with pytest.raises(CannotEnclose, match="is zero"):
        kernel.slopes(meeting(zero, b))
    with pytest.raises(CannotEnclose, match="is zero"):
        kernel.blocks(b, zero)


def test_a_box_around_zero_has_a_value():
    around = [arb(0, 0.01), arb(0, 0.01)]
    value = Kernel(RELU, RELU).value(meeting(around, row(1, 0)))
    assert value.contains(arb(0)) and value.contains(arb("0.005")) and value.upper() < 0.02
    smooth = form_of(activation("erf"))
    assert Kernel(smooth, smooth).slopes(meeting(around, row(1, 0))).onto_b.is_finite()


def test_what_is_not_a_number_is_never_taken_as_true():
    nan = arb.nan()
    assert not inside(arb(0), nan) and not inside(nan, arb(0, 1)) and root(nan).is_nan()
    with pytest.raises(CannotEnclose, match="more precision"):
        Kernel(RELU, RELU).value(meeting([nan], row(1)))
    with pytest.raises(CannotEnclose):
        Kernel(RELU, RELU).slopes(meeting(row(1, 2), [arb(1), arb(0, float("inf"))]))


def test_roots_and_hulls():
    assert root(arb(0, 1e-20)).contains(arb("1e-10")) and root(arb(0, 1e-20)).contains(0)
    assert hull(-1, 2).contains(2) and hull(-1, 2).contains(-1)


def test_the_area_of_nearly_parallel_rows_keeps_its_digits():
    with precision(128):
        a, b = row(1, 1), [arb(1), arb(1) + arb("1e-30")]
        assert abs(meeting(a, b).across / arb("1e-30") - 1) < 1e-6


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "sign"])
def test_what_has_no_closed_form_is_refused(name):
    with pytest.raises(tt.BadInput, match="use relu"):
        form_of(activation(name))


def test_the_root_of_one_half_is_meant():
    assert form_of(activation("erf_over_sqrt2")).erfs == ((Fraction(1), Fraction(1, 2)),)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), Fraction(3)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.array(0.5), Fraction(1, 2)),
        (fmpq(2, 7), Fraction(2, 7)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.longdouble(1) / 3, Fraction(*map(int, (np.longdouble(1) / 3).as_integer_ratio()))),
    ],
)
def test_numbers_are_taken_exactly(value, expected):
    found = exact("step", value)
    assert found == expected and type(found.numerator) is int


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "x", "1/0", "1e999999999", True, None, [1], mpf("0.1"), 1j]
)
def test_numbers_that_are_none_are_refused(value):
    with pytest.raises(tt.BadInput, match="finite number"):
        exact("step", value)


@pytest.mark.parametrize("value", [[], [[]], [[1], [1, 2]], "ab", ["ab"], [1, 2], None, [["x"]]])
def test_matrices_that_are_none_are_refused(value):
    with pytest.raises(tt.BadInput, match="first"):
        exact_rows("first", value)


def test_precision_is_put_back():
    from flint import ctx

    before = ctx.prec
    with pytest.raises(tt.BadInput, match="precision"), precision(3):
        pass
    with precision(77):
        assert ctx.prec == 77
    assert ctx.prec == before


def test_the_sample_has_all_kinds():
    source = sweep.pairs(0)
    kinds = [next(source)[0] for _ in range(SAMPLE)]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(kinds, 30)
