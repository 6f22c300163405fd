"""What is proved of this paper, not measured: by ball arithmetic from exact rational data."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from flint import arb

from tutelage import Gaussian, Problem, TwoLayer, activation, prove
from tutelage.papers.relu_teachers import kernel
from tutelage.papers.relu_teachers.chain import first_phase_time
from tutelage.papers.relu_teachers.plateau import Plateau
from tutelage.rigour import Kernel, Proof, Provable, Settles, Standing, ball, enclosing, form_of, precision, text, texts

STUDENTS, EPS1 = 6, Fraction(1, 5)
BITS = 192
MARGIN = Fraction(1, 1000)


class Leaning(NamedTuple):
    """A start of phase 1: cosine and sine of the angle between students and their own teachers, `eps1^2 <= small
    zeta_i^3`, and after how many updates student 0 has broken the bound. Students are orthogonal to the other teachers
    (zeta = 0)."""

    cosine: Fraction
    sine: Fraction
    small: Fraction
    updates: int


STARTS = {
    2: Leaning(Fraction(15, 17), Fraction(8, 17), Fraction(1, 25), 72_000),
    3: Leaning(Fraction(24, 25), Fraction(7, 25), Fraction(1, 50), 19_000),
}


def start(k: int) -> tuple[list[list[Fraction]], Fraction, Fraction]:
    """Students that satisfy every hypothesis of Theorem 6, sigma sqrt(d) and eta, both as large as it allows."""
    size = EPS1 ** (16 * k + 2) / (10**4 * STUDENTS)
    rows = []
    for i in range(STUDENTS):  # lengths from 0.9 to 1.1 sigma sqrt(d): between s1 and s2
        length = size * Fraction(90 + 4 * i, 100)
        row = [Fraction(0)] * (k + STUDENTS)
        row[i % k], row[k + i] = STARTS[k].cosine * length, STARTS[k].sine * length
        rows.append(row)
    return rows, size, size * EPS1**2 / (100 * k**2)


def angles(k: int) -> Proof:
    """Descent breaks Eq. (4)."""
    rows, size, eta = start(k)
    cosine, _, small, updates = STARTS[k]
    columns = len(rows[0])
    teachers = [[Fraction(int(i == j)) for j in range(columns)] for i in range(k)]
    problem = Problem(
        Gaussian(columns),
        TwoLayer("relu", first=np.eye(k, columns)),
        TwoLayer("relu", first=np.ones((STUDENTS, columns)), trains=("first",)),
    )

    def excess(moment: prove.Moment) -> arb:
        begin, square = ball((1 - cosine) / 2), ball(EPS1**2)
        growth = 1 + ball(eta * k * moment.update / (2 * size))
        left = (1 - moment.cosine(0, 0)) / 2 - square
        return left - (begin - square) * (-growth.log() / (8 * k)).exp()

    seen = prove.descend(problem, eta, updates, start=rows, watch={"left minus right": excess}, bits=BITS)
    with precision(BITS):
        zeta = ball(cosine).asin()
        ratio = ball(EPS1**2) / (zeta * zeta * zeta)
        assert ratio < ball(small) and seen["left minus right"][updates] > ball(MARGIN)
        assert float(updates * eta) < first_phase_time(float(EPS1), k, STUDENTS)
        enclosed = enclosing({"left minus right": seen["left minus right"][updates], "smallest zeta_i": zeta})
    data = {
        "k": k, "m": STUDENTS, "eps1": text(EPS1), "sigma_sqrt_d": text(size), "eta": text(eta), "norm": "1",
        "teachers": texts(teachers), "start": texts(rows), "updates": updates, "student": 0,
        "small": text(small), "margin": text(MARGIN),
    }  # fmt: skip
    return Proof(f"P1-ANGLE:k={k}", "descent breaks the bound on angles", data, enclosed, seen.bits)


def spurious(k: int) -> Proof:
    """As many students as teachers and dimensions, and a minimum that is not global.

    Descent in doubles leads there from the teachers themselves with the last one replaced by a student that points away
    from it. All that is done to one of the first k - 1 coordinates is done to the others.
    """
    first = np.eye(k)
    first[-1] = np.where(np.arange(k) == k - 1, -0.5, 0.3)
    for _ in range(DESCENT):
        first = first - 0.2 * kernel.gradient(first, np.eye(k))
    units = TwoLayer("relu", first=np.eye(k))
    return prove.minimum(
        Problem(Gaussian(k), units, TwoLayer("relu", first=first, trains=("first",))), id=f"MINIMA:k={k}"
    )


DESCENT = 4000


def hessian() -> Proof:
    """Lemma 7 as printed is not the Hessian."""
    data = {"a": ["1", "0"], "b": ["3", "4"], "row": 0, "column": 1, "margin": "1/10"}
    relu = form_of(activation("relu"))
    with precision(BITS):
        _, mixed = Kernel(relu, relu).blocks([arb(1), arb(0)], [arb(3), arb(4)])
        # n_{w_i,w_j} = (0, 1) and n_{w_j,w_i} = (4, -3)/5 meet (3, 4)/5 and (1, 0): nothing in this entry.
        enclosed = enclosing({"printed": arb(0), "derivative": mixed[0, 1]})
    return Proof("HESS:printed", "a formula that is not the derivative", data, enclosed, BITS)


def recursion() -> Proof:
    """Eq. (37) as printed is not what an update does: theta_i* |v| has the wrong sign in Q_i."""
    student, teacher, eta = [Fraction(3, 5), Fraction(4, 5)], [Fraction(1), Fraction(0)], Fraction(1, 10)
    problem = Problem(
        Gaussian(2), TwoLayer("relu", first=[[1.0, 0.0]]), TwoLayer("relu", first=[[1.0, 1.0]], trains=("first",))
    )

    def printed(moment: prove.Moment) -> arb:
        cosine = moment.cosine(0, 0)  # of a student of length 1: it is h, too
        turned = cosine * (1 - cosine * cosine).sqrt() + cosine.acos()
        return ball(eta) * ((1 - cosine) / 2 + turned / (2 * arb.pi()))

    watch = {"height": lambda moment: moment.first[0][0], "printed": printed}
    seen = prove.descend(problem, eta, 1, start=[student], watch=watch, at=[0, 1], bits=BITS)
    height = seen["height"]
    data = {"student": texts([student])[0], "teacher": texts([teacher])[0], "eta": text(eta), "margin": "1/40"}
    enclosed = enclosing({"printed": seen["printed"][0], "h(t+1) - h(t)": height[1] - height[0]})
    return Proof("RECUR:printed", "a recursion that does not hold", data, enclosed, BITS)


def linear() -> Proof:
    """Students exactly on their teachers leave them, and H is not that of the linear model."""
    counts, height, eta, updates, left = (3, 3), Fraction(1, 100), Fraction(1, 100), 100, 20
    k, m = len(counts), sum(counts)
    rows = [[height if i % k == j else Fraction(0) for j in range(k)] for i in range(m)]
    problem = Problem(
        Gaussian(k), TwoLayer("relu", first=np.eye(k)), TwoLayer("relu", first=np.ones((m, k)), trains=("first",))
    )

    def missing(moment: prove.Moment) -> arb:
        """H of both groups, which are alike: the model is a factor for each update."""
        rate = ball(eta * counts[0]) * (k + arb.pi() - 1) / (2 * arb.pi())
        model = (1 - rate) ** moment.update * ball(1 - counts[0] * height)
        return abs(1 - sum((moment.first[i][0] for i in range(0, m, k)), arb(0)) - model)

    def angle(moment: prove.Moment) -> arb:
        return moment.cosine(0, 0).acos() if moment.update else arb(0)

    watch = {"H": missing, "angle": angle}
    seen = prove.descend(problem, eta, updates, start=rows, watch=watch, at=[left, updates], bits=BITS, floor=1.0)
    data = {
        "counts": list(counts), "norms": [text(height)] * k, "eta": text(eta), "updates": updates, "left": left,
        "margin": "1/10", "eps2": "1/1000", "angle": "2/5",
    }  # fmt: skip
    enclosed = enclosing({"H less the model": seen["H"][updates], "angle": seen["angle"][left]})
    return Proof("P2-LIN:k=2", "aligned students leave the linear model", data, enclosed, BITS)


def saddle(k: int) -> Proof:
    """Six equal students on the mean direction of k teachers."""
    plateau, units = Plateau(k, STUDENTS), TwoLayer("relu", first=np.eye(k))
    guess = np.full((1, k), plateau.sum_of_norms / math.sqrt(k))
    one = Problem(Gaussian(k), units, TwoLayer("relu", first=guess, trains=("first",)))
    point = prove.stationary(one, radius="1e-30")
    high = STUDENTS * (Fraction(1, 2) - Fraction(point.least)) + Fraction(1, 10**11)
    low = Fraction(plateau.gamma_inside) - Fraction(1, 10**11)
    data = {
        "middle": [str(decimal(x, 40)) for x in point.middle.first[0]], "radius": "1e-30", "students": STUDENTS,
        "teachers": texts([[Fraction(int(i == j)) for j in range(k)] for i in range(k)]),
        "direction": ["1", "-1", *["0"] * (k - 2)], "rate": [str(decimal(low, 12)), str(decimal(high, 12))],
    }  # fmt: skip
    with precision(BITS):
        enclosed = enclosing({"loss": point.loss, "rate": ball(low).union(ball(high))})
    return Proof(f"SADDLE:k={k}", "a saddle of students on one line", data, enclosed, BITS)


def decimal(value: Fraction, places: int) -> Decimal:
    """The nearest number with so many places."""
    with localcontext(prec=places + 10):
        return (Decimal(value.numerator) / Decimal(value.denominator)).quantize(Decimal(1).scaleb(-places))


def mean_direction() -> Proof:
    """`G(u)/(sqrt(2)/(2 pi))` at the angle s from the mean direction is `(1 + 3 pi/4) cos s + s sin s`."""
    claim = prove.inequality("(1 + 3*pi/4)*cos(s) + s*sin(s) <= 1 + 3*pi/4", {"s": (0, "pi/4")})
    return prove.inequalities("SADDLE:mean", claim)


PROOFS = (
    *(
        Provable(
            f"P1-ANGLE:k={k}",
            "Theorem 3, Eq. (4); Theorem 6, Eq. (17)",
            "Descent from a start that satisfies all hypotheses breaks the bound on the angle to the own teacher.",
            partial(angles, k),
            seconds,
            (Settles("P1-ANGLE:k=2", Standing.REFUTED),),
        )
        for k, seconds in ((2, 30.0), (3, 15.0))
    ),
    *(
        Provable(
            f"MINIMA:k={k}",
            "Safran and Shamir 2018, Theorem 1",
            f"{k} students of {k} orthonormal teachers have a strict local minimum that is not global.",
            partial(spurious, k),
            2.0 if k < 10 else 5.0,
        )
        for k in range(6, 13)
    ),
    Provable(
        "HESS:printed",
        "Lemma 7",
        "The printed blocks of the Hessian are not its second derivatives.",
        hessian,
        0.1,
        (Settles("HESS:printed", Standing.REFUTED),),
    ),
    Provable(
        "RECUR:printed",
        "Eq. (37)",
        "The printed recursion of h_i* is not what an update does.",
        recursion,
        0.1,
        (Settles("RECUR:printed", Standing.REFUTED),),
    ),
    Provable(
        "P2-LIN:k=2",
        "Appendix E",
        "Students that are exactly on their teachers leave them, and what is missing does not follow the linear model.",
        linear,
        0.5,
        (Settles("P2-LIN:k=2", Standing.REFUTED),),
    ),
    *(
        Provable(
            f"SADDLE:k={k}",
            "new",
            f"Six equal students on the mean direction of {k} orthonormal teachers are a saddle; its level and rate.",
            partial(saddle, k),
            0.1,
            (Settles("SADDLE", Standing.PARTLY, f"the saddle, its level and its rate of escape for k = {k}, m = 6"),),
        )
        for k in (2, 3)
    ),
    Provable(
        "SADDLE:mean",
        "new",
        "The mean direction of two teachers attracts small students most, among all directions between the two.",
        mean_direction,
        0.1,
        (Settles("SADDLE", Standing.PARTLY, "the mean direction maximises G between two teachers"),),
    ),
)
