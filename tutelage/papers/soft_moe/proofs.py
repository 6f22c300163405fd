"""What is proved of this paper, not measured: by ball arithmetic from exact rational data."""

from fractions import Fraction

import numpy as np
from flint import arb

from tutelage import Gaussian, Mixture, Problem, prove
from tutelage.papers.soft_moe import lemmas
from tutelage.papers.soft_moe.matching import greedy
from tutelage.rigour import Proof, Provable, Settles, Standing, ball, enclosing, precision, text, texts

DIM = 400
UNTIL = Fraction(8)
"""0.4 sqrt(d), the time that the claims of Theorem 1 take for its O(sqrt(d))."""
ROUTERS = [[Fraction(1, 20), Fraction(1), Fraction(0)], [Fraction(0), Fraction(1, 20), Fraction(1)]]
EXPERTS = [[Fraction(1, 20), Fraction(1), Fraction(0)], [Fraction(1, 50), Fraction(-1, 10), Fraction(1)]]
"""In coordinates of their own, of which the teacher's are the first: all overlaps are of the size 1/sqrt(d)."""
BITS, PLACES = 128, 6


def annihilation() -> Proof:
    """Two students annihilate although Eq. (6) names one of them."""
    none = [Fraction(0)] * 3
    start = {"routers": [row + none for row in ROUTERS], "experts": [none + row for row in EXPERTS]}
    axes = np.eye(6)
    problem = Problem(
        Gaussian(DIM),
        Mixture(routers=axes[:1], experts=axes[3:4]),
        Mixture(routers=axes[:2], experts=axes[3:5]),
    )
    assert greedy([[float(row[0])] for row in EXPERTS]).winners(1)[0] == 0
    watch = {
        "experts": lambda now: _cosine(now.first[2], now.first[3]),
        "routers": lambda now: _cosine(now.first[0], now.first[1]),
        "loss": prove.Instant.loss,
    }
    seen = prove.flow(problem, UNTIL, start=start, watch=watch, radius=1e-5)
    found = {name: values[UNTIL] for name, values in seen.seen.items()}
    with precision(BITS):
        assert found["experts"] < -1 + ball(Fraction(1, 10**5)) and found["routers"] > 1 - ball(Fraction(1, 500))
    data = {
        "routers_start": texts(ROUTERS), "experts_start": texts(EXPERTS), "until": text(UNTIL), "step": "1/64",
        "order": 20, "experts": "1/100000", "routers": "1/500", "together": "1/1000", "teacher": "1/20",
        "gap": "1/1000",
    }  # fmt: skip
    return Proof("SM-T1a:annihilation", "students that annihilate", data, enclosing(found, PLACES), BITS)


def _cosine(a: list[arb], b: list[arb]) -> arb:
    """Of the angle between two vectors."""
    inner, one, other = (sum((x * y for x, y in zip(*pair, strict=True)), arb(0)) for pair in ((a, b), (a, a), (b, b)))
    return inner / (one * other).sqrt()


PROOFS = (
    Provable(
        "SM-T1a:annihilation",
        "Theorem 1, Eq. (6)",
        "The student that Eq. (6) names for the only teacher annihilates with the other one under gradient flow.",
        annihilation,
        100.0,
        (Settles("SM-T1a", Standing.PARTLY, "one start of two students and one teacher"),),
    ),
    *lemmas.PROOFS,
)
