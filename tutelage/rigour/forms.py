"""Activations as exact sums of three things: a multiple of |z|, a polynomial, and erf functions."""

import math
from fractions import Fraction
from typing import NamedTuple

from tutelage.problem.activations import Activation
from tutelage.problem.atoms import ErfMixture, PiecewiseLinear, Polynomial
from tutelage.rigour.balls import CannotEnclose


class Form(NamedTuple):
    """`kink |z| + sum_n coefficients[n] z^n + sum weight erf(sqrt(square) z)`; `erfs` has pairs (weight, square)."""

    kink: Fraction
    coefficients: tuple[Fraction, ...]
    erfs: tuple[tuple[Fraction, Fraction], ...]

    @property
    def piecewise_linear(self) -> bool:
        """Whether it is `kink |z| + slope z`: of degree one in its argument."""
        return not self.erfs and len(self.coefficients) <= 2 and not any(self.coefficients[:1])

    @property
    def slope(self) -> Fraction:
        """The coefficient of z."""
        return self.coefficients[1] if len(self.coefficients) > 1 else Fraction(0)

    @property
    def degree(self) -> int | None:
        """n, if `s(r z) = r^n s(z)` for all positive r: the scale of such units can be moved between the layers."""
        if self.piecewise_linear:
            return 1
        powers = [n for n, value in enumerate(self.coefficients) if value]
        return powers[0] if len(powers) == 1 and powers[0] and not self.kink and not self.erfs else None


def form_of(activation: Activation) -> Form:
    """The exact form of an activation: its numbers are the doubles that it has, and `sqrt(0.5)` is the root of 1/2.

    ```python
    >>> from tutelage.problem.activations import activation
    >>> from tutelage.rigour.forms import form_of
    >>> form_of(activation("relu"))
    Form(kink=Fraction(1, 2), coefficients=(Fraction(0, 1), Fraction(1, 2)), erfs=())

    ```
    """
    if activation.direct is not None:
        raise CannotEnclose(
            f"{activation.name} is a sum of erf functions to 16 digits only, so that nothing is proved of it; use "
            "relu, leaky_relu, abs, linear, erf or a polynomial."
        )
    kink, coefficients, erfs = Fraction(0), [Fraction(0)], list[tuple[Fraction, Fraction]]()
    for atom in activation.atoms:
        if isinstance(atom, PiecewiseLinear):
            kink += Fraction(atom.kink)
            _add(coefficients, 1, atom.linear)
        elif isinstance(atom, Polynomial):
            for power, value in enumerate(atom.coefficients):
                _add(coefficients, power, value)
        elif isinstance(atom, ErfMixture):
            erfs += [_erf(*pair) for pair in zip(atom.weights, atom.slopes, strict=True)]
        else:
            raise CannotEnclose(
                f"{activation.name} has no closed form in ball arithmetic; use relu, leaky_relu, abs, linear, erf or a "
                "polynomial."
            )
    while len(coefficients) > 1 and not coefficients[-1]:
        coefficients.pop()
    return Form(kink, tuple(coefficients), tuple(erfs))


def _add(coefficients: list[Fraction], power: int, value: float) -> None:
    coefficients += [Fraction(0)] * (power + 1 - len(coefficients))
    coefficients[power] += Fraction(value)


def _erf(weight: float, slope: float) -> tuple[Fraction, Fraction]:
    """erf is odd, so that its slope may be taken positive, and then is the root of its square."""
    square = Fraction(1, 2) if abs(slope) == math.sqrt(0.5) else Fraction(slope) ** 2
    return Fraction(weight) * (1 if slope >= 0 else -1), square
