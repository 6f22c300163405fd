"""Enclosures beside 60-digit values, at random and degenerate pairs of rows; boxes beside points inside them.

    python tests/rigour/sweep.py 10000

`tests/rigour/test_kernels.py` runs a sample of it. What is outside its ball is told, and the exit code is 1.
"""

import random
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from flint import arb, fmpq
from mpmath import mp, mpf

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference import gaussian as gs  # noqa: E402

from tutelage.problem.activations import activation  # noqa: E402
from tutelage.rigour.balls import CannotEnclose, precision  # noqa: E402
from tutelage.rigour.forms import Form, form_of  # noqa: E402
from tutelage.rigour.kernels import Kernel, meeting  # noqa: E402

NAMES = (
    "relu",
    "abs",
    "linear",
    "erf",
    "probit",
    "he2",
    "he3",
    "he4",
    "polynomial",
    "constant",
    "relu_and_erf",
    "abs_and_he3",
)
DIGITS = 60
MISS = arb("1e-50")
"""What a reference value of 60 digits may be off, relative to its size."""
SMALL = Fraction(1, 10**25)
"""Relative step of difference quotients, which are right to its square."""
QUOTIENT = arb("1e-38")
ROUGH = arb("1e-19")
"""Of difference quotients of gradients: second derivatives of kinked units have a kink at parallel rows."""

Row = tuple[Fraction, ...]


MADE = {
    "polynomial": Form(Fraction(0), tuple(map(Fraction, (0.5, -1, 0.25, 0.125))), ()),
    "relu_and_erf": Form(Fraction(1, 2), (Fraction(0), Fraction(1, 2)), ((Fraction(1), Fraction(1)),)),
    "abs_and_he3": Form(Fraction(1), tuple(map(Fraction, (0, -3, 0, 1))), ()),
}


def form(name: str) -> Form:
    """What the reference names so."""
    return MADE[name] if name in MADE else form_of(activation(name))


def pairs(seed: int) -> Iterator[tuple[str, Row, Row]]:
    """What the pair is, and its two rows, for ever."""
    draw = random.Random(seed)

    def row(size: int) -> Row:
        return tuple(Fraction(draw.randint(-99, 99), 30) for _ in range(size))

    while True:
        size = draw.randint(1, 4)
        a, factor = row(size), Fraction(draw.randint(1, 50), 10)
        while not any(a):
            a = row(size)
        nudge = Fraction(1, 10 ** draw.choice((3, 12, 30)))
        across = tuple(Fraction(x) for x in ((-a[1], a[0], *[0] * (size - 2)) if size > 1 else (0,)))
        yield "random", a, row(size)
        yield "aligned", a, tuple(factor * x for x in a)
        yield "opposite", a, tuple(-factor * x for x in a)
        yield "equal", a, a
        yield "orthogonal", a, across
        yield "zero", a, (Fraction(0),) * size
        yield "nearly aligned", a, tuple(factor * x + nudge * y for x, y in zip(a, row(size), strict=True))
        yield "nearly opposite", a, tuple(-factor * x + nudge * y for x, y in zip(a, row(size), strict=True))
        yield "unlike sizes", tuple(x / 1000 for x in a), tuple(100 * x for x in row(size))


def balls(row: Row) -> list[arb]:
    return [arb(fmpq(x.numerator, x.denominator)) for x in row]


def long(row: Row) -> tuple[mpf, ...]:
    return tuple(mpf(x.numerator) / x.denominator for x in row)


def reference(s: str, t: str, a: Row, b: Row) -> arb:
    """The value of `tests/reference`, which uses nothing of the package; closed forms have twice the digits."""
    return arb(mp.nstr(gs.expectation(s, t, long(a), long(b)), DIGITS + 55))


def quotient(s: str, t: str, a: Row, b: Row, k: int) -> arb:
    """The derivative in entry k of a, by a difference."""
    step = SMALL * max(map(abs, a))
    moved = [tuple(x + sign * step * (n == k) for n, x in enumerate(a)) for sign in (1, -1)]
    up, down = (reference(s, t, each, b) for each in moved)
    return (up - down) / balls((2 * step,))[0]


def off(found: arb, expected: arb, allowed: arb) -> bool:
    """Whether a value surely is not within `allowed` of the expected one, or the ball says nothing."""
    size = 1 + abs(expected)
    return not (found.is_finite() and abs(found - expected) < allowed * size)


def misses(count: int, seed: int = 0, bits: int = 400) -> list[str]:
    """What is wrong at so many pairs of activations and rows; values, gradients, boxes."""
    draw, found, source = random.Random(seed + 1), [], pairs(seed)
    with mp.workdps(2 * DIGITS), precision(bits):
        for _ in range(count):
            s, t = draw.choice(NAMES), draw.choice(NAMES)
            kind, a, b = next(source)
            place = f"{s}, {t}, {kind}: {a}, {b}"
            kernel, met = Kernel(form(s), form(t)), meeting(balls(a), balls(b))
            if off(kernel.value(met), reference(s, t, a, b), MISS):
                found.append(f"value, {place}")
            slopes, k = kernel.slopes(met), draw.randrange(len(a))
            gradient = slopes.onto_a * balls(a)[k] + slopes.onto_b * balls(b)[k]
            if off(gradient, quotient(s, t, a, b, k), QUOTIENT):
                found.append(f"gradient, {place}")
            if kind != "zero":
                found += [f"Hessian, {place}" for n in (0, 1) if bent(kernel, (a, b), k, n)]
            found += [f"{what}, {place}" for what in outside(kernel, a, b, draw)]
    return found


def bent(kernel: Kernel, rows: tuple[Row, Row], k: int, n: int) -> bool:
    """Whether column k of a block (0: in a twice; 1: in a and b) is not the difference quotient of gradients."""
    if not any(rows[1]):
        return False
    step, ends = SMALL * max(map(abs, rows[n])), []
    for sign in (1, -1):
        moved = [list(row) for row in rows]
        moved[n][k] += sign * step
        ends.append(_gradient(kernel, *map(balls, moved)))
    block = kernel.blocks(*map(balls, rows))[n]
    pairs = zip(*ends, strict=True)
    return any(off(block[i, k], (up - down) / balls((2 * step,))[0], ROUGH) for i, (up, down) in enumerate(pairs))


def outside(kernel: Kernel, a: Row, b: Row, draw: random.Random) -> Iterator[str]:
    """What a box does not contain of a point inside it."""
    radius = Fraction(1, 10 ** draw.choice((1, 3, 20)))
    wide = [[x + arb(0, float(radius)) for x in balls(row)] for row in (a, b)]
    shift = [[draw.choice((-1, 1, 0, Fraction(draw.randint(-9, 9), 10))) for _ in row] for row in (a, b)]
    at = [
        balls(tuple(x + radius * Fraction(999, 1000) * by for x, by in zip(row, moves, strict=True)))
        for row, moves in zip((a, b), shift, strict=True)
    ]
    for what, ask in ASKED.items():
        try:
            box = ask(kernel, *wide)
        except CannotEnclose:
            continue
        for one, other in zip(box, ask(kernel, *at), strict=True):
            if not (one.is_finite() and one.overlaps(other)):
                yield f"{what} over a box"
                break


def _gradient(kernel: Kernel, a: list[arb], b: list[arb]) -> list[arb]:
    slopes = kernel.slopes(meeting(a, b))
    return [slopes.onto_a * x + slopes.onto_b * y for x, y in zip(a, b, strict=True)]


ASKED = {
    "value": lambda kernel, a, b: [kernel.value(meeting(a, b))],
    "gradient": _gradient,
    "Hessian": lambda kernel, a, b: [x for block in kernel.blocks(a, b) for x in block.entries()],
}

if __name__ == "__main__":
    wrong = misses(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    print(*wrong[:20], f"{len(wrong)} misses", sep="\n")
    sys.exit(bool(wrong))
