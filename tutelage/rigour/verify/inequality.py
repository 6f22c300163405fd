"""Inequalities in one, two or three variables over a box, and points at which one is false.

A proof holds for each inequality how the box is cut, written as one line that is read from the left:

- `0`, `1`, `2`: the box is halved in that variable, and both halves follow, the lower one first.
- `v`: `left - right` is positive on the whole box.
- `g`: it is positive by the mean value theorem. With a derivative of one sign the variable is put to the end where
  `left - right` is least; from the middle of what is left it falls by no more than slopes times half widths.
- `e0`, `e1`, `e2`: the box begins at the least value of that variable, where `left - right` and its first derivatives
  in it are exactly 0, and on the whole box the next one is positive. `f0`, `f1`, `f2`: it ends at the largest value,
  and the next derivative has the sign with which `left - right` rises away from there.
"""

import ast
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from tutelage.rigour.verify.parts import Data, exact, need
from tutelage.rigour.verify.series import (
    FUNCTIONS,
    ONE,
    ZERO,
    Exact,
    Number,
    Series,
    add,
    as_ball,
    divide,
    exactly,
    fraction,
    multiply,
    plus,
    power,
    scaled,
    times,
)

LONGEST, MOST_VARIABLES, MOST_POWER, DEEPEST, ORDERS = 4000, 3, 64, 80, 12
SIGNS = {ast.Gt: (1, True), ast.GtE: (1, False), ast.Lt: (-1, True), ast.LtE: (-1, False)}


def says(data: Data) -> str:
    return " ".join(_said(each) for each in data["inequalities"])


def _said(each: Data) -> str:
    ranges = ", ".join(f"{least} <= {name} <= {most}" for name, (least, most) in each["where"].items())
    return f"For all {ranges}: {each['claim']}{_let(each)}."


def _let(each: Data) -> str:
    named = ", ".join(f"{name} = {formula}" for name, formula in each["let"].items())
    return f", with {named}" if named else ""


def check(data: Data) -> dict[str, arb]:
    need(data["inequalities"], "it would prove nothing")
    found = {}
    for number, each in enumerate(data["inequalities"], 1):
        case = Case(each)
        need(each["cover"].isascii() and each["cover"].isalnum(), "its boxes cannot be read")
        code = iter(each["cover"])
        case.covered([(Fraction(0), Fraction(1))] * len(case.names), code, DEEPEST)
        need(next(code, None) is None, "it has more boxes than it needs")
        middle = [(Fraction(1, 2), Fraction(1, 2))] * len(case.names)
        found[f"{number}: left - right in the middle"] = case.sign * case.value(case.balls(middle))
    return found


def false_says(data: Data) -> str:
    at = ", ".join(f"{name} = {value}" for name, value in data["at"].items())
    ranges = ", ".join(f"{least} <= {name} <= {most}" for name, (least, most) in data["where"].items())
    return f"It is false that for all {ranges}: {data['claim']}{_let(data)}. At {at} it is not so."


def false_check(data: Data) -> dict[str, arb]:
    case = Case(data)
    need(set(data["at"]) == set(case.names), "its point has other variables")
    at = [fraction(exact(data["at"][name])) for name in case.names]
    for x, (least, most) in zip(at, case.ends, strict=True):
        need(_reaches(x, least) and _reaches(most, x), "the point is not in the range")
    off = case.value(list(at))
    if case.sign > 0:
        need(off < 0 or (case.strict and off <= 0), "the inequality is not broken there")
    else:
        need(off > 0 or (case.strict and off >= 0), "the inequality is not broken there")
    return {"left - right": off}


def _reaches(x: Number, y: Number) -> bool:
    """Whether x >= y."""
    gap = plus(x, times(y, fraction(-1)))
    return exactly(gap, 0) or bool(as_ball(gap) > 0)


class Formula(NamedTuple):
    """`left - right`, and the names that are used in it."""

    left: ast.expr
    right: ast.expr
    let: tuple[tuple[str, ast.expr], ...]


class Case:
    """One inequality over one box."""

    def __init__(self, data: Data):
        self.names = list(data["where"])
        need(0 < len(self.names) <= MOST_VARIABLES, "one, two or three variables were expected")
        known = set(self.names) | {"pi"} | set(FUNCTIONS)
        need(len(known) == len(self.names) + 1 + len(FUNCTIONS), "a variable has the name of a function")
        self.ends: list[tuple[Number, Number]] = []
        for least, most in data["where"].values():
            low, high = (Reader({}, 1).read(parsed(end))[0] for end in (least, most))
            need(as_ball(low) < as_ball(high), "a range is empty")
            self.ends.append((low, high))
        let = []
        for name, formula in data["let"].items():
            need(name.isidentifier() and name not in known, f"{name} cannot be a name")
            known.add(name)
            let.append((name, parsed(formula)))
        claim = parsed(data["claim"])
        need(isinstance(claim, ast.Compare) and len(claim.ops) == 1, "one inequality was expected")
        assert isinstance(claim, ast.Compare)
        need(type(claim.ops[0]) in SIGNS, "one of >=, >, <=, < was expected")
        self.sign, self.strict = SIGNS[type(claim.ops[0])]
        self.formula = Formula(claim.left, claim.comparators[0], tuple(let))

    def series(self, point: list[Number], along: int | None = None, length: int = 1) -> Series:
        """`left - right` with one of the variables moved by h."""
        none: Series = [ZERO] * (length - 1)
        named: dict[str, Series] = {}
        for number, (name, x) in enumerate(zip(self.names, point, strict=True)):
            named[name] = [x, *none]
            if number == along and length > 1:
                named[name][1] = ONE
        reader = Reader(named, length)
        for name, formula in self.formula.let:
            named[name] = reader.read(formula)
        return add(reader.read(self.formula.left), scaled(reader.read(self.formula.right), -1))

    def value(self, point: list[Number]) -> arb:
        return as_ball(self.series(point)[0])

    def balls(self, box: list[tuple[Fraction, Fraction]]) -> list[Number]:
        """All points of a box, which is given by shares of the ranges."""
        return [self.between(number, *shares) for number, shares in enumerate(box)]

    def between(self, number: int, first: Fraction, last: Fraction) -> Number:
        """All values between two shares of a range; at one share the value itself."""
        low, high = self.ends[number]
        length = plus(high, times(low, fraction(-1)))
        ends = [plus(low, times(length, fraction(share))) for share in (first, last)]
        return ends[0] if first == last else as_ball(ends[0]).union(as_ball(ends[1]))

    def covered(self, box: list[tuple[Fraction, Fraction]], code: Iterator[str], deep: int) -> None:
        """Read how a box is cut, and check what is said of each part."""
        need(deep > 0, "it cuts boxes too often")
        step = next(code, "")
        if step in {"0", "1", "2"}:
            number = int(step)
            first, last = box[number]
            middle = (first + last) / 2
            for half in ((first, middle), (middle, last)):
                self.covered([*box[:number], half, *box[number + 1 :]], code, deep - 1)
        elif step == "v":
            need(self.sign * self.value(self.balls(box)) > 0, "it is not positive on a box")
        elif step == "g":
            self.by_slopes(list(box))
        else:
            need(step in {"e", "f"}, "its boxes cannot be read")
            self.from_end(box, int(next(code)), last=step == "f")

    def by_slopes(self, box: list[tuple[Fraction, Fraction]]) -> None:
        around = self.balls(box)
        for number, (first, last) in enumerate(box):
            slope = self.sign * as_ball(self.series(around, number, 2)[1])
            if slope > 0 or slope < 0:
                box[number] = (first, first) if slope > 0 else (last, last)
        around = self.balls(box)
        middle = self.balls([((first + last) / 2,) * 2 for first, last in box])
        begin = self.series(middle)[0]
        if exactly(begin, 0) and not self.strict and all(first == last for first, last in box):
            return
        least = self.sign * as_ball(begin)
        for number, (first, last) in enumerate(box):
            if first != last:
                slope = as_ball(self.series(around, number, 2)[1])
                least -= abs(slope) * (as_ball(around[number]) - as_ball(middle[number])).abs_upper()
        need(least > 0, "it is not positive by its slopes on a box")

    def from_end(self, box: list[tuple[Fraction, Fraction]], number: int, last: bool) -> None:
        need(not self.strict, "it may be 0 at an end, and < or > was claimed")
        need(box[number][last] == int(last), "a box does not reach the end that it is said to reach")
        around = self.balls(box)
        at = list(around)
        at[number] = self.ends[number][last]
        begin = self.series(at, number, ORDERS)
        order = next((n for n, x in enumerate(begin) if not exactly(x, 0)), ORDERS)
        need(0 < order < ORDERS, "it is not 0 at an end")
        sign = self.sign * (-1) ** (order * last)
        need(sign * as_ball(self.series(around, number, order + 1)[order]) > 0, "it does not rise from an end")


class Reader:
    """Formulas as series."""

    def __init__(self, named: dict[str, Series], length: int):
        self.named, self.length = named, length

    def constant(self, x: Number) -> Series:
        return [x, *[ZERO] * (self.length - 1)]

    def read(self, node: ast.expr) -> Series:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return self.constant(fraction(value))
            case ast.Name(id="pi"):
                return self.constant(Exact({1: Fraction(1)}))
            case ast.Name(id=name) if name in self.named:
                return self.named[name]
            case ast.UnaryOp(op=ast.USub()):
                return scaled(self.read(node.operand), -1)
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int() as exponent)):
                need(0 <= exponent <= MOST_POWER, "a power is too large")
                return power(self.read(node.left), exponent)
            case ast.BinOp(op=ast.Add()):
                return add(self.read(node.left), self.read(node.right))
            case ast.BinOp(op=ast.Sub()):
                return add(self.read(node.left), scaled(self.read(node.right), -1))
            case ast.BinOp(op=ast.Mult()):
                return multiply(self.read(node.left), self.read(node.right))
            case ast.BinOp(op=ast.Div()):
                return divide(self.read(node.left), self.read(node.right))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](self.read(argument))
        need(False, f"{ast.unparse(node)[:40]!r} cannot be read")
        raise AssertionError


def parsed(text: str) -> ast.expr:
    need(isinstance(text, str) and len(text) <= LONGEST, "a formula cannot be read")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError):
        need(False, f"{text[:40]!r} cannot be read")
        raise AssertionError from None
