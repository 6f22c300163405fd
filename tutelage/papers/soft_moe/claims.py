"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.soft_moe.checks import (
    auxiliary,
    induction,
    kernel,
    local,
    neighbourhood,
    pruning,
    recovery,
    samples,
    starts,
)

CLAIMS: tuple[Claim, ...] = kernel.CLAIMS + starts.CLAIMS + recovery.CLAIMS + pruning.CLAIMS + local.CLAIMS
CLAIMS += induction.CLAIMS + auxiliary.CLAIMS + neighbourhood.CLAIMS + samples.CLAIMS
