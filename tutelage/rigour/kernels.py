"""`K(a, b) = E[s(a.x) t(b.x)]` for `x ~ N(0, I)`, its gradient and its second derivatives, enclosed.

A kernel is a function F(p, q, c) of `p = |a|^2`, `q = |b|^2` and `c = a.b`, so that

    grad_a K    = 2 F_p a + F_c b
    d2K/da da   = 2 F_p I + 4 F_pp a a' + 2 F_pc (a b' + b a') + F_cc b b'
    d2K/da db   = F_c I + 4 F_pq a b' + 2 F_pc a a' + 2 F_cq b b' + F_cc b a'

All of F but `E|a.x||b.x|` is smooth where a and b are not zero, and is differentiated by jets. That one, with
`S = sqrt(p q - c^2)` and the angle `A = atan2(c, S)`, is `2/pi (S + c A)`, with

    grad_a      = 2/pi (S/p a + A b)
    d2/da da    = 2/pi S/p (I - a^ a^' + n n')            n the direction of b across a
    d2/da db    = 2/pi (A I + (a v' + b u')/S)            v = b - (c/p) a, u = a - (c/q) b

The last matrix is symmetric, since `a v' + b u' = a b' + b a' - (c/p) a a' - (c/q) b b'`. In the plane of a and b it is
`S^2/(|a||b|)` times a reflection: divided by S, it is of size `S/(|a||b|)`, the sine of the angle. Where a and b may be
parallel such bounds take the place of the quotients, which are continuous, and 0 at S = 0.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from flint import arb, arb_mat

from tutelage.rigour.balls import CannotEnclose, ball, dot, hull, known, known_all, root
from tutelage.rigour.forms import Form
from tutelage.rigour.jets import Expansion, Jet

Row = Sequence[arb]


class Meeting(NamedTuple):
    """What a kernel sees of two rows: their squares, their inner product, and the area between them (S)."""

    p: arb
    q: arb
    c: arb
    across: arb

    def turned(self) -> "Meeting":
        """The same, with the rows exchanged."""
        return Meeting(self.q, self.p, self.c, self.across)


def meeting(a: Row, b: Row) -> Meeting:
    """What a kernel sees of two rows."""
    p, q, c = dot(a, a), dot(b, b), dot(a, b)
    return Meeting(p, q, c, area(p, q, c, a, b))


def area(p: arb, q: arb, c: arb, a: Row, b: Row) -> arb:
    """`S = sqrt(p q - c^2)`; for nearly parallel rows by Lagrange's identity, in which nothing cancels."""
    square = p * q - c * c
    if square > 0:
        return square.sqrt()
    square = arb(0)
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        for u, v in zip(a[:i], b[:i], strict=True):
            part = x * v - y * u
            square += part * part  # `**` of a ball around 0 is not a number in FLINT
    return root(square)


def lean(met: Meeting) -> arb:
    """A = atan2(c, S), between -pi/2 and pi/2."""
    if met.c.contains(0) and met.across.contains(0):
        return hull(-arb.pi() / 2, arb.pi() / 2)
    return arb.atan2(met.c, met.across)


class Slopes(NamedTuple):
    """The gradient in a is `onto_a a + onto_b b`."""

    onto_a: arb
    onto_b: arb


class Kernel:
    """The kernel of two activations.

    ```python
    >>> from flint import arb
    >>> from tutelage.problem.activations import activation
    >>> from tutelage.rigour.forms import form_of
    >>> from tutelage.rigour.kernels import Kernel, meeting
    >>> relu = form_of(activation("relu"))
    >>> Kernel(relu, relu).value(meeting([arb(1), arb(0)], [arb(0), arb(2)])).contains(1 / arb.pi())
    True

    ```
    """

    def __init__(self, s: Form, t: Form):
        self.s, self.t = s, t
        self.bent = bool(s.kink and t.kink)
        self.plain = s.piecewise_linear and t.piecewise_linear  # nothing but c and the arc
        self.linear = ball(s.slope * t.slope)
        self.bend = 2 * ball(s.kink * t.kink) / arb.pi()

    def value(self, met: Meeting) -> arb:
        """K(a, b)."""
        # A kink is |0| = 0 at a row that is zero, where its own formula divides by the row's length.
        s = self.s if not met.p.is_zero() else self.s._replace(kink=Fraction(0))
        t = self.t if not met.q.is_zero() else self.t._replace(kink=Fraction(0))
        total = self.linear * met.c if self.plain else smooth(s, t, *Jet.variables(met.p, met.q, met.c)).value
        if s.kink and t.kink:
            total += self.bend * (met.across + met.c * lean(met))
        return known(total, "The kernel")

    def slopes(self, met: Meeting) -> Slopes:
        """The gradient in a."""
        self._refuse_zero(self.s, met.p)
        t = self.t if not met.q.is_zero() else self.t._replace(kink=Fraction(0))
        if self.plain:
            onto_a, onto_b = arb(0), self.linear
        else:
            jet = smooth(self.s, t, *Jet.variables(met.p, met.q, met.c))
            onto_a, onto_b = 2 * jet.slope[0], jet.slope[2]
        if self.bent:
            onto_a += self.bend * met.across / met.p
            onto_b += self.bend * lean(met)
        return Slopes(known(onto_a, "The gradient"), known(onto_b, "The gradient"))

    def both_slopes(self, met: Meeting) -> tuple[Slopes, Slopes]:
        """The gradients in a and, for one activation, in b: for pairs of students, where this is most of the work."""
        one = self.slopes(met)
        if not self.plain:
            return one, self.slopes(met.turned())
        self._refuse_zero(self.t, met.q)
        return one, Slopes(one.onto_a * met.p / met.q, one.onto_b)

    def blocks(self, a: Row, b: Row) -> tuple[arb_mat, arb_mat]:
        """The second derivatives, in a twice and in a and b."""
        met = meeting(a, b)
        self._refuse_zero(self.s, met.p)
        self._refuse_zero(self.t, met.q)
        size, left, right = len(a), arb_mat([[x] for x in a]), arb_mat([[x] for x in b])
        aa, ab, ba, bb = (x * y.transpose() for x in (left, right) for y in (left, right))
        if self.plain:
            same, mixed = arb_mat(size, size), _scaled(size, self.linear)
        else:
            jet = smooth(self.s, self.t, *Jet.variables(met.p, met.q, met.c))
            same = _scaled(size, 2 * jet.slope[0])
            same += aa * (4 * jet.bend(0, 0)) + (ab + ba) * (2 * jet.bend(0, 2)) + bb * jet.bend(2, 2)
            mixed = _scaled(size, jet.slope[2]) + ab * (4 * jet.bend(0, 1))
            mixed += aa * (2 * jet.bend(0, 2)) + bb * (2 * jet.bend(1, 2)) + ba * jet.bend(2, 2)
        if self.bent:
            same += _same_arc(met, aa, ab, ba, bb) * self.bend
            mixed += _mixed_arc(met, aa, ab, ba, bb) * self.bend
        return known_all(same, "The Hessian"), known_all(mixed, "The Hessian")

    def alone(self, p: arb) -> Jet:
        """`E[s(a.x) t(a.x)]` as a function of p alone: the first of its derivatives is the one in p."""
        if not self.plain:  # which is smooth, at a row that is zero too
            self._refuse_zero(self.s, p)
            self._refuse_zero(self.t, p)
        return self.of_square(Jet.variables(p, arb(0), arb(0))[0])

    def of_square(self, square: Expansion) -> Expansion:
        """`E[s(a.x) t(a.x)]` as a function of `|a|^2`, which may be a power series, too."""
        if self.plain:
            return square.times(ball(self.s.slope * self.t.slope + self.s.kink * self.t.kink))
        return smooth(self.s, self.t, square, square, square) + square.times(ball(self.s.kink * self.t.kink))

    def _refuse_zero(self, form: Form, square: arb) -> None:
        if form.kink and not square > 0:
            raise CannotEnclose(
                "A row with a kinked activation is zero, or may be within its ball: there the gradient does not exist; "
                "use more precision, a smaller box, or another point."
            )


def _scaled(size: int, factor: arb) -> arb_mat:
    """A multiple of the identity."""
    none = arb(0)
    return arb_mat([[factor if i == j else none for j in range(size)] for i in range(size)])


def _same_arc(met: Meeting, aa: arb_mat, ab: arb_mat, ba: arb_mat, bb: arb_mat) -> arb_mat:
    """`S/p (I - a^ a^' + n n')`."""
    p, q, c, across = met
    size, factor = aa.nrows(), across / p
    flat = _scaled(size, factor) - aa * (factor / p)
    if across > 0:  # S/p n n' = v v'/S
        ratio = c / p
        return flat + (bb - (ab + ba) * ratio + aa * (ratio * ratio)) * (1 / across)
    # n is a unit vector: its squares are in [0, 1], and products of two entries in [-1/2, 1/2].
    own, other = factor * hull(0, 1), factor * hull(-arb(1) / 2, arb(1) / 2)
    return flat + arb_mat([[own if i == j else other for j in range(size)] for i in range(size)])


def _mixed_arc(met: Meeting, aa: arb_mat, ab: arb_mat, ba: arb_mat, bb: arb_mat) -> arb_mat:
    """`A I + (a v' + b u')/S`."""
    p, q, c, across = met
    size = aa.nrows()
    angle = _scaled(size, lean(met))
    if across > 0:
        return angle + (ab + ba - aa * (c / p) - bb * (c / q)) * (1 / across)
    sine = across / (p * q).sqrt()
    return angle + arb_mat([[sine * hull(-1, 1)] * size] * size)


def smooth(s: Form, t: Form, p: Expansion, q: Expansion, c: Expansion) -> Expansion:
    """All of F but the product of two kinks."""
    total = _moments(s, t, p, q, c)
    for form, other, here, there in ((s, t, p, q), (t, s, q, p)):
        if form.kink and any(other.coefficients[::2]):
            total += _kink_and_powers(other, here, there, c).times(ball(form.kink))
        for weight, square in form.erfs if any(other.coefficients[1::2]) else ():
            slope = ball(square).sqrt()
            total += _erf_and_powers(other, here.times(ball(square)), there, c.times(slope)).times(ball(weight))
    for one, first in s.erfs:
        for two, second in t.erfs:
            mixed = c.times((ball(first) * ball(second)).sqrt())
            total += _two_erfs(p.times(ball(first)), q.times(ball(second)), mixed).times(ball(one * two))
    return total


def _moments(s: Form, t: Form, p: Expansion, q: Expansion, c: Expansion) -> Expansion:
    """Two polynomials, by Isserlis: j of the m factors of the one are paired with factors of the other."""
    total = type(p).constant(0)
    for m, left in enumerate(s.coefficients):
        for n, right in enumerate(t.coefficients):
            if left * right and (m + n) % 2 == 0:
                for j in range(m % 2, min(m, n) + 1, 2):
                    alone, other = (m - j) // 2, (n - j) // 2
                    ways = math.comb(m, j) * math.comb(n, j) * math.factorial(j) * odds(alone) * odds(other)
                    total += (c**j * p**alone * q**other).times(ball(left * right * ways))
    return total


def _kink_and_powers(t: Form, p: Expansion, q: Expansion, c: Expansion) -> Expansion:
    """`E[|u| t(v)]`, by `E[v f] = q E[df/dv] + c E[df/du]`: even moments of |u|, from odd ones of its sign."""
    width = p.times(arb.pi() / 2).root().inverse()  # E[2 delta(u)], the mean of the sign's slope
    rest = q - c * c * p.inverse()  # the variance of v where u = 0
    even, odd = p * width, c * width
    total = even.times(ball(t.coefficients[0]))
    for n in range(2, len(t.coefficients), 2):
        even = (q * even).times(arb(n - 1)) + c * odd
        total += even.times(ball(t.coefficients[n]))
        odd = (q * odd).times(arb(n)) + (c * width * rest ** (n // 2)).times(arb(odds(n // 2)))
    return total


def _erf_and_powers(t: Form, p: Expansion, q: Expansion, c: Expansion) -> Expansion:
    """`E[erf(u) t(v)]`, by the same rule: the slope of erf is a Gaussian, under which v has another variance."""
    wide = p.times(arb(2)) + type(p).constant(1)
    slope = (c * wide.root().inverse()).times(2 / arb.pi().sqrt())
    rest = q - (c * c * wide.inverse()).times(arb(2))
    moment, total = type(p).constant(0), type(p).constant(0)
    for n in range(1, len(t.coefficients), 2):
        moment = (q * moment).times(arb(n - 1)) + (slope * rest ** (n // 2)).times(arb(odds(n // 2)))
        total += moment.times(ball(t.coefficients[n]))
    return total


def _two_erfs(p: Expansion, q: Expansion, c: Expansion) -> Expansion:
    """`E[erf(u) erf(v)] = 2/pi atan(2 c / sqrt((1 + 2p)(1 + 2q) - 4 c^2))`."""
    one = type(p).constant(1)
    rest = (p.times(arb(2)) + one) * (q.times(arb(2)) + one) - (c * c).times(arb(4))
    return (c.times(arb(2)) * rest.root().inverse()).arctangent().times(2 / arb.pi())


def odds(j: int) -> int:
    """`(2j - 1)!! = E[g^(2j)]` of a standard normal number."""
    return math.prod(range(2 * j - 1, 0, -2))
