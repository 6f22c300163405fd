"""The checker of proof files: a few short files, FLINT and nothing else, with formulas of its own.

    python -m tutelage.rigour.verify proof.json

A proof is a statement in words, exact rational data, and what was enclosed. The words are made anew from the data,
every hypothesis is checked, and everything is enclosed again; the file is refused if a word, a number or the seal was
changed, or if a comparison is not sure. A comparison of balls is true only if it holds for all they contain, and false
if one is not a number: so each is asked in the direction that proves.

The kernel of two relu units is `g(a, b) = |a||b| (sin t + (pi - t) cos t)/(2 pi)` with the angle t between a and b.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from flint import arb, arb_series, ctx

from tutelage.rigour.verify import aligned, annihilation, hermite, inequality, linear, masses, minimum, saddle
from tutelage.rigour.verify.parts import Data, Row, ball, balls, dot, exact, need, readable, table
from tutelage.rigour.verify.parts import Refused as Refused

FORMAT = "tutelage proof 1"
PARTS = {"format", "id", "kind", "says", "data", "enclosed", "bits", "versions", "sha256"}


def verify(proof: Data) -> dict[str, arb]:
    """Check a proof; what it encloses, enclosed anew."""
    whole(proof)
    before, ctx.prec = ctx.prec, proof["bits"]
    try:
        with readable():
            found = KINDS[proof["kind"]].check(proof["data"])
            need(set(found) == set(proof["enclosed"]), "what it encloses is not what belongs to it")
            for name, value in found.items():
                least, most = (ball(exact(end)) for end in proof["enclosed"][name])
                need(least <= value and value <= most, f"{name} is not within the bounds it gives")
    finally:
        ctx.prec = before
    return found


def whole(proof: Data) -> None:
    """Whether it is a proof as it was written, and its words are those of its data; nothing of it is proved anew."""
    parts = isinstance(proof, dict) and set(proof) == PARTS and proof["format"] == FORMAT
    need(parts, "it is not a proof of this kind")
    need(seal(proof) == proof["sha256"], "its content is not what was sealed")
    need(proof["kind"] in KINDS, f"there is no kind {proof['kind']!r} of proofs")
    need(isinstance(proof["bits"], int) and 64 <= proof["bits"] <= 4096, "its precision is none")
    with readable():
        need(proof["says"] == KINDS[proof["kind"]].says(proof["data"]), "its words are not those of its data")


def seal(proof: Data) -> str:
    """The hash of all but itself."""
    rest = {name: value for name, value in proof.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


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


# 2. A formula that is not the derivative ---------------------------------------------------------------------------


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


# 3. A recursion that does not hold ---------------------------------------------------------------------------------


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


class Kind(NamedTuple):
    """A kind of proofs: its words, and what must be shown."""

    says: Callable[[Data], str]
    check: Callable[[Data], dict[str, arb]]


KINDS = {
    "descent breaks the bound on angles": Kind(angle_says, angle_check),
    "a local minimum that is not global": Kind(minimum.says, minimum.check),
    "a formula that is not the derivative": Kind(misprint_says, misprint_check),
    "a recursion that does not hold": Kind(recursion_says, recursion_check),
    "inequalities on intervals": Kind(inequality.says, inequality.check),
    "aligned students leave the linear model": Kind(aligned.says, aligned.check),
    "a saddle of students on one line": Kind(saddle.says, saddle.check),
    "a mean of Hermite polynomials that is another": Kind(hermite.says, hermite.check),
    "a potential that does not fall": Kind(masses.says, masses.check),
    "an inequality that is false": Kind(inequality.false_says, inequality.false_check),
    "descent that leaves a saddle": Kind(linear.leaving_says, linear.leaving_check),
    "descent that is stuck": Kind(linear.stuck_says, linear.stuck_check),
    "descent that is stuck for ever": Kind(linear.forever_says, linear.forever_check),
    "students that annihilate": Kind(annihilation.says, annihilation.check),
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
