"""Balls and the exact numbers they begin from.

A ball is a number of FLINT with a radius: what it stands for is somewhere inside. Every operation widens the radius by
what it rounded, so that the last ball contains the exact result. A comparison of balls is true only if it is true of
all they contain; one that is not a number makes every comparison false, but contains everything, so `inside` asks
first.
"""

import contextlib
import math
import numbers
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from tutelage._checks import refused, whole
from tutelage._errors import BadInput

Rows = tuple[tuple[Fraction, ...], ...]
Number = int | float | str | Fraction | Decimal
"""What an exact number may be given as: a double is the number that it is, text is a decimal or a fraction."""
MOST_BITS = 1 << 16
LONGEST = 5000
"""Digits of a number that is given, and the largest power of ten in it."""


class CannotEnclose(BadInput):
    """No ball could be found: what was asked does not exist there, or more precision or a smaller box is needed."""


@contextlib.contextmanager
def precision(bits: int) -> Iterator[None]:
    """Within it balls have so many bits.

    ```python
    >>> from flint import arb
    >>> from tutelage.rigour.balls import precision
    >>> with precision(128):
    ...     print(arb(2).sqrt().str(10), arb(2).sqrt().rad() < 1e-37)
    [1.414213562 +/- 3.74e-10] True

    ```
    """
    before, ctx.prec = ctx.prec, whole("The precision in bits", bits, least=16, most=MOST_BITS)
    try:
        yield
    finally:
        ctx.prec = before


def exact(name: str, value: Any) -> Fraction:
    """The exact number that is meant: a whole number, a fraction, a decimal as text ("0.1", "1/3"), or a double.

    ```python
    >>> from tutelage.rigour.balls import exact
    >>> exact("step", "0.1"), exact("step", 0.5), exact("step", "1/3")
    (Fraction(1, 10), Fraction(1, 2), Fraction(1, 3))

    ```
    """
    expected = "a finite number: a fraction, a decimal as text, or a double"
    if isinstance(value, bool) or (isinstance(value, (str, Decimal)) and _endless(str(value))):
        raise refused(name, value, expected)
    if isinstance(value, fmpq):
        value = Fraction(int(value.p), int(value.q))
    elif hasattr(value, "item"):  # a number of NumPy or JAX, or an array of one
        value = value.item()
    try:
        if isinstance(value, (str, Decimal)):
            return Fraction(value)
        if isinstance(value, numbers.Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, (float, np.floating)):  # any other type may round when it becomes a double
            return Fraction(*map(int, value.as_integer_ratio()))
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise refused(name, value, expected)


def _endless(text: str) -> bool:
    """Whether writing it as a fraction would take more digits than anybody means."""
    _, _, power = text.lower().partition("e")
    try:
        return len(text) > LONGEST or abs(int(power or 0)) > LONGEST
    except ValueError:
        return True


def exact_rows(name: str, value: Any) -> Rows:
    """A matrix of exact numbers, from rows of numbers or from an array."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    expected = "a matrix of finite numbers with one row per unit"
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise refused(name, value, expected)
    if not all(isinstance(row, Sequence) and not isinstance(row, str) for row in listed):
        raise refused(name, value, expected)
    if len({len(row) for row in listed}) != 1 or not listed[0]:
        raise BadInput(f"{name} has rows of lengths {sorted({len(row) for row in listed})}; {expected} was expected.")
    return tuple(tuple(exact(name, entry) for entry in row) for row in listed)


def ball(value: Fraction | int) -> arb:
    """The ball around an exact number, at the present precision."""
    return arb(fmpq(value.numerator, value.denominator))


def balls(rows: Rows) -> arb_mat:
    """A matrix of balls around exact numbers."""
    return arb_mat([[ball(entry) for entry in row] for row in rows])


def box(centre: arb_mat, radius: arb) -> arb_mat:
    """All matrices whose entries are within a radius of those of another."""
    wide = arb(0, radius)
    return arb_mat(centre.nrows(), centre.ncols(), [entry + wide for entry in centre.entries()])


def known(value: arb, what: str) -> arb:
    """The ball itself, if it is one: what is infinite or not a number says nothing."""
    if not value.is_finite():
        raise CannotEnclose(f"{what} cannot be enclosed; try more precision, a smaller box, or another point.")
    return value


def known_all(matrix: arb_mat, what: str) -> arb_mat:
    """The matrix itself, if all its entries are balls."""
    for entry in matrix.entries():
        known(entry, what)
    return matrix


def inside(value: arb, other: arb) -> bool:
    """Whether all of a ball lies in the interior of another; never if one of them is not a number."""
    return value.is_finite() and other.is_finite() and bool(other.contains_interior(value))


def root(square: arb) -> arb:
    """The root of a number that is not negative, although its ball may reach below 0."""
    if square > 0:
        return square.sqrt()
    most = square.upper()
    return arb(0).union(most.sqrt()) if most >= 0 else arb.nan()


def hull(least: arb | int, most: arb | int) -> arb:
    """The least ball that contains all between two numbers."""
    return arb(least).union(arb(most))


def dot(a: Sequence[arb], b: Sequence[arb]) -> arb:
    """The inner product of two rows."""
    total = arb(0)
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def relative_radius(value: arb) -> float:
    """The radius of a ball over its largest number; 1 if it may be 0, infinite if it is not known."""
    if not value.is_finite():
        return math.inf
    most = value.abs_upper()
    return 0.0 if most == 0 else float(value.rad() / most)
