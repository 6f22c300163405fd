"""The constants of the proof under the paper's names; those outside double range are kept as natural logarithms."""

import math
from dataclasses import dataclass

C2 = 2.0
C3 = 1 / 4
C4 = math.pi / 20
C5 = 1 / 50
C6 = 6.0
C7 = 1 / 4
C8 = 32.0
C9 = 64 / math.tan(C4)
C11 = 1 / 50
GAMMA = 1 / 4
ETA = 1 / 4
PL = 0.05
LOSS_LOWER = 1 / 20
LEMMA12 = 5 / 2

STEP_ANGLES = 1 / 2
STEP_NORMS = 4 / 25
STEP_ALIGNMENT = 1.0
STEP_GROWTH = 1e-8

ALPHA = 65 / math.tan(C4)
CHAT4 = 1 / (2 * ALPHA)
LOG_SIGMA0 = -(math.log(8) + 2 * ALPHA)
LOG_C10 = -(math.log(4) + 2 * ALPHA)
LOG_CHAT3 = math.log(2) + ALPHA

# The box of the refinement phase: (43) with the upper bound of (42) read as (c2^2 + gamma)|a|.
C_MIN_SQUARED = C7**2 - C11
C_MAX_SQUARED = C2**2 + GAMMA


@dataclass(frozen=True)
class Constant:
    """One row of the table: `log` is the natural logarithm, always finite; `value` underflows or overflows with it."""

    symbol: str
    log: float
    where: str

    @property
    def log10(self) -> float:
        return self.log / math.log(10)

    @property
    def value(self) -> float:
        return math.exp(self.log) if self.log < 709 else math.inf


def _row(symbol: str, value: float, where: str) -> Constant:
    return Constant(symbol, math.log(value), where)


def smoothness(low: float, high: float) -> float:
    """Lemma 9's L(c1, c2) for norms in [c1, c2] sqrt|a|; it bounds the spectral norm of the Hessian by L|a|.

    ```python
    >>> from tutelage.papers.both_layers.constants import C_MIN_SQUARED, smoothness
    >>> round(smoothness(C_MIN_SQUARED**0.5, 2.0), 1)
    112.1

    ```
    """
    return 2 + (12 + 10 / math.pi + 4 * high / (math.pi * low)) * high**2


# One name serves several constants in the paper (c0, alpha): the place tells them apart.
TABLE: tuple[Constant, ...] = (
    _row("c0", STEP_ANGLES, "Lemma 4: mu|a|"),
    _row("c0", STEP_NORMS, "Lemma 5: mu|a|"),
    _row("c0", STEP_ALIGNMENT, "Lemma 6: mu|a|"),
    _row("c0", STEP_GROWTH, "Lemma 7: mu|a| ln(sqrt|a|/sigma)"),
    _row("c2", C2, "Lemmas 4-6: v_i <= c2 sqrt|a|"),
    _row("c3", C3, "Lemma 6: v_i(T1) >= c3 sigma"),
    _row("c4", C4, "Lemmas 4-7: angle to the target"),
    _row("c5", C5, "Lemmas 4, 5: gradient deviation"),
    _row("c6", C6, "Lemma 3: drift of the imbalance"),
    _row("c7", C7, "Lemma 7: v_i >= c7 sqrt|a|"),
    _row("c8", C8, "Lemma 7: length of the growth phase"),
    _row("c9", C9, "Lemma 6: length of the alignment phase"),
    Constant("c10", LOG_C10, "Lemma 6: imbalance at T1"),
    _row("c11", C11, "Lemma 7: imbalance at T1+T2"),
    _row("gamma", GAMMA, "Lemmas 4, 5: imbalance"),
    _row("alpha", ALPHA, "Lemma 6"),
    Constant("sigma_0", LOG_SIGMA0, "Theorem 2, Lemma 6: largest scale of the start"),
    Constant("e^(2 alpha)", 2 * ALPHA, "Lemma 6"),
    Constant("c3 hat = c5 hat", LOG_CHAT3, "C.4"),
    _row("c4 hat", CHAT4, "C.4: initial event"),
    _row("alpha", PL, "Lemma 8: PL constant"),
    _row("1/20", LOSS_LOWER, "Lemma 13"),
    _row("eta", ETA, "D.2"),
)


def constant(symbol: str, where: str = "") -> Constant:
    """The row with this symbol (and, where a name is used twice, this place).

    ```python
    >>> from tutelage.papers.both_layers.constants import constant
    >>> round(constant("sigma_0").log10, 2)
    -357.37

    ```
    """
    return next(row for row in TABLE if row.symbol == symbol and row.where.startswith(where))
