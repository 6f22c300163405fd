"""What all checks share: exact numbers from text, balls around them, and refusal of all that is not sure."""

import contextlib
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

NUMBER = re.compile(r"-?\d{1,4000}(\.\d{1,4000})?(e-?\d{1,4})?(/\d{1,4000})?")
Data = dict[str, Any]
Row = list[arb]
Exact = list[list[Fraction]]


class Refused(ValueError):
    """A file that proves nothing; the sentence says why."""


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Within it whatever is wrong with the data is a refusal."""
    try:
        yield
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"its data cannot be read ({type(error).__name__}: {error})") from None


def need(sure: Any, otherwise: str) -> None:
    if not sure:
        raise Refused(otherwise)


def exact(value: Any) -> Fraction:
    need(isinstance(value, (str, int)) and NUMBER.fullmatch(str(value)), f"{str(value)[:40]!r} is not an exact number")
    return Fraction(value)


def table(rows: Any) -> Exact:
    found = [[exact(x) for x in row] for row in rows]
    need(found and len({len(row) for row in found}) == 1, "a matrix has rows of several lengths")
    return found


def ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def balls(rows: Exact) -> list[Row]:
    return [[ball(x) for x in row] for row in rows]


def dot(a: Any, b: Any) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), a[0] * 0)
