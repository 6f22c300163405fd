"""Gates of experts in balls: `c_k = E[p^(k)(z)]`, and `G_ab(rho) = E[p^(a)(z1) q^(b)(z2)]` with a proved tail.

`G_ab(rho) = sum_k T_k rho^k` with `T_k = c_(k+a) d_(k+b)/k!` (Mehler), for |rho| <= 1. What is left after K terms:

- *sigmoid(s z)*, and with it tanh: for odd n `c_n = (-1)^((n-1)/2) I_(n-1)/pi` with
  `I_m = int_0^inf w^m g(w) e^(-w^2/2) dw` and `g(w) = (pi w/s)/sinh(pi w/s)`. Since `g'/g <= 1/w - pi/s`, by parts
  `I_(m+2) <= (m+2) I_m - (pi/s) I_(m+1)`; and `I_(m+1)/I_m` rises with m (moments are logarithmically convex), so that
  from n on it is at least `r = sqrt(|c_(n+2)/c_n|)`. Hence `|c_(m+2)| <= |c_m| (m + 1 - pi r/s)`, and with
  `x = pi r/s - max(a, b)` it is `|T_(k+2)/T_k| <= (1 - x/(k+2))^2 <= ((k+2)/(k+4))^x`: the terms after the K-th sum to
  at most `|T_K| (K+2)/(2 (x - 1))`.
- *erf(s z)*: `|c_(n+2)/c_n| = 2 n B` with `B = s^2/(1 + 2 s^2) < 1/2`: a geometric series.
- *polynomials*: nothing is left.

The integrals are trapezoidal sums with the step h. The integrand is analytic for |Im w| < s; on the lines Im w = s/2,
where |sinh| is cosh, its modulus has an integral of at most `N = pi e^(s^2/4) ((2j+1)/e)^(j+1/2)` for m = 2j, s <= 2,
so that the sum is off by at most `2 N/(e^(pi s/h) - 1)`.
"""

import functools
import math
from fractions import Fraction
from typing import NamedTuple

from flint import arb, arb_poly, arb_series, ctx

from tutelage.problem.activations import Activation, activation
from tutelage.rigour.balls import CannotEnclose, ball
from tutelage.rigour.forms import form_of

TERMS = 601
"""Of a series; the next one has the same parity as the last."""
MOST_ORDERS = 60
"""Of derivatives of a gate."""


class Gate(NamedTuple):
    """`sum_n coefficients[n] z^n + weight u(slope z)`, with `u` the sigmoid, erf, or nothing."""

    kind: str
    slope: Fraction
    weight: Fraction
    coefficients: tuple[Fraction, ...]


def gate_of(gate: Activation) -> Gate:
    """The exact form of a gate.

    ```python
    >>> from tutelage.problem.activations import activation
    >>> from tutelage.rigour.gates import gate_of
    >>> gate_of(activation("tanh"))  # 2 sigmoid(2z) - 1
    Gate(kind='sigmoid', slope=Fraction(2, 1), weight=Fraction(2, 1), coefficients=(Fraction(-1, 1),))

    ```
    """
    if gate == activation("sigmoid"):
        return Gate("sigmoid", Fraction(1), Fraction(1), (Fraction(0),))
    if gate == activation("tanh"):
        return Gate("sigmoid", Fraction(2), Fraction(2), (Fraction(-1),))
    form = form_of(gate)
    if form.kink or len(form.erfs) > 1:
        raise CannotEnclose(f"The gate {gate.name} is not enclosed; use sigmoid, tanh, erf, probit or a polynomial.")
    weight, square = form.erfs[0] if form.erfs else (Fraction(0), Fraction(0))
    return Gate("erf" if form.erfs else "none", square, weight, form.coefficients)


@functools.cache
def hermite(gate: Gate, bits: int) -> tuple[arb, ...]:
    """`c_0, c_1, ...`, as many as there are terms and derivatives."""
    assert ctx.prec == bits
    count = TERMS + MOST_ORDERS + 4
    known = _KINDS[gate.kind](gate, count)
    found = [ball(gate.weight) * x for x in known]
    for power, value in enumerate(gate.coefficients):  # E[(z + t)^n] = sum_k C(n, k) E[z^(n-k)] t^k
        for k in range(power % 2, power + 1, 2):
            found[k] += ball(value * math.perm(power, k) * math.prod(range(power - k - 1, 0, -2)))
    return tuple(found)


def _none(gate: Gate, count: int) -> list[arb]:
    del gate
    return [arb(0)] * count


def _erf(gate: Gate, count: int) -> list[arb]:
    """`E[erf(s (z + t))] = erf(t sqrt(B))`."""
    base = ball(gate.slope / (1 + 2 * gate.slope)).sqrt()
    found, term = [arb(0)] * count, 2 * base / arb.pi().sqrt()
    for n in range(1, count, 2):
        found[n] = term
        term *= -2 * n * base * base
    return found


def _sigmoid(gate: Gate, count: int) -> list[arb]:
    """By trapezoidal sums over w = 0, h, 2h, ..., W; what is beyond W is bounded, too."""
    pi, slope = arb.pi(), gate.slope
    assert slope <= 2
    step, end = Fraction(1, 1 << (max(ctx.prec, 64) // 2 - 1).bit_length()), 2 * math.isqrt(count) + 16
    nodes = [ball(step * n) for n in range(1, end * step.denominator + 1)]
    values = [w * pi / ball(slope) for w in nodes]
    values = [v / v.sinh() * (-w * w / 2).exp() for v, w in zip(values, nodes, strict=True)]
    squares, found = [w * w for w in nodes], [arb(0)] * count
    found[0] = arb(1) / 2
    height, wide = (pi * ball(slope / step)).exp() - 1, arb(end)
    for j in range(count // 2):
        total = 2 * sum(values, arb(0)) + int(j == 0)  # both sides, and w = 0
        middle = arb(2 * j + 1) / arb(1).exp()
        peak = middle**j * middle.sqrt()
        off = 2 * pi * ball(slope * slope / 4).exp() * peak / height
        # For w >= W, where w^(2j+1) e^(-w^2/4) falls: g <= 7 (w/s) e^(-pi w/s), and the sum of h e^(-w^2/4) is below 2.
        beyond = 28 / ball(slope) * wide ** (2 * j + 1) * (-wide * wide / 4 - pi * wide / ball(slope)).exp()
        found[2 * j + 1] = (-1) ** j * (ball(step) * total + arb(0, 1) * (off + beyond)) / (2 * pi)
        values = [v * q for v, q in zip(values, squares, strict=True)]
    return found


_KINDS = {"sigmoid": _sigmoid, "erf": _erf, "none": _none}


class Overlap:
    """`G_ab` of two gates, at the precision at which it was made.

    ```python
    >>> from flint import arb
    >>> from tutelage.problem.activations import activation
    >>> from tutelage.rigour import Overlap, gate_of
    >>> sigmoid = gate_of(activation("sigmoid"))
    >>> abs(Overlap(sigmoid, sigmoid).at(0, 0, arb(1)) - 0.293379035858) < 1e-12  # E[sigmoid(z)^2]
    True

    ```
    """

    def __init__(self, left: Gate, right: Gate):
        self.gates, self.bits = (left, right), ctx.prec
        self.left, self.right = hermite(left, ctx.prec), hermite(right, ctx.prec)
        self._polynomials: dict[tuple[int, int], arb_poly] = {}
        self._known: dict[tuple[object, ...], arb] = {}
        self._tails: dict[tuple[int, int], arb] = {}

    def __call__(self, a: int, b: int, rho: arb_series) -> arb_series:
        """`G_ab` along a power series: its own series at the first coefficient, put into the rest."""
        here = within(rho[0])
        if len(rho.coeffs()) <= 1:
            return arb_series([self.at(a, b, here)])
        rest = arb_series([0, *rho.coeffs()[1:]], prec=rho.prec)
        found = [self.at(a + n, b + n, here) / math.factorial(n) for n in range(ctx.cap)]
        return arb_series(found)(rest)

    def at(self, a: int, b: int, rho: arb) -> arb:
        """`G_ab` at a number, or over a box."""
        if max(a, b) > MOST_ORDERS:
            raise CannotEnclose("So many derivatives of a gate are not known; use less precision.")
        if len(self._known) > 5000:
            self._known.clear()
        key = (a, b, *rho.mid().man_exp(), *rho.rad().man_exp())
        if key not in self._known:
            if (a, b) not in self._polynomials:
                terms = [self.left[k + a] * self.right[k + b] / math.factorial(k) for k in range(TERMS)]
                self._polynomials[a, b] = arb_poly(terms)
                self._tails[a, b] = self._tail(a, b)
            most = rho.abs_upper()
            rest = self._tails[a, b] * (most**TERMS if most > 0 else 0)
            self._known[key] = self._polynomials[a, b](rho) + rest * arb(0, 1)
        return self._known[key]

    def _tail(self, a: int, b: int) -> arb:
        """A bound of all terms after the last, at |rho| = 1, for both parities of k."""
        if any(gate.kind == "none" for gate in self.gates):  # all terms are there
            most = max(len(gate.coefficients) for gate in self.gates if gate.kind == "none")
            return arb(0) if most < TERMS else arb.pos_inf()
        total = arb(0)
        for last in (TERMS - 2, TERMS - 1):
            n, m = last + a, last + b
            if n % 2 == 0 or m % 2 == 0:  # one factor is 0 there and in all later terms of this parity
                continue
            size = abs(self.left[n] * self.right[m] / math.factorial(last))
            total += size * self._rest(last, n, m, max(a, b))
        return total

    def _rest(self, last: int, n: int, m: int, order: int) -> arb:
        """How much the terms after the last of a parity are together, beside it."""
        leans, ratio = [], arb(1)
        for gate, known, place in ((self.gates[0], self.left, n), (self.gates[1], self.right, m)):
            if gate.kind == "sigmoid":
                base = place - 4  # odd, as the place is, and below it
                rise = (abs(known[base + 2]) / abs(known[base])).sqrt()
                leans.append(arb.pi() / ball(gate.slope) * rise - order)
            else:  # beside (k+1) or (k+2) it falls to 2B, or rises to it
                ratio *= 2 * ball(gate.slope / (1 + 2 * gate.slope)) * (last + max(order, 1)) / (last + 1)
        lean = min(leans, default=arb(2))
        if len(leans) == 2 and lean > 1:
            return (last + 2) / (2 * (lean - 1))
        if len(leans) < 2 and lean > 0 and ratio < 1:  # a sigmoid's factor is then below 1 beside (k+1) or (k+2)
            return ratio / (1 - ratio)
        raise CannotEnclose("The tail of a gate's series cannot be bounded; use less precision.")


def within(rho: arb) -> arb:
    """A cosine is not outside [-1, 1], although its ball may reach there."""
    return rho.intersection(arb(0, 1)) if rho.is_finite() and rho.overlaps(arb(0, 1)) else rho
