"""The inequalities of the lemmas, proved over their whole range: functions of the angle between the two units.

With rho the ratio of the units' lengths, each is the least value over all targets of a quadratic in the target, divided
by the square of the shorter length: `C1 (rho^2 + 1) + C2 rho = C1 (rho - 1)^2 + (2 C1 + C2) rho`. So it is not negative
for any rho if C1 and 2 C1 + C2 are not. `s` is pi minus the angle; q and c are the sine and the cosine of the angle.
"""

from tutelage import prove
from tutelage.rigour import Proof, Provable, Settles, Standing

SINE = {"q": "sin(s)", "c": "-cos(s)", "G": "(s**2 + 2*s*q*c + q**2)/pi**2"}
PL = SINE | {
    "alpha": "1/20",
    "A": "s/pi + 1 - alpha",
    "B": "q/pi",
    "C1": "(1 - alpha + G)/4 - (A**2 + B**2 + 2*A*B*c)/(8*(1 - alpha))",
    "C2": "(2*A*B + (A**2 + B**2)*c)/(4*(1 - alpha)) - (1 - alpha/2)*(s*c + q)/pi",
}
"""Of |grad L|^2 - alpha L (Section B.2, Figure 4)."""
SLOPE = SINE | {
    "M": "5/2 - 1/4",
    "A": "2*M - s/(2*pi)",
    "B": "q/(2*pi)",
    "C1": "M - G/4 - (A**2 + B**2 - 2*A*B*c)/(8*M)",
    "C2": "(q + s*c)/pi - (2*A*B - (A**2 + B**2)*c)/(4*M)",
}
"""Of (5/2) |h|^2 - |grad L|^2 (Lemma 12): |grad L|^2 is |h|^2/4 - h_1.k_1 - h_2.k_2 + |k_1|^2 + |k_2|^2, with the
slopes k_1, k_2 of the kernel."""


def lemma_8() -> Proof:
    """Figure 4 is not negative from pi/2 on."""
    obtuse = {"s": (0, "pi/2")}
    return prove.inequalities(
        "BL23:whole",
        prove.inequality("C1 >= 1/30", obtuse, let=PL),
        prove.inequality("2*C1 + C2 >= 0", obtuse, let=PL),
    )


def lemma_12() -> Proof:
    """The gradient is bounded by the error, at all angles."""
    everywhere = {"s": (0, "pi")}
    return prove.inequalities(
        "BL14:whole",
        prove.inequality("C1 >= 1", everywhere, let=SLOPE),
        prove.inequality("2*C1 + C2 >= 0", everywhere, let=SLOPE),
    )


def lemma_13() -> Proof:
    """The loss bounds the error from pi/2 on, and is bounded by it; the worst target is a = (w_1 - w_2)/2."""
    return prove.inequalities(
        "BL24:whole",
        prove.inequality("(1 - cos(s))/5 >= (sin(s) - s*cos(s))/(2*pi)", {"s": (0, "pi/2")}),
        prove.inequality("sin(s) >= s*cos(s)", {"s": (0, "pi")}),
    )


NOTE = "the inequality of which it is the least value over all targets and lengths, for every angle"
PROOFS = (
    Provable(
        "BL23:whole",
        "Figure 4, B.2",
        "The function of Figure 4 is not negative for theta >= pi/2, for any ratio of norms.",
        lemma_8,
        1.0,
        (
            Settles("BL23", Standing.PROVED, "the function is C1 (rho - 1)^2 + (2 C1 + C2) rho, and theta = pi - s"),
            Settles("BL22", Standing.PARTLY, NOTE),
        ),
    ),
    Provable(
        "BL14:whole",
        "Lemma 12",
        "The square of the gradient is at most 5/2 of the square of the error, at every angle and ratio of norms.",
        lemma_12,
        1.0,
        (Settles("BL14", Standing.PARTLY, NOTE),),
    ),
    Provable(
        "BL24:whole",
        "Lemma 13",
        "The square of the error is at most 20 losses for theta > pi/2, and at least 4 at every angle.",
        lemma_13,
        1.0,
        (Settles("BL24", Standing.PARTLY, NOTE),),
    ),
)
