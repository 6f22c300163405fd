"""What is proved of this paper, not measured: by ball arithmetic from exact rational data."""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from tutelage.papers.beyond_ntk.late import late
from tutelage.rigour import Proof, Provable, Settles, Standing, ball, enclosing, precision, text

DIM, RATIO, ETA, SHARE, LEAD = 50, 3.0, Fraction(1, 5), 4, Fraction(11, 10)
BEGIN, UPDATES, BROKEN, MARGIN = 2550, 1000, 19, Fraction(1, 20_000)
BITS = 1536


class Totals(NamedTuple):
    """The masses of all coordinates, and which part of each is on its axis."""

    total: list[arb]
    axes: list[arb]

    def moved(self, a: list[arb], eta: arb) -> "Totals":
        """One update: totals grow by tau - Delta; of them, axes by C_2 (a - gamma) more than the rest."""
        excess = 2 * B0 * (sum(self.total) - 1)
        found = Totals([], [])
        for weight, total, axes in zip(a, self.total, self.axes, strict=True):
            pull = eta * C2 * (weight - total * axes)
            growth = 1 + eta * (C1 * (weight - total) - excess)
            found.total.append(total * (growth + axes * pull))
            found.axes.append(axes * (growth + pull) / (growth + axes * pull))
        return found

    def potential(self, a: list[arb], net: bool) -> arb:
        """Phi of Lemma A.6."""
        over = [total - weight for weight, total in zip(a, self.total, strict=True)]
        over = [sum(over, arb(0))] if net else over
        lack = [-x for x in over]
        parts = [ball(LEAD) * B0 * sum((part.max(arb(0)) for part in side), arb(0)) for side in (over, lack)]
        for weight, total, axes in zip(a, self.total, self.axes, strict=True):
            tau = C1 * (weight - total) + C2 * axes * (weight - total * axes)
            parts += [tau, -tau, total * (1 - axes) / SHARE]
        return max(parts, key=lambda part: float(part.mid()))


def _start() -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Weights, beta and gamma some time after T_3, with eight digits: as Lemma A.5 leaves them, still."""
    path, weights = late(DIM, RATIO)
    a, beta, gamma = (
        [Fraction(Decimal(f"{x:.8g}")) for x in row] for row in (weights, path.beta[BEGIN], path.gamma[BEGIN])
    )
    a[0] += 1 - sum(a)
    return a, beta, gamma


def potential() -> Proof:
    """Lemma A.6: Phi as printed does not fall at one update; the corrected one does at all."""
    weights, beta, gamma = _start()
    with precision(BITS):
        a, eta = [ball(x) for x in weights], ball(ETA)
        both = [(ball(y), ball(z)) for y, z in zip(beta, gamma, strict=True)]
        now = Totals([y + z for y, z in both], [z / (y + z) for y, z in both])
        for _ in range(BROKEN):
            now = now.moved(a, eta)
        before, after = now.potential(a, net=False), now.moved(a, eta).potential(a, net=False)
        enclosed = enclosing({"Phi before": before, "Phi after": after, "allowed": before * (1 - eta * before / 8)})
    data = {
        "weights": [text(x) for x in weights], "beta": [text(x) for x in beta], "gamma": [text(x) for x in gamma],
        "eta": text(ETA), "share": str(SHARE), "lead": text(LEAD), "margin": text(MARGIN),
        "broken": BROKEN, "updates": UPDATES,
    }  # fmt: skip
    return Proof("C19:unequal", "a potential that does not fall", data, enclosed, BITS)


with precision(BITS):
    C1, C2, B0 = 8 / arb.pi(), 8 * (1 - 3 / arb.pi()), 8 / arb.pi()

PROOFS = (
    Provable(
        "C19:unequal",
        "Lemma A.6",
        "The potential as printed does not fall as stated, on masses of unequal teachers; the corrected one does.",
        potential,
        5.0,
        (
            Settles("C19:unequal", Standing.REFUTED),
            Settles("C19:net", Standing.PARTLY, "on the run that refutes the printed form"),
        ),
    ),
)
