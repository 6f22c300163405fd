"""The constants of the proof under the paper's names; those outside double range are kept as natural logarithms."""

import math

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
PL = 0.05
LOSS_LOWER = 1 / 20
LEMMA12 = 5 / 2

STEP_ANGLES = 1 / 2
STEP_NORMS = 4 / 25
STEP_GROWTH = 1e-8

ALPHA = 65 / math.tan(C4)
CHAT4 = 1 / (2 * ALPHA)
LOG_SIGMA0 = -(math.log(8) + 2 * ALPHA)
LOG_C10 = -(math.log(4) + 2 * ALPHA)

# The box of the refinement phase: (43) with the upper bound of (42) read as (c2^2 + gamma)|a|.
C_MIN_SQUARED = C7**2 - C11
C_MAX_SQUARED = C2**2 + GAMMA


def smoothness(low: float, high: float) -> float:
    """Lemma 9's L(c1, c2) for norms in [c1, c2] sqrt|a|; it bounds the spectral norm of the Hessian by L|a|.

    ```python
    >>> from tutelage.papers.both_layers.constants import C_MIN_SQUARED, smoothness
    >>> round(smoothness(C_MIN_SQUARED**0.5, 2.0), 1)
    112.1

    ```
    """
    return 2 + (12 + 10 / math.pi + 4 * high / (math.pi * low)) * high**2
