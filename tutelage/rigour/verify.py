"""The checker of proof files: one file, FLINT and nothing else, with formulas of its own.

    python -m tutelage.rigour.verify proof.json

A proof is a statement in words, exact rational data, and what was enclosed. The words are made anew from the data,
every hypothesis is checked, and everything is enclosed again; the file is refused if a word, a number or the seal was
changed, or if a comparison is not sure. A comparison of balls is true only if it holds for all they contain, and false
if one is not a number: so each is asked in the direction that proves.

The kernel of two relu units is `g(a, b) = |a||b| (sin t + (pi - t) cos t)/(2 pi)` with the angle t between a and b.
"""

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from flint import acb, arb, arb_mat, arb_poly, arb_series, ctx, fmpq

FORMAT = "tutelage proof 1"
PARTS = {"format", "id", "kind", "says", "data", "enclosed", "bits", "versions", "sha256"}
NUMBER = re.compile(r"-?\d{1,4000}(\.\d{1,4000})?(e-?\d{1,4})?(/\d{1,4000})?")
Data = dict[str, Any]
Row = list[arb]
Exact = list[list[Fraction]]
Integrand = Callable[[acb, bool], acb]


class Refused(ValueError):
    """A file that proves nothing; the sentence says why."""


def verify(proof: Data) -> dict[str, arb]:
    """Check a proof; what it encloses, enclosed anew."""
    need(
        isinstance(proof, dict) and set(proof) == PARTS and proof["format"] == FORMAT, "it is not a proof of this kind"
    )
    need(seal(proof) == proof["sha256"], "its content is not what was sealed")
    need(proof["kind"] in KINDS, f"there is no kind {proof['kind']!r} of proofs")
    kind, before = KINDS[proof["kind"]], ctx.prec
    bits = proof["bits"]
    need(isinstance(bits, int) and 64 <= bits <= 4096, "its precision is none")
    try:
        need(proof["says"] == kind.says(proof["data"]), "its words are not those of its data")
        ctx.prec = bits
        found = kind.check(proof["data"])
        need(set(found) == set(proof["enclosed"]), "what it encloses is not what belongs to it")
        for name, value in found.items():
            least, most = (ball(exact(end)) for end in proof["enclosed"][name])
            need(least <= value and value <= most, f"{name} is not within the bounds it gives")
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"its data cannot be read ({type(error).__name__}: {error})") from None
    finally:
        ctx.prec = before
    return found


def seal(proof: Data) -> str:
    """The hash of all but itself."""
    rest = {name: value for name, value in proof.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def need(sure: Any, otherwise: str) -> None:
    if not sure:
        raise Refused(otherwise)


def exact(value: Any) -> Fraction:
    need(isinstance(value, (str, int)) and NUMBER.fullmatch(str(value)), f"{str(value)[:40]!r} is not an exact number")
    return Fraction(value)


def table(rows: Any) -> Exact:
    found = [[exact(x) for x in row] for row in rows]
    need(found and len({len(row) for row in found}) == 1, "a matrix has rows of several lengths")
    return found


def ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def balls(rows: Exact) -> list[Row]:
    return [[ball(x) for x in row] for row in rows]


def dot(a: Any, b: Any) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), a[0] * 0)


# 1. Descent that breaks the bound on angles of Theorems 3 and 6 ---------------------------------------------------


def angle_says(data: Data) -> str:
    return (
        f"Eq. (4) of Theorem 3, Eq. (17) of Theorem 6, is false for k = {data['k']} teachers and m = {data['m']} "
        "students. The start given satisfies Assumptions 1 to 3 and the conclusion of Lemma 1, with "
        f"eps1 = {data['eps1']}, sigma sqrt(d) and eta as large as Theorem 6 allows or smaller, 10 k zeta <= eps1^2, "
        f"and eps1^2 <= {data['small']} zeta_i^3 for every i. After {data['updates']} <= T1 updates of gradient "
        "descent on the population loss the left side of the bound exceeds the right one by more than "
        f"{data['margin']} for student {data['student']} (from 0)."
    )


def angle_check(data: Data) -> dict[str, arb]:
    k, m, updates, student = (int(exact(data[name])) for name in ("k", "m", "updates", "student"))
    eps1, size, eta, small = (exact(data[name]) for name in ("eps1", "sigma_sqrt_d", "eta", "small"))
    start, teachers = table(data["start"]), table(data["teachers"])
    need(len(start) == m and len(teachers) == k and 0 <= student < m and updates > 0, "its numbers do not fit")
    need(len(start[0]) == len(teachers[0]), "students and teachers have rows of different lengths")
    square = dot(teachers[0], teachers[0])  # |v|^2
    norm = exact(data["norm"])
    margin = exact(data["margin"])
    need(eps1 > 0 and margin >= 0, "it would prove nothing")
    need(norm > 0 and square == norm**2, "the norm of the teachers is another one")
    for i, one in enumerate(teachers):
        for j, other in enumerate(teachers):
            need(dot(one, other) == (square if i == j else 0), "teachers are not orthogonal and of one norm")
    heights = [[dot(w, v) for v in teachers] for w in start]
    nearest = [row.index(max(row)) for row in heights]
    counts = [nearest.count(number) for number in range(k)]
    need(all(Fraction(m, 3 * k) <= n <= Fraction(3 * m, k) for n in counts), "Assumption 3 does not hold")
    need(size > 0 and size <= eps1 ** (16 * k + 2) * norm / (10**4 * m), "sigma is too large")
    need(eta > 0 and eta <= size * eps1**2 / (100 * k**2 * norm), "eta is too large")
    need(updates <= eps1**2 / (100 * eta * k * m), "T1 is earlier")
    need(all((size / 2) ** 2 <= dot(w, w) <= (2 * size) ** 2 for w in start), "Lemma 1 does not hold")
    zeta = zeta_i = None
    for w, row, own in zip(start, heights, nearest, strict=True):
        for number, height in enumerate(row):
            lean = (ball(height) / ball(dot(w, w) * square).sqrt()).asin()  # pi/2 - theta
            need(lean.is_finite(), "a student is parallel to a teacher")
            if number == own:
                need(lean > 0, "a student leans away from all teachers")
                need(ball(eps1) * ball(eps1) <= ball(small) * lean * lean * lean, "eps1^2 is too large beside zeta_i^3")
                zeta_i = lean if zeta_i is None else zeta_i.min(lean)
            else:
                zeta = abs(lean) if zeta is None else zeta.max(abs(lean))
    need(zeta is None or 10 * k * zeta <= ball(eps1**2), "10 k zeta is larger than eps1^2")

    own = nearest[student]
    begin = (1 - ball(heights[student][own]) / ball(dot(start[student], start[student]) * square).sqrt()) / 2
    rows, targets = balls(start), balls(teachers)
    for _ in range(updates):
        rows = updated(rows, targets, ball(eta))
    a, v = rows[student], targets[own]
    left = (1 - dot(a, v) / (dot(a, a) * dot(v, v)).sqrt()) / 2 - ball(eps1**2)
    growth = 1 + ball(eta * k * norm * updates / (2 * size))
    excess = left - (-growth.log() / (8 * k)).exp() * (begin - ball(eps1**2))
    need(excess > ball(margin), "the bound is not broken by so much")
    return {"left minus right": excess, "smallest zeta_i": zeta_i}


def updated(rows: list[Row], targets: list[Row], eta: arb) -> list[Row]:
    """One update of descent on `1/2 E(sum relu(w_i.x) - sum relu(v_l.x))^2`."""
    pi = arb.pi()
    lengths, far = [dot(w, w).sqrt() for w in rows], [dot(v, v).sqrt() for v in targets]
    units = [[x / n for x in w] for w, n in zip(rows, lengths, strict=True)]
    axes = [[x / n for x in v] for v, n in zip(targets, far, strict=True)]
    pairs = {}
    for i, a in enumerate(units):
        for j in range(i):
            cosine = dot(a, units[j])
            pairs[i, j] = pairs[j, i] = (1 - cosine * cosine).sqrt(), pi - cosine.acos()
    found = []
    for i, (w, a) in enumerate(zip(rows, units, strict=True)):
        slope, along = [pi * x for x in w], arb(0)  # 2 pi times the gradient
        for j, other in enumerate(rows):
            if j != i:
                sine, rest = pairs[i, j]
                along += lengths[j] * sine
                slope = [x + rest * y for x, y in zip(slope, other, strict=True)]
        for v, axis, n in zip(targets, axes, far, strict=True):
            cosine = dot(a, axis)
            rest = pi - cosine.acos()
            along -= n * (1 - cosine * cosine).sqrt()
            slope = [x - rest * y for x, y in zip(slope, v, strict=True)]
        found.append([x - eta * (y + along * u) / (2 * pi) for x, y, u in zip(w, slope, a, strict=True)])
    return found


# 2. A strict local minimum that is not global ----------------------------------------------------------------------


def minimum_says(data: Data) -> str:
    students, teachers = len(data["middle"]), len(data["teachers"])
    return (
        f"The population loss 1/2 E(sum relu(w_i.x) - sum relu(v_l.x))^2 of {students} students, with the {teachers} "
        f"teachers given, in {len(data['teachers'][0])} dimensions, has a local minimum that is strict and not global: "
        f"within {data['radius']} of the entries given there is exactly one stationary point, all eigenvalues of the "
        f"Hessian there are above {data['least']}, and the loss is above {data['loss']}, while it is 0 where the first "
        f"students are the teachers and all others are 0."
    )


def minimum_check(data: Data) -> dict[str, arb]:
    middle, teachers = table(data["middle"]), table(data["teachers"])
    radius, least, loss = (exact(data[name]) for name in ("radius", "least", "loss"))
    need(len(middle[0]) == len(teachers[0]) and len(middle) >= len(teachers), "its numbers do not fit")
    need(radius > 0 and least > 0 and loss > 0, "its bounds prove nothing")
    count, columns, targets = len(middle), len(middle[0]), balls(teachers)
    size, wide = count * columns, arb(0, 1) * ball(radius)
    point = [x for row in balls(middle) for x in row]
    around = [x + wide for x in point]
    slope, _, _ = derivatives(point, targets, columns)
    _, bend, value = derivatives(around, targets, columns)
    guess = arb_mat(bend).mid().inv().mid()
    eye = arb_mat([[int(i == j) for j in range(size)] for i in range(size)])
    image = (eye - guess * arb_mat(bend)) * arb_mat([[wide]] * size) - guess * arb_mat([[x] for x in slope])
    for entry in image.entries():  # Krawczyk: the box is mapped into its own interior
        need(abs(entry) < ball(radius), "the box is not mapped into itself")
    lifted = [[x - ball(least) * int(i == j) for j, x in enumerate(row)] for i, row in enumerate(bend)]
    need(positive(lifted), "the Hessian is not as positive as that")
    need(value > ball(loss), "the loss is not as large as that")
    return {"loss": value}


def derivatives(point: Row, targets: list[Row], columns: int) -> tuple[Row, list[Row], arb]:
    """Gradient, Hessian and loss at a point or over a box."""
    pi, rows = arb.pi(), [point[n : n + columns] for n in range(0, len(point), columns)]
    sides = [(row, 1) for row in rows] + [(row, -1) for row in targets]
    lengths = [dot(a, a).sqrt() for a, _ in sides]
    units = [[x / n for x in a] for (a, _), n in zip(sides, lengths, strict=True)]
    slope, bend, value = [arb(0)] * len(point), [[arb(0)] * len(point) for _ in point], arb(0)
    for i, (_, sign) in enumerate(sides):
        value += lengths[i] * lengths[i] / 4
        for j, (b, other) in enumerate(sides):
            if j == i or (i >= len(rows) and j >= i):
                continue
            cosine = dot(units[i], units[j])
            sine, rest = (1 - cosine * cosine).sqrt(), pi - cosine.acos()
            kernel = lengths[i] * lengths[j] * (sine + rest * cosine) / (2 * pi)
            if j < i:
                value += sign * other * kernel
            if i >= len(rows):
                continue
            begin = i * columns
            over = [(y - cosine * x) / sine for x, y in zip(units[i], units[j], strict=True)]  # b's part across a
            under = [(x - cosine * y) / sine for x, y in zip(units[i], units[j], strict=True)]  # a's part across b
            own = lengths[j] * sine / lengths[i]
            for p in range(columns):
                slope[begin + p] += other * (lengths[j] * sine * units[i][p] + rest * b[p]) / (2 * pi)
                for q in range(columns):
                    same = int(p == q)
                    bend[begin + p][begin + q] += (
                        other * own * (same - units[i][p] * units[i][q] + over[p] * over[q]) / (2 * pi)
                    )
                    if other > 0:
                        bend[begin + p][j * columns + q] += (
                            rest * same + units[i][p] * over[q] + units[j][p] * under[q]
                        ) / (2 * pi)
    for n, x in enumerate(point):
        slope[n] += x / 2
        bend[n][n] += arb(1) / 2
    return slope, bend, value


# 3. A formula that is not the derivative ---------------------------------------------------------------------------


def misprint_says(data: Data) -> str:
    return (
        f"Lemma 7 as printed is not the Hessian: for students w_i = {data['a']} and w_j = {data['b']} the printed "
        f"block Lambda_ij has in row {data['row']}, column {data['column']} (from 0) an entry that differs from the "
        f"second derivative of the loss by more than {data['margin']}, whatever the other students and the teachers "
        "are."
    )


def misprint_check(data: Data) -> dict[str, arb]:
    a, b = ([ball(exact(x)) for x in data[name]] for name in ("a", "b"))
    row, column, before = int(exact(data["row"])), int(exact(data["column"])), ctx.cap
    margin = exact(data["margin"])
    need(margin >= 0, "it would prove nothing")
    need(len(a) == len(b) and 0 <= row < len(a) and 0 <= column < len(a), "its numbers do not fit")
    ctx.cap = 2
    try:  # the slope in a, `(|b| sin t a/|a| + (pi - t) b)/(2 pi)`, along b + h e: its coefficient of h
        here, there = [arb_series([x]) for x in a], [arb_series([x, int(n == column)]) for n, x in enumerate(b)]
        long, other = dot(here, here).sqrt(), dot(there, there).sqrt()
        cosine = dot(here, there) / (long * other)
        sine = (1 - cosine * cosine).sqrt()
        slope = (other * sine * here[row] / long + (arb.pi() - cosine.acos()) * there[row]) / (2 * arb.pi())
        derivative = slope[1]
    finally:
        ctx.cap = before
    p, q = dot(a, a).sqrt(), dot(b, b).sqrt()
    u, v = [x / p for x in a], [x / q for x in b]
    c = dot(u, v)
    s = (1 - c * c).sqrt()
    of_a, of_b = (v[row] - c * u[row]) / s, (u[row] - c * v[row]) / s  # n_{w_i,w_j} and n_{w_j,w_i}
    printed = ((arb.pi() - c.acos()) * int(row == column) + of_a * v[column] + of_b * u[column]) / (2 * arb.pi())
    need(abs(printed - derivative) > ball(margin), "the printed entry is not off by so much")
    return {"printed": printed, "derivative": derivative}


# 4. A recursion that does not hold ---------------------------------------------------------------------------------


def recursion_says(data: Data) -> str:
    return (
        f"Eq. (37) as printed does not hold: for one student w = {data['student']}, one teacher v = {data['teacher']} "
        f"and eta = {data['eta']} the printed right side eta/2 H + Q differs from h(t+1) - h(t) by more than "
        f"{data['margin']}."
    )


def recursion_check(data: Data) -> dict[str, arb]:
    w, v = ([ball(exact(x)) for x in data[name]] for name in ("student", "teacher"))
    eta, margin = ball(exact(data["eta"])), exact(data["margin"])
    need(eta > 0 and margin >= 0, "it would prove nothing")
    norm = dot(v, v).sqrt()
    height = dot(w, v) / norm
    rise = dot(updated([w], [v], eta)[0], v) / norm - height
    cosine = height / dot(w, w).sqrt()
    sine, angle = (1 - cosine * cosine).sqrt(), cosine.acos()
    # Of Q_i two terms are left: eta/(2 pi) cos theta sin theta |v|, and eta/(2 pi) theta |v| with the printed sign.
    printed = eta * (norm - height) / 2 + eta * (cosine * sine + angle) * norm / (2 * arb.pi())
    need(abs(printed - rise) > ball(margin), "the printed side is not off by so much")
    return {"printed": printed, "h(t+1) - h(t)": rise}


# 5. Descent on a linear target: relu students of both layers ---------------------------------------------------------
#
# The loss is 1/2 E(sum v_i relu(w_i.x) - x_1)^2. Iterates are carried as exact centres with one error: an update moves
# two points apart by at most 1 + eta |H|, and |H| is at most the Frobenius norm of these bounds of its blocks, g being
# the kernel: |d2g/dw_i dw_j| <= 1/2, |d2g/dw_i dw_i| <= |w_j|/(pi |w_i|), |dg/dw_j| <= |w_i|/2, g <= |w_i||w_j|/2.


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


# 6. Two experts that annihilate under gradient flow ---------------------------------------------------------------
#
# Units are pi(v.x/|v|) He_3(w.x/|w|), pi the logistic function, and the loss is 1/2 E(f - f*)^2. Routers and experts
# are given in coordinates of their own, and so they stay: E[unit1 unit2] is then 6 s^3 G(r) with the cosines r of
# routers and s of experts and `G(r) = E[pi(z1) pi(z2)]`, and what would turn a router to an expert has a factor 0.
# Norms do not change. So the cosines of two students with each other (r, s) and with the teacher (r_i, s_i) are all
# there is, and obey six equations (`cosines`).
#
# `G(r) = 1/4 + sum c_k^2 r^k/k!` over odd k, with `c_k = E[pi^(k)]`, up to sign
# `1/pi int_0^inf w^(k-1) (pi w/sinh pi w) exp(-w^2/2) dw`. The equations are solved with a polynomial in the place of
# G; what it leaves of G and of G' is largest at r = 1, where the whole is E[pi^2] and E[pi'^2] (Parseval).


def annihilation_says(data: Data) -> str:
    return (
        "Eq. (6) names student 0 for the only teacher, since its expert has the largest inner product with that of "
        "the teacher. But under gradient flow from the start given the two students annihilate: at time "
        f"{data['until']} the cosine of their experts is below -1 + {data['experts']}, that of their routers above "
        f"1 - {data['routers']}, and what both together add to the output has a mean square below "
        f"{data['together']}; the cosines of both experts with the teacher's are below {data['teacher']}, so that "
        f"nobody has learned it, and the loss is within {data['gap']} of 3 E[pi^2], that of the teacher alone. "
        "Routers use three coordinates and experts three others, the teacher's are the first of each."
    )


def annihilation_check(data: Data) -> dict[str, arb]:
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
        if positive([[most * int(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(even)]):
            return most
    raise Refused("the derivative is too large")


def positive(rows: list[Row]) -> bool:
    """Whether a symmetric matrix is positive, by its pivots."""
    rows = [list(row) for row in rows]
    for p, row in enumerate(rows):
        if not row[p] > 0:
            return False
        for i in range(p + 1, len(rows)):
            factor = row[i] / row[p]
            for j in range(i, len(rows)):
                rows[i][j] -= factor * row[j]
    return True


class Kind(NamedTuple):
    """A kind of proofs: its words, and what must be shown."""

    says: Callable[[Data], str]
    check: Callable[[Data], dict[str, arb]]


KINDS = {
    "descent breaks the bound on angles": Kind(angle_says, angle_check),
    "a local minimum that is not global": Kind(minimum_says, minimum_check),
    "a formula that is not the derivative": Kind(misprint_says, misprint_check),
    "a recursion that does not hold": Kind(recursion_says, recursion_check),
    "descent that leaves a saddle": Kind(leaving_says, leaving_check),
    "descent that is stuck": Kind(stuck_says, stuck_check),
    "descent that is stuck for ever": Kind(forever_says, forever_check),
    "students that annihilate": Kind(annihilation_says, annihilation_check),
}


def main(paths: list[str]) -> int:
    """Check files, one after the other; 1 if one is refused."""
    worst = 0
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                proof = json.load(file)
            found = verify(proof)
            print(f"{path}: proved. {proof['says']}")
            print(*(f"  {name}: {value.str(12)}" for name, value in found.items()), sep="\n")
        except (OSError, ValueError) as error:
            print(f"{path}: refused, {error}.", file=sys.stderr)
            worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
