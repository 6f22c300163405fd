"""Power series whose coefficients are fractions as long as they can be: a coefficient that is 0 is known to be 0.

Balls never show that two numbers are equal. Fractions do, and 0, 1 and roots of squares stay fractions under the
functions here: so the first coefficients of `t sin(t) - 2 + 2 cos(t)` at t = 0 are exactly 0.
"""

import math
from fractions import Fraction

from flint import arb

from tutelage.rigour.verify.parts import ball, need

Number = Fraction | arb
Series = list[Number]
"""Coefficients of 1, h, h^2, ...; all series of a formula have as many."""


def as_ball(x: Number) -> arb:
    return ball(x) if isinstance(x, Fraction) else x


def plus(x: Number, y: Number) -> Number:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    return as_ball(x) + as_ball(y)


def times(x: Number, y: Number) -> Number:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if exactly(x, 0) or exactly(y, 0):
        return Fraction(0)  # the other is a ball, which is finite
    return as_ball(x) * as_ball(y)


def over(x: Number, y: Number) -> Number:
    if isinstance(y, Fraction):
        need(y, "it divides by 0")
        return times(x, 1 / y)
    need(y != 0, "it may divide by 0")
    if exactly(x, 0):
        return x
    return known(as_ball(x) / y)


def known(x: arb) -> arb:
    need(x.is_finite(), "a function is asked where it may have no value")
    return x


def add(a: Series, b: Series) -> Series:
    return [plus(x, y) for x, y in zip(a, b, strict=True)]


def scaled(a: Series, factor: Fraction) -> Series:
    return [times(x, factor) for x in a]


def multiply(a: Series, b: Series) -> Series:
    return [inner(a[: n + 1], b[n::-1]) for n in range(len(a))]


def inner(a: Series, b: Series) -> Number:
    total: Number = Fraction(0)
    for x, y in zip(a, b, strict=True):
        total = plus(total, times(x, y))
    return total


def divide(a: Series, b: Series) -> Series:
    found: Series = []
    for n, x in enumerate(a):
        found.append(over(plus(x, times(inner(found, b[n:0:-1]), Fraction(-1))), b[0]))
    return found


def power(a: Series, exponent: int) -> Series:
    found: Series = [Fraction(1), *[Fraction(0)] * (len(a) - 1)]
    for _ in range(abs(exponent)):
        found = multiply(found, a)
    return found if exponent >= 0 else divide([Fraction(1), *[Fraction(0)] * (len(a) - 1)], found)


def slopes(a: Series) -> Series:
    """n times the n-th coefficient: h times the derivative."""
    return [times(x, Fraction(n)) for n, x in enumerate(a)]


def integral(begin: Number, slope: Series) -> Series:
    """The series with that h-times-derivative."""
    return [begin, *(times(x, Fraction(1, n)) for n, x in enumerate(slope) if n)]


def sqrt(a: Series) -> Series:
    found = [exact_root(a[0])]
    for n in range(1, len(a)):
        rest = plus(a[n], times(inner(found[1:], found[:0:-1]), Fraction(-1)))
        found.append(over(rest, times(Fraction(2), found[0])))
    return found


def exact_root(x: Number) -> Number:
    if isinstance(x, Fraction) and x > 0:
        top, below = math.isqrt(x.numerator), math.isqrt(x.denominator)
        if top * top == x.numerator and below * below == x.denominator:
            return Fraction(top, below)
    found = as_ball(x)
    need(found > 0, "a root is asked of what may not be positive")
    return found.sqrt()


def exp(a: Series) -> Series:
    found: Series = [Fraction(1) if exactly(a[0], 0) else known(as_ball(a[0]).exp())]
    slope = slopes(a)
    for n in range(1, len(a)):
        found.append(times(inner(slope[1 : n + 1], found[n - 1 :: -1]), Fraction(1, n)))
    return found


def log(a: Series) -> Series:
    begin = Fraction(0) if exactly(a[0], 1) else known(as_ball(a[0]).log())
    return integral(begin, divide(slopes(a), a))


def sin_cos(a: Series) -> tuple[Series, Series]:
    zero = exactly(a[0], 0)
    sine: Series = [Fraction(0) if zero else as_ball(a[0]).sin()]
    cosine: Series = [Fraction(1) if zero else as_ball(a[0]).cos()]
    slope = slopes(a)
    for n in range(1, len(a)):
        one = inner(slope[1 : n + 1], cosine[n - 1 :: -1])
        two = inner(slope[1 : n + 1], sine[n - 1 :: -1])
        sine.append(times(one, Fraction(1, n)))
        cosine.append(times(two, Fraction(-1, n)))
    return sine, cosine


def sin(a: Series) -> Series:
    return sin_cos(a)[0]


def cos(a: Series) -> Series:
    return sin_cos(a)[1]


def atan(a: Series) -> Series:
    begin = Fraction(0) if exactly(a[0], 0) else as_ball(a[0]).atan()
    return integral(begin, divide(slopes(a), add(unit(a), multiply(a, a))))


def asin(a: Series) -> Series:
    begin = Fraction(0) if exactly(a[0], 0) else known(as_ball(a[0]).asin())
    rest = add(unit(a), scaled(multiply(a, a), Fraction(-1)))
    return integral(begin, divide(slopes(a), sqrt(rest)) if len(a) > 1 else a)


def acos(a: Series) -> Series:
    begin = Fraction(0) if exactly(a[0], 1) else known(as_ball(a[0]).acos())
    return [begin, *(times(x, Fraction(-1)) for x in asin(a)[1:])]


def unit(a: Series) -> Series:
    return [Fraction(1), *[Fraction(0)] * (len(a) - 1)]


def exactly(x: Number, value: int) -> bool:
    return isinstance(x, Fraction) and x == value


FUNCTIONS = {"sin": sin, "cos": cos, "exp": exp, "log": log, "sqrt": sqrt, "atan": atan, "asin": asin, "acos": acos}
