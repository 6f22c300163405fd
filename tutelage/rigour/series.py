"""The gradient of a loss along power series in time, and what follows: Taylor coefficients of a flow, and Hessians.

The same formulas as in `kernels` and `loss`, for weights that are series. Where two rows may be parallel a kinked
kernel has no series, and is refused; but on a line rows are parallel for ever, and everything is a polynomial.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flint import arb, arb_mat, arb_series, ctx

from tutelage.rigour.balls import CannotEnclose, known
from tutelage.rigour.jets import Slant
from tutelage.rigour.kernels import Kernel, smooth

Series = arb_series
Line = Sequence[Series]


class Slope(NamedTuple):
    """A gradient in incoming weights (unit, coordinate) and in outgoing ones (unit, output)."""

    first: list[list[Series]]
    second: list[list[Series]]


Field = Callable[[list[list[Series]], list[list[Series]]], Slope]


def inner(a: Line, b: Line) -> Series:
    """The inner product; what is exactly 0 costs nothing."""
    total = arb_series([0])
    for x, y in zip(a, b, strict=True):
        if x.coeffs() and y.coeffs():
            total += x * y
    return total


class Meeting(NamedTuple):
    """What a kernel sees of two rows: their squares, inner product, and the area between them, 0 on a line."""

    p: Series
    q: Series
    c: Series
    across: Series | None

    @classmethod
    def of(cls, a: Line, b: Line, *, bent: bool = True) -> "Meeting":
        """That of two rows; the area is needed for kinks alone."""
        p, q, c = inner(a, a), inner(b, b), inner(a, b)
        if not bent or len(a) == 1:
            return cls(p, q, c, None)
        square = p * q - c * c
        across = square.sqrt()
        if not (square[0] > 0 and across[0] > 0):
            raise CannotEnclose(
                "Two rows with kinked activations may be parallel, where the flow has no Taylor series; use a smaller "
                "step or more precision, or start where they are not."
            )
        return cls(p, q, c, across)

    def lean(self) -> Series:
        """atan2(c, S)."""
        if self.across is not None:
            return (self.c / self.across).atan()
        here = self.c[0]
        if not (here > 0 or here < 0):
            raise CannotEnclose("A row with a kinked activation may be zero: there the gradient does not exist.")
        return arb_series([arb.pi() / (2 if here > 0 else -2)])

    def area(self) -> Series:
        """S."""
        return arb_series([0]) if self.across is None else self.across


def both(kernel: Kernel, a: Line, b: Line) -> tuple[Series, list[Series]]:
    """K(a, b), and its gradient in a."""
    met = Meeting.of(a, b, bent=kernel.bent)
    if (kernel.s.kink and not met.p[0] > 0) or (kernel.bent and not met.q[0] > 0):
        raise CannotEnclose("A row with a kinked activation may be zero: there the gradient does not exist.")
    if kernel.plain:
        total, onto_a, onto_b = met.c * kernel.linear, arb_series([0]), arb_series([kernel.linear])
    else:
        jet = smooth(kernel.s, kernel.t, *Slant.variables(met.p, met.q, met.c))
        total, (onto_a, _, onto_b) = jet.value, (arb_series([0]) if x is None else x for x in jet.slope)
        onto_a *= 2
    if kernel.bent:
        lean, area = met.lean(), met.area()
        total += (area + met.c * lean) * kernel.bend
        onto_a += area / met.p * kernel.bend
        onto_b += lean * kernel.bend
    return total, [onto_a * x + onto_b * y for x, y in zip(a, b, strict=True)]


def alone(kernel: Kernel, a: Line) -> tuple[Series, list[Series]]:
    """`K(a, a)`, and half of its gradient: that in one of the two places."""
    square = Slant.variables(inner(a, a), None, None)[0]
    jet = kernel.of_square(square)
    return jet.value, [jet.slope[0] * x for x in a]


def coefficient(series: Series | arb, n: int) -> arb:
    """That of the n-th power; what a series does not know is not taken for 0."""
    if isinstance(series, arb):
        series = arb_series([series])
    if series.prec <= n:
        raise CannotEnclose("A power series ends before the coefficient that is needed.")
    return known(series[n], "A Taylor coefficient")


class Weights(NamedTuple):
    """Coefficients in time of all weights: one list for each entry."""

    first: list[list[list[arb]]]
    second: list[list[list[arb]]]

    def series(self) -> tuple[list[list[Series]], list[list[Series]]]:
        """As power series, cut where `ctx.cap` says."""
        first, second = ([[arb_series(x) for x in row] for row in part] for part in self)
        return first, second


def asked(field: Field, weights: Weights) -> Slope:
    """The gradient; a division by what may be 0 is none."""
    try:
        return field(*weights.series())
    except (ValueError, ZeroDivisionError) as error:
        if isinstance(error, CannotEnclose):
            raise
        raise CannotEnclose("A series is divided by what may be 0; use a smaller step or more precision.") from None


def taylor(field: Field, first: arb_mat, second: arb_mat, rates: Sequence[arb], order: int) -> Weights:
    """Coefficients, up to that of an order, of the flow `w' = -rate gradient` from weights, or over a box of them."""
    weights = Weights(*([[[x] for x in row] for row in part.tolist()] for part in (first, second)))
    before = ctx.cap
    try:
        for n in range(order):
            ctx.cap = n + 1
            for part, slope, rate in zip(weights, asked(field, weights), rates, strict=True):
                if not rate.is_zero():
                    for entries, found in zip(part, slope, strict=True):
                        for entry, x in zip(entries, found, strict=True):
                            entry.append(-rate * coefficient(x, n) / (n + 1))
                else:
                    for entry in (x for row in part for x in row):
                        entry.append(arb(0))
    finally:
        ctx.cap = before
    return weights


def bent(field: Field, first: arb_mat, second: arb_mat, moves: Sequence[str]) -> arb_mat:
    """The Hessian in the parts that move, outgoing weights first: the gradient's slope along each entry."""
    parts, before, columns = {"first": first, "second": second}, ctx.cap, []
    ctx.cap = 2
    try:
        for layer in moves:
            for i in range(parts[layer].nrows()):
                for j in range(parts[layer].ncols()):
                    moved = {name: [[[x] for x in row] for row in part.tolist()] for name, part in parts.items()}
                    moved[layer][i][j].append(arb(1))
                    slope = asked(field, Weights(**moved))._asdict()
                    columns.append([coefficient(x, 1) for name in moves for row in slope[name] for x in row])
    finally:
        ctx.cap = before
    return arb_mat(columns).transpose()
