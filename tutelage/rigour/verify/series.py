"""Power series whose coefficients are exact as long as they can be: a coefficient that is 0 is known to be 0.

Balls never show that two numbers are equal. Sums of fractions times powers of pi do, since pi is transcendental: such a
sum is 0 only if all its fractions are. So the first coefficients of `t sin(t) - 2 + 2 cos(t)` at t = 0 are exactly 0.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from flint import arb

from tutelage.rigour.verify.parts import ball, need


class Exact:
    """A sum of fractions times powers of pi."""

    def __init__(self, terms: Mapping[int, Fraction]):
        self.terms = {power: value for power, value in terms.items() if value}

    def ball(self) -> arb:
        return sum((ball(value) * arb.pi() ** power for power, value in self.terms.items()), arb(0))

    def __add__(self, other: "Exact") -> "Exact":
        powers = {**self.terms, **other.terms}
        return Exact({n: self.terms.get(n, Fraction(0)) + other.terms.get(n, Fraction(0)) for n in powers})

    def __mul__(self, other: "Exact") -> "Exact":
        found: dict[int, Fraction] = {}
        for n, x in self.terms.items():
            for m, y in other.terms.items():
                found[n + m] = found.get(n + m, Fraction(0)) + x * y
        return Exact(found)

    def inverse(self) -> "Exact | None":
        """1 over it, if that is such a sum, too."""
        if len(self.terms) != 1:
            return None
        ((power, value),) = self.terms.items()
        return Exact({-power: 1 / value})

    def quarters(self) -> int | None:
        """How many right angles it is, if that is a whole number."""
        turns = self.terms.get(1, Fraction(0)) * 2
        return int(turns) if set(self.terms) <= {1} and turns.denominator == 1 else None


Number = Exact | arb
Series = list[Number]
"""Coefficients of 1, h, h^2, ...; all series of a formula have as many."""


def fraction(value: Fraction | int) -> Exact:
    return Exact({0: Fraction(value)})


ZERO, ONE = fraction(0), fraction(1)


def as_ball(x: Number) -> arb:
    return x.ball() if isinstance(x, Exact) else x


def exactly(x: Number, value: int) -> bool:
    return isinstance(x, Exact) and x.terms == fraction(value).terms


def plus(x: Number, y: Number) -> Number:
    if isinstance(x, Exact) and isinstance(y, Exact):
        return x + y
    if exactly(x, 0) or exactly(y, 0):
        return y if exactly(x, 0) else x
    return as_ball(x) + as_ball(y)


def times(x: Number, y: Number) -> Number:
    if isinstance(x, Exact) and isinstance(y, Exact):
        return x * y
    if exactly(x, 0) or exactly(y, 0):
        return ZERO  # the other is a ball, which is finite
    return as_ball(x) * as_ball(y)


def over(x: Number, y: Number) -> Number:
    inverse = y.inverse() if isinstance(y, Exact) else None
    if inverse is not None:
        return times(x, inverse)
    below = as_ball(y)
    need(below != 0, "it may divide by 0")
    return x if exactly(x, 0) else known(as_ball(x) / below)


def known(x: arb) -> arb:
    need(x.is_finite(), "a function is asked where it may have no value")
    return x


def add(a: Series, b: Series) -> Series:
    return [plus(x, y) for x, y in zip(a, b, strict=True)]


def scaled(a: Series, factor: Fraction | int) -> Series:
    return [times(x, fraction(factor)) for x in a]


def multiply(a: Series, b: Series) -> Series:
    return [inner(a[: n + 1], b[n::-1]) for n in range(len(a))]


def inner(a: Series, b: Series) -> Number:
    total: Number = ZERO
    for x, y in zip(a, b, strict=True):
        total = plus(total, times(x, y))
    return total


def divide(a: Series, b: Series) -> Series:
    found: Series = []
    for n, x in enumerate(a):
        found.append(over(plus(x, times(inner(found, b[n:0:-1]), fraction(-1))), b[0]))
    return found


def power(a: Series, exponent: int) -> Series:
    found = unit(a)
    for _ in range(abs(exponent)):
        found = multiply(found, a)
    return found if exponent >= 0 else divide(unit(a), found)


def slopes(a: Series) -> Series:
    """n times the n-th coefficient: h times the derivative."""
    return [times(x, fraction(n)) for n, x in enumerate(a)]


def integral(begin: Number, slope: Series) -> Series:
    """The series with that h-times-derivative."""
    return [begin, *(times(x, fraction(Fraction(1, n))) for n, x in enumerate(slope) if n)]


def sqrt(a: Series) -> Series:
    found = [exact_root(a[0])]
    for n in range(1, len(a)):
        rest = plus(a[n], times(inner(found[1:], found[:0:-1]), fraction(-1)))
        found.append(over(rest, times(fraction(2), found[0])))
    return found


def exact_root(x: Number) -> Number:
    if isinstance(x, Exact) and set(x.terms) == {0} and x.terms[0] > 0:
        top, below = math.isqrt(x.terms[0].numerator), math.isqrt(x.terms[0].denominator)
        if Fraction(top, below) ** 2 == x.terms[0]:
            return fraction(Fraction(top, below))
    found = as_ball(x)
    need(found > 0, "a root is asked of what may not be positive")
    return found.sqrt()


def exp(a: Series) -> Series:
    found: Series = [ONE if exactly(a[0], 0) else known(as_ball(a[0]).exp())]
    slope = slopes(a)
    for n in range(1, len(a)):
        found.append(times(inner(slope[1 : n + 1], found[n - 1 :: -1]), fraction(Fraction(1, n))))
    return found


def log(a: Series) -> Series:
    begin = ZERO if exactly(a[0], 1) else known(as_ball(a[0]).log())
    return integral(begin, divide(slopes(a), a))


def sin_cos(a: Series) -> tuple[Series, Series]:
    turns = a[0].quarters() if isinstance(a[0], Exact) else None
    sine: Series = [as_ball(a[0]).sin() if turns is None else fraction((0, 1, 0, -1)[turns % 4])]
    cosine: Series = [as_ball(a[0]).cos() if turns is None else fraction((1, 0, -1, 0)[turns % 4])]
    slope = slopes(a)
    for n in range(1, len(a)):
        one = inner(slope[1 : n + 1], cosine[n - 1 :: -1])
        two = inner(slope[1 : n + 1], sine[n - 1 :: -1])
        sine.append(times(one, fraction(Fraction(1, n))))
        cosine.append(times(two, fraction(Fraction(-1, n))))
    return sine, cosine


def sin(a: Series) -> Series:
    return sin_cos(a)[0]


def cos(a: Series) -> Series:
    return sin_cos(a)[1]


def atan(a: Series) -> Series:
    begin = ZERO if exactly(a[0], 0) else as_ball(a[0]).atan()
    return integral(begin, divide(slopes(a), add(unit(a), multiply(a, a))))


def asin(a: Series) -> Series:
    begin = ZERO if exactly(a[0], 0) else known(as_ball(a[0]).asin())
    rest = add(unit(a), scaled(multiply(a, a), -1))
    return integral(begin, divide(slopes(a), sqrt(rest)) if len(a) > 1 else a)


def acos(a: Series) -> Series:
    begin = ZERO if exactly(a[0], 1) else known(as_ball(a[0]).acos())
    return [begin, *(times(x, fraction(-1)) for x in asin(a)[1:])]


def unit(a: Series) -> Series:
    return [ONE, *[ZERO] * (len(a) - 1)]


FUNCTIONS = {"sin": sin, "cos": cos, "exp": exp, "log": log, "sqrt": sqrt, "atan": atan, "asin": asin, "acos": acos}
