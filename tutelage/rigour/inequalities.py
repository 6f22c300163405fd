"""Inequalities in one, two or three variables, by branch and bound: proved, refuted by a point, or undecided somewhere.

A box is settled if `left - right` is positive on all of it, by its ball or by its slopes (the mean value theorem);
otherwise it is halved. No ball shows an equality: where both sides are equal at an end of a variable, the
first derivative there that is not exactly 0 decides, if it has one sign on a box. How the boxes were cut is what the
checker is given, which looks at each again with other arithmetic.
"""

import ast
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from flint import arb

from tutelage._checks import mapping, whole
from tutelage._errors import BadInput, shown
from tutelage.rigour import verify
from tutelage.rigour.balls import MOST_BITS, CannotEnclose, ball, exact, precision
from tutelage.rigour.jets import Jet
from tutelage.rigour.proofs import BITS, Proof, enclosing, text
from tutelage.rigour.verify.inequality import DEEPEST, Case
from tutelage.rigour.verify.series import Exact, as_ball, exactly, fraction

Ends = tuple[str, str]
Shares = tuple[tuple[Fraction, Fraction], ...]
"""A box, as shares of the ranges of its variables."""
FINEST = Fraction(1, 2**24)
"""Boxes with smaller shares are not halved."""


@dataclass(frozen=True)
class Inequality:
    """What was found out about an inequality.

    - `holds`: True if it is proved, False if it is refuted, None if neither.
    - `counterexample`: values at which it is false. `undecided`: boxes on which nothing is known, each with its ranges.
    - `boxes`: how many were looked at.
    """

    claim: str
    where: Mapping[str, Ends]
    let: Mapping[str, str]
    holds: bool | None
    counterexample: Mapping[str, Fraction] | None
    undecided: tuple[Mapping[str, tuple[float, float]], ...]
    boxes: int
    seconds: float
    cover: str = field(repr=False, default="")

    def __repr__(self) -> str:
        took = f"{self.boxes} boxes, {self.seconds:.1f} s"
        if self.counterexample is not None:
            at = ", ".join(f"{name} = {value}" for name, value in self.counterexample.items())
            return f"Refuted: {self.claim} is false at {at} ({took})."
        if self.holds:
            return f"Proved: {self.claim} ({took})."
        first = ", ".join(f"{low:.9g} <= {name} <= {high:.9g}" for name, (low, high) in self.undecided[0].items())
        return f"Undecided: {self.claim} on {len(self.undecided)} boxes, the first {first} ({took})."

    @property
    def data(self) -> dict[str, object]:
        """What a proof holds of it."""
        return {"claim": self.claim, "where": {n: list(e) for n, e in self.where.items()}, "let": dict(self.let)}

    def proof(self, id: str = "inequality") -> Proof:
        """The proof that it holds, or that it does not."""
        if self.counterexample is None:
            return inequalities(id, self)
        data = self.data | {"at": {name: text(value) for name, value in self.counterexample.items()}}
        return _sealed(id, "an inequality that is false", data)


def inequalities(id: str, *several: Inequality) -> Proof:
    """One proof of several inequalities that hold."""
    for each in several:
        if not each.holds:
            known = "undecided" if each.holds is None else "false"
            raise CannotEnclose(f"There is no proof that {each.claim}: it is {known}.")
    return _sealed(id, "inequalities on intervals", {"inequalities": [e.data | {"cover": e.cover} for e in several]})


def _sealed(id: str, kind: str, data: dict[str, object]) -> Proof:
    with precision(BITS):
        return Proof(id, kind, data, enclosing(verify.KINDS[kind].check(data)), BITS)


def inequality(
    claim: str,
    where: Mapping[str, tuple[object, object]],
    *,
    let: Mapping[str, str] | None = None,
    most: int = 20_000,
    bits: int = 128,
) -> Inequality:
    """Prove an inequality for all values of its variables in closed ranges, or find values at which it is false.

    - `claim`: two formulas with `>=`, `>`, `<=` or `<` between them, in whole numbers, `pi`, the variables, `+ - * /`,
      whole powers (`**`), and sin, cos, exp, log, sqrt, atan, asin, acos.
    - `where`: from where to where each variable goes: numbers, or formulas such as "pi/2".
    - `let`: formulas by name, that the claim and later ones may use.
    - `most`: after so many boxes all that is left is undecided.

    Where both sides are equal nothing is decided, but at an end of a variable or in a corner, if they are equal there
    in exact arithmetic with fractions and powers of pi: so let a variable be the distance from where they are.

    ```python
    >>> import tutelage as tt
    >>> tt.prove.inequality("sin(t) >= t*cos(t)", {"t": (0, "pi")}).holds
    True
    >>> tt.prove.inequality("x*y <= 1/2", {"x": (0, 1), "y": (0, 1)}).counterexample
    {'x': Fraction(1, 1), 'y': Fraction(1, 1)}

    ```
    """
    ranges = mapping("prove.inequality: where", where, "a dictionary with the two ends of each variable")
    written = {name: _ends(name, ends) for name, ends in ranges.items()}
    named = dict(mapping("prove.inequality: let", let or {}, "a dictionary of formulas"))
    most = whole("prove.inequality: most", most, least=1)
    began = time.perf_counter()
    with precision(whole("prove.inequality: bits", bits, least=64, most=MOST_BITS)):
        try:
            case = Case({"claim": claim, "where": written, "let": named})
            case.value(case.balls([(Fraction(1, 2),) * 2] * len(case.names)))  # all that is in it can be read
        except verify.Refused as refused:
            raise BadInput(
                f"prove.inequality: {shown(claim)} cannot be asked, {refused}; formulas have whole numbers (1/2, not "
                "0.5), pi, the variables, + - * / ** and sin, cos, exp, log, sqrt, atan, asin, acos."
            ) from None
        search = _Search(case, most)
        search.run()
        return Inequality(
            claim, written, named, search.holds, search.counterexample, search.undecided, search.boxes,
            time.perf_counter() - began, search.root.code() if search.holds else "",
        )  # fmt: skip


def _ends(name: object, ends: object) -> Ends:
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        raise BadInput(f"prove.inequality: {name} has the range {shown(ends)}, but its two ends were expected.")
    low, high = (end if isinstance(end, str) else text(exact(f"prove.inequality: {name}", end)) for end in ends)
    return low, high


class _Node:
    """A box, how often it was halved, and how it was settled."""

    def __init__(self, box: Shares, depth: int):
        self.box, self.depth, self.step = box, depth, ""
        self.halves: tuple[_Node, ...] = ()

    def code(self) -> str:
        return self.step + "".join(half.code() for half in self.halves)


class _Search:
    """Boxes, the largest first, until all are settled."""

    def __init__(self, case: Case, most: int):
        self.case, self.most, self.boxes = case, most, 0
        self.root = _Node(((Fraction(0), Fraction(1)),) * len(case.names), 0)
        self.counterexample: dict[str, Fraction] | None = None
        self.undecided: tuple[dict[str, tuple[float, float]], ...] = ()

    @property
    def holds(self) -> bool | None:
        return False if self.counterexample is not None else None if self.undecided else True

    def run(self) -> None:
        corners = [[value for end in ends if (value := _rational(end)) is not None] for ends in self.case.ends]
        if any(self.false_at(corner) for corner in product(*corners)):
            return
        waiting, left = deque([self.root]), list[_Node]()
        while waiting and self.counterexample is None:
            node = waiting.popleft()
            small = all(last - first < FINEST for first, last in node.box)
            if self.boxes >= self.most or small or node.depth >= DEEPEST - 1:
                left.append(node)
                continue
            self.boxes += 1
            node.step = self.settled(node.box)
            if node.step.isdigit():
                if self.refuted(node.box):
                    return
                node.halves = self.halves(node, int(node.step))
                waiting.extend(node.halves)
        self.undecided = tuple(self.ranges(node.box) for node in left)

    def halves(self, node: _Node, number: int) -> tuple[_Node, ...]:
        first, last = node.box[number]
        middle = (first + last) / 2
        before, after = node.box[:number], node.box[number + 1 :]
        return tuple(_Node((*before, half, *after), node.depth + 1) for half in ((first, middle), (middle, last)))

    def settled(self, box: Shares) -> str:
        """How the inequality is shown on a box, or the variable in which to halve it."""
        around = self.jet(box)
        if around.value > 0:
            return "v"
        if self.rises(box, around):
            return "g"
        for number, (first, last) in enumerate(box):
            for step, reached in (("e", first == 0), ("f", last == 1)):
                if reached and self.from_end(box, number, step == "f"):
                    return f"{step}{number}"
        spreads = [(_size(around.slope[n]) * self.width(n, shares), n) for n, shares in enumerate(box)]
        return str(max(spreads)[1])

    def rises(self, box: Shares, around: Jet) -> bool:
        """Whether it is positive by the mean value theorem; what it is monotone in is put to its worse end."""
        least = list(box)
        for number, (first, last) in enumerate(box):
            slope = around.slope[number]
            if slope > 0 or slope < 0:
                least[number] = (first, first) if slope > 0 else (last, last)
        middle = tuple(((first + last) / 2,) * 2 for first, last in least)
        if middle == tuple(least) and exactly(self.case.series(self.case.balls(least))[0], 0):
            return not self.case.strict
        face, begin = self.jet(tuple(least)), self.jet(middle).value
        for number, shares in enumerate(least):
            begin -= abs(face.slope[number]) * arb(self.width(number, shares)) / 2
        return bool(begin > 0)

    def from_end(self, box: Shares, number: int, last: bool) -> bool:
        """Whether the first derivative that is not 0 at an end decides: as the checker sees it, which has fractions."""
        try:
            self.case.from_end(list(box), number, last)
        except verify.Refused:
            return False
        return True

    def refuted(self, box: Shares) -> bool:
        """Whether it is false near the middle of a box, at numbers that are not long."""
        point = []
        for low, high in self.ranges(box).values():
            width, middle = Fraction(high) - Fraction(low), (Fraction(low) + Fraction(high)) / 2
            point.append(middle.limit_denominator(max(1, int(4 / width))) if width > 0 else middle)
        return self.false_at(point)

    def false_at(self, point: Sequence[Fraction]) -> bool:
        """Whether it is false there; that is kept."""
        try:
            off = self.case.sign * self.case.value([fraction(x) for x in point])
        except verify.Refused:
            return False
        if off < 0 or (self.case.strict and off <= 0):
            self.counterexample = dict(zip(self.case.names, point, strict=True))
        return self.counterexample is not None

    def ranges(self, box: Shares) -> dict[str, tuple[float, float]]:
        found = {}
        for number, (name, (first, last)) in enumerate(zip(self.case.names, box, strict=True)):
            ends = [float(as_ball(self.case.between(number, share, share)).mid()) for share in (first, last)]
            found[name] = (ends[0], ends[1])
        return found

    def width(self, number: int, shares: tuple[Fraction, Fraction]) -> float:
        """Of a range, not less than it is."""
        low, high = (as_ball(end) for end in self.case.ends[number])
        return float(((high - low) * ball(shares[1] - shares[0])).abs_upper()) * (1 + 1e-15)

    def jet(self, box: Shares) -> Jet:
        """`left - right`, with the sign that is to be positive, and its derivatives."""
        point = [as_ball(x) for x in self.case.balls(list(box))] + [arb(0)] * (3 - len(box))
        named = dict(zip(self.case.names, Jet.variables(*point), strict=False))
        for name, formula in self.case.formula.let:
            named[name] = _jet(formula, named)
        off = _jet(self.case.formula.left, named) - _jet(self.case.formula.right, named)
        return off.times(arb(self.case.sign))


def _rational(end: Exact | arb) -> Fraction | None:
    """An end, if it is a fraction."""
    return end.terms.get(0, Fraction(0)) if isinstance(end, Exact) and set(end.terms) <= {0} else None


def _size(x: arb) -> float:
    return float(x.abs_upper()) if x.is_finite() else float("inf")


def _jet(node: ast.expr, named: Mapping[str, Jet]) -> Jet:
    """A formula that the checker can read."""
    if isinstance(node, ast.BinOp):
        left = _jet(node.left, named)
        if isinstance(node.op, ast.Pow):
            assert isinstance(node.right, ast.Constant) and isinstance(node.right.value, int)
            return left**node.right.value
        return OPERATORS[type(node.op)](left, _jet(node.right, named))
    if isinstance(node, ast.UnaryOp):
        return _jet(node.operand, named).times(arb(-1))
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _asked(node.func.id, _jet(node.args[0], named))
    if isinstance(node, ast.Name):
        return Jet.constant(arb.pi()) if node.id == "pi" else named[node.id]
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return Jet.constant(node.value)


OPERATORS: dict[type[ast.operator], Callable[[Jet, Jet], Jet]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a * b.inverse(),
}


def _asked(function: str, inner: Jet) -> Jet:
    """A function of a jet, by its value and its first two derivatives."""
    z = inner.value
    match function:
        case "sqrt":
            return inner.root()
        case "atan":
            return inner.arctangent()
        case "sin":
            return inner.then(z.sin(), z.cos(), -z.sin())
        case "cos":
            return inner.then(z.cos(), -z.sin(), -z.cos())
        case "exp":
            return inner.then(z.exp(), z.exp(), z.exp())
        case "log":
            return inner.then(z.log(), 1 / z, -1 / (z * z))
    rest = 1 / (1 - z * z).sqrt()
    bend = z * rest * rest * rest
    return inner.then(z.asin(), rest, bend) if function == "asin" else inner.then(z.acos(), -rest, -bend)
