"""Second-order jets: a ball with its derivatives in three variables, for kernels that are formulas in (p, q, c)."""

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from flint import arb

Slope = tuple[arb, arb, arb]
PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
PLACE = {pair: place for place, pair in enumerate(PAIRS)} | {(j, i): place for place, (i, j) in enumerate(PAIRS)}


class Jet:
    """A function's value, slope and second derivatives (in the order of `PAIRS`) at a point or over a box.

    ```python
    >>> from flint import arb
    >>> from tutelage.rigour.jets import Jet
    >>> p, q, c = Jet.variables(arb(2), arb(3), arb(1))
    >>> square = p * p * q
    >>> print(square.value, square.slope[0], square.bend(0, 1))
    12.0000000000000 12.0000000000000 4.00000000000000

    ```
    """

    __slots__ = ("second", "slope", "value")

    def __init__(self, value: arb, slope: Slope, second: tuple[arb, ...]):
        self.value, self.slope, self.second = value, slope, second

    @classmethod
    def variables(cls, p: arb, q: arb, c: arb) -> tuple["Jet", "Jet", "Jet"]:
        """The three variables themselves."""
        one, none = arb(1), arb(0)
        flat = (none,) * 6
        return (
            cls(p, (one, none, none), flat),
            cls(q, (none, one, none), flat),
            cls(c, (none, none, one), flat),
        )

    @classmethod
    def constant(cls, value: arb | int) -> "Jet":
        none = arb(0)
        return cls(arb(value), (none, none, none), (none,) * 6)

    def bend(self, i: int, j: int) -> arb:
        """The second derivative in variables i and j."""
        return self.second[PLACE[i, j]]

    def __add__(self, other: "Jet") -> "Jet":
        return Jet(
            self.value + other.value,
            _slope([a + b for a, b in zip(self.slope, other.slope, strict=True)]),
            tuple(a + b for a, b in zip(self.second, other.second, strict=True)),
        )

    def __sub__(self, other: "Jet") -> "Jet":
        return self + other.times(arb(-1))

    def __mul__(self, other: "Jet") -> "Jet":
        u, v, f, g = self.value, other.value, self.slope, other.slope
        return Jet(
            u * v,
            _slope([u * b + v * a for a, b in zip(f, g, strict=True)]),
            tuple(
                u * other.second[n] + v * self.second[n] + f[i] * g[j] + f[j] * g[i] for n, (i, j) in enumerate(PAIRS)
            ),
        )

    def __pow__(self, power: int) -> "Jet":
        return math.prod([self] * power, start=Jet.constant(1))

    def times(self, factor: arb) -> "Jet":
        return Jet(
            factor * self.value,
            _slope([factor * a for a in self.slope]),
            tuple(factor * a for a in self.second),
        )

    def then(self, value: arb, first: arb, second: arb) -> "Jet":
        """A function of this, by its own value and derivatives here."""
        f = self.slope
        return Jet(
            value,
            _slope([first * a for a in f]),
            tuple(first * self.second[n] + second * f[i] * f[j] for n, (i, j) in enumerate(PAIRS)),
        )

    def inverse(self) -> "Jet":
        over = 1 / self.value
        return self.then(over, -over * over, 2 * over * over * over)

    def root(self) -> "Jet":
        root = self.value.sqrt()
        return self.then(root, 1 / (2 * root), -1 / (4 * root * self.value))

    def arctangent(self) -> "Jet":
        z = self.value
        first = 1 / (1 + z * z)
        return self.then(z.atan(), first, -2 * z * first * first)


class Slant:
    """A jet without second derivatives, whose entries may be power series: `None` is an entry that is exactly 0."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Any, slope: tuple[Any, ...]):
        self.value, self.slope = value, slope

    @classmethod
    def variables(cls, *values: Any) -> "tuple[Slant, ...]":
        """The variables themselves."""
        places = range(len(values))
        return tuple(cls(x, tuple(arb(1) if i == n else None for i in places)) for n, x in enumerate(values))

    @classmethod
    def constant(cls, value: arb | int) -> "Slant":
        return cls(arb(value), (None, None, None))

    def __add__(self, other: "Slant") -> "Slant":
        return Slant(self.value + other.value, tuple(map(_sum, self.slope, other.slope)))

    def __sub__(self, other: "Slant") -> "Slant":
        return self + other.times(arb(-1))

    def __mul__(self, other: "Slant") -> "Slant":
        u, v = self.value, other.value
        pairs = zip(self.slope, other.slope, strict=True)
        return Slant(u * v, tuple(_sum(_product(v, a), _product(u, b)) for a, b in pairs))

    def __pow__(self, power: int) -> "Slant":
        return math.prod([self] * power, start=Slant.constant(1)) if power != 1 else self

    def times(self, factor: arb) -> "Slant":
        return Slant(factor * self.value, tuple(_product(factor, a) for a in self.slope))

    def then(self, value: Any, first: Any) -> "Slant":
        """A function of this, by its own value and slope here."""
        return Slant(value, tuple(_product(first, a) for a in self.slope))

    def inverse(self) -> "Slant":
        over = 1 / self.value
        return self.then(over, -over * over)

    def root(self) -> "Slant":
        root = self.value.sqrt()
        return self.then(root, 1 / (2 * root))

    def arctangent(self) -> "Slant":
        z = self.value
        return self.then(z.atan(), 1 / (1 + z * z))


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _product(one: Any, other: Any) -> Any:
    return None if other is None else one * other


def _slope(values: Sequence[arb]) -> Slope:
    return values[0], values[1], values[2]


Expansion = TypeVar("Expansion", Jet, Slant)
"""Either kind: kernels are formulas in three of one kind."""
