"""All checkable statements of the paper in its order, and those new here."""

from tutelage.analysis import Claim
from tutelage.papers.soft_moe.checks import (
    auxiliary,
    induction,
    kernel,
    limits,
    local,
    neighbourhood,
    pruning,
    recovery,
    samples,
    starts,
    theorem,
)

CLAIMS: tuple[Claim, ...] = (
    *kernel.CLAIMS,
    *starts.CLAIMS,
    *theorem.CLAIMS,
    *limits.CLAIMS,
    *recovery.CLAIMS,
    *induction.CLAIMS,
    *pruning.CLAIMS,
    *local.CLAIMS,
    *neighbourhood.CLAIMS,
    *auxiliary.CLAIMS,
    *samples.CLAIMS,
)
