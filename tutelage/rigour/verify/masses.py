"""Lemma A.6 of beyond_ntk: a potential of masses that falls as stated, or does not.

`beta_i` and `gamma_i` follow the recursion of Claim A.10 with `C_1 = 8/pi`, `C_2 = 8 (1 - 3/pi)` and `b_0 = 8/pi`,
without its error terms.
"""

from fractions import Fraction

from flint import arb

from tutelage.rigour.verify.parts import Data, Row, ball, exact, need


def says(data: Data) -> str:
    least, most = (choose(map(exact, data["weights"])) for choose in (min, max))
    return (
        f"Lemma A.6 as printed does not hold for weights between {least} and {most} of sum 1 in {len(data['weights'])} "
        f"dimensions. The masses given are as Lemma A.5 leaves them, with eta = {data['eta']}, C = {data['share']} and "
        f"{data['lead']} for 1 + 1/poly(kappa). Under the recursion of Claim A.10, without its error terms, update "
        f"{data['broken']} (from 0) takes a Phi >= 1/d^2 to more than {1 + exact(data['margin'])} times Phi (1 - eta "
        "min(C_1, 1) Phi/8). With the positive and the negative part of the sum in the place of Delta_+ and Delta_- "
        f"every update of the first {data['updates']} that begins with Phi >= 1/d^2 keeps the bound."
    )


def check(data: Data) -> dict[str, arb]:
    a, beta, gamma = (table_row(data[name]) for name in ("weights", "beta", "gamma"))
    eta, share, lead, margin = (exact(data[name]) for name in ("eta", "share", "lead", "margin"))
    broken, updates, d = int(exact(data["broken"])), int(exact(data["updates"])), len(a)
    need(d > 2 and len(beta) == len(gamma) == d and 0 <= broken < updates, "its numbers do not fit")
    need(min(a + beta + gamma) > 0 and sum(a) == 1, "masses and weights are positive, and weights have the sum 1")
    need(eta > 0 and share > 0 and lead > 1 and margin >= 0, "it would prove nothing")
    small = 1 / (d * (ball(Fraction(d)).log().log() / 100).exp())
    c1, c2, b0 = 8 / arb.pi(), 8 * (1 - 3 / arb.pi()), 8 / arb.pi()
    for x, y, z in zip(a, beta, gamma, strict=True):
        need(ball(y) <= small and ball(abs(x - z)) <= small, "the masses are not as Lemma A.5 leaves them")
    need(abs(2 * b0 * ball(sum(beta + gamma, Fraction(-1)))) <= small, "their sum is not as Lemma A.5 leaves it")

    weights, dense, axes = ([ball(x) for x in row] for row in (a, beta, gamma))
    pull = ball(eta) * c1.min(arb(1)) / 8
    threshold = ball(Fraction(1, d * d))
    printed, net = potentials(weights, dense, axes, ball(share), ball(lead))
    for update in range(updates):
        over = 2 * b0 * (sum(dense) + sum(axes) - 1)
        for i, weight in enumerate(weights):
            rate = c1 * (weight - dense[i] - axes[i]) - over
            axes[i] *= 1 + ball(eta) * (rate + c2 * (weight - axes[i]))
            dense[i] *= 1 + ball(eta) * rate
        before, (printed, after) = (printed, net), potentials(weights, dense, axes, ball(share), ball(lead))
        if update == broken:
            bound = before[0] * (1 - pull * before[0])
            need(before[0] >= threshold, "Phi is below 1/d^2 there")
            need(printed > (1 + ball(margin)) * bound, "the printed potential falls as stated")
            found = {"Phi before": before[0], "Phi after": printed, "allowed": bound}
        fallen = after <= before[1] * (1 - pull * before[1])
        need(fallen or before[1] < threshold, "the corrected potential does not fall as stated")
        net = after
    return found


def table_row(row: object) -> list[Fraction]:
    need(isinstance(row, list), "a list of numbers was expected")
    return [exact(x) for x in row]  # type: ignore[attr-defined]


def potentials(a: Row, beta: Row, gamma: Row, share: arb, lead: arb) -> tuple[arb, arb]:
    """Phi with excess and lack added up apart, as printed, and with the parts of their sum."""
    c1, c2, b0, none = 8 / arb.pi(), 8 * (1 - 3 / arb.pi()), 8 / arb.pi(), arb(0)
    excess = lack = total = most = none
    for x, y, z in zip(a, beta, gamma, strict=True):
        off = y + z - x
        turn = abs(c1 * off + c2 * z / (y + z) * (z - x))
        most = most.max(turn).max(y / share)
        excess, lack, total = excess + off.max(none), lack + (-off).max(none), total + off
    return most.max(lead * b0 * excess).max(lead * b0 * lack), most.max(lead * b0 * abs(total))
