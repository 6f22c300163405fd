"""What is proved of this paper, not measured: by ball arithmetic from exact rational data."""

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from tutelage import Gaussian, Problem, TwoLayer, prove
from tutelage.papers.both_layers import lemmas
from tutelage.rigour import Proof, Provable, Settles, Standing, ball, enclosing, precision, text, texts

STEP = Fraction(1, 10)
STALLED, LEFT = 400, 7000
"""Updates of Figure 1(b): the first 400 look as if descent ended in the saddle."""
STUCK = 600
BITS, FINE = 512, 2048
"""What the checker works with: it bounds the growth of errors more roughly, and so needs many bits."""


def _problem(first: list[list[Fraction]], trains: tuple[str, ...]) -> Problem:
    columns = len(first[0])
    student = TwoLayer("relu", first=np.ones((2, columns)), second=[1.0, -1.0], trains=trains)
    return Problem(Gaussian(columns), TwoLayer("linear", first=np.eye(1, columns)), student)


def escape() -> Proof:
    """A start of Figure 1(b), with v = (1, -1) fixed, leaves the saddle (2a, a)."""
    first = [[Fraction(3, 2), Fraction(1, 10), Fraction(0)], [Fraction(3, 2), Fraction(0), Fraction(1, 10)]]
    watch = {
        "loss": prove.Moment.loss,
        "gradient": prove.Moment.gradient,
        "saddle": lambda moment: _distance(moment.first, (2, 1)),
    }
    seen = prove.descend(
        _problem(first, ("first",)), STEP, LEFT, start=first, watch=watch, at=[STALLED, LEFT],
        radius=1e-12, centred=True,
    )  # fmt: skip
    begin, end = (seen["loss"][update] for update in (STALLED, LEFT))
    near, small, gap, left = (Fraction(1, n) for n in (10, 5000, 100_000, 10**9))
    with precision(BITS):
        assert seen["saddle"][STALLED] < ball(near) and seen["gradient"][STALLED] < ball(small)
        assert abs(begin - ball(Fraction(1, 4))) < ball(gap) and end < ball(left)
    data = {
        "start": texts(first), "around": "1/10", "eta": text(STEP), "stalled": STALLED, "updates": LEFT,
        "near": text(near), "small": text(small), "gap": text(gap), "left": text(left),
    }  # fmt: skip
    enclosed = enclosing({"loss when stalled": begin, "loss at the end": end})
    return Proof("BL44:escape", "descent that leaves a saddle", data, enclosed, FINE)


def _distance(rows: list[list[arb]], places: tuple[int, int]) -> arb:
    """How far the farther student is from its place on the line of a."""
    off = [[x - place * (n == 0) for n, x in enumerate(row)] for row, place in zip(rows, places, strict=True)]
    lengths = [sum((x * x for x in row), arb(0)).sqrt() for row in off]
    return lengths[0].max(lengths[1])


def stuck() -> Proof:
    """Outgoing weights of both signs, and both learn to be positive: sign(v_i + a.w_i) counts."""
    size = Fraction(1, 10**8)
    first = [[Fraction(0), size, Fraction(0)], [size, Fraction(0), size]]
    second = [size, -size / 10]
    watch = {
        "loss": prove.Moment.loss,
        "gradient": prove.Moment.gradient,
        "smallest v": lambda moment: moment.second[0][0].min(moment.second[1][0]),
    }
    seen = prove.descend(
        _problem(first, ("first", "second")), STEP, STUCK, start={"first": first, "second": second}, watch=watch,
        radius=1e-12, centred=True,
    )  # fmt: skip
    least, small, gap = Fraction(3, 5), Fraction(1, 10**9), Fraction(1, 10**9)
    found = {name: values[STUCK] for name, values in seen.seen.items()}
    with precision(BITS):
        assert found["smallest v"] > ball(least) and found.pop("gradient") < ball(small)
        assert abs(found["loss"] - ball(Fraction(1, 4))) < ball(gap)
    data = {
        "start": texts(first), "second": texts([second])[0], "eta": text(STEP), "updates": STUCK,
        "least": text(least), "small": text(small), "gap": text(gap),
    }  # fmt: skip
    enclosed = enclosing({"loss at the end": found["loss"], "smallest v": found["smallest v"]})
    return Proof("BL46:stuck", "descent that is stuck", data, enclosed, BITS)


def forever() -> Proof:
    """On the line of a, whatever the number of updates: by hand, the hypotheses in exact arithmetic."""
    alpha, second = [Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), -Fraction(1, 4)]
    first = [[x] for x in alpha]
    start: dict[str, Any] = {"first": first, "second": second}
    seen = prove.descend(_problem(first, ("first", "second")), STEP, 1, start=start, at=[0], radius=1e-20)
    data = {"alpha": texts([alpha])[0], "second": texts([second])[0], "eta": "2/5"}
    enclosed = enclosing({"loss at the start": seen["loss"][0]})
    return Proof("BL46:forever", "descent that is stuck for ever", data, enclosed, BITS)


PROOFS = (
    Provable(
        "BL44:escape",
        "Figure 1(b)",
        "Descent from around 3/2 a comes to the saddle that is not strict, and leaves it.",
        escape,
        6.0,
        (Settles("BL44", Standing.PARTLY, "one start, after 7000 updates"),),
    ),
    Provable(
        "BL46:stuck",
        "Section 4, k = 2",
        "Descent from a small start with v_1 and v_2 of two signs gets stuck.",
        stuck,
        2.0,
        (Settles("BL46", Standing.PARTLY, "one start of two signs, after 600 updates"),),
    ),
    Provable(
        "BL46:forever",
        "Section 4, k = 2",
        "On the line of a, from outgoing weights of two signs, the loss never falls below 1/4.",
        forever,
        0.1,
        (Settles("BL46", Standing.PARTLY, "starts of two signs on the line of a, for ever"),),
    ),
    *lemmas.PROOFS,
)
