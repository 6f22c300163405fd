"""Descent on a linear target: relu students of both layers.

The loss is 1/2 E(sum v_i relu(w_i.x) - x_1)^2. Iterates are carried as exact centres with one error: an update moves
two points apart by at most 1 + eta |H|, and |H| is at most the Frobenius norm of these bounds of its blocks, g being
the kernel: |d2g/dw_i dw_j| <= 1/2, |d2g/dw_i dw_i| <= |w_j|/(pi |w_i|), |dg/dw_j| <= |w_i|/2, g <= |w_i||w_j|/2.
"""

from fractions import Fraction

from flint import arb

from tutelage.rigour.verify.parts import Data, Row, ball, balls, dot, exact, need, table


def leaving_says(data: Data) -> str:
    return (
        "Figure 1(b): with v = (1, -1) fixed, descent from around 3/2 a comes to the saddle (2a, a), which is not "
        f"strict, and leaves it. From the start given, whose students are within {data['around']} of 3/2 a, a = (1, "
        f"0, ...), with the step {data['eta']} on the population loss, after {data['stalled']} updates the students "
        f"are within {data['near']} of 2a and a, the gradient is below {data['small']} and the loss within "
        f"{data['gap']} of 1/4; after {data['updates']} updates the loss is below {data['left']}."
    )


def leaving_check(data: Data) -> dict[str, arb]:
    eta, about, near, small, gap, left = (
        exact(data[name]) for name in ("eta", "around", "near", "small", "gap", "left")
    )
    stalled, updates = (int(exact(data[name])) for name in ("stalled", "updates"))
    start = table(data["start"])
    need(len(start) == 2 and 0 < stalled < updates and 0 < eta and min(about, near, small, gap) > 0, "it does not fit")
    need(0 < left < Fraction(1, 4), "it would prove nothing")
    away = [[x - Fraction(3, 2) * (n == 0) for n, x in enumerate(row)] for row in start]
    need(all(dot(row, row) <= about**2 for row in away), "the start is not around 3/2 a")
    rows, outer = descended(balls(start), [arb(1), arb(-1)], ball(eta), stalled, False)
    for row, place in zip(rows, (2, 1), strict=True):
        off = [x - place * (n == 0) for n, x in enumerate(row)]
        need(dot(off, off) < ball(near**2), "a student is not so near to the saddle")
    slope, _ = lines_slope(rows, outer)
    begin = lines_loss(rows, outer)
    need(dot(sum(slope, []), sum(slope, [])) < ball(small**2), "the gradient is not so small")
    need(abs(begin - arb(1) / 4) < ball(gap), "the loss is not so near to 1/4")
    rows, outer = descended(balls(start), [arb(1), arb(-1)], ball(eta), updates, False)
    end = lines_loss(rows, outer)
    need(end < ball(left), "the loss is not so small")
    return {"loss when stalled": begin, "loss at the end": end}


def stuck_says(data: Data) -> str:
    return (
        "Section 4: it is not so that two relu students with both layers trained get stuck only when v_1(0) and "
        f"v_2(0) have one sign. From the start given, v(0) = ({', '.join(data['second'])}), with no student on the "
        f"line of a = (1, 0, ...), descent on the population loss with the step {data['eta']} has after "
        f"{data['updates']} updates v_1 and v_2 above {data['least']}, a gradient below {data['small']} and a loss "
        f"within {data['gap']} of 1/4. As long as neither is negative the loss is at least 1/4, since no output is "
        "then negative."
    )


def stuck_check(data: Data) -> dict[str, arb]:
    eta, least, small, gap = (exact(data[name]) for name in ("eta", "least", "small", "gap"))
    start, second, updates = table(data["start"]), table([data["second"]])[0], int(exact(data["updates"]))
    need(len(start) == len(second) == 2 and updates > 0 and eta > 0 and min(small, gap) > 0, "it does not fit")
    need(second[0] * second[1] < 0, "the signs do not differ")
    need(all(any(row[1:]) for row in start), "a student is on the line of a")
    need(least >= 0, "it would prove nothing")
    rows, outer = descended(balls(start), [ball(x) for x in second], ball(eta), updates, True)
    slope, other = lines_slope(rows, outer)
    need(all(v > ball(least) for v in outer), "an outgoing weight is not so large")
    need(dot(sum(slope, other), sum(slope, other)) < ball(small**2), "the gradient is not so small")
    end = lines_loss(rows, outer)
    need(abs(end - arb(1) / 4) < ball(gap), "the loss is not so near to 1/4")
    return {"loss at the end": end, "smallest v": outer[0].min(outer[1])}


def forever_says(data: Data) -> str:
    return (
        "Section 4: it is not so that relu students with both layers trained get stuck only when all v_i(0) have "
        f"one sign. From w_i(0) = alpha_i a with alpha = ({', '.join(data['alpha'])}), a of length 1, and v(0) = "
        f"({', '.join(data['second'])}), descent on the population loss with the step {data['eta']} or a smaller "
        "one keeps every w_i a positive multiple of a, so that the loss is at least 1/4 after any number of "
        "updates."
    )


def forever_check(data: Data) -> dict[str, arb]:
    """In exact arithmetic, and by hand.

    On the line an update with `s = sum v_i alpha_i` and `q = eta (1 - s)/2` multiplies each `x_i = alpha_i + v_i` by
    1 + q and each `y_i = alpha_i - v_i` by 1 - q. With `A = sum x_i^2/4` and `B = sum y_i^2/4` it is s = A - B. We show
    that A <= 2, B <= 1 and A B <= 1 remain: then |q| <= eta < 1, so that all x_i and y_i remain positive, and so does
    alpha_i = (x_i + y_i)/2. A B is multiplied by (1 - q^2)^2 <= 1. The new A is `F(A) = A (1 + eta (1 + B - A)/2)^2`,
    which rises for A <= 2, B <= 1, eta <= 2/5. So A stays below F(2) <= 2. If s <= 1 then q >= 0 and B does not grow;
    else A > 1 + B, the new A is at least F(1 + B) = 1 + B >= 1, and the new B is at most the old A B <= 1.
    """
    alpha, second = (table([data[name]])[0] for name in ("alpha", "second"))
    eta = exact(data["eta"])
    need(len(alpha) == len(second) and min(second) < 0 < max(second), "the signs do not differ")
    need(0 < eta <= Fraction(2, 5), "the step is too large")
    need(all(a > abs(v) for a, v in zip(alpha, second, strict=True)), "a student may turn round")
    grown = sum(((a + v) ** 2 for a, v in zip(alpha, second, strict=True)), Fraction(0)) / 4
    shrunk = sum(((a - v) ** 2 for a, v in zip(alpha, second, strict=True)), Fraction(0)) / 4
    need(grown <= 2 and shrunk <= 1 and grown * shrunk <= 1, "the start is too large")
    return {"loss at the start": ball((1 - grown + shrunk) ** 2 + 1) / 4}


def lines_pair(a: Row, b: Row) -> tuple[arb, arb, arb, arb]:
    """Lengths, sine, and pi minus the angle of two rows."""
    long, other = dot(a, a).sqrt(), dot(b, b).sqrt()
    cosine = dot(a, b) / (long * other)
    return long, other, (1 - cosine * cosine).sqrt(), arb.pi() - cosine.acos()


def lines_slope(rows: list[Row], outer: Row) -> tuple[list[Row], Row]:
    """The gradient in incoming and outgoing weights."""
    slope, other = [], []
    for i, a in enumerate(rows):
        own = [(outer[i] * x - int(n == 0)) / 2 for n, x in enumerate(a)]  # E 1(a.x > 0) x (v_i a.x - x_1)
        for j, b in enumerate(rows):
            if j != i:
                long, far, sine, rest = lines_pair(a, b)
                own = [
                    x + outer[j] * (far * sine * y / long + rest * z) / (2 * arb.pi())
                    for x, y, z in zip(own, a, b, strict=True)
                ]
        slope.append([outer[i] * x for x in own])
        other.append(dot(a, own))  # relu(a.x) = 1(a.x > 0) a.x
    return slope, other


def lines_loss(rows: list[Row], outer: Row) -> arb:
    """E x_1^2/2, what students have with the target, and with each other."""
    total = arb(1) / 2
    for i, (a, v) in enumerate(zip(rows, outer, strict=True)):
        total += v * (v * dot(a, a) / 4 - a[0] / 2)
        for b, u in zip(rows[:i], outer, strict=False):
            long, far, sine, rest = lines_pair(a, b)
            total += v * u * (long * far * sine + rest * dot(a, b)) / (2 * arb.pi())
    return total


def descended(rows: list[Row], outer: Row, eta: arb, updates: int, both: bool) -> tuple[list[Row], Row]:
    """Where both layers, or the first, are after so many updates."""
    error = arb(0)
    for _ in range(updates):
        rows, outer = [[x.mid() for x in row] for row in rows], [v.mid() for v in outer]
        lengths, sizes = [dot(w, w).sqrt() + error for w in rows], [abs(v) + error for v in outer]
        bend = arb(0)  # the squared Frobenius norm of the bounds
        for i, (long, size) in enumerate(zip(lengths, sizes, strict=True)):
            need(long > 3 * error, "a student may be zero")
            own, mixed = size * size / 2, arb(1) / 2 + size * long
            for j, (far, v) in enumerate(zip(lengths, sizes, strict=True)):
                if j != i:
                    own += size * v * far / (arb.pi() * (long - 2 * error))
                    mixed += v * far / 2
                    bend += (size * v / 2) ** 2 + int(both) * ((v * long) ** 2 / 2 + (long * far / 2) ** 2)
            bend += own**2 + int(both) * (2 * mixed**2 + (long * long / 2) ** 2)
        slope, other = lines_slope(rows, outer)
        rows = [[x - eta * g for x, g in zip(*pair, strict=True)] for pair in zip(rows, slope, strict=True)]
        if both:
            outer = [v - eta * g for v, g in zip(outer, other, strict=True)]
        rounding = [x.rad() for x in sum(rows, outer)]
        error = ((1 + eta * bend.sqrt()) * error + dot(rounding, rounding).sqrt()).upper()
    wide = arb(0, 1) * error
    return [[x.mid() + wide for x in row] for row in rows], [v.mid() + wide * int(both) for v in outer]
