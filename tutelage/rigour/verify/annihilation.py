"""Two experts that annihilate under gradient flow.

Units are pi(v.x/|v|) He_3(w.x/|w|), pi the logistic function, and the loss is 1/2 E(f - f*)^2. Routers and experts
are given in coordinates of their own, and so they stay: E[unit1 unit2] is then 6 s^3 G(r) with the cosines r of
routers and s of experts and `G(r) = E[pi(z1) pi(z2)]`, and what would turn a router to an expert has a factor 0.
Norms do not change. So the cosines of two students with each other (r, s) and with the teacher (r_i, s_i) are all
there is, and obey six equations (`cosines`).

`G(r) = 1/4 + sum c_k^2 r^k/k!` over odd k, with `c_k = E[pi^(k)]`, up to sign
`1/pi int_0^inf w^(k-1) (pi w/sinh pi w) exp(-w^2/2) dw`. The equations are solved with a polynomial in the place of
G; what it leaves of G and of G' is largest at r = 1, where the whole is E[pi^2] and E[pi'^2] (Parseval).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from flint import acb, arb, arb_poly, arb_series, ctx

from tutelage.rigour.verify.minimum import definite
from tutelage.rigour.verify.parts import Data, Refused, Row, ball, dot, exact, need, table

Integrand = Callable[[acb, bool], acb]


def says(data: Data) -> str:
    return (
        "Eq. (6) names student 0 for the only teacher, since its expert has the largest inner product with that of "
        "the teacher. But under gradient flow from the start given the two students annihilate: at time "
        f"{data['until']} the cosine of their experts is below -1 + {data['experts']}, that of their routers above "
        f"1 - {data['routers']}, and what both together add to the output has a mean square below "
        f"{data['together']}; the cosines of both experts with the teacher's are below {data['teacher']}, so that "
        f"nobody has learned it, and the loss is within {data['gap']} of 3 E[pi^2], that of the teacher alone. "
        "Routers use three coordinates and experts three others, the teacher's are the first of each."
    )


def check(data: Data) -> dict[str, arb]:
    until, step = exact(data["until"]), exact(data["step"])
    limits = [exact(data[name]) for name in ("experts", "routers", "together", "teacher", "gap")]
    routers, experts = table(data["routers_start"]), table(data["experts_start"])
    need(len(routers) == len(experts) == 2 and len(routers[0]) > 1 < len(experts[0]), "its numbers do not fit")
    need(0 < step <= until and (until / step).denominator == 1 and min(limits) > 0, "its numbers do not fit")
    need(experts[0][0] > experts[1][0], "Eq. (6) does not name student 0")
    squares = [ball(dot(row, row)) for row in routers + experts]
    need(all(x > 0 for x in squares), "a vector is zero")
    point = []
    for rows in (routers, experts):
        lengths = [ball(dot(row, row)).sqrt() for row in rows]
        point.append(ball(dot(*rows)) / (lengths[0] * lengths[1]))
        point += [ball(row[0]) / long for row, long in zip(rows, lengths, strict=True)]
    gate = logistic(TERMS)
    need(gate.left < ball(Fraction(1, 10**9)), "the series of the gate is too short")

    def velocity(now: list[Any]) -> list[Any]:
        return cosines(now, squares, gate)

    # What the polynomial leaves of the velocity: in its six entries 1/a^2 stands with up to 18 (1 + 2), twice.
    off = gate.left * sum((18 / x for x in squares), arb(0)) * 6
    end = flowed(velocity, point, ball(step), int(until / step), int(exact(data["order"])), off)
    r, r_0, r_1, s, s_0, s_1 = end
    wide = arb(0, 1) * gate.left
    unit = gate.at(arb(1), 0) + wide
    together = 12 * (unit + s * s * s * (gate.at(r, 0) + wide))
    loss = 9 * unit + 6 * s * s * s * (gate.at(r, 0) + wide)
    for one, other in ((r_0, s_0), (r_1, s_1)):
        loss -= 6 * other * other * other * (gate.at(one, 0) + wide)
    below, above, small, teacher, gap = map(ball, limits)
    need(s < below - 1 and r > 1 - above, "the students have not come so near to annihilation")
    need(together < small, "what both add is not so small")
    need(s_0 < teacher and s_1 < teacher, "a student is nearer to the teacher")
    need(abs(loss - 3 * unit) < gap, "the loss is another one")
    return {"experts": s, "routers": r, "loss": loss}


TERMS = 151


class Gate(NamedTuple):
    """A polynomial for G with its derivatives, by order, and a bound of what is left of G and of G'."""

    derivatives: list[arb_poly]
    left: arb

    def at(self, place: arb, order: int) -> arb:
        return self.derivatives[order](place)

    def along(self, series: arb_series, order: int) -> arb_series:
        """A derivative of G along a power series."""
        here, rest = series[0], series.coeffs()[1:]
        if not rest:
            return arb_series([self.at(here, order)])
        found = [self.at(here, order + n) / math.factorial(n) for n in range(ctx.cap)]
        return arb_series(found)(arb_series([0, *rest]))


def logistic(terms: int) -> Gate:
    """Of the logistic function."""
    end, known = 30, [arb(0)] * (terms + 1)
    known[0] = arb(1) / 2
    for k in range(1, terms + 1, 2):
        # Beyond w = 30 the integrand is below 7 w^k exp(-w^2/2 - pi w), and w^k exp(-w^2/4) falls.
        beyond = 14 * arb(end) ** k * (-(arb(end) ** 2) / 4 - arb.pi() * end).exp()
        inner = acb.integral(_transformed(k - 1), 0, end)
        known[k] = (inner.real + arb(0, 1) * beyond) / arb.pi()
    parts = [known[k] * known[k] / math.factorial(k) for k in range(terms + 1)]
    derivatives = [arb_poly(parts)]
    while len(derivatives) < 64:
        derivatives.append(derivatives[-1].derivative())
    left = arb(0)
    for order in (0, 1):  # E[pi^2] and E[pi'^2]: beyond 20 the weight is below exp(-200)
        whole = acb.integral(_squared(order), -20, 20) / (2 * arb.pi()).sqrt()
        left = left.max(abs(whole.real + arb(0, 1) * (-arb(200)).exp() - derivatives[order](arb(1))).upper())
    return Gate(derivatives, left)


def _transformed(power: int) -> Integrand:
    """`w^power (pi w/sinh pi w) exp(-w^2/2)`."""
    return lambda w, _: w**power * (-w * w / 2).exp() / (w * 1j).sinc_pi()


def _squared(order: int) -> Integrand:
    """The square of the logistic function or of its slope, with the weight of a normal number."""

    def integrand(x: acb, _: bool) -> acb:
        value = 1 / (1 + (-x).exp())
        return (value if order == 0 else value * (1 - value)) ** 2 * (-x * x / 2).exp()

    return integrand


def cosines(now: list[Any], squares: Row, gate: Gate) -> list[Any]:
    """How fast cosines change, of routers (`6 s^3 G'(r)` turns them) and of experts (`18 s^2 G(r)`)."""
    r, r_0, r_1, s, s_0, s_1 = now
    turns = [[6 * b * b * b * gate.along(a, 1) for a, b in ((r, s), (r_0, s_0), (r_1, s_1))],
             [18 * b * b * gate.along(a, 0) for a, b in ((r, s), (r_0, s_0), (r_1, s_1))]]  # fmt: skip
    found = []
    for (pair, zero, one), place in zip(turns, ((r, r_0, r_1, *squares[:2]), (s, s_0, s_1, *squares[2:])), strict=True):
        c, c_0, c_1, a, b = place
        found.append(
            -(pair * (1 - c * c) - zero * (c_1 - c_0 * c)) / a - (pair * (1 - c * c) - one * (c_0 - c_1 * c)) / b
        )
        found.append(-(pair * (c_1 - c * c_0) - zero * (1 - c_0 * c_0)) / a)
        found.append(-(pair * (c_0 - c * c_1) - one * (1 - c_1 * c_1)) / b)
    return found


def flowed(velocity: Callable[[list[Any]], list[Any]], point: Row, step: arb, count: int, order: int, off: arb) -> Row:
    """Where `x' = f(x)` is after so many steps, if f is within `off` of a velocity in length.

    A box with `X + [0, h] f(box)` inside it contains the solution from X; the coefficient of h^order over the box gives
    the remainder of Taylor's series; solutions in the box part by at most exp(m h), m above the eigenvalues of the
    symmetric part of the derivative, and f's being off adds `h off max(1, exp(m h))`.
    """
    before, error = ctx.cap, arb(0)
    span, wide = step * arb(0.5, 0.5), arb(0, 1)
    try:
        for _ in range(count):
            error = (error + length([x.rad() for x in point])).upper()
            point = [x.mid() for x in point]
            begin = [x + wide * error for x in point]
            ctx.cap, box = 1, begin
            for _ in range(8):
                moved = velocity([arb_series([x]) for x in box])
                image = [x + span * (v[0] + wide * off) for x, v in zip(begin, moved, strict=True)]
                if all(y.is_finite() and x.contains(y) for x, y in zip(box, image, strict=True)):
                    break
                box = [y + wide * y.rad() / 4 for y in image]
            else:
                raise Refused("no box contains the solution")
            here, rest = coefficients(velocity, point, order), coefficients(velocity, box, order)
            grown = (apart(velocity, box) * step).exp()
            after = []
            for x, last in zip(here, rest, strict=True):
                total = last[order] * step**order
                for n in reversed(range(order)):
                    total += x[n] * step**n
                after.append(total)
            point, error = after, (error * grown + step * off * grown.max(arb(1))).upper()
    finally:
        ctx.cap = before
    return [x + wide * error for x in point]


def length(values: Row) -> arb:
    square: arb = dot(values, values)
    return square.sqrt()


def coefficients(velocity: Callable[[list[Any]], list[Any]], point: Row, order: int) -> list[Row]:
    """Taylor coefficients of the solution, from each the next."""
    found = [[x] for x in point]
    for n in range(order):
        ctx.cap = n + 1
        for known, v in zip(found, velocity([arb_series(x) for x in found]), strict=True):
            need(v.prec > n, "a series is too short")
            known.append(v[n] / (n + 1))
    return found


def apart(velocity: Callable[[list[Any]], list[Any]], box: Row) -> arb:
    """A number above all eigenvalues of the symmetric part of the derivative over a box."""
    ctx.cap, size, columns = 2, len(box), []
    for n in range(size):
        moved = velocity([arb_series([x, int(i == n)]) for i, x in enumerate(box)])
        columns.append([v[1] for v in moved])
    even = [[(columns[i][j] + columns[j][i]) / 2 for j in range(size)] for i in range(size)]
    for quarter in range(-8, 200):
        most = arb(quarter) / 4
        if definite([[most * int(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(even)]):
            return most
    raise Refused("the derivative is too large")
