"""Phase 2 of relu_teachers: students exactly on their teachers do not stay there, and do not follow the linear model.

Students of one group begin equal and stay equal, so that a row stands for each group. The gradient in one of `n_l`
students `w_l` is `n_l w_l/2 + sum_o n_o g'(w_l, w_o) - sum_j g'(w_l, v_j)`, with the slope
`g'(a, b) = (|b| sin t a/|a| + (pi - t) b)/(2 pi)` of the kernel; it is `b/2` where a and b have one direction.
"""

from fractions import Fraction

from flint import arb

from tutelage.rigour.verify.parts import Data, Row, ball, dot, exact, need


def says(data: Data) -> str:
    return (
        f"The linear model of Appendix E, H' = -(1/(2 pi)) Diag(m_l) (1 1^T + (pi - 1) I) H, is not what descent does: "
        f"{len(data['counts'])} orthonormal teachers, groups of {data['counts']} students exactly on them with norms "
        f"{data['norms']}, and eta = {data['eta']}. After {data['updates']} updates some H_l is further than "
        f"{data['margin']} from the model with the same steps. After {data['left']} updates, which is before T2 for "
        f"eps2 = {data['eps2']}, a student is more than {data['angle']} rad from its teacher."
    )


def check(data: Data) -> dict[str, arb]:
    counts, norms = data["counts"], [exact(x) for x in data["norms"]]
    eta, eps2, angle, margin = (exact(data[name]) for name in ("eta", "eps2", "angle", "margin"))
    updates, left = int(exact(data["updates"])), int(exact(data["left"]))
    k, m = len(counts), sum(counts)
    need(k > 1 and len(norms) == k and all(isinstance(n, int) and n > 0 for n in counts), "its numbers do not fit")
    need(min(norms) > 0 and 0 < left <= updates and margin >= 0 and 0 < eps2 < angle, "it would prove nothing")
    need(all(3 * k * n >= m and k * n <= 3 * m for n in counts), "Assumption 3 does not hold")
    clock = ball(Fraction(k, 2 * m)) * -(48 * arb.pi() * ball(eps2)).log()
    need(eta > 0 and ball(eta * left) <= clock, "T2 is earlier")
    rows = [[ball(norms[j]) if i == j else arb(0) for i in range(k)] for j in range(k)]
    model = [1 - n * ball(x) for n, x in zip(counts, norms, strict=True)]
    widest = arb(0)
    for update in range(updates):
        slopes = [slope(rows, counts, number, aligned=update == 0) for number in range(k)]
        rows = [[x - ball(eta) * y for x, y in zip(*pair, strict=True)] for pair in zip(rows, slopes, strict=True)]
        total = sum(model, arb(0))
        model = [
            x - ball(eta) * n * (total + (arb.pi() - 1) * x) / (2 * arb.pi())
            for n, x in zip(counts, model, strict=True)
        ]
        if update + 1 == left:
            cosines = [row[number] / dot(row, row).sqrt() for number, row in enumerate(rows)]
            widest = max((x.acos() for x in cosines), key=lambda x: float(x.mid()))
    off = [abs(1 - n * row[i] - x) for i, (n, row, x) in enumerate(zip(counts, rows, model, strict=True))]
    need(any(x > ball(margin) for x in off), "it does not leave the model by so much")
    need(widest > ball(angle), "no student is as far from its teacher")
    return {"H less the model": max(off, key=lambda x: float(x.mid())), "angle": widest}


def slope(rows: list[Row], counts: list[int], number: int, aligned: bool) -> Row:
    """The gradient in one student of a group."""
    own, pi = rows[number], arb.pi()
    length = dot(own, own).sqrt()
    found = [counts[number] * x / 2 for x in own]
    teachers = [[arb(int(i == j)) for i in range(len(own))] for j in range(len(rows))]
    others = [(row, n) for j, (row, n) in enumerate(zip(rows, counts, strict=True)) if j != number]
    for j, other in enumerate(teachers):
        if aligned and j == number:
            found = [x - y / 2 for x, y in zip(found, other, strict=True)]
        else:
            others.append((other, -1))
    for other, n in others:
        far = dot(other, other).sqrt()
        cosine = dot(own, other) / (length * far)
        sine, rest = (1 - cosine * cosine).sqrt(), pi - cosine.acos()
        along, onto = n * far * sine / length / (2 * pi), n * rest / (2 * pi)
        found = [x + along * a + onto * b for x, a, b in zip(found, own, other, strict=True)]
    return found
