"""A strict local minimum of relu students that is not global.

The kernel of two relu units is `g(a, b) = |a||b| (sin t + (pi - t) cos t)/(2 pi)` with the angle t between a and b.
"""

from fractions import Fraction

from flint import arb, arb_mat

from tutelage.rigour.verify.parts import Data, Exact, Row, ball, balls, dot, exact, need, table


def says(data: Data) -> str:
    students, teachers = len(data["middle"]), len(data["teachers"])
    return (
        f"The population loss 1/2 E(sum relu(w_i.x) - sum relu(v_l.x))^2 of {students} students, with the {teachers} "
        f"teachers given, in {len(data['teachers'][0])} dimensions, has a local minimum that is strict and not global: "
        f"within {data['radius']} of the entries given there is exactly one stationary point, all eigenvalues of the "
        f"Hessian there are above {data['least']}, and the loss is above {data['loss']}, while it is 0 where the first "
        f"students are the teachers and all others are 0."
    )


def check(data: Data) -> dict[str, arb]:
    middle, teachers = table(data["middle"]), table(data["teachers"])
    radius, least, loss = (exact(data[name]) for name in ("radius", "least", "loss"))
    need(len(middle[0]) == len(teachers[0]) and len(middle) >= len(teachers), "its numbers do not fit")
    need(radius > 0 and least > 0 and loss > 0, "its bounds prove nothing")
    bend, value = unique(middle, radius, balls(teachers))
    positive(bend, ball(least), "the Hessian is not as positive as that")
    need(value > ball(loss), "the loss is not as large as that")
    return {"loss": value}


def unique(middle: Exact, radius: Fraction, targets: list[Row]) -> tuple[list[Row], arb]:
    """Krawczyk's test that a box has one stationary point and no other; the Hessian and the loss over the box."""
    columns, wide = len(middle[0]), arb(0, 1) * ball(radius)
    size = len(middle) * columns
    point = [x for row in balls(middle) for x in row]
    around = [x + wide for x in point]
    slope, _, _ = derivatives(point, targets, columns)
    _, bend, value = derivatives(around, targets, columns)
    guess = arb_mat(bend).mid().inv().mid()
    eye = arb_mat([[int(i == j) for j in range(size)] for i in range(size)])
    image = (eye - guess * arb_mat(bend)) * arb_mat([[wide]] * size) - guess * arb_mat([[x] for x in slope])
    for entry in image.entries():  # the box is mapped into its own interior
        need(abs(entry) < ball(radius), "the box is not mapped into itself")
    return bend, value


def definite(matrix: list[Row]) -> bool:
    """Whether a symmetric matrix is positive definite for sure, by `L D L'`."""
    rows = [list(row) for row in matrix]
    for p, row in enumerate(rows):
        if not row[p] > 0:
            return False
        for i in range(p + 1, len(rows)):
            factor = row[i] / row[p]
            for j in range(i, len(rows)):
                rows[i][j] -= factor * row[j]
    return True


def positive(matrix: list[Row], least: arb, otherwise: str) -> None:
    """Whether all eigenvalues of a symmetric matrix are above a number."""
    need(definite([[x - least * int(i == j) for j, x in enumerate(row)] for i, row in enumerate(matrix)]), otherwise)


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
