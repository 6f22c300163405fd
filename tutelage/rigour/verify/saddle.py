"""The saddle at which equal relu students wait together.

One student has a stationary point w. Since relu is homogeneous, m students w/m are one of their loss, with the same
value. Its Hessian is `(1/2) 11' x I - 1 x T`: with `T = m (I/2 - H)`, H being the Hessian of the one student. So it has
the eigenvalues of `m H` where all students move alike, and those of -T, m - 1 times each, where they part. In every
dimension that no teacher uses T is the number `m (1/2 - h)`, h being the second derivative of the one student's loss.
"""

from flint import arb

from tutelage.rigour.verify.minimum import positive, unique
from tutelage.rigour.verify.parts import Data, Row, ball, balls, dot, exact, need, table


def says(data: Data) -> str:
    m, teachers = data["students"], data["teachers"]
    return (
        f"The population loss 1/2 E(sum relu(w_i.x) - sum relu(v_l.x))^2 of {m} students, with the {len(teachers)} "
        f"teachers given, in d >= {len(teachers[0])} dimensions, has a saddle of index {m - 1} (d - 1) at which all "
        f"students are equal: their sum is within {data['radius']} of the entries given, and is the only stationary "
        "point of one student there. All that part can leave it: the least eigenvalue of the Hessian is between "
        f"-{data['rate'][1]} and -{data['rate'][0]}."
    )


def check(data: Data) -> dict[str, arb]:
    middle, teachers, fastest = table([data["middle"]]), balls(table(data["teachers"])), table([data["direction"]])[0]
    radius, m, (low, high) = exact(data["radius"]), data["students"], map(exact, data["rate"])
    need(isinstance(m, int) and m > 1 and radius > 0 and 0 < low < high, "it would prove nothing")
    need(len(middle[0]) == len(teachers[0]) == len(fastest) and any(fastest), "its numbers do not fit")
    bend, value = unique(middle, radius, teachers)
    positive(bend, arb(0), "the one student has no minimum there")
    parting = [[m * (arb(int(i == j)) / 2 - x) for j, x in enumerate(row)] for i, row in enumerate(bend)]
    around = [x + arb(0, 1) * ball(radius) for x in balls(middle)[0]]
    lifted = [[x + a * b for x, b in zip(row, around, strict=True)] for row, a in zip(parting, around, strict=True)]
    positive(lifted, arb(0), "not all that part can leave it")  # T is 0 along w, and positive across
    slower = [[ball(high) * int(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(parting)]
    positive(slower, arb(0), "they part faster than that")
    outside = m * sum((share(around, v) for v in teachers), arb(0))
    need(0 < outside and outside < ball(high) and outside < arb(m) / 2, "it is another in dimensions that are not used")
    x = [ball(each) for each in fastest]
    rate = sum((a * dot(row, x) for a, row in zip(x, parting, strict=True)), arb(0)) / dot(x, x)
    need(rate > ball(low), "they part more slowly than that")
    return {"loss": value, "rate": rate.union(ball(high))}


def share(w: Row, v: Row) -> arb:
    """What a teacher takes from the second derivative in a dimension that is not used: `|v| sin t/(2 pi |w|)`."""
    cosine = dot(w, v) / (dot(w, w) * dot(v, v)).sqrt()
    size: arb = dot(v, v) * (1 - cosine * cosine) / dot(w, w)
    return size.sqrt() / (2 * arb.pi())
